"""Table beyond the paper: widths and coverage with and without the removal of outliers from the learning rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands.comparison import TextTable
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import grouped
from studies.drawing.real_tables import counts, ordered_groups, printed_cell, summary
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER, PAPER_CQR, SHOWN
from studies.runs.paper_numbers import Printed, printed
from studies.runs.real_runs import real_rows

SETS = ("Concrete", "Bike", "Power", "Yacht")
KINDS = ("removed", "kept")


def compute(config: Config) -> Rows:
    """The data sets where the paper removes outliers; the heteroscedastic process is left out, as it takes hours."""
    names = config.pick(quick=("Yacht",), paper=SETS)
    methods = (PAPER_CQR, "gp", PAPER)
    removed = real_rows(config, methods, names)
    kept = real_rows(config, methods, names, outliers="kept")
    return [*removed, *kept]


def draw(rows: Rows) -> TextTable:
    """A line per data set and method, removed and kept side by side, with the paper's width, which removes them."""
    found, shown = [], []
    for (dataset, method), group in ordered_groups(rows).items():
        kinds = grouped(group, "outliers")
        paper = printed("mean_width", dataset, method)
        line: dict[str, Any] = {"dataset": dataset, "method": method}
        cells: dict[str, Any] = {"data set": dataset, "method": SHOWN.get(method, method)}
        for kind in KINDS:
            mine = kinds.get(kind, [])
            width, coverage = summary(mine, "mean_width", np.median), summary(mine, "coverage")
            line |= {f"{kind}_width_median": width.value, f"{kind}_width_sd": width.sd}
            line |= {f"{kind}_coverage_mean": coverage.value, f"{kind}_coverage_sd": coverage.sd}
            line |= {f"{kind}_{name}": count for name, count in counts(mine).items()}
            cells[f"width, {kind}"] = str(width)
            cells[f"coverage, {kind}"] = number_words(coverage.value, ".3f")
        line |= {"paper_median": None, "paper_sd": None} if paper is None else _paper(paper)
        cells["paper's width"] = printed_cell(paper)
        cells["n"] = f"{line['removed_n']} / {line['kept_n']}"
        found.append(line)
        shown.append(cells)
    note = (
        "Outliers removed from the learning rows, as in the paper, or kept; calibration and test rows are the same. "
        "Width: median ± standard deviation over n repetitions (removed / kept); coverage: mean."
    )
    return TextTable(found, shown, joined(note, failure_words(rows)))


def _paper(number: Printed) -> dict[str, Any]:
    return {"paper_median": number.value, "paper_sd": number.sd}
