"""Pictures of what was measured: coverage against its level and from place to place, a metric of several methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sosbands._arguments import is_number
from sosbands._types import Array, IntArray
from sosbands.exceptions import CrossedIntervalsWarning
from sosbands.metrics import coverage, lower_coverage, upper_coverage
from sosbands.metrics.intervals import read_vector
from sosbands.metrics.local import coverage_range, share_range
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    LOWER,
    ORANGE,
    UPPER,
    VERMILION,
    Style,
    find_axis,
    finished,
    interval_ends,
    level_of,
    new_axes,
    number_column,
    percent,
    prediction,
    shape_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = np.arange(1, 20) / 20  # 0.05, 0.10, ..., 0.95
ROWS_PER_BIN, MOST_BINS = 30, 8
PAIRS = ("dataset", "case", "repetition")  # rows of two methods that agree in these saw the same data
SPREAD = 0.16  # horizontal half spread of the points of one method
LONG_NAMES = 11  # characters that fit under one box
SIDES = (  # label, coverage, looks, and a shift in parts of the horizontal range: error bars do not hide one another
    ("both ends", coverage, {"color": BLACK, "marker": "o", "ls": "-"}, 0.0),
    ("lower end", lower_coverage, {**LOWER, "ls": "--"}, -0.008),
    ("upper end", upper_coverage, {**UPPER, "ls": "-."}, 0.008),
)


def plot_calibration(
    model: Any, X: Any, y: Any, ax: Axes | None = None, *, levels: Any = None, legend: bool = True, **options: Any
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
    ax = new_axes(ax, legend=legend)
    rows = f"{n} test rows" if m is None else f"{n} test and {m} calibration rows"
    ax.fill_between(nominal, low, high, color=LIGHT, alpha=0.6, lw=0, label=f"95 % range for {rows}")
    ax.plot([0, 1], [0, 1], color=BLACK, lw=1, ls="--", label="coverage equal to the level")
    ax.plot(nominal, found, color=BLUE, marker="o", ms=4, lw=1.4, label="coverage of the test rows")
    ax.set_box_aspect(1)
    ax.set(xlim=(0, 1), ylim=(0, 1.005))
    return finished(ax, legend=legend, columns=1, xlabel="confidence level", ylabel="coverage")


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
    ax.axhline(level, color=BLACK, lw=0.8, zorder=1, label=f"nominal {percent(level)}")
    lower_share = float(options.get("lower_share", 0.5))
    lower, upper = 1 - lower_share * (1 - level), 1 - (1 - lower_share) * (1 - level)
    each = [(lower, BLUE, "the lower"), (upper, ORANGE, "the upper")]
    for value, color, end in [(lower, BLACK, "each")] if np.isclose(lower, upper) else each:
        label = f"{percent(round(value, 9))} for {end} end"
        ax.axhline(value, color=color, lw=0.8, ls=":", zorder=1, label=label)
    sizes = np.array([len(rows) for rows in bins])
    for label, function, looks, shift in SIDES:
        places = np.array([x[rows].mean() for rows in bins]) + shift * (np.ptp(x) or 1.0)
        found = np.array([function(observed[rows], ends[rows, 0], ends[rows, 1]) for rows in bins])
        errors = np.abs(share_range(np.round(found * sizes), sizes) - found[:, None]).T
        style: Style = {"ms": 5, "lw": 1.2, "elinewidth": 1.2, "capsize": 2, **looks}
        ax.errorbar(places, found, yerr=errors, label=label, **style)
    few, most = sizes.min(), sizes.max()
    told = f"coverage in {len(bins)} bins of {few if few == most else f'{few} to {most}'} rows"
    ax.set_ylim(top=1.02)
    return finished(ax, legend=legend, xlabel=along.label, ylabel=told)


def _bins(x: Array, count: int) -> list[IntArray]:
    """Rows of each bin between quantiles of x, without empty ones."""
    if count < 1:
        raise ValueError(f"n_bins={count!r}: expected at least 1")
    inner = np.quantile(x, np.arange(1, count) / count)
    member = np.searchsorted(inner, x, side="right")
    rows = (np.flatnonzero(member == number) for number in range(count))
    return [each for each in rows if len(each)]


def plot_comparison(
    rows: Any, metric: str, ax: Axes | None = None, *, methods: Any = None, nominal: float | None = None
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
    known = list(dict.fromkeys(row["method"] for row in table))
    drawn: dict[str, dict[tuple[Any, ...], float]] = {}  # finite values by the data they belong to
    for name in known if methods is None else methods:
        if name not in known:
            raise ValueError(f"methods: {name!r} has no rows, expected some of {known}")
        own = [(position, row) for position, row in enumerate(table) if row["method"] == name]
        values = _finite_values(name, own, metric)
        lost = len(own) - len(values)
        drawn[str(name) + (f"\n({lost} not drawn)" if lost else "")] = values
    levels = {row.get("confidence_level") for row in table}
    if nominal is None and metric == "coverage" and len(levels) == 1:
        nominal = levels.pop()

    ax = new_axes(ax, size=(max(4.0, 1.2 + 1.0 * len(drawn)), 4.4))
    filled = [(place, list(values.values())) for place, values in enumerate(drawn.values()) if values]
    if filled:  # quartiles and median; whiskers to the extremes, as every point is drawn anyway
        ax.boxplot(
            [values for _, values in filled],
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
    keys = list(dict.fromkeys(key for values in drawn.values() for key in values))
    # the same shift for the same data, so that lines between methods stay apart; neighbours in this order are apart too
    golden = (np.arange(1, len(keys) + 1) * 0.6180339887498949) % 1.0
    shifts = dict(zip(keys, SPREAD * (2 * golden - 1), strict=True))
    for place, values in enumerate(drawn.values()):
        x = [place + shifts[key] for key in values]
        ax.scatter(x, list(values.values()), s=14, color=BLUE, alpha=0.75, lw=0, zorder=3)
    for key in keys:
        line = [(place + shifts[key], values.get(key, np.nan)) for place, values in enumerate(drawn.values())]
        if np.count_nonzero(np.isfinite([value for _, value in line])) > 1:
            ax.plot(*zip(*line, strict=True), color=GREY, lw=0.6, alpha=0.35, zorder=2)
    if nominal is not None:
        ax.axhline(nominal, color=VERMILION, lw=1.2, ls="--", zorder=1)
        beside: Style = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": "small"}
        ax.annotate(f"nominal\n{percent(nominal)}", (1, nominal), xycoords=("axes fraction", "data"), **beside)
    ax.set_xticks(range(len(drawn)), list(drawn))
    if max(len(part) for name in drawn for part in name.split("\n")) > LONG_NAMES:
        ax.tick_params(axis="x", labelrotation=25)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    return finished(ax, legend=False, xlim=(-0.6, len(drawn) - 0.4), ylabel=metric.replace("_", " "))


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


def _finite_values(name: Any, own: list[tuple[int, dict[str, Any]]], metric: str) -> dict[tuple[Any, ...], float]:
    """Values of one method that can be drawn, by the data they belong to."""
    values: dict[tuple[Any, ...], float] = {}
    for position, row in own:
        value: Any = row.get(metric)
        if is_number(value) and np.isfinite(value):
            key = tuple(row.get(part) for part in PAIRS) if "repetition" in row else ("row", position)
            if key in values:
                raise ValueError(f"rows: method {name!r} has two rows with (dataset, case, repetition) = {key}")
            values[key] = float(value)
    return values
