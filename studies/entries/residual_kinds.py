"""Table beyond the paper: bands around a boosting model, learnt from in-sample and from out-of-fold residuals."""

from __future__ import annotations

from sosbands.comparison import TextTable
from studies.drawing.real_tables import paired_table
from studies.runs.config import Config, Rows
from studies.runs.methods import HARD
from studies.runs.real_runs import real_rows

SETS = ("Concrete", "Diabetes", "MPG", "Boston", "Energy", "Power")


def compute(config: Config) -> Rows:
    """Both kinds on the same splits."""
    names = config.pick(quick=("Diabetes",), paper=SETS)
    return [
        row
        for kind in ("in-sample", "out-of-fold")
        for row in real_rows(config, (HARD,), names, point_model="boosting", residuals=kind)
    ]


def draw(rows: Rows) -> TextTable:
    """Two lines per data set, and the paired difference of their interval scores."""
    return paired_table(rows, "residuals", {kind: kind for kind in ("in-sample", "out-of-fold")}, "residuals")
