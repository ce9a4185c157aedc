"""The one entry to the solvers: `solve` for one problem, `solve_path` for neighbouring ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from sosbands._types import Array, IntArray
from sosbands.solvers.lbfgs import solve_lbfgs
from sosbands.solvers.newton import solve_newton
from sosbands.solvers.protocol import Bases, DualProblem, Problem, SolverResult, Status
from sosbands.solvers.subspace import solve_subspace

Solver = Callable[[DualProblem, Array, float, int], SolverResult]
SOLVERS: dict[str, Solver] = {
    "lbfgs": solve_lbfgs,
    "newton": solve_newton,
    "subspace": solve_subspace,
}
STIFF = 100.0  # stiffness from which a cold start goes through relaxed problems
RELAXATION = 10.0
LOOSE = 1e-2  # gap at which the next relaxation is taken
MANY_ROWS, SAMPLE_ROWS, EXTREME_ROWS = 20_000, 4_000, 1_000  # a cold start above the first uses a sample of points
DIRECT = 150  # features up to which Newton's method on the whole problem beats growing subspaces,
DIRECT_STIFF = 400  # and where the problem is stiff, so that every new direction upsets the others


def solve(
    problem: Problem,
    start: Array | None = None,
    *,
    tol: float = 1e-4,
    solver: str = "auto",
    max_iterations: int = 10_000,
    bases: Sequence[Bases] = (),
) -> SolverResult:
    """Maximise a dual problem until its certified relative gap is at most `tol`.

    Runs on one BLAS thread: the matrices are small, and threads on shared cores are many times slower.

    Parameters
    ----------
    problem : Problem
        Any object of that shape; one that falls into independent parts is solved part by part.
    start : ndarray of shape (n_variables,), optional
        Zero by default.
    tol : float
        Relative duality gap.
    solver : {"auto", "newton", "subspace", "lbfgs"}
        "auto" is "newton" for few features and "subspace" for many.
    max_iterations : int
        Per part.
    bases : sequence of Bases, optional
        Subspaces of a neighbouring problem on the same kernels, `SolverResult.bases`.
    """
    check_solver(solver)
    z = np.zeros(problem.n_variables) if start is None else np.asarray(start, dtype=float)
    if z.shape != (problem.n_variables,):
        raise ValueError(f"start has shape {z.shape}: expected ({problem.n_variables},)")
    parts = problem.parts()
    cuts = np.cumsum([part.n_variables for part in parts])[:-1]
    clock = perf_counter()
    with ONE_THREAD:
        results = [
            _continued(_solver_for(part, solver, basis), part, block, tol, max_iterations)
            for part, block, basis in zip(parts, np.split(z, cuts), _matching(parts, bases), strict=True)
        ]
    return results[0] if len(results) == 1 else _joined(problem, results, tol, clock)


def solve_path(
    problems: Iterable[Problem], *, tol: float = 1e-4, solver: str = "auto", max_iterations: int = 10_000
) -> Iterator[SolverResult]:
    """Solve neighbouring problems one after the other, each started from the solution of the last.

    Neighbours differ in the symmetry penalty (0, finite and inf in any order) or in the lengthscale. Results come as
    soon as they are known; problems may be made as late as they are asked for.
    """
    point: Any = None
    bases: tuple[Bases, ...] = ()
    for problem in problems:
        start = None if point is None else problem.start_from(point)
        result = solve(problem, start, tol=tol, solver=solver, max_iterations=max_iterations, bases=bases)
        point, bases = problem.dual_point(result.variables), result.bases
        yield result


def check_solver(solver: str) -> None:
    """Raise if `solver` is not the name of one."""
    if solver not in ("auto", *SOLVERS):
        raise ValueError(f"solver={solver!r} is not known: expected one of {['auto', *sorted(SOLVERS)]}")


def _continued(run: Solver, part: DualProblem, z: Array, tol: float, max_iterations: int) -> SolverResult:
    """Run a solver, from zero through easier problems where that helps.

    With very many points, the same problem on some of them comes first. Where the linear penalties dominate, the dual
    is nearly a semidefinite program with its kinks, and problems with a larger and decreasing Frobenius penalty lead
    to it.
    """
    clock = perf_counter()
    before: list[SolverResult] = []
    if not z.any() and run is not solve_lbfgs:
        if len(part.sizes) > MANY_ROWS:
            rows = _telling_rows(part.sizes)
            small = part.subsampled(rows)
            before.append(_continued(run, small, np.zeros(small.n_variables), LOOSE, max_iterations))
            z = part.extended(before[-1].variables, rows, small)
            run = _with_bases(run, before[-1].bases)
        else:
            factor = max(term.stiffness for term in part.terms) / STIFF
            while factor > 1:
                before.append(run(part.relaxed(factor), z, LOOSE, max_iterations))
                z = before[-1].variables
                factor /= RELAXATION
    result = run(part, z, tol, max_iterations)
    return replace(
        result,
        iterations=result.iterations + sum(each.iterations for each in before),
        decompositions=result.decompositions + sum(each.decompositions for each in before),
        seconds=perf_counter() - clock,
    )


def _telling_rows(sizes: Array) -> IntArray:
    """A sample of the points, and those that ask for most."""
    sample = np.random.default_rng(0).choice(len(sizes), SAMPLE_ROWS, replace=False)
    largest = np.argpartition(sizes, -EXTREME_ROWS)[-EXTREME_ROWS:]
    return np.union1d(sample, largest)


def _with_bases(run: Solver, bases: tuple[Bases, ...]) -> Solver:
    return partial(solve_subspace, known=bases[0]) if bases else run


def _matching(parts: Sequence[DualProblem], bases: Sequence[Bases]) -> list[Bases]:
    """The known bases of each part; none where the neighbour had other kernels or was coupled in another way."""
    shapes = [[term.p for term in part.terms] for part in parts]
    fitting = len(bases) == len(parts) and all(
        [len(Q) for Q in known] == dimensions for known, dimensions in zip(bases, shapes, strict=True)
    )
    return list(bases) if fitting else [()] * len(parts)


def _solver_for(part: DualProblem, solver: str, known: Bases) -> Solver:
    if solver == "auto":
        stiff = max(term.stiffness for term in part.terms) > STIFF
        limit = DIRECT_STIFF if stiff else DIRECT
        solver = "newton" if max(term.p for term in part.terms) <= limit else "subspace"
    return partial(solve_subspace, known=known) if solver == "subspace" else SOLVERS[solver]


class _OneThread:
    """One BLAS thread while any solve runs, whichever Python thread it runs in; the first sets it, the last restores.

    The limit belongs to the process. Finding the loaded libraries takes longer than a small solve, so it is done once.
    """

    def __init__(self) -> None:
        self._lock, self._running = Lock(), 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._limit.__exit__(*error)


ONE_THREAD = _OneThread()


def _joined(problem: Problem, results: list[SolverResult], tol: float, clock: float) -> SolverResult:
    """One result for the sum of independent parts."""
    certificate = problem.joined_certificate([result.certificate for result in results])
    failed = [result.status for result in results if result.status != Status.CONVERGED] or [Status.STALLED]
    return SolverResult(
        np.concatenate([result.variables for result in results]),
        certificate,
        Status.CONVERGED if certificate.gap <= tol else failed[0],
        sum(result.iterations for result in results),
        sum(result.decompositions for result in results),
        perf_counter() - clock,
        tuple(row for result in results for row in result.history),
        tuple(basis for result in results for basis in result.bases),
    )
