"""Table: by how much asymmetric calibration widens the intervals, for each data set and method."""

from __future__ import annotations

import math
from typing import Any

from sosbands.comparison import TextTable
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import succeeded
from studies.drawing.real_tables import ALL, mean_over_sets, ordered_groups, spread_cell
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER, PAPER_CQR, SHOWN
from studies.runs.paper_numbers import printed
from studies.runs.real_runs import real_rows

PRINTED = {PAPER_CQR: "CQR", PAPER: "kSoS"}  # names in the paper's table


def compute(config: Config) -> Rows:
    """The rows of `calibration`."""
    return real_rows(config, (PAPER_CQR, PAPER))


def draw(rows: Rows) -> TextTable:
    """A line for all data sets, then one for each data set and method, beside the paper's where it prints one."""
    fine = succeeded(rows)
    found = [_line(ALL, "", fine)] if fine else []
    found += [_line(*key, group) for key, group in ordered_groups(fine).items()]
    infinite = sum(row["n_infinite"] for row in found[1:])
    note = joined(
        "Mean ± standard error over splits of the relative increase of the mean width; the two methods on one split "
        "count once in the first line, where every data set has the same weight. The paper prints some lines only.",
        f"{infinite} runs with intervals of infinite width are left out." if infinite else "No width is infinite.",
        failure_words(rows),
    )
    return TextTable(found, [_shown(row) for row in found], note)


def _line(dataset: str, method: str, rows: Rows) -> dict[str, Any]:
    """Mean increase in percent and its standard error, over the runs whose widths are finite."""
    values: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        width, asymmetric = row["mean_width"], row["asymmetric_mean_width"]
        if math.isfinite(width) and math.isfinite(asymmetric):
            increase = 100 * (asymmetric - width) / width
            values.setdefault((row["dataset"], row["repetition"]), []).append(increase)
    increase, error = mean_over_sets(values)
    paper = printed("asym_width_increase_percent", f"{dataset} {PRINTED.get(method, '')}".strip())
    n = sum(map(len, values.values()))
    return {
        "dataset": dataset,
        "method": method,
        "increase_percent": increase,
        "increase_percent_se": error,
        "paper_increase_percent": None if paper is None else paper.value,
        "n": n,
        "n_infinite": len(rows) - n,
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    method = row["method"]
    return {
        "data set": row["dataset"],
        "method": SHOWN.get(method, method) or "-",
        "increase, %": spread_cell(row["increase_percent"], row["increase_percent_se"]),
        "paper, %": number_words(row["paper_increase_percent"], ".2f"),
        "runs": row["n"],
        "infinite": row["n_infinite"],
    }
