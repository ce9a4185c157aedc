"""L-BFGS-B on the dual, stopped by the certificate."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from scipy.optimize import Bounds, minimize

from sosbands._types import Array
from sosbands.solvers.protocol import CertificateLike, DualProblem, HistoryRow, SolverResult, Status

MEMORY = 20
# SciPy's line search may give up near the rounding level; a restart forgets its memory and often goes on.
RESTARTS = 3


class Monitor:
    """Certifies every accepted iterate and remembers the best."""

    def __init__(self, problem: DualProblem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.clock, self.decompositions = perf_counter(), problem.decompositions
        self.history: list[HistoryRow] = []
        self.best: CertificateLike | None = None
        self.best_z = np.zeros(0)

    def __call__(self, z: Array) -> bool:
        """Certify and record z; True if the tolerance is reached."""
        return self.record(self.problem.certificate(z), z)

    def record(self, certificate: CertificateLike, z: Array) -> bool:
        """Record the certificate of z; True if the tolerance is reached."""
        if self.best is None or certificate.gap < self.best.gap:
            self.best, self.best_z = certificate, np.maximum(z, self.problem.lower_bounds)
        made, seconds = self.problem.decompositions - self.decompositions, perf_counter() - self.clock
        self.history.append(
            HistoryRow(
                len(self.history),
                certificate.dual_value,
                certificate.primal_value,
                certificate.gap,
                made,
                seconds,
            )
        )
        return certificate.gap <= self.tol

    @property
    def iterations(self) -> int:
        """Points certified after the start."""
        return len(self.history) - 1

    def result(self, status: Status) -> SolverResult:
        """Everything recorded so far."""
        assert self.best is not None
        last = self.history[-1]
        return SolverResult(
            self.best_z,
            self.best,
            status,
            last.iteration,
            self.problem.decompositions - self.decompositions,
            perf_counter() - self.clock,
            tuple(self.history),
        )


def solve_lbfgs(problem: DualProblem, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Maximise the dual by SciPy's L-BFGS-B; value and gradient come from one decomposition per side."""
    monitor = Monitor(problem, tol)
    z = np.maximum(start, problem.lower_bounds)
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
        bounds=Bounds(problem.lower_bounds, np.inf),
        callback=callback,
        options={"maxcor": MEMORY, "maxiter": iterations, "maxfun": 20 * iterations, "ftol": 0.0, "gtol": 0.0},
    )
    return found.x, done
