"""Pictures of comparisons: one metric of several methods over repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sosbands._arguments import is_number
from sosbands._types import Array
from sosbands.plotting.axes import BLACK, BLUE, GREY, VERMILION, Style, new_axes, open_frame, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAIRS = ("dataset", "case", "repetition")  # rows of two methods that agree in these saw the same data
SPREAD = 0.16  # horizontal half spread of the points of one method
LONG_NAMES = 11  # characters that fit under one box


class _Method(NamedTuple):
    """Finite values of one method with the data they belong to, and how many rows have none."""

    name: str
    values: dict[tuple[Any, ...], float]
    lost: int


def plot_comparison(
    rows: Any,
    metric: str,
    ax: Axes | None = None,
    *,
    methods: Any = None,
    nominal: float | None = None,
) -> Axes:
    """Draw one metric per method: boxes, every repetition as a point, and faint lines between the same data.

    Parameters
    ----------
    rows : list of dict, data frame, or object with `rows`
        One row per method and repetition, with the keys method, repetition, the metric, and possibly dataset or case.
    metric : str
        Key of the metric. Infinite and missing values are not drawn, and counted under the name of the method.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    methods : list of str, optional
        Which methods, in this order; by default all, as they first appear.
    nominal : float, optional
        Where to draw a line, the nominal coverage. For the metric "coverage" it is taken from the rows if all have
        the same confidence_level.

    Returns
    -------
    matplotlib Axes
    """
    table = _read_rows(rows, metric)
    order = list(dict.fromkeys(row["method"] for row in table)) if methods is None else list(methods)
    drawn = [_method(table, name, metric) for name in order]
    level = _common_level(table) if nominal is None and metric == "coverage" else nominal
    ax = new_axes(ax, size=(max(4.0, 1.5 + 1.2 * len(drawn)), 4.4))
    _draw_boxes(ax, drawn)
    _draw_points(ax, drawn)
    if level is not None:
        ax.axhline(level, color=VERMILION, lw=1.2, ls="--", zorder=1)
        place: Style = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": "small"}
        ax.annotate(f"nominal\n{percent(level)}", (1, level), xycoords=("axes fraction", "data"), **place)
    _name_methods(ax, drawn)
    ax.set(xlim=(-0.6, len(drawn) - 0.4), ylabel=metric.replace("_", " "))
    open_frame(ax)
    return ax


def _read_rows(rows: Any, metric: str) -> list[dict[str, Any]]:
    """Rows as dicts, each with a method and at least one with the metric."""
    if not hasattr(rows, "columns"):
        rows = getattr(rows, "rows", rows)  # of a result; a data frame has a method of this name
    if hasattr(rows, "columns"):
        rows = rows.to_dicts() if hasattr(rows, "to_dicts") else rows.to_dict("records")
    table = [dict(row) for row in rows]
    if not table or any("method" not in row for row in table):
        raise ValueError(f"rows: got {len(table)} rows, expected at least one, each with the key 'method'")
    if not any(metric in row for row in table):
        known = sorted({name for row in table for name, value in row.items() if is_number(value)} - {*PAIRS})
        raise ValueError(f"metric={metric!r}: expected one of {known}")
    return table


def _method(table: list[dict[str, Any]], name: Any, metric: str) -> _Method:
    own = [(position, row) for position, row in enumerate(table) if row["method"] == name]
    if not own:
        known = list(dict.fromkeys(row["method"] for row in table))
        raise ValueError(f"methods: {name!r} has no rows, expected some of {known}")
    values: dict[tuple[Any, ...], float] = {}
    for position, row in own:
        value: Any = row.get(metric)
        if not is_number(value) or not np.isfinite(value):
            continue
        key = tuple(row.get(part) for part in PAIRS) if "repetition" in row else ("row", position)
        if key in values:
            raise ValueError(f"rows: method {name!r} has two rows with (dataset, case, repetition) = {key}")
        values[key] = float(value)
    return _Method(str(name), values, len(own) - len(values))


def _common_level(table: list[dict[str, Any]]) -> float | None:
    levels = {row.get("confidence_level") for row in table}
    level = levels.pop() if len(levels) == 1 else None
    return None if level is None else float(level)


def _draw_boxes(ax: Axes, drawn: list[_Method]) -> None:
    """Quartiles and median; whiskers to the extremes, as every point is drawn anyway."""
    filled = [(place, method) for place, method in enumerate(drawn) if method.values]
    if not filled:
        return
    ax.boxplot(
        [list(method.values.values()) for _, method in filled],
        positions=[place for place, _ in filled],
        widths=0.5,
        whis=(0, 100),
        showfliers=False,
        manage_ticks=False,
        boxprops={"color": GREY},
        whiskerprops={"color": GREY},
        capprops={"color": GREY},
        medianprops={"color": BLACK, "lw": 2},
    )


def _draw_points(ax: Axes, drawn: list[_Method]) -> None:
    """Every value, at the same shift for the same data, so that lines between methods stay apart."""
    keys = list(dict.fromkeys(key for method in drawn for key in method.values))
    shifts = dict(zip(keys, _shifts(len(keys)), strict=True))
    for place, method in enumerate(drawn):
        x = [place + shifts[key] for key in method.values]
        ax.scatter(x, list(method.values.values()), s=14, color=BLUE, alpha=0.75, lw=0, zorder=3)
    for key in keys:
        line = [(place + shifts[key], method.values.get(key, np.nan)) for place, method in enumerate(drawn)]
        if np.count_nonzero(np.isfinite([value for _, value in line])) > 1:
            ax.plot(*zip(*line, strict=True), color=GREY, lw=0.6, alpha=0.35, zorder=2)


def _shifts(count: int) -> Array:
    """Places between -SPREAD and SPREAD in an order in which neighbours are apart, without random numbers."""
    golden = (np.arange(1, count + 1) * 0.6180339887498949) % 1.0
    return np.asarray(SPREAD * (2 * golden - 1), dtype=np.float64)


def _name_methods(ax: Axes, drawn: list[_Method]) -> None:
    names = [method.name + (f"\n({method.lost} not drawn)" if method.lost else "") for method in drawn]
    ax.set_xticks(range(len(drawn)), names)
    if max(len(part) for name in names for part in name.split("\n")) > LONG_NAMES:
        ax.tick_params(axis="x", labelrotation=25)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
