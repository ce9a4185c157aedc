"""The initial model, which sets the units of normalised penalties."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands.bands.penalties import SYMMETRIC, PenaltyScale
from sosbands.bands.prepare import check_residuals, check_weights, read_data
from sosbands.bands.units import root_mean_square
from sosbands.exceptions import NotCertifiedWarning
from sosbands.problems import SideCost
from sosbands.solvers import Status, solve


def penalty_scale(
    X: Any,
    residuals: Any,
    kernel: Any = "matern52",
    rank: Any = "auto",
    tol: float = 1e-4,
    solver: str = "auto",
    sample_weight: Any = None,
) -> PenaltyScale:
    """Units of the penalties, from the symmetric problem with the median lengthscale and all penalties 1."""
    r = check_residuals(residuals, len(X))
    weights = check_weights(sample_weight, len(r))
    rms = root_mean_square(r if weights is None else np.sqrt(weights) * r)
    if rms == 0:
        raise ValueError("residuals are all zero: they define no scale")
    with ONE_THREAD:
        setup = read_data(X, r / rms, kernel, rank, False, weights).prepare("median", SideCost(1.0, 1.0, 1.0), None)
        problem = setup.problem(SYMMETRIC)
        bands = setup.solution(problem, solve(problem, tol=tol, solver=solver))
    if bands.status != Status.CONVERGED:
        warnings.warn(
            f"the initial model, which sets the units of the penalties, has a certified gap of {bands.gap:.2g}, above "
            f"tol={tol:.2g}",
            NotCertifiedWarning,
            stacklevel=2,
        )
    A = bands.lower.operator
    width = float(np.average(bands.values_lower, weights=weights))
    return PenaltyScale(rms, width, float(np.trace(A)), float(np.square(A).sum()), len(r))
