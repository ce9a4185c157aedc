"""Kernel sums of squares: non-negative functions of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.kernels import KernelFeatures


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

    def __post_init__(self) -> None:
        if np.ndim(self.B) != 2 or len(self.B) != self.features.rank:
            raise ValueError(f"B has shape {np.shape(self.B)}: expected {self.features.rank} rows, one per feature")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge={self.ridge!r}: expected a finite number >= 0")

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
        return np.concatenate([np.zeros(0), *(self._values(Phi) for Phi in self.features.blocks(X))])

    def _values(self, Phi: Array) -> Array:
        values: Array = np.square(self.B.T @ Phi).sum(axis=0)
        return values + self.ridge * np.square(Phi).sum(axis=0) if self.ridge else values
