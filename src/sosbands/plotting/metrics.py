"""Pictures of coverage: against the nominal level, and from place to place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.exceptions import CrossedIntervalsWarning
from sosbands.metrics import coverage, lower_coverage, upper_coverage
from sosbands.metrics.intervals import read_vector
from sosbands.metrics.local import coverage_range, share_range
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    LIGHT,
    LOWER,
    ORANGE,
    UPPER,
    Style,
    find_axis,
    interval_ends,
    legend_below,
    level_of,
    new_axes,
    number_column,
    open_frame,
    percent,
    prediction,
    shape_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = np.arange(1, 20) / 20  # 0.05, 0.10, ..., 0.95
ROWS_PER_BIN, MOST_BINS = 30, 8


class _Side(NamedTuple):
    """What is drawn of one side: its coverage function and its looks."""

    label: str
    function: Any
    shift: float  # in parts of the horizontal range, so that error bars do not hide one another
    style: Style


SIDES = (
    _Side("both ends", coverage, 0.0, {"color": BLACK, "marker": "o", "ls": "-"}),
    _Side("lower end", lower_coverage, -0.008, {**LOWER, "ls": "--"}),
    _Side("upper end", upper_coverage, 0.008, {**UPPER, "ls": "-."}),
)


def plot_calibration(
    model: Any,
    X: Any,
    y: Any,
    ax: Axes | None = None,
    *,
    levels: Any = None,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Draw the coverage of test rows at many levels, with the range in which chance leaves it.

    The range is that of 95 % of the test sets of this size around a coverage of exactly the level: binomial. If the
    model says how many calibration rows it had (`n_calibration_`), these are random too and the range is
    beta-binomial: with m of them the coverage is ``Beta(k, m + 1 - k)``, ``k = ceil(level (m + 1))``. This is exact
    for one quantile without ties, and an approximation with one for each end, groups, weights or cross-calibration.

    Parameters
    ----------
    model : interval regressor
        Whose `predict_interval` takes a list of levels.
    X, y : array or data frame of shape (n, d), array of shape (n,)
        Rows that the model has not seen.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    levels : array of shape (k,), optional
        In (0, 1); by default 0.05, 0.1, ..., 0.95.
    legend : bool
        As for `plot_bands`.
    **options
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes
    """
    n, _ = shape_of(X)
    observed = read_vector(y, "y", n)
    nominal = np.unique(read_vector(LEVELS if levels is None else levels, "levels"))
    if nominal[0] <= 0 or nominal[-1] >= 1:
        raise ValueError(f"levels run from {nominal[0]:g} to {nominal[-1]:g}: expected numbers in (0, 1)")
    # at low levels calibration may empty intervals, which counts in their coverage
    ends = interval_ends(model, X, nominal.tolist(), options, quiet=(CrossedIntervalsWarning,))
    found = [coverage(observed, ends[:, 0, k], ends[:, 1, k]) for k in range(len(nominal))]
    m = getattr(model, "n_calibration_", None)
    low, high = coverage_range(nominal, n, m)
    ax = new_axes(ax, legend=legend, size=(5.4, 5.6))
    rows = f"{n} test rows" if m is None else f"{n} test and {m} calibration rows"
    ax.fill_between(nominal, low, high, color=LIGHT, alpha=0.6, lw=0, label=f"95 % range for {rows}")
    ax.plot([0, 1], [0, 1], color=BLACK, lw=1, ls="--", label="coverage equal to the level")
    ax.plot(nominal, found, color=BLUE, marker="o", ms=4, lw=1.4, label="coverage of the test rows")
    ax.set(xlim=(0, 1), ylim=(0, 1.005), xlabel="confidence level", ylabel="coverage")
    ax.set_box_aspect(1)
    open_frame(ax)
    legend_below(ax, show=legend, columns=1)
    return ax


