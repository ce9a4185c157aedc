"""The bands of each step of the page: a model that keeps its problem, solved for many settings, and its criterion."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sosbands._types import Array, IntArray
from sosbands.bands import PenaltyScale, learn_band_sequence
from sosbands.bands.functions import SoSFunction, evaluate_pair
from sosbands.bands.views import INPUTS, NO_SCALE, RowFacts
from sosbands.regressors.checks import is_cross
from sosbands.regressors.noise import FIXED, BandProblem, NoiseSettings, has_paper_rules
from sosbands.regressors.sos_bands import SoSBandRegressor
from sosbands.tuning import Rules, automatic, rules
from sosbands.tuning.search import CRITERIA, MIN_ROWS, Candidate, Given, Search, held_out_folds, searched_rows

# In the units of normalised problems; the change happens between 5 and 1000. The tuner's candidates are among them.
PENALTIES = (0.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, np.inf)
# The same in width penalties, for bands that need not cover every row: there the change happens between 0.1 and 20.
COUPLINGS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, np.inf)
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)  # learning coverages, beside that in use
FEW = 4  # penalties at learning coverages that are not in use, beside that of the model


class RecordedBands(SoSBandRegressor):
    """The same estimator; `problem_` is what its bands were learnt from.

    A subclass, because the residuals of a fit cannot be had afterwards (out-of-fold ones take the folds and the copies
    of the model), and the estimator itself must not carry its learning rows along.
    """

    problem_: BandProblem

    def _keep(self, problem: BandProblem) -> None:
        self.problem_ = problem

    @property
    def is_automatic(self) -> bool:
        """Whether what is open is left to the automatic choice, not to rules for lengthscale and penalty."""
        return not has_paper_rules(self) and not NoiseSettings.of(self).keeps_paper

    @property
    def criterion_asked(self) -> str:
        """Name of the tuning criterion, in use or not."""
        return "interval-score" if self.is_automatic else (self.rules or Rules()).criterion


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


@dataclass(frozen=True, eq=False)
class SolvedBands:
    """The bands of one symmetry penalty, however they were found."""

    symmetry_penalty: float
    lower: SoSFunction
    upper: SoSFunction
    means: tuple[float, float]  # over the learning rows
    certificate: dict[str, Any]
    active_lower: IntArray
    active_upper: IntArray


def penalties_shown(model: RecordedBands) -> list[float]:
    """The penalties of the slider, increasing, with that of the model among them.

    Sides with lengthscales of their own have no symmetric limit.
    """
    settings = model.problem_.settings
    in_widths = settings.learning_coverage < 1 or model.is_automatic
    width = float(settings.width_penalty) or 1.0
    shown = {times * width for times in COUPLINGS} if in_widths else set(PENALTIES)
    shown.add(float(model.noise_.settings.symmetry_penalty))
    lengthscale = settings.lengthscale
    if isinstance(lengthscale, dict) and str(lengthscale["lower"]) != str(lengthscale["upper"]):
        shown.discard(np.inf)
    return sorted(shown)


def coverages_shown(model: RecordedBands) -> list[float]:
    """The learning coverages of the slider, increasing, with that of the model; no other where all residuals are 0."""
    own = float(model.problem_.settings.learning_coverage)
    return sorted({own, *COVERAGES}) if model.problem_.z.any() else [own]


def few_of(penalties: list[float], chosen: int) -> list[float]:
    """Some of the penalties: both ends, two between them, and that of the model."""
    places = np.linspace(0, len(penalties) - 1, FEW).round().astype(int).tolist()
    return [penalties[k] for k in sorted({chosen, *places})]


def solve_steps(model: RecordedBands, penalties: list[float]) -> list[SolvedBands]:
    """One warm-started path of bands, each certified, everything else as in the model's problem."""
    return _solved(model, [{"symmetry_penalty": penalty} for penalty in penalties])


def solve_coverages(model: RecordedBands, coverages: list[float], penalties: list[float]) -> list[list[SolvedBands]]:
    """For each learning coverage the bands of each penalty, as one sequence through neighbours."""
    columns = range(len(penalties))
    order = [(i, j) for i in range(len(coverages)) for j in (columns if i % 2 == 0 else reversed(columns))]
    wanted = [{"learning_coverage": coverages[i], "symmetry_penalty": penalties[j]} for i, j in order]
    found = dict(zip(order, _solved(model, wanted), strict=True))
    return [[found[i, j] for j in columns] for i in range(len(coverages))]


def _solved(model: RecordedBands, changes: list[dict[str, float]]) -> list[SolvedBands]:
    """The model's problem, in its units, with each of these changes, solved one after the other."""
    problem = model.problem_
    wanted = [problem.settings.replace(**each) for each in changes]
    changed = [replace(problem, settings=each) for each in wanted]
    path = learn_band_sequence(problem.points, problem.z, wanted, sample_weight=problem.weights)
    return [
        SolvedBands(
            each.settings.symmetry_penalty,
            *each.widened(bands),
            (float(bands.values_lower.mean()), float(bands.values_upper.mean())),
            bands.certificate,
            problem.rows[bands.active_lower],
            problem.rows[bands.active_upper],
        )
        for each, bands in zip(changed, path, strict=True)
    ]


