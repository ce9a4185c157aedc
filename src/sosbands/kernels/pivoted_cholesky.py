"""Pivoted Cholesky factorisation ``K ~ V'V``, stopped at machine precision, at a trace or at a rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpstrf

from sosbands._types import Array, IntArray
from sosbands.exceptions import NotPositiveSemidefiniteError

_ROWS = 64  # rows of V allocated at a time


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
    column: Callable[[int], Array], diag: Array, *, floor: float, trace_left: float, max_rank: int
) -> tuple[Array, IntArray]:
    """Build the same factorisation row by row, never forming K: O(n p) kernel values, O(n p^2) operations.

    Stops as soon as the trace left out is at most `trace_left`, no pivot exceeds `floor`, or the
    rank is `max_rank`.
    """
    n = len(diag)
    residual = diag.astype(float, copy=True)
    blocks: list[Array] = []
    pivots: list[int] = []
    while len(pivots) < max_rank:
        i = int(np.argmax(residual))
        if residual[i] <= floor or np.maximum(residual, 0.0).sum() <= trace_left:
            break
        k = len(pivots)
        if k % _ROWS == 0:
            blocks.append(np.zeros((min(_ROWS, max_rank - k), n)))
        row = column(i).astype(float, copy=True)
        for block in blocks:
            row -= block[:, i] @ block
        row[pivots] = 0.0  # V[:, pivots] is triangular exactly, not up to rounding
        row /= np.sqrt(residual[i])
        row[i] = np.sqrt(residual[i])
        blocks[-1][k % _ROWS] = row
        residual -= row**2
        residual[i] = 0.0
        pivots.append(i)
    V = np.concatenate(blocks)[: len(pivots)] if blocks else np.zeros((0, n))
    return V, np.array(pivots, dtype=np.intp)


def check_remainder(K: Array | None, diag: Array, V: Array, floor: float) -> None:
    """Raise if what the factorisation left out cannot be rounding of a positive semidefinite matrix.

    Rounding leaves a few `floor` at most. With the full matrix `K` the off-diagonal remainder is checked
    too (``|S_ij| <= (S_ii + S_jj) / 2`` for S PSD), which catches zero diagonals with non-zero rows.
    """
    residual = diag - np.einsum("ij,ij->j", V, V)
    excess = float(-residual.min(initial=0.0))
    if K is not None and len(V) < len(diag):
        S = np.abs(K - V.T @ V)
        excess = max(excess, float((S - 0.5 * (residual[:, None] + residual[None, :])).max()))
    if excess > 10 * floor:
        raise NotPositiveSemidefiniteError(
            f"the kernel matrix is not positive semidefinite: after {len(V)} pivots a negative part of {excess:.3g} "
            f"is left (largest diagonal entry {diag.max():.3g}). Clip its negative eigenvalues to zero, or use "
            "another kernel."
        )
