"""Pictures of a model's intervals: along a feature or row by row, their two widths, the rows that shape them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing

from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands._words import many
from sosbands.exceptions import CrossedIntervalsWarning, OffDataWarning, TooFewCalibrationPointsWarning
from sosbands.metrics.intervals import read_vector
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    DARK,
    GREY,
    LIGHT,
    LOWER,
    ORANGE,
    UPPER,
    VERMILION,
    Style,
    add_note,
    add_title,
    column,
    curve_rows,
    find_axis,
    finished,
    grid_over,
    interval_ends,
    is_numeric,
    level_of,
    new_axes,
    number_column,
    off_data,
    percent,
    prediction,
    shape_of,
    target_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERED_ROWS = 20  # more numbers than these would hide one another
NEAR = 0.2  # of the width of a slice: rows whose own ends are as near to its ends are rows that it is about
HATCHED: Style = {"facecolor": LIGHT, "edgecolor": "white", "alpha": 0.5, "hatch": "//", "lw": 0, "zorder": 0}
SHOWN = (OffDataWarning, CrossedIntervalsWarning)  # places off the data are grey, emptied intervals have no width


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
    max_intervals: int = 100,
    mark_active: bool | None = None,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Draw the point prediction and the intervals, with the observations if given.

    Row by row there is a bar for each, sorted by the prediction. Along a feature the intervals are a curve; where other
    features are held, only rows near that slice are drawn, each with its own bar: those whose ends differ from those of
    the curve by at most a fifth of its width. The title says how many of all rows given are inside, and the mean width.

    Parameters
    ----------
    model : interval regressor
        With `predict` and `predict_interval`. With `support`, too, the places off the data (support below
        its `support_limit`) are grey: hatched along a feature, as grey bars row by row.
    X : array or data frame of shape (n, d)
    y : array of shape (n,), optional
        Observations. Those outside of their intervals are crosses.
    feature : int, str, optional
        Position or name of the feature along the horizontal axis, the others being held at their medians (columns that
        are no numbers at their most frequent value); "prediction" sorts the rows by it. By default the only feature
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
        Rows drawn if they are sorted by the prediction; of more rows, evenly spaced ones.
    mark_active : bool, optional
        Mark the rows that shape the bands, which needs `y` and the X given to `fit`. By default they are marked if X
        and the model are as this needs. Among rows that are not drawn none is marked.
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
    marked = None
    if mark_active and observed is None:
        raise ValueError("mark_active=True needs y, the targets given to fit")
    if observed is not None and mark_active is not False:
        with suppress(*(() if mark_active else (ValueError,))):
            marked = shaping_rows(model, X)
    if max_intervals < 1:
        raise ValueError(f"max_intervals={max_intervals!r}: expected at least 1")
    below, above, label = f"{percent(level)} interval, below", f"{percent(level)} interval, above", along.label
    if along.column is None:
        center, own = prediction(model, X), interval_ends(model, X, level, options, quiet=SHOWN)
        order = np.argsort(center, kind="stable")
        rows = order[np.unique(np.linspace(0, n - 1, min(n, max_intervals)).round().astype(int))]
        places = np.full(n, np.nan)
        places[rows] = np.arange(len(rows))
        limits = _limits(center[rows], own[rows], None if observed is None else observed[rows])
        far = off_data(model, X)[rows]
        ax = new_axes(ax, legend=legend)
        ax.plot(places[rows], center[rows], color=BLACK, lw=1.6, label="prediction", zorder=2.5)
        above += "" if len(rows) == n else f" ({len(rows)} of {n} rows)"
        near = rows[~far]
        _draw_bars(ax, places[near], center[near], np.clip(own[near], *limits), 2.0, (below, above))
        if far.any():
            low, high = np.clip(own[rows[far]].T, *limits)
            ax.vlines(places[rows[far]], low, high, color=LIGHT, lw=2.0, label="off the data", zorder=1)
        label = "rows, sorted by prediction"
    else:
        places, rows, own = number_column(X, along), np.arange(n), None
        grid = grid_over(places, n_points, x_range)
        slice_of = curve_rows(X, along.column, grid)
        curve, ends = prediction(model, slice_of), interval_ends(model, slice_of, level, options, quiet=SHOWN)
        if observed is not None:
            quiet = (*SHOWN, TooFewCalibrationPointsWarning)  # the curve has warned already
            own = interval_ends(model, X, level, options, quiet=quiet)
            if d > 1:
                there = interval_ends(model, curve_rows(X, along.column, places), level, options, quiet=quiet)
                rows = np.flatnonzero(_is_near(own, there))
        limits = _limits(curve, ends, None if observed is None else observed[rows])
        ax = new_axes(ax, legend=legend)
        lower, upper = np.clip(ends, *limits).T
        middle = np.clip(curve, lower, upper)
        ax.plot(grid, curve, color=BLACK, lw=1.6, label="prediction", zorder=2.5)
        shade: Style = {"alpha": 0.3, "lw": 0, "zorder": 1}
        ax.fill_between(grid, lower, middle, color=BLUE, label=below, **shade)
        ax.fill_between(grid, middle, upper, color=ORANGE, label=above, **shade)
        ax.plot(grid, lower, color=BLUE, lw=1.3, ls="--", zorder=2)
        ax.plot(grid, upper, color=ORANGE, lw=1.3, ls="-.", zorder=2)
        ax.set_xlim(grid[0], grid[-1])
        for number, (first, last) in enumerate(_runs_over(off_data(model, slice_of), grid)):
            ax.axvspan(first, last, label="off the data" if number == 0 else None, **HATCHED)
        if d > 1:
            medians = all(is_numeric(column(X, position)) for position in range(d))
            label += f" (other features at {'their medians' if medians else 'typical values'})"
            if own is not None:
                _draw_bars(ax, places[rows], prediction(model, X)[rows], np.clip(own[rows], *limits), 1.2)
    if not np.isinf(limits).any():
        ax.set_ylim(*limits)
        add_note(ax, "ends at the frame are infinite")
    if observed is not None and own is not None:
        missed = (observed < own[:, 0]) | (observed > own[:, 1])
        inside, outside = rows[~missed[rows]], rows[missed[rows]]
        about = f", {len(rows)} of {many(n, 'row')} near this slice" if along.column is not None and d > 1 else ""
        ax.scatter(places[inside], observed[inside], s=11, color=DARK, lw=0, label=f"observations{about}", zorder=3)
        if len(outside):
            crosses: Style = {"s": 26, "color": VERMILION, "marker": "x", "lw": 1.4, "zorder": 3}
            told = f"outside of their intervals ({len(outside)} of {len(rows)})"
            ax.scatter(places[outside], observed[outside], label=told, **crosses)
        if marked is not None:
            _mark_rows(ax, np.where(np.isin(np.arange(n), rows), places, np.nan), observed, marked)
        width = np.mean(own[:, 1] - own[:, 0])
        measured = f"mean width {width:.3g}" if np.isfinite(width) else "mean width infinite"
        add_title(ax, f"{percent(round(1 - missed.mean(), 3))} of {many(n, 'row')} inside, {measured}")
    return finished(ax, legend=legend, xlabel=label, ylabel=target_name(y))


def _is_near(own: AnyArray, there: AnyArray) -> BoolArray:
    """Rows whose own intervals are almost those of a slice at their places."""
    with np.errstate(invalid="ignore"):
        apart = np.where(own == there, 0.0, np.abs(own - there)).max(axis=1)
        return np.asarray(np.isfinite(apart) & (apart <= NEAR * (there[:, 1] - there[:, 0])))


def _limits(center: Array, ends: AnyArray, observed: Array | None) -> tuple[float, float]:
    """Where infinite ends are drawn, far enough out to be seen; no limits if there are none."""
    if np.isfinite(ends).all():
        return -np.inf, np.inf
    known = np.concatenate([center, ends[np.isfinite(ends)], [] if observed is None else observed])
    reach = 0.25 * (float(np.ptp(known)) or 1.0)
    return float(known.min()) - reach, float(known.max()) + reach


def _draw_bars(
    ax: Axes, places: Array, center: Array, ends: AnyArray, lw: float, labels: tuple[str, str] = ("_", "_")
) -> None:
    """The interval of each row; lower and upper part meet at the prediction, if that is inside."""
    lower, upper = ends.T
    middle = np.clip(center, lower, upper)
    ax.vlines(places, lower, middle, color=BLUE, lw=lw, alpha=0.6, label=labels[0], zorder=1)
    ax.vlines(places, middle, upper, color=ORANGE, lw=lw, alpha=0.8, label=labels[1], zorder=1)


def _runs_over(mask: BoolArray, grid: Array) -> list[tuple[float, float]]:
    """Stretches of the grid where the mask holds, each reaching half a step beyond its points."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    half = 0.5 * (grid[1] - grid[0])
    return [(float(grid[a] - half), float(grid[b - 1] + half)) for a, b in steps.reshape(-1, 2)]


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
    ax = new_axes(ax, legend=legend)
    for rows, edge, face, label in ((~far, BLUE, BLUE, "rows"), (far, GREY, "none", "rows off the data")):
        if (rows & finite).any():
            x, y = below[rows & finite], above[rows & finite]
            ax.scatter(x, y, s=16, alpha=0.7, edgecolors=edge, facecolors=face, lw=0.8, label=label, zorder=3)
    ax.plot(ends, ends, color=BLACK, lw=1, ls="--", label="symmetric intervals", zorder=2)
    if finite.all():
        parts = f"{below.mean():.3g} below, {above.mean():.3g} above"
        add_title(ax, f"mean width {np.mean(upper - lower):.3g}: {parts}")
    else:
        add_note(ax, f"{np.count_nonzero(~finite)} rows with infinite intervals are not shown")
    ax.set_box_aspect(1)
    ax.set(xlim=ends, ylim=ends, ylabel="upper end minus prediction")
    return finished(ax, legend=legend, xlabel=f"prediction minus lower end ({percent(level)})")


