"""Pictures of a model's intervals: along a feature or the prediction, their two widths, the rows that shape them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.exceptions import CrossedIntervalsWarning, OffDataWarning, TooFewCalibrationPointsWarning
from sosbands.metrics.intervals import read_vector
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    LOWER,
    ORANGE,
    UPPER,
    VERMILION,
    Along,
    Style,
    add_note,
    curve_rows,
    evenly,
    find_axis,
    grid_over,
    has_only_numbers,
    interval_ends,
    learnt_bands,
    legend_below,
    level_of,
    new_axes,
    number_column,
    off_data,
    open_frame,
    percent,
    prediction,
    runs_over,
    shape_of,
    shaping_rows,
    target_name,
)

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
    if d == 1 and along.column is not None and hasattr(model, "noise_"):
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


SHOWN = (OffDataWarning, CrossedIntervalsWarning)  # places off the data are grey, emptied intervals have no width


class _Intervals(NamedTuple):
    """Intervals along the horizontal axis, as the model gives them and as they are drawn, with finite ends."""

    x: Array
    center: Array
    ends: Array
    lower: Array
    upper: Array
    far: BoolArray
    limits: tuple[float, float] | None  # of the vertical axis, if some ends are infinite


def plot_bands(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    feature: Any = None,
    confidence_level: float | None = None,
    ax: Axes | None = None,
    n_points: int = 300,
    x_range: tuple[float, float] | None = None,
    max_intervals: int = 150,
    mark_active: bool | None = None,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Draw the point prediction and the intervals, with the observations if given.

    Along a feature the intervals are a curve, along the prediction one bar per row.

    Parameters
    ----------
    model : interval regressor
        With `predict` and `predict_interval`. With `support`, too, the places off the data (support below
        its `support_limit`) are grey: hatched along a feature, as grey bars along the prediction.
    X : array or data frame of shape (n, d)
    y : array of shape (n,), optional
        Observations. Those outside of their intervals are crosses, except where other features vary.
    feature : int, str, optional
        Position or name of the feature along the horizontal axis, the others being held at their medians (columns that
        are no numbers at their most frequent value); "prediction" takes the prediction. By default the only feature
        if there is one, otherwise the prediction.
    confidence_level : float, optional
        By default that of the model.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    n_points : int
        Points of the curve.
    x_range : pair of floats, optional
        Ends of the curve; by default those of the feature in X and a little more.
    max_intervals : int
        Bars along the prediction; of more rows, evenly spaced ones have a bar.
    mark_active : bool, optional
        Mark the rows that shape the bands, which needs `y` and the X given to `fit`. By default they are marked if X
        and the model are as this needs.
    legend : bool
        Below the axes, where it covers nothing; a figure without a layout engine gets the constrained one for it.
    **options
        lower_share, groups, likelihood_ratio for `predict_interval`; one group or ratio may stand for all rows.

    Returns
    -------
    matplotlib Axes
    """
    n, d = shape_of(X)
    level = level_of(model, confidence_level)
    observed = None if y is None else read_vector(y, "y", n)
    along = find_axis(X, feature)
    marked = _rows_to_mark(model, X, observed, mark_active)
    if along.column is None:
        x = prediction(model, X)
        shown = _intervals(model, X, x, level, options, observed)
        bars = evenly(np.argsort(x, kind="stable"), max_intervals)
        missed = _outside(observed, shown.ends)
        ax = new_axes(ax, legend=legend)
        _draw_bars(ax, shown, bars, level)
    else:
        x = number_column(X, along)
        grid = grid_over(x, n_points, x_range)
        shown = _intervals(model, curve_rows(X, along.column, grid), grid, level, options, observed)
        known = d == 1 and observed is not None  # the curve is that of every row
        quiet = (*SHOWN, TooFewCalibrationPointsWarning)  # the curve has warned already
        missed = _outside(observed, interval_ends(model, X, level, options, quiet=quiet) if known else None)
        ax = new_axes(ax, legend=legend)
        _draw_curve(ax, shown, level)
    if observed is not None:
        _draw_observations(ax, x, observed, missed)
        if marked is not None:
            mark_rows(ax, x, observed, marked)
    ax.set(xlabel=_with_others(along, X), ylabel=target_name(y))
    open_frame(ax)
    legend_below(ax, show=legend)
    return ax


