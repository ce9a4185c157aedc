"""Table beyond the paper: widths of its bands with other values of what it leaves open, on sets where ours differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands.comparison import TextTable, corrected_interval
from sosbands.experiments.caption_words import failure_words, joined, number_words
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.figures import grouped, succeeded
from sosbands.experiments.methods import PAPER, PER_SIDE
from sosbands.experiments.paper_numbers import printed
from sosbands.experiments.real_runs import real_rows
from sosbands.experiments.real_tables import counts, interval_cell, overlap, printed_cell, sets_of, summary

SETS = ("Bike", "Housing", "MPG", "Boston", "Power")  # pen. kSoS over one printed deviation from the paper
AS_RUN = "as in the other tables"
WIDTH_PENALTIES = (1.0, 100.0)  # the other tables have 10
SETTINGS = (AS_RUN, "a lengthscale for each side", *(f"width penalty {value:g}" for value in WIDTH_PENALTIES))


def compute(config: Config) -> Rows:
    """The paper's bands as in the other tables, and with one setting changed at a time."""
    names = config.pick(quick=("MPG",), paper=SETS)
    rows = real_rows(config, (PAPER, PER_SIDE), names)
    return rows + [row for b in WIDTH_PENALTIES for row in real_rows(config, (PAPER,), names, width_penalty=b)]


def draw(rows: Rows) -> TextTable:
    """A line per data set and setting: the width beside the paper's and its change on the same splits."""
    found, shown = [], []
    named = [{**row, "setting": _setting(row)} for row in rows]
    groups = grouped(named, "dataset", "setting")
    for dataset, setting in [(name, each) for name in sets_of(rows) for each in SETTINGS if (name, each) in groups]:
        group = groups[dataset, setting]
        width, score = summary(group, "mean_width", np.median), summary(group, "interval_score")
        paper = printed("mean_width", dataset, PAPER)
        far = math.nan if paper is None or not paper.sd else (width.value - paper.value) / paper.sd
        changes = [] if setting == AS_RUN else _changes(groups.get((dataset, AS_RUN), []), group)
        change = corrected_interval(changes, overlap(dataset))
        asymmetric = _asymmetric(group)
        found.append(
            {
                "dataset": dataset,
                "setting": setting,
                "mean_width_median": width.value,
                "mean_width_sd": width.sd,
                "difference_in_sd": far,
                "width_change": change.mean,
                "width_change_lower": change.lower,
                "width_change_upper": change.upper,
                "interval_score_mean": score.value,
                "interval_score_sd": score.sd,
                "asymmetric_share": asymmetric,
                **counts(group),
            }
        )
        shown.append(
            {
                "data set": dataset,
                "setting": setting,
                "width (median ± sd)": str(width),
                "paper (median ± sd)": printed_cell(paper),
                "difference in paper's sd": number_words(far, "+z.1f"),
                "change of width, % [95 %]": interval_cell(change),
                "interval score": str(score),
                "penalty 0, %": number_words(100 * asymmetric, ".0f"),
                "n": found[-1]["n"],
            }
        )
    note = (
        "Bands of the paper's rule over n repetitions on the same splits. Change of width: mean over splits of the "
        "relative difference to the first line, with the corrected resampled t interval. Penalty 0: repetitions in "
        "which two independent bands are selected."
    )
    return TextTable(found, shown, joined(note, failure_words(rows)))


def _setting(row: dict[str, Any]) -> str:
    if row["method"] == PER_SIDE:
        return SETTINGS[1]
    return AS_RUN if "width_penalty" not in row else f"width penalty {row['width_penalty']:g}"


def _changes(first: Rows, second: Rows) -> list[float]:
    """Relative change of the width in per cent, in the repetitions in which both succeeded."""
    widths = {row["repetition"]: row["mean_width"] for row in succeeded(first)}
    pairs = [(row["mean_width"], widths.get(row["repetition"])) for row in succeeded(second)]
    return [100 * (width / other - 1) for width, other in pairs if other is not None]


def _asymmetric(rows: Rows) -> float:
    """Share of the runs with penalty 0 that are not of constant width."""
    fine = succeeded(rows)
    return math.nan if not fine else float(np.mean([_independent(row) for row in fine]))


def _independent(row: dict[str, Any]) -> bool:
    return row["symmetry_penalty"] == 0 and not row["constant_width"]
