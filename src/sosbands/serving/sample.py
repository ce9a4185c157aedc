"""Rows like those that a model has learnt from, on which an exported file is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.exceptions import ExportError
from sosbands.regressors import SoSBandRegressor
from sosbands.tables import TableEncoder
from sosbands.tables.kinds import BOOLEAN, CATEGORY

ROWS = 64
FAR = 4.0  # standard deviations that some of the rows lie from the mean
GAPS = 0.1  # share of the cells that are missing, where columns have gaps
NEW_TEXT = "a text that no learning row has"


def sample_rows(model: SoSBandRegressor) -> Any:
    """Random rows of the size and spread of the learning rows, some of them far away; always the same.

    Raises
    ------
    ExportError
        If the preprocessor is one that nothing is known of: such rows must be given.
    """
    rng = np.random.default_rng(0)
    fitted = model.preprocessor_
    if isinstance(fitted, TableEncoder):
        return _framed(_table(fitted, rng), list(fitted.kinds_), named=fitted.has_names_)
    spread = np.where(np.arange(ROWS) % 8 == 0, FAR, 1.0)[:, None]
    points = model.learning_mean_ + spread * model.learning_scale_ * rng.standard_normal(
        (ROWS, len(model.learning_mean_))
    )
    numbers = points if fitted is None else _inverted(fitted, points)
    names = getattr(model, "feature_names_in_", None)
    columns = {f"{j}" if names is None else names[j]: numbers[:, j] for j in range(numbers.shape[1])}
    return numbers if names is None else _framed(columns, list(columns), named=True)


def _inverted(fitted: Any, points: Array) -> Array:
    try:
        return np.asarray(fitted.inverse_transform(points), dtype=float)
    except (AttributeError, TypeError, ValueError) as error:
        raise ExportError(
            f"rows=None: what a {type(fitted).__name__} makes of rows cannot be turned back, so that there are no rows "
            "to check the file with; expected some rows"
        ) from error


def _table(encoder: TableEncoder, rng: np.random.Generator) -> dict[str, AnyArray]:
    numbers = [name for name, kind in encoder.kinds_.items() if kind not in (CATEGORY, BOOLEAN)]
    ordered = encoder._of("number", "date")
    scale = dict(zip(ordered, encoder.scaler_.scale_, strict=True)) if encoder.scale and ordered else {}
    center = dict(zip(ordered, encoder.scaler_.mean_, strict=True)) if encoder.scale and ordered else {}
    found: dict[str, AnyArray] = {}
    for name, kind in encoder.kinds_.items():
        if kind == CATEGORY:
            found[name] = rng.choice(np.array([*encoder.levels_[name], NEW_TEXT], dtype=object), ROWS)
        else:
            drawn = center.get(name, 0.0) + scale.get(name, 1.0) * rng.standard_normal(ROWS)
            values = drawn if name in numbers else rng.integers(0, 2, ROWS).astype(float)
            found[name] = np.where(rng.random(ROWS) < GAPS, np.nan, values) if name in encoder.gaps_ else values
    return {name: _cells(values, encoder.kinds_[name]) for name, values in found.items()}


def _cells(values: AnyArray, kind: str) -> AnyArray:
    """Cells from which the column is read as of its kind again."""
    if kind == "date":
        return (values * 86_400_000_000).astype("timedelta64[us]") + np.datetime64(0, "us")
    return values


def _framed(columns: dict[str, AnyArray], names: list[str], *, named: bool) -> Any:
    """A data frame, or an array if there are no names; without pandas rows must be given."""
    if not named:
        table = np.empty((ROWS, len(names)), dtype=object)
        for j, name in enumerate(names):
            table[:, j] = columns[name]
        return table
    try:
        import pandas as pd
    except ImportError as error:
        raise ExportError(
            "rows=None: rows of a table to check the file with need pandas; expected some rows"
        ) from error
    return pd.DataFrame(columns)