def plot_widths(
    model: Any,
    X: Any,
    ax: Axes | None = None,
    *,
    confidence_level: float | None = None,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Draw how far each interval reaches below and above the prediction, with the diagonal of symmetric intervals.

    Parameters
    ----------
    model : interval regressor
        With `predict` and `predict_interval`; with `support` rows off the data are drawn hollow.
    X : array or data frame of shape (n, d)
    ax : matplotlib Axes, optional
        By default those of a new figure.
    confidence_level : float, optional
        By default that of the model.
    legend : bool
        As for `plot_bands`.
    **options
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes
    """
    shape_of(X)
    level = level_of(model, confidence_level)
    center = prediction(model, X)
    lower, upper = interval_ends(model, X, level, options, quiet=SHOWN).T
    below, above, far = center - lower, upper - center, off_data(model, X)
    finite = np.isfinite(below) & np.isfinite(above)
    shown = np.concatenate([below[finite], above[finite], [0.0]])
    pad = 0.05 * (np.ptp(shown) or 1.0)
    ends = (float(shown.min() - pad), float(shown.max() + pad))
    ax = new_axes(ax, legend=legend, size=(5.4, 5.6))
    for rows, face, label in ((finite & ~far, BLUE, "rows"), (finite & far, "none", "rows off the data")):
        if rows.any():
            edge: Style = {"edgecolors": BLUE if face == BLUE else GREY, "facecolors": face, "linewidths": 0.8}
            ax.scatter(below[rows], above[rows], s=16, alpha=0.7, label=label, zorder=3, **edge)
    ax.plot(ends, ends, color=BLACK, lw=1, ls="--", label="symmetric intervals", zorder=2)
    if not finite.all():
        add_note(ax, f"{np.count_nonzero(~finite)} rows with infinite intervals are not shown")
    ax.set(xlim=ends, ylim=ends, xlabel=f"prediction minus lower end ({percent(level)})")
    ax.set_ylabel("upper end minus prediction")
    ax.set_box_aspect(1)
    open_frame(ax)
    legend_below(ax, show=legend)
    return ax


def _rows_to_mark(
    model: Any, X: Any, observed: Array | None, mark_active: bool | None
) -> tuple[IntArray, IntArray] | None:
    """Shaping rows, if they are wanted: by default wherever they are known and X holds the rows given to `fit`."""
    if mark_active and observed is None:
        raise ValueError("mark_active=True needs y, the targets given to fit")
    if mark_active is False or observed is None:
        return None
    try:
        return shaping_rows(model, X)
    except ValueError:
        if mark_active:
            raise
        return None


def _intervals(
    model: Any, rows: Any, x: Array, level: float, options: dict[str, Any], observed: Array | None
) -> _Intervals:
    """What is drawn at these rows; infinite ends go to the limits of the axis, which are far enough out to be seen."""
    center = prediction(model, rows)
    ends = interval_ends(model, rows, level, options, quiet=SHOWN)
    far = off_data(model, rows)
    lower, upper = ends.T
    if np.isfinite(ends).all():
        return _Intervals(x, center, ends, lower, upper, far, None)
    known = np.concatenate([center, ends[np.isfinite(ends)], [] if observed is None else observed])
    reach = 0.25 * (float(np.ptp(known)) or 1.0)
    limits = (float(known.min()) - reach, float(known.max()) + reach)
    return _Intervals(x, center, ends, np.clip(lower, *limits), np.clip(upper, *limits), far, limits)


def _draw_curve(ax: Axes, shown: _Intervals, level: float) -> None:
    """Prediction and interval over a grid; lower and upper part meet at the prediction, if that is inside."""
    grid, middle = shown.x, np.clip(shown.center, shown.lower, shown.upper)
    ax.plot(grid, shown.center, color=BLACK, lw=1.6, label="prediction", zorder=2.5)
    shade: Style = {"alpha": 0.3, "lw": 0, "zorder": 1}
    ax.fill_between(grid, shown.lower, middle, color=BLUE, label=f"{percent(level)} interval, below", **shade)
    ax.fill_between(grid, middle, shown.upper, color=ORANGE, label=f"{percent(level)} interval, above", **shade)
    ax.plot(grid, shown.lower, color=BLUE, lw=1.3, ls="--", zorder=2)
    ax.plot(grid, shown.upper, color=ORANGE, lw=1.3, ls="-.", zorder=2)
    for number, (first, last) in enumerate(runs_over(shown.far, grid)):
        label = "off the data" if number == 0 else None
        ax.axvspan(first, last, facecolor=LIGHT, edgecolor="white", alpha=0.5, hatch="//", lw=0, label=label, zorder=0)
    ax.set_xlim(grid[0], grid[-1])
    _apply_limits(ax, shown)


def _draw_bars(ax: Axes, shown: _Intervals, bars: IntArray, level: float) -> None:
    """One bar per chosen row over its prediction, which lies on the diagonal."""
    x, middle = shown.x, np.clip(shown.x, shown.lower, shown.upper)
    line = [x.min(), x.max()]
    ax.plot(line, line, color=BLACK, lw=1.6, label="prediction", zorder=2.5)
    some = "" if len(bars) == len(x) else f" ({len(bars)} of {len(x)} rows)"
    below, above = f"{percent(level)} interval, below", f"{percent(level)} interval, above{some}"
    near, away = bars[~shown.far[bars]], bars[shown.far[bars]]
    style: Style = {"lw": 1.6, "alpha": 0.5, "zorder": 1}
    ax.vlines(x[near], shown.lower[near], middle[near], color=BLUE, label=below, **style)
    ax.vlines(x[near], middle[near], shown.upper[near], color=ORANGE, label=above, **style)
    if len(away):
        ax.vlines(x[away], shown.lower[away], shown.upper[away], color=LIGHT, lw=1.6, label="off the data", zorder=1)
    _apply_limits(ax, shown)


def _apply_limits(ax: Axes, shown: _Intervals) -> None:
    if shown.limits is not None:
        ax.set_ylim(*shown.limits)
        add_note(ax, "ends at the frame are infinite")


def _outside(observed: Array | None, ends: Array | None) -> BoolArray:
    """Rows whose observation is outside of its interval; none where no intervals are known."""
    if observed is None or ends is None:
        return np.zeros(0 if observed is None else len(observed), dtype=bool)
    return np.asarray((observed < ends[:, 0]) | (observed > ends[:, 1]))


def _draw_observations(ax: Axes, x: Array, observed: Array, missed: BoolArray) -> None:
    """Observations, those outside of their intervals as crosses."""
    ax.scatter(x[~missed], observed[~missed], s=11, color=GREY, lw=0, label="observations", zorder=3)
    if missed.any():
        label = f"outside of their intervals ({np.count_nonzero(missed)} of {len(x)})"
        ax.scatter(x[missed], observed[missed], s=26, color=VERMILION, marker="x", lw=1.3, label=label, zorder=3)


def _with_others(along: Along, X: Any) -> str:
    """The label of the axis, which says what became of the other features."""
    if along.column is None or shape_of(X)[1] == 1:
        return along.label
    held = "their medians" if has_only_numbers(X) else "typical values"
    return f"{along.label} (other features at {held})"
