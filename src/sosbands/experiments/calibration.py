"""Table: how often asymmetric calibration is wider, and how far the worst-set coverage of each kind is from nominal."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import PAPER, PAPER_CQR
from sosbands.experiments.real_runs import real_rows


def compute(config: Config) -> Rows:
    """CQR and the paper's bands on all data sets, each calibrated in both ways."""
    return real_rows(config, (PAPER_CQR, PAPER))
