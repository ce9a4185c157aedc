"""SplitRegressor: what every interval regressor does alike, from reading rows to calibration on those held back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from sosbands._progress import say, speaking
from sosbands._threads import few_threads
from sosbands._types import Array, IntArray
from sosbands._words import listed, many, warn
from sosbands.conformal import IntervalMixin, Told, points_needed, side_levels
from sosbands.conformal.asked import is_conditional, read_kind
from sosbands.conformal.calibration import SHOWN
from sosbands.exceptions import LearningRowsWarning, RefittedWarning, TooFewCalibrationPointsWarning
from sosbands.point_models.user_model import is_fitted, keeps_order, learns_nothing, model_name
from sosbands.regressors.checks import CROSS, OUT_OF_FOLD, Check, check_parameters, is_cross, is_out_of_fold
from sosbands.regressors.folds import fit_folds
from sosbands.tables.rows import AUTO, GIVEN, NUMBERS, TABLE, LearningData, RowReader, Rows, groups_without, learnt_rows

MODELS = ("estimator", "scale_estimator")  # parameters that may hold a model of the user's
GUARANTEE = "the coverage guarantee needs rows that fit has not seen"
LEARNT_FROM = {
    "conformalize": GUARANTEE,
    "update": GUARANTEE,
    "evaluate": "on new rows coverage may be lower and intervals worse",
}
CALIBRATED_ON = {
    "update": "twice the same rows say no more than once, and are taken for twice as many",
    "evaluate": "of these the level is met by construction, so that the coverage says nothing about new rows",
}


class SplitRegressor(IntervalMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of interval regressors that learn from one part of the rows and are calibrated on the other.

    A subclass has the constructor parameters `confidence_level`, `calibration`, `calibration_size`, `random_state` and
    `verbose`, and the methods ``_learn(data, rng)`` and ``_tell_block(rows)``; it may know a shorter way to the
    prediction alone (``_center(rows)``), checks of its own (``_checks``), and how its rows are read (``_wanted_rows``).

    Attributes
    ----------
    reader_ : RowReader
        How X is read: as numbers or as columns, by which preprocessor, and which rows were learnt from.
    learning_rows_, calibration_rows_ : ndarray of int
        Rows given to `fit` that were learnt from and held back; each has all rows with ``calibration_size="cross"``
        and ``"out-of-fold"``, the latter at most those that folds have held out.
    n_unused_rows_ : int
        Rows given to `fit` that were neither, as of very many some are enough.
    """

    _most_rows: ClassVar[tuple[int, int] | None] = None  # to learn from and to calibrate on; more are left aside
    _calibrates_by_folds: ClassVar[bool] = False  # whether `_learn` does so, with ``calibration_size="out-of-fold"``
    _checks: ClassVar[Mapping[str, Check]] = {}  # of parameters that other regressors lack, or read otherwise

    calibration_size: Any
    random_state: Any
    verbose: Any
    reader_: RowReader
    learning_rows_: IntArray
    calibration_rows_: IntArray
    n_unused_rows_: int
    n_features_in_: int

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        """Learn from these rows."""
        raise NotImplementedError

    def _tell_block(self, rows: Rows) -> Told:
        """Prediction and uncalibrated band of a few thousand rows."""
        raise NotImplementedError

    def _center(self, rows: Rows) -> Array:
        """Point prediction of a few thousand rows."""
        return np.asarray(self._tell_block(rows).prediction)

    def _wanted_rows(self) -> str:
        """How rows are read, in the words of `sosbands.tables.rows`."""
        return TABLE

    def __sklearn_tags__(self) -> Any:
        """Gaps are filled, unless a model of the user's sees them, whose affair they are, or a transformer."""
        tags = super().__sklearn_tags__()
        model = getattr(self, "estimator", None)
        allowed = get_tags(model).input_tags.allow_nan if hasattr(model, "fit") else model is None
        tags.input_tags.allow_nan = allowed and self._wanted_rows() not in (NUMBERS, GIVEN)
        return tags

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
            part of every group. With ``calibration="conditional"`` also a table of True and False, shape (n, k), whose
            columns are groups that may overlap; rows are held back whatever their groups then.
        """
        with speaking(self):
            # 1. Read everything once; a second fit that fails must not leave a mixture.
            check_parameters(self)
            for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
                delattr(self, name)
            self.reader_, rows = RowReader.learn(self, X, self._wanted_rows())
            conditional = is_conditional(self.calibration)
            data = LearningData.of(rows, y, sample_weight, groups, overlapping=conditional)
            if conditional and getattr(self, "nested_coverages", None) is not None:
                raise ValueError("calibration='conditional' with nested_coverages: not offered, expected None")
            if conditional and (is_cross(self.calibration_size) or is_out_of_fold(self.calibration_size)):
                raise ValueError(
                    f"calibration='conditional' with calibration_size={self.calibration_size!r}: not offered, expected "
                    "rows that are calibrated on alone, such as calibration_size='auto'"
                )
            if data.groups is not None and self.calibration_size is None:
                expected = "expected None with calibration_size=None, as fit does not calibrate"
                raise ValueError(f"groups was given: {expected}")
            for name in MODELS:  # many expect a fitted model to be used as it is
                given = getattr(self, name, None)
                if given is not None and not learns_nothing(given) and is_fitted(given):
                    warn(
                        f"{name}: the {model_name(given)} is fitted already, but a copy of it is fitted to the "
                        "learning rows. To use it as it is, give FrozenEstimator(model) (sklearn.frozen) and rows that "
                        "it has not seen; to fit a copy without this warning, give clone(model) (sklearn.base)",
                        RefittedWarning,
                    )
            rng = check_random_state(self.random_state)
            if is_cross(self.calibration_size) or (
                is_out_of_fold(self.calibration_size) and not self._calibrates_by_folds
            ):
                fit_folds(self, data, rng)
            else:
                self._fit_rows(data, rng)
        return self

    def _fit_rows(self, data: LearningData, rng: np.random.RandomState) -> None:
        """Learn from one part of rows that were read, and calibrate on the other."""
        # 2. Learn from one part of the rows.
        size = None if is_out_of_fold(self.calibration_size) else self.calibration_size
        kind = read_kind(self.calibration, conditional=True)
        needed = max(map(points_needed, side_levels(self.confidence_level, kind)))
        apart = None if data.groups is None or data.groups.ndim == 2 else data.groups  # not those that overlap
        most = len(data) if apart is None else int(np.unique(apart, return_counts=True)[1].max())
        if isinstance(size, str) and needed > most // 2:
            where = "" if most == len(data) else f", at most {most} in a group"
            raise ValueError(
                f"calibration_size={AUTO!r} with X of n_samples = {len(data)} rows and n_features = "
                f"{self.n_features_in_}{where}: a finite interval at confidence level {self.confidence_level:g} takes "
                f"{needed:.0f} rows to calibrate on, expected at least as many again to learn from; "
                f"{OUT_OF_FOLD!r} and {CROSS!r} use every row for both"
            )
        in_order = keeps_order(getattr(self, "cv", None))
        learn, held = data.split(size, rng, needed=needed, in_order=in_order, most=self._most_rows)
        self.learning_rows_, self.calibration_rows_ = learn.positions, held.positions
        self.n_unused_rows_ = len(data) - len(learn) - len(held)
        labels = None if size is None or data.groups is None or data.groups.ndim == 2 else data.groups
        lost = [] if labels is None else groups_without(labels, held.positions)
        if lost:
            warn(
                f"the groups {listed(lost, SHOWN)} of one row each have no calibration row, because theirs is "
                "learnt from: predict_interval knows no quantile for them",
                TooFewCalibrationPointsWarning,
            )
        with few_threads(len(learn), blas=self._has_own_model()):
            self._learn(learn, rng)
        self.reader_ = self.reader_.remembering(learn)
        # 3. Calibrate on the other.
        if len(held):
            hashes = self.reader_.hashes_of(held.rows, held.y)
            self.calibration_ = self._calibrated(self._tell(held.rows), held.y, held.groups, hashes=hashes)
            say(f"calibrated on {many(len(held), 'row')}")

    def _has_own_model(self) -> bool:
        """Whether a model of the user's is at work, which may use as many threads as it likes."""
        return any(getattr(self, name, None) is not None for name in MODELS)

    def _known_rows(self, told: Told, y: Array, caller: str) -> dict[str, Any]:
        learnt = self.reader_.hashes
        if learnt is None or (caller == "evaluate" and learns_nothing(getattr(self, "estimator_", None))):
            learnt = np.zeros(0)
        hashes, found = self.reader_.hashes_of(told.rows, y), f"of the {len(y)} rows given to {caller} were"
        seen = learnt_rows(hashes, learnt) if len(learnt) else 0
        if seen:
            warn(f"{seen} {found} learnt from in fit: {LEARNT_FROM[caller]}", LearningRowsWarning)
        made = vars(self).get("calibration_")
        if caller != "conformalize" and not seen and made is not None and made.hashes is not None:
            known = np.zeros(0) if self.reader_.hashes is None else self.reader_.hashes
            again = learnt_rows(hashes, np.sort(made.hashes), known)
            if again:
                warn(f"{again} {found} calibrated on already: {CALIBRATED_ON[caller]}", LearningRowsWarning)
        return {"n_learnt": seen, "hashes": hashes}

    def __sklearn_is_fitted__(self) -> bool:
        return "reader_" in vars(self) and self.reader_.hashes is not None

    def predict(self, X: Any) -> Array:
        """Prediction of the point model, shape (n,)."""
        check_is_fitted(self)
        rows = self.reader_.read(self, X)
        with few_threads(blas=self._has_own_model()):
            return np.concatenate([self._center(block) for block in rows.blocks()])

    def told(self, X: Any) -> Told:
        """What the model tells of the rows of X, with one prediction of the point model."""
        check_is_fitted(self)
        # rows that were read by the model of all rows have points that this copy of it makes in its own way
        return self._tell(Rows(X.given, X.table) if isinstance(X, Rows) else self.reader_.read(self, X))

    def _tell(self, rows: Rows) -> Told:
        """The same of rows that were read: no kernel matrix or table of leaves of all of them at once."""
        with few_threads(blas=self._has_own_model()):
            return Told.joined([self._tell_block(block) for block in rows.blocks()], rows)

    def _metric_points(self, rows: Rows) -> dict[str, Array]:
        return self.reader_.standardised(rows)

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`sosbands.load` reads without running any code in it."""
        from sosbands.saving import save  # here, because saving is rare and knows the regressors

        check_is_fitted(self)
        save(self, path)


def fit_alike(self: SplitRegressor, X: Any, y: Any, *, groups: Any = None) -> Any:
    """Learn and calibrate as `SplitRegressor.fit` says, every row counting alike."""
    return SplitRegressor.fit(self, X, y, groups=groups)
