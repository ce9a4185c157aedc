"""Table: the twelve data sets, their sizes, and the features that are left out."""

from __future__ import annotations

from typing import Any

from sosbands.datasets import load_real, real_names
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.real_runs import QUICK_SETS


def compute(config: Config) -> Rows:
    """One row per data set."""
    names = config.pick(quick=QUICK_SETS, paper=tuple(real_names()))
    return config.run("real-data", description_row, [{"dataset": name} for name in names])


def description_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:  # noqa: ARG001
    """What is in a data set after the paper's steps, and in the raw data."""
    data, raw = load_real(axes["dataset"]), load_real(axes["dataset"], steps=())
    return {
        "n_features": data.X.shape[1],
        "n_features_raw": raw.X.shape[1],
        "n_rows": len(data.y),
        "n_rows_raw": len(raw.y),
        "n_learning": data.n_learning,
        "n_calibration": data.n_calibration,
        "n_test": data.n_test,
        "outlier_fraction": data.outlier_fraction,
        "dropped": ", ".join(data.dropped_features),
    }
