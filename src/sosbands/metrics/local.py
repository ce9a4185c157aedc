"""The distance to bands that know the law at each place, and what chance leaves of a coverage.

`combined` numbers put the lower and the upper ones side by side and average; the average over repetitions is then the
one of all lower and upper numbers pooled. Ranges are of test sets around a level, or of shares that were counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtri

from sosbands._arguments import check_size, read_level
from sosbands._types import Array
from sosbands.metrics.intervals import SidedMeasure, read_bounds, read_matrix, read_vector

SAMPLING = 0.95  # of ranges and intervals


def coverage_gaps(
    lower: ArrayLike, upper: ArrayLike, Y_conditional: ArrayLike, confidence_level: float
) -> SidedMeasure:
    """Absolute coverage gaps (ACG) from samples of the conditional law at each point.

    ``ACG = mean_i |p(X_i) - (1-alpha)|`` with ``p(X_i)`` the share of the samples at ``X_i`` inside the interval; the
    lower and the upper version compare the shares of ``y >= lower`` and of ``y <= upper`` with ``1 - alpha/2``.

    ``combined`` is ``ACG^c``, the mean over the lower and upper gaps of all points.

    Parameters
    ----------
    lower, upper : array-like of shape (n_x,)
        Intervals at the points.
    Y_conditional : array-like of shape (n_x, n_y)
        Row i: targets drawn at point i.
    confidence_level : float
        ``1 - alpha``, in (0, 1).
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


def coverage_range(levels: Array, n: int, n_calibration: int | None) -> tuple[Array, Array]:
    """Ends of the central 95 % (at least) of the coverage of n test rows, at each level."""
    tails, ranges = np.array([(1 - SAMPLING) / 2, (1 + SAMPLING) / 2]), []
    for level in levels:
        k = 0 if n_calibration is None else _rank(level, n_calibration)
        if n_calibration is None:
            hits = stats.binom.ppf(tails, n, level)
        elif k > n_calibration:  # no finite interval has the level: all are infinite
            hits = np.full(len(tails), float(n))
        else:
            cumulated = np.cumsum(stats.betabinom.pmf(np.arange(n + 1), n, k, n_calibration + 1 - k))
            hits = np.minimum(np.searchsorted(cumulated, tails), n).astype(float)
        ranges.append(hits / n)
    low, high = np.array(ranges).T
    return low, high


def long_run_coverage(level: float, n_calibration: int) -> tuple[float, float]:
    """Ends of the central 95 % of the coverage of all rows to come, a beta law; 1 and 1 if intervals are infinite.

    Exact without ties and for exchangeable rows.
    """
    k = _rank(level, n_calibration)
    if k > n_calibration:
        return 1.0, 1.0
    low, high = stats.beta.ppf([(1 - SAMPLING) / 2, (1 + SAMPLING) / 2], k, n_calibration + 1 - k).tolist()
    return low, high


def share_range(hits: ArrayLike, n: ArrayLike) -> Array:
    """Wilson's 95 % interval of the share ``hits / n``, both ends along the last axis."""
    hits, n = np.asarray(hits, dtype=float), np.asarray(n, dtype=float)
    z = float(ndtri((1 + SAMPLING) / 2))
    p = hits / n
    middle = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    ends: Array = np.stack([middle - half, middle + half], axis=-1) / (1 + z**2 / n)[..., None]
    return np.clip(ends, 0.0, 1.0)


def _rank(level: float, m: int) -> int:
    """Of the quantile among m scores; the rounding of 0.9 * 10 must not cost a rank."""
    return int(np.ceil(round(level * (m + 1), 9)))
