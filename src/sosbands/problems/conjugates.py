"""Regularisers of the operators, their Fenchel conjugates and the conjugates' derivatives.

``conjugate(M) -> (value, gradient)``: the gradient is the primal point. No input is written to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sosbands._types import Array


@dataclass(frozen=True, eq=False)
class PositivePart:
    """Eigenpairs of ``M - lam1 I`` in descending order; the first `rank` eigenvalues are positive."""

    w: Array
    U: Array
    rank: int
    lam2: float

    @property
    def value(self) -> float:
        """``Omega*(M) = ||[M - lam1 I]_+||_F^2 / (4 lam2)``."""
        return float(np.square(self.w[: self.rank]).sum() / (4 * self.lam2))

    @property
    def factor(self) -> Array:
        """B with ``B B' = [M - lam1 I]_+ / (2 lam2)``, the gradient of Omega*."""
        return self.U[:, : self.rank] * np.sqrt(self.w[: self.rank] / (2 * self.lam2))

    @property
    def curvature(self) -> Array:
        """Eigenvalues of the second derivative, (p, p) in the basis of products of eigenvectors."""
        w, r = self.w, self.rank
        weights = np.zeros((len(w), len(w)))
        weights[:r, :r] = 1.0
        weights[r:, :r] = w[:r] / (w[:r] - w[r:, None])
        weights[:r, r:] = weights[r:, :r].T
        return weights / (2 * self.lam2)

    @property
    def n_pairs(self) -> int:
        """Pairs of eigenvectors, one of them positive: as many squares make the second derivative."""
        return self.rank * len(self.w) - self.rank * (self.rank - 1) // 2

    @property
    def pair_weights(self) -> Array:
        """Weights (rank, p) of products of a positive and another eigenvector, each pair once.

        The second derivative along ``D`` is the sum over pairs of weight times ``(u_k'D u_l)^2``.
        """
        w, r = self.w, self.rank
        weights = np.full((r, len(w)), 2.0)
        weights[:, r:] *= w[:r, None] / (w[:r, None] - w[r:])
        weights[:, :r] = np.triu(weights[:, :r], 1) + np.eye(r)
        return weights / (2 * self.lam2)

    def derivative_factor(self, T: Array) -> Array:
        """Half of the directional derivative of the gradient, in factor form.

        With ``D`` the direction, ``T = D U_+`` and ``U_+`` the positive eigenvectors, returns C such that
        the derivative of the gradient along D is ``C U_+' + U_+ C'``. The weights are the divided
        differences of ``max(w, 0)``: 1 inside the positive part, ``w_k / (w_k - w_l)`` across.
        """
        r = self.rank
        weights = np.full((len(self.w), r), 0.5)
        weights[r:] = self.w[:r] / (self.w[:r] - self.w[r:, None])
        return self.U @ (weights * (self.U.T @ T)) / (2 * self.lam2)


@dataclass(frozen=True)
class TraceFrobenius:
    """``Omega(A) = lam1 tr A + lam2 ||A||_F^2`` on positive semidefinite A, +inf elsewhere."""

    lam1: float
    lam2: float

    def decompose(self, M: Array) -> PositivePart:
        """All eigenpairs of ``M - lam1 I``: a missed positive one would make the dual value too large."""
        w, U = np.linalg.eigh(M)
        w = w[::-1] - self.lam1
        return PositivePart(w, U[:, ::-1], int(np.count_nonzero(w > 0)), self.lam2)

    def conjugate(self, M: Array) -> tuple[float, Array]:
        """``Omega*(M)`` and its gradient ``[M - lam1 I]_+ / (2 lam2)``."""
        part = self.decompose(M)
        return part.value, part.factor @ part.factor.T


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
        """Second derivative at W: eigenvectors U, and its eigenvalues (p, p) in the products of them.

        The divided differences of the soft threshold; without a threshold any basis will do, and U is the identity.
        """
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
