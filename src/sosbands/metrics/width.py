"""How wide intervals are, and what width tells about the error.

An infinite interval is as wide as it is: means are infinite then, and the median is if half of the rows are. The two
measures of dependence need numbers, so they leave rows of infinite width out; with no row left they are 0, as for
any constant width. `evaluate_intervals` counts those rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sosbands._types import Array
from sosbands.metrics.checks import mean_over_rows, read_bounds, read_intervals
from sosbands.stats import distance_correlation, hsic


def mean_width(lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean of ``upper - lower``; infinite if one interval is."""
    lower, upper = read_bounds(lower, upper)
    return mean_over_rows(upper - lower, sample_weight)


def median_width(lower: ArrayLike, upper: ArrayLike) -> float:
    """Median of ``upper - lower``; infinite if half of the intervals are."""
    lower, upper = read_bounds(lower, upper)
    width = np.sort(upper - lower)
    middle = len(width) // 2
    return float(width[middle] if len(width) % 2 else (width[middle - 1] + width[middle]) / 2)


def width_residual_hsic(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """HSIC (energy kernel) of the width ``W = upper - lower`` and ``R = |y - (lower + upper)/2|``.

    With ``lower = m - f_lo - q``, ``upper = m + f_up + q`` these are the ``R = |r - (f_up - f_lo)/2|`` and
    ``W = f_up + f_lo`` (plus a constant) of the tuning criterion. Large: wide intervals are where errors are large.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals. Rows of infinite width are left out.

    Returns
    -------
    float
        At least 0, in the squared unit of y; 0 for intervals of constant width.
    """
    return _dependence(hsic, y, lower, upper)


def width_residual_correlation(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Distance correlation, in [0, 1], of the two samples of `width_residual_hsic`."""
    return _dependence(distance_correlation, y, lower, upper)


def _dependence(measure: Callable[[Array, Array], float], y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    y, lower, upper = read_intervals(y, lower, upper)
    finite = np.isfinite(upper - lower)
    if not finite.any():
        return 0.0
    y, lower, upper = y[finite], lower[finite], upper[finite]
    return measure(upper - lower, np.abs(y - (lower / 2 + upper / 2)))
