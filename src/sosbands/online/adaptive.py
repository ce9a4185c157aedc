"""Intervals whose level follows the misses: the long-run coverage holds whatever the rows do."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from sosbands._arguments import check, is_count, is_number, read_level
from sosbands._types import Array, BoolArray
from sosbands.conformal import Band, Calibration, IntervalMixin, interval, lower_scores, upper_scores
from sosbands.conformal.asked import Kind, calibration_of, read_kind, read_target
from sosbands.conformal.quantile import ROUNDING_GUARD, conformal_rank


class RankedScores:
    """Scores in the order of time, whose ranks are known at any time; of more than `most` the oldest leave."""

    def __init__(self, scores: Iterable[float], most: int | None = None) -> None:
        self._order: deque[float] = deque((float(each) for each in scores), maxlen=most)
        self._sorted = sorted(self._order)

    def __len__(self) -> int:
        return len(self._sorted)

    def below(self, score: float) -> int:
        """How many are smaller."""
        return bisect_left(self._sorted, score)

    def up_to(self, score: float) -> int:
        """How many are not larger."""
        return bisect_right(self._sorted, score)

    def add(self, score: float) -> None:
        """The newest score; the oldest leaves if there are too many."""
        if len(self._order) == self._order.maxlen:
            del self._sorted[bisect_left(self._sorted, self._order[0])]
        self._order.append(score)
        insort(self._sorted, score)

    def quantile(self, alpha: float) -> float:
        """The conformal quantile at level ``1 - alpha``: infinite for alpha up to 0, minus infinity from 1 on."""
        if alpha >= 1:
            return -np.inf
        k = conformal_rank(len(self), 1 - alpha)
        return self._sorted[k - 1] if k <= len(self) else np.inf


def is_within(alpha: Any, n_below: int, m: int) -> Any:
    """Whether a score that `n_below` of m others lie below is at most their conformal quantile at ``1 - alpha``.

    The quantile is the k-th smallest, ``k = ceil((1 - alpha)(m + 1))``, and is reached if ``k > n_below``; no score is
    for alpha from 1 on. Takes arrays of alpha.
    """
    reached = np.maximum((1 - np.asarray(alpha)) * (m + 1) - ROUNDING_GUARD, 0.5) > n_below
    return reached & (np.asarray(alpha) < 1)


def followed_calibration(model: Any, who: str) -> Calibration:
    """The calibration of a model that can be followed row by row, or an error that says why it cannot."""
    if not isinstance(model, IntervalMixin):
        raise ValueError(f"model={model!r}: expected a fitted interval regressor, such as SoSBandRegressor")
    calibration: Calibration = calibration_of(model)
    read_kind(model.calibration)
    if calibration.copies:
        raise ValueError(f"{who} of a model fitted with calibration_size='cross': expected one with a band of its own")
    for name, given in (("groups", calibration.groups), ("likelihood_ratio", calibration.weights)):
        if given is not None:
            raise ValueError(f"{who} of a model that was calibrated with {name}: expected one calibrated without")
    return calibration


def columns_of(scored: Calibration, kind: Kind) -> list[Array]:
    """The scores that intervals of this kind depend on: the larger of both sides, or one column for each."""
    scores = scored.scores(kind)
    return [scores] if scores.ndim == 1 else [scores[:, 0], scores[:, 1]]


RATES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
CORRECTION = 0.002  # rate of the offset of `ManyRates`: larger ones prove more, and make more intervals infinite


class FixedRate:
    """``alpha_{t+1} = alpha_t + rate (target - err_t)``, where err_t is 1 if the score was beyond its quantile.

    No quantile is missed at alpha up to 0, and every one from 1 on, so alpha stays within ``[-rate, 1 + rate]``,
    whatever the scores are: the bound of Gibbs, Candes 2021, proposition 4.1.
    """

    def __init__(self, target: float, rate: float) -> None:
        self.target, self.rate = target, rate
        self.alpha = target

    def step(self, n_below: int, m: int) -> None:
        """The next score has been seen: `n_below` of the m scores that its quantile was taken of lie below it."""
        missed = not is_within(self.alpha, n_below, m)
        self.alpha += self.rate * (self.target - missed)


class ManyRates:
    """One alpha for each rate; asked for is their mean by weights that follow their losses, plus an offset.

    With ``beta_t = 1 - n_below/(m + 1)``, the largest alpha (as a supremum) whose quantile holds the score, the loss of
    an alpha is ``l = target (beta_t - alpha) - min(0, beta_t - alpha)``, and

        w <- (1 - sigma) w exp(-eta l) + sigma (mean of w exp(-eta l)),

    with ``sigma = 1/(2 I)``, ``eta = sqrt(3/I) sqrt((log(I K) + 2)/((1 - a)^2 a^3 + a^2 (1 - a)^3))`` for K rates, the
    target a and the memory I, a number of rows (Gibbs, Candes 2024, DtACI with the mean in place of a random choice).

    Each rate knows its own misses, but nothing those of the mean: where all scores grow, every rate misses its share of
    rows and the mean none. So the offset o, 0 at first, follows the misses err_t of the alpha that is asked for,

        alpha_t = sum_k w_k min(max(alpha_k, 0), 1) + o_t,     o_{t+1} = o_t + c (target - err_t),

    within ``[-1 - c, 1 + c]``, as the mean is in [0, 1]: the argument of `FixedRate`.
    """

    def __init__(
        self, target: float, rates: tuple[float, ...] = RATES, memory: int = 500, correction: float = CORRECTION
    ) -> None:
        self.target, self.rates = target, np.asarray(rates, dtype=float)
        self.correction, self.offset = correction, 0.0
        self.alphas: Array = np.full(len(rates), target)
        self.weights: Array = np.full(len(rates), 1 / len(rates))
        scale = (1 - target) ** 2 * target**3 + target**2 * (1 - target) ** 3
        self.eta = float(np.sqrt(3 / memory * (np.log(memory * len(rates)) + 2) / scale))
        self.sigma = 1 / (2 * memory)

    @property
    def alpha(self) -> float:
        """The weighted mean and the offset."""
        mean = float(self.weights @ np.minimum(np.maximum(self.alphas, 0.0), 1.0))
        return min(mean, 1.0) + self.offset

    def step(self, n_below: int, m: int) -> None:
        """The next score has been seen: `n_below` of the m scores that its quantile was taken of lie below it."""
        missed = not is_within(self.alpha, n_below, m)
        self.offset += self.correction * (self.target - missed)
        gap = 1 - n_below / (m + 1) - self.alphas
        losses = self.target * gap - np.minimum(0.0, gap)
        weights = self.weights * np.exp(-self.eta * (losses - losses.min()))
        self.weights = (1 - self.sigma) * weights / weights.sum() + self.sigma / len(weights)
        self.alphas = self.alphas + self.rates * (self.target - ~is_within(self.alphas, n_below, m))


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
        self.model, self.confidence_level, self._kind = model, level, read_kind(model.calibration)
        self.rate, self.window, self.memory = rate, window, memory
        sides = columns_of(calibration, self._kind)
        target = (1 - level) / len(sides)
        self._scores = [RankedScores(side.tolist(), None if window is None else int(window)) for side in sides]
        self._levels = [
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
        return interval(self.model.told(X).band, q[0], q[-1])[0]

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
        band = self.model.told(X).band
        return self.follow_band(band, read_target(y, len(band)))

    def follow_band(self, band: Band, y: Array) -> Followed:
        """The same for rows whose band is known."""
        columns = columns_of(Calibration(lower_scores(band, y), upper_scores(band, y)), self._kind)
        shape = len(y), len(columns)
        alphas, quantiles, within = np.empty(shape), np.empty(shape), np.empty(shape, dtype=bool)
        for side, (values, scores, levels) in enumerate(zip(columns, self._scores, self._levels, strict=True)):
            for t, score in enumerate(values.tolist()):
                alphas[t, side] = alpha = levels.alpha
                quantiles[t, side] = scores.quantile(alpha)
                below, m = scores.below(score), len(scores)
                within[t, side] = is_within(alpha, below, m)
                levels.step(below, m)
                if self.window is not None:
                    scores.add(score)
        inside = np.asarray(within.all(axis=1))
        self.n_rows_ += len(inside)
        self.n_missed_ += int(np.count_nonzero(~inside))
        ends, _ = interval(band, quantiles[:, 0], quantiles[:, -1])
        return Followed(ends, inside, alphas[:, 0] if len(columns) == 1 else alphas)
