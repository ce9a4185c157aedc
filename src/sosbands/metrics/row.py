"""All metrics of one set of intervals, as one flat row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sosbands._arguments import read_level
from sosbands.metrics.checks import read_intervals
from sosbands.metrics.coverage import coverage, lower_coverage, upper_coverage
from sosbands.metrics.local import RandomState, worst_set_coverage
from sosbands.metrics.scorer import interval_score
from sosbands.metrics.width import mean_width, median_width, width_residual_correlation, width_residual_hsic


def evaluate_intervals(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    confidence_level: float,
    X: ArrayLike | None = None,
    X_learn: ArrayLike | None = None,
    random_state: RandomState = 0,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Every metric that test rows alone allow.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals. Infinite ends are allowed, NaN is not.
    confidence_level : float
        In (0, 1).
    X : array-like of shape (n, n_features), optional
        Test rows; with them the worst-set coverages are added.
    X_learn : array-like of shape (n_learn, n_features), optional
        Rows whose mean and standard deviation standardise `X`; by default those of `X`.
    random_state : int, Generator, RandomState or None
        The sets of the worst-set coverage.
    sample_weight : array-like of shape (n,), optional
        How much each row counts in coverage, mean width and interval score; the others count rows.

    Returns
    -------
    dict of str to float
        ``coverage``, ``coverage_lower``, ``coverage_upper``, ``mean_width``, ``median_width``, ``interval_score``,
        ``hsic``, ``distance_correlation``, ``n``, ``n_infinite``, ``n_empty`` (zero width), and with `X`
        ``worst_set_coverage``, ``worst_set_coverage_lower``, ``worst_set_coverage_upper``. Never NaN: with infinite
        intervals the mean width and the interval score are infinite, and ``hsic`` and ``distance_correlation`` are
        those of the ``n - n_infinite`` other rows (0 if there are none).
    """
    read_level(confidence_level)
    y, lower, upper = read_intervals(y, lower, upper)
    row = {
        "coverage": coverage(y, lower, upper, sample_weight=sample_weight),
        "coverage_lower": lower_coverage(y, lower, upper, sample_weight=sample_weight),
        "coverage_upper": upper_coverage(y, lower, upper, sample_weight=sample_weight),
        "mean_width": mean_width(lower, upper, sample_weight=sample_weight),
        "median_width": median_width(lower, upper),
        "interval_score": interval_score(y, lower, upper, confidence_level, sample_weight=sample_weight),
        "hsic": width_residual_hsic(y, lower, upper),
        "distance_correlation": width_residual_correlation(y, lower, upper),
        "n": float(len(y)),
        "n_infinite": float(np.count_nonzero(np.isinf(lower) | np.isinf(upper))),
        "n_empty": float(np.count_nonzero(lower == upper)),
    }
    if X is not None:
        worst = worst_set_coverage(y, lower, upper, X, X_learn=X_learn, random_state=random_state)
        row["worst_set_coverage"] = worst.marginal
        row["worst_set_coverage_lower"] = worst.lower
        row["worst_set_coverage_upper"] = worst.upper
    return row
