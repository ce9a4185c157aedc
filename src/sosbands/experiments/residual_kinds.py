"""Table beyond the paper: bands around a boosting model, learnt from in-sample and from out-of-fold residuals."""

from __future__ import annotations

from sosbands.comparison import TextTable
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import OURS
from sosbands.experiments.real_runs import real_rows
from sosbands.experiments.real_tables import paired_table

SETS = ("Concrete", "Diabetes", "MPG", "Boston", "Energy", "Power")


def compute(config: Config) -> Rows:
    """Both kinds on the same splits."""
    names = config.pick(quick=("Diabetes",), paper=SETS)
    return [
        row
        for kind in ("in-sample", "out-of-fold")
        for row in real_rows(config, (OURS,), names, point_model="boosting", residuals=kind)
    ]


def draw(rows: Rows) -> TextTable:
    """Two lines per data set, and the paired difference of their interval scores."""
    return paired_table(rows, "residuals", {kind: kind for kind in ("in-sample", "out-of-fold")}, "residuals")
