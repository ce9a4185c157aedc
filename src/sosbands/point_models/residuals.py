"""From learning rows to a fitted point model and its residuals, by a rule that says which of them can be trusted.

A band is learnt from residuals, so these must look like the errors on new data. A model that (nearly) interpolates its
learning rows has residuals near zero there, and a band learnt from them would be far too narrow before calibration;
`chosen_rule` says which residuals of which models can be trusted, `learn_residuals` makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed

from sosbands._arguments import check
from sosbands._types import Array, IntArray
from sosbands.exceptions import LeaveOneOutError
from sosbands.point_models.blend import ModelBlend
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor
from sosbands.point_models.user_model import (
    CallableRegressor,
    fit_model,
    in_order_of_rows,
    knows_spread,
    learns_nothing,
    own_splits,
    predict_held_out,
    predict_in_blocks,
    shuffled_folds,
)


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
    rows : ndarray of int of shape (n,)
        Positions of these rows among the learning rows, increasing.
    std : ndarray of shape (n,) or None
        Standard deviation of a new observation at each row by the model that predicted it; None if it was not asked
        for, or the model knows none.
    """

    model: Any
    rule: str
    prediction: Array
    residual: Array
    rows: IntArray
    std: Array | None = None

    def sample(self, most: int, rng: np.random.RandomState) -> LearntResiduals:
        """At most so many of the rows, drawn at random."""
        if len(self.rows) <= most:
            return self
        some = np.sort(rng.choice(len(self.rows), most, replace=False))
        std = None if self.std is None else self.std[some]
        prediction, residual, rows = self.prediction[some], self.residual[some], self.rows[some]
        return LearntResiduals(self.model, self.rule, prediction, residual, rows, std)


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
        steps of a pipeline held fixed; or those of copies fitted to the other folds. "auto" is what `chosen_rule` says.
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
    own = own_splits(cv, y)
    rule = chosen_rule(residuals, model, ordered=own is not None)
    in_folds: dict[str, Any] = {}
    if isinstance(model, ModelBlend):
        in_folds = {"fold_points": fold_points}
        model.set_params(enough_rows=enough_rows, **({} if own is None else {"cv": cv}))
    model = fit_model(model, X, y, sample_weight, **in_folds)
    with_std = with_std and (rule == "leave-one-out" or knows_spread(model))
    rows = np.arange(len(y))
    if rule == "in-sample" or (len(y) == 1 and own is None):
        rule, (prediction, std) = "in-sample", predict_in_blocks(model, X, with_std)
    elif rule == "leave-one-out":
        process = leave_one_out_process(model)
        residual = process.leave_one_out_residuals()
        std = process.leave_one_out_std() if with_std else None
        return LearntResiduals(model, rule, y - residual, residual, rows, std)
    elif isinstance(model, ModelBlend):  # whose weights needed them too
        rows = model.out_of_fold_rows_
        prediction, std = model.out_of_fold_prediction_, model.out_of_fold_std_ if with_std else None
    else:
        folds = shuffled_folds(len(y), cv, random_state, enough_rows) if own is None else own
        parts = Parallel(n_jobs=n_jobs)(
            delayed(predict_held_out)(clone(model), X, y, sample_weight, fold, with_std) for fold in folds
        )
        rows = np.sort(np.concatenate([held for _, held in folds]))
        prediction, std = in_order_of_rows(folds, parts)
    return LearntResiduals(model, rule, prediction, y[rows] - prediction, rows, std)


def chosen_rule(residuals: str, estimator: Any, *, ordered: bool = False) -> str:
    """The rule that the parameter `residuals` means for this point model, fitted or not.

    "auto" is leave-one-out for `GaussianProcess`, which has them in closed form. In-sample for models that do not see
    the learning rows (`FrozenEstimator`, plain functions) and for `SmoothingSplineRegressor`, whose criterion punishes
    interpolation. Out-of-fold for everything else: forests, boosting, nearest neighbours, networks and pipelines may
    (nearly) interpolate, and their in-sample residuals are then near zero; and with folds of the user's (`ordered`) for
    all that learn, since only these keep to the folds.
    """
    if residuals == "leave-one-out":
        leave_one_out_process(estimator)
    if residuals != "auto":
        return residuals
    if ordered and not learns_nothing(estimator):
        return "out-of-fold"
    if isinstance(estimator, GaussianProcess) and estimator.max_rows is None:
        return "leave-one-out"
    if isinstance(estimator, SmoothingSplineRegressor | FrozenEstimator | CallableRegressor):
        return "in-sample"
    if hasattr(estimator, "fit"):
        return "out-of-fold"
    check("estimator", estimator, callable(estimator), "a regressor or a function of X")
    return "in-sample"


def leave_one_out_process(estimator: Any) -> GaussianProcess:
    """The Gaussian process in a point model, or its last step; a frozen one is none, as it was fitted to other rows."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, GaussianProcess) or last.max_rows is not None:
        raise LeaveOneOutError(
            f"residuals='leave-one-out' with the point model {last!r}: expected a GaussianProcess "
            "(sosbands.point_models) of all rows, alone or as the last step of a pipeline"
        )
    return last
