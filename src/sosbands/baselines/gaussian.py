"""Bands of normal predictive distributions, and the Gaussian process with constant noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from sosbands._progress import say
from sosbands._types import Array
from sosbands.conformal import Band, Told
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.regressors.checks import one_of
from sosbands.regressors.split import SplitRegressor
from sosbands.tables.rows import LearningData, Rows


def normal_band(mean: Array, deviation: Array, conformal_score: str, level: float) -> Band:
    """Uncalibrated band of ``N(mean, deviation^2)``, both of shape (n,), as `HomoscedasticGP` says."""
    if conformal_score == "normalized":
        return Band(mean, mean, deviation)
    z = float(norm.isf((1 - level) / 2))
    return Band(mean - z * deviation, mean + z * deviation)


class NormalBaseline(SplitRegressor):
    """Base of models whose prediction is a normal distribution.

    A subclass defines ``_learn_process(points, data)`` and ``_predict_normal(points)``, mean and standard deviation.
    How the band is made is fixed in `fit`, so that no later change of a parameter can part it from its calibration.
    """

    _checks = {"conformal_score": one_of("conformal_score", ("additive", "normalized"))}
    conformal_score: Any

    def _learn_process(self, points: Array, data: LearningData) -> None:
        raise NotImplementedError

    def _predict_normal(self, points: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:  # noqa: ARG002
        self.conformal_score_ = str(self.conformal_score)
        self.band_level_ = float(self.confidence_level)
        self.reader_, _ = self.reader_.as_numbers(data)
        self._learn_process(self.reader_.points(data.rows), data)

    def _tell_block(self, rows: Rows) -> Told:
        mean, deviation = self._predict_normal(self.reader_.points(rows))
        return Told(normal_band(mean, deviation, self.conformal_score_, self.band_level_), mean)


class HomoscedasticGP(NormalBaseline):
    """Calibrated intervals of a Gaussian process with an anisotropic Matern-5/2 kernel and constant noise.

    Parameters
    ----------
    conformal_score : {"additive", "normalized"}
        What calibration does to the predictive distribution ``N(m, s^2)``: add a constant to the ends ``m -+ z s`` of
        its interval at `confidence_level` (the score of CQR and of `SoSBandRegressor`), or find the multiple of s
        (the score ``|y - m|/s``).
    n_starts, max_iter : int
        Starts, and iterations from each, of the search for the kernel's parameters.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `SplitCP`; only the split is random. With the additive score the band before calibration is that of the
        constructor's level, whichever is asked of `predict_interval`.

    Attributes
    ----------
    estimator_ : GaussianProcess
    n_iter_ : int
        Iterations of its search from the best start.
    conformal_score_, band_level_ : str, float
        Score in use, and level of the additive band before calibration.
    """

    def __init__(
        self,
        *,
        conformal_score: str = "additive",
        n_starts: int = 1,
        max_iter: int = 200,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.conformal_score = conformal_score
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def _learn_process(self, points: Array, data: LearningData) -> None:
        process = GaussianProcess(n_starts=self.n_starts, max_iter=self.max_iter)
        self.estimator_ = process.fit(points, data.y, data.weights)
        self.n_iter_ = process.n_iter_
        say(f"Gaussian process fitted to {len(data)} rows in {process.n_iter_} iterations")

    def _predict_normal(self, points: Array) -> tuple[Array, Array]:
        mean, deviation = self.estimator_.predict(points, return_std=True)
        return mean, deviation

    def _center(self, rows: Rows) -> Array:
        return np.asarray(self.estimator_.predict(self.reader_.points(rows)))
