"""What the baselines have in common on top of `SplitRegressor`: checks, and reading of any table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from sosbands._arguments import check, check_choice, check_size, is_count, naming, read_level
from sosbands._types import Array
from sosbands.baselines.tables import finite_numbers, table_of_numbers
from sosbands.conformal.arguments import read_kind
from sosbands.regressors.base import SplitRegressor
from sosbands.regressors.parameters import RESIDUALS, check_calibration_size, check_estimator, check_running
from sosbands.regressors.rows import Rows, read_number_rows, refuse_masked
from sosbands.tables import TableEncoder
from sosbands.tables.columns import is_number_table


def _check_count(name: str, least: int = 1) -> Callable[[Any], None]:
    return lambda value: check(name, value, is_count(value) and value >= least, f"an int >= {least}")


# Parameters that several baselines share; each is checked where a class has it.
CHECKS: dict[str, Callable[[Any], object]] = {
    "confidence_level": read_level,
    "calibration": read_kind,
    "calibration_size": check_calibration_size,
    "estimator": check_estimator,
    "residuals": lambda value: check_choice("residuals", value, RESIDUALS),
    "cv": _check_count("cv", 2),
    "conformal_score": lambda value: check_choice("conformal_score", value, ("additive", "normalized")),
    **{name: _check_count(name) for name in ("n_estimators", "min_samples_leaf", "max_iter", "n_starts")},
}


class Baseline(SplitRegressor):
    """Base of the baselines.

    Of tables that are not finite numbers they learn what `TableEncoder` makes, unless they take them as they are.

    A subclass defines ``_learn_model(rows, y, rng)`` and ``_center_and_band(rows)``. It has the constructor parameters
    `confidence_level`, `calibration`, `calibration_size`, `random_state` and `verbose`.
    """

    _set_by_some_fits = ("encodes_table_",)
    encodes_table_: bool = False
    table_encoder_: TableEncoder | None
    learning_mean_: Array | None
    learning_scale_: Array | None
    _checks: ClassVar[dict[str, Callable[[Any], object]]] = {}  # of a class that takes more than others do
    n_jobs: Any = None  # a constructor parameter of those that can use several processes

    def _check_parameters(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if name in CHECKS:
                self._checks.get(name, CHECKS[name])(value)
        check_running(self)

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState) -> None:
        """Learn from these rows; one that `TakesWeights` has a further argument `weight`."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        """Gaps are filled, unless a model of the user's sees them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = getattr(self, "estimator", None) is None
        return tags

    def _must_encode(self, X: Any) -> bool:
        """Whether a table must be made one of finite numbers, column by column."""
        return self.reads_numbers_ and not is_number_table(X)

    def _learn(self, rows: Rows, y: Array, rng: np.random.RandomState, weight: Array | None = None) -> None:
        self.table_encoder_ = TableEncoder(scale=False) if self.encodes_table_ else None
        if self.table_encoder_ is not None:
            encoded = np.asarray(self.table_encoder_.fit_transform(rows.for_kernel, y))
            rows = Rows(encoded, encoded)
        self._learn_model(rows, y, rng, **({} if weight is None else {"weight": weight}))
        points = finite_numbers(rows.for_kernel)
        self.learning_mean_ = None if points is None else points.mean(axis=0)
        self.learning_scale_ = None if points is None else points.std(axis=0)

    def _as_learnt(self, rows: Rows) -> Rows:
        if self.table_encoder_ is None:
            return rows
        points = np.asarray(self.table_encoder_.transform(rows.for_kernel))
        return Rows(points, points)

    def _numbers(self, rows: Rows) -> Array:
        return table_of_numbers(rows.for_kernel)

    def _read(self, X: Any, *, reset: bool) -> Rows:
        """Rows, checked: finite numbers if the model needs them, otherwise any table as it was given."""
        least = 2 if reset else 1
        refuse_masked(X)
        if reset:
            self.encodes_table_ = self._must_encode(X)
            self.reads_numbers_ = self.reads_numbers_ and not self.encodes_table_
        if self.reads_numbers_:
            return read_number_rows(self, X, reset=reset)
        if issparse(X):
            raise TypeError("X is a sparse matrix: expected a dense table (X.toarray()), sparse data are not supported")
        with naming("X"):  # rows of different lengths
            table = X if hasattr(X, "columns") else np.asarray(X)
        if len(table.shape) != 2:
            raise ValueError(
                f"X has shape {table.shape}: expected two dimensions, rows and features. Reshape your data: "
                "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row"
            )
        if len(table) < least:
            raise ValueError(f"X has n_samples = {len(table)} rows: expected at least {least}")
        validate_data(self, table, reset=reset, skip_check_array=True)
        values = np.asarray(table)
        if values.dtype.kind == "f":
            check_size("X", values, "give the column in another unit")
        return Rows(table, table)

    def _metric_points(self, X: Any) -> dict[str, Any]:
        """Test rows, and two rows with the mean and the standard deviation of the learning rows."""
        if self.table_encoder_ is not None:
            X = self.table_encoder_.transform(X)
        points = finite_numbers(X)
        if points is None:
            return {}
        if self.learning_mean_ is None or self.learning_scale_ is None:
            return {"X": points}
        mean, scale = self.learning_mean_, self.learning_scale_
        return {"X": points, "X_learn": np.vstack([mean - scale, mean + scale])}


def import_extra(module: str, package: str) -> Any:
    """An optional dependency, or an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"this baseline needs {package}, which is not installed: pip install {package}") from error
