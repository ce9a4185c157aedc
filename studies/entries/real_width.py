"""Table: median width of the intervals on the real data sets, beside the paper's."""

from __future__ import annotations

from sosbands.comparison import TextTable
from studies.drawing.real_tables import beside_paper
from studies.runs.config import Config, Rows
from studies.runs.real_runs import TABLE_METHODS, real_rows


def compute(config: Config) -> Rows:
    """The paper's four methods on all data sets."""
    return real_rows(config, TABLE_METHODS)


def draw(rows: Rows) -> TextTable:
    """A line per data set and method: our median width, the paper's, and the difference."""
    return beside_paper(rows, "mean_width", "mean_width", "median")
