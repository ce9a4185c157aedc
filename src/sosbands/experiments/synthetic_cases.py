"""Figures: mean width, combined coverage gap and distance to the oracle on cases 1 to 6."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.synthetic_runs import synthetic_rows


def compute(config: Config) -> Rows:
    """All methods on all cases."""
    return synthetic_rows(config)
