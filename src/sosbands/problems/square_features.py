"""Features of the squared kernel ``k(x, y)^2``, from those of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.kernels.pivoted_cholesky import greedy_pivoted_cholesky

FULL_ROWS = 400  # up to here all features are affordable, and rough kernels need them
MAX_RANK = 250
ROUGH_ROWS = 3200  # up to here rough kernels get as many features as FULL_ROWS
ROUGH_TRACE = 0.25  # with more of the trace left out conjugate gradients take thousands of iterations
ROWS_PER_FEATURE = 8  # more features than that cost more than the iterations they save
TRACE_LEFT = 1e-6


@dataclass(frozen=True, eq=False)
class SquareFeatures:
    """Features R (q, n) of the squared kernel: ``R'R ~ (V'V)^2`` entry by entry, exact at the pivots."""

    R: Array
    pivots: IntArray
    gram: Array


def learn_square_features(V: Array) -> SquareFeatures:
    """Pivoted Cholesky of the squared kernel, stopped where more features cost more than they save."""

    def entries(rows: IntArray, columns: IntArray | None) -> Array:
        return np.square(V[:, rows].T @ (V if columns is None else V[:, columns]))

    diag = np.square(np.einsum("ij,ij->j", V, V))
    R, pivots = greedy_pivoted_cholesky(
        entries,
        diag,
        floor=len(diag) * float(np.finfo(float).eps * diag.max()),
        trace_left=TRACE_LEFT * float(diag.sum()),
        max_rank=FULL_ROWS if len(diag) <= ROUGH_ROWS else MAX_RANK,
        block=32,
    )
    keep = _enough(R, diag)
    R, pivots = R[:keep], pivots[:keep]
    return SquareFeatures(R, pivots, R @ R.T)


def _enough(R: Array, diag: Array) -> int:
    """Number of features to use: all of few points, an eighth of many, more where the kernel is rough."""
    if len(diag) <= FULL_ROWS:
        return len(R)
    left = diag.sum() - np.cumsum(np.einsum("ij,ij->i", R, R))
    smooth = int(np.count_nonzero(left > ROUGH_TRACE * diag.sum())) + 1
    return min(len(R), max(smooth, min(MAX_RANK, len(diag) // ROWS_PER_FEATURE)))
