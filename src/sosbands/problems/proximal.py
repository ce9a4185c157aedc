"""A step of the proximal point method on the operator penalty: the same problem, held near a known primal point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array, BoolArray
from sosbands.problems.base import Argument, DualState
from sosbands.problems.operator_penalty import OperatorPenaltyProblem, pack_symmetric, unpack_symmetric
from sosbands.problems.operators import PrimalSide
from sosbands.problems.side import Box, FeatureSpace, SideTerm

FLOOR = 0.03  # of the largest weight of a direction: without one, directions that cost nearly nothing would run away
HOLD = 1e-3  # how firmly the difference of the operators is held, relative to the operators


@dataclass(frozen=True, eq=False)
class Centre:
    """Where a step starts: operators of both sides, their difference D, and variables of the problem itself."""

    operators: tuple[Array, Array]
    difference: Array
    variables: Array
    sides: tuple[PrimalSide, ...] = ()


class ProximalStep(OperatorPenaltyProblem):
    """The dual of the problem plus ``sigma b_0 / 2`` times the squared distance of the operators to a centre.

    The distance is ``||E (A - C) E||_F`` with E a diagonal matrix whose squares are what the directions cost, so that
    in ``E A E`` all of them count alike; the squared Frobenius norm is replaced by its tangent at C, which is right at
    the fixed point. The difference ``D = A_lo - A_up``, a variable of its own with the multiplier W, is held too.
    Everything is divided by ``sigma b_0``, so that the curvature is at most about one, whatever the penalties are.

    Parameters
    ----------
    problem : OperatorPenaltyProblem
        In features whose Gram matrix is nearly diagonal.
    centre : Centre
    sigma : float
        How firmly the step is held; small is free.
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
        self.bounds = Box.joined(*boxes, Box.unbounded(p * (p + 1) // 2))
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

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array]:
        """Exact blocks of the free multipliers; the curvature in W is at most a few as it is."""
        at = (np.flatnonzero(free[: self.n]), np.flatnonzero(free[self.n : 2 * self.n]))
        blocks = [
            cho_factor(state.hessian_block(rows) + (shift + 1e-10) * np.eye(len(rows)), lower=True)
            for state, rows in zip(self.state(z).sides, at, strict=True)
        ]
        cut = [len(at[0]), len(at[0]) + len(at[1])]

        def apply(rhs: Array) -> Array:
            *gammas, w = np.split(rhs, cut)
            solved = [cho_solve(block, part, check_finite=False) for block, part in zip(blocks, gammas, strict=True)]
            return np.concatenate([*solved, w / (1 + shift)])

        return apply


def zero_centre(problem: OperatorPenaltyProblem, variables: Array) -> Centre:
    """No operators yet, and the multipliers of a start."""
    zero = np.zeros((problem.p, problem.p))
    return Centre((zero, zero), zero, problem.bounds.clip(variables))
