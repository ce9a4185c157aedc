"""Finite features of a kernel: ``K = V'V`` on the learning points and ``Phi(x)`` everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf
from sklearn.utils.validation import check_array

from sosbands._arguments import check, is_count, is_fraction
from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import warn
from sosbands.exceptions import InfeasibleProblemError, LowRankWarning, NotPositiveSemidefiniteError
from sosbands.kernels.kernels import FARTHEST, PROFILES, CallableKernel, Kernel, PrecomputedKernel, StationaryKernel

DENSE_ROWS = 4000  # up to here the full matrix (128 MB) is formed and factorised by LAPACK, unless features are few
BLOCK_VALUES = 250_000  # kernel values of new points held at a time: 2 MB stays in the cache, which is fastest
FEW_FEATURES = 4  # rows for each feature from which the full matrix is not worth its time
BLOCK_PIVOTS, SHARE_OF_BLOCK = 64, 4  # pivots chosen at a time: at most so many, and one in so many of all
SUPPORT_RANK = 256  # landmarks by which deployed features with more of them judge the support of new points
LEAST_LEVEL = 1e-3  # that these must keep of every learning point: with a tiny lengthscale they know only themselves
EXACT_ROWS, AUTO_TRACE, AUTO_RANK = 500, 1e-6, 2000  # what "auto" stands for
ANY_SHAPE = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0, "ensure_min_features": 0}
SMOOTH = frozenset({"matern52", "matern32", "gaussian"})  # in the squared distance, whose rounding is harmless then
LARGEST_RADIUS = 1000.0  # squared, in lengthscales: beyond, rounding of squared lengths might be seen
FAR = 1e6  # in lengthscales from the middle of the landmarks: far enough for any radius
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
        return np.asarray(self.kernel.diag(self.check_points(X)), dtype=float)

    def blocks(self, X: Any, rows: int | None = None) -> Iterator[Array]:
        """Features of consecutive blocks of new points, so that memory does not grow with the number of points."""
        points = self.check_points(X)
        rows = self.block_rows if rows is None else rows
        for start in range(0, len(points), rows):
            block = points[start : start + rows]
            if not isinstance(self.kernel, CallableKernel):
                block = block.astype(float, copy=False)  # block by block, so that float32 input is never copied whole
            # Φ(x) = L⁻¹ k_P(x)
            Phi: Array = solve_triangular(self.L, self.kernel(block, self.landmarks).T, lower=True, check_finite=False)
            yield _with_constant(Phi, self.constant) if self.constant else Phi

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

    def check_points(self, X: Any) -> AnyArray:
        """New points as an array of the learning points' shape; finite numbers unless a callable compares them."""
        own = isinstance(self.kernel, CallableKernel)
        points = np.asarray(X) if own else check_array(X, input_name="X", **ANY_SHAPE)
        if points.ndim == 0 or points.shape[1:] != self.point_shape:
            expected = f"({', '.join(['rows', *map(str, self.point_shape)])})"
            own = isinstance(self.kernel, PrecomputedKernel)
            meaning = "kernel values against the learning points" if own else "as the learning points"
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
    rank : "exact", "auto", int or float
        "exact" runs to machine precision; "auto" does so up to 500 points and leaves out 1e-6 of the trace above;
        an int is the largest number of features; a float in (0, 1) the relative trace that may be left out; a pair of
        them stops at whichever comes first.
    constant : bool
        Put a constant first, as large as the root of the largest ``k(x, x)``: off the data functions of the features
        then tend to a constant instead of 0.
    """
    max_rank, trace_tol = parse_rank(rank, len(X))
    diag = np.asarray(kernel.diag(X), dtype=float)
    if not np.all(np.isfinite(diag)):
        raise ValueError("kernel: k(x, x) must be finite for every learning point")
    precomputed = isinstance(kernel, PrecomputedKernel)
    if not precomputed:
        few = kernel(X[:8], X[:8].copy())
        if not np.allclose(np.diag(few), diag[:8], rtol=1e-8, atol=0.0):
            raise ValueError(
                "kernel: k(x, x) differs between a learning point and a copy of it; a noise term such as WhiteKernel "
                "has no features at new points, so remove it"
            )
        if not np.allclose(few, few.T, rtol=1e-6, atol=1e-8 * float(np.abs(few).max())):
            raise ValueError("kernel: k(x, y) differs from k(y, x): expected a symmetric kernel")
    eps = np.finfo(X.dtype).eps if precomputed and X.dtype.kind == "f" else np.finfo(float).eps
    floor = float(len(X) * eps * max(diag.max(), 0.0))
    if precomputed or len(X) <= min(DENSE_ROWS, FEW_FEATURES * max_rank):
        K = np.asarray(X, dtype=float) if precomputed else kernel(X, X)
        V, pivots = dense_pivoted_cholesky(K, floor)
        keep = min(len(V), max_rank)
        if trace_tol:  # the fewest rows of V that leave out at most so much
            left = diag.sum() - np.cumsum(np.einsum("ij,ij->i", V, V))
            enough = np.flatnonzero(left <= trace_tol * diag.sum())
            keep = min(int(enough[0]) + 1 if enough.size else len(V), max_rank)
        _check_remainder(None if isinstance(kernel, StationaryKernel) else K, diag, V, floor)
        V, pivots = np.ascontiguousarray(V[:keep]), pivots[:keep]
    else:
        V, pivots = greedy_pivoted_cholesky(
            lambda I, J: kernel(X[I], X if J is None else X[J]),
            diag,
            floor=floor,
            trace_left=trace_tol * diag.sum(),
            max_rank=max_rank,
            block=min(BLOCK_PIVOTS, max(1, max_rank // SHARE_OF_BLOCK)),
        )
        _check_remainder(None, diag, V, floor)
    if len(V) == 0:
        raise InfeasibleProblemError("kernel: k(x, y) is zero at all learning points, so every band is zero")
    kept = np.einsum("ij,ij->j", V, V)
    ratio = float((kept[diag > 0] / diag[diag > 0]).min(initial=1.0))
    if ratio < 0.5:
        warn(
            f"the {len(V)} features keep only {ratio:.2g} of the kernel at some learning point: raise `rank`",
            LowRankWarning,
        )
    left_out = max(0.0, float(1.0 - kept.sum() / diag.sum()))
    if isinstance(rank, str) and rank == "auto" and left_out > max(trace_tol, 1e-9):
        warn(
            f"rank='auto' stopped at {len(V)} features, which leave out {left_out:.1e} of the kernel's trace: bands "
            "and certificate are those of the projected kernel",
            LowRankWarning,
        )
    size = float(np.sqrt(diag.max())) if constant else 0.0
    L, landmarks = V[:, pivots].T.copy(), pivots if precomputed else X[pivots]
    return KernelFeatures(kernel, _with_constant(V, size) if constant else V, L, landmarks, left_out, ratio, size)


def parse_rank(rank: Any, n: int) -> tuple[int, float]:
    """(largest rank, relative trace that may be left out)."""
    if isinstance(rank, str) and rank in ("exact", "auto"):
        return (n, 0.0) if rank == "exact" or n <= EXACT_ROWS else (min(AUTO_RANK, n), AUTO_TRACE)
    most, left_out = rank if isinstance(rank, tuple) and len(rank) == 2 else (rank, rank)
    known = (is_count(most) and most >= 1, is_fraction(left_out))
    fine = all(known) if isinstance(rank, tuple) else any(known)
    check("rank", rank, fine, "'auto', 'exact', an int >= 1 or a float in (0, 1)")
    return min(int(most), n) if known[0] else n, float(left_out) if known[1] else 0.0


def dense_pivoted_cholesky(K: Array, floor: float) -> tuple[Array, IntArray]:
    """LAPACK's factorisation ``K ~ V'V`` until no pivot exceeds `floor`; ``V[:, pivots]`` is upper triangular."""
    factor, order, rank, _ = dpstrf(K, tol=floor, lower=0)
    order = order.astype(np.intp) - 1
    V = np.empty((rank, len(K)))
    V[:, order] = np.triu(factor[:rank])
    return V, order[:rank]


def greedy_pivoted_cholesky(
    entries: Callable[[IntArray, IntArray | None], Array],
    diag: Array,
    *,
    floor: float,
    trace_left: float,
    max_rank: int,
    block: int = 1,
) -> tuple[Array, IntArray]:
    """Build such a factorisation without forming K, which ``entries(I, J)`` gives (``J=None`` for all columns).

    It stops at the first of `trace_left`, `floor` (both absolute) and `max_rank`. With `block` above 1 the best of a
    random sample are taken, at the speed of matrix products (Epperly et al., randomly pivoted Cholesky, made greedy).
    """
    residual = diag.astype(float, copy=True)
    rng = np.random.default_rng(0)
    V = np.empty((min(max_rank, 256), len(diag)))
    pivots = np.zeros(0, dtype=np.intp)
    while len(pivots) < max_rank and residual.max() > floor and residual.sum() > trace_left:
        k = len(pivots)
        size = min(block, max_rank - k, max(1, k))
        candidates = np.array([np.argmax(residual)], dtype=np.intp)
        if size > 1:  # to choose from, the one with the largest residual among them
            sample = rng.choice(len(residual), 4 * size, p=residual / residual.sum())
            candidates = np.unique(np.append(sample, candidates))
        S = entries(candidates, candidates) - V[:k, candidates].T @ V[:k, candidates]
        triangle, order = dense_pivoted_cholesky(S, max(floor, 0.2 * float(residual[candidates].max())))
        if not len(order):  # what is left at the largest entry is rounding
            break
        order = order[:size]
        chosen = candidates[order]
        L = triangle[:size, order].T
        if k + len(order) > len(V):
            # memory that is never written to takes no space and no time
            known, V = V, np.empty((min(2 * len(V), max_rank), len(diag)))
            V[:k] = known[:k]
        rows = np.matmul(V[:k, chosen].T, V[:k], out=V[k : k + len(order)])
        np.subtract(entries(chosen, None), rows, out=rows)
        # L^-1 rows, in place: the transpose of rows is what BLAS calls contiguous
        solved = dtrsm(1.0, L, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        if not np.may_share_memory(solved, rows):
            rows[:] = solved.T
        rows[:, pivots] = 0.0  # V[:, pivots] is triangular exactly, not up to rounding
        rows[:, chosen] = L.T
        left = residual.sum() - np.cumsum(np.einsum("ij,ij->i", rows, rows))
        enough = np.flatnonzero(left <= trace_left)
        rows = rows[: int(enough[0]) + 1] if enough.size else rows
        pivots = np.concatenate([pivots, chosen[: len(rows)]])
        residual = np.maximum(residual - np.einsum("ij,ij->j", rows, rows), 0.0)
        residual[pivots] = 0.0
    return (V[: len(pivots)].copy() if 2 * len(pivots) < len(V) else V[: len(pivots)]), pivots


def _check_remainder(K: Array | None, diag: Array, V: Array, floor: float) -> None:
    """Raise if what was left out cannot be rounding of a positive semidefinite matrix, a few `floor` at most."""
    residual = diag - np.einsum("ij,ij->j", V, V)
    excess = float(-residual.min(initial=0.0))
    if K is not None and len(V) < len(diag):
        # |S_ij| <= (S_ii + S_jj) / 2 for S PSD, which catches zero diagonals with non-zero rows
        S = np.abs(K - V.T @ V)
        half = 0.5 * np.maximum(residual, 0.0)
        excess = max(excess, float((S - half[:, None] - half[None, :]).max()))
    if excess > 10 * floor:
        raise NotPositiveSemidefiniteError(
            f"the kernel matrix is not positive semidefinite: after {len(V)} pivots a negative part of {excess:.3g} "
            f"is left (largest diagonal entry {diag.max():.3g}). Clip its negative eigenvalues to zero, pass a "
            "matrix of single precision as float32, or use another kernel."
        )


class LandmarkKernel:
    """``k(x, p_j)`` of new points x and landmarks p_j, from squared distances ``|u|^2 + |v|^2 - 2 u'v``.

    They are wrong by some ``1e-15`` times the squared radius, and so are the values, as the profiles in use are smooth
    in them; where this could matter, and for other kernels, the kernel itself is called.
    """

    def __init__(self, kernel: Any, landmarks: AnyArray) -> None:
        self._kernel, self._landmarks, self._columns = kernel, landmarks, None
        self.rounding = 1e-15
        if not isinstance(kernel, StationaryKernel) or kernel.name not in SMOOTH:
            return
        scale = np.broadcast_to(np.asarray(kernel.lengthscale, dtype=float), landmarks.shape[1:])
        center = landmarks.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            v = (landmarks - center) / scale
            squares = np.square(v).sum(axis=1)
        if not np.all(squares <= LARGEST_RADIUS):
            return
        if kernel.name == "matern52":  # t in place of distances
            scale, v, squares = scale / np.sqrt(5.0), np.sqrt(5.0) * v, 5.0 * squares
        self._scale, self._center = scale, center
        self._columns = np.vstack([-2.0 * v.T, np.ones(len(v)), squares])
        self.rounding *= 1.0 + float(squares.max(initial=0.0))

    def blocks(self, points: AnyArray, rows: int) -> Iterator[Array]:
        """Kernel values (rows, p) of blocks of points, each overwritten by the next: new memory is what costs most."""
        work = np.empty((3, min(rows, len(points)), len(self._landmarks)))
        for start in range(0, len(points), rows):
            block = points[start : start + rows]
            yield self(block, work[:, : len(block)])

    def __call__(self, points: AnyArray, work: Array | None = None) -> Array:
        """Kernel values of shape ``(len(points), p)``, in one of the three arrays of `work` if it is given."""
        if self._columns is None:
            return np.asarray(self._kernel(points, self._landmarks))
        s, decay, values = np.empty((3, len(points), len(self._landmarks))) if work is None else work
        with np.errstate(over="ignore"):
            u = np.clip((points - self._center) / self._scale, -FAR, FAR)
        np.matmul(np.column_stack([u, np.square(u).sum(axis=1), np.ones(len(u))]), self._columns, out=s)
        np.sqrt(np.maximum(s, 0.0, out=s), out=s)
        if self._kernel.name != "matern52":
            return PROFILES[self._kernel.name](np.minimum(s, FARTHEST, out=s))
        # (1 + t + t^2/3) exp(-t), with t = sqrt(5) |u - v|
        np.exp(np.negative(s, out=decay), out=decay)
        np.multiply(s, 1 / 3, out=values)
        values += 1.0
        values *= s
        values += 1.0
        values *= decay
        return np.asarray(values)
