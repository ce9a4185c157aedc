"""What chance leaves of a coverage: ranges of test sets around a level, and intervals of shares that were counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtri

from sosbands._types import Array

SAMPLING = 0.95  # of ranges and intervals


def coverage_range(levels: Array, n: int, n_calibration: int | None) -> tuple[Array, Array]:
    """Ends of the central 95 % of the coverage of n test rows, at each level.

    The ends are attained by more than their share at most, so the range holds at least 95 %.
    """
    tails = np.array([(1 - SAMPLING) / 2, (1 + SAMPLING) / 2])
    if n_calibration is None:
        ranges = [stats.binom.ppf(tails, n, level) / n for level in levels]
    else:
        ranges = [_beta_binomial_quantiles(tails, n, level, n_calibration) / n for level in levels]
    low, high = np.array(ranges).T
    return low, high


def long_run_coverage(level: float, n_calibration: int) -> tuple[float, float]:
    """Ends of the central 95 % of the coverage of all rows to come, given the calibration rows: a beta law.

    Exact without ties and for exchangeable rows; (1, 1) if so few rows make every interval infinite.
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


def _beta_binomial_quantiles(tails: Array, n: int, level: float, m: int) -> Array:
    """Quantiles of the number of covered rows; n if no finite interval has the level, so that all are infinite."""
    k = _rank(level, m)
    if k > m:
        return np.full(len(tails), float(n))
    cumulated = np.cumsum(stats.betabinom.pmf(np.arange(n + 1), n, k, m + 1 - k))
    return np.minimum(np.searchsorted(cumulated, tails), n).astype(float)


def _rank(level: float, m: int) -> int:
    """Of the quantile among m scores; the rounding of 0.9 * 10 must not cost a rank."""
    return int(np.ceil(round(level * (m + 1), 9)))
