"""What the panels of the synthetic figures share: text sizes, legends above the panels, penalties on an axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sosbands._types import Array
from studies.drawing.caption_words import NO_ROWS, failure_words, penalty_words
from studies.drawing.figures import add_caption, new_figure
from studies.runs.config import Rows

BLACK, GREY, PURPLE = "#000000", "#8C8C8C", "#CC79A7"  # beside the colours of methods
TITLE, LABEL, TICK = 8.5, 8.5, 7.5  # points
ENDS = 1.1  # decades between the penalties 0 and infinity and their neighbours


def empty_figure(rows: Rows) -> Any:
    """A figure that says that none of the rows can be shown."""
    figure, axes = new_figure(1, 1, (7.0, 1.2))
    axes[0, 0].set_axis_off()
    add_caption(figure, NO_ROWS + failure_words(rows))
    return figure


def set_text(ax: Any, *, title: str = "", x: str = "", y: str = "", place: str = "center") -> None:
    """Title and labels in sizes for a page 7 inches wide."""
    ax.set_title(title, fontsize=TITLE, loc=place)
    ax.set_xlabel(x, fontsize=LABEL)
    ax.set_ylabel(y, fontsize=LABEL)
    ax.tick_params(labelsize=TICK)


def legend_above(figure: Any, axes: Iterable[Any], columns: int = 5) -> None:
    """One legend for all panels, above them, where it covers nothing."""
    known: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    if known:
        fitting = [k for k in range(1, columns + 1) if _legend_width(list(known), k) <= figure.get_figwidth()]
        options: dict[str, Any] = {"loc": "outside upper center", "frameon": False, "fontsize": LABEL}
        figure.legend(known.values(), known.keys(), ncols=max(fitting, default=1), **options)


def _legend_width(labels: list[str], columns: int) -> float:
    """About how many inches a legend takes: letters of 0.56 font sizes, handles and gaps of 5."""
    columns = min(columns, len(labels))
    parts = np.array_split(np.array([len(label) for label in labels]), columns)
    return sum(float(0.56 * part.max() + 5) for part in parts) * LABEL / 72


def hide_rest(axes: Sequence[Any], used: int) -> None:
    """Remove panels of a grid that nothing is drawn in."""
    for ax in axes[used:]:
        ax.remove()


def penalty_places(penalties: Iterable[float]) -> dict[float, float]:
    """Where penalties lie on an axis: logarithms, with 0 and infinity a little apart at the ends."""
    known = sorted({float(penalty) for penalty in penalties})
    logs = {p: float(np.log10(p)) for p in known if 0 < p < np.inf}
    low, high = (min(logs.values()), max(logs.values())) if logs else (0.0, 0.0)
    ends = {0.0: low - ENDS, np.inf: high + ENDS}
    return {p: logs[p] if p in logs else ends[p] for p in known}


def penalty_ticks(ax: Any, places: dict[float, float], most: int = 4) -> None:
    """Ticks at 0, infinity, and at most `most` powers of ten between them, not too near."""
    inner = [place for p, place in places.items() if 0 < p < np.inf]
    low, high = (0.5 if 0.0 in places else 0.0), (0.5 if np.inf in places else 0.0)
    powers = np.arange(np.ceil(min(inner) + low - 1e-9), max(inner) - high + 1e-9) if inner else np.array([])
    powers = powers[:: int(np.ceil(len(powers) / most)) or 1]
    at = [places[p] for p in places if p == 0] + list(powers) + [places[p] for p in places if np.isinf(p)]
    names = [penalty_words(p) for p in places if p == 0]
    names += [rf"$10^{{{round(power)}}}$" for power in powers] + [penalty_words(p) for p in places if np.isinf(p)]
    ax.set_xticks(at, names)


def mean_and_sd(values: Any) -> tuple[Array, Array]:
    """Mean and standard deviation over the first axis; the latter is 0 for one repetition."""
    table = np.asarray(values, dtype=float)
    sd = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1:])
    return np.asarray(table.mean(axis=0)), np.asarray(sd)
