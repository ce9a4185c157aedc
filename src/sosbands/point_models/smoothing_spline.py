"""A cubic smoothing spline of one feature, as a regressor, with generalised cross-validation for its smoothness.

Notation of Green & Silverman (1994): with knots ``t``, weights ``W``, banded ``Q`` (second differences) and ``R``
(roughness), the fit is ``y - lam W^-1 Q g`` with ``(R + lam T) g = Q'y``, ``T = Q' W^-1 Q``.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, make_smoothing_spline
from scipy.linalg import solveh_banded
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._arguments import check
from sosbands._types import Array

MIN_SPLINE_KNOTS = 5  # of SciPy's smoothing spline
TIE = 1e-4  # knots closer than this, on [0, 1], are one: second differences lose digits with their inverse square
GRID, REFINED = 49, 17
# Of a degree of freedom (Kim & Gu, J. R. Statist. Soc. B 66, 2004). Plain generalised cross-validation, 1, too often
# follows single rows where noise varies: benchmarks/spline_smoothing.py.
COST = 1.4


class SmoothingSplineRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Cubic smoothing spline of one feature, continued by straight lines.

    Minimises ``sum_i (y_i - f(x_i))^2 + smoothing * integral f''(t)^2 dt`` with the feature mapped to ``t`` in [0, 1].
    Rows of equal x (to 1e-4 of the range) are averaged and weighted by their number, which gives the same function.
    With fewer than 5 different x the fit is the straight line (the limit of much smoothing), with one the mean.

    Parameters
    ----------
    smoothing : float, optional
        Weight of the roughness, >= 0. By default the minimiser of generalised cross-validation in which a degree of
        freedom counts for 1.4, searched here on a logarithmic scale: SciPy's own search depends on the unit of x.

    Attributes
    ----------
    smoothing_ : float
        The weight used; infinite for a straight line.
    knots_, coefficients_ : ndarray
        The B-spline on [0, 1].
    x_min_, x_range_ : float
        The map to [0, 1].
    """

    def __init__(self, smoothing: float | None = None) -> None:
        self.smoothing = smoothing

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the spline from rows X of one feature, shape (n, 1), and their targets y, shape (n,)."""
        check("smoothing", self.smoothing, self.smoothing is None or self.smoothing >= 0, "a number >= 0 or None")
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        x = self._feature(rows)
        self.x_min_ = float(x.min())
        self.x_range_ = float(np.ptp(x)) or 1.0
        knots = merge_ties((x - self.x_min_) / self.x_range_, np.asarray(targets, dtype=float))
        if len(knots.t) < MIN_SPLINE_KNOTS:
            line = np.polynomial.Polynomial.fit(
                knots.t, knots.y, min(1, len(knots.t) - 1), w=np.sqrt(knots.weight), domain=[0, 1]
            )
            self.smoothing_, spline = np.inf, BSpline([0.0, 0.0, 1.0, 1.0], line(np.array([0.0, 1.0])), 1)
        else:
            self.smoothing_ = best_smoothing(knots) if self.smoothing is None else float(self.smoothing)
            spline = make_smoothing_spline(knots.t, knots.y, knots.weight, lam=self.smoothing_)
        self.knots_, self.coefficients_, self.degree_ = spline.t, spline.c, int(spline.k)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Values of the spline at X, of shape (n, 1)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        t = (self._feature(rows) - self.x_min_) / self.x_range_
        spline = BSpline(self.knots_, self.coefficients_, self.degree_)
        inside = np.clip(t, self.knots_[0], self.knots_[-1])
        return np.asarray(spline(inside) + spline.derivative()(inside) * (t - inside), dtype=float)

    def _feature(self, rows: Array) -> Array:
        if rows.shape[1] != 1:
            raise ValueError(f"X has {rows.shape[1]} features: expected 1 for a smoothing spline")
        return rows[:, 0]


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
    """``N RSS(lam) / (N - cost tr A(lam))^2`` over the N rows, ties one by one; infinite where ``cost tr A >= N``."""
    # 1. R and T by diagonals (row k: the k-th above the main one, zeros at its end), and Q'y.
    h, v = np.diff(knots.t), 1 / knots.weight
    a, c = 1 / h[:-1], 1 / h[1:]
    b, m = -(a + c), len(a)
    R, T, second = np.zeros((3, m)), np.zeros((3, m)), np.diff(np.diff(knots.y) / h)
    R[0], R[1, :-1] = (h[:-1] + h[1:]) / 3, h[1:-1] / 6
    T[0] = a**2 * v[:-2] + b**2 * v[1:-1] + c**2 * v[2:]
    T[1, :-1] = b[:-1] * a[1:] * v[1:-2] + c[:-1] * b[1:] * v[2:-1]
    T[2, :-2] = c[:-2] * a[2:] * v[2:-2]
    # 2. tr((R + lam T)^-1 T) for every lam, from the central bands of the inverse (Hutchinson & de Hoog 1985).
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
    # 3. The score.
    n_rows = knots.weight.sum()
    left = n_rows - cost * (len(knots.t) - lam * trace)
    squares = np.full(len(lam), knots.spread)
    for k, each in enumerate(lam):  # sum_i w_i (y_i - f(t_i))^2 = lam^2 g'T g
        g = solveh_banded(R + each * T, second, lower=True)
        squares[k] += each**2 * (T[0] @ g**2 + 2 * (T[1, :-1] @ (g[:-1] * g[1:])) + 2 * (T[2, :-2] @ (g[:-2] * g[2:])))
    scores: Array = np.where(left > 0, n_rows * squares / np.where(left > 0, left, 1.0) ** 2, np.inf)
    return scores
