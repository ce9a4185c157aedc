"""Confidence intervals of paired differences over repeated splits of one data set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student_t


class MeanInterval(NamedTuple):
    """A mean and its confidence interval."""

    mean: float
    lower: float
    upper: float


def corrected_interval(differences: ArrayLike, test_ratio: float, confidence_level: float = 0.95) -> MeanInterval:
    """Corrected resampled t interval of Nadeau and Bengio (Machine Learning 52, 2003).

    ``mean +- t sqrt((1/J + test_ratio) s^2)`` with the variance ``s^2`` of the J differences and the quantile of
    Student's t with J - 1 degrees of freedom. Repeated splits share rows, so their results are correlated and the
    usual ``s^2/J`` is too small; the correction takes the correlation to be ``n_test/n``, the share of common test
    rows, which adds ``n_test/(n - n_test)`` to 1/J.

    Parameters
    ----------
    differences : array-like of shape (J,)
        One difference per split.
    test_ratio : float
        Test rows over all other rows; 0 for independent repetitions, which gives the usual interval.
    confidence_level : float
        In (0, 1).

    Returns
    -------
    MeanInterval
        With NaN ends for J < 2, or if a difference is not finite.
    """
    d = np.asarray(differences, dtype=float)
    if d.ndim != 1:
        raise ValueError(f"differences has shape {d.shape}: expected one dimension")
    if not test_ratio >= 0:
        raise ValueError(f"test_ratio={test_ratio!r}: expected a number >= 0")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level={confidence_level!r}: expected a number in (0, 1)")
    if not len(d):
        return MeanInterval(np.nan, np.nan, np.nan)
    with np.errstate(invalid="ignore"):
        mean = float(d.mean())
    if len(d) < 2 or not np.isfinite(d).all():
        return MeanInterval(mean, np.nan, np.nan)
    quantile = student_t.ppf((1 + confidence_level) / 2, len(d) - 1)
    half = float(quantile * np.sqrt((1 / len(d) + test_ratio) * d.var(ddof=1)))
    return MeanInterval(mean, mean - half, mean + half)
