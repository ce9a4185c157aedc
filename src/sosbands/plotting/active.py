"""The rows that shape the bands, on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.metrics.checks import read_vector
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    LOWER,
    ORANGE,
    UPPER,
    Style,
    add_note,
    legend_below,
    new_axes,
    open_frame,
)
from sosbands.plotting.model import learnt_bands, prediction, shaping_rows
from sosbands.plotting.rows import curve_rows, find_axis, grid_over, number_column, shape_of, target_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERED_ROWS = 20  # more numbers than these would hide one another


def plot_active_rows(
    model: Any, X: Any, y: Any, *, feature: Any = None, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Draw residuals and mark the rows that shape the lower and the upper band, with their numbers if they are few.

    The residuals are those of the fitted point model. If the bands were learnt from leave-one-out or out-of-fold
    residuals, the legend says so: those differ from the ones drawn. With one feature the bands before calibration are
    drawn too. The rows marked lie on the bands; with a learning coverage below 1 others, not marked, lie outside.

    Parameters
    ----------
    model : SoSBandRegressor or another model with `active_lower_` and `active_upper_`
    X : array or data frame of shape (n, d)
        The rows given to `fit`.
    y : array of shape (n,)
        Their targets.
    feature : int, str, optional
        As for `plot_bands`; other features are not held at anything here.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    legend : bool
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes
    """
    n, d = shape_of(X)
    observed = read_vector(y, "y", n)
    along = find_axis(X, feature)
    marked = shaping_rows(model, X)
    center = prediction(model, X)
    x = center if along.column is None else number_column(X, along)
    ax = new_axes(ax, legend=legend)
    ax.axhline(0, color=BLACK, lw=1, zorder=1)
    if d == 1 and along.column is not None and hasattr(model, "lower_"):
        _draw_learnt_bands(ax, model, X, x)
    residuals = observed - center
    _draw_kinds_of_rows(ax, model, x, residuals)
    mark_rows(ax, x, residuals, marked)
    _number_rows(ax, x, residuals, np.union1d(*marked))
    rule = getattr(model, "residual_rule_", "in-sample")
    if rule != "in-sample":
        add_note(ax, f"learnt from {rule} residuals, not from these")
    ax.set(xlabel=along.label, ylabel=f"{target_name(y)} − prediction")
    open_frame(ax)
    legend_below(ax, show=legend)
    return ax


def mark_rows(ax: Axes, x: Array, heights: Array, marked: tuple[IntArray, IntArray]) -> None:
    """Triangles that point down and up at the rows that shape the lower and the upper band."""
    for rows, style, side in zip(marked, (LOWER, UPPER), ("lower", "upper"), strict=True):
        label = f"{len(rows)} rows shape the {side} band" if len(rows) != 1 else f"1 row shapes the {side} band"
        ax.scatter(x[rows], heights[rows], s=46, edgecolor=BLACK, lw=0.9, label=label, zorder=4, **style)


def _draw_kinds_of_rows(ax: Axes, model: Any, x: Array, residuals: Array) -> None:
    """Learning rows as dots, calibration rows as rings, where the model tells them apart."""
    held = np.setdiff1d(getattr(model, "calibration_rows_", ()), getattr(model, "learning_rows_", ())).astype(int)
    learnt = np.setdiff1d(np.arange(len(x)), held)
    ax.scatter(x[learnt], residuals[learnt], s=13, color=GREY, lw=0, label="learning rows", zorder=3)
    if len(held):
        style: Style = {"facecolors": "none", "edgecolors": LIGHT, "linewidths": 0.9}
        ax.scatter(x[held], residuals[held], s=15, label="calibration rows", zorder=2, **style)


def _draw_learnt_bands(ax: Axes, model: Any, X: Any, x: Array) -> None:
    """The bands before calibration, which cover the residuals that they were learnt from, or a share of them."""
    grid = grid_over(x, 300)
    below, above = learnt_bands(model, curve_rows(X, 0, grid))
    ax.plot(grid, -below, color=BLUE, ls="--", lw=1.3, label="lower band, not calibrated", zorder=2)
    ax.plot(grid, above, color=ORANGE, ls="-.", lw=1.3, label="upper band, not calibrated", zorder=2)


def _number_rows(ax: Axes, x: Array, heights: Array, rows: IntArray) -> None:
    """Row numbers beside the marks, away from zero, unless there are many."""
    for row in rows if len(rows) <= NUMBERED_ROWS else ():
        outwards, anchor = (1, "bottom") if heights[row] >= 0 else (-1, "top")
        place: Style = {"xytext": (0, 7 * outwards), "textcoords": "offset points", "ha": "center", "va": anchor}
        ax.annotate(str(row), (x[row], heights[row]), fontsize="x-small", **place)
