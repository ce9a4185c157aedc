"""Table: how often asymmetric calibration is wider, and how far the worst-set coverage of each kind is from nominal."""

from __future__ import annotations

import math
from typing import Any

from sosbands.comparison import TextTable
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import succeeded
from studies.drawing.real_tables import (
    ALL,
    NOMINAL,
    Spread,
    mean_over_sets,
    sets_of,
    spread_cell,
    worst_set_distance,
)
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER, PAPER_CQR
from studies.runs.paper_numbers import printed
from studies.runs.real_runs import real_rows

# what is measured in each run, and the paper's name of it
MEASURES = {
    "wider_percent": "asym_wider_percent",
    "asymmetric_distance": "wsc_c_distance_asym",
    "symmetric_distance": "wsc_c_distance_sym",
}


def compute(config: Config) -> Rows:
    """CQR and the paper's bands on all data sets, each calibrated in both ways."""
    return real_rows(config, (PAPER_CQR, PAPER))


def draw(rows: Rows) -> TextTable:
    """A line for all data sets with standard errors, then one for each, beside the paper's."""
    fine = succeeded(rows)
    names = sets_of(fine)
    found = [_line(name, [row for row in fine if name in (ALL, row["dataset"])]) for name in [ALL, *names] if fine]
    note = (
        f"Runs of CQR and of the paper's bands. Distance: mean of |worst-set coverage - {NOMINAL:g}| over both ends. "
        "±: standard error over the splits of these data sets, the two methods on one split counted once."
    )
    return TextTable(found, [_shown(row) for row in found], joined(note, _gain(fine), failure_words(rows)))


def _measured(row: dict[str, Any]) -> dict[str, float]:
    """The three measures of a run."""
    return {
        "wider_percent": 100.0 * (row["asymmetric_mean_width"] > row["mean_width"]),
        "asymmetric_distance": worst_set_distance(row, "asymmetric_"),
        "symmetric_distance": worst_set_distance(row, ""),
    }


def _line(name: str, rows: Rows) -> dict[str, Any]:
    """Mean and standard error of each measure; the paper's value."""
    line: dict[str, Any] = {"dataset": name}
    for measure, metric in MEASURES.items():
        paper = printed(metric, name)
        line[measure], line[f"{measure}_se"] = _over_sets(rows, measure)
        line[f"paper_{measure}"] = None if paper is None else paper.value
    return {**line, "n": len(rows)}


def _over_sets(rows: Rows, *measures: str) -> Spread:
    """Mean over data sets of a measure, or of the first minus the second."""
    values: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        measured = _measured(row)
        first, *others = (measured[name] for name in measures)
        values.setdefault((row["dataset"], row["repetition"]), []).append(first - sum(others))
    return mean_over_sets(values)


def _gain(rows: Rows) -> str:
    change = _over_sets(rows, "asymmetric_distance", "symmetric_distance")
    if math.isnan(change.sd):
        return ""
    return f"Asymmetric minus symmetric distance, paired: {change.value:+.4f} ± {change.sd:.4f}."


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    cells: dict[str, Any] = {"data set": row["dataset"]}
    for measure, (heading, digits) in {
        "wider_percent": ("asym. wider, %", ".0f"),
        "asymmetric_distance": ("distance asym.", ".4f"),
        "symmetric_distance": ("distance sym.", ".4f"),
    }.items():
        value = row[measure]
        alone = row["dataset"] != ALL or math.isnan(row[f"{measure}_se"])
        cells[heading] = number_words(value, digits) if alone else spread_cell(value, row[f"{measure}_se"])
        cells[f"paper: {heading}"] = number_words(row[f"paper_{measure}"], ".4g")
    return {**cells, "runs": row["n"]}
