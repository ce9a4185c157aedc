"""SoSBandRegressor that keeps the problem it solved, so that the page can solve it for other symmetry penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands.regressors.band_problem import BandProblem
from sosbands.regressors.cross import is_cross
from sosbands.regressors.parameters import is_paper, resolved, symmetry_rules
from sosbands.regressors.sos_bands import SoSBandRegressor
from sosbands.tuning.views import NO_SCALE, RowFacts


class RecordedBands(SoSBandRegressor):
    """The same estimator; `problem_` is what its bands were learnt from.

    A subclass, because the residuals of a fit cannot be had afterwards (out-of-fold ones take the folds and the copies
    of the model), and the estimator itself must not carry its learning rows along.
    """

    problem_: BandProblem

    def _learn_bands(self, problem: BandProblem) -> None:
        self.problem_ = problem
        super()._learn_bands(problem)

    def facts(self, X: Any) -> RowFacts:
        """What the view of the bands looks at."""
        return self._facts(self._read(X, reset=False))

    @property
    def is_automatic(self) -> bool:
        """Whether what is open is left to the automatic choice, not to rules for lengthscale and penalty."""
        given = resolved(self)
        is_plain = given["base_scale"] == NO_SCALE and "auto" not in given.values()
        return not is_plain and not is_paper(self)

    @property
    def criterion_asked(self) -> str:
        """Name of the tuning criterion, in use or not."""
        return "interval-score" if self.is_automatic else symmetry_rules(self, 0).criterion


def recorded(
    estimator: Any, *, confidence_level: float | None, random_state: Any, n_jobs: int | None, verbose: int
) -> RecordedBands:
    """An unfitted copy of a SoSBandRegressor, or the default one around a point model.

    What the estimator leaves open (`random_state`, `n_jobs`, `verbose`) is taken from the arguments.
    """
    if not isinstance(estimator, SoSBandRegressor):
        estimator = SoSBandRegressor(estimator)
    model = RecordedBands(**estimator.get_params(deep=False))
    if model.nested_coverages is not None:
        raise ValueError(
            f"estimator: nested_coverages={model.nested_coverages!r}, expected None, because the page shows one pair "
            "of bands, at one learning coverage at a time"
        )
    if model.calibration_size is None or is_cross(model.calibration_size):
        raise ValueError(
            f"estimator: calibration_size={model.calibration_size!r}, expected a part or a number of the rows to "
            "calibrate on"
        )
    if np.ndim(model.symmetry_penalty) > 0:
        raise ValueError(f"estimator: symmetry_penalty={model.symmetry_penalty!r}, expected 'auto' or one number")
    if confidence_level is not None:
        model.confidence_level = confidence_level
    model.random_state = random_state if model.random_state is None else model.random_state
    model.n_jobs = n_jobs if model.n_jobs is None else model.n_jobs
    model.verbose = model.verbose or verbose
    return model
