"""The space that operators live in: features of the learning points, and what follows from them alone."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sosbands._types import Array, IntArray
from sosbands.problems.square_features import SquareFeatures, learn_square_features


class FeatureSpace:
    """Features ``V`` of the learning points, one column each.

    Whatever the penalties are, sums and factors of them are computed once and shared by all problems of a path.

    Parameters
    ----------
    V : ndarray of shape (p, n)
    """

    def __init__(self, V: Array) -> None:
        self.V = V
        self.p, self.n = V.shape
        self._projected: tuple[Array, FeatureSpace] | None = None

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

    @cached_property
    def square_features(self) -> SquareFeatures:
        """Features of the squared kernel, in which the second derivatives are small matrices."""
        return learn_square_features(self.V)

    def weighted_gram(self, c: Array) -> Array:
        """``V Diag(c) V'``, touching only the columns with a non-zero weight."""
        (support,) = np.nonzero(c)
        if 2 * len(support) > self.n:
            return np.asarray((self.V * c) @ self.V.T)
        Vs = self.V[:, support]
        return np.asarray((Vs * c[support]) @ Vs.T)

    def projected(self, Q: Array) -> FeatureSpace:
        """The subspace spanned by the orthonormal columns of Q.

        The last one is remembered: along a path most problems are solved in the subspace of their neighbour.
        """
        if self._projected is None or self._projected[0] is not Q:
            space = FeatureSpace(Q.T @ self.V)
            if "gram" in self.__dict__:
                space.__dict__["gram"] = Q.T @ self.gram @ Q
            self._projected = (Q, space)
        return self._projected[1]

    def subsampled(self, rows: IntArray) -> FeatureSpace:
        """The same features at some of the learning points."""
        return FeatureSpace(np.ascontiguousarray(self.V[:, rows]))
