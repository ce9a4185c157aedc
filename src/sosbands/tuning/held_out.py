"""Bands and residuals at held-out rows, and what the criteria make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.conformal import SCORES, Score, conformal_quantile, interval, symmetric_scores
from sosbands.metrics import interval_score
from sosbands.stats import distance_correlation, hsic

SCORE_LEVELS = (0.7, 0.8, 0.9)  # one level alone is too noisy to choose by; the numbers are in docs/tuning.md


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a candidate does on held-out rows.

    Attributes
    ----------
    below, above : ndarray of shape (m,)
        ``f_lo`` and ``f_up`` at each row, learnt from other rows.
    residuals : ndarray of shape (m,)
        ``r``, positive above the prediction.
    score : Score
        What calibration will make of the bands, fitted to the rows that these were learnt from.
    unit : ndarray of shape (m,) or float
        The base scale in which the functions are told; residuals are in units of the target.
    weight : ndarray of shape (m,) or None
        How much each row counts in the interval score.
    """

    below: Array
    above: Array
    residuals: Array
    score: Score = SCORES["added"]
    unit: Array | float = 1.0
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.residuals)

    def take(self, rows: AnyArray) -> HeldOut:
        """Some of the rows, possibly again and again."""
        unit = self.unit[rows] if isinstance(self.unit, np.ndarray) else self.unit
        weight = None if self.weight is None else self.weight[rows]
        some = replace(self, below=self.below[rows], above=self.above[rows], residuals=self.residuals[rows])
        return replace(some, unit=unit, weight=weight)

    @property
    def widths(self) -> Array:
        """``W = s (f_lo + f_up)``."""
        return self.unit * (self.below + self.above)

    @property
    def distances(self) -> Array:
        """``R = |r - s (f_up - f_lo)/2|``, from the middle of the band."""
        return np.abs(self.residuals - self.unit * (self.above - self.below) / 2)


def interval_score_at(held: HeldOut, level: float) -> float:
    """Interval score of the intervals that calibration on the held-out rows themselves makes of their bands."""
    band = held.score.band(np.zeros(len(held)), held.below, held.above, unit=held.unit)
    # seen from the middle of each band, which moves no score, but loses the least digits where it is far from zero
    r, half = held.residuals - (band.upper + band.lower) / 2, (band.upper - band.lower) / 2
    band = replace(band, lower=-half, upper=half)
    S = symmetric_scores(band, r)
    q = conformal_quantile(S, level)
    if not np.isfinite(q):
        q = float(S.max())  # a handful of points: the widest finite band stands in
    ends, _ = interval(band, q, q)
    return interval_score(r, ends[:, 0], ends[:, 1], level, sample_weight=held.weight)


def minus_log_interval_score(held: HeldOut, levels: Sequence[float] = SCORE_LEVELS) -> float:
    """Minus the mean logarithm of the interval score over a few levels.

    The interval score is smallest in the mean for the true conditional quantiles, so that it looks for the bands
    themselves, where HSIC looks for dependence and also rewards wide bands. Logarithms give each level the same say.
    """
    scores = [interval_score_at(held, level) for level in levels]
    return -float(np.mean(np.log(np.maximum(scores, np.finfo(float).tiny))))


CRITERIA: dict[str, Callable[[HeldOut], float]] = {
    "interval-score": minus_log_interval_score,
    "hsic": lambda held: hsic(held.widths, held.distances),
    "dcor": lambda held: distance_correlation(held.widths, held.distances),
}
