"""A weighted mean of a few regressors, weighed by their errors on rows that they have not seen, and the default one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._arguments import check, check_cv, is_number, read_weights
from sosbands._threads import ONE_THREAD, within_task
from sosbands._types import Array, IntArray
from sosbands.point_models.gaussian_process import MANY_FEATURES, GaussianProcess
from sosbands.point_models.quantile_model import quantile_model
from sosbands.point_models.user_model import (
    FORESTS,
    CallableRegressor,
    Split,
    fit_model,
    in_order_of_rows,
    model_name,
    own_splits,
    predict_held_out,
    predict_rows,
    predict_with_spread,
    shuffled_folds,
)

LEAST_SPREAD = 0.05  # of its mean over the learning rows: trees that agree exactly do not know everything
# Folds of a process start at hyperparameters from rows that no fold of their group holds out, so that these know
# nothing of what is predicted, and go on for some iterations on rows of their own.
FEW_GROUPS, GROUPS, MANY_ROWS = 2, 3, 500  # groups of folds, fewer of many rows and few features
FOLD_ITERATIONS = 6
FOLD_TREES = 50  # of forests in folds: half as many add little to the errors of single trees
HUBER = 6 / 0.6745  # times the median size of errors: where squares end
RESAMPLES, REWEIGHTINGS, LEAST_WEIGHT = 20, 10, 0.02
SUM_WEIGHT, SMALLEST = 1e6, 1e-14  # of the equation that weights add up to 1, and what keeps it from being the only one
MIN_BLEND_ROWS = 40  # fewer say nothing about which model predicts best
MIN_BOOSTING_ROWS = 200
MAX_GAUSSIAN_PROCESS_ROWS = 2000  # its cost grows with their cube
SAMPLED_PROCESS_ROWS = 1000  # of more rows: less, as predictions cost their square
MAX_TREE_ROWS = 10_000  # trees of single rows: cost and size grow with them
SAMPLED_TREE_ROWS = 20_000  # that are drawn for each tree from more rows, some of them twice
N_TREES, MIN_LEAF = 100, 2
RIDGE_ALPHAS = tuple(10.0**k for k in range(-3, 5))


class ModelBlend(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Weighted mean of regressors, with weights of at least 0 that add up to 1.

    Every member is fitted to the other folds of each fold (forests with at most 50 trees there, and processes from
    hyperparameters that other rows have led to), and the weights minimise the error of the blend of these
    out-of-fold predictions, squared but for the largest, pulled a little towards equal weights. Members that predict
    well, and wrongly in different places, share the weight; one that hardly helps gets none and is not kept.

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
        self, X: Any, y: Any, sample_weight: Any = None, *, fold_points: Callable[[Any, Any], Array] | None = None
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
        folds = shuffled_folds(len(y), self.cv, self.random_state, self.enough_rows) if own is None else own
        self.out_of_fold_rows_ = np.sort(np.concatenate([held for _, held in folds]))
        parallel = Parallel(n_jobs=self.n_jobs)

        def points(learn: IntArray, held: IntArray) -> Array:
            return rows if fold_points is None else fold_points(learn, held)

        # 1. Hyperparameters of each process, by its position among the members and that of the fold.
        thetas: dict[tuple[int, int], Array] = {}
        processes = [k for k, member in enumerate(self.members) if isinstance(member, GaussianProcess) and own is None]
        few = len(y) > MANY_ROWS and self.n_features_in_ <= MANY_FEATURES
        groups = np.array_split(np.arange(len(folds)), min(len(folds), FEW_GROUPS if few else GROUPS))
        groups = [group for group in groups if processes and len(group) > 1]  # one fold learns its own as well
        inside = [np.sort(np.concatenate([folds[j][1] for j in group])) for group in groups]
        outside = [np.setdiff1d(np.arange(len(y)), held) for held in inside]
        if w is None or all(w[learn].any() for learn in outside):
            tables = [points(learn, held) for learn, held in zip(outside, inside, strict=True)]
            found = parallel(
                delayed(_theta)(clone(self.members[k]), table, y, w, learn)
                for k in processes
                for table, learn in zip(tables, outside, strict=True)
            )
            places = [(k, group) for k in processes for group in groups]
            thetas = {(k, int(j)): theta for (k, group), theta in zip(places, found, strict=True) for j in group}
        # 2. What members predict of the rows that folds hold out, and the weights that this gives them.
        tables = [points(*fold) for fold in folds]
        parts = parallel(
            delayed(_held_out)(_for_fold(member, thetas.get((k, j)), len(fold[0])), tables[j], y, w, fold)
            for k, member in enumerate(self.members)
            for j, fold in enumerate(folds)
        )
        seen = [in_order_of_rows(folds, parts[k : k + len(folds)]) for k in range(0, len(parts), len(folds))]
        target = y[self.out_of_fold_rows_]
        counts = np.ones(len(target)) if w is None else w[self.out_of_fold_rows_]
        counts = counts / (counts.mean() or 1.0)
        weights = blend_weights(np.column_stack([mean for mean, _ in seen]) - target[:, None], self.equal_rows, counts)
        kept = [k for k, weight in enumerate(weights) if weight > 0]
        # 3. The members that are kept, on all rows.
        models = [clone(self.members[k]) for k in kept]
        for k, model in zip(kept, models, strict=True):
            if known := [theta for (member, _), theta in thetas.items() if member == k]:
                model.set_params(start=np.unique(known, axis=0))
        self.members_ = list(parallel(delayed(_fitted)(model, rows, y, w) for model in models))
        for k, model in zip(kept, self.members_, strict=True):
            if isinstance(model, GaussianProcess):
                model.set_params(start=self.members[k].start)
        self.weights_ = weights[kept] / weights[kept].sum()
        # 4. Their spreads.
        seen = [seen[k] for k in kept]
        self.least_spreads_ = np.array([LEAST_SPREAD * spread.mean() or 1.0 for _, spread in seen])
        floored = [np.maximum(spread, least) for (_, spread), least in zip(seen, self.least_spreads_, strict=True)]
        sizes = [np.square((target - mean) / spread) for (mean, _), spread in zip(seen, floored, strict=True)]
        self.spread_factors_ = np.array([np.sqrt(np.mean(counts * size)) or 1.0 for size in sizes])
        self.out_of_fold_prediction_, self.out_of_fold_std_ = self._blend(seen)
        return self

    @ONE_THREAD
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Weighted mean of the members, shape (n,), and with `return_std` the standard deviation of an observation.

        The variance is that of a mixture: the weighted mean of the variances of the members and of the squares by which
        they differ from the blend. That of a member without a spread of its own is the mean square of its out-of-fold
        errors.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        if return_std:
            return self._blend([predict_with_spread(member, rows) for member in self.members_])
        return np.column_stack([predict_rows(member, rows, "members") for member in self.members_]) @ self.weights_

    def _blend(self, seen: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Mean and standard deviation of a mixture, from predictions and spreads of the members."""
        mean = np.column_stack([each for each, _ in seen]) @ self.weights_
        variance = np.zeros(len(mean))
        parts = zip(seen, self.least_spreads_, self.spread_factors_, self.weights_, strict=True)
        for (each, spread), least, factor, weight in parts:
            variance += weight * (np.square(factor * np.maximum(spread, least)) + np.square(each - mean))
        return mean, np.sqrt(variance)


