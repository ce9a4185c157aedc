"""Horizontal box plots over repetitions: one box per method, one row of panels per case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from sosbands._types import Array
from studies.drawing.caption_words import BOXES, COVERAGE_GAP, case_words, count_words, failure_words, span_words
from studies.drawing.figures import COLOURS, add_caption, column, grouped, new_figure, succeeded
from studies.drawing.panels import BLACK, empty_figure, legend_above, set_text
from studies.runs.config import Rows
from studies.runs.methods import SHOWN

TAIL = 2.0  # distance of a value from the whiskers, in lengths of their range, beyond which the axis is cut
LABELS = {"mean_width": "mean width (units of y)", "acg_combined": COVERAGE_GAP, "rmse": "RMSE to the oracle"}


def draw_boxes(ax: Any, values: Mapping[str, Any], colours: Mapping[str, str], names: Mapping[str, str]) -> int:
    """One box per key, from top to bottom.

    Parameters
    ----------
    ax : matplotlib Axes
    values : mapping of str to array
        Those that are not finite are left out.
    colours, names : mappings of str to str
        Of the keys.

    Returns
    -------
    left_out : int
        How many values are not finite.
    """
    from matplotlib.ticker import MaxNLocator

    finite = {key: np.asarray(each)[np.isfinite(each)] for key, each in values.items()}
    # the old name of the option warns since matplotlib 3.11
    direction = {"orientation": "horizontal"} if "orientation" in signature(ax.boxplot).parameters else {"vert": False}
    found = ax.boxplot(
        list(finite.values()),
        positions=range(len(finite)),
        widths=0.62,
        patch_artist=True,
        medianprops={"color": BLACK, "lw": 1.4},
        flierprops={"marker": "o", "ms": 2.5, "mew": 0.6},
        **direction,
    )
    for box, key in zip(found["boxes"], finite, strict=True):
        box.set(facecolor=colours[key], alpha=0.75, lw=0.8)
    ax.set_yticks(range(len(finite)), [names[key] for key in finite])
    ax.set_ylim(len(finite) - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    _cut_tails(ax, found["whiskers"], finite)
    return sum(len(each) for each in values.values()) - sum(len(each) for each in finite.values())


def _cut_tails(ax: Any, whiskers: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Let no few distant values squeeze the boxes: those beyond twice the whiskers are counted at the edge."""
    ends = np.concatenate([np.zeros(0), *(line.get_xdata() for line in whiskers)])
    ends = ends[np.isfinite(ends)]  # of a method without values they are not
    largest = max((float(each.max()) for each in values.values() if len(each)), default=0.0)
    if not len(ends) or largest <= ends.max() + TAIL * np.ptp(ends):
        return
    edge = ends.max() + 0.12 * np.ptp(ends)
    ax.set_xlim(right=edge)
    for position, each in enumerate(values.values()):
        beyond = int(np.count_nonzero(each > edge))
        if beyond:
            ax.text(edge, position, f"+{beyond} ", ha="right", va="center", fontsize="x-small")


def draw_cases(rows: Rows, metrics: Sequence[str]) -> Any:
    """A figure with a row of panels per case and a column per metric."""
    cases = grouped(succeeded(rows), "case")
    if not cases:
        return empty_figure(rows)
    methods = [name for name in COLOURS if any(row["method"] == name for row in succeeded(rows))]
    figure, axes = new_figure(len(cases), len(metrics), (7.0, 1.1 + 1.25 * len(cases)), sharey="row")
    lost = 0
    for position, (case, own) in enumerate(cases.items()):
        line, by_method = axes[position], grouped(own, "method")
        for ax, metric in zip(line, metrics, strict=True):
            values = {name: _values(by_method.get(name, []), metric) for name in methods}
            lost += draw_boxes(ax, values, COLOURS, SHOWN)
            title = f"{case_words(case)}, n = {span_words(row['n'] for row in own)}" if ax is line[0] else ""
            set_text(ax, title=title, x=LABELS[metric] if position == len(cases) - 1 else "", place="left")
            if metric == "mean_width":
                width = float(column(own, "oracle_width").mean())
                ax.axvline(width, color=BLACK, lw=1.0, ls="--", zorder=4, label="mean width of the oracle")
    legend_above(figure, axes.flat)
    add_caption(
        figure,
        f"{', '.join(_heading(metric) for metric in metrics)} of 90 % intervals, over "
        f"{count_words(rows, 'case', 'method')} of each case and method; n learning points. {BOXES}"
        + (f" Values that are not finite, left out: {lost}." if lost else "")
        + failure_words(rows),
    )
    return figure


def _values(rows: Rows, metric: str) -> Array:
    """One value per repetition; of the combined gap two, those of the lower and of the upper ends."""
    names = ("acg_lower", "acg_upper") if metric == "acg_combined" else (metric,)
    return np.concatenate([column(rows, name) for name in names])


def _heading(metric: str) -> str:
    return {"mean_width": "Mean width", "acg_combined": f"combined local coverage gap ({COVERAGE_GAP})"}.get(
        metric, "root mean square distance to the oracle"
    )
