"""SplitRegressor: what every interval regressor does alike, from reading rows to calibration on those held back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._arguments import read_weights
from sosbands._progress import say
from sosbands._threads import few_threads
from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands._words import many
from sosbands.conformal import Band, Calibration, IntervalMixin, interval
from sosbands.conformal.arguments import read_groups, read_target
from sosbands.conformal.band import joined_bands
from sosbands.conformal.calibration import shown
from sosbands.conformal.mixin import warn_of_infinite
from sosbands.conformal.predictive import Placed
from sosbands.exceptions import LearningRowsWarning, RefittedWarning, TooFewCalibrationPointsWarning
from sosbands.point_models import LearntResiduals, learn_residuals
from sosbands.point_models.defaults import model_words, point_model
from sosbands.point_models.folds import keeps_order
from sosbands.point_models.outputs import is_fitted, model_name
from sosbands.point_models.residuals import learns_nothing
from sosbands.regressors.cross import fit_cross, is_cross, predict_cross, refuse
from sosbands.regressors.rows import (
    Rows,
    dense_points,
    groups_without,
    last_rows,
    learnt_rows,
    naming_preprocessor,
    read_number_rows,
    refuse_masked,
    row_hashes,
    sampled,
    split_rows,
)
from sosbands.tables.columns import is_number_table, table_of

MODELS = ("estimator", "scale_estimator")  # parameters that may hold a model of the user's
LEARNT = "learning_hashes_"  # the last attribute that learning sets


class SplitRegressor(IntervalMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of interval regressors that learn from one part of the rows and are calibrated on the other.

    A subclass has the constructor parameters `confidence_level`, `calibration`, `calibration_size`, `random_state` and
    `verbose`, and the methods ``_check_parameters()``, ``_learn(rows, y, rng)`` and ``_center_and_band(rows)``;
    it may know a shorter way to the prediction alone (``_center(rows)``), and say that it takes rows that are no
    numbers (``_wants_numbers``), and how (``_numbers``).
    """

    _set_by_some_fits: ClassVar[tuple[str, ...]] = ("n_learnt_calibration_rows_", "copies_", "folds_")
    _most_rows: ClassVar[tuple[int, int] | None] = None  # to learn from and to calibrate on; more are left aside

    calibration_size: Any
    cv: Any
    estimator: Any
    n_jobs: Any
    random_state: Any
    residuals: Any
    verbose: Any
    learning_rows_: IntArray
    calibration_rows_: IntArray
    n_learnt_calibration_rows_: int
    n_unused_rows_: int
    n_features_in_: int
    reads_numbers_: bool
    learning_hashes_: AnyArray
    copies_: list[SplitRegressor]
    folds_: IntArray

    def _check_parameters(self) -> None:
        """Raise an error that names a parameter, its value and what was expected."""
        raise NotImplementedError

    def _learn(self, rows: Rows, y: Array, rng: np.random.RandomState) -> None:
        """Learn from these rows; one that `TakesWeights` has a further argument `weight`."""
        raise NotImplementedError

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        """Point prediction and uncalibrated band at a few thousand rows."""
        raise NotImplementedError

    def _center(self, rows: Rows) -> Array:
        """Point prediction at a few thousand rows."""
        return self._center_and_band(rows)[0]

    def _wants_numbers(self) -> bool:
        """Whether X must be a table of numbers."""
        return True

    def _has_own_model(self) -> bool:
        """Whether a model of the user's is at work, which may use as many threads as it likes."""
        return any(getattr(self, name, None) is not None for name in MODELS)

    def _as_learnt(self, rows: Rows) -> Rows:
        """New rows in the form of those that were learnt from."""
        return rows

    def _encodes_tables(self) -> bool:
        """Whether a table that is not one of finite numbers is made one, column by column."""
        return False

    def _numbers(self, rows: Rows) -> Array:
        """The rows as a table of numbers."""
        return dense_points(None, rows.for_kernel)

    def _fit_point_model(
        self,
        X: Any,
        y: Array,
        random_state: int | np.random.RandomState,
        *,
        with_std: bool = False,
        weight: Array | None = None,
        fold_points: Callable[[Any, Any], Array] | None = None,
        enough_rows: int | None = None,
    ) -> LearntResiduals:
        """Point model and residuals of the learning rows, for a subclass with `estimator`, `residuals`, `cv`, `n_jobs`.

        Sets `estimator_` and `residual_rule_`.
        """
        found = learn_residuals(
            point_model(self.estimator, len(y), self.random_state, self.n_jobs),
            X,
            y,
            residuals=self.residuals,
            cv=self.cv,
            random_state=random_state,
            n_jobs=self.n_jobs,
            with_std=with_std,
            sample_weight=weight,
            fold_points=fold_points,
            enough_rows=enough_rows,
        )
        self.estimator_, self.residual_rule_ = found.model, found.rule
        seen = "used as it is for" if learns_nothing(self.estimator_) else "fitted to"
        self._say(f"point model {model_words(self.estimator_)} {seen} {many(len(y), 'row')}")
        return found

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Learn, and calibrate on the rows held back, or on all by copies that have not seen them.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows.
        y : array of shape (n,)
            Their targets.
        groups : array of shape (n,), optional
            Labels of the rows: each group is held back in the same proportion, at least one row of those with two or
            more, and gets its own quantiles; a warning names groups without calibration rows. What is learnt is common
            to all. `predict_interval` then needs the labels too. With ``calibration_size="cross"`` each fold has its
            part of every group.
        """
        return self._fit(X, y, groups)

    def _fit(self, X: Any, y: Any, groups: Any, sample_weight: Any = None) -> Self:
        self._check_parameters()
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)  # a second fit that fails must not leave a mixture
        self.reads_numbers_ = self._wants_numbers()
        rows = self._read(X, reset=True)
        y = read_target(y, len(rows))
        weights = None if sample_weight is None else read_weights(sample_weight, len(rows))
        weights = None if weights is None or (weights == weights[0]).all() else weights
        labels = None if groups is None else read_groups(groups, len(rows))
        if labels is not None and self.calibration_size is None:
            raise ValueError("groups was given: expected None with calibration_size=None, as fit does not calibrate")
        warn_of_refits(self)
        rng = check_random_state(self.random_state)
        if is_cross(self.calibration_size):
            fit_cross(self, rows, y, labels, rng, weights)
            return self
        if keeps_order(getattr(self, "cv", None)):
            split = last_rows(len(rows), self.calibration_size, labels)
        else:
            split = split_rows(len(rows), self.calibration_size, rng, labels)
        self.learning_rows_, self.calibration_rows_ = split
        if self._most_rows is not None and labels is None:
            parts = zip((self.learning_rows_, self.calibration_rows_), self._most_rows, strict=True)
            self.learning_rows_, self.calibration_rows_ = (sampled(part, most, rng) for part, most in parts)
        self.n_unused_rows_ = len(rows) - len(self.learning_rows_) - len(self.calibration_rows_)
        lost = [] if labels is None else groups_without(labels, self.calibration_rows_)
        if lost:
            warnings.warn(
                f"the groups {shown(lost)} of one row each have no calibration row, because theirs is learnt from: "
                "predict_interval knows no quantile for them",
                TooFewCalibrationPointsWarning,
                stacklevel=3,
            )
        learning, targets = rows.take(self.learning_rows_), y[self.learning_rows_]
        with few_threads(len(targets), blas=self._has_own_model()):
            self._learn(learning, targets, rng, **({} if weights is None else {"weight": weights[self.learning_rows_]}))
        self.learning_hashes_ = np.sort(self._hashes(learning, targets))
        if len(self.calibration_rows_):
            held = self.calibration_rows_
            _, band = self._in_blocks(rows.take(held))
            self.calibration_ = Calibration.of(band, y[held], None if labels is None else labels[held])
            self.n_learnt_calibration_rows_ = 0
            self._say(f"calibrated on {many(len(held), 'row')}")
        return self

    def _scored(self, caller: str, X: Any, y: Any, groups: Any, likelihood_ratio: Any) -> tuple[Calibration, int]:
        """Scores of rows for calibration, and how many of them were learnt from."""
        check_is_fitted(self, LEARNT)
        refuse(caller, "copies_" in vars(self), "all rows of fit are calibrated on, each by its own copy")
        self._check_parameters()
        rows = self._read(X, reset=False)
        target = read_target(y, len(rows))
        seen = self._warn_of_learnt(caller, rows, target, "the coverage guarantee needs rows that fit has not seen")
        return Calibration.of(self._in_blocks(rows)[1], target, groups, likelihood_ratio), seen

    def _warn_of_learnt(self, caller: str, rows: Rows, target: Array, why: str) -> int:
        """How many rows were learnt from, beyond chance; if any, a warning to the caller of the public method."""
        hashes = self._hashes(rows, target)
        seen = learnt_rows(hashes, self.learning_hashes_)
        if seen:
            warnings.warn(
                f"{seen} of the {len(hashes)} rows given to {caller} were learnt from in fit: {why}",
                LearningRowsWarning,
                stacklevel=4,
            )
        return seen

    def _look_at_evaluated(self, X: Any, target: Array) -> None:
        why = "on new rows coverage may be lower and intervals worse"
        if not learns_nothing(getattr(self, "estimator_", None)):
            self._warn_of_learnt("evaluate", self._read(X, reset=False), target, why)

    def _calibrate(self, calibration: Calibration, n_learnt: int, *, kept: int) -> None:
        before = min(kept, getattr(self, "n_learnt_calibration_rows_", 0))
        self.calibration_, self.n_learnt_calibration_rows_ = calibration, min(len(calibration), before + n_learnt)

    def predict(self, X: Any) -> Array:
        """Prediction of the point model, shape (n,)."""
        check_is_fitted(self, LEARNT)
        blocks = self._read(X, reset=False).blocks()
        with few_threads(blas=self._has_own_model()):
            return np.concatenate([self._center(self._as_learnt(block)) for block in blocks])

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`sosbands.load` reads without running any code in it."""
        from sosbands.saving import save  # here, because saving is rare and knows the regressors

        check_is_fitted(self, LEARNT)
        save(self, path)

    def _read(self, X: Any, *, reset: bool) -> Rows:
        """Rows, checked: numbers if they must be; otherwise as they were given."""
        least = 2 if reset else 1
        refuse_masked(X)
        if reset and self.reads_numbers_ and self._encodes_tables():
            self.reads_numbers_ = is_number_table(X)
        if self.reads_numbers_:
            with naming_preprocessor(X, encodes=self._encodes_tables()):
                return read_number_rows(self, X, reset=reset)
        if self._encodes_tables():
            X = table_of(X)
        if len(np.shape(X)) != 2:
            raise ValueError(f"X has shape {np.shape(X)}: expected two dimensions, rows and features")
        validate_data(self, X, reset=reset, skip_check_array=True)
        rows = Rows(X, X)
        if len(rows) < least:
            raise ValueError(f"X has {len(rows)} rows: expected at least {least}")
        return rows

    def _band(self, X: Any) -> Band:
        return self._prediction_and_band(X)[1]

    def _prediction_and_band(self, X: Any) -> tuple[Array, Band]:
        """What `predict` gives, and the uncalibrated band, with one prediction of the point model for both."""
        check_is_fitted(self, LEARNT)
        return self._in_blocks(self._read(X, reset=False))

    def _intervals(
        self, X: Any, levels: list[float], lower_share: Any = 0.5, groups: Any = None, likelihood_ratio: Any = None
    ) -> tuple[Array, Band, list[tuple[Array, BoolArray]]]:
        self._calibrated("predict_interval")
        center, band = self._prediction_and_band(X)
        if "copies_" in vars(self):
            made, reasons = predict_cross(self, X, band, levels, lower_share, groups, likelihood_ratio)
            warn_of_infinite(reasons, 5)
            return center, band, made
        q = self._conformal_quantiles(len(band), levels, lower_share, groups, likelihood_ratio, 5)
        return center, band, [interval(band, *ends_of_level.T) for ends_of_level in q]

    def _conformal_quantiles(self, *arguments: Any) -> list[Array]:
        refuse("quantile", "copies_" in vars(self), "each copy has bands of its own, which no one number moves")
        return super()._conformal_quantiles(*arguments)

    def _placed(self, wanted: str, *arguments: Any) -> tuple[Band, list[Placed]]:
        check_is_fitted(self, LEARNT)
        refuse(wanted, "copies_" in vars(self), "each copy has bands of its own, in which places are not comparable")
        return super()._placed(wanted, *arguments)

    def _in_blocks(self, rows: Rows) -> tuple[Array, Band]:
        """Prediction and band at any number of rows: no kernel matrix or table of leaves of all of them at once."""
        with few_threads(blas=self._has_own_model()):
            parts = (self._center_and_band(self._as_learnt(block)) for block in rows.blocks())
            centers, bands = zip(*parts, strict=True)
        return np.concatenate(centers), joined_bands(bands)

    def _calibrated(self, wanted: str) -> Calibration:
        check_is_fitted(self, LEARNT)
        return super()._calibrated(wanted)

    def _hashes(self, rows: Rows, y: Array) -> AnyArray:
        """Hashes of rows with their targets: of numbers as given, of other rows as the subclass shows them."""
        return row_hashes(dense_points(None, rows.for_kernel) if self.reads_numbers_ else self._numbers(rows), y)

    def _say(self, message: str) -> None:
        say(type(self).__name__, message, self.verbose)


