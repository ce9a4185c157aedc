"""From zero to a solution through easier problems, where that helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.solvers.protocol import Bases, SolverResult
from sosbands.solvers.subspace import RestrictableProblem, solve_subspace

STIFF = 100.0  # stiffness from which a cold start goes through relaxed problems
RELAXATION = 10.0
LOOSE = 1e-2  # gap at which the next relaxation is taken
CLOSE = 1e4  # stiffness from which operators of a relaxed problem are good ones of the next
STAGE_ITERATIONS = 60
MANY_ROWS, SAMPLE_ROWS, EXTREME_ROWS = 20_000, 4_000, 1_000  # a cold start above the first uses a sample of points

Solver = Callable[..., SolverResult]


class ContinuableProblem(RestrictableProblem, Protocol):
    """A problem that can be stated on some of the points, or with a larger Frobenius penalty."""

    @property
    def n_variables(self) -> int:
        """Length of z."""

    @property
    def stiffness(self) -> float:
        """How much the linear penalties outweigh the Frobenius penalty."""

    def relaxed(self, factor: float) -> ContinuableProblem:
        """The same problem with a larger Frobenius penalty: easier, with similar multipliers."""

    def subsampled(self, rows: IntArray) -> Any:
        """The same problem with some of the learning points only."""

    def extended(self, z: Array, rows: IntArray, small: Any) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`."""


def continued(run: Solver, part: ContinuableProblem, z: Array, tol: float, max_iterations: int) -> SolverResult:
    """Run a solver, from zero through easier problems where that helps.

    With very many points, the same problem on some of them comes first. Where the linear penalties dominate, the dual
    is nearly a semidefinite program with its kinks, and problems with a larger and decreasing Frobenius penalty lead
    to it.
    """
    clock = perf_counter()
    before: list[SolverResult] = []
    if not z.any() and len(part.sizes) > MANY_ROWS:
        rows = _telling_rows(part)
        small = part.subsampled(rows)
        before.append(continued(run, small, np.zeros(small.n_variables), LOOSE, max_iterations))
        z = part.extended(before[-1].variables, rows, small)
        run = _with_bases(run, before[-1].bases)
    elif not z.any():
        before, run = _through_relaxations(run, part, z, tol)
        z = before[-1].variables if before else z
    result = run(part, z, tol, max_iterations)
    return replace(
        result,
        iterations=result.iterations + sum(each.iterations for each in before),
        decompositions=result.decompositions + sum(each.decompositions for each in before),
        seconds=perf_counter() - clock,
    )


def _through_relaxations(
    run: Solver, part: ContinuableProblem, z: Array, tol: float
) -> tuple[list[SolverResult], Solver]:
    """Solve ever less relaxed problems, each from the last; the solver then knows a primal point.

    Operators of a relaxed problem that is nearly as stiff are good ones of the next, whose own multipliers hardly give
    any. So those are solved well, as far as that is quick.
    """
    results: list[SolverResult] = []
    start, factor = run, part.stiffness / STIFF
    while factor > 1:
        well = part.stiffness >= CLOSE * factor
        results.append(run(part.relaxed(factor), z, tol / 3 if well else LOOSE, STAGE_ITERATIONS))
        z = results[-1].variables
        if well:
            run = partial(start, also=results[-1].certificate.sides)
        factor /= RELAXATION
    return results, run


def _telling_rows(part: ContinuableProblem) -> IntArray:
    """A sample of the points, and, where every point has to be covered, those that ask for most."""
    sizes = part.sizes
    sample = np.random.default_rng(0).choice(len(sizes), SAMPLE_ROWS, replace=False)
    largest = np.argpartition(sizes, -EXTREME_ROWS)[-EXTREME_ROWS:]
    return np.union1d(sample, largest) if part.is_hard else np.sort(sample)


def _with_bases(run: Solver, bases: tuple[Bases, ...]) -> Solver:
    return partial(solve_subspace, known=bases[0]) if bases else run
