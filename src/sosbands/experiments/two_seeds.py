"""Figure: heteroscedastic Gaussian process and penalised bands with their metrics, two draws of cases 4 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands.datasets import synthetic_case
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import PAPER, chosen
from sosbands.experiments.synthetic_runs import Draw


def compute(config: Config) -> Rows:
    """Both methods on the same draws; the paper's text says case 4, its caption case 5."""
    tasks = [
        {"case": case, "n": config.pick(quick=100, paper=synthetic_case(case).n_learning), "method": method, "draw": k}
        for case in (4, 5)
        for k in range(2)
        for method in ("het-gp", PAPER)
    ]
    return config.run("two-seeds", curves_row, tasks, seed_axes=["case", "n", "draw"])


def curves_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Calibrated intervals on a grid, and how good they are."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model, _ = draw.fit(axes["method"])
    x = np.linspace(draw.X_test.min(), draw.X_test.max(), 201)[:, None]
    lower, upper = model.predict_interval(x).T
    oracle_lower, oracle_upper = draw.case.oracle_interval(x).T
    curves = {"x": x[:, 0], "center": model.predict(x), "lower": lower, "upper": upper}
    oracle = {"oracle_lower": oracle_lower, "oracle_upper": oracle_upper}
    return {**curves, **oracle, "X": draw.X[:, 0], "y": draw.y, **chosen(model), **draw.judge(model)}
