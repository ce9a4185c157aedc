"""The tuning criterion over a grid of lengthscales and symmetry penalties: what the contour maps show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from sosbands._types import Array
from sosbands.bands import penalty_scale
from sosbands.bands.views import INPUTS, NO_SCALE, RowFacts
from sosbands.kernels import median_lengthscale
from sosbands.tuning.rules import COARSE as SEARCHED
from sosbands.tuning.search import CRITERIA, Candidate, Search
from studies.runs.synthetic_runs import Draw

FINE = {"n_lengthscales": 12, "n_penalties": 11}
COARSE = {"n_lengthscales": 5, "n_penalties": 4}


def grid_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """HSIC and distance correlation of held-out widths and residuals, of shape (n_lengthscales, n_penalties).

    The axes are case, n, width_penalty, and the numbers of lengthscales and penalties. Penalties are in normalised
    units, those of the first problem with width penalty 1.
    """
    draw = Draw.of(axes["case"], axes["n"], seed)
    points = (draw.X - draw.X.mean(axis=0)) / draw.X.std(axis=0)
    model = draw.point_model().fit(draw.X, draw.y)
    r = draw.y - model.predict(draw.X)
    ells, penalties = grid_of(points, axes["n_lengthscales"], axes["n_penalties"])
    folds = tuple(held for _, held in KFold(5, shuffle=True, random_state=draw.seed).split(points))
    options = {
        "kernel": "matern52",
        "symmetry_kind": "training",
        "normalize": penalty_scale(points, r),
    }
    search = Search(RowFacts(points, np.zeros(len(r)), {}), r, folds, options, SEARCHED)
    grid = [Candidate(NO_SCALE, INPUTS, ell, axes["width_penalty"], 1.0, each) for ell in ells for each in penalties]
    search.evaluate(grid)
    values = {
        name: np.reshape(
            [-np.inf if search.failed(each) else CRITERIA[name](search.held_out(each, "added")) for each in grid],
            (len(ells), len(penalties)),
        )
        for name in ("hsic", "dcor")
    }
    factors = np.array(ells) / median_lengthscale(points)
    uncertified = sum(search.uncertified(each) for each in grid)
    return {"factors": factors, "penalties": penalties, **values, "uncertified": uncertified}


def grid_of(points: Array, n_lengthscales: int, n_penalties: int) -> tuple[list[float], list[float]]:
    """Lengthscales from 0.1 to 10 medians, penalties 0, from 0.1 to 1e5, and infinity."""
    ells = [float(ell) for ell in median_lengthscale(points) * np.geomspace(0.1, 10, n_lengthscales)]
    penalties = [0.0, *(float(p) for p in np.geomspace(0.1, 1e5, n_penalties - 2)), math.inf]
    return ells, penalties
