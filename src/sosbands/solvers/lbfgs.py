"""L-BFGS-B on the dual, stopped by the certificate."""

from __future__ import annotations

from scipy.optimize import Bounds, minimize

from sosbands._types import Array
from sosbands.solvers.monitor import Monitor
from sosbands.solvers.protocol import DualProblem, SolverResult, Status

MEMORY = 20
# SciPy's line search may give up near the rounding level; a restart forgets its memory and often goes on.
RESTARTS = 3


def solve_lbfgs(problem: DualProblem, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Maximise the dual by SciPy's L-BFGS-B; value and gradient come from one decomposition per side."""
    monitor = Monitor(problem, tol)
    z = problem.bounds.clip(start)
    if monitor(z):
        return monitor.result(Status.CONVERGED)
    for _ in range(RESTARTS + 1):
        left = max_iterations - monitor.iterations
        if left <= 0:
            return monitor.result(Status.ITERATION_LIMIT)
        z, done = ascend_lbfgs(problem, monitor, z, left)
        if done:
            return monitor.result(Status.CONVERGED)
    return monitor.result(Status.STALLED if monitor.iterations < max_iterations else Status.ITERATION_LIMIT)


def ascend_lbfgs(problem: DualProblem, monitor: Monitor, z: Array, iterations: int) -> tuple[Array, bool]:
    """Run L-BFGS-B for at most `iterations` from z; the last point, and whether the monitor was satisfied."""
    done = False

    def negative(z: Array) -> tuple[float, Array]:
        value, grad = problem.value_and_grad(z)
        return -value, -grad

    def callback(z: Array) -> None:
        nonlocal done
        done = monitor(z)
        if done:
            raise StopIteration

    found = minimize(
        negative,
        z,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(problem.bounds.lower, problem.bounds.upper),
        callback=callback,
        options={"maxcor": MEMORY, "maxiter": iterations, "maxfun": 20 * iterations, "ftol": 0.0, "gtol": 0.0},
    )
    return found.x, done
