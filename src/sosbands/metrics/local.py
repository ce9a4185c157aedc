"""How well intervals fit each place: local coverage, and the distance to the bands that know the law.

`combined` numbers put the lower and the upper ones side by side and average; the average over repetitions is then the
one of all lower and upper numbers pooled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from sklearn.utils import check_random_state

from sosbands._arguments import LARGEST, check, check_size, is_count, read_level
from sosbands._types import Array, IntArray
from sosbands.metrics.checks import read_bounds, read_intervals, read_matrix, read_vector

RandomState = int | np.random.Generator | np.random.RandomState | None


class SidedMeasure(NamedTuple):
    """One measure of the intervals, of their lower and their upper ends, and of both ends together."""

    marginal: float
    lower: float
    upper: float
    combined: float


def coverage_gaps(
    lower: ArrayLike, upper: ArrayLike, Y_conditional: ArrayLike, confidence_level: float
) -> SidedMeasure:
    """Absolute coverage gaps (ACG) from samples of the conditional law at each point.

    ``ACG = mean_i |p(X_i) - (1-alpha)|`` with ``p(X_i)`` the share of the samples at ``X_i`` inside the interval; the
    lower and the upper version compare the shares of ``y >= lower`` and of ``y <= upper`` with ``1 - alpha/2``.

    Parameters
    ----------
    lower, upper : array-like of shape (n_x,)
        Intervals at the points.
    Y_conditional : array-like of shape (n_x, n_y)
        Row i: targets drawn at point i.
    confidence_level : float
        ``1 - alpha``, in (0, 1).

    Returns
    -------
    SidedMeasure
        ``combined`` is ``ACG^c``, the mean over the lower and upper gaps of all points.
    """
    level = read_level(confidence_level)
    lower, upper = read_bounds(lower, upper)
    Y = read_matrix(Y_conditional, "Y_conditional", len(lower))
    above, below = lower[:, None] <= Y, upper[:, None] >= Y
    side_level = (1 + level) / 2
    gap = float(np.abs(np.mean(above & below, axis=1) - level).mean())
    gap_lo = float(np.abs(above.mean(axis=1) - side_level).mean())
    gap_up = float(np.abs(below.mean(axis=1) - side_level).mean())
    return SidedMeasure(gap, gap_lo, gap_up, (gap_lo + gap_up) / 2)


def worst_set_coverage(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    X: ArrayLike,
    *,
    n_sets: int = 10,
    n_neighbors: int = 100,
    random_state: RandomState = None,
    X_learn: ArrayLike | None = None,
) -> SidedMeasure:
    """Smallest coverage over sets of neighbours.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals of the test rows.
    X : array-like of shape (n, n_features)
        Test rows.
    n_sets : int
        How many rows are drawn, without repetition; all of them if there are fewer.
    n_neighbors : int
        Size of each set: the nearest rows to the one drawn, itself included. With ``n <= n_neighbors`` every set is
        the whole test set and the result is marginal coverage.
    random_state : int, Generator, RandomState or None
        Which rows are drawn.
    X_learn : array-like of shape (n_learn, n_features), optional
        Rows whose mean and standard deviation standardise the features; by default those of `X`.

    Returns
    -------
    SidedMeasure
        The minimum over the sets of each coverage; ``combined`` is the mean of the lower and the upper minimum.
    """
    y, lower, upper = read_intervals(y, lower, upper)
    X = read_matrix(X, "X", len(y))
    for name, number in (("n_sets", n_sets), ("n_neighbors", n_neighbors)):
        check(name, number, is_count(number) and number >= 1, "an integer >= 1")
    Z = _standardize(X, X if X_learn is None else read_matrix(X_learn, "X_learn"))
    sets = _neighbor_sets(Z, min(n_sets, len(y)), min(n_neighbors, len(y)), random_state)
    above, below = (y >= lower)[sets], (y <= upper)[sets]
    low, up = float(above.mean(axis=1).min()), float(below.mean(axis=1).min())
    return SidedMeasure(float((above & below).mean(axis=1).min()), low, up, (low + up) / 2)


def rmse_to_oracle(lower: ArrayLike, upper: ArrayLike, oracle_lower: ArrayLike, oracle_upper: ArrayLike) -> float:
    """``sqrt(mean_i[(l - l*)^2 + (u - u*)^2] / 2)``, the distance to the conditional quantiles.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        Intervals; an infinite end makes the distance infinite.
    oracle_lower, oracle_upper : array-like of shape (n,)
        Conditional quantiles at ``alpha/2`` and ``1 - alpha/2``, finite.
    """
    lower, upper = read_bounds(lower, upper)
    best_lower = read_vector(oracle_lower, "oracle_lower", len(lower))
    best_upper = read_vector(oracle_upper, "oracle_upper", len(lower))
    check_size("oracle_lower", best_lower)
    check_size("oracle_upper", best_upper)
    squares = np.square(lower - best_lower) + np.square(upper - best_upper)
    return float(np.sqrt(squares.mean() / 2))


def _standardize(X: Array, X_learn: Array) -> Array:
    if X.shape[1] != X_learn.shape[1]:
        raise ValueError(f"X_learn has {X_learn.shape[1]} features: expected {X.shape[1]}, as many as X")
    scale = X_learn.std(axis=0)
    with np.errstate(over="ignore"):  # of rows far from those of a tiny scale
        Z: Array = (X - X_learn.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return Z.clip(-LARGEST, LARGEST)


def _neighbor_sets(Z: Array, n_sets: int, n_neighbors: int, random_state: RandomState) -> IntArray:
    """Rows of each set, of shape (n_sets, n_neighbors)."""
    rng = random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)
    centres = rng.choice(len(Z), n_sets, replace=False)
    _, sets = cKDTree(Z).query(Z[centres], k=np.arange(1, n_neighbors + 1))
    return np.asarray(sets, dtype=np.intp)
