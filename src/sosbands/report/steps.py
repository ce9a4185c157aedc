"""Bands for many symmetry penalties: one warm-started path, the criterion by cross-validation, values at rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from sosbands._types import Array, IntArray
from sosbands.bands import learn_band_path
from sosbands.bands.sos import SoSFunction, evaluate_pair
from sosbands.conformal import SCORES
from sosbands.report.recorded import RecordedBands
from sosbands.tuning.candidates import candidate_lengthscales
from sosbands.tuning.criterion import TuningData, fold_bands, pool
from sosbands.tuning.split import MIN_ROWS, held_out_folds, searched_data, searched_rows

# In the units of normalised problems; the change happens between 5 and 1000. The tuner's candidates are among them.
PENALTIES = (0.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, np.inf)


@dataclass(frozen=True, eq=False)
class SolvedBands:
    """The bands of one symmetry penalty, however they were found."""

    symmetry_penalty: float
    lower: SoSFunction
    upper: SoSFunction
    certificate: dict[str, Any]
    active_lower: IntArray
    active_upper: IntArray


def penalties_shown(model: RecordedBands, lengthscale: Any) -> list[float]:
    """The penalties of the slider, increasing, with that of the model among them.

    Sides with lengthscales of their own have no symmetric limit.
    """
    wanted = {*PENALTIES, float(model.symmetry_penalty_)}
    if isinstance(lengthscale, dict) and str(lengthscale["lower"]) != str(lengthscale["upper"]):
        wanted.discard(np.inf)
    return sorted(wanted)


def solve_steps(model: RecordedBands, lengthscale: Any, penalties: list[float]) -> list[SolvedBands]:
    """One warm-started path of bands at this lengthscale, each certified."""
    problem = model.problem_
    path = learn_band_path(
        problem.points,
        problem.r,
        penalties,
        lengthscale=lengthscale,
        rank=model.rank,
        solver=model.solver,
        tol=model.tol,
        **problem.options,
    )
    return [
        SolvedBands(
            penalty,
            bands.lower,
            bands.upper,
            bands.certificate,
            problem.rows[bands.active_lower],
            problem.rows[bands.active_upper],
        )
        for penalty, bands in zip(penalties, path, strict=True)
    ]


def with_model(model: RecordedBands, steps: list[SolvedBands]) -> tuple[list[SolvedBands], int]:
    """The steps with the model's own solve in place of that of its penalty, and the position of this step.

    Two solves of one problem agree up to their gaps only; the page must show the intervals that the model gives.
    """
    chosen = [step.symmetry_penalty for step in steps].index(float(model.symmetry_penalty_))
    own = SolvedBands(
        steps[chosen].symmetry_penalty,
        model.lower_,
        model.upper_,
        model.certificate_,
        model.active_lower_,
        model.active_upper_,
    )
    return [*steps[:chosen], own, *steps[chosen + 1 :]], chosen


def criterion_of_steps(model: RecordedBands, lengthscale: Any, penalties: list[float]) -> list[float | None]:
    """The tuning criterion of each penalty at this lengthscale, on the folds that the tuning had.

    None for each if there are too few residuals, or none that differs from zero, and where a solve failed.
    """
    problem = model.problem_
    if len(problem.r) < MIN_ROWS or not problem.r.any():
        return [None] * len(penalties)
    data = _held_out(model)
    ells = candidate_lengthscales(data.points, model.kernel, lengthscale, data.folds[0])
    parts = Parallel(n_jobs=model.n_jobs)(
        delayed(fold_bands)(data, fold, ells, penalties) for fold in range(len(data.folds))
    )
    found = pool(data, ells, penalties, dict(enumerate(parts)))
    return [None if each.failed else each.value(model.criterion_asked) for each in found]


def _held_out(model: RecordedBands) -> TuningData:
    """The rows and folds that the tuning had; folds of the model's own seed if nothing was tuned."""
    problem, report = model.problem_, model.tuning_
    if report is not None:
        rows, folds = report.rows, report.folds
    else:
        rng = deepcopy(check_random_state(model.random_state))  # looking at a model must not change its generator
        rows = searched_rows(len(problem.r), rng)
        folds = held_out_folds(len(rows), model.cv, rng)
    return searched_data(problem.points, problem.r, rows, folds, problem.options, SCORES[model.conformal_score_])


def values_at(steps: list[SolvedBands], points: Array) -> tuple[list[tuple[Array, Array]], Array]:
    """Both band functions of every step at the points, and the support of the points.

    The steps of a path have the same kernel, so that their support is the same.
    """
    triples = [evaluate_pair(step.lower, step.upper, points) for step in steps]
    return [(below, above) for below, above, _ in triples], triples[0][2]
