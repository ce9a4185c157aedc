"""Which miscoverage to ask for next, after every miss and every hit.

`FixedRate` is adaptive conformal inference (Gibbs, Candes 2021), `ManyRates` its parameter-free form (Gibbs, Candes
2024), which runs one of them for each rate and weighs these by the losses that they had.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sosbands._types import Array
from sosbands.online.ranked import is_within

RATES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)


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
    """One alpha for each rate, and as alpha their mean by weights that follow their losses.

    With ``beta_t = 1 - n_below/(m + 1)``, the largest alpha (as a supremum) whose quantile holds the score, the loss of
    an alpha is ``l = target (beta_t - alpha) - min(0, beta_t - alpha)``, and

        w <- (1 - sigma) w exp(-eta l) + sigma (mean of w exp(-eta l)),

    with ``sigma = 1/(2 I)``, ``eta = sqrt(3/I) sqrt((log(I K) + 2)/((1 - a)^2 a^3 + a^2 (1 - a)^3))`` for K rates, the
    target a and the memory I, a number of rows (Gibbs, Candes 2024, DtACI with the mean in place of a random choice).
    """

    def __init__(self, target: float, rates: tuple[float, ...] = RATES, memory: int = 500) -> None:
        self.target, self.rates = target, np.asarray(rates, dtype=float)
        self.alphas: Array = np.full(len(rates), target)
        self.weights: Array = np.full(len(rates), 1 / len(rates))
        scale = (1 - target) ** 2 * target**3 + target**2 * (1 - target) ** 3
        self.eta = float(np.sqrt(3 / memory * (np.log(memory * len(rates)) + 2) / scale))
        self.sigma = 1 / (2 * memory)

    @property
    def alpha(self) -> float:
        """The weighted mean."""
        return float(self.weights @ self.alphas)

    def step(self, n_below: int, m: int) -> None:
        """One row."""
        gap = 1 - n_below / (m + 1) - self.alphas
        weights = self.weights * np.exp(-self.eta * (self.target * gap - np.minimum(0.0, gap)))
        total = weights.sum()
        self.weights = (1 - self.sigma) * weights / total + self.sigma / len(weights)
        self.alphas = self.alphas + self.rates * (self.target - ~is_within(self.alphas, n_below, m))
