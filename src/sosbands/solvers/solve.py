"""The one entry to the solvers: `solve` for one problem, `solve_path` for neighbouring ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from time import perf_counter

import numpy as np
from threadpoolctl import ThreadpoolController

from sosbands._types import Array
from sosbands.solvers.lbfgs import solve_lbfgs
from sosbands.solvers.newton import solve_newton
from sosbands.solvers.protocol import DualProblem, Problem, SolverResult, Status
from sosbands.solvers.subspace import solve_subspace

SOLVERS: dict[str, Callable[[DualProblem, Array, float, int], SolverResult]] = {
    "lbfgs": solve_lbfgs,
    "newton": solve_newton,
    "subspace": solve_subspace,
}
DIRECT = 150  # features up to which Newton's method on the whole problem beats growing subspaces


def solve(
    problem: Problem,
    start: Array | None = None,
    *,
    tol: float = 1e-4,
    solver: str = "auto",
    max_iterations: int = 10_000,
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
        "auto" is "newton" up to 150 features and "subspace" above.
    max_iterations : int
        Per part.
    """
    check_solver(solver)
    z = np.zeros(problem.n_variables) if start is None else np.asarray(start, dtype=float)
    if z.shape != (problem.n_variables,):
        raise ValueError(f"start has shape {z.shape}: expected ({problem.n_variables},)")
    parts = problem.parts()
    cuts = np.cumsum([part.n_variables for part in parts])[:-1]
    clock = perf_counter()
    with _blas().limit(limits=1, user_api="blas"):
        results = [
            _solver_for(part, solver)(part, block, tol, max_iterations)
            for part, block in zip(parts, np.split(z, cuts), strict=True)
        ]
    return results[0] if len(results) == 1 else _joined(problem, results, tol, clock)


def solve_path(
    problems: Iterable[Problem], *, tol: float = 1e-4, solver: str = "auto", max_iterations: int = 10_000
) -> Iterator[SolverResult]:
    """Solve neighbouring problems one after the other, each started from the solution of the last.

    Neighbours differ in the symmetry penalty (0, finite and inf in any order) or in the lengthscale. Results come as
    soon as they are known; problems may be made as late as they are asked for.
    """
    point = None
    for problem in problems:
        start = None if point is None else problem.start_from(point)
        result = solve(problem, start, tol=tol, solver=solver, max_iterations=max_iterations)
        point = problem.dual_point(result.variables)
        yield result


def check_solver(solver: str) -> None:
    """Raise if `solver` is not the name of one."""
    if solver not in ("auto", *SOLVERS):
        raise ValueError(f"solver={solver!r} is not known: expected one of {['auto', *sorted(SOLVERS)]}")


def _solver_for(part: DualProblem, solver: str) -> Callable[[DualProblem, Array, float, int], SolverResult]:
    if solver == "auto":
        solver = "newton" if max(term.p for term in part.terms) <= DIRECT else "subspace"
    return SOLVERS[solver]


@cache
def _blas() -> ThreadpoolController:
    """The loaded BLAS libraries; finding them takes longer than a small solve, so it is done once."""
    return ThreadpoolController()


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
    )
