"""What the figures of this room share: new figures, captions, colours of methods, and groups of rows."""

from __future__ import annotations

from collections import defaultdict
from textwrap import fill
from typing import Any

import numpy as np

from sosbands._types import Array
from studies.runs.config import Rows
from studies.runs.methods import HARD, OURS, PAPER, PAPER_CQR

# Okabe and Ito's palette, which stays apart for colour-blind readers.
COLOURS = {
    PAPER_CQR: "#E69F00",
    "gp": "#999999",
    "het-gp": "#009E73",
    "squared-sos": "#56B4E9",
    PAPER: "#D55E00",
    OURS: "#0072B2",
    HARD: "#CC79A7",
}
LETTERS_PER_INCH = 15.5  # of a caption


def new_figure(n_rows: int, n_columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure with a grid of axes, an array of shape (n_rows, n_columns), that makes room for what lies outside."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f'pictures need matplotlib: pip install "sosbands[plot]" ({error})') from error
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def add_caption(figure: Any, text: str) -> None:
    """What is shown, under the figure; it should name n and the repetitions."""
    width = int(LETTERS_PER_INCH * figure.get_figwidth())
    figure.supxlabel(fill(text, width), x=0.01, ha="left", fontsize="small", color="#333333")


def succeeded(rows: Rows) -> Rows:
    """Rows of tasks that did not fail."""
    return [row for row in rows if row["error_type"] is None]


def grouped(rows: Rows, *names: str) -> dict[Any, Rows]:
    """Rows by the values of some columns: the value itself for one name, a tuple for several."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        key = tuple(row[name] for name in names)
        groups[key if len(names) > 1 else key[0]].append(row)
    return dict(groups)


def column(rows: Rows, name: str) -> Array:
    """One column as an array of numbers."""
    return np.array([row[name] for row in rows], dtype=float)
