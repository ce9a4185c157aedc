"""From learning rows to a fitted point model and its residuals, by a rule that says which of them can be trusted.

A band is learnt from residuals, so these must look like the errors on new data. A model that (nearly) interpolates its
learning rows has residuals near zero there, and a band learnt from them would be far too narrow before calibration;
`residual_rule` says which residuals of which models can be trusted, `learn_residuals` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples

from sosbands._parallel import within_task
from sosbands._types import Array, IntArray
from sosbands.exceptions import LeaveOneOutError
from sosbands.point_models.blend import ModelBlend, folds_for
from sosbands.point_models.defaults import CallableRegressor
from sosbands.point_models.folds import own_splits
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.outputs import blaming, predict_rows
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor
from sosbands.point_models.spread import knows_spread, predict_with_spread
from sosbands.point_models.weights import fit_model, weight_arguments

BLOCK_ROWS = 4096  # rows predicted at a time: a Gaussian process builds a kernel matrix of them


@dataclass(frozen=True, eq=False)
class LearntResiduals:
    """A point model and how far it is off at its n learning rows.

    Attributes
    ----------
    model : regressor
        Fitted to all learning rows.
    rule : {"in-sample", "leave-one-out", "out-of-fold"}
        In use; in-sample if there is but one row.
    prediction, residual : ndarray of shape (n,)
        By that rule; they add up to the targets.
    std : ndarray of shape (n,) or None
        Standard deviation of a new observation at each row by the model that predicted it; None if it was not asked
        for, or the model knows none.
    rows : ndarray of int or None
        Which of the learning rows these are; None is all of them.
    """

    model: Any
    rule: str
    prediction: Array
    residual: Array
    std: Array | None = None
    rows: IntArray | None = None

    def sample(self, most: int, rng: np.random.RandomState) -> tuple[LearntResiduals, IntArray]:
        """At most so many of the rows, drawn at random, and their positions among the learning rows."""
        n = len(self.residual)
        rows = np.arange(n) if self.rows is None else self.rows
        if n <= most:
            return self, rows
        some = np.sort(rng.choice(n, most, replace=False))
        std = None if self.std is None else self.std[some]
        found = LearntResiduals(self.model, self.rule, self.prediction[some], self.residual[some], std, rows[some])
        return found, rows[some]


def learn_residuals(
    model: Any,
    X: Any,
    y: Array,
    *,
    residuals: str = "auto",
    cv: Any = 5,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    with_std: bool = False,
    sample_weight: Array | None = None,
    fold_points: Callable[[Any, Any], Array] | None = None,
    enough_rows: int | None = None,
) -> LearntResiduals:
    """Fit a point model, and predict its learning rows by the rule.

    Parameters
    ----------
    model : regressor
        Unfitted, as `point_model` gives it. It is fitted here.
    X : array, data frame or list of n rows
    y : ndarray of shape (n,)
    residuals : {"auto", "in-sample", "leave-one-out", "out-of-fold"}
        Its own predictions; those of the process conditioned on the other rows, with hyperparameters and the other
        steps of a pipeline held fixed; or those of copies fitted to the other folds. "auto" is `residual_rule`.
    cv, random_state
        Number of folds, and their seed, of which only the last rule draws; or a splitter, whose folds need not hold all
        rows: `rows` says which they do, and the others have no residual. With one "auto" is out-of-fold for every model
        that learns.
    n_jobs : int, optional
        Processes for the copies.
    with_std : bool
        Whether to give standard deviations too; without, none is computed.
    sample_weight : ndarray of shape (n,), optional
        How much each row counts in every fit.
    fold_points : callable, optional
        What the folds of a blend see in place of X, as in `ModelBlend.fit`.
    enough_rows : int, optional
        Folds beyond those that hold so many rows are not predicted, which saves as many fits; None predicts all.

    Raises
    ------
    LeaveOneOutError
        If leave-one-out residuals are asked for and the model cannot give them; before anything is fitted.
    """
    splits = own_splits(cv, y)
    rule = chosen_rule(residuals, model, ordered=splits is not None)
    in_folds: dict[str, Any] = (
        {"fold_points": fold_points} if fold_points is not None and isinstance(model, ModelBlend) else {}
    )
    if isinstance(model, ModelBlend):
        model.set_params(enough_rows=enough_rows, **({} if splits is None else {"cv": cv}))
    model = fit_model(model, X, y, sample_weight, **in_folds)
    folds = row_folds(len(y), cv, random_state) if splits is None else None
    with_std = with_std and (rule == "leave-one-out" or knows_spread(model))
    rows: IntArray | None = None
    if rule == "in-sample" or (folds is None and splits is None):
        rule, (prediction, std) = "in-sample", _in_sample(model, X, with_std)
    elif isinstance(model, ModelBlend) and rule == "out-of-fold":  # which its weights needed too
        prediction, std = model.out_of_fold_prediction_, model.out_of_fold_std_ if with_std else None
        rows = None if len(model.out_of_fold_rows_) == len(y) else model.out_of_fold_rows_
    elif rule == "leave-one-out":
        process = leave_one_out_process(model)
        residual = process.leave_one_out_residuals()
        return LearntResiduals(model, rule, y - residual, residual, process.leave_one_out_std() if with_std else None)
    elif folds is None or folds_for(len(y), folds.n_splits, enough_rows) < folds.n_splits:
        if folds is not None:
            splits = list(folds.split(y))[: folds_for(len(y), folds.n_splits, enough_rows)]
        rows, prediction, std = _out_of_some_folds(model, X, y, splits, with_std, sample_weight)
    else:
        prediction, std = _out_of_fold(model, X, y, folds, n_jobs, with_std, sample_weight)
    target = y if rows is None else y[rows]
    return LearntResiduals(model, rule, prediction, np.asarray(target - prediction), std, rows)


def row_folds(n: int, cv: int, random_state: int | np.random.RandomState | None) -> KFold | None:
    """Shuffled folds of n rows, at most as many as rows; None for one row, which leaves nothing to learn from."""
    return KFold(min(cv, n), shuffle=True, random_state=random_state) if n > 1 else None


def row_blocks(n: int) -> Iterator[slice]:
    """The positions of n rows in order, a few thousand at a time."""
    yield from (slice(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS))


def _in_sample(model: Any, X: Any, with_std: bool) -> tuple[Array, Array | None]:
    n = _num_samples(X)
    blocks = [X if n <= BLOCK_ROWS else _safe_indexing(X, rows) for rows in row_blocks(n)]
    if with_std:
        mean, std = np.concatenate([_both(model, block) for block in blocks]).T
        return mean, std
    return np.concatenate([predict_rows(model, block) for block in blocks]), None


def _out_of_fold(
    model: Any,
    X: Any,
    y: Array,
    folds: KFold,
    n_jobs: int | None,
    with_std: bool,
    sample_weight: Array | None,
) -> tuple[Array, Array | None]:
    weights = weight_arguments(model, sample_weight) or None
    found = cross_val_predict(_Copy(model, with_std), X, y, cv=folds, n_jobs=n_jobs, params=weights)
    if with_std:
        return found[:, 0], found[:, 1]
    return np.asarray(found), None


def _out_of_some_folds(
    model: Any,
    X: Any,
    y: Array,
    splits: list[tuple[IntArray, IntArray]] | None,
    with_std: bool,
    sample_weight: Array | None,
) -> tuple[IntArray, Array, Array | None]:
    """Rows that the splits hold out in increasing order, with their predictions by copies that have not seen them."""
    parts = []
    for learn, held in splits or []:
        weight = None if sample_weight is None else sample_weight[learn]
        copy = fit_model(clone(model), _safe_indexing(X, learn), y[learn], weight)
        mean, std = _in_sample(copy, _safe_indexing(X, held), with_std)
        parts.append((held, mean, mean if std is None else std))
    rows, prediction, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(rows)
    return rows[order], prediction[order], spread[order] if with_std else None


class _Copy(BaseEstimator):  # type: ignore[misc]
    """The copy for one fold; with standard deviations its predictions are two columns, so that both are carried."""

    def __init__(self, model: Any, with_std: bool) -> None:
        self.model = model
        self.with_std = with_std

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)

    def fit(self, X: Any, y: Any, **weights: Any) -> Self:
        with within_task(), blaming(self.model, "fit"):
            self.model_ = clone(self.model).fit(X, y, **weights)
        return self

    def predict(self, X: Any) -> Array:
        with within_task():
            return _both(self.model_, X) if self.with_std else predict_rows(self.model_, X)


def _both(model: Any, X: Any) -> Array:
    """Prediction and standard deviation of each row, shape (n, 2)."""
    return np.column_stack(predict_with_spread(model, X))


def learns_nothing(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, is used as it is: frozen, or a plain function."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return isinstance(last, FrozenEstimator | CallableRegressor)


def residual_rule(estimator: Any) -> Literal["in-sample", "leave-one-out", "out-of-fold"]:
    """Which residuals ``residuals="auto"`` takes for this point model.

    Leave-one-out for `GaussianProcess`, which has them in closed form. In-sample for models that do not see the
    learning rows (`FrozenEstimator`, plain functions, `CallableRegressor`) and for `SmoothingSplineRegressor`, which
    chooses its smoothness by a criterion that punishes interpolation. Out-of-fold for everything else: forests,
    boosting, nearest neighbours, networks and pipelines may (nearly) interpolate, and their in-sample residuals are
    then near zero.
    """
    if isinstance(estimator, GaussianProcess) and estimator.max_rows is None:
        return "leave-one-out"
    if isinstance(estimator, SmoothingSplineRegressor | FrozenEstimator | CallableRegressor):
        return "in-sample"
    if hasattr(estimator, "fit"):
        return "out-of-fold"
    if callable(estimator):
        return "in-sample"
    raise ValueError(f"estimator={estimator!r}: expected a regressor or a function of X")


def chosen_rule(residuals: str, estimator: Any, *, ordered: bool = False) -> str:
    """The rule that the parameter `residuals` means for this point model, fitted or not.

    With folds of the user's (`ordered`) "auto" is out-of-fold for all that learn, since only these keep to the folds.

    Raises
    ------
    LeaveOneOutError
        If leave-one-out residuals are asked for and the model cannot give them.
    """
    if residuals == "leave-one-out":
        leave_one_out_process(estimator)
    if residuals != "auto":
        return residuals
    return "out-of-fold" if ordered and not learns_nothing(estimator) else residual_rule(estimator)


def leave_one_out_process(estimator: Any) -> GaussianProcess:
    """The Gaussian process in a point model: the model itself or the last step of a pipeline.

    A frozen process is none: it was fitted to other rows than those whose residuals are wanted.
    """
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, GaussianProcess) or last.max_rows is not None:
        raise LeaveOneOutError(
            f"residuals='leave-one-out' with the point model {last!r}: expected a GaussianProcess "
            "(sosbands.point_models) of all rows, alone or as the last step of a pipeline"
        )
    return last
