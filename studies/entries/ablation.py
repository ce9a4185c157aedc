"""Table beyond the paper: what each part of the automatic choice brings, and the point model to others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands.comparison import TextTable
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import grouped
from studies.drawing.real_tables import sets_of, summary
from studies.runs.config import Config, Rows
from studies.runs.methods import OURS, WITHOUT
from studies.runs.real_runs import real_rows

REPETITIONS = 2
WHOLE = "nothing"
OTHERS = {"split": "split CP around the blend", "local": "local CP around the blend"}


def compute(config: Config) -> Rows:
    """The default, the default without one part, and two competitors around its point model, on the same splits."""
    options: dict[str, Any] = {"repetitions": REPETITIONS}
    rows = [{**row, "left_out": WHOLE} for row in real_rows(config, (OURS,), **options)]
    for part in WITHOUT:
        rows += [{**row, "left_out": part} for row in real_rows(config, (OURS,), without=part, **options)]
    for method, words in OTHERS.items():
        rows += [{**row, "left_out": words} for row in real_rows(config, (method,), point_model="blend", **options)]
    return rows


def draw(rows: Rows) -> TextTable:
    """A line per part, a column per data set: the score relative to that of the whole."""
    groups = grouped(rows, "left_out", "dataset")
    whole = {name: _score(groups.get((WHOLE, name), [])) for name in sets_of(rows)}
    found, shown = [], []
    for part in dict.fromkeys(row["left_out"] for row in rows):
        ratios = {name: _score(groups.get((part, name), [])) / whole[name] for name in whole}
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        cells = {name: number_words(ratio, ".3f") for name, ratio in ratios.items()}
        shown.append({"left out": part, **cells, "geometric mean": number_words(mean, ".3f")})
        found += [{"left_out": part, "dataset": name, "relative_score": ratio} for name, ratio in ratios.items()]
    note = (
        f"Mean interval score over at most {REPETITIONS} repetitions, divided by that of the default on the same "
        "splits: above 1 the part helps."
    )
    return TextTable(found, shown, joined(note, failure_words(rows)) if found else "")


def _score(rows: Rows) -> float:
    return summary(rows, "interval_score").value if rows else math.nan
