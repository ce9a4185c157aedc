"""Semismooth Newton-CG on the dual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sosbands._types import Array, BoolArray
from sosbands.solvers.lbfgs import ascend_lbfgs
from sosbands.solvers.monitor import Monitor
from sosbands.solvers.protocol import BoxLike, DualProblem, SolverResult, Status

ASCENTS, LONGER, SHORTER = 10, 4.0, 0.25  # gradient steps of a cold start, and by how much their length may change
TINY = 1e-300
RECOVERY = 30  # L-BFGS iterations where no step raises the dual
ARMIJO = 1e-4
BACKTRACKS = 12
ENTERING, ENTERING_SHARE = 200, 200  # variables that may leave their bound in one step: so many, or one in so many
CG_TOLERANCE = 1e-2
CG_ITERATIONS = 200
CG_BUDGET = 30_000  # iterations of conjugate gradients in a whole solve: those that need more hardly end at all
DAMPING = 0.1  # of the first step
CORRECTIONS = 8  # of the guess which variables end at a bound

Product = Callable[[Array], Array]


class SecondOrderProblem(DualProblem, Protocol):
    """A dual problem with second derivatives."""

    @property
    def curvature(self) -> float:
        """Unit of the second derivatives."""

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the variables in `free`, if there is one."""


def solve_newton(
    problem: SecondOrderProblem, start: Array, tol: float, max_iterations: int, also: Any = None
) -> SolverResult:
    """Maximise the dual by damped Newton steps on the free variables.

    A step sets the variables that end at a bound there and solves ``(H_FF + damping I) d_F = g_F - H_FA d_A`` for the
    others by conjugate gradients. It is accepted along the projected path if the dual rises enough; otherwise the
    damping grows and, at last, L-BFGS takes over for a while, so that no point is left that is not a
    solution. `also` is a feasible primal point known from elsewhere.
    """
    monitor = Monitor(problem, tol, also)
    z = problem.bounds.clip(start)
    if monitor(z):
        return monitor.result(Status.CONVERGED)
    if not start.any() and max_iterations > 0:
        z = first_ascent(problem, z)
        if monitor(z):
            return monitor.result(Status.CONVERGED)
    damping, work = DAMPING, Work()
    while monitor.iterations < max_iterations:
        if monitor.has_stalled:
            return monitor.result(Status.STALLED)
        if work.products > CG_BUDGET:
            return monitor.result(Status.ITERATION_LIMIT)
        step = newton_step(problem, z, damping, work)
        if step is None:
            damping *= 10
            if damping > 1e3:
                before = z
                z, done = ascend_lbfgs(problem, monitor, z, min(RECOVERY, max_iterations - monitor.iterations))
                damping = DAMPING
                if done:
                    return monitor.result(Status.CONVERGED)
                if np.array_equal(z, before):
                    return monitor.result(Status.STALLED)
            continue
        z, shrink = step
        damping = max(1e-12, damping * (0.2 if shrink == 1 else min(10.0, 1 / shrink)))
        if monitor(z):
            return monitor.result(Status.CONVERGED)
    return monitor.result(Status.ITERATION_LIMIT)


def first_ascent(problem: SecondOrderProblem, z: Array) -> Array:
    """A few projected gradient steps with Barzilai-Borwein lengths.

    Newton's method cannot start at zero: no eigenvalue is positive there, and the Hessian is zero.
    """
    value, grad = problem.value_and_grad(z)
    t = 1.0 / max(float(np.linalg.norm(grad)), TINY)
    for _ in range(ASCENTS):
        candidate = problem.bounds.clip(z + t * grad)
        new_value, new_grad = problem.value_and_grad(candidate)
        if not new_value > value:
            t *= SHORTER
            continue
        step, bend = candidate - z, float((candidate - z) @ (grad - new_grad))
        # where the dual is still linear the next step is the longer
        t = min(LONGER * t, float(step @ step) / bend) if bend > 0 else LONGER * t
        z, value, grad = candidate, new_value, new_grad
    return z


@dataclass
class Work:
    """Products with the Hessian so far."""

    products: int = 0


def newton_step(problem: SecondOrderProblem, z: Array, damping: float, work: Work) -> tuple[Array, float] | None:
    """Next point and the accepted step length, or None if no step of this damping raises the dual."""
    value, grad = problem.value_and_grad(z)
    box = problem.bounds
    d = _model_step(problem, z, grad, damping, work)
    t = 1.0
    for _ in range(BACKTRACKS):
        candidate = box.clip(z + t * d)
        new_value, _ = problem.value_and_grad(candidate)
        rise = float(grad @ (candidate - z))
        if new_value >= value + ARMIJO * max(rise, 0.0) and new_value > value:
            return candidate, t
        t *= 0.5 if t > 0.2 else 0.2
    return None


