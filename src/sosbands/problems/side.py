"""One side of the bands: what its operator costs, the bounds of its multipliers, and its conjugate at a point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.box import Box
from sosbands.problems.conjugates import PositivePart, TraceFrobenius
from sosbands.problems.operators import PrimalSide
from sosbands.problems.space import FeatureSpace


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


@dataclass(frozen=True)
class SideCost:
    """What one side pays: ``(b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2``.

    Attributes
    ----------
    b : float
        Width penalty.
    lam1, lam2 : float
        Trace and squared Frobenius penalties.
    """

    b: float
    lam1: float
    lam2: float

    @property
    def stiffness(self) -> float:
        """How much the linear penalties outweigh lam2 for residuals of size one: large is close to a linear program."""
        return max(self.b, self.lam1) / (2 * self.lam2)

    def relaxed(self, factor: float) -> SideCost:
        """The same with lam2 times `factor`."""
        return replace(self, lam2=factor * self.lam2)


class SideTerm:
    """One side of the bands: the space of its operators, what they cost, and the bounds of its multipliers.

    Shared by all problems along a path of symmetry penalties.

    Parameters
    ----------
    space : FeatureSpace
    cost : SideCost
    """

    def __init__(self, space: FeatureSpace, cost: SideCost) -> None:
        self.space, self.cost = space, cost
        self.regulariser = TraceFrobenius(cost.lam1, cost.lam2)

    @classmethod
    def of(cls, V: Array, **cost: float) -> SideTerm:
        """From features (p, n) and the numbers of a `SideCost`."""
        return cls(FeatureSpace(V), SideCost(**cost))

    @property
    def bounds(self) -> Box:
        """Of the multipliers, one per learning point."""
        return Box(np.zeros(self.space.n), np.full(self.space.n, np.inf))

    def evaluate(self, c: Array, W: Array | None = None) -> SideState:
        """State at ``M = V Diag(c - b/n) V' + W``; one eigendecomposition."""
        M = self.space.weighted_gram(c)
        if self.cost.b:
            M -= (self.cost.b / self.space.n) * self.space.gram
        if W is not None:
            M += W
        part = self.regulariser.decompose(M)
        B = part.factor
        return SideState(self.space.V, part, B, np.square(B.T @ self.space.V).sum(axis=0))

    def refine(self, c: Array, W: Array | None, X: Array) -> tuple[Array, float]:
        """Approximate positive eigenvectors at ``(c, W)`` from the span of X and M X.

        Returns them with the value of Omega* that they give, a lower bound of the true one. Costs two
        products with blocks of vectors, no decomposition of a (p, p) matrix.
        """
        V, weights = self.space.V, c - self.cost.b / self.space.n

        def product(Y: Array) -> Array:
            MY = V @ (weights[:, None] * (V.T @ Y))
            return np.asarray(MY if W is None else MY + W @ Y)

        S = np.linalg.qr(np.column_stack([X, product(X)]))[0]
        part = self.regulariser.decompose(S.T @ product(S))
        return S @ part.U[:, : part.rank], part.value

    def objective(self, side: PrimalSide) -> float:
        """``(b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2``."""
        cost = self.cost
        return cost.b * float(side.f.mean()) + cost.lam1 * side.trace + cost.lam2 * side.squared_norm

    def projected(self, Q: Array) -> SideTerm:
        """The same side with operators restricted to ``Q A Q'``, Q with orthonormal columns."""
        return SideTerm(self.space.projected(Q), self.cost)

    def subsampled(self, rows: IntArray) -> SideTerm:
        """The same side with some of the learning points only."""
        return SideTerm(self.space.subsampled(rows), self.cost)

    def relaxed(self, factor: float) -> SideTerm:
        """The same side with lam2 times `factor`."""
        return SideTerm(self.space, self.cost.relaxed(factor))
