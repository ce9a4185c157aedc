"""Kernel sums of squares: non-negative functions of the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from sosbands._arguments import check
from sosbands._threads import ONE_THREAD, cached_property
from sosbands._types import Array
from sosbands.kernels import KernelFeatures
from sosbands.kernels.features import LandmarkKernel

PRODUCT_ERROR = 1e-7  # of its largest value at a landmark: so much may the quick way change a function


@dataclass(frozen=True, eq=False)
class SoSFunction:
    """The function ``f(x) = Phi(x)' A Phi(x) + beyond v(x)`` with ``A = B B' + ridge I``, non-negative by construction.

    ``v(x) = 1 - ||L^-1 k_P(x)||^2 / k(x, x)`` is what the features leave of the kernel: 0 at the learning points, 1 far
    from them. For a kernel of constant variance a multiple of it is a sum of squares too, of functions that vanish at
    the pivots. Deployed features of many landmarks P look at the first of them only, and take what these leave of the
    learning points for nothing (`KernelFeatures.support_rank`).

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
            check(name, value, bool(np.isfinite(value) and value >= 0), "a finite number >= 0")

    @property
    def rank(self) -> int:
        """Number of squares in the sum (the ridge not counted)."""
        return int(self.B.shape[1])

    @property
    def operator(self) -> Array:
        """The matrix A, shape (p, p)."""
        with ONE_THREAD:
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
        if self.beyond or self.features.support_rank:
            return evaluate_pair(self, self, X)[0]
        return np.concatenate([np.zeros(0), *(self._values(Phi) for Phi in self.features.blocks(X))])

    def _values(self, Phi: Array) -> Array:
        """Without what is added far from the learning points."""
        values: Array = np.square(self.B.T @ Phi).sum(axis=0)
        return values + self.ridge * np.square(Phi).sum(axis=0) if self.ridge else values

    @cached_property
    def _weights(self) -> Array | None:
        """``C = L^-T B``, by which ``B' Phi(x) = C' k_P(x)`` takes r instead of p operations for each kernel value."""
        f, L = self.features, self.features.L
        if self.ridge or not f.support_rank:
            return None
        B = self.B[1:] if f.constant else self.B
        C: Array = solve_triangular(L, B, lower=True, trans="T", check_finite=False)
        at_landmarks = L @ B + (f.constant * self.B[0] if f.constant else 0.0)
        largest = float(np.sqrt(np.square(at_landmarks).sum(axis=1).max(initial=0.0)))
        # None where rounding might be seen: with R = L' C - B it changes a square by at most ||R|| sqrt(k(x, x)), and
        # rounding of the kernel by at most that times the sums of |C|
        error = np.linalg.norm(L.T @ C - B) + self._landmark_kernel.rounding * np.linalg.norm(np.abs(C).sum(axis=0))
        return C if 2 * error <= PRODUCT_ERROR * largest else None

    @cached_property
    def _landmark_kernel(self) -> LandmarkKernel:
        return LandmarkKernel(self.features.kernel, self.features.landmarks)

    def _products(self, K: Array) -> Array:
        """Values from kernel values of points against the landmarks, without what is added far from the data."""
        assert self._weights is not None
        parts = K @ self._weights
        if self.features.constant:
            parts += self.features.constant * self.B[0]
        return np.asarray(np.square(parts).sum(axis=1))

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and saving: the fields, without what evaluation derives from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def deployed(self) -> SoSFunction:
        """The same function without the features of the learning points, which evaluation does not need."""
        return replace(self, features=self.features.deployed())


def deployed_pair(lower: SoSFunction, upper: SoSFunction) -> tuple[SoSFunction, SoSFunction]:
    """Both functions for evaluation only; features that they share stay shared, and are computed once."""
    deployed = lower.deployed()
    if upper.features is lower.features:
        return deployed, replace(upper, features=deployed.features)
    return deployed, upper.deployed()


@ONE_THREAD
def evaluate_pair(lower: SoSFunction, upper: SoSFunction, X: Any) -> tuple[Array, Array, Array]:
    """Values of both functions and the support of X, with each feature computed once.

    The support ``||Phi(x)||^2 / k(x, x)`` (without the constant; of two the smaller) is 1 at the learning points and
    tends to 0 far from them.
    """
    empty = np.zeros(0)
    found = zip((empty, empty, empty), *_blocks(lower, upper, X), strict=True)
    below, above, kept = (np.concatenate(part) for part in found)
    variance = lower.features.variance(X)
    share = np.divide(kept, variance, out=np.zeros(len(variance)), where=variance > 0)
    support = np.minimum(share, 1.0)
    left = 1.0 - support
    return below + lower.beyond * left, above + upper.beyond * left, support


def _blocks(lower: SoSFunction, upper: SoSFunction, X: Any) -> Iterator[tuple[Array, Array, Array]]:
    """Both functions, without what is added far from the data, and what is kept of k(x, x), block by block."""
    first, second = lower.features, upper.features
    if second is first and lower._weights is not None and upper._weights is not None:
        # from kernel values against the landmarks alone
        q = first.support_rank
        for K in lower._landmark_kernel.blocks(first.check_points(X), first.block_rows):
            below = lower._products(K)
            Phi = solve_triangular(first.L[:q, :q], K[:, :q].T, lower=True, check_finite=False)
            kept = np.asarray(np.square(Phi).sum(axis=0))
            yield below, below if upper is lower else upper._products(K), kept / first.support_level
        return
    # from the features, which take a triangular solve with all landmarks
    rows = min(first.block_rows, second.block_rows)
    others = None if second is first else second.blocks(X, rows)
    for Phi in first.blocks(X, rows):
        other = Phi if others is None else next(others)
        kept = np.minimum(first.kept(Phi), second.kept(other))
        yield lower._values(Phi), upper._values(other), kept
