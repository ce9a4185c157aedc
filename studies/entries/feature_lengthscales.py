"""Table beyond the paper: one common lengthscale against one for each side and feature."""

from __future__ import annotations

from sosbands.comparison import TextTable
from studies.drawing.real_tables import paired_table
from studies.runs.config import Config, Rows
from studies.runs.methods import HARD, PER_FEATURE
from studies.runs.real_runs import real_rows

SETS = ("Concrete", "MPG", "Boston", "Energy")


def compute(config: Config) -> Rows:
    """The default search, and the local search over one lengthscale per side and feature from its best point."""
    names = config.pick(quick=("MPG",), paper=SETS)
    return real_rows(config, (HARD, PER_FEATURE), names)


def draw(rows: Rows) -> TextTable:
    """Two lines per data set, and the paired difference of their interval scores."""
    return paired_table(rows, "method", {HARD: "common", PER_FEATURE: "per feature"}, "lengthscale")
