"""How often intervals hold what they promise.

Ends belong to the interval, everywhere: ``lower <= y <= upper`` is covered. As the ends do not cross, at most one of
them is missed, so that ``coverage = lower_coverage + upper_coverage - 1``.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from sosbands.metrics.checks import mean_over_rows, read_intervals


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Marginal coverage: the share of rows with ``lower <= y <= upper``.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets.
    lower, upper : array-like of shape (n,)
        Ends of the intervals, ``lower <= upper``; infinite ends cover everything on their side.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    """
    y, lower, upper = read_intervals(y, lower, upper, measured=False)
    return mean_over_rows((lower <= y) & (y <= upper), sample_weight)


def lower_coverage(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rows with ``y >= lower``; `upper` is only checked."""
    y, lower, _ = read_intervals(y, lower, upper, measured=False)
    return mean_over_rows(y >= lower, sample_weight)


def upper_coverage(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rows with ``y <= upper``; `lower` is only checked."""
    y, _, upper = read_intervals(y, lower, upper, measured=False)
    return mean_over_rows(y <= upper, sample_weight)
