"""Table beyond the paper: interval scores of all methods on the real data sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands.comparison import TextTable
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.real_tables import counts, methods_of, ordered_groups, sets_of, summary
from studies.runs.config import Config, Rows
from studies.runs.methods import SHOWN
from studies.runs.real_runs import FURTHER_METHODS, TABLE_METHODS, real_rows

NEAR = 1.02  # as good as the best


def compute(config: Config) -> Rows:
    """All methods on all data sets."""
    return real_rows(config, (*TABLE_METHODS, *FURTHER_METHODS))


def draw(rows: Rows) -> TextTable:
    """Scores relative to the best method of each data set; then how often a method is near it, coverage and time.

    The rows of the table are one per data set and method; what is shown has a column per method.
    """
    found = [_line(*key, group) for key, group in ordered_groups(rows).items()]
    for dataset in sets_of(rows):
        mine = [row for row in found if row["dataset"] == dataset]
        best = min((row["interval_score"] for row in mine if math.isfinite(row["interval_score"])), default=math.nan)
        for row in mine:
            row["relative_score"] = row["interval_score"] / best
    note = (
        f"Mean interval score over n = {max((row['n'] for row in found), default=0)} repetitions, divided by that of "
        "the best method on the same data set; in brackets n where it is less, - where there is none. Best: number of "
        "data sets where the score is within 2 % of the best, of those with a score. Coverage and seconds of a fit are "
        "means over data sets."
    )
    return TextTable(found, _shown(rows, found), joined(note, failure_words(rows)))


def _line(dataset: str, method: str, rows: Rows) -> dict[str, Any]:
    """Means of one method on one data set."""
    score = summary(rows, "interval_score")
    return {
        "dataset": dataset,
        "method": method,
        "interval_score": score.value,
        "interval_score_sd": score.sd,
        "coverage": summary(rows, "coverage").value,
        "fit_seconds": summary(rows, "fit_seconds").value,
        **counts(rows),
    }


def _shown(rows: Rows, found: Rows) -> Rows:
    """A line per data set and three that sum up, with a column per method."""
    cells = {(row["dataset"], row["method"]): row for row in found}
    methods = methods_of(rows)
    most = {name: max(row["n"] for row in found if row["dataset"] == name) for name in sets_of(rows)}
    lines = [
        {"score / best": name} | {_name(method): _cell(cells.get((name, method)), most[name]) for method in methods}
        for name in most
    ]
    known = {method: [row for row in found if row["method"] == method and row["n"]] for method in methods}
    for title, summed in (("best or within 2 %", _best), ("coverage", _coverage), ("seconds per fit", _seconds)):
        lines.append({"score / best": title} | {_name(method): summed(known[method]) for method in methods})
    return lines if found else []


def _name(method: str) -> str:
    return SHOWN.get(method, method)


def _cell(row: dict[str, Any] | None, most: int) -> str:
    if row is None or not row["n"]:
        return "-"
    text = number_words(row["relative_score"], ".3f")
    return text if row["n"] == most else f"{text} ({row['n']})"


def _best(rows: Rows) -> str:
    return f"{sum(row['relative_score'] <= NEAR for row in rows)} of {len(rows)}" if rows else "-"


def _coverage(rows: Rows) -> str:
    return number_words(_mean(rows, "coverage"), ".3f")


def _seconds(rows: Rows) -> str:
    return number_words(_mean(rows, "fit_seconds"), ".2g")


def _mean(rows: Rows, name: str) -> float:
    return float(np.mean([row[name] for row in rows])) if rows else math.nan
