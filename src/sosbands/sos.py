"""Kernel sums of squares: non-negative functions of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.kernels import KernelFeatures

BLOCK_VALUES = 4_000_000  # kernel values held at a time (32 MB)


@dataclass(frozen=True, eq=False)
class SoSFunction:
    """The function ``f(x) = Phi(x)' A Phi(x)`` with ``A = B B' + ridge I``, non-negative by construction.

    Attributes
    ----------
    features : KernelFeatures
        The feature map Phi.
    B : ndarray of shape (p, rank)
        Factor of the operator.
    ridge : float
        Multiple of the identity, 0 for almost every solution.
    """

    features: KernelFeatures
    B: Array
    ridge: float = 0.0

    @property
    def rank(self) -> int:
        """Number of squares in the sum (the ridge not counted)."""
        return int(self.B.shape[1])

    @property
    def operator(self) -> Array:
        """The matrix A, shape (p, p)."""
        return self.B @ self.B.T + self.ridge * np.eye(len(self.B))

    def __call__(self, X: Any) -> Array:
        """Values at the rows of `X`, computed in blocks: memory does not grow with rows times features."""
        rows = max(1, BLOCK_VALUES // max(1, self.features.rank))
        parts = [self._block(X[i : i + rows]) for i in range(0, len(X), rows)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _block(self, X: Any) -> Array:
        Phi = self.features.transform(X)
        values: Array = np.square(self.B.T @ Phi).sum(axis=0)
        return values + self.ridge * np.square(Phi).sum(axis=0) if self.ridge else values