def with_model(model: RecordedBands, steps: list[SolvedBands]) -> tuple[list[SolvedBands], int]:
    """The steps with the model's own solve in place of that of its penalty, and the position of this step.

    Two solves of one problem agree up to their gaps only; the page must show the intervals that the model gives.
    """
    chosen = [step.symmetry_penalty for step in steps].index(float(model.noise_.settings.symmetry_penalty))
    own = SolvedBands(
        steps[chosen].symmetry_penalty,
        model.noise_.lower,
        model.noise_.upper,
        (model.noise_.mean_lower, model.noise_.mean_upper),
        model.noise_.certificate,
        model.noise_.active_lower,
        model.noise_.active_upper,
    )
    return [*steps[:chosen], own, *steps[chosen + 1 :]], chosen


def values_at(steps: list[SolvedBands], points: Array) -> tuple[list[tuple[Array, Array]], Array]:
    """Both band functions of every step at the points, and the support of the points.

    The steps of a path have the same kernel, so that their support is the same.
    """
    triples = [evaluate_pair(step.lower, step.upper, points) for step in steps]
    return [(below, above) for below, above, _ in triples], triples[0][2]


def criterion_of_steps(model: RecordedBands, penalties: list[float]) -> list[float | None]:
    """The tuning criterion of each penalty, everything else as in the model's problem.

    None for each if there are too few residuals, or none that differs from zero, and where a solve failed.
    """
    z = model.problem_.z
    if len(z) < MIN_ROWS or not z.any():
        return [None] * len(penalties)
    found = (_of_the_choice if model.is_automatic else _of_the_rules)(model, penalties)
    return [value if np.isfinite(value) else None for value in found]


def _of_the_choice(model: RecordedBands, penalties: list[float]) -> list[float]:
    """The held-out interval score by which the automatic choice compares candidates; what it knows is not repeated."""
    problem, (rows, folds) = model.problem_, _held_out(model)
    view, unit = problem.view, problem.unit[rows]
    asked = problem.settings
    ell = asked.lengthscale
    ell = float(ell) if isinstance(ell, (int, float)) else Given(ell)
    cost = asked.width_penalty, asked.learning_coverage
    candidates = [Candidate(view.base_scale, view.noise_features, ell, *cost, penalty) for penalty in penalties]
    known = {each: value for each in candidates if (value := _known(model, each)) is not None}
    facts = RowFacts(problem.points[rows], np.zeros(len(rows)), {})  # the view below is all that is looked at
    options = {**_options(problem), "solver": asked.solver}
    search = Search(facts, problem.z[rows] * unit, folds, options, automatic.COARSE, n_jobs=model.n_jobs)
    search.views[view.base_scale, view.noise_features] = facts.points, unit
    search.evaluate([each for each in candidates if each not in known])
    score, level = problem.conformal_score, model.confidence_level
    return [known[each] if each in known else automatic.score_of(search, each, score, level) for each in candidates]


def _known(model: RecordedBands, candidate: Candidate) -> float | None:
    """What the tuning found this candidate to be worth, if it tried it."""
    rows = () if model.tuning_ is None else model.tuning_.evaluations
    wanted = candidate._asdict() | {"conformal_score": model.noise_.score.name}
    if isinstance(candidate.lengthscale, Given):  # that of every candidate
        del wanted["lengthscale"]
    values = [row["criterion"] for row in rows if all(row[name] == value for name, value in wanted.items())]
    return values[0] if values else None


def _of_the_rules(model: RecordedBands, penalties: list[float]) -> list[float]:
    """The criterion of the rules for lengthscale and symmetry penalty."""
    problem, (rows, folds) = model.problem_, _held_out(model)
    options = _options(problem)
    if isinstance(options["normalize"], PenaltyScale):
        options["normalize"] = replace(options["normalize"], n=len(rows))
    facts = RowFacts(problem.points[rows], np.zeros(len(rows)), {})
    search = Search(facts, problem.z[rows], folds, options, rules.COARSE, n_jobs=model.n_jobs)
    asked = problem.settings
    (ell,) = rules.candidate_lengthscales(facts.points, asked.kernel, asked.lengthscale, folds[0])
    cost = asked.width_penalty, asked.learning_coverage
    candidates = [Candidate(NO_SCALE, INPUTS, ell, *cost, penalty) for penalty in penalties]
    search.evaluate(candidates)
    criterion = CRITERIA[model.criterion_asked]
    return [
        -np.inf if search.failed(each) else criterion(search.held_out(each, problem.conformal_score))
        for each in candidates
    ]


def _options(problem: BandProblem) -> dict[str, Any]:
    """What the search does not choose."""
    fixed = {name: getattr(problem.settings, name) for name in (*FIXED, "normalize")}
    return {**fixed, "sample_weight": problem.weights}


def _held_out(model: RecordedBands) -> tuple[IntArray, tuple[IntArray, ...]]:
    """The rows and folds that the tuning had; folds of the model's own seed if nothing was tuned."""
    if model.tuning_ is not None:
        return model.tuning_.rows, model.tuning_.folds
    rng = deepcopy(check_random_state(model.random_state))  # looking at a model must not change its generator
    rows = searched_rows(len(model.problem_.z), rules.SEARCH_ROWS, rng)
    return rows, held_out_folds(len(rows), model.cv, rng)
