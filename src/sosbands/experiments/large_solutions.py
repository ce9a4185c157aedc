"""Figures: bands of cases 1 to 6 learnt from 1000 points, symmetry penalty 1, with their certificates."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from sosbands import learn_bands
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.synthetic_runs import CASES, Draw


def compute(config: Config) -> Rows:
    """One solution per case."""
    tasks = [{"case": case, "n": config.pick(quick=200, paper=1000)} for case in CASES]
    return config.run("large-solutions", solution_row, tasks)


def solution_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Bands before calibration on a grid, and the certificate; normalised penalties, median lengthscale."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model = draw.point_model().fit(draw.X, draw.y)
    r = draw.y - model.predict(draw.X)
    mean, sd = draw.X.mean(axis=0), draw.X.std(axis=0)
    clock = perf_counter()
    bands = learn_bands(
        (draw.X - mean) / sd, r, symmetry_penalty=1.0, width_penalty=draw.case.width_penalty, normalize=True
    )
    seconds = perf_counter() - clock
    x = np.linspace(draw.X.min(), draw.X.max(), 201)[:, None]
    center, z = model.predict(x), (x - mean) / sd
    oracle_lower, oracle_upper = draw.case.oracle_interval(x).T
    curves = {"x": x[:, 0], "center": center, "lower": center - bands.lower(z), "upper": center + bands.upper(z)}
    oracle = {"oracle_lower": oracle_lower, "oracle_upper": oracle_upper}
    certificate = {"gap": bands.gap, "violation": bands.violation, "solve_seconds": seconds, "rank": bands.rank}
    return {**curves, **oracle, "X": draw.X[:, 0], "y": draw.y, **certificate}
