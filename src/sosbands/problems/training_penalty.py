"""The training-set penalty ``lam_pen sum_i s_i (f_lo(X_i) - f_up(X_i))^2``, with shares s_i that are 1 unless given.

Its preconditioner: the Hessian of one side is a sum of squares over pairs of eigenvectors, one of them positive:
``H = Y'Y``, the rows of Y being products of two functions at the learning points. Few pairs carry nearly all of it, and
what the others leave is counted as a diagonal. Newton's equations, whose variable alpha_0 has n entries, then reduce to
equations of the order of the pairs and of the free multipliers. Of very many rows and pairs the Hessian at a few pivots
tells the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Sides
from sosbands.problems.dual import Argument, BandDual, DualPoint, DualState
from sosbands.problems.side import FeatureSpace, SideState, SideTerm

MIN_ROWS = 50  # with fewer alpha_0 plain conjugate gradients are quick
MOST_PAIRS = 100  # of a side: more cost more than the iterations that they save,
FEWEST_PAIRS = 20
TELLING = 0.3  # of the other curvature of alpha_0: pairs that add less are hardly felt
MANY_ROWS, MANY_PAIRS = 5_000, 200  # above both the strongest pairs say too little
ROUNDING = 1e-12  # of the largest curvature: there may be more free multipliers than pairs


class TrainingPenaltyProblem(BandDual):
    """Both sides, pulled together at the learning points.

    Dual, maximised over ``gamma_lo, gamma_up >= 0`` and a free alpha_0:

        (gamma_up - gamma_lo)'r - sum_i alpha_0i^2 / (4 lam_pen s_i)
        - Omega*(V_lo Diag(gamma_lo + alpha_0 - b/n) V_lo') - Omega*(V_up Diag(gamma_up - alpha_0 - b/n) V_up')

    The variables are ``z = (gamma_lo, gamma_up, alpha_0 / scale)``, ``scale = min(1, sqrt(2 lam_pen))``,
    so that the curvature in the last block stays bounded as lam_pen tends to 0.

    Sides may have different features. `shares`, an array (n,) or a number, is what the difference at each point counts;
    points where it is zero have no alpha_0.
    """

    def __init__(self, lower: SideTerm, upper: SideTerm, r: Array, lam_pen: float, shares: Array | float = 1.0) -> None:
        self.pens = np.broadcast_to(lam_pen * shares, len(r))  # of each point
        (self.coupled,) = np.nonzero(self.pens)
        super().__init__((lower, upper), (-r, r), n_coupling=len(self.coupled))
        self.r, self.lam_pen, self.shares = r, lam_pen, shares
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen)))
        self._matrix: tuple[DualState, PairNewtonMatrix] | None = None  # of the last preconditioner

    def with_terms(self, terms: tuple[SideTerm, ...], rows: IntArray | None = None) -> TrainingPenaltyProblem:
        """The same problem with other terms; with fewer points the penalty on their difference is made up for."""
        lower, upper = self.per_side(terms)
        if rows is None:
            return TrainingPenaltyProblem(lower, upper, self.r, self.lam_pen, self.shares)
        shares = self.shares[rows] if isinstance(self.shares, np.ndarray) else self.shares
        return TrainingPenaltyProblem(lower, upper, self.r[rows], self.lam_pen * self.n / len(rows), shares)

    def _alpha_0(self, z: Array) -> Array:
        """Of every point; 0 where nothing couples the sides."""
        alpha_0 = np.zeros(self.n)
        alpha_0[self.coupled] = self.scale * z[2 * self.n :]
        return alpha_0

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
        alpha_0 = self.scale * z[2 * self.n :]
        slope = alpha_0 / (2 * self.pens[self.coupled])
        return float(alpha_0 @ slope) / 2, slope

    def coupling_gradient(self, state: DualState) -> Array:
        """Gradient in ``alpha_0 / scale``: ``scale (f_up - f_lo - alpha_0 / (2 lam_pen s))``."""
        lo, up = state.sides
        return self.scale * ((up.f - lo.f)[self.coupled] - state.slope)

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        lo, up = self.state(z).sides
        full = np.zeros(self.n_variables)

        def product(d: Array) -> Array:
            full[support] = d
            (d_lo, d_up), d_alpha = self.multipliers(full), self._alpha_0(full)
            h_lo, _ = lo.derivative(d_lo + d_alpha)
            h_up, _ = up.derivative(d_up - d_alpha)
            own = full[2 * self.n :] * self.scale / (2 * self.pens[self.coupled])
            h_alpha = self.scale * ((h_lo - h_up)[self.coupled] + own)
            return np.concatenate([h_lo, h_up, h_alpha])[support]

        return product

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the free variables (all alpha_0 are free)."""
        if self.n < MIN_ROWS or len(self.coupled) < self.n:
            return None
        state = self.state(z)
        if self._matrix is None or self._matrix[0] is not state or self._matrix[1].shift != shift:
            own = np.broadcast_to(self.scale**2 / (2 * self.lam_pen * self.shares), self.n)
            spaces = [side.space for side in self.sides]
            self._matrix = (state, PairNewtonMatrix(spaces, state.sides, scale=self.scale, own=own, shift=shift))
        return self._matrix[1].inverse(free[: self.n], free[self.n : 2 * self.n])

    def extended(self, z: Array, rows: IntArray, small: TrainingPenaltyProblem) -> Array:
        """Variables from those of `small`; where all take part ``alpha_0 = 2 lam_pen s (f_up - f_lo)``."""
        full = super().extended(z, rows, small)
        if self.is_hard:
            alpha_0 = np.zeros(self.n)
            alpha_0[rows] = small._alpha_0(z)
        else:
            lo, up = small.values_everywhere(z, self)
            alpha_0 = 2 * self.pens * (up - lo)
        full[2 * self.n :] = alpha_0[self.coupled] / self.scale
        return full

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self._separate(sides) + float((self.pens * np.square(sides[0].f - sides[1].f)).sum())

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n : 2 * self.n], self._alpha_0(z), ceiling=self.sides[0].ceiling)

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        point = point.below(self.sides[0].ceiling)
        return np.concatenate([point.gamma_lo, point.gamma_up, point.mean_alpha_0[self.coupled] / self.scale])


