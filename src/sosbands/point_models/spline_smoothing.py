"""Generalised cross-validation for the cubic smoothing spline, for many degrees of smoothing at once.

Notation of Green & Silverman (1994): with knots ``t``, weights ``W``, banded ``Q`` (second differences) and ``R``
(roughness), the fit is ``y - lam W^-1 Q g`` with ``(R + lam T) g = Q'y``, ``T = Q' W^-1 Q``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solveh_banded

from sosbands._types import Array

TIE = 1e-4  # knots closer than this, on [0, 1], are one: second differences lose digits with their inverse square
GRID, REFINED = 49, 17
# Of a degree of freedom (Kim & Gu, J. R. Statist. Soc. B 66, 2004). Plain generalised cross-validation, 1, too often
# follows single rows where noise varies: benchmarks/spline_smoothing.py.
COST = 1.4


class Knots(NamedTuple):
    """Different values of the feature on [0, 1], increasing, with mean, number and inner spread of their targets."""

    t: Array
    y: Array
    weight: Array
    spread: float  # sum of squares of the targets around the mean at their knot


def merge_ties(t: Array, y: Array) -> Knots:
    """Knots of rows that need neither be different nor sorted."""
    order = np.argsort(t, kind="stable")
    t, y = t[order], y[order]
    _, first, group, count = np.unique(np.rint(t / TIE), return_index=True, return_inverse=True, return_counts=True)
    mean = np.add.reduceat(y, first) / count
    spread = float(np.square(y - mean[group]).sum())
    return Knots(np.add.reduceat(t, first) / count, mean, count.astype(float), spread)


def best_smoothing(knots: Knots, cost: float = COST) -> float:
    """Minimiser of generalised cross-validation over ``lam``: a logarithmic grid, and a finer one around its best."""
    n = len(knots.t)
    # lam d_k with d_k ~ (pi k)^4/n, k < n, is what shrinks the k-th mode: from nearly interpolating to a straight line
    grid = n * np.geomspace(1e-3 / (np.pi * n) ** 4, 1e3, GRID)
    for _ in range(2):
        best = int(np.argmin(gcv_scores(knots, grid, cost)))
        grid = np.geomspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], REFINED)
    return float(grid[np.argmin(gcv_scores(knots, grid, cost))])


def gcv_scores(knots: Knots, lam: Array, cost: float = COST) -> Array:
    """``N RSS(lam) / (N - cost tr A(lam))^2`` over the N rows, ties counted one by one.

    Infinite where ``cost tr A`` is N or more.

    Parameters
    ----------
    knots : Knots
        At least 3 of them.
    lam : ndarray of shape (k,)
        Degrees of smoothing, > 0.
    cost : float
        Of a degree of freedom, >= 1.
    """
    R, T, second = _bands(knots)
    n_rows = knots.weight.sum()
    left = n_rows - cost * (len(knots.t) - lam * _trace_of_solve(R, T, lam))
    squares = np.array([_weighted_squares(R, T, second, value) for value in lam]) + knots.spread
    scores: Array = np.where(left > 0, n_rows * squares / np.where(left > 0, left, 1.0) ** 2, np.inf)
    return scores


def _bands(knots: Knots) -> tuple[Array, Array, Array]:
    """R and T by diagonals (row k: the k-th above the main one, zeros at its end), and ``Q'y``."""
    h = np.diff(knots.t)
    v = 1 / knots.weight
    a, c = 1 / h[:-1], 1 / h[1:]
    b = -(a + c)
    R, T = np.zeros((3, len(a))), np.zeros((3, len(a)))
    R[0], R[1, :-1] = (h[:-1] + h[1:]) / 3, h[1:-1] / 6
    T[0] = a**2 * v[:-2] + b**2 * v[1:-1] + c**2 * v[2:]
    T[1, :-1] = b[:-1] * a[1:] * v[1:-2] + c[:-1] * b[1:] * v[2:-1]
    T[2, :-2] = c[:-2] * a[2:] * v[2:-2]
    return R, T, np.diff(np.diff(knots.y) / h)


def _weighted_squares(R: Array, T: Array, second: Array, lam: float) -> float:
    """``sum_i w_i (y_i - f(t_i))^2 = lam^2 g'T g``."""
    g = solveh_banded(R + lam * T, second, lower=True)
    product = T[0] @ g**2 + 2 * (T[1, :-1] @ (g[:-1] * g[1:])) + 2 * (T[2, :-2] @ (g[:-2] * g[2:]))
    return float(lam**2 * product)


def _trace_of_solve(R: Array, T: Array, lam: Array) -> Array:
    """``tr((R + lam T)^-1 T)`` for every lam, from the central bands of the inverse (Hutchinson & de Hoog 1985)."""
    m = R.shape[1]
    B = R[:, :, None] + T[:, :, None] * lam
    d, l1, l2 = (np.zeros((m + 2, len(lam))) for _ in range(3))  # B = L D L', two rows of zeros at the end
    for i in range(m):
        d[i] = B[0, i] - l1[i - 1] ** 2 * d[i - 1] - l2[i - 2] ** 2 * d[i - 2]
        l1[i] = (B[1, i] - l1[i - 1] * l2[i - 1] * d[i - 1]) / d[i]
        l2[i] = B[2, i] / d[i]
    S = np.zeros((3, m + 2, len(lam)))
    for i in reversed(range(m)):
        S[2, i] = -l1[i] * S[1, i + 1] - l2[i] * S[0, i + 2]
        S[1, i] = -l1[i] * S[0, i + 1] - l2[i] * S[1, i + 1]
        S[0, i] = 1 / d[i] - l1[i] * S[1, i] - l2[i] * S[2, i]
    trace: Array = np.einsum("ki,kil->l", np.array([[1.0], [2.0], [2.0]]) * T, S[:, :m])
    return trace
