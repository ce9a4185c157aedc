"""Kernel sums of squares: non-negative functions of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands._types import Array
from sosbands.kernels import KernelFeatures


@dataclass(frozen=True, eq=False)
class SoSFunction:
    """The function ``f(x) = Phi(x)' A Phi(x) + beyond v(x)`` with ``A = B B' + ridge I``, non-negative by construction.

    ``v(x) = 1 - ||L^-1 k_P(x)||^2 / k(x, x)`` is what the features leave of the kernel: 0 at the learning points, 1 far
    from them. For a kernel of constant variance a multiple of it is a sum of squares too, of functions that vanish at
    the pivots.

    Attributes
    ----------
    features : KernelFeatures
        The feature map Phi.
    B : ndarray of shape (p, rank)
        Factor of the operator.
    ridge : float
        Multiple of the identity, 0 for almost every solution.
    beyond : float
        What is added far from the learning points.
    """

    features: KernelFeatures
    B: Array
    ridge: float = 0.0
    beyond: float = 0.0

    def __post_init__(self) -> None:
        if np.ndim(self.B) != 2 or len(self.B) != self.features.rank:
            raise ValueError(f"B has shape {np.shape(self.B)}: expected {self.features.rank} rows, one per feature")
        for name in ("ridge", "beyond"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name}={value!r}: expected a finite number >= 0")

    @property
    def rank(self) -> int:
        """Number of squares in the sum (the ridge not counted)."""
        return int(self.B.shape[1])

    @property
    def operator(self) -> Array:
        """The matrix A, shape (p, p)."""
        return self.B @ self.B.T + self.ridge * np.eye(len(self.B))

    @property
    def off_data(self) -> float:
        """What the function tends to far from the learning points: what the constant contributes, and `beyond`."""
        constant = self.features.constant
        squares = constant**2 * (float(np.square(self.B[0]).sum()) + self.ridge) if constant else 0.0
        return squares + self.beyond

    @ONE_THREAD
    def __call__(self, X: Any) -> Array:
        """Values at the rows of `X`, computed in blocks: memory does not grow with rows times features."""
        if self.beyond:
            return evaluate_pair(self, self, X)[0]
        return np.concatenate([np.zeros(0), *(self._values(Phi) for Phi in self.features.blocks(X))])

    def _values(self, Phi: Array) -> Array:
        """Without what is added far from the learning points."""
        values: Array = np.square(self.B.T @ Phi).sum(axis=0)
        return values + self.ridge * np.square(Phi).sum(axis=0) if self.ridge else values

    def deployed(self) -> SoSFunction:
        """The same function without the features of the learning points, which evaluation does not need."""
        return replace(self, features=replace(self.features, V=self.features.V[:, :0].copy()))


def deployed_pair(lower: SoSFunction, upper: SoSFunction) -> tuple[SoSFunction, SoSFunction]:
    """Both functions for evaluation only; features that they share stay shared, and are computed once."""
    deployed = lower.deployed()
    if upper.features is lower.features:
        return deployed, replace(upper, features=deployed.features)
    return deployed, upper.deployed()


@ONE_THREAD
def evaluate_pair(lower: SoSFunction, upper: SoSFunction, X: Any) -> tuple[Array, Array, Array]:
    """Values of both functions and the support of X, with each feature computed once.

    The support ``||Phi(x)||^2 / k(x, x)``, without a constant among the features, is 1 at the learning points and tends
    to 0 far from them; with different features below and above it is the smaller of the two.
    """
    below, above, kept = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    same = upper.features is lower.features
    pairs = ((P, P) for P in lower.features.blocks(X)) if same else _aligned(lower, upper, X)
    for Phi_lo, Phi_up in pairs:
        below.append(lower._values(Phi_lo))
        above.append(upper._values(Phi_up))
        kept.append(np.minimum(lower.features.kept(Phi_lo), upper.features.kept(Phi_up)))
    variance = lower.features.variance(X)
    share = np.divide(np.concatenate(kept), variance, out=np.zeros(len(variance)), where=variance > 0)
    support = np.minimum(share, 1.0)
    left = 1.0 - support
    return np.concatenate(below) + lower.beyond * left, np.concatenate(above) + upper.beyond * left, support


def _aligned(lower: SoSFunction, upper: SoSFunction, X: Any) -> Iterator[tuple[Array, Array]]:
    """Features of both sides over the same blocks of rows."""
    rows = min(lower.features.block_rows, upper.features.block_rows)
    return zip(lower.features.blocks(X, rows), upper.features.blocks(X, rows), strict=True)
