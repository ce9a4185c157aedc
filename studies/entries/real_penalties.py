"""Figure: how often each symmetry penalty is selected on the real data sets."""

from __future__ import annotations

import math
from typing import Any

from sosbands.tuning.rules import PENALTIES
from studies.drawing.caption_words import failure_words, joined, span_words
from studies.drawing.figures import COLOURS, add_caption, grouped, new_figure, succeeded
from studies.drawing.real_tables import sets_of
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER
from studies.runs.real_runs import real_rows

CONSTANT = "const."
WIDE = 4  # panels in a row


def compute(config: Config) -> Rows:
    """The paper's rule on all data sets."""
    return real_rows(config, (PAPER,))


def draw(rows: Rows) -> Any:
    """A panel per data set with a bar per penalty."""
    fine = succeeded(rows)
    sets = sets_of(fine)
    columns = min(WIDE, max(1, len(sets)))
    lines = math.ceil(max(1, len(sets)) / columns)
    figure, axes = new_figure(lines, columns, (7.2, 1.1 + 1.6 * lines), sharex=True, sharey=True)
    chosen = [_choice(row) for row in fine]
    values = sorted({*PENALTIES, *(choice for choice in chosen if isinstance(choice, float))})
    bars: list[float | str] = [*values, CONSTANT]
    places = [*range(len(values)), len(values) + 0.5]  # no penalty, so a little apart
    for ax, name in zip(axes.flat, sets, strict=False):
        mine = [choice for choice, row in zip(chosen, fine, strict=True) if row["dataset"] == name]
        colours = [COLOURS[PAPER]] * len(values) + ["#999999"]
        ax.bar(places, [mine.count(bar) for bar in bars], color=colours, width=0.75)
        ax.set_title(name, fontsize="medium")
    for ax in axes.flat[len(sets) :]:
        ax.set_visible(False)
    for k, ax in enumerate(axes.flat[: len(sets)]):
        ax.set_xticks(places, [_label(bar) for bar in bars], fontsize="small")
        if k + columns >= len(sets):  # the lowest panel of each column
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("symmetry penalty", fontsize="small")
        ax.yaxis.get_major_locator().set_params(integer=True)
    figure.supylabel("number of repetitions", fontsize="medium")
    add_caption(figure, _caption(rows, fine))
    return figure


def _choice(row: dict[str, Any]) -> float | str:
    return CONSTANT if row["constant_width"] else float(row["symmetry_penalty"])


def _label(bar: float | str) -> str:
    if isinstance(bar, str):
        return bar
    if math.isinf(bar):
        return "∞"
    power = math.log10(bar) if bar >= 100 else 0.5
    return f"$10^{{{power:.0f}}}$" if power.is_integer() else f"{bar:g}"


def _caption(rows: Rows, fine: Rows) -> str:
    n = span_words(row["n_learning"] for row in fine)
    repetitions = span_words(len(group) for group in grouped(fine, "dataset").values())
    return joined(
        f"Symmetry penalty selected by the paper's rule (HSIC and Kruskal-Wallis test), n = {n} learning rows, "
        f"{repetitions} repetitions; ∞: symmetric bands; const.: bands of constant width, where residuals "
        "show no dependence on the features.",
        failure_words(rows),
    )
