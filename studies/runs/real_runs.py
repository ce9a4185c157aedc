"""Runs on the real data sets, which several tables and figures share: a method on a split of the paper's sizes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from sosbands._types import Array, IntArray
from sosbands.metrics import evaluate_intervals, worst_set_coverage
from sosbands.point_models import GaussianProcess
from studies.data import RealData, load_real, real_names
from studies.runs.config import Config, Rows
from studies.runs.methods import HARD, OURS, PAPER, PAPER_CQR, SIDED, axis_settings, chosen, interval_method

LEVEL = 0.9
REPETITIONS = {"quick": 2, "paper": 10}
QUICK_SETS = ("Diabetes", "MPG", "Yacht")
# the cheap ones first, so that an interrupted run has whole tables of them
TABLE_METHODS = (PAPER_CQR, "gp", PAPER, "het-gp")
FURTHER_METHODS = (OURS, HARD, "squared-sos", "cqr-forest", "cqr-boosting", "rqr", "split", "local")


def real_rows(
    config: Config,
    methods: Iterable[str],
    names: Iterable[str] | None = None,
    *,
    repetitions: int | None = None,
    **axes: Any,
) -> Rows:
    """Rows of the methods on the data sets, all of the paper's by default; `repetitions` are at most so many."""
    sets = config.pick(quick=QUICK_SETS, paper=tuple(real_names())) if names is None else tuple(names)
    count = REPETITIONS[config.preset] if repetitions is None else min(repetitions, REPETITIONS[config.preset])
    tasks = [
        {"dataset": name, "method": method, "outliers": "removed", **axes, "repetition": k}
        for method in methods
        for k in range(count)
        for name in sets
    ]
    return config.run("real", real_row, tasks, seed_axes=["dataset", "repetition"])


def real_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Metrics of one method on one split, with both kinds of calibration where a method has two scores."""
    data, learn, calibrate, test = real_split(axes["dataset"], seed, axes["outliers"] == "removed")
    model = interval_method(axes["method"], seed % 2**31, **settings_of(axes))
    clock = perf_counter()
    model.fit(data.X[learn], data.y[learn])
    row = {"fit_seconds": perf_counter() - clock, "n_learning": len(learn), **chosen(model)}
    row["point_rmse"] = float(np.sqrt(np.mean(np.square(data.y[test] - model.predict(data.X[test])))))
    for kind in ("symmetric", "asymmetric") if axes["method"] in SIDED else ("symmetric",):
        model.set_params(calibration=kind).conformalize(data.X[calibrate], data.y[calibrate])
        lower, upper = model.predict_interval(data.X[test], LEVEL).T
        given, where = (data.y[test], lower, upper), {"X": data.X[test], "X_learn": data.X[learn]}
        seeded: dict[str, Any] = {**where, "random_state": seed % 2**31}
        measured = evaluate_intervals(*given, confidence_level=LEVEL, **seeded)
        worst = worst_set_coverage(*given, **seeded)  # of few test rows, too: the paper's is that of all of them then
        sides = (("", worst.marginal), ("_lower", worst.lower), ("_upper", worst.upper))
        measured |= {f"worst_set_coverage{side}": value for side, value in sides}
        row |= {("" if kind == "symmetric" else "asymmetric_") + name: value for name, value in measured.items()}
    return row


def settings_of(axes: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator that are axes of a run."""
    settings = axis_settings(axes)
    if axes.get("point_model") == "boosting":
        settings["estimator"] = HistGradientBoostingRegressor(random_state=0)
    if axes.get("point_model") == "blend":
        settings["estimator"] = None
    return settings


@lru_cache(maxsize=2)
def real_split(name: str, seed: int, remove: bool) -> tuple[RealData, IntArray, IntArray, IntArray]:
    """Data and row numbers of the three parts, the paper's outliers removed from the first."""
    data = load_real(name)
    split = data.split(seed)
    learn = split.learning
    if remove and data.outlier_fraction:
        learn = learn[inliers(data.X[learn], data.y[learn], data.outlier_fraction)]
    return data, learn, split.calibration, split.test


def inliers(X: Array, y: Array, fraction: float) -> IntArray:
    """Rows left when the largest standardised residuals of a homoscedastic Gaussian process are removed."""
    process = GaussianProcess()
    mean, sd = process.fit(X, y).predict(X, return_std=True)
    order = np.argsort(np.abs(y - mean) / sd, kind="stable")
    return np.sort(order[: len(y) - int(round(fraction * len(y)))])
