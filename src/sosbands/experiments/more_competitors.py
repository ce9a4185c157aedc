"""Table beyond the paper: interval scores of all methods on the real data sets."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.real_runs import FURTHER_METHODS, TABLE_METHODS, real_rows


def compute(config: Config) -> Rows:
    """All methods on all data sets."""
    return real_rows(config, (*TABLE_METHODS, *FURTHER_METHODS))
