"""Which lengthscales and symmetry penalties a search tries."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import AnyArray, Array
from sosbands.kernels import median_lengthscale, resolve_kernel

PENALTIES = (0.0, 10.0, 100.0, 1000.0, np.inf)  # of normalised problems, where 1 is as good as 0
FACTORS = tuple(np.geomspace(0.1, 3.2, 6))  # of the median lengthscale
# Bands forget the data where a new point has no learning points nearby, so that shorter lengthscales say nothing there.
MIN_SUPPORT = 0.5
SUPPORT_ROWS = 800
JITTER = 1e-8


def is_symmetric(penalty: Any) -> bool:
    """One shared function: the penalty, or a part of the pair, is infinite."""
    return bool(np.isinf(penalty).any())


def is_auto(name: str, value: Any, also: str = "auto") -> bool:
    """Whether a value is to be searched for; other words than "auto" and `also` are refused."""
    if isinstance(value, str) and value not in ("auto", also):
        raise ValueError(f"{name}={value!r}: expected 'auto' or what learn_bands takes")
    return isinstance(value, str) and value == "auto"


def candidate_lengthscales(points: AnyArray, kernel: Any, lengthscale: Any, held: AnyArray) -> list[Any]:
    """Six lengthscales from 0.1 to 3.2 medians, or the one given.

    The range is moved upwards if at its lower end the held-out points would have too little support. The median is that
    of all points, not of each fold's.
    """
    if not isinstance(lengthscale, str):
        return [lengthscale]
    if not isinstance(kernel, str) or kernel == "precomputed":
        return ["median"]  # stands for: as the kernel has it
    numbers = np.asarray(points, dtype=float)
    median = median_lengthscale(numbers)
    if lengthscale == "median":
        return [median]
    first = shortest_factor(numbers, kernel, median, held)
    last = max(FACTORS[-1], 4 * first)
    return [float(ell) for ell in median * np.geomspace(first, last, len(FACTORS))]


def shortest_factor(points: Array, kernel: str, median: float, held: AnyArray) -> float:
    """Smallest factor of the median at which held-out points have a mean support of at least 0.5."""
    others = np.setdiff1d(np.arange(len(points)), held)[:SUPPORT_ROWS]
    new = held[:SUPPORT_ROWS]
    factor = FACTORS[0]
    while factor < FACTORS[-1]:
        k = resolve_kernel(kernel, factor * median, points)
        K = k(points[others], points[others])
        K[np.diag_indices_from(K)] += JITTER
        cross = k(points[others], points[new])
        support = np.einsum("ij,ij->j", cross, cho_solve(cho_factor(K, lower=True), cross))
        if support.mean() >= MIN_SUPPORT:
            break
        factor *= 1.25
    return float(factor)


def candidate_penalties(penalty: Any, lengthscale: Any) -> tuple[Any, ...]:
    """The grid, or the one given. Sides with lengthscales of their own have no symmetric limit."""
    if not is_auto("symmetry_penalty", penalty):
        return (tuple(penalty) if isinstance(penalty, list) else penalty,)
    sides = [np.asarray(side) for side in lengthscale.values()] if isinstance(lengthscale, dict) else []
    if any(not np.array_equal(side, sides[0]) for side in sides):
        return tuple(each for each in PENALTIES if not is_symmetric(each))
    return PENALTIES
