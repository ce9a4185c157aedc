"""Table: by how much asymmetric calibration widens the intervals, for each data set and method."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import PAPER, PAPER_CQR
from sosbands.experiments.real_runs import real_rows


def compute(config: Config) -> Rows:
    """The rows of `calibration`."""
    return real_rows(config, (PAPER_CQR, PAPER))
