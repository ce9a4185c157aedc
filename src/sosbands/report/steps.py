"""The bands of each step of the page: a model that keeps its problem, solved for many settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._arguments import check
from sosbands._types import Array, IntArray
from sosbands.bands import learn_band_sequence
from sosbands.bands.functions import SoSFunction, evaluate_pair
from sosbands.bands.settings import is_auto
from sosbands.regressors.checks import CROSS, OUT_OF_FOLD
from sosbands.regressors.noise import BandProblem, NoiseSettings, has_paper_rules
from sosbands.regressors.sos_bands import SoSBandRegressor

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
    if model.calibration_size is None or model.calibration_size in (CROSS, OUT_OF_FOLD):
        raise ValueError(
            f"estimator: calibration_size={model.calibration_size!r}, expected 'auto', a part or a number of the rows "
            "to calibrate on"
        )
    for name in ("target_transform", "target_range"):  # the page refits bands, in units of the target
        value = getattr(model, name)
        check(f"estimator: {name}", value, value is None or is_auto(value), "'auto' or None, which are alike here")
        setattr(model, name, None)
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
