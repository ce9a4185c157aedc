"""Bands for many symmetry penalties, and for few at other learning coverages: warm-started, with values at rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.bands import learn_band_sequence
from sosbands.bands.sos import SoSFunction, evaluate_pair
from sosbands.regressors.band_problem import widened_off_data
from sosbands.regressors.nested import MAX_ITERATIONS
from sosbands.report.recorded import RecordedBands

# In the units of normalised problems; the change happens between 5 and 1000. The tuner's candidates are among them.
PENALTIES = (0.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, np.inf)
# The same in width penalties, for bands that need not cover every row: there the change happens between 0.1 and 20.
COUPLINGS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, np.inf)
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)  # learning coverages, beside that in use
FEW = 4  # penalties at learning coverages that are not in use, beside that of the model


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


def penalties_shown(model: RecordedBands, lengthscale: Any) -> list[float]:
    """The penalties of the slider, increasing, with that of the model among them.

    Sides with lengthscales of their own have no symmetric limit.
    """
    wanted = model.problem_.wanted
    in_widths = wanted["learning_coverage"] < 1 or model.is_automatic
    width = float(wanted["width_penalty"]) or 1.0
    shown = {times * width for times in COUPLINGS} if in_widths else set(PENALTIES)
    shown.add(float(model.symmetry_penalty_))
    if isinstance(lengthscale, dict) and str(lengthscale["lower"]) != str(lengthscale["upper"]):
        shown.discard(np.inf)
    return sorted(shown)


def coverages_shown(model: RecordedBands) -> list[float]:
    """The learning coverages of the slider, increasing, with that of the model; no other where all residuals are 0."""
    own = float(model.problem_.wanted["learning_coverage"])
    return sorted({own, *COVERAGES}) if model.problem_.z.any() else [own]


def few_of(penalties: list[float], chosen: int) -> list[float]:
    """Some of the penalties: both ends, two between them, and that of the model."""
    places = np.linspace(0, len(penalties) - 1, FEW).round().astype(int).tolist()
    return [penalties[k] for k in sorted({chosen, *places})]


def solve_steps(model: RecordedBands, lengthscale: Any, penalties: list[float]) -> list[SolvedBands]:
    """One warm-started path of bands at this lengthscale, each certified, everything else as in the model's problem."""
    return _solved(model, lengthscale, [{"symmetry_penalty": penalty} for penalty in penalties])


def solve_coverages(
    model: RecordedBands, lengthscale: Any, coverages: list[float], penalties: list[float]
) -> list[list[SolvedBands]]:
    """For each learning coverage the bands of each penalty, as one sequence through neighbours."""
    columns = range(len(penalties))
    order = [(i, j) for i in range(len(coverages)) for j in (columns if i % 2 == 0 else reversed(columns))]
    wanted = [{"learning_coverage": coverages[i], "symmetry_penalty": penalties[j]} for i, j in order]
    found = dict(zip(order, _solved(model, lengthscale, wanted), strict=True))
    return [[found[i, j] for j in columns] for i in range(len(coverages))]


def _solved(model: RecordedBands, lengthscale: Any, changes: list[dict[str, float]]) -> list[SolvedBands]:
    """The model's problem, in its units, with each of these changes, solved one after the other."""
    problem = model.problem_
    changed = [replace(problem, wanted={**problem.wanted, "lengthscale": lengthscale, **each}) for each in changes]
    path = learn_band_sequence(
        problem.points,
        problem.z,
        [each.wanted for each in changed],
        rank=model.rank,
        solver=model.solver,
        tol=model.tol,
        max_iterations=MAX_ITERATIONS,
        **problem.options,
    )
    return [
        SolvedBands(
            each.wanted["symmetry_penalty"],
            *widened_off_data(bands, each),
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
    chosen = [step.symmetry_penalty for step in steps].index(float(model.symmetry_penalty_))
    own = SolvedBands(
        steps[chosen].symmetry_penalty,
        model.lower_,
        model.upper_,
        (model.mean_lower_, model.mean_upper_),
        model.certificate_,
        model.active_lower_,
        model.active_upper_,
    )
    return [*steps[:chosen], own, *steps[chosen + 1 :]], chosen


def values_at(steps: list[SolvedBands], points: Array) -> tuple[list[tuple[Array, Array]], Array]:
    """Both band functions of every step at the points, and the support of the points.

    The steps of a path have the same kernel, so that their support is the same.
    """
    triples = [evaluate_pair(step.lower, step.upper, points) for step in steps]
    return [(below, above) for below, above, _ in triples], triples[0][2]
