"""What the tuning criterion says about each step: by cross-validation on learning rows, on the folds of the tuning."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from sosbands._types import IntArray
from sosbands.conformal import SCORES
from sosbands.report.recorded import RecordedBands
from sosbands.tuning.automatic import AutomaticSearch
from sosbands.tuning.candidates import candidate_lengthscales
from sosbands.tuning.choose import score_levels
from sosbands.tuning.criterion import fold_bands, pool
from sosbands.tuning.settings import Candidate, Choices, Given
from sosbands.tuning.split import MIN_ROWS, held_out_folds, searched_data, searched_rows
from sosbands.tuning.views import RowFacts


def criterion_of_steps(model: RecordedBands, lengthscale: Any, penalties: list[float]) -> list[float | None]:
    """The tuning criterion of each penalty at this lengthscale, everything else as in the model's problem.

    None for each if there are too few residuals, or none that differs from zero, and where a solve failed.
    """
    z = model.problem_.z
    if len(z) < MIN_ROWS or not z.any():
        return [None] * len(penalties)
    found = (_of_the_choice if model.is_automatic else _of_the_rules)(model, lengthscale, penalties)
    return [value if np.isfinite(value) else None for value in found]


def _of_the_choice(model: RecordedBands, lengthscale: Any, penalties: list[float]) -> list[float]:
    """The held-out interval score by which the automatic choice compares candidates; what it knows is not repeated."""
    problem, view = model.problem_, model.problem_.view
    is_number = isinstance(lengthscale, (int, float))
    settings = {**problem.wanted, "lengthscale": float(lengthscale) if is_number else Given(lengthscale)}
    candidates = [
        Candidate(view.base_scale, view.noise_features, **{**settings, "symmetry_penalty": penalty})
        for penalty in penalties
    ]
    found = {each: value for each in candidates if (value := _known(model, each)) is not None}
    search = _search(model)
    search.evaluate([each for each in candidates if each not in found])
    return [found[each] if each in found else search.choices_of(each)[0].value for each in candidates]


def _known(model: RecordedBands, candidate: Candidate) -> float | None:
    """What the tuning found this candidate to be worth, if it tried it."""
    rows = () if model.tuning_ is None else model.tuning_.evaluations
    wanted = candidate._asdict() | {"conformal_score": model.conformal_score_}
    if isinstance(candidate.lengthscale, Given):  # that of every candidate
        del wanted["lengthscale"]
    values = [row["criterion"] for row in rows if all(row[name] == value for name, value in wanted.items())]
    return values[0] if values else None


def _search(model: RecordedBands) -> AutomaticSearch:
    """A search among candidates with the view and the score of the model."""
    problem, (rows, folds) = model.problem_, _held_out(model)
    view, unit = problem.view, problem.unit[rows]
    facts = RowFacts(problem.points[rows], np.zeros(len(rows)), {})  # the view below is all that is looked at
    search = AutomaticSearch(
        facts,
        problem.z[rows] * unit,
        folds,
        {**problem.options, "solver": model.solver},
        Choices((view.base_scale,), (view.noise_features,), (problem.conformal_score,)),
        score_levels(model.confidence_level),
        n_jobs=model.n_jobs,
    )
    search.views[view.base_scale, view.noise_features] = facts.points, unit
    return search


def _of_the_rules(model: RecordedBands, lengthscale: Any, penalties: list[float]) -> list[float]:
    """The criterion of the rules for lengthscale and symmetry penalty."""
    problem, score = model.problem_, SCORES[model.problem_.conformal_score]
    names = ("width_penalty", "learning_coverage")
    options = problem.options | {name: problem.wanted[name] for name in names}
    data = searched_data(problem.points, problem.z, *_held_out(model), options, score)
    ells = candidate_lengthscales(data.points, model.kernel, lengthscale, data.folds[0])
    parts = Parallel(n_jobs=model.n_jobs)(
        delayed(fold_bands)(data, fold, ells, penalties) for fold in range(len(data.folds))
    )
    found = pool(data, ells, penalties, dict(enumerate(parts)))
    return [each.value(model.criterion_asked) for each in found]


def _held_out(model: RecordedBands) -> tuple[IntArray, tuple[IntArray, ...]]:
    """The rows and folds that the tuning had; folds of the model's own seed if nothing was tuned."""
    if model.tuning_ is not None:
        return model.tuning_.rows, model.tuning_.folds
    rng = deepcopy(check_random_state(model.random_state))  # looking at a model must not change its generator
    rows = searched_rows(len(model.problem_.z), rng)
    return rows, held_out_folds(len(rows), model.cv, rng)
