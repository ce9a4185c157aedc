"""A reduced, seeded version of benchmarks/cross_calibration.py; coverage itself is tested with the estimator."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import cross_calibration as study


def test_the_study_of_coverage_counts_and_reports():
    _, tasks, seed_axes = study.tasks_of("coverage", draws=2)
    some = [axes for axes in tasks if axes["method"] == "split around a line" and axes["noise"] == "normal"]
    assert seed_axes == ["noise", "n", "draw"]
    rows = [axes | study.coverage_row(axes, seed=11 + axes["draw"]) for axes in some]
    for row in rows:
        assert np.isclose(row["coverage"] + row["below"] + row["above"], 1.0)
        assert 0.7 < row["coverage"] <= 1.0
    lines = study.report_coverage(rows)
    assert [line.split(" | ")[-1] for line in lines[2:]] == ["0.654 |", "0.724 |", "0.648 |"]
    mean = np.mean([row["coverage"] for row in rows if row["n"] == 40])
    assert f"| 2 | {mean:.3f} ±" in lines[2]


def test_the_report_on_data_sets_pairs_the_draws():
    rows = [
        {"dataset": "A", "method": "split", "calibration_size": size, "n": 120, "draw": k}
        | {"mean_width": 2.0, "interval_score": score + k, "coverage": 0.9, "fit_seconds": 1.0}
        for k in range(2)
        for size, score in ((0.5, 10.0), ("cross", 5.0))
    ]
    changes = np.array([5 / 10 - 1, 6 / 11 - 1]) * 100
    error = changes.std(ddof=1) / np.sqrt(2)
    assert f"| {changes.mean():+.1f} ± {error:.1f} % |" in study.report_real(rows)[2]
