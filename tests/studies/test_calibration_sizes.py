"""A reduced, seeded version of benchmarks/calibration_sizes.py; coverage itself is tested with the estimator."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import calibration_sizes as study


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


def test_the_report_on_sizes_pairs_the_draws():
    rows = [
        {"dataset": name, "calibration_size": size, "n": 150, "draw": k}
        | {"interval_score": score + k, "coverage": 0.9, "fit_seconds": seconds, "worst_set_coverage": 0.7}
        for name in "AB"
        for k in range(2)
        for size, score, seconds in ((0.5, 10.0, 1.0), ("auto", 5.0, 2.0))
    ]
    mean = np.exp(np.mean(np.log([5 / 10, 6 / 11])))
    half, auto = study.report_sizes(rows)[2:]
    assert half.startswith("| 150 | 0.5 | 2 | 1.000 ± 0.000 |")
    assert auto.startswith(f"| 150 | auto | 2 | {mean:.3f} ±")
    assert auto.endswith("| 1.00 | 0.900, 0.000 | 0.700 | 2.00 |")
