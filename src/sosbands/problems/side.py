"""One side of the bands: what is shared by every problem with the same features and penalties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.conjugates import PositivePart, TraceFrobenius
from sosbands.problems.operators import PrimalSide


@dataclass(frozen=True, eq=False)
class SideState:
    """``Omega*(V Diag(c - b/n) V' + W)`` at one point: eigenpairs, values of f, and derivatives."""

    V: Array
    part: PositivePart
    B: Array
    f: Array

    @property
    def value(self) -> float:
        """``Omega*`` at this point."""
        return self.part.value

    @property
    def positive_vectors(self) -> Array:
        """Eigenvectors of the positive part, shape (p, rank)."""
        return self.part.U[:, : self.part.rank]

    @property
    def primal(self) -> PrimalSide:
        """The operator that this point recovers."""
        return PrimalSide(self.B, 0.0, self.f)

    @cached_property
    def _Zp(self) -> Array:
        return self.positive_vectors.T @ self.V

    def restricted(self, rows: BoolArray) -> SideState:
        """The same state seen from some of the points only: derivatives then cost nothing for the others."""
        return SideState(self.V[:, rows], self.part, self.B, self.f[rows])

    def derivative(self, dc: Array, dW: Array | None = None) -> tuple[Array, Array]:
        """Derivative of f along ``(dc, dW)``, and that of the operator as C with ``E = C U_+' + U_+ C'``."""
        T = self.V @ (dc[:, None] * self._Zp.T)
        if dW is not None:
            T = T + dW @ self.positive_vectors
        C = self.part.derivative_factor(T)
        return 2 * np.einsum("ij,ij->j", C.T @ self.V, self._Zp), C

    def hessian_block(self, rows: IntArray) -> Array:
        """Derivatives of f at `rows` with respect to their weights, a (len(rows), len(rows)) matrix."""
        Z = self.part.U.T @ self.V[:, rows]
        r = self.part.rank
        Zp, Zm = Z[:r], Z[r:]
        H = np.square(Zp.T @ Zp)
        for k in range(r):
            across = self.part.w[k] / (self.part.w[k] - self.part.w[r:])
            H += 2 * np.outer(Zp[k], Zp[k]) * ((Zm.T * across) @ Zm)
        return np.asarray(H / (2 * self.part.lam2))

    def matrix_derivative(self, dc: Array, dW: Array) -> tuple[Array, Array]:
        """Derivatives of f and of the operator, the second as a (p, p) matrix."""
        df, C = self.derivative(dc, dW)
        half = C @ self.positive_vectors.T
        return df, half + half.T


class SideTerm:
    """Features, width penalty and regulariser of one side.

    Shared by all problems along a path of symmetry penalties, with what is expensive computed once.

    Parameters
    ----------
    V : ndarray of shape (p, n)
        Features of the learning points.
    b : float
        Width penalty: the objective has ``(b/n) sum_i f(X_i)``.
    lam1, lam2 : float
        Trace and squared Frobenius penalties.
    """

    def __init__(self, V: Array, *, b: float, lam1: float, lam2: float) -> None:
        self.V = V
        self.p, self.n = V.shape
        self.b = b
        self.regulariser = TraceFrobenius(lam1, lam2)
        self.remembered: dict[str, Any] = {}  # what others derive from V once and for all problems of a path

    @cached_property
    def gram(self) -> Array:
        """``V V'``."""
        return np.asarray(self.V @ self.V.T, dtype=float)

    @cached_property
    def identity_values(self) -> Array:
        """Values of the operator I at the learning points, ``||Phi(X_i)||^2``."""
        return np.asarray(np.einsum("ij,ij->j", self.V, self.V), dtype=float)

    @cached_property
    def constant(self) -> tuple[Array, Array] | None:
        """``(c, values of cc')`` with ``V'c`` close to 1, or None if some value is zero."""
        # the tiny ridge only makes the normal equations solvable; any c is a valid direction
        ridge = 1e-10 * np.trace(self.gram) / max(self.p, 1) * np.eye(self.p)
        c = cho_solve(cho_factor(self.gram + ridge, lower=True), self.V.sum(axis=1))
        values = np.square(c @ self.V)
        return (c, values) if values.min() > 1e-3 else None

    def weighted_gram(self, c: Array) -> Array:
        """``V Diag(c) V'``, touching only the columns with a non-zero weight."""
        (support,) = np.nonzero(c)
        if 2 * len(support) > self.n:
            return np.asarray((self.V * c) @ self.V.T)
        Vs = self.V[:, support]
        return np.asarray((Vs * c[support]) @ Vs.T)

    def evaluate(self, c: Array, W: Array | None = None) -> SideState:
        """State at ``M = V Diag(c - b/n) V' + W``; one eigendecomposition."""
        M = self.weighted_gram(c)
        if self.b:
            M -= (self.b / self.n) * self.gram
        if W is not None:
            M += W
        part = self.regulariser.decompose(M)
        B = part.factor
        return SideState(self.V, part, B, np.square(B.T @ self.V).sum(axis=0))

    def projected(self, Q: Array) -> SideTerm:
        """The same side with operators restricted to ``Q A Q'``, Q with orthonormal columns.

        The last one is remembered: along a path most problems are solved in the subspace of their neighbour.
        """
        last: tuple[Array, SideTerm] | None = self.remembered.get("projected")
        if last is not None and last[0] is Q:
            return last[1]
        term = SideTerm(Q.T @ self.V, b=self.b, lam1=self.regulariser.lam1, lam2=self.regulariser.lam2)
        if "gram" in self.__dict__:
            term.__dict__["gram"] = Q.T @ self.gram @ Q
        self.remembered["projected"] = (Q, term)
        return term

    @property
    def stiffness(self) -> float:
        """How much the linear penalties outweigh lam2 for residuals of size one: large is close to a linear program."""
        return max(self.b, self.regulariser.lam1) / (2 * self.regulariser.lam2)

    def subsampled(self, rows: IntArray) -> SideTerm:
        """The same side with some of the learning points only."""
        reg = self.regulariser
        return SideTerm(np.ascontiguousarray(self.V[:, rows]), b=self.b, lam1=reg.lam1, lam2=reg.lam2)

    def relaxed(self, factor: float) -> SideTerm:
        """The same side with lam2 times `factor`."""
        term = SideTerm(self.V, b=self.b, lam1=self.regulariser.lam1, lam2=factor * self.regulariser.lam2)
        if self.b:
            term.__dict__["gram"] = self.gram
        return term

    def refine(self, c: Array, W: Array | None, X: Array) -> tuple[Array, float]:
        """Approximate positive eigenvectors at ``(c, W)`` from the span of X and M X.

        Returns them with the value of Omega* that they give, a lower bound of the true one. Costs two
        products with blocks of vectors, no decomposition of a (p, p) matrix.
        """
        weights = c - self.b / self.n

        def product(Y: Array) -> Array:
            MY = self.V @ (weights[:, None] * (self.V.T @ Y))
            return np.asarray(MY if W is None else MY + W @ Y)

        S = np.linalg.qr(np.column_stack([X, product(X)]))[0]
        part = self.regulariser.decompose(S.T @ product(S))
        return S @ part.U[:, : part.rank], part.value

    def objective(self, side: PrimalSide) -> float:
        """``(b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2``."""
        reg = self.regulariser
        return self.b * float(side.f.mean()) + reg.lam1 * side.trace + reg.lam2 * side.squared_norm
