"""A cubic smoothing spline of one feature, as a regressor."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, make_smoothing_spline
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._types import Array
from sosbands.point_models.spline_smoothing import Knots, best_smoothing, merge_ties

MIN_SPLINE_KNOTS = 5  # of SciPy's smoothing spline


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

    knots_: Array
    coefficients_: Array
    degree_: int
    smoothing_: float
    x_min_: float
    x_range_: float
    n_features_in_: int

    def __init__(self, smoothing: float | None = None) -> None:
        self.smoothing = smoothing

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the spline.

        Parameters
        ----------
        X : array-like of shape (n, 1)
            Learning rows.
        y : array-like of shape (n,)
            Targets.
        """
        if self.smoothing is not None and not self.smoothing >= 0:
            raise ValueError(f"smoothing={self.smoothing!r}: expected a number >= 0 or None")
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        x = self._feature(rows)
        self.x_min_ = float(x.min())
        self.x_range_ = float(np.ptp(x)) or 1.0
        knots = merge_ties((x - self.x_min_) / self.x_range_, np.asarray(targets, dtype=float))
        if len(knots.t) < MIN_SPLINE_KNOTS:
            self.smoothing_, spline = np.inf, _straight_line(knots)
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


def _straight_line(knots: Knots) -> BSpline:
    degree = min(1, len(knots.t) - 1)
    line = np.polynomial.Polynomial.fit(knots.t, knots.y, degree, w=np.sqrt(knots.weight), domain=[0, 1])
    return BSpline([0.0, 0.0, 1.0, 1.0], line(np.array([0.0, 1.0])), 1)
