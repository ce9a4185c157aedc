"""Figure: mean width and combined coverage gap on cases 1, 3 and 4."""

from __future__ import annotations

from typing import Any

from studies.drawing.box_panels import draw_cases
from studies.runs.config import Config, Rows
from studies.runs.synthetic_runs import synthetic_rows


def compute(config: Config) -> Rows:
    """The rows of `synthetic-cases` that the main text shows."""
    return synthetic_rows(config, cases=(1, 3, 4))


def draw(rows: Rows) -> Any:
    """A row of panels per case: mean width and combined coverage gap."""
    return draw_cases(rows, ("mean_width", "acg_combined"))
