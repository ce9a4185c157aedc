"""The one entry to the solvers: `solve` for one problem, `solve_path` for neighbouring ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands._types import Array
from sosbands.solvers.continuation import STIFF, ContinuableProblem, Solver, continued
from sosbands.solvers.lbfgs import solve_lbfgs
from sosbands.solvers.newton import solve_newton
from sosbands.solvers.protocol import (
    Bases,
    CertificateLike,
    DualProblem,
    SolverResult,
    Status,
    check_shape,
    has_shape,
)
from sosbands.solvers.proximal import ProximalProblem, solve_proximal
from sosbands.solvers.subspace import solve_subspace


class Method(NamedTuple):
    """A solver and the shape of the problems that it takes."""

    run: Solver
    shape: type


SOLVERS = {
    "lbfgs": Method(solve_lbfgs, DualProblem),
    "newton": Method(solve_newton, ContinuableProblem),  # a cold start may go through easier problems
    "subspace": Method(solve_subspace, ContinuableProblem),
}
DIRECT = 40  # features up to which Newton's method on the whole problem beats growing subspaces,
DIRECT_WARM = 100  # the same for a start from a neighbour, where a few steps are enough,
DIRECT_STIFF = 400  # and where the problem is stiff, so that every new direction upsets the others
FINEST_PROXIMAL = 1e-6  # of the tolerance: proximal steps come nearer at a steady rate only, Newton ends faster


class Problem(Protocol):
    """What `solve` takes: one dual problem, or several independent ones whose values add up."""

    @property
    def n_variables(self) -> int:
        """Length of z."""

    def parts(self) -> Sequence[Any]:
        """Independent problems over consecutive blocks of the variables; ``(self,)`` if they are all coupled."""

    def joined_certificate(self, certificates: Sequence[Any]) -> CertificateLike:
        """Certificate from those of the parts."""

    def dual_point(self, z: Array) -> Any:
        """The multipliers in a form that neighbouring problems can start from."""

    def start_from(self, point: Any) -> Array:
        """Variables at the multipliers of a neighbouring problem."""


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
    cuts = np.cumsum([len(part.bounds.lower) for part in parts])[:-1]
    clock = perf_counter()
    with ONE_THREAD:
        results = [
            _solved(part, block, solver, tol, max_iterations, known)
            for part, block, known in zip(parts, np.split(z, cuts), _matching(parts, bases), strict=True)
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


def _solved(part: Any, z: Array, solver: str, tol: float, max_iterations: int, known: Bases) -> SolverResult:
    """Solve one part by the solver of that name, or by the one that suits it."""
    if solver == "auto":
        check_shape(part, ContinuableProblem, solver)
        stiff = part.stiffness > STIFF
        held = stiff and tol >= FINEST_PROXIMAL and max(part.dimensions) <= DIRECT_STIFF
        if held and has_shape(part, ProximalProblem):
            return solve_proximal(part, z, tol, max_iterations)
        limit = DIRECT_STIFF if stiff else DIRECT_WARM if z.any() else DIRECT
        solver = "newton" if max(part.dimensions) <= limit else "subspace"
    run, shape = SOLVERS[solver]
    check_shape(part, shape, solver)
    if shape is DualProblem:  # it asks for no easier problems
        return run(part, z, tol, max_iterations)
    if solver == "subspace":
        run = partial(solve_subspace, known=known)
    return continued(run, part, z, tol, max_iterations)


def _matching(parts: Sequence[Any], bases: Sequence[Bases]) -> list[Bases]:
    """The known bases of each part; none where the neighbour had other kernels or was coupled in another way."""
    fitting = len(bases) == len(parts) and all(
        [len(Q) for Q in known] == list(part.dimensions) for known, part in zip(bases, parts, strict=True)
    )
    return list(bases) if fitting else [()] * len(parts)


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
