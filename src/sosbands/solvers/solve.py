"""The one entry to the solvers."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from sosbands._types import Array
from sosbands.solvers.lbfgs import solve_lbfgs
from sosbands.solvers.newton import solve_newton
from sosbands.solvers.subspace import solve_subspace
from sosbands.solvers.protocol import DualProblem, SolverResult, Status

SOLVERS: dict[str, Callable[[DualProblem, Array, float, int], SolverResult]] = {
    "lbfgs": solve_lbfgs,
    "newton": solve_newton,
    "subspace": solve_subspace,
}
NEEDED = ("n_variables", "lower_bounds", "decompositions", "value_and_grad", "certificate", "hessian_product", "parts")


def solve(
    problem: DualProblem,
    start: Array | None = None,
    *,
    tol: float = 1e-4,
    solver: str = "auto",
    max_iterations: int = 10_000,
) -> SolverResult:
    """Maximise a dual problem until its certified relative gap is at most `tol`.

    Parameters
    ----------
    problem : DualProblem
        Any object of that shape; a problem that falls into independent parts is solved part by part.
    start : ndarray of shape (n_variables,), optional
        Zero by default.
    tol : float
        Relative duality gap.
    solver : {"auto", "lbfgs", "newton"}
    max_iterations : int
        Per part.
    """
    missing = [name for name in NEEDED if not hasattr(problem, name)]
    if missing:
        raise TypeError(f"problem={type(problem).__name__} lacks {missing}: see sosbands.solvers.protocol.DualProblem")
    if solver not in ("auto", *SOLVERS):
        raise ValueError(f"solver={solver!r} is not known: expected one of {['auto', *sorted(SOLVERS)]}")
    z = np.zeros(problem.n_variables) if start is None else np.asarray(start, dtype=float)
    if z.shape != (problem.n_variables,):
        raise ValueError(f"start has shape {z.shape}: expected ({problem.n_variables},)")
    run = SOLVERS["lbfgs" if solver == "auto" else solver]
    parts = problem.parts()
    if len(parts) == 1:
        return run(problem, z, tol, max_iterations)
    clock = perf_counter()
    cuts = np.cumsum([part.n_variables for part in parts])[:-1]
    results = [run(part, block, tol, max_iterations) for part, block in zip(parts, np.split(z, cuts), strict=True)]
    return _joined(problem, results, tol, clock)


def _joined(problem: DualProblem, results: list[SolverResult], tol: float, clock: float) -> SolverResult:
    """One result for the sum of independent parts, certified as a whole."""
    z = np.concatenate([result.variables for result in results])
    certificate = problem.certificate(z)
    worst = next((result.status for result in results if result.status != Status.CONVERGED), Status.CONVERGED)
    return SolverResult(
        z,
        certificate,
        Status.CONVERGED if certificate.gap <= tol else worst,
        sum(result.iterations for result in results),
        sum(result.decompositions for result in results),
        perf_counter() - clock,
        tuple(row for result in results for row in result.history),
    )