def _model_step(problem: SecondOrderProblem, z: Array, grad: Array, damping: float, work: Work) -> Array:
    """Maximise the quadratic model in the box: guess which variables end at a bound, solve for the others, correct.

    The first guess is that of the optimality conditions at z. A free variable that leaves the box goes to the bound
    that it passes; one at a bound that the model draws inside becomes free again.
    """
    box = problem.bounds
    # where the optimality conditions see the variables that are not free; a step is no longer than the box is wide
    aim = box.clip(z + np.minimum(1.0 / problem.curvature, box.upper - box.lower) * grad)
    later = _left_for_later(z, grad, box)
    at_lower, at_upper = (aim <= box.lower) & ~later, (aim >= box.upper) & ~later
    moving = ~later & ~(at_lower & (z == box.lower)) & ~(at_upper & (z == box.upper))
    model = Model(problem, z, grad, moving, damping)
    d = np.zeros_like(z)
    for _ in range(CORRECTIONS):
        d[at_lower], d[at_upper] = box.lower[at_lower] - z[at_lower], box.upper[at_upper] - z[at_upper]
        slope = model.solve(d, moving & ~at_lower & ~at_upper)
        too_low, too_high = moving & (z + d < box.lower), moving & (z + d > box.upper)
        inside = moving & ((at_lower & (slope > 0)) | (at_upper & (slope < 0)))
        if not (model.is_solved and (too_low.any() or too_high.any() or inside.any())):
            break
        at_lower, at_upper = (at_lower | too_low) & ~inside, (at_upper | too_high) & ~inside
    work.products += model.products
    return d


def _left_for_later(z: Array, grad: Array, box: BoxLike) -> BoolArray:
    """Variables at their bound that want to leave it, except those that want it most: they have to wait.

    With very many points thousands of constraints may be violated at once, most of them because of a few.
    """
    later = ((z <= box.lower) & (grad > 0)) | ((z >= box.upper) & (grad < 0))
    entering = np.flatnonzero(later)
    most = max(ENTERING, len(z) // ENTERING_SHARE)
    if len(entering) > most:
        entering = entering[np.argpartition(np.abs(grad[entering]), -most)[-most:]]
    later[entering] = False
    return later


class Model:
    """The quadratic model ``grad'd - d'(H + shift I)d / 2`` of the dual in the variables that move."""

    def __init__(self, problem: SecondOrderProblem, z: Array, grad: Array, moving: BoolArray, damping: float) -> None:
        self.problem, self.z, self.moving = problem, z, moving
        self.product = problem.hessian_product(z, moving)
        self.damping = damping * problem.curvature
        self.step, self.slope = np.zeros(np.count_nonzero(moving)), grad[moving]  # the last d, and ``grad - H d`` there
        self.shift: float | None = None  # one for all guesses, so that what a preconditioner is made of stays the same
        self.size = 0.0  # of the first right-hand side that is not zero
        self.products = 0
        self.is_solved = True  # else corrections of the guess say nothing

    def solve(self, d: Array, free: BoolArray) -> Array:
        """Fill the free entries of d by conjugate gradients, from those it has; the gradient of the model there."""
        chosen = free[self.moving]
        wanted = d[self.moving]
        change = wanted - self.step
        if change.any():
            self.slope = self.slope - self.product(change)
        self.step = wanted  # at a bound to the last digit, which a sum of changes is not
        if self.shift is None and self.slope[chosen].any():
            self.size = float(np.linalg.norm(self.slope[chosen]))
            self.shift = self.damping * min(1.0, self.size)
        rhs = self.slope[chosen] - (self.shift or 0.0) * self.step[chosen]
        if self.shift is not None and rhs.any():
            change, image = self._free(rhs, free, chosen, self.shift)
            self.step, self.slope = self.step + change, self.slope - image
        d[self.moving] = self.step
        slope = np.zeros_like(d)
        slope[self.moving] = self.slope
        return slope

    def _free(self, rhs: Array, free: BoolArray, chosen: BoolArray, shift: float) -> tuple[Array, Array]:
        """What the free entries of the step lack, and its product with H in all variables that move."""

        def product(v: Array) -> Array:
            self.products += 1
            return self.product(v)

        inverse = self.problem.preconditioner(self.z, free, shift)
        goal = CG_TOLERANCE * max(self.size, float(np.linalg.norm(rhs)))
        solution, image, self.is_solved = conjugate_gradients(product, chosen, shift, rhs, inverse, goal)
        return solution, image


def conjugate_gradients(
    product: Product, chosen: BoolArray, shift: float, rhs: Array, inverse: Product | None, goal: float
) -> tuple[Array, Array, bool]:
    """Solve ``(H + shift I) x = rhs`` in the chosen variables, x = 0 elsewhere, to a residual of at most `goal`.

    Returns x, ``H x`` in all variables, and whether the goal was reached. `product` is that with H, `inverse`
    approximates the inverse. Systems are small: here a library's checks take longer than its arithmetic.
    """
    x, residual, image = np.zeros(len(chosen)), rhs.copy(), np.zeros(len(chosen))
    direction, whole, before = np.zeros_like(rhs), np.zeros(len(chosen)), 1.0
    for _ in range(CG_ITERATIONS):
        if float(residual @ residual) <= goal**2:
            return x, image, True
        better = residual if inverse is None else inverse(residual)
        size = float(residual @ better)
        direction = better + (size / before) * direction
        whole[chosen] = direction
        turned = product(whole)
        curvature = float(direction @ turned[chosen]) + shift * float(direction @ direction)
        if not (size > 0 and curvature > 0):  # rounding: what has been found is all there is
            return x, image, False
        length = size / curvature
        x += length * whole
        image += length * turned
        residual -= length * (turned[chosen] + shift * direction)
        before = size
    return x, image, float(residual @ residual) <= goal**2
