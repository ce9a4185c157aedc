"""The proximal point method, for problems close to a linear semidefinite program.

Where the Frobenius penalty is small against the others, the multipliers hardly determine the operators: the dual value
is right to six digits long before the primal point is. So the operators are held near those of the step before, by a
term whose weight is chosen, not given. A step is a problem with little stiffness, which Newton's method solves quickly;
at the fixed point the term is zero, and what was found solves the problem itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sosbands._types import Array
from sosbands.problems.certificate import PrimalSide
from sosbands.problems.dual import Argument, BandDual, DualState
from sosbands.problems.operator_penalty import OperatorPenaltyProblem, pack_symmetric, unpack_symmetric
from sosbands.problems.side import Box, FeatureSpace, SideTerm
from sosbands.solvers.newton import DAMPING, Monitor, damping_after, first_ascent, newton_step
from sosbands.solvers.result import SolverResult, Status

FIRST, RELEASE = 0.01, 0.5  # how firmly the first step is held, and what is left of it after a step that was quick
QUICK, LONG = 8, 40  # Newton steps of one that was, and of the longest
SETTLED, EXACT = 0.3, 1e-4  # a step has ended when its residual is this part of its length, and small; never below
MOST_STEPS = 100
PRODUCTS, WORK = 30_000, 3e8  # products with the Hessian in a whole solve, and the same times the squared dimension
SEARCH, WIDER, ENOUGH = 8, 4.0, 1.3  # of the best scaling of the multipliers
FLOOR = 0.03  # of the largest weight of a direction: without one, directions that cost nearly nothing would run away
HOLD = 1e-3  # how firmly the difference of the operators is held, relative to the operators


def solve_proximal(problem: OperatorPenaltyProblem, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Steps of the proximal point method, held less and less firmly, until the certified gap is at most `tol`."""
    bases = problem.principal_bases()
    turned = problem.restricted(bases)
    monitor = Monitor(problem, tol)
    limit = min(PRODUCTS, WORK / max(problem.dimensions) ** 2)
    zero = np.zeros((turned.p, turned.p))
    centre = Centre((zero, zero), zero, turned.bounds.clip(problem.project(start, bases)))
    firmness, settled, shrink, best = FIRST, 1.0, 0.5, None
    iterations, made = 0, 0
    status = Status.ITERATION_LIMIT
    for _ in range(MOST_STEPS):
        step = ProximalStep(turned, centre, firmness)
        z = step.start()
        z, damping, count = z if z.any() else first_ascent(step, z), DAMPING, 0
        # Newton's method, until the residual of the step is small against the way that it has gone
        while count < LONG and not step.residual(z) <= min(settled, SETTLED * step.moved(z)):
            found = newton_step(step, z, damping, monitor)
            if found is not None:
                z, damping = found[0], damping_after(damping, found[1])
            else:
                damping *= 10
                if damping > 1e6:
                    break
            count += 1
        centre = step.next_centre(z)
        iterations, made = iterations + count, made + step.decompositions
        scaled, shrink = _scaled(turned, centre.variables, shrink)
        best = turned.certificate(scaled, best, centre.sides).sides
        # what counts is the certificate of the problem as it was given
        lifted = problem.lift(scaled, bases)
        done = monitor.record(problem.certificate(lifted, problem.lift_sides(best, bases)), lifted)
        if done or monitor.has_stalled:
            status = Status.CONVERGED if done else Status.STALLED
            break
        if monitor.products > limit or iterations >= max_iterations:
            break
        settled = max(EXACT, settled / 2)
        firmness *= RELEASE if count <= QUICK else 1.0
    result = monitor.result(status)
    return replace(result, iterations=iterations, decompositions=result.decompositions + turned.decompositions + made)


def _scaled(problem: BandDual, z: Array, guess: float) -> tuple[Array, float]:
    """About the best ``(1 - h) z`` and h: eigenvalues positive by too much cost most; `guess` is the h before."""
    best = (*_along(problem, z, 0.0), 0.0)
    if best[1] <= 0:
        return z, 1e-6
    below, above = 0.0, max(1e-6, guess / 2)
    for _ in range(2 * SEARCH):
        now = (*_along(problem, z, above), above)
        best = max(best, now)
        if now[1] <= 0 or above >= 1:
            break
        below, above = above, min(1.0, WIDER * above)
    for _ in range(SEARCH):
        if above <= ENOUGH * max(below, 1e-7):
            break
        middle = float(np.sqrt(max(below, 1e-7) * above))
        now = (*_along(problem, z, middle), middle)
        best = max(best, now)
        below, above = (below, middle) if now[1] <= 0 else (middle, above)
    return (1 - best[2]) * z, max(best[2], 1e-6)


def _along(problem: BandDual, z: Array, h: float) -> tuple[float, float]:
    """Value of the dual at ``(1 - h) z`` and its derivative in h."""
    value, grad = problem.value_and_grad((1 - h) * z)
    return value, -float(grad @ z)


@dataclass(frozen=True, eq=False)
class Centre:
    """Where a step starts: operators of both sides, their difference D, and variables of the problem itself."""

    operators: tuple[Array, Array]
    difference: Array
    variables: Array
    sides: tuple[PrimalSide, ...] = ()


