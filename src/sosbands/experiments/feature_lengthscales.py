"""Table beyond the paper: one common lengthscale against one for each side and feature."""

from __future__ import annotations

from sosbands.comparison import TextTable
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import OURS, PER_FEATURE
from sosbands.experiments.real_runs import real_rows
from sosbands.experiments.real_tables import paired_table

SETS = ("Concrete", "MPG", "Boston", "Energy")


def compute(config: Config) -> Rows:
    """The default search, and the local search over one lengthscale per side and feature from its best point."""
    names = config.pick(quick=("MPG",), paper=SETS)
    return real_rows(config, (OURS, PER_FEATURE), names)


def draw(rows: Rows) -> TextTable:
    """Two lines per data set, and the paired difference of their interval scores."""
    return paired_table(rows, "method", {OURS: "common", PER_FEATURE: "per feature"}, "lengthscale")
