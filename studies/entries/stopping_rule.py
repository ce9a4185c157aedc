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
from sosbands.comparison import TextTable
from sosbands.conformal import conformal_quantile
from sosbands.kernels import median_lengthscale, resolve_kernel
from sosbands.stats import hsic
from studies.drawing.caption_words import number_words
from studies.drawing.figures import grouped, succeeded
from studies.reference.recipe import paper_recipe
from studies.runs.config import Config, Rows
from studies.runs.synthetic_runs import LEVEL, Draw

PENALTIES = (0.0, 10.0, 100.0, 1000.0, math.inf)
CERTIFIED = "certified"
FACTORS = (0.3, 1.0, 3.0)  # of the median lengthscale
Bands = tuple[Callable[[Array], Array], Callable[[Array], Array], float]  # lower, upper, dual value


def compute(config: Config) -> Rows:
    """Both stopping rules on the same draws."""
    tasks = [
        {"case": case, "n": 100, "stop": stop, "repetition": k}
        for k in range(config.pick(quick=1, paper=20))
        for case in config.pick(quick=(5,), paper=(1, 3, 5))
        for stop in (CERTIFIED, "ftol = gtol = 1e-2")
    ]
    return config.run("stopping-rule", stop_row, tasks, seed_axes=["case", "n", "repetition"])


def draw(rows: Rows) -> TextTable:
    """A row per case and stopping rule, with medians over repetitions relative to the certified solution of the draw.

    Widths and dual values have a number for each penalty; the table shows their median over repetitions and penalties
    and the range, and its rows hold the median dual value of each penalty as well.
    """
    good = succeeded(rows)
    certified = {_draw_key(row): row for row in good if row["stop"] == CERTIFIED}
    penalties = tuple(dict.fromkeys(penalty for row in good for penalty in row["penalties"]))
    table, shown = [], []
    for (case, n, stop), own in grouped(rows, "case", "n", "stop").items():
        runs = succeeded(own)
        pairs = [(row, certified[_draw_key(row)]) for row in runs if _draw_key(row) in certified]
        summary: dict[str, Any] = {
            "case": case,
            "n": n,
            "stop": stop,
            "runs": len(runs),
            "failed": len(own) - len(runs),
        }
        summary["violation"] = _median([max(row["violation"]) for row in runs])
        for name in ("width", "calibrated_width", "value"):
            summary |= _ratios(pairs, name, penalties)
        summary["criterion"] = _median([_ratio(row["criterion"], best["criterion"]) for row, best in pairs])
        for name in ("symmetry_penalty", "lengthscale_factor"):
            summary[f"other_{name}"] = 100 * float(np.mean([a[name] != b[name] for a, b in pairs])) if pairs else None
        table.append(summary)
        shown.append(_shown(summary))
    note = (
        "Violation: the largest by which a residual exceeds its band, over the root mean square of the residuals. "
        "Widths, dual values and criterion are relative to those of the certified solutions of the same draws: medians "
        "over draws and penalties 0, 10, 100, 1000, inf. Other penalty or lengthscale: draws where HSIC selects "
        "another one, of 5 penalties and 3 lengthscales."
    )
    return TextTable(table, shown, note if table else "")


def _draw_key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["case"], row["n"], row["repetition"]


def _ratio(number: float, reference: float) -> float:
    return number / reference if reference else math.nan


def _median(numbers: list[float]) -> float | None:
    known = [number for number in numbers if not math.isnan(number)]
    return float(np.median(known)) if known else None


def _ratios(
    pairs: list[tuple[dict[str, Any], dict[str, Any]]], name: str, penalties: tuple[float, ...]
) -> dict[str, Any]:
    """Median, range and medians by penalty of a quantity that has one number per penalty."""
    found: dict[float, list[float]] = {penalty: [] for penalty in penalties}
    for row, best in pairs:
        for penalty, number, reference in zip(row["penalties"], row[name], best[name], strict=True):
            found[penalty].append(_ratio(number, reference))
    everything = [each for numbers in found.values() for each in numbers if not math.isnan(each)]
    ends = {"lowest": min(everything, default=None), "highest": max(everything, default=None)}
    each = {f"{name}_at_{penalty:g}": _median(numbers) for penalty, numbers in found.items() if name == "value"}
    return {name: _median(everything), **{f"{name}_{end}": number for end, number in ends.items()}, **each}


def _shown(summary: dict[str, Any]) -> dict[str, Any]:
    """What is printed: a median and its range, and shares in per cent."""

    def ranged(name: str) -> str:
        middle, low, high = (number_words(summary[f"{name}{end}"], ".3g") for end in ("", "_lowest", "_highest"))
        return middle if low == high else f"{middle} ({low} to {high})"

    return {
        "case": summary["case"],
        "n": summary["n"],
        "stopping rule": summary["stop"],
        "runs": summary["runs"],
        "failed": summary["failed"],
        "largest violation / rms": number_words(summary["violation"], ".2g"),
        "width / certified": ranged("width"),
        "calibrated width / certified": ranged("calibrated_width"),
        "dual value / certified": ranged("value"),
        "criterion / certified": number_words(summary["criterion"]),
        "other penalty, %": number_words(summary["other_symmetry_penalty"], ".0f"),
        "other lengthscale, %": number_words(summary["other_lengthscale_factor"], ".0f"),
    }


def stop_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Bands of all penalties at the median lengthscale, and the penalty that the criterion selects over a grid."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    mean, sd = draw.X.mean(axis=0), draw.X.std(axis=0)
    Z, model = (draw.X - mean) / sd, draw.point_model().fit(draw.X, draw.y)
    r = draw.y - model.predict(draw.X)
    problem = Problem(Z, r, draw.case.width_penalty, axes["stop"] == CERTIFIED)
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
