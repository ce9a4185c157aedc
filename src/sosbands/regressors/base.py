"""SplitRegressor: what every interval regressor does alike, from reading rows to calibration on those held back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._progress import say
from sosbands._types import AnyArray, Array, IntArray
from sosbands.conformal import Band, Calibration, IntervalMixin
from sosbands.conformal.arguments import read_groups, read_target
from sosbands.conformal.calibration import shown
from sosbands.exceptions import LearningRowsWarning, TooFewCalibrationPointsWarning
from sosbands.point_models import LearntResiduals, learn_residuals, model_words, point_model
from sosbands.regressors.rows import (
    Rows,
    dense_points,
    groups_without,
    learnt_rows,
    naming_preprocessor,
    row_hashes,
    sampled,
    split_rows,
)

LEARNT = "learning_hashes_"  # the last attribute that learning sets


class SplitRegressor(IntervalMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of interval regressors that learn from one part of the rows and are calibrated on the other.

    A subclass has the constructor parameters `confidence_level`, `calibration`, `calibration_size`, `random_state` and
    `verbose`, and the methods ``_check_parameters()``, ``_learn(rows, y, rng)`` and ``_center_and_band(rows)``; further
    it may know a shorter way to the prediction alone (``_center(rows)``), and say that it takes rows that are no
    numbers (``_wants_numbers``), and how (``_numbers``).
    """

    _saved_parts: ClassVar[tuple[type, ...]] = ()  # further types of this package that a fitted model holds
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

    def _check_parameters(self) -> None:
        """Raise an error that names a parameter, its value and what was expected."""
        raise NotImplementedError

    def _learn(self, rows: Rows, y: Array, rng: np.random.RandomState) -> None:
        """Learn from these rows."""
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
            enough_rows=enough_rows,
        )
        self.estimator_, self.residual_rule_ = found.model, found.rule
        self._say(f"point model {model_words(self.estimator_)} fitted to {len(y)} rows")
        return found

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Learn, and calibrate on the rows held back.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows.
        y : array of shape (n,)
            Their targets.
        groups : array of shape (n,), optional
            Labels of the rows: each group is held back in the same proportion, at least one row of those with two or
            more, and gets its own quantiles; a warning names groups without calibration rows. What is learnt is common
            to all. `predict_interval` then needs the labels too.
        """
        self._check_parameters()
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)  # a second fit that fails must not leave a mixture
        self.reads_numbers_ = self._wants_numbers()
        rows = self._read(X, reset=True)
        y = read_target(y, len(rows))
        labels = None if groups is None else read_groups(groups, len(rows))
        if labels is not None and self.calibration_size is None:
            raise ValueError("groups was given: expected None with calibration_size=None, as fit does not calibrate")
        rng = check_random_state(self.random_state)
        self.learning_rows_, self.calibration_rows_ = split_rows(len(rows), self.calibration_size, rng, labels)
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
                stacklevel=2,
            )
        learning, targets = rows.take(self.learning_rows_), y[self.learning_rows_]
        self._learn(learning, targets, rng)
        self.learning_hashes_ = np.sort(self._hashes(learning, targets))
        if len(self.calibration_rows_):
            held = self.calibration_rows_
            _, band = self._in_blocks(rows.take(held))
            self.calibration_ = Calibration.of(band, y[held], None if labels is None else labels[held])
            self.n_learnt_calibration_rows_ = 0
            self._say(f"calibrated on {len(held)} rows")
        return self

    def conformalize(self, X: Any, y: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Self:
        """Calibrate on rows that `fit` has not seen; a second call replaces the first.

        Parameters
        ----------
        X : array or data frame of shape (m, n_features)
            Rows.
        y : array of shape (m,)
            Their targets.
        groups : array of shape (m,), optional
            Labels: each group gets its own quantiles, and so its own coverage guarantee.
        likelihood_ratio : array of shape (m,), optional
            Density of the test points over that of the calibration points, up to a constant (covariate shift).
        """
        check_is_fitted(self, LEARNT)
        self._check_parameters()
        rows = self._read(X, reset=False)
        target = read_target(y, len(rows))
        hashes = self._hashes(rows, target)
        seen = learnt_rows(hashes, self.learning_hashes_)
        if seen:
            warnings.warn(
                f"{seen} of the {len(hashes)} rows given to conformalize were learnt from in fit: the coverage "
                "guarantee needs rows that fit has not seen",
                LearningRowsWarning,
                stacklevel=2,
            )
        self.calibration_ = Calibration.of(self._in_blocks(rows)[1], target, groups, likelihood_ratio)
        self.n_learnt_calibration_rows_ = seen
        return self

    def predict(self, X: Any) -> Array:
        """Prediction of the point model, shape (n,)."""
        check_is_fitted(self, LEARNT)
        blocks = self._read(X, reset=False).blocks()
        return np.concatenate([self._center(block) for block in blocks])

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`sosbands.load` reads without running any code in it."""
        from sosbands.regressors.persistence import save  # here, because saving is rare and skops slow to import

        check_is_fitted(self, LEARNT)
        save(self, path)

    def _read(self, X: Any, *, reset: bool) -> Rows:
        """Rows, checked: numbers if they must be; otherwise as they were given."""
        least = 2 if reset else 1
        if self.reads_numbers_:
            with naming_preprocessor():
                numbers = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_min_samples=least)
            return Rows(X if hasattr(X, "columns") else numbers, numbers)
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

    def _in_blocks(self, rows: Rows) -> tuple[Array, Band]:
        """Prediction and band at any number of rows: no kernel matrix or table of leaves of all of them at once."""
        centers, bands = zip(*(self._center_and_band(block) for block in rows.blocks()), strict=True)
        return np.concatenate(centers), _joined(bands)

    def _calibrated(self, wanted: str) -> Calibration:
        check_is_fitted(self, LEARNT)
        return super()._calibrated(wanted)

    def _hashes(self, rows: Rows, y: Array) -> AnyArray:
        """Hashes of rows with their targets: of numbers as given, of other rows as the subclass shows them."""
        return row_hashes(dense_points(None, rows.for_kernel) if self.reads_numbers_ else self._numbers(rows), y)

    def _say(self, message: str) -> None:
        say(type(self).__name__, message, self.verbose)


def _joined(bands: Sequence[Band]) -> Band:
    """The band of consecutive blocks of rows."""
    if len(bands) == 1:
        return bands[0]
    supports = [band.support for band in bands if band.support is not None]
    lower_unit, upper_unit = (
        np.concatenate([np.broadcast_to(band.units[k], len(band)) for band in bands]) for k in (0, 1)
    )
    return Band(
        np.concatenate([band.lower for band in bands]),
        np.concatenate([band.upper for band in bands]),
        lower_unit,
        upper_unit,
        np.concatenate(supports) if supports else None,
        bands[0].least_score,
    )
