"""Table beyond the paper: widths with other values of settings that it leaves open, on sets where ours differ."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sosbands.comparison import TextTable, corrected_interval
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import grouped, succeeded
from studies.drawing.real_tables import (
    counts,
    in_paper_sd,
    interval_cell,
    overlap,
    paired_values,
    printed_cell,
    sets_of,
    summary,
)
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER, PAPER_CQR, PER_SIDE, SHOWN
from studies.runs.paper_numbers import printed
from studies.runs.real_runs import real_rows

AS_RUN = "as in the other tables"


class Variant(NamedTuple):
    """One setting changed, or none."""

    words: str
    method: str
    axes: dict[str, Any]


# The first of each method is what the other tables have.
VARIANTS = (
    Variant(AS_RUN, PAPER, {}),
    Variant("a lengthscale for each side", PER_SIDE, {}),
    Variant("width penalty 1", PAPER, {"width_penalty": 1.0}),
    Variant("width penalty 100", PAPER, {"width_penalty": 100.0}),
    Variant(AS_RUN, "het-gp", {}),
    Variant("search begun at the residuals", "het-gp", {"start": "residuals"}),
    Variant(AS_RUN, PAPER_CQR, {}),
    Variant("levels 0.1 and 0.9 before calibration", PAPER_CQR, {"quantile_tail": 0.1}),
    Variant("levels 0.2 and 0.8 before calibration", PAPER_CQR, {"quantile_tail": 0.2}),
)
# where widths are the farthest from the paper's
SETS = {"het-gp": ("Bike", "Housing", "Miami"), PAPER_CQR: ("Concrete", "Bike", "Energy", "Power", "Yacht")}
OTHER_SETS = ("MPG", "Boston", "Power")  # over one printed deviation; Bike and Housing take half an hour each
REPETITIONS = {"het-gp": 2}  # of the paper's ten: a fit takes two minutes


def compute(config: Config) -> Rows:
    """Methods as in the other tables, and with one setting changed at a time."""
    rows = []
    for _, method, axes in VARIANTS:
        names = config.pick(quick=("MPG",), paper=SETS.get(method, OTHER_SETS))
        most = REPETITIONS.get(method) if axes else None
        rows += real_rows(config, (method,), names, repetitions=most, **axes)
    return rows


def draw(rows: Rows) -> TextTable:
    """A line per data set and setting: the width beside the paper's and its change on the same splits."""
    found, shown = [], []
    groups = grouped([{**row, "variant": _variant(row)} for row in rows], "dataset", "variant")
    keys = [(name, k) for name in sets_of(rows) for k in range(len(VARIANTS)) if (name, k) in groups]
    for dataset, k in keys:
        group, (setting, method, _) = groups[dataset, k], VARIANTS[k]
        family = PAPER if method == PER_SIDE else method
        width, score = summary(group, "mean_width", np.median), summary(group, "interval_score")
        paper = printed("mean_width", dataset, family)
        far = in_paper_sd(width.value, paper)
        base = VARIANTS.index(Variant(AS_RUN, family, {}))
        pairs = [] if k == base else paired_values(groups.get((dataset, base), []), group, "mean_width")
        change = corrected_interval([100 * (new / old - 1) for new, old in pairs], overlap(dataset))
        asymmetric = _asymmetric(group)
        found.append(
            {
                "dataset": dataset,
                "method": family,
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
                "method": SHOWN[family],
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
        "n repetitions on the same splits. Change of width: mean over splits of the relative difference to the first "
        "line of the method, with the corrected resampled t interval. Penalty 0: repetitions in which two independent "
        "bands are selected."
    )
    return TextTable(found, shown, joined(note, failure_words(rows)))


def _variant(row: dict[str, Any]) -> int | None:
    """Place in `VARIANTS` of the setting that a row was computed with, None for rows of other entries."""
    names = {name for each in VARIANTS for name in each.axes}
    axes = {name: row[name] for name in names if name in row}
    return next((k for k, each in enumerate(VARIANTS) if (each.method, each.axes) == (row["method"], axes)), None)


def _asymmetric(rows: Rows) -> float:
    """Share of the runs with penalty 0 that are not of constant width; NaN for methods without a penalty."""
    fine = [row for row in succeeded(rows) if "symmetry_penalty" in row]
    picked = [row["symmetry_penalty"] == 0 and not row["constant_width"] for row in fine]
    return float(np.mean(picked)) if picked else math.nan
