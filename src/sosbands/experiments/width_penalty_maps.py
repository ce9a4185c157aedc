"""Figure: HSIC over symmetry penalty and lengthscale for four width penalties and three draws of case 2."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.criterion_grid import COARSE, FINE, grid_row

WIDTH_PENALTIES = (1.0, 10.0, 100.0, 1000.0)


def compute(config: Config) -> Rows:
    """One map per width penalty and draw."""
    size = config.pick(quick=COARSE, paper=FINE)
    tasks = [
        {"case": 2, "n": 100, "width_penalty": b, "draw": k, **size}
        for k in range(config.pick(quick=1, paper=3))
        for b in WIDTH_PENALTIES
    ]
    return config.run("width-penalty-maps", grid_row, tasks, seed_axes=["case", "n", "draw"])