def plot_local_coverage(
    model: Any,
    X: Any,
    y: Any,
    *,
    feature: Any = None,
    confidence_level: float | None = None,
    n_bins: int | None = None,
    ax: Axes | None = None,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Draw the coverage of both ends and of each, in bins of about equally many rows.

    Each bin is drawn at the mean of its rows, with 95 % error bars (Wilson). The thin lines are the nominal level, and
    what each end would have if its share of the misses (`lower_share` for the lower one, 0.5 by default) fell to it;
    only asymmetric calibration promises the latter, and only marginally.

    Parameters
    ----------
    model : interval regressor
    X, y : array or data frame of shape (n, d), array of shape (n,)
        Rows that the model has not seen.
    feature : int, str, optional
        Position or name of the feature along which the rows are binned, or "prediction". By default the only feature
        if there is one, otherwise the prediction.
    confidence_level : float, optional
        By default that of the model.
    n_bins : int, optional
        By default one for every 30 rows and at most 8. Equal values share a bin, so there may be fewer.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    legend : bool
        As for `plot_bands`.
    **options
        As for `plot_bands`.

    Returns
    -------
    matplotlib Axes
    """
    n, _ = shape_of(X)
    observed = read_vector(y, "y", n)
    level = level_of(model, confidence_level)
    along = find_axis(X, feature)
    x = prediction(model, X) if along.column is None else number_column(X, along)
    bins = _bins(x, min(MOST_BINS, max(1, n // ROWS_PER_BIN)) if n_bins is None else n_bins)
    ends = interval_ends(model, X, level, options)
    ax = new_axes(ax, legend=legend)
    _draw_nominal(ax, level, float(options.get("lower_share", 0.5)))
    for side in SIDES:
        _draw_side(ax, side, x, observed, ends, bins)
    ax.set(xlabel=along.label, ylabel=f"coverage in {len(bins)} bins of {_sizes(bins)} rows")
    ax.set_ylim(top=1.02)
    open_frame(ax)
    legend_below(ax, show=legend)
    return ax


def _bins(x: Array, count: int) -> list[IntArray]:
    """Rows of each bin between quantiles of x, without empty ones."""
    if count < 1:
        raise ValueError(f"n_bins={count!r}: expected at least 1")
    inner = np.quantile(x, np.arange(1, count) / count)
    member = np.searchsorted(inner, x, side="right")
    rows = (np.flatnonzero(member == number) for number in range(count))
    return [each for each in rows if len(each)]


def _draw_side(ax: Axes, side: _Side, x: Array, observed: Array, ends: Array, bins: list[IntArray]) -> None:
    """Coverage of one side in every bin, a little to the left or right of the mean of its rows."""
    places = np.array([x[rows].mean() for rows in bins]) + side.shift * (np.ptp(x) or 1.0)
    found = np.array([side.function(observed[rows], ends[rows, 0], ends[rows, 1]) for rows in bins])
    sizes = np.array([len(rows) for rows in bins])
    below, above = np.abs(share_range(np.round(found * sizes), sizes) - found[:, None]).T
    style: Style = {"ms": 5, "lw": 1.2, "elinewidth": 1.2, "capsize": 2, **side.style}
    ax.errorbar(places, found, yerr=[below, above], label=side.label, **style)


def _draw_nominal(ax: Axes, level: float, lower_share: float) -> None:
    ax.axhline(level, color=BLACK, lw=0.8, zorder=1, label=f"nominal {percent(level)}")
    lower, upper = 1 - lower_share * (1 - level), 1 - (1 - lower_share) * (1 - level)
    if np.isclose(lower, upper):
        ax.axhline(lower, color=BLACK, lw=0.8, ls=":", zorder=1, label=f"{percent(round(lower, 9))} for each end")
        return
    for value, color, end in ((lower, BLUE, "lower"), (upper, ORANGE, "upper")):
        label = f"{percent(round(value, 9))} for the {end} end"
        ax.axhline(value, color=color, lw=0.8, ls=":", zorder=1, label=label)


def _sizes(bins: list[IntArray]) -> str:
    sizes = sorted(len(rows) for rows in bins)
    return str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
