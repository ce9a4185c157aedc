"""SoSBandRegressor that keeps the problem it solved, so that the page can solve it for other symmetry penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.regressors.band_problem import BandProblem
from sosbands.regressors.sos_bands import SoSBandRegressor


class RecordedBands(SoSBandRegressor):
    """The same estimator; `problem_` is what its bands were learnt from.

    A subclass, because the residuals of a fit cannot be had afterwards (out-of-fold ones take the folds and the copies
    of the model), and the estimator itself must not carry its learning rows along.
    """

    problem_: BandProblem

    def _learn_bands(self, problem: BandProblem, rng: np.random.RandomState) -> None:
        self.problem_ = problem
        super()._learn_bands(problem, rng)

    def kernel_points(self, X: Any) -> Array:
        """What the band functions take."""
        return self._numbers(self._read(X, reset=False))

    @property
    def lengthscale_asked(self) -> Any:
        """Lengthscale of the bands as `learn_bands` takes it."""
        return self.lengthscale if self.tuning_ is None else self.tuning_.lengthscale

    @property
    def criterion_asked(self) -> str:
        """Name of the tuning criterion, in use or not."""
        return self._rules(0).criterion


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
