"""The one entry to the solvers: `solve` for one problem, `solve_path` for neighbouring ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.exceptions import ProblemShapeError
from sosbands.problems import (
    BandDual,
    DualPoint,
    OneSidedProblem,
    OperatorPenaltyProblem,
    TrainingPenaltyProblem,
    TwoSidedProblem,
)
from sosbands.problems.certificate import Bases, add_certificates
from sosbands.solvers.dense import MOST_COUPLED, MOST_FEATURES, MOST_ROWS, solve_dense
from sosbands.solvers.newton import Monitor, ascend_lbfgs, solve_newton
from sosbands.solvers.proximal import solve_proximal
from sosbands.solvers.result import DualProblem, SolverResult, Status
from sosbands.solvers.subspace import solve_subspace

DIRECT = 40  # features up to which Newton's method on the whole problem beats growing subspaces,
DIRECT_WARM = 100  # the same for a start from a neighbour, where a few steps are enough,
DIRECT_STIFF = 400  # and where the problem is stiff, so that every new direction upsets the others
NEAR = 0.1  # gap of a solve that missed its tolerance from which Newton's method goes on
FINEST_PROXIMAL = 1e-6  # of the tolerance: proximal steps come nearer at a steady rate only, Newton ends faster
STIFF = 100.0  # stiffness from which a cold start goes through relaxed problems
RELAXATION = 10.0
LOOSE = 1e-2  # gap at which the next relaxation is taken
CLOSE = 1e4  # stiffness from which operators of a relaxed problem are good ones of the next
STAGE_ITERATIONS = 60
MANY_ROWS, SAMPLE_ROWS, EXTREME_ROWS = 20_000, 4_000, 1_000  # a cold start above the first uses a sample of points
RESTARTS = 3  # SciPy's line search may give up near the rounding level; a restart forgets its memory and often goes on

Solver = Callable[..., SolverResult]


def solve(
    problem: DualProblem,
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
    problem : BandDual, AsymmetricProblem or DualProblem
        The second is solved part by part; the last, with four members only, by "lbfgs".
    start : ndarray of shape (n_variables,), optional
        Zero by default.
    tol : float
        Relative duality gap.
    solver : {"auto", "newton", "subspace", "lbfgs"}
        "auto" is "newton" for few features (in small dense matrices where that is possible) and "subspace" for many.
    max_iterations : int
        Per part.
    bases : sequence of Bases, optional
        Subspaces of a neighbouring problem on the same kernels, `SolverResult.bases`.
    """
    check_solver(solver)
    n_variables = len(problem.bounds.lower)
    z = np.zeros(n_variables) if start is None else np.asarray(start, dtype=float)
    if z.shape != (n_variables,):
        raise ValueError(f"start has shape {z.shape}: expected ({n_variables},)")
    parts = getattr(problem, "parts", (problem,))
    # subspaces of a neighbour with other kernels, or coupled in another way, are of no use
    fitting = len(bases) == len(parts) and all(
        [len(Q) for Q in known] == list(part.dimensions) for known, part in zip(bases, parts, strict=True)
    )
    cuts = np.cumsum([len(part.bounds.lower) for part in parts])[:-1]
    results, clock = [], perf_counter()
    with ONE_THREAD:
        for part, at, known in zip(parts, np.split(z, cuts), bases if fitting else [()] * len(parts), strict=True):
            began = perf_counter()
            run, at, easier, begun = _method(part, at, solver, tol, max_iterations, known)
            if begun is not None and begun.status == Status.CONVERGED:
                results.append(begun)
                continue
            result = run(part, at, tol, max_iterations)
            history = result.history
            if begun is not None:
                easier, history = [begun, *easier], begun.history + history
                if begun.certificate.gap < result.certificate.gap:
                    result = replace(result, variables=begun.variables, certificate=begun.certificate)
            iterations = result.iterations + sum(each.iterations for each in easier)
            made = result.decompositions + sum(each.decompositions for each in easier)
            seconds = perf_counter() - began
            results.append(
                replace(result, iterations=iterations, decompositions=made, seconds=seconds, history=history)
            )
    return results[0] if len(results) == 1 else _joined(results, tol, perf_counter() - clock)


def solve_path(
    problems: Iterable[TwoSidedProblem],
    *,
    tol: float = 1e-4,
    solver: str = "auto",
    max_iterations: int = 10_000,
    points: Iterable[DualPoint | None] = (),
) -> Iterator[SolverResult]:
    """Solve neighbouring problems one after the other, each started from the solution of the last.

    Neighbours differ in the symmetry penalty (0, finite and inf in any order) or in the lengthscale. Results come as
    soon as they are known; problems may be made as late as they are asked for. `points` are multipliers that
    they start from instead, as far as there are any and they are not None.
    """
    point: DualPoint | None = None
    given = iter(points)
    bases: tuple[Bases, ...] = ()
    for problem in problems:
        point = next(given, None) or point
        start = None if point is None else problem.start_from(point)
        result = solve(problem, start, tol=tol, solver=solver, max_iterations=max_iterations, bases=bases)
        point, bases = problem.dual_point(result.variables), result.bases
        yield result


def check_solver(solver: str) -> None:
    """Raise if `solver` is not the name of one."""
    if solver not in ("auto", *SOLVERS):
        raise ValueError(f"solver={solver!r} is not known: expected one of {['auto', *sorted(SOLVERS)]}")


