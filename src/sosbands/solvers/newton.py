"""Semismooth Newton-CG on the dual, after a short L-BFGS start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from sosbands._types import Array, BoolArray
from sosbands.solvers.lbfgs import ascend_lbfgs
from sosbands.solvers.monitor import Monitor
from sosbands.solvers.protocol import BoxLike, DualProblem, SolverResult, Status

WARM_UP = 30  # L-BFGS iterations from a cold start: the Hessian is zero where no eigenvalue is positive
ARMIJO = 1e-4
BACKTRACKS = 12
ENTERING = 200  # variables that may leave their bound in one step
CG_TOLERANCE = 1e-2
CG_ITERATIONS = 200


class SecondOrderProblem(DualProblem, Protocol):
    """A dual problem with second derivatives."""

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the variables in `free`, if there is one."""


def solve_newton(problem: SecondOrderProblem, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Maximise the dual by damped Newton steps on the free variables.

    A step sets the variables that the optimality conditions call active to their bounds and solves
    ``(H_FF + damping I) d_F = g_F - H_FA d_A`` for the others by conjugate gradients. It is accepted along the
    projected path if the dual rises enough; otherwise the damping grows and, at last, L-BFGS takes over for a
    while, so that no point is left that is not a solution.
    """
    monitor = Monitor(problem, tol)
    z = problem.bounds.clip(start)
    if monitor(z):
        return monitor.result(Status.CONVERGED)
    if not start.any() and max_iterations > 0:
        z, done = ascend_lbfgs(problem, monitor, z, min(WARM_UP, max_iterations))
        if done:
            return monitor.result(Status.CONVERGED)
    damping = 1e-3
    while monitor.iterations < max_iterations:
        step = _newton_step(problem, z, damping)
        if step is None:
            damping *= 10
            if damping > 1e3:
                before = z
                z, done = ascend_lbfgs(problem, monitor, z, min(WARM_UP, max_iterations - monitor.iterations))
                damping = 1e-3
                if done:
                    return monitor.result(Status.CONVERGED)
                if np.array_equal(z, before):
                    return monitor.result(Status.STALLED)
            continue
        z, shrink = step
        damping = max(1e-12, damping * (0.1 if shrink == 1 else 2.0))
        if monitor(z):
            return monitor.result(Status.CONVERGED)
    return monitor.result(Status.ITERATION_LIMIT)


def _newton_step(problem: SecondOrderProblem, z: Array, damping: float) -> tuple[Array, float] | None:
    """Next point and the accepted step length, or None if no step of this damping raises the dual."""
    value, grad = problem.value_and_grad(z)
    box = problem.bounds
    # where the optimality conditions see the variables that are not free; a step is no longer than the box is wide
    aim = box.clip(z + np.minimum(1.0, box.upper - box.lower) * grad)
    active = (aim <= box.lower) | (aim >= box.upper)
    later = _left_for_later(z, grad, box)
    d = np.zeros_like(z)
    d[active] = aim[active] - z[active]
    d[later] = 0.0
    active |= later
    _solve_free(problem, z, grad, active, d, damping)
    t = 1.0
    for _ in range(BACKTRACKS):
        candidate = box.clip(z + t * d)
        new_value, _ = problem.value_and_grad(candidate)
        rise = float(grad @ (candidate - z))
        if new_value >= value + ARMIJO * max(rise, 0.0) and new_value > value:
            return candidate, t
        t *= 0.5 if t > 0.2 else 0.2
    return None


def _left_for_later(z: Array, grad: Array, box: BoxLike) -> BoolArray:
    """Variables at their bound that want to leave it, except those that want it most: they have to wait.

    With very many points thousands of constraints may be violated at once, most of them because of a few.
    """
    later = ((z <= box.lower) & (grad > 0)) | ((z >= box.upper) & (grad < 0))
    entering = np.flatnonzero(later)
    if len(entering) > ENTERING:
        entering = entering[np.argpartition(np.abs(grad[entering]), -ENTERING)[-ENTERING:]]
    later[entering] = False
    return later


def _solve_free(
    problem: SecondOrderProblem, z: Array, grad: Array, active: BoolArray, d: Array, damping: float
) -> None:
    """Fill the free entries of d."""
    support = ~active | (d != 0)
    free = ~active[support]
    product = problem.hessian_product(z, support)
    known = d[support]
    rhs = (grad[support] - product(known))[free] if known.any() else grad[support][free]
    size = float(np.linalg.norm(rhs))
    if size == 0:
        return
    shift = damping * min(1.0, size)
    whole = np.zeros(len(known))

    def free_product(v: Array) -> Array:
        whole[free] = v
        return np.asarray(product(whole)[free] + shift * v)

    shape = (len(rhs), len(rhs))
    inverse = problem.preconditioner(z, ~active, shift)
    solution, _ = cg(
        LinearOperator(shape, matvec=free_product, dtype=float),
        rhs,
        rtol=CG_TOLERANCE,
        maxiter=CG_ITERATIONS,
        M=None if inverse is None else LinearOperator(shape, matvec=inverse, dtype=float),
    )
    d[~active] = solution
