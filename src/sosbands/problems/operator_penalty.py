"""The operator penalty ``lam_pen1 ||A_lo - A_up||_* + lam_pen2 ||A_lo - A_up||_F^2``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.base import Argument, BandDual, DualState
from sosbands.problems.certificate import Bases, Sides
from sosbands.problems.conjugates import NuclearFrobenius
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.operators import difference_eigenvalues
from sosbands.problems.side import SideState, SideTerm

if TYPE_CHECKING:
    from sosbands.problems.proximal import Centre, ProximalStep


@lru_cache(maxsize=4)
def _triangle(p: int) -> tuple[IntArray, IntArray, Array]:
    """Positions of the upper triangle in a flat matrix and in its transpose, and the factors of `pack_symmetric`."""
    rows, columns = np.triu_indices(p)
    return rows * p + columns, columns * p + rows, np.where(rows == columns, 1.0, np.sqrt(2.0))


def pack_symmetric(W: Array) -> Array:
    """Upper triangle of W as a vector of the same norm: off-diagonal entries times sqrt 2."""
    upper, _, factors = _triangle(len(W))
    return np.asarray(W.reshape(-1)[upper] * factors)


def unpack_symmetric(w: Array, p: int) -> Array:
    """Inverse of :func:`pack_symmetric`."""
    upper, lower, factors = _triangle(p)
    W = np.empty(p * p)
    W[upper] = W[lower] = w / factors
    return W.reshape(p, p)


def _diagonal_curvature(state: SideState, U: Array) -> Array:
    """Diagonal of a side's curvature in the products of the columns of U, its symmetric cross terms left out."""
    squared = np.square(state.part.U.T @ U)
    return np.asarray(squared.T @ state.part.curvature @ squared)


