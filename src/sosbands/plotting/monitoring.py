"""A picture of a model along a stream: rolling coverage, rolling width, and the test for drift."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from sosbands._extras import need
from sosbands._types import Array, IntArray
from sosbands._words import many
from sosbands.metrics.local import coverage_range
from sosbands.plotting.axes import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    ORANGE,
    VERMILION,
    Style,
    add_note,
    legend_below,
    open_frame,
    percent,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = 600  # along the stream at which rolling numbers are drawn
ABOVE = 4.0  # powers of ten above the alarm that are shown of a martingale
MODEL: Style = {"color": BLUE, "lw": 1.8}
ADAPTIVE: Style = {"color": ORANGE, "lw": 1.8, "ls": (0, (5, 1.5))}
INFINITE: Style = {"color": ORANGE, "ls": "", "marker": "|", "ms": 6}
LETTERS, MARGIN = 10.5, 0.9  # of the title on an inch; inches beside the axes


def plot_monitoring(found: Any, axes: Sequence[Axes] | None = None, *, legend: bool = True) -> list[Axes]:
    """Draw what `sosbands.online.monitor` has found, in three panels above each other.

    Rolling coverage, with the range of 95 % of all stretches of as many rows without drift, given as many calibration
    rows; the rolling median of the widths; and the martingale of the test on a logarithmic scale, with the line at
    which it raises the alarm.

    Parameters
    ----------
    found : Monitoring
    axes : three matplotlib Axes, optional
        By default those of a new figure.
    legend : bool
        Whether to write a legend below the last panel.

    Returns
    -------
    list of three matplotlib Axes
    """
    panels = _new_column() if axes is None else list(axes)
    if len(panels) != 3:
        raise ValueError(f"axes has {len(panels)} entries: expected three, for coverage, width and martingale")
    n = len(found.inside)
    first = min(found.span, n) - 1  # before, rolling numbers would be of a few rows
    _draw_coverage(panels[0], found, _places(first, n))
    _draw_width(panels[1], found, _places(first, n))
    _draw_martingale(panels[2], found, _places(0, n))
    for ax in panels:
        _mark_drift(ax, found)
        ax.set_xlim(1, max(n, 2))
        ax.margins(x=0)
        ax.locator_params(axis="x", nbins=5)
        open_frame(ax)
    for ax in panels[:2]:
        ax.tick_params(labelbottom=False)
    panels[2].set_xlabel("row of the stream")
    inches = panels[0].figure.figure.get_size_inches()[0]
    panels[0].set_title(
        fill(_title(found), int(LETTERS * (inches - MARGIN))), loc="left", fontsize="medium", fontweight="bold"
    )
    _explain(panels[2], found)
    legend_below(panels[2], show=legend)
    return panels


def _places(first: int, n: int) -> IntArray:
    """Evenly spaced rows, the last one among them."""
    return np.unique(np.linspace(first, n - 1, min(n - first, PLACES)).round().astype(int))


def _new_column() -> list[Axes]:
    figure = need("matplotlib.pyplot").figure(figsize=(8.4, 7.6), layout="constrained")
    return list(figure.subplots(3, 1, height_ratios=(1.2, 1, 1.2)))


def _title(found: Any) -> str:
    if found.alarm is None:
        return f"No drift found in {many(len(found.inside), 'row')}"
    return f"Drift found at row {found.alarm + 1}, set in at about row {found.began + 1}"


def _draw_coverage(ax: Axes, found: Any, places: IntArray) -> None:
    level, rows = found.confidence_level, places + 1
    (low,), (high,) = coverage_range(np.array([level]), found.span, found.n_calibration)
    ax.axhspan(100 * low, 100 * high, color=LIGHT, alpha=0.6, lw=0)
    ax.axhline(100 * level, color=BLACK, lw=1.0, ls="--")
    model, adaptive = (found.rolling(each, places) for each in (found.inside, found.adaptive_inside))
    ax.plot(rows, 100 * model, **MODEL)
    ax.plot(rows, 100 * adaptive, **ADAPTIVE)
    least = min(float(model.min()), float(adaptive.min()), float(low))
    ax.set_ylim(100 * max(0.0, least - 0.03), 100.8)
    ax.set_ylabel("rows inside, %")


def _draw_width(ax: Axes, found: Any, places: IntArray) -> None:
    rows = places + 1
    for values, style in ((found.width, MODEL), (found.adaptive_width, ADAPTIVE)):
        median = found.rolling(values, places, np.median)
        ax.plot(rows, np.where(np.isfinite(median), median, np.nan), **style)
    endless = np.flatnonzero(np.isinf(found.adaptive_width)) + 1
    ax.plot(endless, np.full(len(endless), 0.96), transform=ax.get_xaxis_transform(), **INFINITE)
    ax.set_ylim(bottom=0, top=1.1 * ax.get_ylim()[1])
    ax.set_ylabel("median width")


def _draw_martingale(ax: Axes, found: Any, places: IntArray) -> None:
    alarm = -np.log10(found.alarm_level)
    shown = _with_peaks(found.log10_martingale, places)
    top = max(alarm + 0.7, min(float(shown.max()) + 0.3, alarm + ABOVE))
    bottom = min(-0.7, max(float(shown.min()) - 0.3, -4.0))
    ax.plot(places + 1, np.minimum(shown, top + 1), color=BLACK, lw=1.6)
    ax.axhline(alarm, color=VERMILION, lw=1.2, ls="--")
    ax.set_ylim(bottom, top)
    step = max(1, round((top - bottom) / 6))
    ticks = [tick for tick in range(-6, int(top) + 1) if tick >= bottom and tick % step == 0]
    ax.set_yticks(ticks, [_power(tick, plain=max(ticks) < 4) for tick in ticks])
    ax.set_ylabel("martingale")


def _with_peaks(values: Array, places: IntArray) -> Array:
    """The largest value since the place before, so that no alarm is lost between places."""
    return np.maximum.reduceat(values, np.concatenate([[0], places[:-1] + 1])) if len(places) > 1 else values[places]


def _power(exponent: int, *, plain: bool = False) -> str:
    return f"{10.0**exponent:g}" if plain or exponent == 0 else f"$10^{{{exponent}}}$"


def _mark_drift(ax: Axes, found: Any) -> None:
    if found.alarm is None:
        return
    ax.axvspan(found.began + 1, found.alarm + 1, color=VERMILION, alpha=0.10, lw=0)
    ax.axvline(found.alarm + 1, color=VERMILION, lw=1.4)


def _explain(ax: Axes, found: Any) -> None:
    """Everything that was drawn, as entries of one legend."""
    ax.plot([], [], **MODEL, label="intervals of the model as it is")
    ax.plot([], [], **ADAPTIVE, label="adaptive intervals")
    if np.isinf(found.adaptive_width).any():
        ax.plot([], [], **INFINITE, label="adaptive interval that is infinite")
    ax.plot([], [], color=BLACK, lw=1.0, ls="--", label=f"level asked for, {percent(found.confidence_level)}")
    ax.fill_between([], [], color=LIGHT, label=f"95 % range without drift of {found.span} rows")
    odds = f"{1 / found.alarm_level:g}"
    ax.plot(
        [], [], color=VERMILION, lw=1.2, ls="--", label=f"alarm at {odds}: false at most {percent(found.alarm_level)}"
    )
    if found.alarm is not None:
        ax.plot([], [], color=VERMILION, lw=1.4, label="alarm; shaded: since the drift set in")
    most = float(found.log10_martingale.max())
    if most > ax.get_ylim()[1]:
        ax.annotate(
            f"up to {_power(int(most))}",
            (1, 0.97),
            xycoords="axes fraction",
            ha="right",
            va="top",
            color=GREY,
            fontsize="small",
        )
    add_note(ax, f"coverage and width over the last {found.span} rows")
