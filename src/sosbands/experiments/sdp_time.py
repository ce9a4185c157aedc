"""Figure: seconds of the SDP, of the paper's dual recipe, and of our solver, by the number of points."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from sosbands import learn_bands
from sosbands.datasets import synthetic_case
from sosbands.experiments.config import Config, Rows
from sosbands.kernels import learn_features, resolve_kernel
from sosbands.reference.recipe import paper_recipe
from sosbands.reference.sdp import training_penalty_sdp

SIZES = {"sdp": (25, 50, 100, 200), "recipe": (25, 50, 100, 200, 500, 1000), "sosbands": (25, 50, 100, 200, 500, 1000)}
LENGTHSCALE, PENALTY = 0.3, 1.0


def compute(config: Config) -> Rows:
    """One solve per task, one at a time: two at once would slow each other down."""
    tasks = [
        {"solver": solver, "n": n, "repetition": k}
        for k in range(config.pick(quick=1, paper=20))
        for solver, sizes in SIZES.items()
        for n in sizes
        if n <= config.pick(quick=50, paper=1000)
    ]
    return config.alone().run("sdp-time", time_row, tasks, seed_axes=["n", "repetition"])


def time_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Case 1, no width penalty, lengthscale 0.3, symmetry penalty 1, from the kernel matrix to the bands."""
    case = synthetic_case(1)
    X, y = case.sample(axes["n"], np.random.default_rng(seed))
    r = y - case.location(X)
    literal: dict[str, Any] = {"b": 0.0, "lam1": 1.0, "lam2": 1.0, "lam_pen": PENALTY}
    kernel = resolve_kernel("matern52", LENGTHSCALE, X)
    clock = perf_counter()
    if axes["solver"] == "sdp":
        V = learn_features(X, kernel, "exact").V
        found = training_penalty_sdp(V, V, r, **literal, solver="SCS", max_iters=10_000)
        return {"solve_seconds": perf_counter() - clock, "value": found.value, "status": found.status}
    if axes["solver"] == "recipe":
        K = kernel(X, X)
        dual = paper_recipe(K, K, r, **literal)
        return {"solve_seconds": perf_counter() - clock, "value": dual.value, "status": dual.message}
    bands = learn_bands(X, r, lengthscale=LENGTHSCALE, width_penalty=0.0, symmetry_penalty=PENALTY)
    seconds = perf_counter() - clock
    return {"solve_seconds": seconds, "value": bands.dual_value, "status": bands.status.value, "gap": bands.gap}
