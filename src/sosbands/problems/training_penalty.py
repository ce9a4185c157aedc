"""The training-set penalty ``lam_pen sum_i s_i (f_lo(X_i) - f_up(X_i))^2``, with shares s_i that are 1 unless given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.base import Argument, BandDual, DualState
from sosbands.problems.certificate import Sides
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.pair_preconditioner import PairNewtonMatrix
from sosbands.problems.recovery import best_in_range
from sosbands.problems.side import SideTerm
from sosbands.problems.square_preconditioner import SquareNewtonMatrix

MIN_ROWS = 50  # with fewer alpha_0 plain conjugate gradients are quick
NewtonMatrix = PairNewtonMatrix | SquareNewtonMatrix
MANY_ROWS, MANY_PAIRS = 5_000, 200  # above both what each step computes of all rows and pairs is worth avoiding


class TrainingPenaltyProblem(BandDual):
    """Both sides, pulled together at the learning points.

    Dual, maximised over ``gamma_lo, gamma_up >= 0`` and a free alpha_0:

        (gamma_up - gamma_lo)'r - sum_i alpha_0i^2 / (4 lam_pen s_i)
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
    shares : ndarray of shape (n,) or float
        Positive; what the difference at each point counts.
    """

    def __init__(self, lower: SideTerm, upper: SideTerm, r: Array, lam_pen: float, shares: Array | float = 1.0) -> None:
        super().__init__((lower, upper), (-r, r), n_coupling=len(r))
        self.r, self.lam_pen, self.shares = r, lam_pen, shares
        self.pens = lam_pen * shares  # of each point
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen)))
        self._matrix: tuple[DualState, NewtonMatrix] | None = None  # of the last preconditioner

    def with_terms(self, terms: tuple[SideTerm, ...], rows: IntArray | None = None) -> TrainingPenaltyProblem:
        """The same problem with other terms; with fewer points the penalty on their difference is made up for."""
        lower, upper = self.per_side(terms)
        if rows is None:
            return TrainingPenaltyProblem(lower, upper, self.r, self.lam_pen, self.shares)
        shares = self.shares[rows] if isinstance(self.shares, np.ndarray) else self.shares
        return TrainingPenaltyProblem(lower, upper, self.r[rows], self.lam_pen * self.n / len(rows), shares)

    def _alpha_0(self, z: Array) -> Array:
        return self.scale * z[2 * self.n :]

    def arguments(self, z: Array) -> tuple[Argument, ...]:
        """``gamma_lo + alpha_0`` and ``gamma_up - alpha_0``."""
        (gamma_lo, gamma_up), alpha_0 = self.multipliers(z), self._alpha_0(z)
        return (gamma_lo + alpha_0, None), (gamma_up - alpha_0, None)

    def matrix_arguments(self, z: Array) -> tuple[Argument, ...]:
        """The multipliers are sparse, alpha_0 is not: its n p^2 operations serve both sides if they share features."""
        lower, upper = self.sides
        if lower is not upper:
            return self.arguments(z)
        gamma_lo, gamma_up = self.multipliers(z)
        G = lower.space.weighted_gram(self._alpha_0(z))
        return (gamma_lo, G), (gamma_up, -G)

    def coupling(self, z: Array) -> tuple[float, Array]:
        """``sum_i alpha_0i^2 / (4 lam_pen s_i)`` and its gradient."""
        alpha_0 = self._alpha_0(z)
        slope = alpha_0 / (2 * self.pens)
        return float(alpha_0 @ slope) / 2, slope

    def coupling_gradient(self, state: DualState) -> Array:
        """Gradient in ``alpha_0 / scale``: ``scale (f_up - f_lo - alpha_0 / (2 lam_pen s))``."""
        lo, up = state.sides
        return self.scale * (up.f - lo.f - state.slope)

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        lo, up = self.state(z).sides
        full = np.zeros(self.n_variables)

        def product(d: Array) -> Array:
            full[support] = d
            (d_lo, d_up), d_alpha = self.multipliers(full), self._alpha_0(full)
            h_lo, _ = lo.derivative(d_lo + d_alpha)
            h_up, _ = up.derivative(d_up - d_alpha)
            h_alpha = self.scale * (h_lo - h_up + d_alpha / (2 * self.pens))
            return np.concatenate([h_lo, h_up, h_alpha])[support]

        return product

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the free variables (all alpha_0 are free)."""
        if self.n < MIN_ROWS:
            return None
        state = self.state(z)
        if self._matrix is None or self._matrix[0] is not state or self._matrix[1].shift != shift:
            self._matrix = (state, self._newton_matrix(state, shift))
        return self._matrix[1].inverse(free[: self.n], free[self.n : 2 * self.n])

    def _newton_matrix(self, state: DualState, shift: float) -> NewtonMatrix:
        """From the squared kernel where that is quicker; it knows no shares of single rows."""
        lower, upper = self.sides
        own = self.scale**2 / (2 * self.pens)
        many = self.n > MANY_ROWS and max(side.part.n_pairs for side in state.sides) > MANY_PAIRS
        if many and not isinstance(own, np.ndarray):
            spaces = (lower.space, upper.space)
            return SquareNewtonMatrix(spaces, state.sides, scale=self.scale, own=own, shift=shift)
        each = np.broadcast_to(own, self.n)
        return PairNewtonMatrix(state.sides, scale=self.scale, own=each, shift=shift)

    def extended(self, z: Array, rows: IntArray, small: TrainingPenaltyProblem) -> Array:
        """Variables from those of `small`; where all take part ``alpha_0 = 2 lam_pen s (f_up - f_lo)``."""
        full = super().extended(z, rows, small)
        if self.is_hard:
            full[2 * self.n + rows] = small._alpha_0(z) / self.scale
        else:
            lo, up = small.values_everywhere(z, self)
            full[2 * self.n :] = 2 * self.pens * (up - lo) / self.scale
        return full

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self._separate(sides) + float((self.pens * np.square(sides[0].f - sides[1].f)).sum())

    def better_sides(self, z: Array, state: DualState) -> Sides | None:
        """The best operators with the range of those recovered at z, if there are few unknowns."""
        return best_in_range(self.sides, state.sides, self.targets, self.multipliers(z), self.pens)

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n : 2 * self.n], self._alpha_0(z), ceiling=self.sides[0].ceiling)

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        point = point.below(self.sides[0].ceiling)
        return np.concatenate([point.gamma_lo, point.gamma_up, point.mean_alpha_0 / self.scale])
