"""The models that bands are put around: defaults, the smoothing spline, plain functions.

A band is learnt from residuals, so these must look like the errors on new data. A model that (nearly) interpolates its
learning rows has residuals near zero there, and a band learnt from them would be far too narrow before calibration;
`residual_rule` says which residuals of which models can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, make_smoothing_spline
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._types import AnyArray, Array
from sosbands.exceptions import LeaveOneOutError
from sosbands.gaussian_process import GaussianProcess
from sosbands.spline_smoothing import Knots, best_smoothing, merge_ties

MAX_GAUSSIAN_PROCESS_ROWS = 2000
MIN_SPLINE_KNOTS = 5  # of SciPy's smoothing spline


def default_regressor(n_rows: int, random_state: Any = None) -> GaussianProcess | HistGradientBoostingRegressor:
    """Unfitted point model for so many learning rows.

    Parameters
    ----------
    n_rows : int
        Number of learning rows.
    random_state : int, RandomState or None
        Used by gradient boosting only; the Gaussian process has no randomness.

    Returns
    -------
    GaussianProcess or HistGradientBoostingRegressor
        Anisotropic Matern-5/2 Gaussian process with noise up to 2000 rows (its cost grows with their cube), gradient
        boosting above.
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows!r}: expected an integer >= 1")
    if n_rows <= MAX_GAUSSIAN_PROCESS_ROWS:
        return GaussianProcess()
    return HistGradientBoostingRegressor(random_state=random_state)


def residual_rule(estimator: Any) -> Literal["in-sample", "leave-one-out", "out-of-fold"]:
    """Which residuals ``residuals="auto"`` takes for this point model.

    Leave-one-out for `GaussianProcess`, which has them in closed form. In-sample for models that do not see the
    learning rows (`FrozenEstimator`, plain functions, `CallableRegressor`) and for `SmoothingSplineRegressor`, which
    chooses its smoothness by a criterion that punishes interpolation. Out-of-fold for everything else: forests,
    boosting, nearest neighbours, networks and pipelines may (nearly) interpolate, and their in-sample residuals are
    then near zero.
    """
    if isinstance(estimator, GaussianProcess):
        return "leave-one-out"
    if isinstance(estimator, SmoothingSplineRegressor | FrozenEstimator | CallableRegressor):
        return "in-sample"
    if hasattr(estimator, "fit"):
        return "out-of-fold"
    if callable(estimator):
        return "in-sample"
    raise ValueError(f"estimator={estimator!r}: expected a regressor or a function of X")


def chosen_rule(residuals: str, estimator: Any) -> str:
    """The rule that the parameter `residuals` means for this point model, fitted or not.

    Raises
    ------
    LeaveOneOutError
        If leave-one-out residuals are asked for and the model cannot give them.
    """
    if residuals == "leave-one-out":
        leave_one_out_process(estimator)
    return residual_rule(estimator) if residuals == "auto" else residuals


def leave_one_out_process(estimator: Any) -> GaussianProcess:
    """The Gaussian process in a point model: the model itself or the last step of a pipeline.

    A frozen process is none: it was fitted to other rows than those whose residuals are wanted.
    """
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, GaussianProcess):
        raise LeaveOneOutError(
            f"residuals='leave-one-out' with the point model {last!r}: expected a GaussianProcess (the default up to "
            f"{MAX_GAUSSIAN_PROCESS_ROWS} learning rows), alone or as the last step of a pipeline"
        )
    return last


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


class CallableRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A plain function as a fitted regressor: nothing is learnt.

    Parameters
    ----------
    function : callable
        ``function(X)`` gives one finite number per row of X, with X exactly as handed to `predict`.
    """

    def __init__(self, function: Callable[[Any], ArrayLike]) -> None:
        self.function = function

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Do nothing but check that `function` can be called."""
        if not callable(self.function):
            raise ValueError(f"function={self.function!r}: expected a callable")
        return self

    def predict(self, X: Any) -> Array:
        """Value of the function at every row, of shape (n,)."""
        values: AnyArray = np.asarray(self.function(X), dtype=float)
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if values.shape not in ((n_rows,), (n_rows, 1)):
            raise ValueError(f"function gave shape {values.shape}: expected ({n_rows},), one number per row of X")
        if not np.all(np.isfinite(values)):
            raise ValueError("function gave NaN or infinite values: expected finite numbers")
        return values.reshape(n_rows)

    def __sklearn_is_fitted__(self) -> bool:
        return True
