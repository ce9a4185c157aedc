"""How good whole distributions are: the continuous ranked probability score, and probability integral transforms.

A distribution is told by k values that are equally likely (an ensemble), or by its quantiles at k levels; then each
stands for the levels that are nearest to it. Either way it is discrete, and its score is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from sosbands._arguments import check_size, read_numbers
from sosbands._types import Array
from sosbands.metrics.intervals import mean_over_rows, read_vector


def crps(
    y: ArrayLike, values: ArrayLike, levels: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean continuous ranked probability score, in the unit of y; smaller is better, and 0 the best.

    ``integral of (F(t) - 1{y <= t})^2 dt = sum_j p_j |v_j - y| - (1/2) sum_jk p_j p_k |v_j - v_k|``, which is twice the
    mean pinball loss of all quantiles. Of one value with all of the weight it is the absolute error.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets.
    values : array-like of shape (n, k)
        Equally likely values (`predict_ensemble`), in any order; or the quantiles at `levels`, which do not decrease
        along a row (`predict_quantile`). An infinite value of positive weight makes the score infinite.
    levels : array-like of shape (k,), optional
        Increasing, in (0, 1). The weight of a quantile is the share of all levels in (0, 1) that are nearest to it.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    """
    y, table, p = _read_distribution(y, values, levels)
    return mean_over_rows(_row_scores(y, np.sort(table, axis=1) if levels is None else table, p), sample_weight)


def ensemble_crps(y: Array, values: Array) -> Array:
    """`crps` of each row, of equally likely values in increasing order; nothing is checked."""
    return _row_scores(y, values, np.full(values.shape[1], 1 / values.shape[1]))


def _row_scores(y: Array, order: Array, p: Array) -> Array:
    # sum_jk p_j p_k |v_j - v_k| = 2 sum_j p_j v_j (P_j + P_(j-1) - 1), P the cumulated weights; these factors sum to 0
    away, below = order - y[:, None], np.cumsum(p)
    with np.errstate(invalid="ignore"):
        each = np.abs(away) @ p - away @ (p * (2 * below - p - 1))
    return np.where(np.isinf(order).any(axis=1), np.inf, np.maximum(each, 0.0))


def normal_crps(
    y: ArrayLike, mean: ArrayLike, deviation: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """`crps` of normal distributions: ``s (z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi))`` with ``z = (y - mean)/s``.

    Parameters
    ----------
    y, mean, deviation : array-like of shape (n,)
        Targets, means and standard deviations, these at least 0; where one is 0 the score is the absolute error.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    """
    y = read_vector(y, "y")
    m, s = read_vector(mean, "mean", len(y)), read_vector(deviation, "deviation", len(y))
    if (s < 0).any():
        raise ValueError(f"deviation has the entry {s.min()}: expected numbers >= 0")
    error = y - m
    z = np.divide(error, s, out=np.zeros(len(s)), where=s > 0)
    density = np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)
    spread = s * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    return mean_over_rows(np.where(s > 0, spread, np.abs(error)), sample_weight)


def pit(y: ArrayLike, values: ArrayLike, levels: ArrayLike | None = None) -> Array:
    """Probability integral transforms ``F(y-) + (F(y) - F(y-))/2``: uniform where the distributions are right.

    In [0, 1], shape (n,), of what `crps` takes. Models of this package give those of their whole distribution by
    ``predict_cdf(X, y)``.
    """
    y, table, p = _read_distribution(y, values, levels)
    return np.asarray((table < y[:, None]) @ p + (table == y[:, None]) @ p / 2)


def pit_distance(transforms: ArrayLike) -> float:
    """Largest distance of the shares of transforms up to u from u itself, over all u: Kolmogorov and Smirnov's.

    Chance alone makes it about ``0.87 sqrt(1/n + 1/m)`` on average for n rows and m calibration rows that count alike:
    those it shares count as a second sample.
    """
    u = np.sort(read_vector(transforms, "transforms"))
    if u[0] < 0 or u[-1] > 1:
        raise ValueError(f"transforms from {u[0]} to {u[-1]}: expected numbers in [0, 1]")
    n = len(u)
    return float(max(np.max(np.arange(1, n + 1) / n - u), np.max(u - np.arange(n) / n)))


def _read_distribution(y: ArrayLike, values: ArrayLike, levels: ArrayLike | None) -> tuple[Array, Array, Array]:
    """Targets, values of each row, and the weights of their columns, which sum to 1."""
    y = read_vector(y, "y")
    check_size("y", y)
    table = read_numbers("values", values)
    if table.ndim != 2 or table.shape[1] == 0 or len(table) != len(y):
        raise ValueError(f"values has shape {table.shape}: expected ({len(y)}, k), a row for each target")
    if np.isnan(table).any():
        raise ValueError("values holds NaN: expected numbers")
    check_size("values", table)
    k = table.shape[1]
    if levels is None:
        return y, table, np.full(k, 1 / k)
    u = read_numbers("levels", levels)
    if u.shape != (k,) or not ((u > 0) & (u < 1)).all() or (np.diff(u) <= 0).any():
        raise ValueError(f"levels={levels!r}: expected {k} increasing numbers in (0, 1), one per column of values")
    if (table[:, 1:] < table[:, :-1]).any():
        raise ValueError("values decrease along a row: expected quantiles at increasing levels")
    edges = np.concatenate([[0.0], (u[1:] + u[:-1]) / 2, [1.0]])
    return y, table, np.diff(edges)