@ONE_THREAD
def blend_weights(errors: Array, equal_rows: float, counts: Array | None = None) -> Array:
    """Weights w >= 0 with sum 1 that make ``sum_i c_i rho((E w)_i) + equal_rows s^2 ||w - 1/K||^2`` small.

    With s^2, the mean of rho for the best member, `equal_rows` stands for so many rows. The mean of those of 20
    resamples of the rows, always the same, so that what hangs on a few rows is shared. For half of them rho is the
    square, for the others Huber's: linear beyond 6 standard deviations, told by the median.
    """
    n, K = errors.shape
    if K == 1 or not errors.any():
        return np.full(K, 1 / K)
    errors = errors / np.abs(errors).max()
    rng, counts = np.random.default_rng(0), np.ones(n) if counts is None else counts
    draws = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    edges = np.resize([HUBER, np.inf], RESAMPLES)
    found = [_robust_weights(errors, equal_rows, counts * draw, edge) for draw, edge in zip(draws, edges, strict=True)]
    weights = np.mean(found, axis=0)
    weights[weights < min(LEAST_WEIGHT, 0.5 * float(weights.max()))] = 0.0
    return np.asarray(weights / weights.sum())


def _robust_weights(errors: Array, equal_rows: float, counts: Array, limit: float) -> Array:
    """Of one resample: squares are weighed anew until the weights stay what they are; `limit` is where they end."""
    weights = np.full(errors.shape[1], 1 / errors.shape[1])
    seen = errors[counts > 0]
    counts = counts[counts > 0]
    for _ in range(REWEIGHTINGS):
        sizes = np.abs(seen @ weights)
        edge = limit * (float(np.median(sizes)) or np.inf)
        each = counts * np.minimum(1.0, edge / np.maximum(sizes, np.finfo(float).tiny))
        before, weights = weights, _least_squares(seen, equal_rows, each)
        if np.abs(weights - before).max() < 1e-3:
            break
    return weights


