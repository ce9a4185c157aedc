"""A weighted mean of a few regressors, weighed by their errors on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._arguments import check, check_cv, is_number, read_weights
from sosbands._parallel import within_task
from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.point_models.folds import own_splits
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.outputs import predict_rows
from sosbands.point_models.spread import predict_with_spread
from sosbands.point_models.weights import fit_model

LEAST_SPREAD = 0.05  # of its mean over the learning rows: trees that agree exactly do not know everything
MANY_ROWS, FEW_ITERATIONS = 300, 6
SUM_WEIGHT = 1e4  # of the equation that weights add up to 1, relative to all others together


class ModelBlend(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Weighted mean of regressors, with weights of at least 0 that add up to 1.

    Every member is fitted to the other folds of each fold, and the weights minimise the squared error of the blend of
    these out-of-fold predictions, pulled a little towards equal weights. Members that predict well, and wrongly in
    different places, share the weight; one that does not help gets none and is not kept.

    Parameters
    ----------
    members : sequence of regressors
        Unfitted.
    cv : int or splitter
        Folds, or a splitter such as `TimeSeriesSplit`, whose folds need not hold all rows.
    equal_rows : float
        How strongly the weights are pulled towards equal ones: as much as so many rows would.
    random_state : int, RandomState or None
        Of the folds.
    n_jobs : int, optional
        Processes over members and folds.
    enough_rows : int, optional
        Folds beyond those that hold so many rows are not predicted, and say nothing of the weights; None takes all.

    Attributes
    ----------
    members_ : list of regressors
        Those with a weight above 0, fitted to all rows.
    weights_ : ndarray of shape (n_members,)
        Of these members.
    spread_factors_ : ndarray of shape (n_members,)
        By what the spread of each member is multiplied to have out-of-fold errors of mean square 1.
    least_spreads_ : ndarray of shape (n_members,)
        No spread of a member is taken for less.
    out_of_fold_rows_ : ndarray of int
        Positions of the learning rows in the folds that were predicted, increasing.
    out_of_fold_prediction_, out_of_fold_std_ : ndarray
        Of each of these rows, by members that have not seen it.
    """

    members_: list[Any]
    weights_: Array
    least_spreads_: Array
    spread_factors_: Array
    n_features_in_: int
    out_of_fold_rows_: IntArray
    out_of_fold_prediction_: Array
    out_of_fold_std_: Array

    def __init__(
        self,
        members: Sequence[Any],
        cv: Any = 5,
        equal_rows: float = 20.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        enough_rows: int | None = None,
    ) -> None:
        self.members = members
        self.cv = cv
        self.equal_rows = equal_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.enough_rows = enough_rows

    @ONE_THREAD
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        fold_points: Callable[[Any, Any], Array] | None = None,
    ) -> Self:
        """Fit every member to the folds, weigh them, and fit those with a weight to all rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Learning rows, at least 2.
        y : array-like of shape (n,)
            Targets.
        sample_weight : array-like of shape (n,), optional
            How much each row counts, for the members and for their weights.
        fold_points : callable, optional
            Of the rows that a fold learns from and those that it holds out; it gives what the fold sees in place of X,
            for encodings of X that know targets, which must then be those of the former rows alone.
        """
        check_cv(self.cv)
        fine = is_number(self.equal_rows) and 0 <= self.equal_rows < np.inf
        check("equal_rows", self.equal_rows, fine, "a number >= 0")
        check("members", self.members, len(self.members) > 0, "at least one regressor")
        rows, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=float)
        w = None if sample_weight is None else read_weights(sample_weight, len(rows))
        own = own_splits(self.cv, y)
        folds = self._shuffled_folds(len(y)) if own is None else own
        self.out_of_fold_rows_ = np.sort(np.concatenate([held for _, held in folds]))
        fitted = [fit_model(clone(member), rows, y, w, "members") for member in self.members]
        parallel = Parallel(n_jobs=self.n_jobs)
        tables = [rows if fold_points is None else fold_points(learn, held) for learn, held in folds]
        tasks = [
            (_for_fold(model) if own is None else clone(model), table, learn, held)
            for model in fitted
            for table, (learn, held) in zip(tables, folds, strict=True)
        ]
        parts = parallel(delayed(_held_out)(model, table, y, w, learn, held) for model, table, learn, held in tasks)
        seen = [_joined(parts[k * len(folds) :][: len(folds)], [held for _, held in folds]) for k in range(len(fitted))]
        target = y[self.out_of_fold_rows_]
        counts = np.ones(len(target)) if w is None else w[self.out_of_fold_rows_]
        counts = counts / (counts.mean() or 1.0)
        errors = np.sqrt(counts[:, None]) * (np.column_stack([each.mean for each in seen]) - target[:, None])
        weights = blend_weights(errors, self.equal_rows)
        kept = np.flatnonzero(weights > 0)
        self.members_ = [fitted[k] for k in kept]
        self.weights_ = weights[kept] / weights[kept].sum()
        seen = [seen[k] for k in kept]
        self.least_spreads_ = np.array([LEAST_SPREAD * each.spread.mean() or 1.0 for each in seen])
        sizes = [np.square((target - e.mean) / np.maximum(e.spread, least)) for e, least in self._with_least(seen)]
        self.spread_factors_ = np.array([np.sqrt(np.mean(counts * size)) or 1.0 for size in sizes])
        self.out_of_fold_prediction_, self.out_of_fold_std_ = self._blend(seen)
        return self

    def _shuffled_folds(self, n: int) -> list[Any]:
        folds = list(KFold(min(self.cv, n), shuffle=True, random_state=self.random_state).split(np.zeros(n)))
        return folds[: folds_for(n, len(folds), self.enough_rows)]

    @ONE_THREAD
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Weighted mean of the members, and on demand the standard deviation of a new observation.

        The variance is that of a mixture: the weighted mean of the variances of the members and of the squares by which
        they differ from the blend. That of a member without a spread of its own is the mean square of its out-of-fold
        errors.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows.
        return_std : bool
            Whether to return the standard deviation too.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        if not return_std:
            means = np.column_stack([predict_rows(member, rows, "members") for member in self.members_])
            return means @ self.weights_
        return self._blend([Seen(*predict_with_spread(member, rows)) for member in self.members_])

    def _blend(self, seen: Sequence[Seen]) -> tuple[Array, Array]:
        mean = np.column_stack([each.mean for each in seen]) @ self.weights_
        variance = np.zeros(len(mean))
        factors = zip(self._with_least(seen), self.spread_factors_, self.weights_, strict=True)
        for (each, least), factor, weight in factors:
            variance += weight * (np.square(factor * np.maximum(each.spread, least)) + np.square(each.mean - mean))
        return mean, np.sqrt(variance)

    def _with_least(self, seen: Sequence[Seen]) -> list[tuple[Seen, float]]:
        return list(zip(seen, self.least_spreads_, strict=True))


