"""What all pictures share: colours and axes, what lies along them, and what is asked of the model that is drawn."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from sosbands._arguments import is_count, read_level
from sosbands._extras import need
from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands.conformal.band import sides_of
from sosbands.exceptions import LITTLE_SUPPORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style = dict[str, Any]  # keyword arguments of matplotlib

# From the palette of Okabe and Ito, which stays apart for colour-blind readers; marks and lines differ as well.
BLUE, ORANGE, VERMILION = "#0072B2", "#E69F00", "#D55E00"
BLACK, GREY, LIGHT = "#000000", "#6E6E6E", "#C8C8C8"
LOWER: Style = {"color": BLUE, "marker": "v"}
UPPER: Style = {"color": ORANGE, "marker": "^"}
LINE = 50  # letters of a line in a legend


def new_axes(ax: Axes | None, *, legend: bool = False, size: tuple[float, float] = (6.4, 5.0)) -> Axes:
    """The axes given, or those of a new figure.

    A legend below the axes needs a figure that makes room for it, which one without any layout engine does not: it gets
    the constrained one, before anything is drawn.
    """
    if ax is None:
        return new_panels(1, size=size)[0]
    figure = ax.figure.figure  # of a subfigure the whole
    if legend and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return ax


def new_panels(count: int, *, size: tuple[float, float]) -> list[Axes]:
    """Axes side by side in a new figure that makes room for what lies outside of them."""
    figure = need("matplotlib.pyplot").figure(figsize=size, layout="constrained")
    return [figure.add_subplot(1, count, position + 1) for position in range(count)]


def open_frame(ax: Axes) -> None:
    """Leave only the two axis lines."""
    ax.spines[["top", "right"]].set_visible(False)


def legend_below(ax: Axes, *, show: bool = True, columns: int = 2) -> None:
    """A legend under the axis label, where no data can be, with as many columns as have room."""
    handles, labels = ax.get_legend_handles_labels()
    if not show or not handles:
        return
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    labels = [fill(label, LINE) for label in labels]
    points = FontProperties(size="small").get_size_in_points()
    room = 1.2 * 72 * ax.bbox.width / ax.figure.dpi  # the layout will widen the axes, and labels stand beside them
    fitting = [count for count in range(1, columns + 1) if _legend_width(labels, count, points) <= room]
    inches = (
        2.4 * float(ax.xaxis.label.get_fontsize()) + 12
    ) / 72  # tick labels, axis label, and the space around them
    ax.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -inches, ax.figure.dpi_scale_trans),
        ncols=max(fitting, default=1),
        frameon=False,
        fontsize=points,
        borderaxespad=0.0,
    )


def _legend_width(labels: list[str], columns: int, points: float) -> float:
    """About how wide the legend will be: letters of half the font size, handles and gaps of 4 of its sizes."""
    rows, more = divmod(len(labels), columns)
    ends = [rows * number + min(number, more) for number in range(columns + 1)]
    parts = [labels[first:last] for first, last in pairwise(ends)]
    longest = (max((len(line) for label in part for line in label.split("\n")), default=0) for part in parts)
    return sum((0.52 * letters + 4.0) * points for letters in longest)


def add_note(ax: Axes, text: str) -> None:
    """A remark as a line of the legend, so that it covers nothing."""
    ax.plot([], [], linestyle="none", label=text)


def percent(level: float) -> str:
    """A level in words: 90 %, 97.5 %."""
    return f"{100 * level:g} %"


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
    if not hasattr(model, "noise_"):
        raise ValueError(f"model: this {type(model).__name__} does not know which rows shape its bands")
    n, _ = shape_of(X)
    lower, upper = np.asarray(model.noise_.active_lower, dtype=int), np.asarray(model.noise_.active_upper, dtype=int)
    kinds = [getattr(model, name, ()) for name in ("learning_rows_", "calibration_rows_")]
    given = len(np.union1d(*kinds)) or n  # rows may be of both kinds
    if n != given or max(lower.max(initial=0), upper.max(initial=0)) >= n:
        raise ValueError(f"X has {n} rows: expected those given to fit, among which the shaping ones are numbered")
    if not _learnt_from(model, X):
        raise ValueError("X holds other rows than those given to fit, or in another order: expected the same")
    return lower, upper


def _learnt_from(model: Any, X: Any) -> bool:
    """Whether the learning rows have the mean that the model remembers; True for a model that remembers none."""
    if not hasattr(model, "learning_rows_") or not hasattr(model, "reader_"):
        return True
    points = model.reader_.points(model.reader_.read(model, _safe_indexing(X, model.learning_rows_)))
    error = np.abs(points.mean(axis=0) - model.reader_.mean)
    size = np.abs(model.reader_.mean) + model.reader_.scale
    return bool(np.all(error <= 1e-6 * np.where(size > 0, size, 1.0)))


def learnt_bands(model: Any, X: Any) -> tuple[Array, Array]:
    """How far the bands reach below and above the prediction before calibration, in units of the target."""
    facts, noise = model.facts(X), model.noise_
    points, unit = noise.view.points(facts), noise.view.unit(facts)
    below, above = sides_of(unit)
    return below * noise.lower(points), above * noise.upper(points)


def _method(model: Any, name: str) -> Any:
    method = getattr(model, name, None)
    if not callable(method):
        raise TypeError(f"model={type(model).__name__}: expected an interval regressor, which has {name}")
    return method
