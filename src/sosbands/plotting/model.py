"""What pictures ask of an interval regressor: predictions, ends, support, and the rows that shape its bands."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sosbands._arguments import read_level
from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands.exceptions import LITTLE_SUPPORT
from sosbands.plotting.rows import shape_of


def level_of(model: Any, confidence_level: Any) -> float:
    """The level given, or that of the model."""
    level = getattr(model, "confidence_level", None) if confidence_level is None else confidence_level
    if level is None or np.ndim(level):
        raise ValueError(f"confidence_level={level!r}: expected one number in (0, 1)")
    return read_level(level)


def prediction(model: Any, X: Any) -> Array:
    """Point predictions, shape (n,)."""
    n, _ = shape_of(X)
    values = np.asarray(_method(model, "predict")(X), dtype=float)
    if values.shape != (n,):
        raise ValueError(f"model: its predictions have shape {values.shape}, expected ({n},)")
    return values


def interval_ends(
    model: Any, X: Any, level: Any, options: dict[str, Any], *, quiet: tuple[type[Warning], ...] = ()
) -> AnyArray:
    """Ends of the intervals, shape (n, 2), or (n, 2, k) for k levels, without the warnings that the picture shows.

    A single group or likelihood ratio in `options` stands for all rows.
    """
    n, _ = shape_of(X)
    for name in ("groups", "likelihood_ratio"):
        if options.get(name) is not None and np.ndim(options[name]) == 0:
            options = {**options, name: np.full(n, options[name])}
    with warnings.catch_warnings():
        for category in quiet:
            warnings.simplefilter("ignore", category)
        ends = np.asarray(_method(model, "predict_interval")(X, level, **options), dtype=float)
    expected = (n, 2, len(level)) if np.ndim(level) else (n, 2)
    if ends.shape != expected:
        raise ValueError(f"model: its intervals have shape {ends.shape}, expected {expected}")
    return ends


def off_data(model: Any, X: Any) -> BoolArray:
    """Rows about which the learning data say nothing; none for a model that knows no support."""
    n, _ = shape_of(X)
    if not hasattr(model, "support"):
        return np.zeros(n, dtype=bool)
    return np.asarray(np.asarray(model.support(X)) < getattr(model, "support_limit", LITTLE_SUPPORT))


def shaping_rows(model: Any, X: Any) -> tuple[IntArray, IntArray]:
    """Rows of X that shape the lower and the upper band; X must hold the rows given to `fit`, in their order."""
    if not hasattr(model, "active_lower_") or not hasattr(model, "active_upper_"):
        raise ValueError(f"model: this {type(model).__name__} does not know which rows shape its bands")
    n, _ = shape_of(X)
    lower, upper = np.asarray(model.active_lower_, dtype=int), np.asarray(model.active_upper_, dtype=int)
    kinds = [getattr(model, name, ()) for name in ("learning_rows_", "calibration_rows_")]
    given = len(np.union1d(*kinds)) or n  # rows may be of both kinds
    if n != given or max(lower.max(initial=0), upper.max(initial=0)) >= n:
        raise ValueError(f"X has {n} rows: expected those given to fit, among which the shaping ones are numbered")
    if not _learnt_from(model, X):
        raise ValueError("X holds other rows than those given to fit, or in another order: expected the same")
    return lower, upper


def _learnt_from(model: Any, X: Any) -> bool:
    """Whether the learning rows have the mean that the model remembers; True for a model that remembers none."""
    if not all(hasattr(model, name) for name in ("learning_rows_", "learning_mean_", "learning_scale_")):
        return True
    points = preprocessed(model, _safe_indexing(X, model.learning_rows_))
    error = np.abs(points.mean(axis=0) - model.learning_mean_)
    size = np.abs(model.learning_mean_) + model.learning_scale_
    return bool(np.all(error <= 1e-6 * np.where(size > 0, size, 1.0)))


def learnt_bands(model: Any, X: Any) -> tuple[Array, Array]:
    """How far the bands reach below and above the prediction before calibration, in units of the target."""
    if not hasattr(model, "view_"):
        points = preprocessed(model, X)
        return np.asarray(model.lower_(points)), np.asarray(model.upper_(points))
    facts = model._facts(model._read(X, reset=False))
    points, unit = model.view_.points(facts), model.view_.unit(facts)
    return unit * model.lower_(points), unit * model.upper_(points)


def preprocessed(model: Any, X: Any) -> Array:
    """What the preprocessor of the model gives."""
    preprocessor = getattr(model, "preprocessor_", None)
    if getattr(model, "reads_numbers_", True):
        X = np.asarray(X, dtype=float)  # what such a preprocessor was fitted to
    points = X if preprocessor is None else preprocessor.transform(X)
    return np.asarray(points.toarray() if hasattr(points, "toarray") else points, dtype=float)


def _method(model: Any, name: str) -> Any:
    method = getattr(model, name, None)
    if not callable(method):
        raise TypeError(f"model={type(model).__name__}: expected an interval regressor, which has {name}")
    return method
