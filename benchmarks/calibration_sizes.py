"""How many rows calibration takes: what each `calibration_size` is worth, and its coverage over many small draws.

    python -m benchmarks.calibration_sizes --study coverage --jobs 2
    python -m benchmarks.calibration_sizes --study models --jobs 2
    python -m benchmarks.calibration_sizes --study sizes --jobs 2

"coverage" is that of cross-calibration, "models" that of "auto" and "out-of-fold" around point models of all kinds,
"sizes" the interval score of every size with equal rows for all, on real data sets (`SOSBANDS_DATA`). Rows are stored
as they finish, and a second run continues where the first stopped.
"""

from __future__ import annotations

import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections import defaultdict
from functools import partial
from time import process_time

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from benchmarks.evidence import main
from sosbands import SoSBandRegressor
from sosbands.baselines import GradientBoostingCQR, SplitCP
from sosbands.conformal import side_levels
from sosbands.conformal.cross import proven_coverage
from sosbands.exceptions import UnstableModelWarning
from sosbands.point_models import SmoothingSplineRegressor
from studies.data import load_real, real_names

LEVEL, N_TEST = 0.9, 500
NOISES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "log-normal": lambda rng, n: rng.lognormal(0.0, 1.5, n) - 1.0,
}
FIXED = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 0.5, "width_penalty": 1.0}
FIXED |= {"learning_coverage": 0.9, "symmetry_penalty": 1.0, "conformal_score": "added"}
# models that underfit, that interpolate, and whose bands vary
SMALL = {
    "split around a line": lambda **given: SplitCP(LinearRegression(), **given),
    "split around a tree": lambda **given: SplitCP(DecisionTreeRegressor(random_state=0), **given),
    "quantiles by boosting": lambda **given: GradientBoostingCQR(max_iter=20, **given),
    "bands around a spline": lambda **given: SoSBandRegressor(SmoothingSplineRegressor(), **FIXED, **given),
}
SIZES = (0.5, "auto", "out-of-fold", "cross")
ROWS = (150, 300, 600, 1000, 2000)  # in all, for learning and calibration
LEAST_TEST = 100
POINT_MODELS = {
    "ridge": Ridge,
    "kernel ridge": partial(KernelRidge, alpha=0.1, kernel="rbf"),
    "nearest neighbours": KNeighborsRegressor,
    "extra trees": partial(ExtraTreesRegressor, 30, min_samples_leaf=2, random_state=0),
    "least norm": LinearRegression,  # of 95 columns for 100 rows
}


def draw(rng, noise: str, n: int):
    """``y = sin(3x) + scale(x) noise`` with x uniform on [-1, 1]."""
    X = rng.uniform(-1, 1, (n, 1))
    return X, np.sin(3 * X[:, 0]) + (0.1 + (1 + X[:, 0]) ** 2) * NOISES[noise](rng, n)


def coverage_row(axes: dict, seed: int) -> dict:
    """Share of new rows inside, and on the right side of each end, after one draw of the rows."""
    rng = np.random.default_rng(seed)
    given = {"calibration_size": "cross", "calibration": axes["calibration"], "confidence_level": LEVEL}
    model = SMALL[axes["method"]](random_state=seed % 2**31, **given).fit(*draw(rng, axes["noise"], axes["n"]))
    X, y = draw(rng, axes["noise"], N_TEST)
    lower, upper = model.predict_interval(X).T
    below, above = float(np.mean(y < lower)), float(np.mean(y > upper))
    return {"coverage": 1 - below - above, "below": below, "above": above}


def model_row(axes: dict, seed: int) -> dict:
    """Coverage of new rows by bands around a point model, and whether it was warned of."""
    rng = np.random.default_rng(seed)
    columns = 95 * axes["n"] // 100 if axes["model"] == "least norm" else 5
    slopes = rng.standard_normal(columns) / np.sqrt(columns)

    def rows(n):
        X = rng.standard_normal((n, columns))
        size = 0.5 + np.abs(X[:, 0])
        return X, np.sin(2 * X[:, 0]) + X @ slopes + size * (rng.exponential(size=n) - 1)

    given = {"calibration_size": axes["calibration_size"], "random_state": seed % 2**31, "confidence_level": LEVEL}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = SoSBandRegressor(POINT_MODELS[axes["model"]](), **{**FIXED, "lengthscale": 2.0}, **given).fit(
            *rows(axes["n"])
        )
        X, y = rows(N_TEST)
        lower, upper = model.predict_interval(X).T
    warned = any(issubclass(each.category, UnstableModelWarning) for each in heard)
    return {"coverage": float(np.mean((lower <= y) & (y <= upper))), "warned": warned}