class PairFeatures(NamedTuple):
    """Y (q, n) and a diagonal with ``H ~ Y'Y + Diag(left)``, exact if nothing is left out."""

    Y: Array
    left: Array


def pair_features(state: SideState, telling: float) -> PairFeatures:
    """The pairs of eigenvectors that carry the Hessian of a side, those of at least `telling` curvature."""
    # H_ij = sum over k <= l of omega_kl Z_ki Z_li Z_kj Z_lj, k a positive eigenvector
    Z, omega = state.part.U.T @ state.V, state.part.pair_weights
    squares = np.square(Z)
    energy = (omega * (squares[: len(omega)] @ squares.T)).ravel()
    wanted = int(np.clip(np.count_nonzero(energy >= telling), FEWEST_PAIRS, MOST_PAIRS))
    if np.count_nonzero(energy) <= wanted:
        k, j = np.nonzero(energy.reshape(omega.shape))  # of the others the products are zero
        left = np.zeros(Z.shape[1])
    else:
        k, j = np.divmod(np.argpartition(energy, -wanted)[-wanted:], len(Z))
        rest = omega.copy()
        rest[k, j] = 0.0
        left = np.einsum("ij,ij->j", rest @ squares, squares[: len(omega)])
    return PairFeatures(Z[k] * Z[j] * np.sqrt(omega[k, j])[:, None], left)


def square_features(space: FeatureSpace, state: SideState) -> PairFeatures:
    """The Hessian from that at the pivots of the squared kernel, in whose feature space it is a bilinear form."""
    T, pivots, missing = space.squares
    w, E = np.linalg.eigh(state.hessian_block(pivots))
    Y = (E * np.sqrt(np.maximum(w, 0.0))).T @ T
    return PairFeatures(Y, missing * state.hessian_diagonal(np.ones(space.n, dtype=bool)))


class PairNewtonMatrix:
    """``[Y_g'Y_g + Diag(shift), Y_g'Y_a; Y_a'Y_g, Y_a'Y_a + Diag(delta)]`` and its inverse, in the order of the pairs.

    ``Y_a = scale [Y_lo; -Y_up]`` belongs to alpha_0, of curvature `own` (n,) by itself, and Y_g has the free columns of
    Y_lo and Y_up. What the pairs leave out is part of the diagonals; `shift` > 0 is added to every curvature.
    """

    def __init__(
        self, spaces: Sequence[FeatureSpace], states: Sequence[SideState], *, scale: float, own: Array, shift: float
    ) -> None:
        telling = TELLING * (float(own.min()) + shift) / scale**2
        many = len(own) > MANY_ROWS and max(state.part.n_pairs for state in states) > MANY_PAIRS
        self.lo, self.up = (
            square_features(space, state) if many else pair_features(state, telling)
            for space, state in zip(spaces, states, strict=True)
        )
        self.shift = shift
        self.delta = own + shift + scale**2 * (self.lo.left + self.up.left)
        self.Y_a = scale * np.vstack([self.lo.Y, -self.up.Y])
        X = self.Y_a / np.sqrt(self.delta)
        self.factor = _factor(X @ X.T, 1.0)  # of ``E^-1 = I + Y_a Diag(1/delta) Y_a'``

    def inverse(self, free_lo: BoolArray, free_up: BoolArray) -> Callable[[Array], Array] | None:
        """Of the rows and columns of the free multipliers and of all alpha_0; None if rounding leaves none."""
        lo, up, Y_a, delta, factor = self.lo, self.up, self.Y_a, self.delta, self.factor
        if factor is None:
            return None
        m, k = np.count_nonzero(free_lo), len(lo.Y)
        Y_g = np.zeros((len(Y_a), m + np.count_nonzero(free_up)), order="F")
        Y_g[:k, :m], Y_g[k:, m:] = lo.Y[:, free_lo], up.Y[:, free_up]
        EY = _solved(factor, Y_g)
        # eliminating alpha_0 leaves Diag(shift) + Y_g' E Y_g for the multipliers
        S = _factor(Y_g.T @ EY, self.shift + np.concatenate([lo.left[free_lo], up.left[free_up]]))
        if S is None:
            return None

        def apply(rhs: Array) -> Array:
            rhs_g, rhs_a = rhs[: Y_g.shape[1]], rhs[Y_g.shape[1] :]
            y = _solved(factor, Y_a @ (rhs_a / delta))
            x_g = _solved(S, rhs_g - y @ Y_g)
            return np.concatenate([x_g, (rhs_a - (y + EY @ x_g) @ Y_a) / delta])

        return apply


def _factor(G: Array, diagonal: Array | float) -> Array | None:
    """Cholesky factor of G with something added to its diagonal, if there is one."""
    G.flat[:: len(G) + 1] += diagonal + ROUNDING * float(np.max(G.diagonal(), initial=0.0))
    factor, failed = dpotrf(G.T, lower=1, overwrite_a=1)  # in LAPACK's order, so that it makes no copy
    return None if failed else np.asarray(factor)


def _solved(factor: Array, rhs: Array) -> Array:
    return np.asarray(dpotrs(factor, rhs, lower=1)[0]) if rhs.size else rhs
