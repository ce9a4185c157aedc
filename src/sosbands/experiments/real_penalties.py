"""Figure: how often each symmetry penalty is selected on the real data sets."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import PAPER
from sosbands.experiments.real_runs import real_rows


def compute(config: Config) -> Rows:
    """The paper's rule on all data sets."""
    return real_rows(config, (PAPER,))
