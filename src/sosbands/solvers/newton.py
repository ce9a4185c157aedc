"""Semismooth Newton-CG on the dual; where no step of it helps L-BFGS does, and every point is certified."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from scipy.optimize import Bounds, minimize

from sosbands._types import Array, BoolArray
from sosbands.problems.certificate import TINY, Certificate, Sides
from sosbands.problems.dual import BandDual
from sosbands.problems.side import Box
from sosbands.solvers.result import DualProblem, HistoryRow, SolverResult, Status

ASCENTS, LONGER, SHORTER = 10, 4.0, 0.25  # gradient steps of a cold start, and by how much their length may change
RECOVERY = 30  # L-BFGS iterations where no step raises the dual
ARMIJO = 1e-4
BACKTRACKS = 12
ENTERING, ENTERING_SHARE = 200, 200  # variables that may leave their bound in one step: so many, or one in so many
CG_TOLERANCE = 1e-2
CG_ITERATIONS = 200
CG_BUDGET = 30_000  # iterations of conjugate gradients in a whole solve: those that need more hardly end at all
DAMPING = 0.1  # of the first step
CORRECTIONS = 8  # of the guess which variables end at a bound
PATIENCE, PROGRESS = 100, 0.8  # points after which the best gap must have fallen to this part of what it was
MEMORY = 20  # of L-BFGS

Product = Callable[[Array], Array]


def solve_newton(
    problem: BandDual, start: Array, tol: float, max_iterations: int, also: Sides | None = None
) -> SolverResult:
    """Maximise the dual by damped Newton steps on the free variables; `also` is a feasible primal point known before.

    A step solves ``(H_FF + damping I) d_F = g_F - H_FA d_A``, A the variables that end at a bound, and is taken along
    the projected path as far as the dual rises. Otherwise the damping grows and, at last, L-BFGS goes on for a while.
    """
    monitor = Monitor(problem, tol, partial(problem.certificate, also=also) if also else None)
    z = problem.bounds.clip(start)
    if monitor.record(monitor.certify(z), z):
        return monitor.result(Status.CONVERGED)
    if not start.any() and max_iterations > 0:
        z = first_ascent(problem, z)
        if monitor.record(monitor.certify(z), z):
            return monitor.result(Status.CONVERGED)
    damping = DAMPING
    while monitor.iterations < max_iterations:
        if monitor.has_stalled:
            return monitor.result(Status.STALLED)
        if monitor.products > CG_BUDGET:
            return monitor.result(Status.ITERATION_LIMIT)
        step = newton_step(problem, z, damping, monitor)
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
        z, t = step
        damping = damping_after(damping, t)
        if monitor.record(monitor.certify(z), z):
            return monitor.result(Status.CONVERGED)
    return monitor.result(Status.ITERATION_LIMIT)


def first_ascent(problem: BandDual, z: Array) -> Array:
    """A few projected gradient steps with Barzilai-Borwein lengths, as the Hessian at zero is zero."""
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


def newton_step(problem: BandDual, z: Array, damping: float, monitor: Monitor) -> tuple[Array, float] | None:
    """Next point and the accepted step length, or None if no step of this damping raises the dual.

    The model is maximised in the box: guess which variables end at a bound, solve for the others, correct: a free
    variable that leaves the box goes to the bound that it passes, and one that the model draws inside becomes free.
    """
    value, grad = problem.value_and_grad(z)
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
    monitor.products += model.products
    found = search_along(problem, z, value, grad, d)
    return found and found[:2]


def search_along(
    problem: BandDual, z: Array, value: float, grad: Array, d: Array
) -> tuple[Array, float, float, Array] | None:
    """Where the dual has risen enough on the projected path along d, the length of the step, value and gradient."""
    t = 1.0
    for _ in range(BACKTRACKS):
        candidate = problem.bounds.clip(z + t * d)
        new_value, new_grad = problem.value_and_grad(candidate)
        rise = float(grad @ (candidate - z))
        if new_value >= value + ARMIJO * max(rise, 0.0) and new_value > value:
            return candidate, t, new_value, new_grad
        t *= 0.5 if t > 0.2 else 0.2
    return None


def damping_after(damping: float, t: float) -> float:
    """Less after a full step, more after one that had to be shortened to t."""
    return max(1e-12, damping * (0.2 if t == 1 else min(10.0, 1 / t)))


def _left_for_later(z: Array, grad: Array, box: Box) -> BoolArray:
    """Variables that want to leave their bound wait, except those that want it most: few cause the others."""
    later = ((z <= box.lower) & (grad > 0)) | ((z >= box.upper) & (grad < 0))
    entering = np.flatnonzero(later)
    most = max(ENTERING, len(z) // ENTERING_SHARE)
    if len(entering) > most:
        entering = entering[np.argpartition(np.abs(grad[entering]), -most)[-most:]]
    later[entering] = False
    return later


class Model:
    """The quadratic model ``grad'd - d'(H + shift I)d / 2`` of the dual in the variables that move."""

    def __init__(self, problem: BandDual, z: Array, grad: Array, moving: BoolArray, damping: float) -> None:
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

        def counted(v: Array) -> Array:
            self.products += 1
            return self.product(v)

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
            inverse = self.problem.preconditioner(self.z, free, self.shift)
            goal = CG_TOLERANCE * max(self.size, float(np.linalg.norm(rhs)))
            change, image, self.is_solved = conjugate_gradients(counted, chosen, self.shift, rhs, inverse, goal)
            self.step, self.slope = self.step + change, self.slope - image
        d[self.moving] = self.step
        slope = np.zeros_like(d)
        slope[self.moving] = self.slope
        return slope


def conjugate_gradients(
    product: Product, chosen: BoolArray, shift: float, rhs: Array, inverse: Product | None, goal: float
) -> tuple[Array, Array, bool]:
    """Find x with ``(H + shift I) x = rhs`` in the chosen variables, ``H x``, and whether `goal` was reached.

    Systems are small: a library's checks take longer than its arithmetic.
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


