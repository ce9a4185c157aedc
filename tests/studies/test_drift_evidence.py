"""A reduced, seeded version of benchmarks/drift.py."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import drift as study


@pytest.mark.parametrize("stream", study.STREAMS)
def test_adaptive_intervals_hold_the_level_where_the_model_does_not(stream):
    rows = [
        {"stream": stream, "rate": rate, "draw": 0}
        | study.coverage_row({"stream": stream, "rate": rate}, seed=3, steps=4000)
        for rate in ("static", *study.RATES)
    ]
    assert rows[0]["coverage"] < 0.85
    assert all(abs(row["coverage"] - 0.9) < 0.01 for row in rows[1:])
    lines = study.report_coverage(rows)
    assert f"| {stream} | auto | 1 | {rows[1]['coverage']:.4f}," in lines[3]


def test_alarms_are_rare_without_drift_and_soon_with_it():
    _, tasks, seed_axes = study.tasks_of("alarms", draws=5)
    assert seed_axes == ["change", "draw"]
    some = [axes for axes in tasks if axes["change"] in ("none", "mean shift")]
    rows = [axes | study.alarms_row(axes, seed=100 + axes["draw"], steps=700, at=350) for axes in some]
    false = [row for row in rows if row["change"] == "none" and row["alarm"] is not None]
    assert len(false) <= stats.binom.ppf(0.999, 5, study.ALARM_LEVEL)
    shifted = [row for row in rows if row["change"] == "mean shift"]
    assert all(350 <= row["alarm"] < 550 for row in shifted if row["alarm"] is None or row["alarm"] >= 350)
    line = study.report_alarms(rows, at=350)[-1]
    assert np.median([abs(row["began"] - 350) for row in shifted]) < 20
    assert line.startswith("| mean shift | 5 |")
