"""What `SoSBandRegressor.fit` does with the rows before bands are learnt: split, residuals, preprocessing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_y, column_or_1d

from sosbands._types import AnyArray, Array, IntArray
from sosbands.exceptions import MultiOutputError
from sosbands.point_models import CallableRegressor, default_regressor, residual_rule

PREDICTION_ROWS = 4096  # rows predicted at a time: a Gaussian process builds a kernel matrix of them


def read_target(y: Any, n: int) -> Array:
    """Targets as a vector of finite numbers, one per row."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None: expected one per row of X")
    shape = np.asarray(y).shape
    if len(shape) == 2 and shape[1] != 1:
        raise MultiOutputError(f"y has shape {shape}: expected one target, so fit one SoSBandRegressor per column")
    values: Array = _check_y(column_or_1d(y, warn=True), y_numeric=True).astype(float)
    if len(values) != n:
        raise ValueError(f"y has {len(values)} entries: expected {n}, one per row of X")
    return values


def split_rows(n: int, calibration_size: float | int | None, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
    """Positions of the learning rows and of the rows held back for calibration, both increasing."""
    if calibration_size is None:
        return np.arange(n), np.zeros(0, dtype=np.intp)
    count = calibration_size if isinstance(calibration_size, (int, np.integer)) else round(calibration_size * n)
    count = max(1, int(count))
    if count >= n:
        raise ValueError(
            f"calibration_size={calibration_size!r} leaves none of the n_samples = {n} rows to learn from: expected "
            f"less than {n}, or None and a call of conformalize with other rows"
        )
    order = rng.permutation(n).astype(np.intp)
    return np.sort(order[count:]), np.sort(order[:count])


def take_rows(X: Any, rows: IntArray) -> Any:
    """Rows of an array, data frame or sparse matrix."""
    return _safe_indexing(X, rows)


def point_model(estimator: Any, n: int, random_state: Any) -> Any:
    """An unfitted copy of the user's model, of the default one, or a wrapper of the user's function."""
    if estimator is None:
        return default_regressor(n, random_state)
    return clone(estimator if hasattr(estimator, "fit") else CallableRegressor(estimator))


def predict_in_blocks(model: Any, X: Any) -> Array:
    """Predictions of a point model, a few thousand rows at a time."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    starts = range(0, n, PREDICTION_ROWS)
    blocks = [X] if n <= PREDICTION_ROWS else (take_rows(X, np.arange(i, min(i + PREDICTION_ROWS, n))) for i in starts)
    return np.concatenate([np.asarray(model.predict(block), dtype=float).reshape(-1) for block in blocks])


def learning_residuals(model: Any, X: Any, y: Array, *, rule: str, cv: KFold, n_jobs: int | None) -> Array:
    """Residuals of the learning rows of a fitted model: its own, or those of its copies fitted on the other folds."""
    if rule == "auto":
        rule = residual_rule(model)
    if rule == "in-sample" or cv.n_splits < 2:
        return np.asarray(y - predict_in_blocks(model, X))
    predictions = cross_val_predict(clone(model), X, y, cv=cv, n_jobs=n_jobs)
    return np.asarray(y - np.asarray(predictions, dtype=float).reshape(-1))


def make_preprocessor(preprocessor: Any, X: Any) -> Any:
    """Fitted transformer of what the kernel sees; None leaves the features as they are."""
    if preprocessor is None:
        return None
    return (StandardScaler() if isinstance(preprocessor, str) else clone(preprocessor)).fit(X)


def dense_points(preprocessor: Any, X: Any) -> Array:
    """What the kernel sees, as a dense array of numbers."""
    points = X if preprocessor is None else preprocessor.transform(X)
    if hasattr(points, "toarray"):
        points = points.toarray()
    array = np.asarray(points)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not np.all(np.isfinite(array)):
        raise ValueError(
            "preprocessor: its output must be a table of finite numbers, so let it encode categories and fill in "
            f"missing values (got shape {array.shape}, dtype {array.dtype})"
        )
    return array.astype(float, copy=False)


def without_outliers(r: Array, fraction: float) -> AnyArray:
    """Mask of the rows kept when the `fraction` with the largest residuals is left out."""
    keep = np.ones(len(r), dtype=bool)
    dropped = int(np.floor(fraction * len(r)))
    if dropped:
        keep[np.argsort(-np.abs(r), kind="stable")[:dropped]] = False
    return keep


def row_hashes(points: Array, y: Array) -> AnyArray:
    """A 64-bit number per row, equal for equal rows: multiply and add, wrapping around."""
    table = np.ascontiguousarray(np.column_stack([points, y]) + 0.0)  # -0.0 becomes 0.0
    odd = np.random.default_rng(0).integers(1, 2**63, size=table.shape[1], dtype=np.uint64) | np.uint64(1)
    bits = table.view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(31))) * odd
        return np.asarray((mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64))