class OperatorPenaltyProblem(BandDual):
    """Both sides with the same features, pulled together as operators.

    Dual, maximised over ``gamma_lo, gamma_up >= 0`` and a symmetric W:

        (gamma_up - gamma_lo)'r - Omega_pen*(W)
        - Omega*(V Diag(gamma_lo - b/n) V' - W) - Omega*(V Diag(gamma_up - b/n) V' + W)

    The variables are ``z = (gamma_lo, gamma_up, w / scale)`` with w the packed W: ``w'w = ||W||_F^2``, so that
    gradients need no special case.

    Parameters
    ----------
    term : SideTerm
        Features and penalties of both sides.
    r : ndarray of shape (n,)
        Residuals.
    lam_pen1, lam_pen2 : float
        Nuclear (>= 0) and squared Frobenius (> 0) penalties, finite.
    """

    def __init__(self, term: SideTerm, r: Array, lam_pen1: float, lam_pen2: float) -> None:
        self.p = term.space.p
        super().__init__((term, term), (-r, r), n_coupling=self.p * (self.p + 1) // 2)
        self.r = r
        self.penalty = NuclearFrobenius(lam_pen1, lam_pen2)
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen2)))

    def with_terms(self, terms: tuple[SideTerm, ...], rows: IntArray | None = None) -> OperatorPenaltyProblem:
        """The same problem with another term, of the learning points in `rows` if given."""
        r, pen = self.r if rows is None else self.r[rows], self.penalty
        return OperatorPenaltyProblem(terms[0], r, pen.lam_pen1, pen.lam_pen2)

    def _W(self, z: Array) -> Array:
        return unpack_symmetric(self.scale * z[2 * self.n :], self.p)

    def arguments(self, z: Array) -> tuple[Argument, ...]:
        """The multipliers, with -W below and W above."""
        (gamma_lo, gamma_up), W = self.multipliers(z), self._W(z)
        return (gamma_lo, -W), (gamma_up, W)

    def evaluate(self, z: Array) -> tuple[SideState, ...]:
        """Eigenpairs of both sides, decomposed anew, and one decomposition more for a nuclear penalty."""
        self.decompositions += self.penalty.lam_pen1 > 0
        return super().evaluate(z)

    def coupling(self, z: Array) -> tuple[float, Array]:
        """``Omega_pen*(W)`` and its gradient."""
        return self.penalty.conjugate(self._W(z))

    def coupling_gradient(self, state: DualState) -> Array:
        """Gradient in ``w / scale``: ``A_lo - A_up - grad Omega_pen*(W)``, packed and scaled."""
        lo, up = state.sides
        return self.scale * pack_symmetric(lo.B @ lo.B.T - up.B @ up.B.T - state.slope)

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        lo, up = self.state(z).sides
        coupled = self._coupling_derivative(z)
        full = np.zeros(self.n_variables)

        def product(d: Array) -> Array:
            full[support] = d
            (d_lo, d_up), dW = self.multipliers(full), self._W(full)
            h_lo, E_lo = lo.matrix_derivative(d_lo, -dW)
            h_up, E_up = up.matrix_derivative(d_up, dW)
            h_W = E_up - E_lo + coupled(dW)
            return np.concatenate([h_lo, h_up, self.scale * pack_symmetric(h_W)])[support]

        return product

    def _coupling_derivative(self, z: Array) -> Callable[[Array], Array]:
        """Derivative of ``grad Omega_pen*`` along a change of W."""
        self.decompositions += self.penalty.lam_pen1 > 0
        return self.penalty.derivative(self._W(z))

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array]:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the free variables (all of W is free).

        Block by block: the free multipliers of each side, and W by the diagonal of its curvature in a basis that makes
        the largest part of it diagonal: the eigenvectors of W where there is a threshold, those of the lower side else.
        """
        lo, up = self.state(z).sides
        f_lo, f_up = np.flatnonzero(free[: self.n]), np.flatnonzero(free[self.n : 2 * self.n])
        blocks = [
            cho_factor(state.hessian_block(rows) + (shift + 1e-10) * np.eye(len(rows)), lower=True)
            for state, rows in ((lo, f_lo), (up, f_up))
        ]
        cut = [len(f_lo), len(f_lo) + len(f_up)]
        self.decompositions += self.penalty.lam_pen1 > 0
        U, own = self.penalty.curvature(self._W(z))
        U = U if self.penalty.lam_pen1 > 0 else lo.part.U
        diagonal = self.scale**2 * (own + _diagonal_curvature(lo, U) + _diagonal_curvature(up, U)) + shift

        def apply(rhs: Array) -> Array:
            *gammas, w = np.split(rhs, cut)
            solved = [cho_solve(block, part) for block, part in zip(blocks, gammas, strict=True)]
            R = U.T @ unpack_symmetric(w, self.p) @ U
            return np.concatenate([*solved, pack_symmetric(U @ (R / diagonal) @ U.T)])

        return apply

    def extended(self, z: Array, rows: IntArray, small: OperatorPenaltyProblem) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`."""
        full = super().extended(z, rows, small)
        full[2 * self.n :] = z[2 * small.n :]
        return full

    def lift(self, z: Array, bases: Bases) -> Array:
        """Variables of this problem from those of a restricted one: ``W = Q W_Q Q'``."""
        Q = bases[0]
        small = unpack_symmetric(z[2 * self.n :], Q.shape[1])
        return np.concatenate([z[: 2 * self.n], pack_symmetric(Q @ small @ Q.T)])

    def project(self, z: Array, bases: Bases) -> Array:
        """Variables of a restricted problem from those of this one: ``W_Q = Q' W Q``."""
        Q = bases[0]
        W = unpack_symmetric(z[2 * self.n :], self.p)
        return np.concatenate([z[: 2 * self.n], pack_symmetric(Q.T @ W @ Q)])

    def principal_bases(self) -> Bases:
        """The eigenvectors of ``VV'``, in which what the directions cost is a diagonal matrix."""
        return (np.linalg.eigh(self.terms[0].space.gram)[1],)

    def centre(self, z: Array) -> Centre:
        """Where the proximal point method starts: these multipliers, and no operators."""
        from sosbands.problems.proximal import zero_centre  # it states a problem of this kind

        return zero_centre(self, z)

    def step_from(self, centre: Centre, firmness: float) -> ProximalStep:
        """One step of the proximal point method."""
        from sosbands.problems.proximal import ProximalStep

        return ProximalStep(self, centre, firmness)

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self._separate(sides) + self.penalty.of_eigenvalues(difference_eigenvalues(*sides))

    def better_sides(self, z: Array, state: DualState) -> Sides | None:  # noqa: ARG002
        """None: what couples the operators is no function of their values."""
        return None

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n : 2 * self.n], W=self._W(z), ceiling=self.sides[0].ceiling)

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        point = point.below(self.sides[0].ceiling)
        if point.W is not None and point.W.shape == (self.p, self.p):
            W = point.W
        else:
            # W that gives both operators the arguments they have at `point`: see DualPoint.weights
            W = self.terms[0].space.weighted_gram(-point.mean_alpha_0)
        return np.concatenate([point.gamma_lo, point.gamma_up, pack_symmetric(W) / self.scale])
