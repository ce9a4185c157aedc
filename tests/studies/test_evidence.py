"""Reduced, seeded versions of studies of benchmarks/, whose full runs are `make evidence`."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import calibration_sizes
import drift
import evidence


def assert_super_uniform(p):
    """At each level no more rejections than chance gives in 999 of 1000 repetitions of the study."""
    for level in (0.05, 0.1, 0.2, 0.5):
        count, most = np.sum(np.asarray(p) <= level), stats.binom.ppf(0.999, len(p), level)
        assert count <= most, f"{count} of {len(p)} p-values are at most {level}: expected at most {most:.0f}"


@pytest.fixture(scope="module")
def null_rows():
    return evidence.run_study("null", draws=80)


@pytest.mark.parametrize("noise", ["normal", "gamma", "t3"])
def test_default_tests_are_super_uniform_under_their_null(null_rows, noise):
    rows = [row for row in null_rows if row["noise"] == noise]
    assert_super_uniform([row["p_independence"] for row in rows])
    if noise != "gamma":  # skewed noise is no null of the symmetry test
        assert_super_uniform([row["p_symmetry"] for row in rows])


def test_a_test_that_rejects_too_often_is_noticed(null_rows):
    p = np.array([row["p_independence"] for row in null_rows if row["noise"] == "normal"])
    with pytest.raises(AssertionError, match="p-values are at most"):
        assert_super_uniform(p / 3)
    assert 0.3 < np.mean(p <= 0.5) < 0.7  # nor is it blind


def test_decisions():
    rows = evidence.run_study("decisions", draws=2)
    asymmetric = {
        noise: sum(np.isfinite(float(row["symmetry_penalty"])) for row in rows if row["noise"] == noise)
        for noise in ("gamma", "normal")
    }
    assert asymmetric["gamma"] == 2
    assert asymmetric["normal"] == 0
    assert not any(row["homoscedastic"] for row in rows)
    assert len(evidence.report_decisions(rows)) == 4


def test_tuned_bands_come_nearer_to_the_oracle():
    rows = [evidence.oracle_row({"case": case, "criteria": "interval-score"}, seed=7) for case in (1, 6)]
    for row in rows:
        assert row["interval-score_rmse"] < row["untuned_rmse"]
        assert row["interval-score_rmse"] < 1.5 * row["grid"].min()


def test_warm_starts_save_most_iterations():
    (row,) = evidence.run_study("warm", draws=1)
    assert np.sum(row["warm_iterations"]) < 0.5 * np.sum(row["cold_iterations"])
    assert "| warm |" in evidence.report_warm([row])[-1]


@pytest.mark.parametrize("stream", drift.STREAMS)
def test_adaptive_intervals_hold_the_level_where_the_model_does_not(stream):
    rows = [
        {"stream": stream, "rate": rate, "draw": 0}
        | drift.coverage_row({"stream": stream, "rate": rate}, seed=3, steps=4000)
        for rate in ("static", *drift.RATES)
    ]
    assert rows[0]["coverage"] < 0.85
    assert all(abs(row["coverage"] - 0.9) < 0.01 for row in rows[1:])
    lines = drift.report_coverage(rows)
    assert f"| {stream} | auto | 1 | {rows[1]['coverage']:.4f}," in lines[3]


def test_alarms_are_rare_without_drift_and_soon_with_it():
    _, tasks, seed_axes = drift.tasks_of("alarms", draws=5)
    assert seed_axes == ["change", "draw"]
    some = [axes for axes in tasks if axes["change"] in ("none", "mean shift")]
    rows = [axes | drift.alarms_row(axes, seed=100 + axes["draw"], steps=700, at=350) for axes in some]
    false = [row for row in rows if row["change"] == "none" and row["alarm"] is not None]
    assert len(false) <= stats.binom.ppf(0.999, 5, drift.ALARM_LEVEL)
    shifted = [row for row in rows if row["change"] == "mean shift"]
    assert all(350 <= row["alarm"] < 550 for row in shifted if row["alarm"] is None or row["alarm"] >= 350)
    line = drift.report_alarms(rows, at=350)[-1]
    assert np.median([abs(row["began"] - 350) for row in shifted]) < 20
    assert line.startswith("| mean shift | 5 |")


def test_the_study_of_coverage_counts_and_reports():
    _, tasks, seed_axes = calibration_sizes.tasks_of("coverage", draws=2)
    some = [axes for axes in tasks if axes["method"] == "split around a line" and axes["noise"] == "normal"]
    assert seed_axes == ["noise", "n", "draw"]
    rows = [axes | calibration_sizes.coverage_row(axes, seed=11 + axes["draw"]) for axes in some]
    for row in rows:
        assert np.isclose(row["coverage"] + row["below"] + row["above"], 1.0)
        assert 0.7 < row["coverage"] <= 1.0
    lines = calibration_sizes.report_coverage(rows)
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
    half, auto = calibration_sizes.report_sizes(rows)[2:]
    assert half.startswith("| 150 | 0.5 | 2 | 1.000 ± 0.000 |")
    assert auto.startswith(f"| 150 | auto | 2 | {mean:.3f} ±")
    assert auto.endswith("| 1.00 | 0.900, 0.000 | 0.700 | 2.00 |")
