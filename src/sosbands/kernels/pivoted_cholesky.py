"""Pivoted Cholesky factorisation ``K ~ V'V``, stopped at machine precision, at a trace or at a rank.

Used by `kernels` for the features of a kernel and by `problems` for those of its square.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from sosbands._types import Array, IntArray
from sosbands.exceptions import NotPositiveSemidefiniteError

Entries = Callable[[IntArray, IntArray | None], Array]


def dense_pivoted_cholesky(K: Array, floor: float) -> tuple[Array, IntArray]:
    """LAPACK's blocked factorisation of a full matrix, until no pivot exceeds `floor`.

    Returns
    -------
    V : ndarray of shape (p, n)
        Rows in the order of the pivots, columns in the order of the points.
    pivots : ndarray of shape (p,)
        ``V[:, pivots]`` is upper triangular.
    """
    factor, order, rank, _ = dpstrf(K, tol=floor, lower=0)
    order = order.astype(np.intp) - 1
    V = np.empty((rank, len(K)))
    V[:, order] = np.triu(factor[:rank])
    return V, order[:rank]


def greedy_pivoted_cholesky(
    entries: Entries, diag: Array, *, floor: float, trace_left: float, max_rank: int, block: int = 1
) -> tuple[Array, IntArray]:
    """Build such a factorisation without forming K: O(n p) entries, O(n p^2) operations.

    Stops as soon as the trace left out is at most `trace_left`, no pivot exceeds `floor`, or the rank is `max_rank`.

    Parameters
    ----------
    entries : callable
        ``entries(I, J)`` is the block of K with these rows and columns; ``J=None`` means all columns.
    diag : ndarray of shape (n,)
        Diagonal of K.
    floor, trace_left : float
        Both absolute.
    max_rank : int
    block : int
        Largest number of pivots per round. 1 takes the largest remaining diagonal entry each time, as LAPACK does;
        more take the best of a random sample of points drawn in proportion to that entry, at the speed of matrix
        products (Epperly et al., randomly pivoted Cholesky, made greedy within the sample).
    """
    residual = diag.astype(float, copy=True)
    rng = np.random.default_rng(0)
    V = np.empty((min(max_rank, 256), len(diag)))
    pivots = np.zeros(0, dtype=np.intp)
    while len(pivots) < max_rank and residual.max() > floor and residual.sum() > trace_left:
        k = len(pivots)
        size = min(block, max_rank - k, max(1, k // 4))
        candidates = _candidates(residual, size, rng)
        S = entries(candidates, candidates) - V[:k, candidates].T @ V[:k, candidates]
        triangle, order = dense_pivoted_cholesky(S, max(floor, 0.2 * float(residual[candidates].max())))
        if not len(order):  # what is left at the largest entry is rounding
            break
        order = order[:size]
        chosen = candidates[order]
        L = triangle[:size, order].T
        if k + len(order) > len(V):
            V = _longer(V, k, min(2 * len(V), max_rank))
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


def _longer(V: Array, kept: int, rows: int) -> Array:
    """So many rows, the first ones those of V; memory that is never written to takes no space and no time."""
    longer = np.empty((rows, V.shape[1]))
    longer[:kept] = V[:kept]
    return longer


def _candidates(residual: Array, size: int, rng: np.random.Generator) -> IntArray:
    """Points to choose `size` pivots from, the one with the largest residual among them."""
    largest = int(np.argmax(residual))
    if size == 1:
        return np.array([largest], dtype=np.intp)
    sample = rng.choice(len(residual), 4 * size, p=residual / residual.sum())
    return np.unique(np.append(sample, largest))


def check_remainder(K: Array | None, diag: Array, V: Array, floor: float) -> None:
    """Raise if what the factorisation left out cannot be rounding of a positive semidefinite matrix.

    Rounding leaves a few `floor` at most. With the full matrix `K` the off-diagonal remainder is checked
    too (``|S_ij| <= (S_ii + S_jj) / 2`` for S PSD), which catches zero diagonals with non-zero rows.
    """
    residual = diag - np.einsum("ij,ij->j", V, V)
    excess = float(-residual.min(initial=0.0))
    if K is not None and len(V) < len(diag):
        S = np.abs(K - V.T @ V)
        half = 0.5 * np.maximum(residual, 0.0)
        excess = max(excess, float((S - half[:, None] - half[None, :]).max()))
    if excess > 10 * floor:
        raise NotPositiveSemidefiniteError(
            f"the kernel matrix is not positive semidefinite: after {len(V)} pivots a negative part of {excess:.3g} "
            f"is left (largest diagonal entry {diag.max():.3g}). Clip its negative eigenvalues to zero, pass a "
            "matrix of single precision as float32, or use another kernel."
        )
