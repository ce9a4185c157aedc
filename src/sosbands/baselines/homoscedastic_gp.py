"""The band of a Gaussian process with constant noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.baselines.normal_band import NormalBaseline
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.regressors.rows import Rows


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

    estimator_: GaussianProcess
    n_iter_: int

    def __init__(
        self,
        *,
        conformal_score: str = "additive",
        n_starts: int = 1,
        max_iter: int = 200,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
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

    def _learn_process(self, rows: Rows, y: Array) -> None:
        process = GaussianProcess(n_starts=self.n_starts, max_iter=self.max_iter)
        self.estimator_ = process.fit(rows.for_kernel, y)
        self.n_iter_ = process.n_iter_
        self._say(f"Gaussian process fitted to {len(y)} rows in {process.n_iter_} iterations")

    def _predict_normal(self, rows: Rows) -> tuple[Array, Array]:
        mean, deviation = self.estimator_.predict(rows.for_kernel, return_std=True)
        return mean, deviation

    def _center(self, rows: Rows) -> Array:
        return np.asarray(self.estimator_.predict(rows.for_kernel))
