"""Reading the arguments of the tests: what is wrong is named, with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sosbands._arguments import LARGEST, check, check_size, is_count, is_number, read_numbers
from sosbands._types import Array

DISTANCE = 10 * LARGEST  # of samples: they may be widths and distances of the largest numbers


def read_sample(values: ArrayLike, name: str) -> Array:
    """One-dimensional array of at least one finite number, whose square is finite too."""
    sample = read_numbers(name, values)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"{name} has shape {sample.shape}: expected one dimension and at least one entry")
    check_finite(name, sample, DISTANCE)
    return sample


def read_points(X: ArrayLike, residuals: ArrayLike) -> tuple[Array, Array]:
    """Points of shape (n, d) and as many residuals."""
    points, r = read_numbers("X", X), read_numbers("residuals", residuals)
    if points.ndim != 2 or r.shape != (len(points),) or not len(r):
        raise ValueError(f"X and residuals have shapes {points.shape} and {r.shape}: expected (n, d) and (n,), n >= 1")
    check_finite("X", points)
    check_finite("residuals", r)
    return points, r


def check_finite(name: str, values: Array, largest: float = LARGEST) -> None:
    """Raise an error unless all are finite numbers with finite squares."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinite entries: expected finite numbers")
    check_size(name, values, largest_of_all=largest)


def check_lengthscales(name: str, values: Sequence[Any]) -> None:
    """Raise an error unless all are numbers above 0; infinity takes all places as one."""
    check(name, values if len(values) != 1 else values[0], all(is_number(v) and v > 0 for v in values), "a number > 0")


def check_resamples(name: str, count: Any) -> None:
    """Raise an error unless it can be the number of permutations, flips or bootstrap samples."""
    check(name, count, is_count(count) and count >= 1, "an int >= 1")


def generator(random_state: Any) -> np.random.Generator:
    """A generator of random numbers; one that is given is used and goes on."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(f"random_state={random_state!r}: expected an int >= 0, a Generator or None") from None
