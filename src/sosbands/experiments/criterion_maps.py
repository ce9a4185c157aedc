"""Figure: HSIC over symmetry penalty and lengthscale, for skewed noise and for two cases of symmetric noise."""

from __future__ import annotations

from sosbands.datasets import synthetic_case
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.criterion_grid import COARSE, FINE, grid_row

CASES = (5, 1, 2)


def compute(config: Config) -> Rows:
    """One map per case."""
    size = config.pick(quick=COARSE, paper=FINE)
    tasks = [{"case": c, "n": 100, "width_penalty": synthetic_case(c).width_penalty, "draw": 0, **size} for c in CASES]
    return config.run("criterion-maps", grid_row, tasks, seed_axes=["case", "n", "draw"])
