"""The point models that are there without being asked for: the default regressors, and plain functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from sosbands._types import Array
from sosbands.point_models.blend import ModelBlend
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.outputs import model_name, one_per_row

MIN_BLEND_ROWS = 40  # fewer say nothing about which model predicts best
MIN_BOOSTING_ROWS = 200
MAX_GAUSSIAN_PROCESS_ROWS = 2000  # its cost grows with their cube
SAMPLED_PROCESS_ROWS = 1000  # of more rows: less, as predictions cost their square
MAX_TREE_ROWS = 20_000  # trees of single rows: cost and size grow with them
SAMPLED_TREE_ROWS = 10_000  # that each tree sees of more rows
N_TREES, MIN_LEAF = 100, 2
RIDGE_ALPHAS = tuple(10.0**k for k in range(-3, 5))


def default_regressor(n_rows: int, random_state: Any = None, n_jobs: int | None = None) -> GaussianProcess | ModelBlend:
    """Unfitted point model for so many learning rows.

    Parameters
    ----------
    n_rows : int
        Number of learning rows.
    random_state : int, RandomState or None
        Of the folds, the trees and the boosting.
    n_jobs : int, optional
        Processes over members and folds.

    Returns
    -------
    GaussianProcess or ModelBlend
        A blend, weighed by out-of-fold errors, of an anisotropic Matern-5/2 Gaussian process with noise, extra trees,
        gradient boosting (from 200 rows, below a random forest) and ridge regression; the process alone below 40 rows.
        Of more than 2000 rows the process sees 1000, and of more than 20 000 each of the trees sees 10 000.
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows!r}: expected an integer >= 1")
    if n_rows < MIN_BLEND_ROWS:
        return GaussianProcess()
    seed = check_random_state(random_state).randint(2**31) if random_state is not None else None
    members: list[Any] = [make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGE_ALPHAS))]
    if n_rows <= MAX_GAUSSIAN_PROCESS_ROWS:
        members.append(GaussianProcess())
    else:
        members.append(GaussianProcess(max_rows=SAMPLED_PROCESS_ROWS))
    some: dict[str, Any] = {} if n_rows <= MAX_TREE_ROWS else {"bootstrap": True, "max_samples": SAMPLED_TREE_ROWS}
    members.append(ExtraTreesRegressor(N_TREES, min_samples_leaf=MIN_LEAF, random_state=seed, **some))
    if n_rows < MIN_BOOSTING_ROWS:
        forest = RandomForestRegressor(N_TREES, min_samples_leaf=MIN_LEAF, max_features=1 / 3, random_state=seed)
        members.append(forest)
    else:
        members.append(HistGradientBoostingRegressor(random_state=seed))
    return ModelBlend(members, random_state=seed, n_jobs=n_jobs)


class CallableRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A plain function as a fitted regressor: nothing is learnt.

    Parameters
    ----------
    function : callable
        ``function(X)`` gives one finite number per row of X, with X exactly as handed to `predict`.
    """

    def __init__(self, function: Callable[[Any], ArrayLike]) -> None:
        self.function = function

    def fit(self, X: Any = None, y: Any = None, **weights: Any) -> Self:  # noqa: ARG002
        """Do nothing but check that `function` can be called."""
        if not callable(self.function):
            raise ValueError(f"function={self.function!r}: expected a callable")
        return self

    def predict(self, X: Any) -> Array:
        """Value of the function at every row, of shape (n,)."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return one_per_row(self.function(X), _num_samples(X), f"estimator: output of the function {name}")

    def __sklearn_is_fitted__(self) -> bool:
        return True


def point_model(estimator: Any, n: int, random_state: Any, n_jobs: int | None = None) -> Any:
    """An unfitted copy of the user's model, of the default one, or a wrapper of the user's function."""
    if estimator is None:
        return default_regressor(n, random_state, n_jobs)
    return clone(estimator if hasattr(estimator, "fit") else CallableRegressor(estimator))


def model_words(model: Any) -> str:
    """The fitted point model in words: its name, or the members of a blend with their weights."""
    if not isinstance(model, ModelBlend):
        return model_name(model)
    order = np.argsort(-model.weights_)
    parts = [f"{model.weights_[k]:.2f} {model_name(model.members_[k])}" for k in order if model.weights_[k] >= 0.005]
    return "a blend of " + " + ".join(parts)
