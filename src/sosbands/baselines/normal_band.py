"""Bands of normal predictive distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from sosbands._types import Array
from sosbands.baselines.base import Baseline
from sosbands.conformal import Band
from sosbands.regressors.rows import Rows


def normal_band(mean: Array, deviation: Array, conformal_score: str, level: float) -> Band:
    """Uncalibrated band of ``N(mean, deviation^2)``.

    Parameters
    ----------
    mean, deviation : arrays of shape (n,)
        Mean and standard deviation of a new observation.
    conformal_score : {"additive", "normalized"}
        Additive: ``mean -+ z deviation`` with z the normal quantile of `level`, and calibration adds a constant (the
        score of CQR). Normalized: calibration finds the multiple of the deviation (the score ``|y - mean|/deviation``).
    level : float
        Confidence level of the band before calibration.
    """
    if conformal_score == "normalized":
        return Band(mean, mean, deviation)
    z = float(norm.isf((1 - level) / 2))
    return Band(mean - z * deviation, mean + z * deviation)


class NormalBaseline(Baseline):
    """Base of models whose prediction is a normal distribution.

    A subclass defines ``_learn_process(rows, y)`` and ``_predict_normal(rows)``, mean and standard deviation. How the
    band is made is fixed in `fit`, so that no later change of a parameter can part it from its calibration.
    """

    conformal_score: Any
    conformal_score_: str
    band_level_: float

    def _learn_process(self, rows: Rows, y: Array) -> None:
        raise NotImplementedError

    def _predict_normal(self, rows: Rows) -> tuple[Array, Array]:
        raise NotImplementedError

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState) -> None:  # noqa: ARG002
        self.conformal_score_ = str(self.conformal_score)
        self.band_level_ = float(self.confidence_level)
        self._learn_process(rows, y)

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        mean, deviation = self._predict_normal(rows)
        return mean, normal_band(mean, deviation, self.conformal_score_, self.band_level_)