def size_row(axes: dict, seed: int) -> dict:
    """The default with one size on a few rows of a data set, judged on the rest."""
    data = load_real(axes["dataset"])
    order = np.random.default_rng(seed).permutation(len(data.y))
    fit, test = order[: axes["n"]], order[axes["n"] :][:5000]
    # without a limit of time, so that a busy machine gives the same numbers
    model = SoSBandRegressor(calibration_size=axes["calibration_size"], max_seconds=None, random_state=seed % 2**31)
    clock = process_time()
    model.fit(data.X[fit], data.y[fit])
    fit_seconds = process_time() - clock
    found = model.evaluate(data.X[test], data.y[test], LEVEL)
    names = ("coverage", "mean_width", "interval_score", "worst_set_coverage")
    return {"fit_seconds": fit_seconds, **{name: found.get(name, np.nan) for name in names}}


def tasks_of(study: str, draws: int | None = None) -> tuple:
    """Function, tasks, and the axes that seeds depend on."""
    if study == "coverage":
        axes = [
            {"method": method, "noise": noise, "n": n, "calibration": kind, "draw": k}
            for k in range(draws or 30)
            for method in SMALL
            for noise in NOISES
            for n, kind in ((40, "symmetric"), (100, "symmetric"), (100, "asymmetric"))
        ]
        return coverage_row, axes, ["noise", "n", "draw"]
    if study == "models":
        axes = [
            {"model": model, "n": n, "calibration_size": size, "draw": k}
            for k in range(draws or 500)
            for model in POINT_MODELS
            for n in (100, 300)
            for size in ("auto", "out-of-fold")
        ]
        return model_row, axes, ["model", "n", "draw"]
    lengths = {name: len(load_real(name).y) for name in real_names()}
    axes = [
        {"dataset": name, "calibration_size": size, "n": n, "draw": k}
        for k in range(draws or 3)
        for n in ROWS
        for name in lengths
        if lengths[name] >= n + LEAST_TEST
        for size in SIZES
    ]
    return size_row, axes, ["dataset", "draw"]


def grouped(rows: list[dict], *axes: str) -> dict:
    """Rows by their values of some axes."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[axis] for axis in axes)].append(row)
    return groups


def report_coverage(rows: list[dict]) -> list[str]:
    lines = ["| method | noise | n | calibration | draws | coverage | missed below, above | proven |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for (method, noise, n, kind), some in grouped(rows, "method", "noise", "n", "calibration").items():
        shares = np.array([[row[name] for name in ("coverage", "below", "above")] for row in some])
        mean, error = shares.mean(axis=0), shares[:, 0].std(ddof=1) / np.sqrt(len(some))
        levels = (LEVEL,) if kind == "symmetric" else side_levels(LEVEL, kind)
        proven = f"{1 - sum(1 - proven_coverage(level, n, 5) for level in levels):.3f}"
        lines.append(
            f"| {method} | {noise} | {n} | {kind} | {len(some)} | {mean[0]:.3f} ± {error:.3f} "
            f"| {mean[1]:.3f}, {mean[2]:.3f} | {proven} |"
        )
    return lines


def report_models(rows: list[dict]) -> list[str]:
    lines = ["| point model | rows | size | draws | coverage | warned |", "|---|--:|---|--:|--:|--:|"]
    for (model, n, size), some in grouped(rows, "model", "n", "calibration_size").items():
        covered = np.array([row["coverage"] for row in some])
        error = covered.std(ddof=1) / np.sqrt(len(some))
        warned = np.mean([row["warned"] for row in some])
        lines.append(f"| {model} | {n} | {size} | {len(some)} | {covered.mean():.3f} ± {error:.3f} | {warned:.2f} |")
    return lines


def report_sizes(rows: list[dict]) -> list[str]:
    """Geometric means over data sets of the score over that of half of the rows, and means of the rest."""
    lines = ["| rows | size | sets | score / half | better | coverage, its scatter | worst tenth | seconds / half |"]
    lines.append("|--:|---|--:|--:|--:|--:|--:|--:|")
    for n, some in sorted(grouped(rows, "n").items()):
        of = {(row["dataset"], row["draw"], row["calibration_size"]): row for row in some}
        for size in SIZES:
            pairs = [(of[name, k, 0.5], row) for (name, k, s), row in of.items() if s == size and (name, k, 0.5) in of]
            if not pairs:
                continue
            scores = np.log([row["interval_score"] / half["interval_score"] for half, row in pairs])
            seconds = np.log([row["fit_seconds"] / half["fit_seconds"] for half, row in pairs])
            covered = np.array([row["coverage"] for _, row in pairs])
            worst = np.nanmean([row["worst_set_coverage"] for _, row in pairs])  # too few rows in some sets
            error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
            sets = len({row["dataset"] for _, row in pairs})
            lines.append(
                f"| {n[0]} | {size} | {sets} | {np.exp(scores.mean()):.3f} ± {error:.3f} | {np.mean(scores < 0):.2f} "
                f"| {covered.mean():.3f}, {covered.std():.3f} | {worst:.3f} | {np.exp(seconds.mean()):.2f} |"
            )
    return lines


REPORTS = {"coverage": report_coverage, "models": report_models, "sizes": report_sizes}


if __name__ == "__main__":
    main(REPORTS, tasks_of, "calibration-", __doc__)
