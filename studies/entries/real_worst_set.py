"""Figure: worst-set coverage of the lower and upper ends on the real data sets."""

from __future__ import annotations

from typing import Any

from sosbands.metrics.intervals import SET_SIZE
from studies.drawing.caption_words import failure_words, joined, span_words
from studies.drawing.figures import COLOURS, add_caption, new_figure, succeeded
from studies.drawing.real_tables import (
    METHOD_ORDER,
    NOMINAL,
    methods_of,
    ordered_groups,
    sets_of,
    summary_of,
    worst_set_values,
)
from studies.runs.config import Config, Rows
from studies.runs.methods import SHOWN
from studies.runs.real_runs import TABLE_METHODS, real_rows

MARKERS = "os^DvP"


def compute(config: Config) -> Rows:
    """The paper's four methods on all data sets."""
    return real_rows(config, TABLE_METHODS)


def draw(rows: Rows) -> Any:
    """Mean and standard deviation of the worst-set coverage for each data set and method, both ends pooled."""
    fine = succeeded(rows)
    sets, methods = sets_of(fine), methods_of(fine)
    figure, axes = new_figure(1, 1, (7.0, 1.9 + 0.5 * max(1, len(sets))))
    ax = axes[0, 0]
    groups = ordered_groups(fine)
    for number, method in enumerate(methods):
        mine = [(k, groups[name, method]) for k, name in enumerate(sets) if (name, method) in groups]
        spreads = [summary_of(worst_set_values(group)) for _, group in mine]
        shift = (number - (len(methods) - 1) / 2) * 0.7 / max(1, len(methods))
        ax.errorbar(
            [spread.value for spread in spreads],
            [k + shift for k, _ in mine],
            xerr=[spread.sd for spread in spreads],
            fmt=MARKERS[METHOD_ORDER.index(method) % len(MARKERS)],
            markersize=4.5,
            capsize=2,
            linewidth=1.2,
            color=COLOURS.get(method, "black"),
            label=SHOWN.get(method, method),
        )
    ax.axvline(NOMINAL, color="#333333", linewidth=1, linestyle="--", zorder=0)
    for k in range(1, len(sets)):
        ax.axhline(k - 0.5, color="#dddddd", linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(sets)), sets)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(1, len(sets)) - 0.5, -0.5)  # the first set on top
    ax.set_xlabel("worst-set coverage of lower and upper ends")
    if methods:
        figure.legend(loc="outside upper center", ncols=len(methods), frameon=False)
    add_caption(figure, _caption(rows, fine))
    return figure


def _caption(rows: Rows, fine: Rows) -> str:
    repetitions = span_words(len(group) for group in ordered_groups(fine).values())
    whole = [name for name in sets_of(fine) if all(row["n"] <= SET_SIZE for row in fine if row["dataset"] == name)]
    n = span_words(row["n"] for row in fine)
    return joined(
        f"Least coverage in ten sets of {SET_SIZE} neighbouring test rows (of n = {n}), of the lower and of the upper "
        f"ends: mean (marker) and standard deviation (bar) of both together over {repetitions} repetitions. Dashed: "
        f"{NOMINAL:g}, the coverage of each end that is asked for.",
        f"The sets of {', '.join(whole)} hold all test rows." if whole else "",
        failure_words(rows),
    )
