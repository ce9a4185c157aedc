"""The training-set penalty ``lam_pen sum_i (f_lo(X_i) - f_up(X_i))^2``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Bases, Certificate, Sides, certify
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.preconditioner import newton_preconditioner, square_features
from sosbands.problems.side import SideState, SideTerm

T = TypeVar("T")
MIN_ROWS = 200  # with fewer alpha_0 plain conjugate gradients are quick


class TrainingPenaltyProblem:
    """Both sides, pulled together at the learning points.

    Dual, maximised over ``gamma_lo, gamma_up >= 0`` and a free alpha_0:

        (gamma_up - gamma_lo)'r - ||alpha_0||^2 / (4 lam_pen)
        - Omega*(V_lo Diag(gamma_lo + alpha_0 - b/n) V_lo') - Omega*(V_up Diag(gamma_up - alpha_0 - b/n) V_up')

    The variables are ``z = (gamma_lo, gamma_up, alpha_0 / scale)``, ``scale = min(1, sqrt(2 lam_pen))``,
    so that the curvature in the last block stays bounded as lam_pen tends to 0.

    Parameters
    ----------
    lower, upper : SideTerm
        May have different features.
    r : ndarray of shape (n,)
        Residuals.
    lam_pen : float
        Finite and positive.
    """

    def __init__(self, lower: SideTerm, upper: SideTerm, r: Array, lam_pen: float) -> None:
        self.sides = (lower, upper)
        self.r = r
        self.lam_pen = lam_pen
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen)))
        self.n = len(r)
        self.n_variables = 3 * self.n
        self.lower_bounds = np.repeat([0.0, 0.0, -np.inf], self.n)
        self.decompositions = 0
        self._cached: tuple[Array, tuple[SideState, SideState]] | None = None

    def _split(self, z: Array) -> tuple[Array, Array, Array]:
        n = self.n
        return z[:n], z[n : 2 * n], self.scale * z[2 * n :]

    def states(self, z: Array) -> tuple[SideState, SideState]:
        """Eigenpairs of both sides at z, remembered for the next call at the same z."""
        if self._cached is None or not np.array_equal(self._cached[0], z):
            gamma_lo, gamma_up, alpha_0 = self._split(z)
            self.decompositions += 2
            lower, upper = self.sides
            if lower is upper:
                # the multipliers are sparse, alpha_0 is not: its n p^2 operations serve both sides
                G = lower.weighted_gram(alpha_0)
                states = lower.evaluate(gamma_lo, G), upper.evaluate(gamma_up, -G)
            else:
                states = lower.evaluate(gamma_lo + alpha_0), upper.evaluate(gamma_up - alpha_0)
            self._cached = (z.copy(), states)
        return self._cached[1]

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        gamma_lo, gamma_up, alpha_0 = self._split(z)
        lo, up = self.states(z)
        value = float((gamma_up - gamma_lo) @ self.r) - float(alpha_0 @ alpha_0) / (4 * self.lam_pen)
        grad_alpha = up.f - lo.f - alpha_0 / (2 * self.lam_pen)
        grad = np.concatenate([-self.r - lo.f, self.r - up.f, self.scale * grad_alpha])
        return value - lo.value - up.value, grad

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        lo, up = self.states(z)
        full = np.zeros(self.n_variables)

        def product(d: Array) -> Array:
            full[support] = d
            d_lo, d_up, d_alpha = self._split(full)
            h_lo, _ = lo.derivative(d_lo + d_alpha)
            h_up, _ = up.derivative(d_up - d_alpha)
            h_alpha = self.scale * (h_lo - h_up + d_alpha / (2 * self.lam_pen))
            return np.concatenate([h_lo, h_up, h_alpha])[support]

        return product

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the free variables (all alpha_0 are free)."""
        if self.n < MIN_ROWS:
            return None
        lower, upper = self.sides
        return newton_preconditioner(
            (square_features(lower), square_features(upper)),
            self.states(z),
            (free[: self.n], free[self.n : 2 * self.n]),
            scale=self.scale,
            delta=self.scale**2 / (2 * self.lam_pen) + shift,
            shift=shift,
        )

    @property
    def terms(self) -> tuple[SideTerm, ...]:
        """The spaces that operators live in: one if both sides have the same features."""
        return self.sides[:1] if self.sides[0] is self.sides[1] else self.sides

    def _each(self, items: Sequence[T]) -> tuple[T, T]:
        """One item per side from one per term."""
        return items[0], items[-1]

    @property
    def sizes(self) -> Array:
        """How much each point asks for: the points with the largest are likely to shape the bands."""
        return np.abs(self.r)

    def subsampled(self, rows: IntArray) -> TrainingPenaltyProblem:
        """The same problem with some of the learning points only, the penalty on their difference made up for."""
        lower, upper = self._each([term.subsampled(rows) for term in self.terms])
        return TrainingPenaltyProblem(lower, upper, self.r[rows], self.lam_pen * self.n / len(rows))

    def extended(self, z: Array, rows: IntArray, small: TrainingPenaltyProblem) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`: the same operators."""
        gamma_lo, gamma_up, alpha_0 = small._split(z)
        full = np.zeros(self.n_variables)
        full[rows], full[self.n + rows], full[2 * self.n + rows] = gamma_lo, gamma_up, alpha_0 / self.scale
        return full

    def relaxed(self, factor: float) -> TrainingPenaltyProblem:
        """The same problem with lam2 times `factor`: easier, with multipliers on the way to those of this one."""
        lower, upper = self._each([term.relaxed(factor) for term in self.terms])
        return TrainingPenaltyProblem(lower, upper, self.r, self.lam_pen)

    def restricted(self, bases: Bases) -> TrainingPenaltyProblem:
        """The same problem with operators restricted to subspaces."""
        lower, upper = self._each([term.projected(Q) for term, Q in zip(self.terms, bases, strict=True)])
        return TrainingPenaltyProblem(lower, upper, self.r, self.lam_pen)

    def lift(self, z: Array, bases: Bases) -> Array:  # noqa: ARG002
        """Variables of this problem from those of a restricted one: the same multipliers."""
        return z

    def project(self, z: Array, bases: Bases) -> Array:  # noqa: ARG002
        """Variables of a restricted problem from those of this one."""
        return z

    def lift_sides(self, sides: Sides, bases: Bases) -> Sides:
        """A primal point of this problem from one of a restricted one."""
        return tuple(side.lifted(Q) for side, Q in zip(sides, self._each(bases), strict=True))

    def positive_vectors(self, z: Array) -> list[Array]:
        """Positive eigenvectors of each term at z."""
        return self._per_term([state.positive_vectors for state in self.states(z)])

    def _per_term(self, vectors: list[Array]) -> list[Array]:
        return vectors if len(self.terms) == 2 else [np.column_stack(vectors)]

    def refine(self, z: Array, vectors: list[Array]) -> tuple[list[Array], float]:
        """Better eigenvectors at z than `vectors`, and an upper estimate of the dual value."""
        gamma_lo, gamma_up, alpha_0 = self._split(z)
        start_lo, start_up = self._each(vectors)
        lo, value_lo = self.sides[0].refine(gamma_lo + alpha_0, None, start_lo)
        up, value_up = self.sides[1].refine(gamma_up - alpha_0, None, start_up)
        linear = float((gamma_up - gamma_lo) @ self.r) - float(alpha_0 @ alpha_0) / (4 * self.lam_pen)
        return self._per_term([lo, up]), linear - value_lo - value_up

    def certificate(self, z: Array, also: Sides | None = None) -> Certificate:
        """Certificate of z; `also` is a feasible point known from elsewhere."""
        z = np.maximum(z, self.lower_bounds)
        value, _ = self.value_and_grad(z)
        lo, up = self.states(z)
        return certify(self.sides, (-self.r, self.r), (lo.primal, up.primal), value, self.objective, also)

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        separate = sum(term.objective(side) for term, side in zip(self.sides, sides, strict=True))
        return separate + self.lam_pen * float(np.square(sides[0].f - sides[1].f).sum())

    def parts(self) -> tuple[TrainingPenaltyProblem, ...]:
        """Return the problem itself: the penalty couples the sides."""
        return (self,)

    def joined_certificate(self, certificates: Sequence[Certificate]) -> Certificate:
        """Certificate from those of the parts."""
        return certificates[0]

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(*self._split(z))

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        return np.concatenate([point.gamma_lo, point.gamma_up, point.mean_alpha_0 / self.scale])
