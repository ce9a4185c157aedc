"""Which miscoverage to ask for next, after every miss and every hit.

`FixedRate` is adaptive conformal inference (Gibbs, Candes 2021). `ManyRates` runs one of them for each rate, weighs
these by the losses that they had (Gibbs, Candes 2024), and corrects their mean by the misses of its own intervals.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sosbands._types import Array
from sosbands.online.ranked import is_within

RATES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
CORRECTION = 0.002  # rate of the offset of `ManyRates`: larger ones prove more, and make more intervals infinite


class Levels(Protocol):
    """What follows a stream of scores by their ranks."""

    @property
    def alpha(self) -> float:
        """Miscoverage to ask for at the next row; it may lie outside of [0, 1]."""
        ...

    def step(self, n_below: int, m: int) -> None:
        """The next score has been seen: `n_below` of the m scores that its quantile was taken of lie below it."""
        ...


class FixedRate:
    """``alpha_{t+1} = alpha_t + rate (target - err_t)``, where err_t is 1 if the score was beyond its quantile.

    As no quantile is missed at alpha up to 0, and every one from 1 on, alpha stays within ``[-rate, 1 + rate]``, so
    that after T rows from alpha_1 on

        |mean of err - target| <= (max(alpha_1, 1 - alpha_1) + rate) / (T rate),

    whatever the scores are (Gibbs, Candes 2021, proposition 4.1).
    """

    def __init__(self, target: float, rate: float) -> None:
        self.target, self.rate = target, rate
        self.alpha = target

    def step(self, n_below: int, m: int) -> None:
        """One row."""
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

        alpha_t = sum_k w_k min(max(alpha_k, 0), 1) + o_t,     o_{t+1} = o_t + c (target - err_t).

    The mean is in [0, 1]. So no row is missed where o_t <= -1 and every one where o_t >= 1, o stays within
    ``[-1 - c, 1 + c]``, and after T rows

        |mean of err - target| = |o_{T+1}| / (T c) <= (1 + c) / (T c),

    whatever the scores and the weights are: the argument of `FixedRate`, for an offset.
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
        """One row."""
        missed = not is_within(self.alpha, n_below, m)
        self.offset += self.correction * (self.target - missed)
        gap = 1 - n_below / (m + 1) - self.alphas
        losses = self.target * gap - np.minimum(0.0, gap)
        weights = self.weights * np.exp(-self.eta * (losses - losses.min()))
        self.weights = (1 - self.sigma) * weights / weights.sum() + self.sigma / len(weights)
        self.alphas = self.alphas + self.rates * (self.target - ~is_within(self.alphas, n_below, m))
