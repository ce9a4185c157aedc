"""Figure: worst-set coverage of the lower and upper ends on the real data sets."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.real_runs import TABLE_METHODS, real_rows


def compute(config: Config) -> Rows:
    """The paper's four methods on all data sets."""
    return real_rows(config, TABLE_METHODS)
