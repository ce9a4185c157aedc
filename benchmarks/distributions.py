"""Whole distributions: their score on the real data sets, levels far from that of the fit, and a million rows.

    python -m benchmarks.distributions --study crps --jobs 2
    python -m benchmarks.distributions --study levels --jobs 2
    python -m benchmarks.distributions --study crossing

Rows are stored as they finish, and a second run continues where the first stopped. The first two studies need the data
sets (`SOSBANDS_DATA`).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections import defaultdict
from copy import copy
from time import process_time

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.evidence import main
from sosbands import SoSBandRegressor
from sosbands.baselines import QuantileForestCQR
from sosbands.conformal import conformal_quantile
from sosbands.datasets import MIXED_TABLES, delivery_times
from sosbands.metrics import crps, interval_score, normal_crps, pit_distance
from studies.data import load_real, real_names
from studies.rivals import HeteroscedasticGP

SIMULATED = {"deliveries": delivery_times, **MIXED_TABLES}
N_LEARNING, N_CALIBRATION, N_TEST = 300, 300, 500
NESTED = (0.5, 0.8, 0.9, 0.95)
LEVELS = (0.5, 0.8, 0.9, 0.95)
GRID = (np.arange(100) + 0.5) / 100  # levels of an ensemble of 100
PERCENT = np.arange(1, 100) / 100


def parts_of(name: str, seed: int) -> tuple:
    """Learning, calibration and test rows: at most 300, 300 and 500 (2000 simulated), of small sets a third each."""
    if name in SIMULATED:
        n_rows = N_LEARNING + N_CALIBRATION + 4 * N_TEST
        X, y = SIMULATED[name](n_rows, random_state=seed % 2**31)
    else:
        X, y = load_real(name).X, load_real(name).y
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(N_LEARNING, len(order) // 3)
    parts = np.split(order, [n, 2 * n, 2 * n + (4 if name in SIMULATED else 1) * N_TEST])[:3]
    y = np.asarray(y)
    return tuple((X.iloc[rows] if hasattr(X, "iloc") else X[rows], y[rows]) for rows in parts)


def one_band(model, X, y):
    """The same fit without its nested bands: intervals of the one band, calibrated on the same rows."""
    plain = copy(model)
    plain.noise_.nested = None
    return plain.conformalize(X, y)


def calibrated_scores(model, X, y, name: str) -> dict:
    """Score of the calibrated distribution, and how far its transforms are from uniform."""
    found = {f"{name}_crps": crps(y, model.predict_ensemble(X, 100))}
    return found | {f"{name}_pit_distance": pit_distance(model.predict_cdf(X, y))}


def crps_row(axes: dict, seed: int) -> dict:
    """One method on one split, with its own distribution where it has one and with the calibrated one."""
    learning, calibration, (X, y) = parts_of(axes["dataset"], seed)
    given = {"calibration_size": None, "random_state": seed % 2**31}
    clock = process_time()
    if axes["method"] == "sos":
        model = SoSBandRegressor(max_seconds=None, nested_coverages=NESTED, **given).fit(*learning)
        model.conformalize(*calibration)
        row = calibrated_scores(model, X, y, "nested") | calibrated_scores(one_band(model, *calibration), X, y, "one")
    elif axes["method"] == "forest":
        model = QuantileForestCQR(**given).fit(*learning).conformalize(*calibration)
        own = model.forest_.predict(X, quantiles=GRID.tolist())
        row = calibrated_scores(model, X, y, "calibrated") | {"own_crps": crps(y, own)}
    else:
        model = HeteroscedasticGP(conformal_score="normalized", **given).fit(*learning).conformalize(*calibration)
        row = calibrated_scores(model, X, y, "calibrated")
        row["own_crps"] = normal_crps(y, *model._predict_normal(model._read(X, reset=False)))
    return {**row, "n_learning": len(learning[1]), "n_test": len(y), "cpu_seconds": process_time() - clock}


def levels_row(axes: dict, seed: int) -> dict:
    """Width and interval score over those of split, at several levels: one band, nested ones, refitted ones."""
    learning, calibration, (X, y) = parts_of(axes["dataset"], seed)
    given = {"calibration_size": None, "random_state": seed % 2**31, "max_seconds": None}
    nested = SoSBandRegressor(nested_coverages=NESTED, **given).fit(*learning).conformalize(*calibration)
    models = {"one": one_band(nested, *calibration), "nested": nested}
    row = {"score_of_one": models["one"].conformal_score_}
    for level in LEVELS:
        if level != nested.confidence_level:
            refit = SoSBandRegressor(confidence_level=level, **given).fit(*learning).conformalize(*calibration)
        q = conformal_quantile(np.abs(calibration[1] - nested.predict(calibration[0])), level)
        center = nested.predict(X)
        split = interval_score(y, center - q, center + q, level)
        known = {**models, "refit": models["one"] if level == nested.confidence_level else refit}
        for name, model in known.items():
            lower, upper = model.predict_interval(X, level).T
            row[f"{name}_width_{level}"] = float(np.mean(upper - lower)) / (2 * q)
            row[f"{name}_score_{level}"] = interval_score(y, lower, upper, level) / split
            row[f"{name}_coverage_{level}"] = float(np.mean((lower <= y) & (y <= upper)))
    return row


def crossing_row(axes: dict, seed: int) -> dict:
    """Crossings among a million rows, far off the data too: intervals at many levels, quantiles and nested bands."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (600, 2))
    y = X.sum(axis=1) + (0.2 + X[:, 0] ** 2) * (rng.gamma(1.5, size=600) - 1.5)
    model = SoSBandRegressor(
        LinearRegression(), nested_coverages=NESTED if axes["bands"] == "nested" else None, random_state=0
    )
    model.fit(X, y)
    clock, crossed, rows = process_time(), {"intervals": 0, "quantiles": 0, "bands": 0}, 0
    for _ in range(20):
        new = rng.uniform(-3, 3, (axes["rows"] // 20, 2))
        rows += len(new)
        ends = model.predict_interval(new, list(PERCENT[9::10]))
        crossed["intervals"] += int(np.sum(np.diff(ends[:, 0], axis=1) > 0) + np.sum(np.diff(ends[:, 1], axis=1) < 0))
        crossed["intervals"] += int(np.sum(ends[:, 0] > ends[:, 1]))
        crossed["quantiles"] += int(np.sum(np.diff(model.predict_quantile(new, PERCENT[4::5]), axis=1) < 0))
        if model.noise_.nested is not None:
            knots = model.told(new).band.knots
            crossed["bands"] += int(sum(np.sum(np.diff(each, axis=1) < 0) for each in (knots.lower, knots.upper)))
    crossed = {f"crossed_{name}": count for name, count in crossed.items()}
    return {"n_rows": rows, "cpu_seconds": process_time() - clock, **crossed}


def tasks_of(study: str, draws: int | None = None) -> tuple:
    """Function, tasks, and the axes that seeds depend on."""
    if study == "crossing":
        return crossing_row, [{"bands": bands, "rows": 1_000_000} for bands in ("nested", "one")], ["rows"]
    if study == "levels":
        axes = [{"dataset": name, "draw": k} for k in range(draws or 1) for name in (*SIMULATED, *real_names())]
        return levels_row, axes, ["dataset", "draw"]
    methods = ("forest", "sos", "het-gp")
    axes = [
        {"dataset": name, "method": method, "draw": k}
        for k in range(draws or 2)
        for method in methods
        for name in real_names()
    ]
    return crps_row, axes, ["dataset", "draw"]


def grouped(rows: list[dict], *axes: str) -> dict:
    """Rows by their values of some axes."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[axis] for axis in axes)].append(row)
    return groups


COLUMNS = {
    "sosbands, nested": ("sos", "nested_crps"),
    "sosbands, one band": ("sos", "one_crps"),
    "forest, calibrated": ("forest", "calibrated_crps"),
    "forest": ("forest", "own_crps"),
    "het. GP, calibrated": ("het-gp", "calibrated_crps"),
    "het. GP": ("het-gp", "own_crps"),
}


def report_crps(rows: list[dict]) -> list[str]:
    """Mean scores over the draws, divided by the best of each data set; at the end geometric means."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS)]
    ratios = []
    for (name,), some in grouped(rows, "dataset").items():
        by = grouped(some, "method")
        means = [
            np.mean([row[field] for row in by[method,]]) if (method,) in by else np.nan
            for method, field in COLUMNS.values()
        ]
        ratios.append(np.array(means) / np.nanmin(means))
        lines.append(f"| {name} | " + " | ".join(f"{value:.3f}" for value in ratios[-1]) + " |")
    summed = np.exp(np.nanmean(np.log(ratios), axis=0))
    return [*lines, "| geometric mean | " + " | ".join(f"{value:.3f}" for value in summed) + " |"]


def report_levels(rows: list[dict]) -> list[str]:
    """Geometric means over data sets and draws of width and interval score over those of split."""
    lines = ["| level | width: one band | nested | refitted | score: one band | nested | refitted | coverage |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|")
    for level in LEVELS:
        cells = [
            f"{np.exp(np.mean([np.log(row[f'{name}_{what}_{level}']) for row in rows])):.3f}"
            for what in ("width", "score")
            for name in ("one", "nested", "refit")
        ]
        held = ", ".join(
            f"{np.mean([row[f'{name}_coverage_{level}'] for row in rows]):.3f}" for name in ("one", "nested")
        )
        lines.append(f"| {level} | " + " | ".join(cells) + f" | {held} |")
    return lines


def report_crossing(rows: list[dict]) -> list[str]:
    return [", ".join(f"{name} {value}" for name, value in row.items()) for row in rows]


REPORTS = {"crps": report_crps, "levels": report_levels, "crossing": report_crossing}


if __name__ == "__main__":
    main(REPORTS, tasks_of, "distributions-", __doc__)
