"""Intervals whose level follows the misses: the long-run coverage holds whatever the rows do."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from sosbands._arguments import check, is_count, is_number, read_level
from sosbands._types import Array, BoolArray
from sosbands.conformal import Band, interval, lower_scores, symmetric_scores, upper_scores
from sosbands.conformal.arguments import read_target
from sosbands.online.levels import FixedRate, Levels, ManyRates
from sosbands.online.ranked import RankedScores, followed_calibration, is_within


class Followed(NamedTuple):
    """What each of n rows was given before its target was known.

    Attributes
    ----------
    ends : ndarray of shape (n, 2)
        The intervals; infinite, or a single point, where the level asked for is 1 or more, or 0 or less.
    inside : ndarray of bool of shape (n,)
        Whether the target is in its interval; none is in an empty one, whose midpoint is given.
    miscoverage : ndarray of shape (n,), or (n, 2) for asymmetric calibration
        One minus the level that was asked for, of both ends together or of each; it may lie outside of [0, 1].
    """

    ends: Array
    inside: BoolArray
    miscoverage: Array


class AdaptiveIntervals:
    """Intervals around a fitted model for rows that come in order, each of whose targets is seen before the next row.

    Adaptive conformal inference: after a miss the level rises a little, after a hit it falls, so that the share of
    misses tends to ``1 - confidence_level`` even if the rows drift. Bands and point model stay as they are; the scores
    of the rows that were seen take the place of the oldest calibration scores.

    Parameters
    ----------
    model : interval regressor
        Fitted and calibrated, without groups and likelihood ratios, not cross-calibrated; with asymmetric calibration
        each end has a level and a target of its own, alpha/2. It is not changed. A `decay` of its calibration is not
        used.
    confidence_level : float, optional
        In (0, 1); by default that of the model.
    rate : "auto" or float > 0
        By how much a miss moves the level. With a number, after T rows the share of misses differs from its target
        alpha by at most ``(max(alpha, 1 - alpha) + rate)/(T rate)``, for any rows at all; large rates follow faster and
        make the widths restless, more often also infinite. "auto" weighs eight rates from 0.001 to 0.128 by how well
        each would have done lately, and corrects their mean by its own misses, at the rate c = 0.002: the bound is
        ``(1 + c)/(T c)``. That it follows faster than one rate is measured, not proven.

        With asymmetric calibration each end has such a bound of its own, with the target a = alpha/2: for a number
        ``(max(a, 1 - a) + rate)/(T rate)``. The misses of both ends, added up, differ from alpha by at most twice that.
        A row beyond both ends, which needs ends that have crossed, counts once in `n_missed_`: the share of missed rows
        exceeds alpha by at most as much, and may fall short of it by the share of such rows more.
    window : int or None
        How many of the last scores the quantiles are of; None leaves the calibration scores as they are.
    memory : int
        For ``rate="auto"``: about how many rows the weights of the rates look back.

    Attributes
    ----------
    miscoverage_ : float, or pair of float for asymmetric calibration
        One minus the level of the next row.
    n_rows_, n_missed_ : int
        Rows seen, and those of them that were outside of their interval.
    """

    def __init__(
        self,
        model: Any,
        confidence_level: float | None = None,
        *,
        rate: float | str = "auto",
        window: int | None = 1000,
        memory: int = 500,
    ) -> None:
        calibration = followed_calibration(model, type(self).__name__)
        level = read_level(model.confidence_level if confidence_level is None else confidence_level)
        automatic = isinstance(rate, str) and rate == "auto"
        fine = automatic or (is_number(rate) and 0 < float(rate) < np.inf)
        check("rate", rate, fine, "'auto' or a number > 0")
        check("window", window, window is None or (is_count(window) and window >= 1), "None or a number of rows >= 1")
        check("memory", memory, is_count(memory) and memory >= 1, "a number of rows >= 1")
        self.model, self.confidence_level = model, level
        self.rate, self.window, self.memory = rate, window, memory
        scores = calibration.scores(model.calibration)
        sides = [scores] if scores.ndim == 1 else [scores[:, 0], scores[:, 1]]
        target = (1 - level) / len(sides)
        self._scores = [RankedScores(side.tolist(), None if window is None else int(window)) for side in sides]
        self._levels: list[Levels] = [
            ManyRates(target, memory=int(memory)) if automatic else FixedRate(target, float(rate)) for _ in sides
        ]
        self.n_rows_ = self.n_missed_ = 0

    @property
    def miscoverage_(self) -> float | tuple[float, ...]:
        """One minus the level of the next row, or that of each end."""
        found = tuple(each.alpha for each in self._levels)
        return found[0] if len(found) == 1 else found

    @property
    def coverage_(self) -> float:
        """Share of the rows seen that were inside of their interval; NaN before the first."""
        return 1 - self.n_missed_ / self.n_rows_ if self.n_rows_ else float("nan")

    def predict_interval(self, X: Any) -> Array:
        """Intervals at the present level, shape (n, 2); what is proven is about the next row only.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows.
        """
        q = [scores.quantile(each.alpha) for scores, each in zip(self._scores, self._levels, strict=True)]
        return interval(self.model._band(X), q[0], q[-1])[0]

    def update(self, X: Any, y: Any) -> Self:
        """Learn from rows whose targets are known now, in their order.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows, one or many.
        y : array of shape (n,)
            Their targets.
        """
        self.follow(X, y)
        return self

    def follow(self, X: Any, y: Any) -> Followed:
        """The intervals that rows would have been given one by one, each before its target was known; then `update`.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows in their order.
        y : array of shape (n,)
            Their targets.
        """
        band = self.model._band(X)
        return self.follow_band(band, read_target(y, len(band)))

    def follow_band(self, band: Band, y: Array) -> Followed:
        """The same for rows whose band is known."""
        columns = (
            [symmetric_scores(band, y)] if len(self._scores) == 1 else [lower_scores(band, y), upper_scores(band, y)]
        )
        found = [self._follow_side(*side) for side in zip(columns, self._scores, self._levels, strict=True)]
        alphas, quantiles, within = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        inside = np.asarray(within.all(axis=1))
        self.n_rows_ += len(inside)
        self.n_missed_ += int(np.count_nonzero(~inside))
        ends, _ = interval(band, quantiles[:, 0], quantiles[:, -1])
        return Followed(ends, inside, alphas[:, 0] if len(found) == 1 else alphas)

    def _follow_side(self, values: Array, scores: RankedScores, levels: Levels) -> tuple[Array, Array, BoolArray]:
        """Miscoverage asked for, quantile, and whether the score was within it, of each row."""
        n = len(values)
        alphas, quantiles, within = np.empty(n), np.empty(n), np.empty(n, dtype=bool)
        for t, score in enumerate(values.tolist()):
            alphas[t] = alpha = levels.alpha
            quantiles[t] = scores.quantile(alpha)
            below, m = scores.below(score), len(scores)
            within[t] = is_within(alpha, below, m)
            levels.step(below, m)
            if self.window is not None:
                scores.add(score)
        return alphas, quantiles, within
