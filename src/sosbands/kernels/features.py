"""Finite features of a kernel: ``K = V'V`` on the learning points and ``Phi(x)`` everywhere."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_array

from sosbands._types import AnyArray, Array, IntArray
from sosbands.exceptions import InfeasibleProblemError, LowRankWarning
from sosbands.kernels.landmark_kernel import LandmarkKernel
from sosbands.kernels.pivoted_cholesky import check_remainder, dense_pivoted_cholesky, greedy_pivoted_cholesky
from sosbands.kernels.resolve import CallableKernel, Kernel, PrecomputedKernel
from sosbands.kernels.stationary import StationaryKernel

DENSE_ROWS = 4000  # up to here the full matrix (128 MB) is formed and factorised by LAPACK
BLOCK_VALUES = 250_000  # kernel values of new points held at a time: 2 MB stays in the cache, which is fastest
BLOCK_PIVOTS = 64
SUPPORT_RANK = 256  # landmarks by which deployed features with more of them judge the support of new points
LEAST_LEVEL = 1e-3  # that these must keep of every learning point: with a tiny lengthscale they know only themselves
EXACT_ROWS, AUTO_TRACE, AUTO_RANK = 500, 1e-6, 2000  # what "auto" stands for
Rank = str | int | float | tuple[int, float]


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """Features ``Phi(x) = L^-1 k_P(x)`` on pivots P, with ``Phi(X_i)`` = column i of `V`.

    With a constant among them, ``Phi(x) = (constant, L^-1 k_P(x))``, which are the features of ``k + constant^2``.

    Attributes
    ----------
    kernel : Kernel
        Called as ``kernel(X, Y)``.
    V : ndarray of shape (p, n)
        Features of the learning points; ``V'V`` is the kernel matrix, or its Nystrom projection on the pivots.
    L : ndarray of shape (p, p)
        Lower Cholesky factor of the kernel matrix of the pivots.
    landmarks : array
        The pivot points (for a precomputed kernel their positions).
    trace_left_out : float
        ``1 - tr(V'V)/tr(K)``.
    smallest_ratio : float
        ``min_i (V'V)_ii / K_ii`` over the learning points.
    constant : float
        The first feature, or 0 if there is none. It counts neither in the two numbers above nor as support.
    support_rank : int
        How many of the landmarks, the first ones, tell the support of new points; 0 stands for all. Pivots come in the
        order of what the earlier ones leave, so that the first ones cover the learning points.
    support_level : float
        What these keep of ``k(x, x)`` at every learning point, or more: that much counts as full support.
    """

    kernel: Kernel
    V: Array
    L: Array
    landmarks: AnyArray
    trace_left_out: float
    smallest_ratio: float
    constant: float = 0.0
    support_rank: int = 0
    support_level: float = 1.0

    @property
    def rank(self) -> int:
        """Number p of features."""
        return len(self.V)

    @property
    def point_shape(self) -> tuple[int, ...]:
        """Shape of one point; for a precomputed kernel (n,), its kernel values against the learning points."""
        if isinstance(self.kernel, PrecomputedKernel):
            return (self.V.shape[1],)
        return self.landmarks.shape[1:]

    def transform(self, X: Any) -> Array:
        """Features of new points, shape (p, len(X)). A precomputed kernel takes rows of cross-kernel values."""
        return np.concatenate([np.zeros((self.rank, 0)), *self.blocks(X)], axis=1)

    @property
    def block_rows(self) -> int:
        """Points whose features are computed at a time."""
        return max(1, BLOCK_VALUES // max(self.rank, math.prod(self.point_shape)))

    def variance(self, X: Any) -> Array:
        """``k(x, x)`` of new points; not for a precomputed kernel, which does not know it."""
        return np.asarray(self.kernel.diag(self._check_points(X)), dtype=float)

    def blocks(self, X: Any, rows: int | None = None) -> Iterator[Array]:
        """Features of consecutive blocks of new points, so that memory does not grow with the number of points."""
        points = self._check_points(X)
        rows = self.block_rows if rows is None else rows
        for start in range(0, len(points), rows):
            yield self._features(points[start : start + rows])

    def kernel_blocks(self, X: Any, k: LandmarkKernel) -> Iterator[Array]:
        """Kernel values against the landmarks, (rows, landmarks), of blocks of points; the next overwrites the last."""
        return k.blocks(self._check_points(X), self.block_rows)

    def _features(self, points: AnyArray) -> Array:
        if not isinstance(self.kernel, CallableKernel):
            points = points.astype(float, copy=False)  # block by block, so that float32 input is never copied whole
        # Φ(x) = L⁻¹ k_P(x)
        Phi: Array = solve_triangular(self.L, self.kernel(points, self.landmarks).T, lower=True, check_finite=False)
        return _with_constant(Phi, self.constant) if self.constant else Phi

    def kept_by_first(self, K: Array) -> Array:
        """What the first `support_rank` landmarks keep of ``k(x, x)``, from kernel values of points against all."""
        q = self.support_rank
        Phi = solve_triangular(self.L[:q, :q], K[:, :q].T, lower=True, check_finite=False)
        return np.asarray(np.square(Phi).sum(axis=0))

    def deployed(self) -> KernelFeatures:
        """The same features for new points only: without `V`, and with a support that few landmarks tell."""
        bare = replace(self, V=self.V[:, :0].copy())
        if len(self.L) <= SUPPORT_RANK or not isinstance(self.kernel, StationaryKernel) or not self.V.shape[1]:
            return bare
        first = self.V[1 : 1 + SUPPORT_RANK] if self.constant else self.V[:SUPPORT_RANK]
        level = float(np.einsum("ij,ij->j", first, first).min())
        if level < LEAST_LEVEL:
            return bare
        return replace(bare, support_rank=SUPPORT_RANK, support_level=level)

    def kept(self, Phi: Array) -> Array:
        """``||L^-1 k_P(x)||^2``, how much of ``k(x, x)`` the features of points keep."""
        return np.asarray(np.square(Phi[1:] if self.constant else Phi).sum(axis=0))

    def _check_points(self, X: Any) -> AnyArray:
        """New points as an array of the learning points' shape; finite numbers unless a callable compares them."""
        if isinstance(self.kernel, CallableKernel):
            points = np.asarray(X)
        else:
            points = check_array(
                X, ensure_2d=False, allow_nd=True, ensure_min_samples=0, ensure_min_features=0, input_name="X"
            )
        if points.ndim == 0 or points.shape[1:] != self.point_shape:
            expected = f"({', '.join(['rows', *map(str, self.point_shape)])})"
            meaning = (
                "kernel values against the learning points"
                if isinstance(self.kernel, PrecomputedKernel)
                else "as the learning points"
            )
            raise ValueError(f"X has shape {points.shape}: expected {expected}, {meaning}")
        return points


def _with_constant(V: Array, constant: float) -> Array:
    return np.concatenate([np.full((1, V.shape[1]), constant), V])


def learn_features(X: AnyArray, kernel: Kernel, rank: Rank = "exact", *, constant: bool = False) -> KernelFeatures:
    """Pivoted Cholesky features of the learning points.

    Parameters
    ----------
    X : array of shape (n, ...)
        Learning points; for a precomputed kernel the kernel matrix (n, n).
    kernel : Kernel
        See :mod:`sosbands.kernels.resolve`.
    rank : "exact", "auto", int or float
        "exact" runs to machine precision; "auto" does so up to 500 points and leaves out 1e-6 of the trace above;
        an int is the largest number of features; a float in (0, 1) the relative trace that may be left out; a pair of
        them stops at whichever comes first.
    constant : bool
        Put a constant first, as large as the root of the largest ``k(x, x)``: off the data functions of the features
        then tend to a constant instead of 0.
    """
    max_rank, trace_tol = _parse_rank(rank, len(X))
    diag = _checked_diag(kernel, X)
    precomputed = isinstance(kernel, PrecomputedKernel)
    eps = np.finfo(X.dtype).eps if precomputed and X.dtype.kind == "f" else np.finfo(float).eps
    floor = float(len(X) * eps * max(diag.max(), 0.0))
    if len(X) <= DENSE_ROWS or precomputed:
        K = np.asarray(X, dtype=float) if precomputed else kernel(X, X)
        V, pivots = dense_pivoted_cholesky(K, floor)
        keep = _smallest_rank(V, diag, max_rank, trace_tol)
        check_remainder(None if isinstance(kernel, StationaryKernel) else K, diag, V, floor)
        V, pivots = np.ascontiguousarray(V[:keep]), pivots[:keep]
    else:
        V, pivots = greedy_pivoted_cholesky(
            lambda I, J: kernel(X[I], X if J is None else X[J]),
            diag,
            floor=floor,
            trace_left=trace_tol * diag.sum(),
            max_rank=max_rank,
            block=BLOCK_PIVOTS,
        )
        check_remainder(None, diag, V, floor)
    if len(V) == 0:
        raise InfeasibleProblemError("kernel: k(x, y) is zero at all learning points, so every band is zero")
    features = _assemble(X, kernel, V, pivots, diag)
    if isinstance(rank, str) and rank == "auto" and features.trace_left_out > max(trace_tol, 1e-9):
        warnings.warn(
            f"rank='auto' stopped at {features.rank} features, which leave out {features.trace_left_out:.1e} of the "
            "kernel's trace: bands and certificate are those of the projected kernel",
            LowRankWarning,
            stacklevel=8,  # the caller of learn_bands
        )
    if not constant:
        return features
    size = float(np.sqrt(diag.max()))
    return replace(features, V=_with_constant(features.V, size), constant=size)


def _assemble(X: AnyArray, kernel: Kernel, V: Array, pivots: IntArray, diag: Array) -> KernelFeatures:
    landmarks = pivots if isinstance(kernel, PrecomputedKernel) else X[pivots]
    kept = np.einsum("ij,ij->j", V, V)
    ratio = float((kept[diag > 0] / diag[diag > 0]).min(initial=1.0))
    if ratio < 0.5:
        warnings.warn(
            f"the {len(V)} features keep only {ratio:.2g} of the kernel at some learning point: raise `rank`",
            LowRankWarning,
            stacklevel=9,  # the caller of learn_bands
        )
    left_out = max(0.0, float(1.0 - kept.sum() / diag.sum()))
    return KernelFeatures(kernel, V, V[:, pivots].T.copy(), landmarks, left_out, ratio)


def _smallest_rank(V: Array, diag: Array, max_rank: int, trace_tol: float) -> int:
    """Fewest rows of V that leave out at most `trace_tol` of the trace, and at most `max_rank`."""
    if trace_tol == 0:
        return min(len(V), max_rank)
    left = diag.sum() - np.cumsum(np.einsum("ij,ij->i", V, V))
    enough = np.flatnonzero(left <= trace_tol * diag.sum())
    return min(int(enough[0]) + 1 if enough.size else len(V), max_rank)


def _parse_rank(rank: Any, n: int) -> tuple[int, float]:
    """(largest rank, relative trace that may be left out)."""
    if isinstance(rank, str) and rank in ("exact", "auto"):
        return (n, 0.0) if rank == "exact" or n <= EXACT_ROWS else (min(AUTO_RANK, n), AUTO_TRACE)
    if isinstance(rank, (int, np.integer)) and not isinstance(rank, bool) and rank >= 1:
        return min(int(rank), n), 0.0
    if isinstance(rank, (float, np.floating)) and 0 < rank < 1:
        return n, float(rank)
    if isinstance(rank, tuple) and len(rank) == 2:
        return _parse_rank(rank[0], n)[0], _parse_rank(rank[1], n)[1]
    raise ValueError(f"rank={rank!r}: expected 'auto', 'exact', an int >= 1 or a float in (0, 1)")


def _checked_diag(kernel: Kernel, X: AnyArray) -> Array:
    """Diagonal of K, which must be finite and equal to ``k(x, x')`` for a copy x' of x."""
    diag = np.asarray(kernel.diag(X), dtype=float)
    if not np.all(np.isfinite(diag)):
        raise ValueError("kernel: k(x, x) must be finite for every learning point")
    if not isinstance(kernel, PrecomputedKernel):
        few = X[:8]
        K = kernel(few, few.copy())
        if not np.allclose(np.diag(K), diag[:8], rtol=1e-8, atol=0.0):
            raise ValueError(
                "kernel: k(x, x) differs between a learning point and a copy of it; a noise term such as WhiteKernel "
                "has no features at new points, so remove it"
            )
        if not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * float(np.abs(K).max())):
            raise ValueError("kernel: k(x, y) differs from k(y, x): expected a symmetric kernel")
    return diag
