"""Figure: how often each symmetry penalty is selected, by sample size (case 2) and by point model (case 1)."""

from __future__ import annotations

from typing import Any

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import OURS, PAPER, chosen, interval_method
from sosbands.experiments.synthetic_runs import Draw

SETTINGS = ((2, 100, "gp"), (2, 200, "gp"), (1, 100, "gp"), (1, 100, "oracle"))  # case, n, point model


def compute(config: Config) -> Rows:
    """The paper's rule and ours on many draws."""
    tasks = [
        {"case": case, "n": n, "point_model": model, "method": method, "repetition": k}
        for method in (PAPER, OURS)
        for k in range(config.pick(quick=3, paper=500))
        for case, n, model in SETTINGS
    ]
    return config.run("penalty-histograms", choice_row, tasks, seed_axes=["case", "n", "repetition"])


def choice_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """What is selected on one draw, around a Gaussian process or around the true mean."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model = draw.case.location if axes["point_model"] == "oracle" else draw.point_model()
    bands = interval_method(axes["method"], draw.seed, estimator=model, width_penalty=draw.case.width_penalty)
    return chosen(bands.fit(draw.X, draw.y))
