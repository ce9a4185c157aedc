"""The conformal quantile: the only one of the package, plain and weighted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sosbands._types import Array

ROUNDING_GUARD = 1e-9  # level (m + 1) may exceed a whole number by rounding alone: 0.55 * 100 is 55.00000000000001


def conformal_rank(n_scores: int, level: float) -> int:
    """Rank of the conformal quantile among the sorted scores, ``ceil(level (m + 1) - 1e-9)``, at least 1.

    A rank above `n_scores` means that no score is large enough.
    """
    return max(1, math.ceil(level * (n_scores + 1) - ROUNDING_GUARD))


def points_needed(level: float) -> float:
    """Smallest number of scores with a finite conformal quantile at a level in (0, 1], infinite at level 1."""
    _check_level(level)
    if level == 1:
        return math.inf
    if 1 - level < 1e-8:  # so many points that the rank itself is rounded: the exact number instead of a search
        return math.ceil(Fraction(level) / (1 - Fraction(level)))
    needed = max(1, math.ceil((level - ROUNDING_GUARD) / (1 - level)))
    while conformal_rank(needed, level) > needed:
        needed += 1
    while needed > 1 and conformal_rank(needed - 1, level) < needed:
        needed -= 1
    return needed


def conformal_quantile(scores: ArrayLike, level: float) -> float:
    """The k-th smallest score, ``k = ceil(level (m + 1) - 1e-9)``, and infinity if ``k > m``.

    A new exchangeable score is at most this large with probability in ``[level, level + 1/(m + 1)]`` (the upper bound
    without ties).

    Parameters
    ----------
    scores : array of shape (m,)
        Calibration scores; they may be infinite, of either sign.
    level : float
        In (0, 1]; at level 1 the quantile is infinite.
    """
    _check_level(level)
    ordered = np.sort(_read_scores(scores))
    k = conformal_rank(len(ordered), level)
    return float(ordered[k - 1]) if k <= len(ordered) else math.inf


def weighted_conformal_quantile(scores: ArrayLike, weights: ArrayLike, test_weights: ArrayLike, level: float) -> Array:
    """One quantile per test point under covariate shift.

    ``q(x) = inf{s : sum_{i: S_i <= s} p_i(x) >= level}`` with ``p_i(x) = w_i / (sum_j w_j + w(x))``, and infinity if
    all the ``p_i(x)`` together stay below the level. Equal weights give `conformal_quantile` back exactly.

    Parameters
    ----------
    scores, weights : arrays of shape (m,)
        Calibration scores and their likelihood ratios (test over calibration density, up to a constant).
    test_weights : array of shape (n_test,)
        Likelihood ratios of the test points, with the same constant.
    level : float
        In (0, 1]; at level 1 every quantile is infinite.

    Returns
    -------
    quantiles : array of shape (n_test,)
    """
    _check_level(level)
    S = _read_scores(scores)
    w = _read_weights("weights", weights)
    w_test = _read_weights("test_weights", test_weights)
    if len(w) != len(S):
        raise ValueError(f"weights has {len(w)} entries: expected one per score, {len(S)}")
    if not w.any():
        raise ValueError("weights are all zero: expected at least one positive weight")
    if level == 1:
        return np.full(len(w_test), np.inf)
    unit = w.max()  # equal weights become exactly 1, and their sums exact counts
    S, w = S[w > 0], w[w > 0] / unit
    order = np.argsort(S, kind="stable")
    mass = np.cumsum(w[order])
    with np.errstate(over="ignore"):  # a test weight beyond all others: no mass reaches the level
        target = level * (mass[-1] + w_test / unit) - ROUNDING_GUARD
    padded = np.append(S[order], np.inf)
    return np.asarray(padded[np.searchsorted(mass, target, side="left")])


def _check_level(level: float) -> None:
    if not 0 < level <= 1:
        raise ValueError(f"level={level!r}: expected a number in (0, 1]")


def _read_scores(scores: ArrayLike) -> Array:
    S = np.asarray(scores, dtype=np.float64)
    if S.ndim != 1 or np.isnan(S).any():
        raise ValueError(f"scores of shape {S.shape}: expected a vector without NaN")
    return S


def _read_weights(name: str, weights: ArrayLike) -> Array:
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(f"{name} of shape {w.shape}: expected a vector of finite numbers >= 0")
    return w
