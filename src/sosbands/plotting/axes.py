"""What all pictures share: colours and axes, what lies along them, and what is asked of the model that is drawn."""

from __future__ import annotations

import warnings
from collections import Counter
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sosbands._arguments import is_count, read_level
from sosbands._extras import need
from sosbands._types import AnyArray, Array, BoolArray
from sosbands.exceptions import LITTLE_SUPPORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style = dict[str, Any]  # keyword arguments of matplotlib

# From the palette of Okabe and Ito, which stays apart for colour-blind readers; marks and lines differ as well.
BLUE, ORANGE, VERMILION = "#0072B2", "#E69F00", "#D55E00"
BLACK, DARK, GREY, LIGHT = "#000000", "#333333", "#6E6E6E", "#C8C8C8"
LOWER: Style = {"color": BLUE, "marker": "v"}
UPPER: Style = {"color": ORANGE, "marker": "^"}
LINE = 50  # letters of a line in a legend


def new_axes(ax: Axes | None, *, legend: bool = False, size: tuple[float, float] = (5.2, 4.8)) -> Axes:
    """The axes given, or those of a new figure, whose letters can be read where it is as wide as a phone.

    A legend below the axes needs a figure that makes room for it, which one without any layout engine does not: it gets
    the constrained one, before anything is drawn.
    """
    if ax is None:
        new: Axes = need("matplotlib.pyplot").figure(figsize=size, layout="constrained").add_subplot()
        return new
    figure = ax.figure.figure  # of a subfigure the whole
    if legend and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return ax


def finished(ax: Axes, *, legend: bool, columns: int = 2, **settings: Any) -> Axes:
    """The axes with these settings, a frame of two lines and the legend."""
    ax.set(**settings)
    open_frame(ax)
    legend_below(ax, show=legend, columns=columns)
    return ax


def open_frame(ax: Axes) -> None:
    """Leave only the two axis lines."""
    ax.spines[["top", "right"]].set_visible(False)


def add_title(ax: Axes, text: str) -> None:
    """What was measured, in lines that fit, unless the axes have a title of their own."""
    inches = ax.bbox.width / ax.figure.dpi
    if not ax.get_title():
        ax.set_title(fill(text, int(11 * inches)), fontsize="medium")


def legend_below(ax: Axes, *more: Axes, show: bool = True, columns: int = 2) -> None:
    """A legend of what was drawn here and in `more`, under the axis label, where no data can be."""
    drawn = [pair for each in (*more, ax) for pair in zip(*each.get_legend_handles_labels(), strict=True)]
    if not show or not drawn:
        return
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    labels = [fill(str(label), LINE) for _, label in drawn]
    points = FontProperties(size="small").get_size_in_points()
    longest = max(len(line) for label in labels for line in label.split("\n"))
    entry = (0.52 * longest + 4.0) * points  # letters of half the font size, handle and gap of 4 of its sizes
    room = 1.25 * 72 * ax.bbox.width / ax.figure.dpi  # the layout will widen the axes, and labels stand beside them
    inches = (2.4 * float(ax.xaxis.label.get_fontsize()) + 12) / 72  # tick labels, axis label, and the space around
    ax.legend(
        [handle for handle, _ in drawn],
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -inches, ax.figure.dpi_scale_trans),
        ncols=max(1, min(columns, int(room / entry))),
        frameon=False,
        fontsize=points,
        borderaxespad=0.0,
    )


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
    if not is_numeric(values):
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
    is_pandas = hasattr(X, "iloc")
    table = X.iloc[np.zeros(n, dtype=int)].reset_index(drop=True) if is_pandas else X[[0] * n]
    for j, name in enumerate(X.columns):
        value, row = (grid, None) if j == position else _typical(column(X, j))
        if is_pandas:  # an entry of the table itself keeps its type, such as that of a category
            table[name] = value if row is None else X[name].iloc[np.full(n, row)].array
        else:
            new = X[name][[row] * n] if row is not None else np.broadcast_to(value, n)
            table = table.with_columns(type(X[name])(name, new))
    return table


def _typical(values: AnyArray) -> tuple[Any, int | None]:
    """The median of numbers (of integers one that occurs), or the most frequent other value and a row that has it."""
    if not is_numeric(values):
        entries = values.tolist()
        value = Counter(entries).most_common(1)[0][0]
        return value, entries.index(value)
    if values.dtype.kind == "f":
        known = values[~np.isnan(values)]
        return float(np.median(known)) if len(known) else np.nan, None
    ordered = np.sort(values)
    return ordered[(len(ordered) - 1) // 2], None


def is_numeric(values: AnyArray) -> bool:
    """Whether a column consists of numbers."""
    return values.dtype.kind in "biuf"


def grid_over(x: Array, n_points: int, x_range: tuple[float, float] | None = None) -> Array:
    """Evenly spaced points over the range given, or over that of x and a little more."""
    if n_points < 2:
        raise ValueError(f"n_points={n_points!r}: expected at least 2")
    margin = MARGIN * (float(np.ptp(x)) or 1.0)
    first, last = (x.min() - margin, x.max() + margin) if x_range is None else x_range
    if not (np.isfinite([first, last]).all() and first < last):
        raise ValueError(f"x_range={x_range!r}: expected two finite numbers, the first below the second")
    return np.linspace(first, last, n_points)


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


def _method(model: Any, name: str) -> Any:
    method = getattr(model, name, None)
    if not callable(method):
        raise TypeError(f"model={type(model).__name__}: expected an interval regressor, which has {name}")
    return method
