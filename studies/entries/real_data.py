"""Table: the twelve data sets, their sizes, and the features that are left out."""

from __future__ import annotations

from typing import Any

from sosbands.comparison import TextTable
from studies.data import load_real, real_names
from studies.drawing.figures import succeeded
from studies.drawing.real_tables import sets_of
from studies.runs.config import Config, Rows
from studies.runs.real_runs import QUICK_SETS

COLUMNS = (
    *("dataset", "n_features", "n_features_raw", "n_rows", "n_rows_raw"),
    *("n_learning", "n_calibration", "n_test", "outlier_fraction", "dropped"),
)


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


def draw(rows: Rows) -> TextTable:
    """A line per data set, as in the paper, with rows before the paper's steps and the features left out."""
    fine = {row["dataset"]: row for row in succeeded(rows)}
    found = [{name: fine[dataset][name] for name in COLUMNS} for dataset in sets_of(rows) if dataset in fine]
    lacking = [dataset for dataset in sets_of(rows) if dataset not in fine]
    note = "In brackets: before the paper's steps. Outliers: share of the learning rows that the paper removes."
    if lacking:
        note += f" Not found: {', '.join(lacking)}."
    return TextTable(found, [_shown(row) for row in found], note)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    outliers = row["outlier_fraction"]
    return {
        "data set": row["dataset"],
        "features": _before(row["n_features"], row["n_features_raw"]),
        "rows": _before(row["n_rows"], row["n_rows_raw"]),
        "learning": row["n_learning"],
        "calibration": row["n_calibration"],
        "test": row["n_test"],
        "outliers": f"{100 * outliers:.0f} %" if outliers else "-",
        "features left out": row["dropped"] or "-",
    }


def _before(after: int, before: int) -> str:
    return str(after) if after == before else f"{after} ({before})"
