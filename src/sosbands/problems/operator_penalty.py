"""The operator penalty ``lam_pen1 ||A_lo - A_up||_* + lam_pen2 ||A_lo - A_up||_F^2``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Bases, Certificate, Sides, certify
from sosbands.problems.conjugates import NuclearFrobenius
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.operators import difference_eigenvalues
from sosbands.problems.side import SideState, SideTerm


def pack_symmetric(W: Array) -> Array:
    """Upper triangle of W as a vector of the same norm: off-diagonal entries times sqrt 2."""
    rows, columns = np.triu_indices(len(W))
    return W[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def unpack_symmetric(w: Array, p: int) -> Array:
    """Inverse of :func:`pack_symmetric`."""
    rows, columns = np.triu_indices(p)
    W = np.zeros((p, p))
    W[rows, columns] = w * np.where(rows == columns, 1.0, np.sqrt(0.5))
    W[columns, rows] = W[rows, columns]
    return W


def _diagonal_curvature(state: SideState, U: Array) -> Array:
    """Diagonal of a side's curvature in the products of the columns of U, its symmetric cross terms left out."""
    squared = np.square(state.part.U.T @ U)
    return np.asarray(squared.T @ state.part.curvature @ squared)


class OperatorPenaltyProblem:
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
        self.term = term
        self.r = r
        self.penalty = NuclearFrobenius(lam_pen1, lam_pen2)
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen2)))
        self.n = len(r)
        entries = term.p * (term.p + 1) // 2
        self.n_variables = 2 * self.n + entries
        self.lower_bounds = np.concatenate([np.zeros(2 * self.n), np.full(entries, -np.inf)])
        self.decompositions = 0
        self._cached: tuple[Array, tuple[SideState, SideState, float, Array]] | None = None

    def _split(self, z: Array) -> tuple[Array, Array, Array]:
        n = self.n
        return z[:n], z[n : 2 * n], self.scale * z[2 * n :]

    def states(self, z: Array) -> tuple[SideState, SideState, float, Array]:
        """Eigenpairs of both sides, value and gradient of Omega_pen*, remembered for the same z."""
        if self._cached is None or not np.array_equal(self._cached[0], z):
            gamma_lo, gamma_up, w = self._split(z)
            W = unpack_symmetric(w, self.term.p)
            self.decompositions += 2 + (self.penalty.lam_pen1 > 0)
            lo, up = self.term.evaluate(gamma_lo, -W), self.term.evaluate(gamma_up, W)
            self._cached = (z.copy(), (lo, up, *self.penalty.conjugate(W)))
        return self._cached[1]

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        gamma_lo, gamma_up, _ = self._split(z)
        lo, up, pen, D = self.states(z)
        value = float((gamma_up - gamma_lo) @ self.r) - pen - lo.value - up.value
        grad_W = lo.B @ lo.B.T - up.B @ up.B.T - D
        return value, np.concatenate([-self.r - lo.f, self.r - up.f, self.scale * pack_symmetric(grad_W)])

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        lo, up, _, _ = self.states(z)
        self.decompositions += self.penalty.lam_pen1 > 0
        soft = self.penalty.derivative(unpack_symmetric(self._split(z)[2], self.term.p))
        full = np.zeros(self.n_variables)

        def product(d: Array) -> Array:
            full[support] = d
            d_lo, d_up, w = self._split(full)
            dW = unpack_symmetric(w, self.term.p)
            h_lo, E_lo = lo.matrix_derivative(d_lo, -dW)
            h_up, E_up = up.matrix_derivative(d_up, dW)
            h_W = E_up - E_lo + soft(dW)
            return np.concatenate([h_lo, h_up, self.scale * pack_symmetric(h_W)])[support]

        return product

    @property
    def terms(self) -> tuple[SideTerm, ...]:
        """The spaces that operators live in: one, shared by both sides."""
        return (self.term,)

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array]:
        """Approximate inverse of minus the Hessian plus ``shift I`` on the free variables (all of W is free).

        Block by block: the free multipliers of each side, and W by the diagonal of its curvature in a basis that makes
        the largest part of it diagonal: the eigenvectors of W where there is a threshold, those of the lower side else.
        """
        lo, up, _, _ = self.states(z)
        f_lo, f_up = np.flatnonzero(free[: self.n]), np.flatnonzero(free[self.n : 2 * self.n])
        blocks = [
            cho_factor(state.hessian_block(rows) + (shift + 1e-10) * np.eye(len(rows)), lower=True)
            for state, rows in ((lo, f_lo), (up, f_up))
        ]
        cut = [len(f_lo), len(f_lo) + len(f_up)]
        self.decompositions += self.penalty.lam_pen1 > 0
        U, own = self.penalty.curvature(unpack_symmetric(self._split(z)[2], self.term.p))
        U = U if self.penalty.lam_pen1 > 0 else lo.part.U
        diagonal = self.scale**2 * (own + _diagonal_curvature(lo, U) + _diagonal_curvature(up, U)) + shift

        def apply(rhs: Array) -> Array:
            *gammas, w = np.split(rhs, cut)
            solved = [cho_solve(block, part) for block, part in zip(blocks, gammas, strict=True)]
            R = U.T @ unpack_symmetric(w, self.term.p) @ U
            return np.concatenate([*solved, pack_symmetric(U @ (R / diagonal) @ U.T)])

        return apply

    @property
    def sizes(self) -> Array:
        """How much each point asks for: the points with the largest are likely to shape the bands."""
        return np.abs(self.r)

    def subsampled(self, rows: IntArray) -> OperatorPenaltyProblem:
        """The same problem with some of the learning points only."""
        pen = self.penalty
        return OperatorPenaltyProblem(self.term.subsampled(rows), self.r[rows], pen.lam_pen1, pen.lam_pen2)

    def extended(self, z: Array, rows: IntArray, small: OperatorPenaltyProblem) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`."""
        m = small.n
        full = np.zeros(self.n_variables)
        full[rows], full[self.n + rows], full[2 * self.n :] = z[:m], z[m : 2 * m], z[2 * m :]
        return full

    def relaxed(self, factor: float) -> OperatorPenaltyProblem:
        """The same problem with lam2 times `factor`: easier, with multipliers on the way to those of this one."""
        return OperatorPenaltyProblem(self.term.relaxed(factor), self.r, self.penalty.lam_pen1, self.penalty.lam_pen2)

    def restricted(self, bases: Bases) -> OperatorPenaltyProblem:
        """The same problem with operators restricted to a subspace."""
        pen = self.penalty
        return OperatorPenaltyProblem(self.term.projected(bases[0]), self.r, pen.lam_pen1, pen.lam_pen2)

    def lift(self, z: Array, bases: Bases) -> Array:
        """Variables of this problem from those of a restricted one: ``W = Q W_Q Q'``."""
        Q = bases[0]
        small = unpack_symmetric(z[2 * self.n :], Q.shape[1])
        return np.concatenate([z[: 2 * self.n], pack_symmetric(Q @ small @ Q.T)])

    def project(self, z: Array, bases: Bases) -> Array:
        """Variables of a restricted problem from those of this one: ``W_Q = Q' W Q``."""
        Q = bases[0]
        W = unpack_symmetric(z[2 * self.n :], self.term.p)
        return np.concatenate([z[: 2 * self.n], pack_symmetric(Q.T @ W @ Q)])

    def lift_sides(self, sides: Sides, bases: Bases) -> Sides:
        """A primal point of this problem from one of a restricted one."""
        return tuple(side.lifted(bases[0]) for side in sides)

    def positive_vectors(self, z: Array) -> list[Array]:
        """Positive eigenvectors of the term at z, those of both sides."""
        lo, up, _, _ = self.states(z)
        return [np.column_stack([lo.positive_vectors, up.positive_vectors])]

    def refine(self, z: Array, vectors: list[Array]) -> tuple[list[Array], float]:
        """Better eigenvectors at z than `vectors`, and an upper estimate of the dual value."""
        gamma_lo, gamma_up, w = self._split(z)
        W = unpack_symmetric(w, self.term.p)
        lo, value_lo = self.term.refine(gamma_lo, -W, vectors[0])
        up, value_up = self.term.refine(gamma_up, W, vectors[0])
        linear = float((gamma_up - gamma_lo) @ self.r) - self.penalty.conjugate(W)[0]
        return [np.column_stack([lo, up])], linear - value_lo - value_up

    def certificate(self, z: Array, also: Sides | None = None) -> Certificate:
        """Certificate of z; `also` is a feasible point known from elsewhere."""
        z = np.maximum(z, self.lower_bounds)
        value, _ = self.value_and_grad(z)
        lo, up, _, _ = self.states(z)
        terms = (self.term, self.term)
        return certify(terms, (-self.r, self.r), (lo.primal, up.primal), value, self.objective, also)

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        separate = self.term.objective(sides[0]) + self.term.objective(sides[1])
        return separate + self.penalty.of_eigenvalues(difference_eigenvalues(*sides))

    def parts(self) -> tuple[OperatorPenaltyProblem, ...]:
        """Return the problem itself: the penalty couples the sides."""
        return (self,)

    def joined_certificate(self, certificates: Sequence[Certificate]) -> Certificate:
        """Certificate from those of the parts."""
        return certificates[0]

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        gamma_lo, gamma_up, w = self._split(z)
        return DualPoint(gamma_lo, gamma_up, W=unpack_symmetric(w, self.term.p))

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        if point.W is not None and point.W.shape == (self.term.p, self.term.p):
            W = point.W
        else:
            # W that gives both operators the arguments they have at `point`: see DualPoint.weights
            W = self.term.weighted_gram(-point.mean_alpha_0)
        return np.concatenate([point.gamma_lo, point.gamma_up, pack_symmetric(W) / self.scale])
