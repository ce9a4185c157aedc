"""Table beyond the paper: what its loose stopping rule does to widths, the criterion and the selected penalty."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from sosbands._types import Array, IntArray
from sosbands.bands import learn_bands, penalty_scale
from sosbands.conformal import conformal_quantile
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.synthetic_runs import LEVEL, Draw
from sosbands.kernels import median_lengthscale, resolve_kernel
from sosbands.reference.recipe import paper_recipe
from sosbands.stats import hsic

PENALTIES = (0.0, 10.0, 100.0, 1000.0, math.inf)
FACTORS = (0.3, 1.0, 3.0)  # of the median lengthscale
Bands = tuple[Callable[[Array], Array], Callable[[Array], Array], float]  # lower, upper, dual value


def compute(config: Config) -> Rows:
    """Both stopping rules on the same draws."""
    tasks = [
        {"case": case, "n": 100, "stop": stop, "repetition": k}
        for k in range(config.pick(quick=1, paper=20))
        for case in config.pick(quick=(5,), paper=(1, 3, 5))
        for stop in ("certified", "ftol = gtol = 1e-2")
    ]
    return config.run("stopping-rule", stop_row, tasks, seed_axes=["case", "n", "repetition"])


def stop_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Bands of all penalties at the median lengthscale, and the penalty that the criterion selects over a grid."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    mean, sd = draw.X.mean(axis=0), draw.X.std(axis=0)
    Z, model = (draw.X - mean) / sd, draw.point_model().fit(draw.X, draw.y)
    r = draw.y - model.predict(draw.X)
    problem = Problem(Z, r, draw.case.width_penalty, axes["stop"] == "certified")
    median = median_lengthscale(Z)
    row: dict[str, list[float]] = {name: [] for name in ("value", "width", "violation", "calibrated_width")}
    Z_calibration, Z_test = ((X - mean) / sd for X in (draw.X_calibration, draw.X_test))
    e = draw.y_calibration - model.predict(draw.X_calibration)
    for penalty in PENALTIES:
        lower, upper, value = problem.solve(np.arange(len(r)), median, penalty)
        q = conformal_quantile(np.maximum(-e - lower(Z_calibration), e - upper(Z_calibration)), LEVEL)
        f_lo, f_up = lower(Z), upper(Z)
        row["value"].append(value)
        row["width"].append(float(np.mean(f_lo + f_up)))
        row["violation"].append(float(np.max(np.maximum(-r - f_lo, r - f_up))) / problem.scale.rms)
        half_ends = np.maximum(lower(Z_test) + upper(Z_test) + 2 * q, 0.0)  # an empty interval has no width
        row["calibrated_width"].append(float(half_ends.mean()))
    grid = {(f, p): problem.criterion(f * median, p, draw.seed) for f, p in product(FACTORS, PENALTIES)}
    best = max(grid, key=lambda key: grid[key])
    selected = {"lengthscale_factor": best[0], "symmetry_penalty": best[1], "criterion": grid[best]}
    return {"penalties": PENALTIES, **row, **selected}


class Problem:
    """The paper's problem in normalised units, solved with one of the two stopping rules."""

    def __init__(self, Z: Array, r: Array, b: float, certified: bool) -> None:
        self.Z, self.r, self.certified = Z, r, certified
        self.scale = penalty_scale(Z, r)
        self.b, self.lam1, self.lam2 = b / self.scale.width, 1 / self.scale.trace, 1 / self.scale.squared_norm

    def solve(self, rows: IntArray, lengthscale: float, penalty: float) -> Bands:
        """Bands of some rows, in the unit of the residuals."""
        Z, u, rms = self.Z[rows], self.r[rows] / self.scale.rms, self.scale.rms
        lam_pen = penalty / (self.scale.n * self.scale.width**2)
        if self.certified:
            bands = learn_bands(
                Z,
                u,
                lengthscale=lengthscale,
                width_penalty=self.b,
                trace_penalty=self.lam1,
                frobenius_penalty=self.lam2,
                symmetry_penalty=lam_pen,
            )
            return lambda X: rms * bands.lower(X), lambda X: rms * bands.upper(X), bands.dual_value
        kernel = resolve_kernel("matern52", lengthscale, Z)
        K = kernel(Z, Z)
        found = paper_recipe(K, K, u, b=self.b, lam1=self.lam1, lam2=self.lam2, lam_pen=lam_pen)

        def function(V: Array, A: Array) -> Callable[[Array], Array]:
            def values(X: Array) -> Array:
                Phi = np.linalg.lstsq(V.T, kernel(Z, X), rcond=1e-10)[0]  # V' Phi(x) = k(x)
                f: Array = rms * np.einsum("ij,ij->j", Phi, A @ Phi)
                return f

            return values

        return function(found.V_lo, found.lower), function(found.V_up, found.upper), found.value

    def criterion(self, lengthscale: float, penalty: float, seed: int) -> float:
        """HSIC of held-out widths and residuals."""
        widths, residuals = [], []
        for rows, held in KFold(5, shuffle=True, random_state=seed).split(self.Z):
            lower, upper, _ = self.solve(rows, lengthscale, penalty)
            f_lo, f_up = lower(self.Z[held]), upper(self.Z[held])
            widths.append(f_lo + f_up)
            residuals.append(np.abs(self.r[held] - (f_up - f_lo) / 2))
        return hsic(np.concatenate(widths), np.concatenate(residuals))