def warn_of_refits(model: Any) -> None:
    """Say of fitted models among the parameters that copies of them are fitted anew: many expect them to be used."""
    for name in MODELS:
        given = getattr(model, name, None)
        if given is not None and not learns_nothing(given) and is_fitted(given):
            warnings.warn(
                f"{name}: the {model_name(given)} is fitted already, but a copy of it is fitted to the learning rows. "
                "To use it as it is, give FrozenEstimator(model) (sklearn.frozen) and rows that it has not seen; to "
                "fit a copy without this warning, give clone(model) (sklearn.base)",
                RefittedWarning,
                stacklevel=4,  # the caller of fit
            )


class TakesWeights:
    """For an interval regressor whose ``_learn`` knows what to do with weights: `fit` takes them."""

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn, and calibrate on the rows held back, or on all by copies that have not seen them.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows.
        y : array of shape (n,)
            Their targets.
        sample_weight : array of shape (n,), optional
            How much each row counts in what is learnt, at least 0. Calibration counts every row once: its promise is
            about rows such as these, whatever their weights (`likelihood_ratio` of `conformalize` changes that).
        groups : array of shape (n,), optional
            Labels of the rows: each group is held back in the same proportion, at least one row of those with two or
            more, and gets its own quantiles; a warning names groups without calibration rows. What is learnt is common
            to all. `predict_interval` then needs the labels too. With ``calibration_size="cross"`` each fold has its
            part of every group.
        """
        fitted: Self = self._fit(X, y, groups, sample_weight)  # type: ignore[attr-defined]  # of SplitRegressor
        return fitted
