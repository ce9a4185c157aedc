"""Cross-calibration: its coverage over many small draws, and what it gains on small data sets.

    python -m benchmarks.cross_calibration --study coverage --jobs 2
    python -m benchmarks.cross_calibration --study real --jobs 2

Rows are stored as they finish, and a second run continues where the first stopped. The second study needs the data sets
(`SOSBANDS_DATA`).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections import defaultdict
from functools import partial
from time import process_time

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from benchmarks.evidence import main
from sosbands import SoSBandRegressor
from sosbands.baselines import GradientBoostingCQR, LocallyWeightedCP, SplitCP
from sosbands.conformal import side_levels
from sosbands.conformal.cross import proven_coverage
from sosbands.point_models import SmoothingSplineRegressor
from studies.data import load_real

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
REAL = {
    "sos": partial(SoSBandRegressor, max_seconds=None),  # so that a busy machine gives the same numbers
    "split": SplitCP,
    "local": LocallyWeightedCP,
}
SETS = ("Yacht", "MPG", "Diabetes", "Boston")


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


def real_row(axes: dict, seed: int) -> dict:
    """One method with one kind of calibration on a few rows of a data set, judged on the rest."""
    data = load_real(axes["dataset"])
    order = np.random.default_rng(seed).permutation(len(data.y))
    fit, test = order[: axes["n"]], order[axes["n"] :]
    model = REAL[axes["method"]](calibration_size=axes["calibration_size"], random_state=seed % 2**31)
    clock = process_time()
    model.fit(data.X[fit], data.y[fit])
    fit_seconds = process_time() - clock
    found = model.evaluate(data.X[test], data.y[test], LEVEL)
    names = ("coverage", "mean_width", "interval_score")
    return {"fit_seconds": fit_seconds, **{name: found[name] for name in names}}


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
    axes = [
        {"dataset": name, "method": method, "calibration_size": size, "n": 120, "draw": k}
        for k in range(draws or 5)
        for method in ("split", "local", "sos")
        for name in SETS
        for size in (0.5, "cross")
    ]
    return real_row, axes, ["dataset", "draw"]


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


def report_real(rows: list[dict]) -> list[str]:
    lines = ["| data set | rows | method | width: half, cross | interval score: half, cross | difference "]
    lines[0] += "| coverage: half, cross | seconds: half, cross |"
    lines.append("|---|---|---|---|---|---|---|---|")
    for (name, method), some in grouped(rows, "dataset", "method").items():
        sizes = grouped(some, "calibration_size")
        half, cross = (sorted(sizes[size,], key=lambda row: row["draw"]) for size in (0.5, "cross"))

        def means(what, half=half, cross=cross):
            return [np.array([row[what] for row in part]) for part in (half, cross)]

        scores = means("interval_score")
        change = 100 * (scores[1] / scores[0] - 1)
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
        cells = [", ".join(f"{part.mean():.3g}" for part in means(what)) for what in ("mean_width", "interval_score")]
        more = [", ".join(f"{part.mean():.2f}" for part in means("coverage"))]
        more.append(", ".join(f"{part.mean():.1f}" for part in means("fit_seconds")))
        lines.append(
            f"| {name} | {half[0]['n']} | {method} | {cells[0]} | {cells[1]} | {change.mean():+.1f} ± {error:.1f} % "
            f"| {more[0]} | {more[1]} |"
        )
    return lines


REPORTS = {"coverage": report_coverage, "real": report_real}


if __name__ == "__main__":
    main(REPORTS, tasks_of, "cross-", __doc__)
