"""Figure: bands of case 1 without, with some and with full symmetry penalty, and the oracle's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import PAPER
from sosbands.experiments.synthetic_runs import Draw

PENALTIES = (0.0, 100.0, math.inf)


def compute(config: Config) -> Rows:
    """One row per penalty, on one draw of 100 points."""
    tasks = [{"case": 1, "n": 100, "symmetry_penalty": penalty} for penalty in PENALTIES]
    return config.run("penalty-bands", curves_row, tasks, seed_axes=["case", "n"])


def curves_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Calibrated bands on a grid, and how good they are."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model, _ = draw.fit(PAPER, symmetry_penalty=axes["symmetry_penalty"], lengthscale="median")
    x = np.linspace(-1, 1, 201)[:, None]
    lower, upper = model.predict_interval(x).T
    oracle_lower, oracle_upper = draw.case.oracle_interval(x).T
    curves = {"x": x[:, 0], "center": model.predict(x), "lower": lower, "upper": upper}
    oracle = {"oracle_lower": oracle_lower, "oracle_upper": oracle_upper}
    return {**curves, **oracle, "X": draw.X[:, 0], "y": draw.y, **draw.judge(model)}
