"""Tables of features, arrays or data frames: which column lies along the axis, and rows along a curve."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from sosbands._arguments import is_count
from sosbands._types import AnyArray, Array, BoolArray, IntArray

PREDICTION = "prediction"
MARGIN = 0.04  # of the range of a feature, beyond its first and last row


class Along(NamedTuple):
    """What lies along the horizontal axis: a column, or the prediction (`column` is None)."""

    column: int | None
    label: str


def shape_of(X: Any) -> tuple[int, int]:
    """Rows and columns of a table."""
    shape = tuple(X.shape) if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"X has shape {shape}: expected two dimensions, rows and features")
    return int(shape[0]), int(shape[1])


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a data frame."""
    return list(X.columns) if hasattr(X, "columns") else None


def find_axis(X: Any, feature: Any) -> Along:
    """The column that `feature` means: a position, a name, "prediction", or None for the only one there is."""
    _, d = shape_of(X)
    names = column_names(X)
    if feature is None:
        feature = 0 if d == 1 else PREDICTION
    if isinstance(feature, str) and feature == PREDICTION:
        return Along(None, PREDICTION)
    if is_count(feature) and 0 <= feature < d:
        position = int(feature)
    elif names is not None and feature in names:
        position = names.index(feature)
    else:
        known = f", one of the names {names}" if names is not None else ""
        raise ValueError(f"feature={feature!r}: expected 'prediction', a position from 0 to {d - 1}{known}")
    if names is not None:
        return Along(position, str(names[position]))
    return Along(position, "x" if d == 1 else f"feature {position}")


def column(X: Any, position: int) -> AnyArray:
    """One column as an array."""
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, position])
    if hasattr(X, "columns"):
        return np.asarray(X[X.columns[position]])
    return np.asarray(X)[:, position]


def number_column(X: Any, along: Along) -> Array:
    """The column along the axis, which must consist of finite numbers."""
    if along.column is None:
        raise ValueError("the prediction is no column")
    values = column(X, along.column)
    if not _is_numeric(values):
        raise ValueError(f"feature={along.label!r} holds {values.dtype} values: expected numbers")
    numbers = values.astype(float)
    if not np.isfinite(numbers).all():
        raise ValueError(f"feature={along.label!r} holds missing or infinite values: expected finite numbers")
    return numbers


def curve_rows(X: Any, position: int, grid: Array) -> Any:
    """A table like X with one column running through `grid` and the others at their typical values."""
    n = len(grid)
    if not hasattr(X, "columns"):
        values = np.asarray(X)
        table = np.repeat(values[:1], n, axis=0)
        table = table if table.dtype == object else table.astype(float)
        for j in range(values.shape[1]):
            table[:, j] = grid if j == position else _typical(values[:, j])[0]
        return table
    table = X.iloc[np.zeros(n, dtype=int)].reset_index(drop=True) if hasattr(X, "iloc") else X[[0] * n]
    for j, name in enumerate(X.columns):
        value, row = _typical(column(X, j))
        table = _with_column(table, X, name, grid if j == position else value, row)
    return table


def _with_column(table: Any, X: Any, name: Any, value: Any, row: int | None) -> Any:
    """The data frame with a column of one number, of an array, or of the entry of X in one row, whose type is kept."""
    n = len(table)
    if hasattr(X, "iloc"):
        new = value if np.ndim(value) or row is None else X[name].iloc[np.full(n, row)].array
        return table.assign(**{name: new}) if isinstance(name, str) else _assigned(table, name, new)
    series = X[name]
    new = np.broadcast_to(value, n) if np.ndim(value) or row is None else series[[row] * n]
    return table.with_columns(type(series)(name, new))


def _assigned(table: Any, name: Any, new: Any) -> Any:
    copy = table.copy()
    copy[name] = new
    return copy


def _typical(values: AnyArray) -> tuple[Any, int | None]:
    """The median of numbers (of integers one that occurs), or the most frequent other value and a row that has it."""
    if not _is_numeric(values):
        entries = values.tolist()
        value = Counter(entries).most_common(1)[0][0]
        return value, entries.index(value)
    if values.dtype.kind == "f":
        known = values[~np.isnan(values)]
        return float(np.median(known)) if len(known) else np.nan, None
    ordered = np.sort(values)
    return ordered[(len(ordered) - 1) // 2], None


def _is_numeric(values: AnyArray) -> bool:
    return values.dtype.kind in "biuf"


def has_only_numbers(X: Any) -> bool:
    """Whether every column consists of numbers."""
    return all(_is_numeric(column(X, position)) for position in range(shape_of(X)[1]))


def evenly(order: IntArray, max_intervals: int) -> IntArray:
    """At most so many entries of an ordering, evenly spaced, with the first and the last."""
    if max_intervals < 1:
        raise ValueError(f"max_intervals={max_intervals!r}: expected at least 1")
    if len(order) <= max_intervals:
        return order
    kept: IntArray = order[np.unique(np.linspace(0, len(order) - 1, max_intervals).round().astype(int))]
    return kept


def grid_over(x: Array, n_points: int, x_range: tuple[float, float] | None = None) -> Array:
    """Evenly spaced points over the range given, or over that of x and a little more."""
    if n_points < 2:
        raise ValueError(f"n_points={n_points!r}: expected at least 2")
    margin = MARGIN * (float(np.ptp(x)) or 1.0)
    first, last = (x.min() - margin, x.max() + margin) if x_range is None else x_range
    if not (np.isfinite([first, last]).all() and first < last):
        raise ValueError(f"x_range={x_range!r}: expected two finite numbers, the first below the second")
    return np.linspace(first, last, n_points)


def runs_over(mask: BoolArray, grid: Array) -> list[tuple[float, float]]:
    """Stretches of the grid where the mask holds, each reaching half a step beyond its points."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    half = 0.5 * (grid[1] - grid[0])
    return [(float(grid[a] - half), float(grid[b - 1] + half)) for a, b in steps.reshape(-1, 2)]


def target_name(y: Any) -> str:
    """The name of a series, or y."""
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)
