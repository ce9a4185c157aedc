"""Figures: mean width, combined coverage gap and distance to the oracle on cases 1 to 6."""

from __future__ import annotations

from typing import Any

from studies.drawing.box_panels import draw_cases
from studies.runs.config import Config, Rows
from studies.runs.synthetic_runs import synthetic_rows


def compute(config: Config) -> Rows:
    """All methods on all cases."""
    return synthetic_rows(config)


def draw(rows: Rows) -> Any:
    """A row of panels per case: mean width, combined coverage gap, distance to the oracle."""
    return draw_cases(rows, ("mean_width", "acg_combined", "rmse"))
