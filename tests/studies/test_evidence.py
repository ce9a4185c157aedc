"""Reduced, seeded versions of the studies of benchmarks/evidence.py, whose full runs are `make evidence`."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
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
