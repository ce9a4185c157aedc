"""What exact theory says of coverages over many calibrations, as tests with a stated chance of a false alarm.

With m calibration scores without ties, and the quantile the k-th smallest of them, the number of B new rows that are
covered follows the beta-binomial law with parameters B, k and m + 1 - k, independently for every calibration: k/(m + 1)
of them on average. Ties make it stochastically larger. No approximation enters below: the sum over calibrations has the
convolution of these laws, their empirical distribution obeys the inequality of Dvoretzky, Kiefer, Wolfowitz and
Massart, and where only a mean is promised the bound is that of Chernoff and Hoeffding.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.stats import betabinom

GUARD = Fraction(1, 10**9)  # as documented: so little above a whole number counts as that number


def rank_promised(m: int, level: float) -> int:
    """``ceil(level (m + 1) - 1e-9)``, in exact arithmetic."""
    return max(1, math.ceil(Fraction(level) * (m + 1) - GUARD))


def assert_exact(counts: np.ndarray, new: int, m: int, k: int, alarm: float, label: str, *, ties: bool = False) -> None:
    """Numbers of covered rows, one per calibration, follow the law; with ties they are not smaller.

    Parameters
    ----------
    counts : array of int of shape (calibrations,)
        Covered rows among `new` ones.
    new, m, k : int
        New rows for each calibration, calibration scores, rank of the quantile.
    alarm : float
        Chance that counts of this law are rejected, at most.
    label : str
        What is tested, for the message.
    ties : bool
        Whether scores may be equal.
    """
    share = np.mean(counts) / new
    if k > m:
        assert (counts == new).all(), f"{label}: coverage {share:.4f} where {m} scores allow infinite intervals only"
        return
    law = betabinom(new, k, m + 1 - k).pmf(np.arange(new + 1))
    sums = np.maximum(power_of_law(law, len(counts)), 0.0)
    total, each = int(np.sum(counts)), alarm / (2 if ties else 3)
    words = f"{label}: coverage {share:.4f} of {len(counts)} calibrations with m={m}, expected {k / (m + 1):.4f}"
    assert sums[: total + 1].sum() > each, f"{words} or more: too low"
    distance = np.cumsum(np.bincount(counts, minlength=new + 1)) / len(counts) - np.cumsum(law)
    slack = math.sqrt(math.log(2 / each) / (2 * len(counts)))
    assert distance.max() <= slack, f"{words}: low coverages too often, by {distance.max():.3f} (allowed {slack:.3f})"
    if not ties:
        assert sums[total:].sum() > each, f"{words}: too high"
        assert -distance.min() <= slack, f"{words}: high coverages too often, by {-distance.min():.3f}"


def power_of_law(law: np.ndarray, times: int) -> np.ndarray:
    """The law of the sum of so many independent numbers, right to about 1e-15."""
    length = times * (len(law) - 1) + 1
    size = 2 ** math.ceil(math.log2(length))
    return np.fft.irfft(np.fft.rfft(law, size) ** times, size)[:length]


def assert_mean_at_least(shares: np.ndarray, promised: float, alarm: float, label: str) -> None:
    """Independent shares in [0, 1] have at least the mean that is promised: ``P(mean <= x) <= exp(-R kl(x, p))``."""
    mean = float(np.mean(shares))
    if mean >= promised:
        return
    chance = math.exp(-len(shares) * _kl(mean, promised))
    words = f"{label}: coverage {mean:.4f} of {len(shares)} calibrations, expected {promised:.4f} or more"
    assert chance > alarm, f"{words}: too low"


def _kl(x: float, p: float) -> float:
    """Kullback-Leibler divergence of two coins, x < p <= 1."""
    if p == 1:
        return math.inf
    below = x * math.log(x / p) if x > 0 else 0.0
    return below + (1 - x) * math.log((1 - x) / (1 - p))
