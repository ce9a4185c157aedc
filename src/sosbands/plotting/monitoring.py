"""A picture of a model along a stream: rolling coverage, rolling width, and the test for drift."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from sosbands._extras import need
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
    if axes is None:
        figure = need("matplotlib.pyplot").figure(figsize=(5.2, 8.0), layout="constrained")
        axes = list(figure.subplots(3, 1, height_ratios=(1.2, 1, 1.2)))
    panels = list(axes)
    if len(panels) != 3:
        raise ValueError(f"axes has {len(panels)} entries: expected three, for coverage, width and martingale")
    level, n = found.confidence_level, len(found.inside)
    first = min(found.span, n) - 1  # before, rolling numbers would be of a few rows
    rolling, places = (np.unique(np.linspace(a, n - 1, min(n - a, PLACES)).round().astype(int)) for a in (first, 0))

    ax = panels[0]
    (low,), (high,) = coverage_range(np.array([level]), found.span, found.n_calibration)
    by_chance = f"95 % range without drift of {found.span} rows"
    ax.axhspan(100 * low, 100 * high, color=LIGHT, alpha=0.6, lw=0, label=by_chance)
    ax.axhline(100 * level, color=BLACK, lw=1.0, ls="--", label=f"level asked for, {percent(level)}")
    model, adaptive = (found.rolling(each, rolling) for each in (found.inside, found.adaptive_inside))
    ax.plot(rolling + 1, 100 * model, **MODEL, label="intervals of the model as it is")
    ax.plot(rolling + 1, 100 * adaptive, **ADAPTIVE, label="adaptive intervals")
    least = min(float(model.min()), float(adaptive.min()), float(low))
    ax.set(ylim=(100 * max(0.0, least - 0.03), 100.8), ylabel="rows inside, %")

    ax = panels[1]
    for values, style in ((found.width, MODEL), (found.adaptive_width, ADAPTIVE)):
        median = found.rolling(values, rolling, np.median)
        ax.plot(rolling + 1, np.where(np.isfinite(median), median, np.nan), **style)
    endless = np.flatnonzero(np.isinf(found.adaptive_width)) + 1
    told = "adaptive interval that is infinite" if len(endless) else None
    ax.plot(endless, np.full(len(endless), 0.96), transform=ax.get_xaxis_transform(), label=told, **INFINITE)
    ax.set(ylim=(0, 1.1 * ax.get_ylim()[1]), ylabel="median width")

    ax, alarm = panels[2], -np.log10(found.alarm_level)
    shown, most = found.log10_martingale[places], float(found.log10_martingale.max())
    if len(places) > 1:  # the largest value since the place before, so that no alarm is lost between places
        shown = np.maximum.reduceat(found.log10_martingale, np.concatenate([[0], places[:-1] + 1]))
    top = max(alarm + 0.7, min(most + 0.3, alarm + ABOVE))
    bottom = min(-0.7, max(float(shown.min()) - 0.3, -4.0))
    ax.plot(places + 1, np.minimum(shown, top + 1), color=BLACK, lw=1.6)
    odds = f"alarm at {1 / found.alarm_level:g}: false at most {percent(found.alarm_level)}"
    ax.axhline(alarm, color=VERMILION, lw=1.2, ls="--", label=odds)
    step = max(1, round((top - bottom) / 6))
    ticks = [tick for tick in range(-6, int(top) + 1) if tick >= bottom and tick % step == 0]
    ax.set_yticks(ticks, [_power(tick, plain=max(ticks) < 4) for tick in ticks])
    ax.set(ylim=(bottom, top), ylabel="martingale", xlabel="row of the stream")
    if most > top:
        corner: Style = {"xycoords": "axes fraction", "ha": "right", "va": "top", "color": GREY, "fontsize": "small"}
        ax.annotate(f"up to {_power(int(most))}", (1, 0.97), **corner)

    title = f"No drift found in {many(n, 'row')}"
    if found.alarm is not None:
        title = f"Drift found at row {found.alarm + 1}, since about row {found.began + 1}"
    letters = int(LETTERS * (ax.figure.figure.get_size_inches()[0] - MARGIN))
    panels[0].set_title(fill(title, letters), loc="left", fontsize="medium", fontweight="bold")
    for ax in panels:
        if found.alarm is not None:
            ax.axvspan(found.began + 1, found.alarm + 1, color=VERMILION, alpha=0.10, lw=0)
            said = "alarm; shaded: since the drift set in" if ax is panels[2] else None
            ax.axvline(found.alarm + 1, color=VERMILION, lw=1.4, label=said)
        ax.set_xlim(1, max(n, 2))
        ax.margins(x=0)
        ax.locator_params(axis="x", nbins=5)
        ax.tick_params(labelbottom=ax is panels[2])
        open_frame(ax)
    add_note(panels[2], f"coverage and width over the last {found.span} rows")
    legend_below(panels[2], *panels[:2], show=legend)
    return panels


def _power(exponent: int, *, plain: bool = False) -> str:
    return f"{10.0**exponent:g}" if plain or exponent == 0 else f"$10^{{{exponent}}}$"