def _least_squares(errors: Array, equal_rows: float, counts: Array) -> Array:
    """The weights for squares; their sum is held at 1 by an equation that outweighs the others."""
    K = errors.shape[1]
    G = (errors.T * counts) @ errors
    pull = equal_rows * float(G.diagonal().min()) / float(counts.sum() or 1.0)
    sums = SUM_WEIGHT * (float(np.trace(G)) + pull) + np.finfo(float).tiny
    L = np.linalg.cholesky(G + (pull + SMALLEST * sums) * np.eye(K) + sums)
    weights: Array = nnls(L.T, np.linalg.solve(L, np.full(K, pull / K + sums)))[0]
    return np.asarray(weights / weights.sum())


def _for_fold(model: Any, theta: Array | None, n_rows: int) -> Any:
    """An unfitted copy for a fold of so many rows; of what takes long a quicker one."""
    copy = clone(model)
    if theta is not None:
        copy.set_params(start=theta, max_iter=min(FOLD_ITERATIONS, model.max_iter))
    elif isinstance(model, FORESTS):
        copy.set_params(n_estimators=min(FOLD_TREES, model.n_estimators))
        if isinstance(model.max_samples, int):
            copy.set_params(max_samples=min(model.max_samples, n_rows))
    return copy


@ONE_THREAD
def _theta(process: GaussianProcess, table: Array, y: Array, w: Array | None, learn: IntArray) -> Array:
    theta: Array = fit_model(process, table[learn], y[learn], None if w is None else w[learn], "members").theta_
    return theta


@ONE_THREAD
def _fitted(model: Any, rows: Array, y: Array, w: Array | None) -> Any:
    with within_task():
        return fit_model(model, rows, y, w, "members")


@ONE_THREAD  # also in another process
def _held_out(model: Any, rows: Array, y: Array, w: Array | None, fold: Split) -> tuple[Array, Any]:
    return predict_held_out(model, rows, y, w, fold, with_std=True, argument="members")


def default_regressor(n_rows: int, random_state: Any = None, n_jobs: int | None = None) -> GaussianProcess | ModelBlend:
    """Unfitted point model for so many learning rows.

    A blend, weighed by out-of-fold errors, of an anisotropic Matern-5/2 Gaussian process with noise, extra trees,
    gradient boosting (from 200 rows, below a random forest) and ridge regression; the process alone below 40 rows.
    Of more than 2000 rows the process sees 1000, and of more than 10 000 each of the trees draws 20 000.

    Parameters
    ----------
    n_rows : int
        Number of learning rows.
    random_state : int, RandomState or None
        Of the folds, the trees and the boosting.
    n_jobs : int, optional
        Processes over members and folds.
    """
    check("n_rows", n_rows, n_rows >= 1, "an integer >= 1")
    if n_rows < MIN_BLEND_ROWS:
        return GaussianProcess()
    seed = check_random_state(random_state).randint(2**31) if random_state is not None else None
    some = {"bootstrap": True, "max_samples": min(SAMPLED_TREE_ROWS, n_rows)} if n_rows > MAX_TREE_ROWS else {}
    trees = {"min_samples_leaf": MIN_LEAF, "random_state": seed}
    members = [
        make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGE_ALPHAS)),
        GaussianProcess(max_rows=None if n_rows <= MAX_GAUSSIAN_PROCESS_ROWS else SAMPLED_PROCESS_ROWS),
        ExtraTreesRegressor(N_TREES, **trees, **some),
        RandomForestRegressor(N_TREES, max_features=1 / 3, **trees)
        if n_rows < MIN_BOOSTING_ROWS
        else HistGradientBoostingRegressor(random_state=seed),
    ]
    return ModelBlend(members, random_state=seed, n_jobs=n_jobs)


def point_model(estimator: Any, n: int, random_state: Any, n_jobs: int | None = None, level: float = 0.9) -> Any:
    """An unfitted copy of the user's model, of the default one, or a wrapper of the user's function.

    What predicts quantiles is asked for those of an interval of this level.
    """
    if estimator is None:
        return default_regressor(n, random_state, n_jobs)
    estimator = quantile_model(estimator, level)
    return clone(estimator if hasattr(estimator, "fit") else CallableRegressor(estimator))


def model_words(model: Any) -> str:
    """The fitted point model in words: its name, or the members of a blend with their weights."""
    if not isinstance(model, ModelBlend):
        return model_name(model)
    order = np.argsort(-model.weights_)
    parts = [f"{model.weights_[k]:.2f} {model_name(model.members_[k])}" for k in order if model.weights_[k] >= 0.005]
    return "a blend of " + " + ".join(parts)