class ProximalStep(OperatorPenaltyProblem):
    """The dual of the problem plus ``sigma b_0 / 2`` times the squared distance of the operators to a centre.

    The distance is ``||E (A - C) E||_F``, the squares of the diagonal E being what the directions cost, so that all
    count alike; the squared Frobenius norm is replaced by its tangent at C, right at the fixed point. The difference
    ``D = A_lo - A_up``, a variable of its own with the multiplier W, is held too. All is divided by ``sigma b_0``, so
    that the curvature is at most about one. The Gram matrix of the features of `problem` is nearly diagonal.
    """

    def __init__(self, problem: OperatorPenaltyProblem, centre: Centre, sigma: float) -> None:
        term, penalty = problem.terms[0], problem.penalty
        cost, n, p = term.cost, problem.n, problem.p
        self.origin, self.held_near = problem, centre
        largest = max(cost.b, cost.lam1)  # b_0
        self.unit = largest * sigma
        weights = (cost.b / n * np.diag(term.space.gram) + cost.lam1) / largest
        # the tangent of lam2 ||A||^2 is right only where the distance weighs as much as lam2 does
        e = np.sqrt(np.maximum(weights, 0.0) + max(FLOOR, float(np.sqrt(2 * cost.lam2 / self.unit))))
        hold = max(0.0, HOLD * sigma - 2 * penalty.lam_pen2 / largest)
        plain = SideTerm(FeatureSpace(term.space.V / e[:, None]), replace(cost, b=0.0, lam1=0.0, lam2=0.5, tau=0.0))
        super().__init__(
            plain, problem.r, penalty.lam_pen1 / self.unit, (penalty.lam_pen2 / largest + hold / 2) / sigma
        )
        self.scale = 1.0
        boxes = (Box(side.bounds.lower, side.bounds.upper / self.unit) for side in problem.sides)
        self.bounds = Box.joined(*boxes, unbounded=p * (p + 1) // 2)
        self.e, self.ee = e, np.outer(e, e)
        linear = cost.b / n * term.space.gram + cost.lam1 * np.eye(p)
        self._shifts = [self.ee * C - (linear + 2 * cost.lam2 * C) / self.ee / self.unit for C in centre.operators]
        self._held = hold / sigma * centre.difference

    # ------------------------------------------------------------ from and to the problem itself

    def start(self) -> Array:
        """Variables of this step at the multipliers of the centre."""
        multipliers, W = np.split(self.held_near.variables, [2 * self.n])
        W = unpack_symmetric(self.origin.scale * W, self.p)
        return self.bounds.clip(np.concatenate([multipliers, pack_symmetric(W / self.ee)]) / self.unit)

    def next_centre(self, z: Array) -> Centre:
        """The primal and dual points recovered at z."""
        state = self.state(z)
        sides = tuple(PrimalSide(side.B / self.e[:, None], 0.0, side.f) for side in state.sides)
        lower, upper = (side.B @ side.B.T for side in sides)
        W = self.unit * self.ee * self._W(z)
        multipliers = self.unit * z[: 2 * self.n]
        variables = np.concatenate([multipliers, pack_symmetric(W) / self.origin.scale])
        return Centre((lower, upper), state.slope, self.origin.bounds.clip(variables), sides)

    def residual(self, z: Array) -> float:
        """How far z is from a maximum."""
        _, grad = self.value_and_grad(z)
        return float(np.linalg.norm(self.bounds.clip(z + grad) - z))

    def moved(self, z: Array) -> float:
        """Distance of the recovered operators to the centre."""
        pairs = zip(self.state(z).sides, self.held_near.operators, strict=True)
        return float(np.sqrt(sum(np.square(side.B @ side.B.T - self.ee * C).sum() for side, C in pairs)))

    # ------------------------------------------------------------ values

    def arguments(self, z: Array) -> tuple[Argument, ...]:
        """Those of the operator penalty, and what the centre and the linear costs add."""
        (gamma_lo, gamma_up), W = self.multipliers(z), self._W(z)
        return (gamma_lo, self._shifts[0] - W), (gamma_up, self._shifts[1] + W)

    def _pulled(self, z: Array) -> Array:
        """Argument of the conjugate of the penalty on D."""
        return np.asarray(self.ee * self._W(z) + self._held)

    def coupling(self, z: Array) -> tuple[float, Array]:
        """Conjugate of the penalty on D, held near its centre, and D."""
        return self.penalty.conjugate(self._pulled(z))

    def coupling_gradient(self, state: DualState) -> Array:
        """``E (A_lo - A_up - D) E``, packed."""
        lo, up = state.sides
        return pack_symmetric(lo.B @ lo.B.T - up.B @ up.B.T - self.ee * state.slope)

    def _coupling_derivative(self, z: Array) -> Callable[[Array], Array]:
        """Derivative of ``E D E`` along a change of W: through the few eigenvectors beyond the threshold."""
        if self.penalty.lam_pen1 == 0:
            weights = np.square(self.ee) / (2 * self.penalty.lam_pen2)
            return lambda dW: weights * dW
        self.decompositions += 1
        U, curvature = self.penalty.curvature(self._pulled(z))
        (beyond,) = np.nonzero(curvature.diagonal() > 0)
        Y, half = self.e[:, None] * U, curvature[:, beyond]
        half[beyond] *= 0.5
        Yb = Y[:, beyond]

        def derivative(dW: Array) -> Array:
            C = (Y @ (half * (Y.T @ (dW @ Yb)))) @ Yb.T
            return np.asarray(C + C.T)

        return derivative

    def _coupling_inverse(self, z: Array, shift: float) -> Callable[[Array], Array]:  # noqa: ARG002
        """The curvature in W is at most a few as it is."""
        return lambda w: w / (1 + shift)
