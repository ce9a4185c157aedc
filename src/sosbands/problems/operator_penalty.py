"""The operator penalty ``lam_pen1 ||A_lo - A_up||_* + lam_pen2 ||A_lo - A_up||_F^2``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Bases, PrimalSide, Sides
from sosbands.problems.dual import Argument, BandDual, DualPoint, DualState
from sosbands.problems.side import SideTerm


@dataclass(frozen=True)
class NuclearFrobenius:
    """``Omega_pen(D) = lam_pen1 ||D||_* + lam_pen2 ||D||_F^2`` on symmetric D."""

    lam_pen1: float
    lam_pen2: float

    def conjugate(self, W: Array) -> tuple[float, Array]:
        """``sum_i max(0, |eig_i(W)| - lam_pen1)^2 / (4 lam_pen2)`` and its gradient."""
        if self.lam_pen1 == 0:  # no threshold, so no decomposition is needed
            return float(np.square(W).sum() / (4 * self.lam_pen2)), W / (2 * self.lam_pen2)
        w, U = np.linalg.eigh(W)
        excess = np.maximum(np.abs(w) - self.lam_pen1, 0.0)
        slope = np.sign(w) * excess / (2 * self.lam_pen2)
        return float(np.square(excess).sum() / (4 * self.lam_pen2)), (U * slope) @ U.T

    def curvature(self, W: Array) -> tuple[Array, Array]:
        """Eigenvectors of W, and eigenvalues of the second derivative: divided differences of the soft threshold."""
        if self.lam_pen1 == 0:
            return np.eye(len(W)), np.full(W.shape, 1 / (2 * self.lam_pen2))
        w, U = np.linalg.eigh(W)
        soft = np.sign(w) * np.maximum(np.abs(w) - self.lam_pen1, 0.0)
        apart = w[:, None] - w[None, :]
        equal = np.abs(apart) <= 1e-12 * max(1.0, float(np.abs(w).max()))
        weights = np.where(equal, (np.abs(w) > self.lam_pen1)[:, None], 0.0)
        np.divide(soft[:, None] - soft[None, :], apart, out=weights, where=~equal)
        return U, weights / (2 * self.lam_pen2)

    def derivative(self, W: Array) -> Callable[[Array], Array]:
        """Directional derivative of the gradient at W."""
        U, weights = self.curvature(W)
        if self.lam_pen1 == 0:
            return lambda D: weights * D
        return lambda D: U @ (weights * (U.T @ D @ U)) @ U.T

    def of_eigenvalues(self, w: Array) -> float:
        """Value ``Omega_pen(D)`` for the eigenvalues of D."""
        return float(self.lam_pen1 * np.abs(w).sum() + self.lam_pen2 * np.square(w).sum())


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


class OperatorPenaltyProblem(BandDual):
    """Both sides with the same features, pulled together as operators.

    Dual, maximised over ``gamma_lo, gamma_up >= 0`` and a symmetric W:

        (gamma_up - gamma_lo)'r - Omega_pen*(W)
        - Omega*(V Diag(gamma_lo - b/n) V' - W) - Omega*(V Diag(gamma_up - b/n) V' + W)

    The variables are ``z = (gamma_lo, gamma_up, w / scale)`` with w the packed W: ``w'w = ||W||_F^2``, so that
    gradients need no special case. Penalties are finite, the squared Frobenius one positive.
    """

    def __init__(self, term: SideTerm, r: Array, lam_pen1: float, lam_pen2: float) -> None:
        self.p = term.space.p
        super().__init__((term, term), (-r, r), n_coupling=self.p * (self.p + 1) // 2)
        self.r = r
        self.penalty = NuclearFrobenius(lam_pen1, lam_pen2)
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen2)))
        self.per_point += lam_pen1 > 0

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
        """Approximate inverse of minus the Hessian plus ``shift I``, by blocks: multipliers of each side, and W."""
        at = [np.flatnonzero(free[k * self.n : (k + 1) * self.n]) for k in (0, 1)]
        blocks = [
            cho_factor(side.hessian_block(rows) + (shift + 1e-10) * np.eye(len(rows)), lower=True)
            for side, rows in zip(self.state(z).sides, at, strict=True)
        ]
        cuts = np.cumsum([len(rows) for rows in at])
        inverse = self._coupling_inverse(z, shift)

        def apply(rhs: Array) -> Array:
            *gammas, w = np.split(rhs, cuts)
            solved = [cho_solve(block, part, check_finite=False) for block, part in zip(blocks, gammas, strict=True)]
            return np.concatenate([*solved, inverse(w)])

        return apply

    def _coupling_inverse(self, z: Array, shift: float) -> Callable[[Array], Array]:
        """By the diagonal of the curvature of W in a basis that makes the largest part of it diagonal."""
        lo, up = self.state(z).sides
        self.decompositions += self.penalty.lam_pen1 > 0
        U, own = self.penalty.curvature(self._W(z))
        U = U if self.penalty.lam_pen1 > 0 else lo.part.U  # that of W where there is a threshold
        for side in (lo, up):  # its symmetric cross terms left out
            squared = np.square(side.part.U.T @ U)
            own = own + squared.T @ side.part.curvature @ squared
        diagonal = self.scale**2 * own + shift
        return lambda w: pack_symmetric(U @ ((U.T @ unpack_symmetric(w, self.p) @ U) / diagonal) @ U.T)

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

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self._separate(sides) + self.penalty.of_eigenvalues(difference_eigenvalues(*sides))

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


def difference_eigenvalues(first: PrimalSide, second: PrimalSide) -> Array:
    """All p eigenvalues of ``A_first - A_second``, from the factors."""
    p, shift = len(first.B), first.ridge - second.ridge
    joined = np.column_stack([first.B, second.B])
    signs = np.repeat([1.0, -1.0], [first.B.shape[1], second.B.shape[1]])
    R: Array = np.linalg.qr(joined, mode="r")  # type: ignore[assignment]  # joined = Q R, so the eigenvalues are those of R diag(signs) R'
    small = np.linalg.eigvalsh((R * signs) @ R.T)
    return np.concatenate([small, np.zeros(p - len(small))]) + shift
