"""Table beyond the paper: one lengthscale for all features against one for each."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import OURS, PER_FEATURE
from sosbands.experiments.real_runs import real_rows

SETS = ("Concrete", "MPG", "Boston", "Energy")


def compute(config: Config) -> Rows:
    """The default search, and the local search over one lengthscale per side and feature from its best point."""
    names = config.pick(quick=("MPG",), paper=SETS)
    return real_rows(config, (OURS, PER_FEATURE), names)
