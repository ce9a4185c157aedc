"""The point models that are there without being asked for: the default regressors, and plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline

from sosbands._types import AnyArray, Array
from sosbands.point_models.gaussian_process import GaussianProcess

MAX_GAUSSIAN_PROCESS_ROWS = 2000


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


def point_model(estimator: Any, n: int, random_state: Any) -> Any:
    """An unfitted copy of the user's model, of the default one, or a wrapper of the user's function."""
    if estimator is None:
        return default_regressor(n, random_state)
    return clone(estimator if hasattr(estimator, "fit") else CallableRegressor(estimator))


def model_name(model: Any) -> str:
    """Name of the class of a point model; of a pipeline that of its last step, which predicts."""
    return type(model[-1] if isinstance(model, Pipeline) else model).__name__
