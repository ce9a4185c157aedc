"""The interval score, for people and for scikit-learn's model selection.

R2 sees the point predictions only; the interval score is proper for the two quantiles that end an interval, and so
tells better bands from worse ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sosbands._arguments import read_level
from sosbands.metrics.checks import mean_over_rows, read_intervals


def interval_score(
    y: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    confidence_level: float,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean interval (Winkler) score, smaller is better.

    ``mean_i [ (u - l) + (2/alpha) (l - y)_+ + (2/alpha) (y - u)_+ ]`` with ``alpha = 1 - confidence_level``.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        Targets and intervals; an infinite interval makes the score infinite.
    confidence_level : float
        In (0, 1).
    sample_weight : array-like of shape (n,), optional
        How much each row counts.
    """
    y, lower, upper = read_intervals(y, lower, upper)
    rate = 2 / (1 - read_level(confidence_level))
    missed = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return mean_over_rows((upper - lower) + rate * missed, sample_weight)


@dataclass(frozen=True)
class IntervalScorer:
    """What `interval_scorer` returns: call it with ``(estimator, X, y)``."""

    confidence_level: float | None = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Negative interval score of the estimator's intervals: greater is better."""
        if not hasattr(estimator, "predict_interval") and hasattr(estimator, "steps"):  # a pipeline: its last step
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            estimator = estimator[-1]
        if not hasattr(estimator, "predict_interval"):
            raise ValueError(f"estimator {type(estimator).__name__} has no predict_interval: expected one that has")
        level = self._level_of(estimator)
        intervals = np.asarray(estimator.predict_interval(X, level))
        if intervals.ndim != 2 or intervals.shape[1] != 2:
            raise ValueError(f"predict_interval gave shape {intervals.shape}: expected (n, 2), lower and upper ends")
        return -interval_score(y, intervals[:, 0], intervals[:, 1], level, sample_weight=sample_weight)

    def _level_of(self, estimator: Any) -> float:
        level = self.confidence_level
        if level is None:
            level = getattr(estimator, "confidence_level", None)
        if level is None:
            raise ValueError(
                f"confidence_level=None and {type(estimator).__name__} has no confidence_level: expected one of the two"
            )
        return read_level(level)


def interval_scorer(confidence_level: float | None = None) -> IntervalScorer:
    """Scorer for ``scoring=`` of `GridSearchCV`, `cross_val_score` and their like.

    Parameters
    ----------
    confidence_level : float, optional
        Level of the intervals that are compared. By default the `confidence_level` of the estimator; give it when the
        search varies that parameter, as scores at different levels cannot be compared.

    Returns
    -------
    IntervalScorer
        ``scorer(estimator, X, y)`` is minus the mean interval score of ``estimator.predict_interval(X, level)``.
        Infinite intervals give -inf, which a search ranks last. Of a pipeline the last step predicts the intervals.
    """
    return IntervalScorer(None if confidence_level is None else read_level(confidence_level))
