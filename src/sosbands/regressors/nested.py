"""Nested bands of a SoSBandRegressor: those of its chosen problem, at several coverages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.bands import NestedBands, NestedFunctions, learn_nested_bands
from sosbands.regressors.band_problem import BandProblem, share_quantile

MAX_ITERATIONS = 2000  # of a solve, which ends by then, certified or with a warning
Learnt = tuple[NestedFunctions | None, Array | None, list[dict[str, Any]] | None]


def solver_options(model: Any, problem: BandProblem) -> dict[str, Any]:
    """How the problem is solved, with the further arguments of `learn_bands`."""
    options = {"rank": model.rank, "solver": model.solver, "tol": model.tol, "max_iterations": MAX_ITERATIONS}
    return {**options, **problem.options}


def learn_nested(model: Any, problem: BandProblem) -> Learnt:
    """Functions for evaluation, mean steps of shape (2, k) and certificates; three times None if none are wanted."""
    if model.nested_coverages is None:
        return None, None, None
    wanted = {name: problem.wanted[name] for name in ("lengthscale", "symmetry_penalty", "width_penalty")}
    bands = learn_nested_bands(
        problem.points, problem.z, model.nested_coverages, **wanted, **solver_options(model, problem)
    )
    means = [[getattr(step, side).mean() for step in bands.steps] for side in ("values_lower", "values_upper")]
    return widened_steps(bands, problem).deployed(), np.array(means), bands.certificates


def widened_steps(bands: NestedBands, problem: BandProblem) -> NestedFunctions:
    """The nested functions, off the data at least as large as nested bands of constant width.

    As `widened_off_data` for one band; what a step lacks is added to it, and counts for those after it.
    """
    functions = bands.functions
    if not problem.options["constant"] or not problem.z.any():
        return functions
    symmetric = np.isinf(np.asarray(problem.wanted["symmetry_penalty"], dtype=float)).any()
    weights, z = problem.options["sample_weight"], problem.z
    sides = []
    for steps, values in ((functions.lower_steps, -z), (functions.upper_steps, z)):
        reached, made = 0.0, []
        for coverage, step in zip(functions.coverages, steps, strict=True):
            share = coverage if symmetric else (1 + coverage) / 2
            level = share_quantile(np.abs(z) if symmetric else values, share, weights)
            made.append(replace(step, beyond=max(0.0, level - reached - step.off_data)))
            reached += made[-1].off_data
        sides.append(tuple(made))
    return NestedFunctions(functions.coverages, *sides)
