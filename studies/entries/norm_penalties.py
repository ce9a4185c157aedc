"""Table beyond the paper: the bands with other penalties on the norms of the operators, which it fixes at 1."""

from __future__ import annotations

from typing import Any

from sosbands.comparison import MeanInterval, TextTable, corrected_interval
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import grouped, succeeded
from studies.drawing.real_tables import interval_cell, paired_values, summary
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER
from studies.runs.synthetic_runs import synthetic_rows

CASES = (1, 3, 5)
PENALTIES = (0.1, 10.0)  # lam1 = lam2, instead of the paper's 1
AS_PAPER = 1.0
MEASURES = {"mean_width": "width", "acg_combined": "ACG^c"}


def compute(config: Config) -> Rows:
    """The paper's bands with its penalties, a tenth and ten times as much, on the same draws."""
    runs: list[tuple[float, dict[str, Any]]] = [(AS_PAPER, {})]
    runs += [(penalty, {"norm_penalties": penalty}) for penalty in PENALTIES]
    return [
        {**row, "norm_penalties": penalty}
        for penalty, axes in runs
        for row in synthetic_rows(config, CASES, (PAPER,), **axes)
    ]


def draw(rows: Rows) -> TextTable:
    """A line per case and penalty, with the changes on the same draws."""
    found, shown = [], []
    for (case, penalty), group in sorted(grouped(rows, "case", "norm_penalties").items()):
        means = {name: summary(group, name) for name in MEASURES}
        changes = {name: relative_change(rows, case, penalty, name) for name in MEASURES}
        found.append(
            {
                "case": case,
                "norm_penalties": penalty,
                **{f"{name}_mean": each.value for name, each in means.items()},
                **{f"{name}_sd": each.sd for name, each in means.items()},
                **{f"{name}_change": each.mean for name, each in changes.items()},
                **{f"{name}_change_lower": each.lower for name, each in changes.items()},
                **{f"{name}_change_upper": each.upper for name, each in changes.items()},
                "runs": len(succeeded(group)),
                "failed": len(group) - len(succeeded(group)),
            }
        )
        cells: dict[str, Any] = {"case": case, "lam1 = lam2": number_words(penalty, "g")}
        for name, words in MEASURES.items():
            change = changes[name]
            percent = MeanInterval(*(100 * each for each in change))
            cells[f"{words} (mean ± sd)"] = str(means[name])
            cells[f"change of {words}, % [95 %]"] = "-" if penalty == AS_PAPER else interval_cell(percent)
        shown.append({**cells, "runs": found[-1]["runs"]})
    note = (
        "The same draws in all lines of a case. Change: mean difference to the line with 1, over the mean of that "
        "line. Lengthscale and symmetry penalty are tuned anew in each line."
    )
    return TextTable(found, shown, joined(note, failure_words(rows)) if found else "")


def relative_change(rows: Rows, case: int, penalty: float, name: str) -> MeanInterval:
    """Mean difference of a column to the paper's penalties on the same draws, over the mean with these."""
    groups = grouped(rows, "case", "norm_penalties")
    base = groups.get((case, AS_PAPER), [])
    pairs = paired_values(base, groups.get((case, penalty), []), name)
    unit = summary(base, name).value
    return corrected_interval([(new - old) / unit for new, old in pairs], 0.0)