class Seen(NamedTuple):
    """Predictions of a member and its spread at some rows."""

    mean: Array
    spread: Array


@ONE_THREAD
def blend_weights(errors: Array, equal_rows: float) -> Array:
    """Weights w >= 0 with sum 1 that minimise ``||E w||^2 + equal_rows s^2 ||w - 1/K||^2``.

    Parameters
    ----------
    errors : ndarray of shape (n, K)
        Of the K members.
    equal_rows : float
        With s^2 the mean square of the best member's errors it stands for so many rows.
    """
    K = errors.shape[1]
    squares = np.mean(np.square(errors), axis=0)
    if K == 1 or not squares.any():
        return np.full(K, 1 / K)
    pull = np.sqrt(equal_rows * squares.min())
    sums = SUM_WEIGHT * np.sqrt(squares.sum() * len(errors))
    A = np.vstack([errors, pull * np.eye(K), np.full((1, K), sums)])
    b = np.concatenate([np.zeros(len(errors)), np.full(K, pull / K), [sums]])
    weights: Array = nnls(A, b)[0]
    return np.asarray(weights / weights.sum())


def folds_for(n: int, folds: int, enough_rows: int | None) -> int:
    """How many of the folds of n rows hold `enough_rows` together; all of them if it is None."""
    return folds if enough_rows is None else min(folds, max(1, -(-enough_rows * folds // n)))


def _for_fold(model: Any) -> Any:
    """An unfitted copy; that of a process of many rows starts from where the likelihood of all of them led.

    Many rows leave little to go from there, and 6 iterations give errors within 1 % of those of 30. Few rows would
    let the start tell the folds about each other (errors 3 % too small with 100 rows and 10 features).
    """
    copy = clone(model)
    if isinstance(model, GaussianProcess) and len(model.X_train_) > MANY_ROWS:
        copy.set_params(start=model.theta_, max_iter=FEW_ITERATIONS)
    return copy


@ONE_THREAD  # also in another process
def _held_out(model: Any, rows: Array, y: Array, w: Array | None, learn: Any, held: Any) -> Seen:
    with within_task():
        fitted = fit_model(model, rows[learn], y[learn], None if w is None else w[learn], "members")
        return Seen(*predict_with_spread(fitted, rows[held]))


def _joined(parts: Sequence[Seen], places: Sequence[Any]) -> Seen:
    order = np.argsort(np.concatenate(places))
    return Seen(*(np.concatenate([part[k] for part in parts])[order] for k in (0, 1)))
