"""One side of the bands: what is shared by every problem with the same features and penalties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array
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
    def primal(self) -> PrimalSide:
        """The operator that this point recovers."""
        return PrimalSide(self.B, 0.0, self.f)

    @cached_property
    def _Zp(self) -> Array:
        return self.part.U[:, : self.part.rank].T @ self.V

    def derivative(self, dc: Array, dW: Array | None = None) -> tuple[Array, Array]:
        """Derivative of f (n,) along ``(dc, dW)``, and that of the operator as C with ``E = C U_+' + U_+ C'``."""
        Up = self.part.U[:, : self.part.rank]
        T = (self.V * dc) @ self._Zp.T
        if dW is not None:
            T = T + dW @ Up
        C = self.part.derivative_factor(T)
        return 2 * np.einsum("ij,ij->j", C.T @ self.V, self._Zp), C


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

    @cached_property
    def gram(self) -> Array:
        """``V V'``."""
        gram: Array = self.V @ self.V.T
        return gram

    @cached_property
    def identity_values(self) -> Array:
        """Values of the operator I at the learning points, ``||Phi(X_i)||^2``."""
        return np.einsum("ij,ij->j", self.V, self.V)

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
            return np.matmul(self.V * c, self.V.T)
        Vs = self.V[:, support]
        return np.matmul(Vs * c[support], Vs.T)

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

    def objective(self, side: PrimalSide) -> float:
        """``(b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2``."""
        reg = self.regulariser
        return self.b * float(side.f.mean()) + reg.lam1 * side.trace + reg.lam2 * side.squared_norm