def ascend_lbfgs(problem: DualProblem, monitor: Monitor, z: Array, iterations: int) -> tuple[Array, bool]:
    """Run L-BFGS-B for at most `iterations` from z; the last point, and whether the monitor was satisfied."""
    done = False

    def negative(z: Array) -> tuple[float, Array]:
        value, grad = problem.value_and_grad(z)
        return -value, -grad

    def callback(z: Array) -> None:
        nonlocal done
        done = monitor.record(monitor.certify(z), z)
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


class Monitor:
    """The record of a solve: every certified point, the best of them, and the result that it makes."""

    def __init__(self, problem: DualProblem, tol: float, certify: Callable[[Array], Certificate] | None = None) -> None:
        self.problem, self.tol, self.certify = problem, tol, certify or problem.certificate
        self.clock, self.decompositions = perf_counter(), problem.decompositions
        self.history: list[HistoryRow] = []
        self.products = 0  # with the Hessian
        self.best: Certificate | None = None
        self.best_z = np.zeros(0)

    def record(self, certificate: Certificate, z: Array) -> bool:
        """Record the certificate of z; True if the tolerance is reached."""
        if self.best is None or certificate.gap < self.best.gap:
            self.best, self.best_z = certificate, self.problem.bounds.clip(z)
        self.note(certificate.dual_value, certificate.primal_value, certificate.gap)
        return certificate.gap <= self.tol

    def note(self, dual_value: float, primal_value: float, gap: float) -> None:
        """Add a line to the history."""
        made, seconds = self.problem.decompositions - self.decompositions, perf_counter() - self.clock
        self.history.append(HistoryRow(len(self.history), dual_value, primal_value, gap, made, seconds))

    @property
    def has_stalled(self) -> bool:
        """Whether the best gap has hardly fallen for a long time."""
        if len(self.history) < PATIENCE:
            return False
        gaps = [row.gap for row in self.history]
        return not min(gaps) < PROGRESS * min(gaps[:-PATIENCE], default=np.inf)

    @property
    def iterations(self) -> int:
        """Points certified after the start."""
        return len(self.history) - 1

    def result(self, status: Status) -> SolverResult:
        """Everything recorded so far."""
        assert self.best is not None
        made, seconds = self.problem.decompositions - self.decompositions, perf_counter() - self.clock
        return SolverResult(self.best_z, self.best, status, self.iterations, made, seconds, tuple(self.history))