def plot_active_rows(
    model: Any, X: Any, y: Any, *, feature: Any = None, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Draw residuals and mark the rows that shape the lower and the upper band, with their numbers if they are few.

    The residuals are those of the fitted point model. If the bands were learnt from leave-one-out or out-of-fold
    residuals, the legend says so: those differ from the ones drawn. With one feature the bands before calibration are
    drawn too. The rows marked lie on the bands; with a learning coverage below 1 others, not marked, lie outside.

    Parameters
    ----------
    model : SoSBandRegressor
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
    if d == 1 and along.column is not None:  # the bands before calibration, in units of the target
        grid = grid_over(x, 300)
        facts, noise = model.facts(curve_rows(X, 0, grid)), model.noise_
        below, above = noise.reach(facts)
        dashed: Style = {"lw": 1.3, "zorder": 2}
        ax.plot(grid, -below, color=BLUE, ls="--", label="lower band, not calibrated", **dashed)
        ax.plot(grid, above, color=ORANGE, ls="-.", label="upper band, not calibrated", **dashed)
    residuals = observed - center
    held = np.setdiff1d(getattr(model, "calibration_rows_", ()), getattr(model, "learning_rows_", ())).astype(int)
    learnt = np.setdiff1d(np.arange(n), held)
    ax.scatter(x[learnt], residuals[learnt], s=13, color=GREY, lw=0, label="learning rows", zorder=3)
    if len(held):
        rings: Style = {"facecolors": "none", "edgecolors": LIGHT, "linewidths": 0.9}
        ax.scatter(x[held], residuals[held], s=15, label="calibration rows", zorder=2, **rings)
    _mark_rows(ax, x, residuals, marked)
    numbered = np.union1d(*marked)
    for row in numbered if len(numbered) <= NUMBERED_ROWS else ():  # beside the marks, away from zero
        outwards, anchor = (1, "bottom") if residuals[row] >= 0 else (-1, "top")
        place: Style = {"xytext": (0, 7 * outwards), "textcoords": "offset points", "ha": "center", "va": anchor}
        ax.annotate(str(row), (x[row], residuals[row]), fontsize="x-small", **place)
    rule = getattr(model, "residual_rule_", "in-sample")
    if rule != "in-sample":
        add_note(ax, f"learnt from {rule} residuals, not from these")
    return finished(ax, legend=legend, xlabel=along.label, ylabel=f"{target_name(y)} − prediction")


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
    # the learning rows have the mean that the model remembers
    points = model.reader_.points(model.reader_.read(model, _safe_indexing(X, model.learning_rows_)))
    size = np.abs(model.reader_.mean) + model.reader_.scale
    if np.any(np.abs(points.mean(axis=0) - model.reader_.mean) > 1e-6 * np.where(size > 0, size, 1.0)):
        raise ValueError("X holds other rows than those given to fit, or in another order: expected the same")
    return lower, upper


def _mark_rows(ax: Axes, places: Array, heights: Array, marked: tuple[IntArray, IntArray]) -> None:
    """Triangles that point down and up at the rows that shape the lower and the upper band, where they are drawn."""
    for rows, style, side in zip(marked, (LOWER, UPPER), ("lower", "upper"), strict=True):
        drawn = rows[np.isfinite(places[rows])]
        if not len(drawn):
            continue
        label = f"{many(len(rows), 'row')} {'shapes' if len(rows) == 1 else 'shape'} the {side} band"
        label += "" if len(drawn) == len(rows) else f" ({len(drawn)} drawn)"
        ax.scatter(places[drawn], heights[drawn], s=46, edgecolor=BLACK, lw=0.9, label=label, zorder=4, **style)
