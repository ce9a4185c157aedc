"""SoSBandRegressor that keeps the problem it solved, so that the page can solve it for other symmetry penalties."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.regressors.rows import without_outliers
from sosbands.regressors.sos_bands import SoSBandRegressor
from sosbands.tuning import TuningReport


@dataclass(frozen=True, eq=False)
class BandProblem:
    """What bands are learnt from.

    Attributes
    ----------
    points, r : ndarray of shape (n, d) and (n,)
        What the kernel sees, and residuals.
    rows : ndarray of int
        Positions of these learning rows in what was given to `fit`.
    options : dict
        Kernel, penalties and their units, as arguments of `learn_band_path`.
    rng : RandomState
        As it was when the tuning began, so that its folds can be drawn again.
    """

    points: Array
    r: Array
    rows: IntArray
    options: dict[str, Any]
    rng: np.random.RandomState


class RecordedBands(SoSBandRegressor):
    """The same estimator; `problem_` is what its bands were learnt from."""

    problem_: BandProblem

    def _learn_bands(self, points: Array, r: Array, rng: np.random.RandomState) -> None:
        self.band_rows_ = self.learning_rows_[without_outliers(r, self.outlier_fraction)]
        super()._learn_bands(points, r, rng)

    def _tune(
        self, points: Array, r: Array, options: dict[str, Any], rng: np.random.RandomState
    ) -> TuningReport | None:
        self.problem_ = BandProblem(points, r, self.band_rows_, options, deepcopy(rng))
        return super()._tune(points, r, options, rng)

    def kernel_points(self, X: Any) -> Array:
        """What the band functions take."""
        return self._numbers(self._read(X, reset=False))

    @property
    def lengthscale_asked(self) -> Any:
        """Lengthscale of the bands as `learn_bands` takes it."""
        return self.lengthscale if self.tuning_ is None else self.tuning_.lengthscale


def recorded(
    estimator: Any, *, confidence_level: float | None, random_state: Any, n_jobs: int | None, verbose: int
) -> RecordedBands:
    """An unfitted copy of a SoSBandRegressor, or the default one around a point model.

    What the estimator leaves open (`random_state`, `n_jobs`, `verbose`) is taken from the arguments.
    """
    if not isinstance(estimator, SoSBandRegressor):
        estimator = SoSBandRegressor(estimator)
    model = RecordedBands(**estimator.get_params(deep=False))
    if model.calibration_size is None:
        raise ValueError("estimator: calibration_size=None, expected a part or a number of the rows to calibrate on")
    if np.ndim(model.symmetry_penalty) > 0:
        raise ValueError(f"estimator: symmetry_penalty={model.symmetry_penalty!r}, expected 'auto' or one number")
    if confidence_level is not None:
        model.confidence_level = confidence_level
    model.random_state = random_state if model.random_state is None else model.random_state
    model.n_jobs = n_jobs if model.n_jobs is None else model.n_jobs
    model.verbose = model.verbose or verbose
    return model
