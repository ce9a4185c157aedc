"""Figure: iterations along a path of symmetry penalties, each solve from zero or from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sosbands import learn_bands
from sosbands._types import Array
from sosbands.bands import learn_band_path
from sosbands.datasets import synthetic_case
from sosbands.experiments.config import Config, Rows
from sosbands.kernels import resolve_kernel
from sosbands.reference.recipe import RecipeResult, paper_recipe

LENGTHSCALE, WIDTH_PENALTY = 0.3, 10.0
PENALTIES = tuple(float(p) for p in np.geomspace(1e-4, 1e4, 17))


def compute(config: Config) -> Rows:
    """The paper's recipe and our solver on the same draws of case 1, n = 100."""
    tasks = [
        {"solver": solver, "n": 100, "repetition": k}
        for k in range(config.pick(quick=2, paper=10))
        for solver in ("recipe", "sosbands")
    ]
    return config.run("warm-start", path_row, tasks, seed_axes=["n", "repetition"])


def path_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Iterations and eigendecompositions of each solve."""
    case = synthetic_case(1)
    X, y = case.sample(axes["n"], np.random.default_rng(seed))
    r = y - case.location(X)
    cold: Sequence[Any]
    warm: Sequence[Any]
    if axes["solver"] == "recipe":
        cold, warm = _recipe(X, r, warm=False), _recipe(X, r, warm=True)
    else:
        options: dict[str, Any] = {"lengthscale": LENGTHSCALE, "width_penalty": WIDTH_PENALTY}
        cold = [learn_bands(X, r, symmetry_penalty=penalty, **options) for penalty in PENALTIES]
        warm = list(learn_band_path(X, r, PENALTIES, **options))
    counts = {
        f"{start}_{what}": [getattr(solve, what) for solve in solves]
        for start, solves in (("cold", cold), ("warm", warm))
        for what in ("iterations", "decompositions")
    }
    return {"penalties": PENALTIES, **counts}


def _recipe(X: Array, r: Array, *, warm: bool) -> list[RecipeResult]:
    """The path by the paper's recipe, with its tolerance."""
    K = resolve_kernel("matern52", LENGTHSCALE, X)(X, X)
    found: list[RecipeResult] = []
    for penalty in PENALTIES:
        start = found[-1] if warm and found else None
        found.append(paper_recipe(K, K, r, b=WIDTH_PENALTY, lam1=1.0, lam2=1.0, lam_pen=penalty, start=start))
    return found