def solve_lbfgs(problem: DualProblem, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Maximise the dual by SciPy's L-BFGS-B; value and gradient come from one decomposition per side."""
    monitor = Monitor(problem, tol)
    z = problem.bounds.clip(start)
    if monitor.record(monitor.certify(z), z):
        return monitor.result(Status.CONVERGED)
    for _ in range(RESTARTS + 1):
        left = max_iterations - monitor.iterations
        if left <= 0:
            return monitor.result(Status.ITERATION_LIMIT)
        z, done = ascend_lbfgs(problem, monitor, z, left)
        if done:
            return monitor.result(Status.CONVERGED)
    return monitor.result(Status.STALLED if monitor.iterations < max_iterations else Status.ITERATION_LIMIT)


SOLVERS: dict[str, Solver] = {"lbfgs": solve_lbfgs, "newton": solve_newton, "subspace": solve_subspace}


def _method(
    part: DualProblem, z: Array, solver: str, tol: float, max_iterations: int, known: Bases
) -> tuple[Solver, Array, list[SolverResult], SolverResult | None]:
    """What solves a part and from where, with what was solved before: easier problems, and perhaps the part itself."""
    if solver not in ("auto", "newton", "subspace"):
        return SOLVERS[solver], z, [], None
    if not isinstance(part, BandDual):
        raise ProblemShapeError(
            f"solver={solver!r} needs a problem derived from BandDual (sosbands.problems), which {type(part).__name__} "
            "is not: solver='lbfgs' takes every problem with the four members of DualProblem"
        )
    begun = None
    if solver == "auto":
        stiff, most = part.stiffness > STIFF, max(part.dimensions)
        limit = DIRECT_STIFF if stiff else DIRECT_WARM if z.any() else DIRECT
        solver = "newton" if most <= limit else "subspace"
        if is_dense(part):
            begun = solve_dense(part, z, tol, max_iterations)
        elif stiff and most <= DIRECT_STIFF and tol >= FINEST_PROXIMAL and isinstance(part, OperatorPenaltyProblem):
            begun = solve_proximal(part, z, tol, max_iterations)
    if begun is not None:
        if begun.status == Status.CONVERGED:
            return solve_newton, z, [], begun
        # Newton's method goes on there only if that is near: from zero it goes through easier problems
        solver, z = "newton", begun.variables if begun.certificate.gap < NEAR else np.zeros_like(z)
    run = partial(solve_subspace, known=known) if solver == "subspace" else solve_newton
    return *_through_easier(run, part, z, tol, max_iterations), begun


def is_dense(part: BandDual) -> bool:
    """Whether a problem has the shape for Newton's method in small dense matrices."""
    few = max(part.dimensions) <= MOST_FEATURES and part.n <= MOST_ROWS and not part.is_hard
    coupled = len(part.coupled) if isinstance(part, TrainingPenaltyProblem) else 0
    return few and (isinstance(part, OneSidedProblem) or 0 < coupled <= MOST_COUPLED)


def _through_easier(
    run: Solver, part: BandDual, z: Array, tol: float, max_iterations: int
) -> tuple[Solver, Array, list[SolverResult]]:
    """From zero through easier problems, where that helps; the solver then knows subspaces or a primal point."""
    if z.any():
        return run, z, []
    if part.n > MANY_ROWS:  # some of the points first
        rows = _telling_rows(part)
        small = part.subsampled(rows)
        inner, start, results = _through_easier(run, small, np.zeros(small.n_variables), LOOSE, max_iterations)
        results.append(inner(small, start, LOOSE, max_iterations))
        z, bases = part.extended(results[-1].variables, rows, small), results[-1].bases
        return partial(solve_subspace, known=bases[0]) if bases else run, z, results
    # Where the linear penalties dominate, the dual is nearly a semidefinite program with its kinks, to which larger and
    # decreasing Frobenius penalties lead. Operators of a problem that is nearly as stiff are good ones of the next,
    # whose own multipliers hardly give any: those are solved well, as far as that is quick.
    results = []
    plain, factor = run, part.stiffness / STIFF
    while factor > 1:
        well = part.stiffness >= CLOSE * factor
        results.append(run(part.relaxed(factor), z, tol / 3 if well else LOOSE, STAGE_ITERATIONS))
        z = results[-1].variables
        if well:
            run = partial(plain, also=results[-1].certificate.sides)
        factor /= RELAXATION
    return run, z, results


def _telling_rows(part: BandDual) -> IntArray:
    """A sample of the points, and, where every point has to be covered, those that ask for most."""
    sizes = np.max(part.targets, axis=0)
    sample = np.random.default_rng(0).choice(len(sizes), SAMPLE_ROWS, replace=False)
    largest = np.argpartition(sizes, -EXTREME_ROWS)[-EXTREME_ROWS:]
    return np.union1d(sample, largest) if part.is_hard else np.sort(sample)


def _joined(results: list[SolverResult], tol: float, seconds: float) -> SolverResult:
    """One result for the sum of independent parts."""
    certificate = add_certificates([result.certificate for result in results])
    failed = [result.status for result in results if result.status != Status.CONVERGED] or [Status.STALLED]
    return SolverResult(
        np.concatenate([result.variables for result in results]),
        certificate,
        Status.CONVERGED if certificate.gap <= tol else failed[0],
        sum(result.iterations for result in results),
        sum(result.decompositions for result in results),
        seconds,
        tuple(row for result in results for row in result.history),
        tuple(basis for result in results for basis in result.bases),
    )
