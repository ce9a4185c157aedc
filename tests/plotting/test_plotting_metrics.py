"""Pictures of what was measured: shares counted by hand, ranges against SciPy; boxes and pairs hold the rows."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from pictures import Tent, comparison_rows, labelled, labels, render
from sosbands.datasets import synthetic_case
from sosbands.exceptions import OffDataWarning
from sosbands.plotting import plot_calibration, plot_comparison, plot_local_coverage


def rows_with(shifts):
    """Rows whose observations lie this far above the prediction of the stand-in."""
    X = np.arange(float(len(shifts)))[:, None]
    return X, 2 * X[:, 0] + np.asarray(shifts, dtype=float)


def test_coverage_at_each_level():
    X, y = rows_with([-0.55, -0.25, 0.0, 0.31, 2.0])  # inside if -level <= shift <= 3 level
    ax = plot_calibration(Tent(), X, y, levels=[0.9, 0.1, 0.3, 0.6])
    drawn = labelled(ax, "coverage of the test rows").get_xydata()
    np.testing.assert_allclose(drawn, [[0.1, 0.2], [0.3, 0.6], [0.6, 0.8], [0.9, 1.0]])
    np.testing.assert_allclose(labelled(ax, "coverage equal to the level").get_xydata(), [[0, 0], [1, 1]])
    assert labels(ax)[0] == "95 % range for 5 test rows"


def test_the_range_is_binomial_without_calibration_rows():
    levels = np.array([0.2, 0.5, 0.9])
    low, high = (stats.binom.ppf(tail, 40, levels) / 40 for tail in (0.025, 0.975))
    ax = plot_calibration(Tent(), *rows_with(np.zeros(40)), levels=levels)
    corners = labelled(ax, "95 % range").get_paths()[0].vertices
    for level, first, last in zip(levels, low, high, strict=True):
        assert {first, last} <= set(corners[corners[:, 0] == level, 1])


def test_calibration_of_a_learnt_model(learnt):
    X, y = synthetic_case(5).sample(300, random_state=7)
    ax = plot_calibration(learnt[0], X, y)
    drawn = labelled(ax, "coverage of the test rows").get_xydata()
    np.testing.assert_allclose(drawn[:, 0], np.arange(1, 20) / 20)
    assert drawn[17, 1] == learnt[0].evaluate(X, y, 0.9)["coverage"]
    assert labels(ax)[0] == "95 % range for 300 test and 27 calibration rows"


def errorbars(ax, start):
    """Places, values and ends of the error bars of one side."""
    container = labelled(ax, start)
    return container.lines[0].get_xydata(), np.array(container.lines[2][0].get_segments())[:, :, 1]


def test_local_coverage_by_hand():
    # the ends are at -0.5 and 1.5: the first ten rows miss two below and one above, the others none
    X, y = rows_with([-1, -1, 2, *[0] * 17])
    ax = plot_local_coverage(Tent(), X, y, confidence_level=0.5, n_bins=2)
    for start, first, shift in (("both", 0.7, 0.0), ("lower end", 0.8, -0.008), ("upper end", 0.9, 0.008)):
        drawn, bars = errorbars(ax, start)
        np.testing.assert_allclose(drawn, [[4.5 + 19 * shift, first], [14.5 + 19 * shift, 1.0]])
        wilson = [stats.binomtest(k, 10).proportion_ci(0.95, method="wilson") for k in (round(10 * first), 10)]
        np.testing.assert_allclose(bars, wilson, atol=1e-12)
    assert ax.get_ylabel() == "coverage in 2 bins of 10 rows"
    assert labels(ax)[:2] == ["nominal 50 %", "75 % for each end"]
    assert [labelled(ax, start).get_ydata()[0] for start in ("nominal", "75 %")] == [0.5, 0.75]
    ax = plot_local_coverage(Tent(), X, y, lower_share=0.25)  # unequal shares have a line each
    assert labels(ax)[:3] == ["nominal 80 %", "95 % for the lower end", "85 % for the upper end"]


def test_bins_along_the_prediction_a_position_or_a_tie():
    X = np.column_stack([np.arange(90.0), np.arange(90.0) % 2])
    y = 2 * X[:, 0] + np.where(X[:, 1] > 0, 5.0, 0.0)  # the odd rows are missed
    ax = plot_local_coverage(Tent(), X, y)
    assert ax.get_xlabel() == "prediction"
    np.testing.assert_allclose(errorbars(ax, "both")[0][:, 0], 2 * np.array([14.5, 44.5, 74.5]))  # 30 rows in each
    ax = plot_local_coverage(Tent(), X, y, feature=1, n_bins=10)
    np.testing.assert_allclose(errorbars(ax, "both")[0], [[0, 1], [1, 0]])  # equal values share a bin
    assert ax.get_ylabel() == "coverage in 2 bins of 45 rows"


def test_rows_off_the_data_are_warned_of_where_the_picture_does_not_show_them(learnt):
    with pytest.warns(OffDataWarning):
        plot_local_coverage(learnt[0], np.full((10, 1), 50.0), np.zeros(10))


# ---------------------------------------------------------------- comparisons


def points(ax):
    """Places and values of each method, by value."""
    found = [np.asarray(each.get_offsets()) for each in ax.collections if len(each.get_offsets())]
    return [each[np.argsort(each[:, 1])] for each in found]


def pairs(ax):
    return sorted(tuple(line.get_ydata()) for line in ax.get_lines() if line.get_linewidth() == 0.6)


def names(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


OURS = np.array([0.88, 0.89, 0.90, 0.91, 0.92])


@pytest.mark.parametrize(
    "form",
    [list, pd.DataFrame, pl.DataFrame, lambda rows: SimpleNamespace(rows=rows), lambda rows: (row for row in rows)],
    ids=["list", "pandas", "polars", "result", "generator"],
)
def test_rows_of_any_form(form):
    ax = plot_comparison(form(comparison_rows()), "coverage", methods=["theirs", "ours"])  # in this order
    assert names(ax) == ["theirs", "ours"]
    for place, (found, values) in enumerate(zip(points(ax), (OURS - 0.02, OURS), strict=True)):
        np.testing.assert_allclose(found[:, 1], values)
        assert np.all(np.abs(found[:, 0] - place) < 0.2)  # near its method, and apart
        assert len(np.unique(found[:, 0])) == 5
    medians = [line.get_ydata()[0] for line in ax.get_lines() if line.get_linewidth() == 2]
    np.testing.assert_allclose(medians, [0.88, 0.90])
    np.testing.assert_allclose(pairs(ax), np.column_stack([OURS - 0.02, OURS]))
    assert ax.texts[0].get_text() == "nominal\n90 %"
    assert any(np.allclose(line.get_ydata(), 0.9) and line.get_linestyle() == "--" for line in ax.get_lines())


def test_the_nominal_line_is_drawn_where_it_is_known():
    rows = comparison_rows()
    assert names(plot_comparison(rows, "coverage")) == ["ours", "theirs"]
    assert plot_comparison(rows, "coverage", nominal=0.8).texts[0].get_text() == "nominal\n80 %"
    for row in rows:
        row["mean_width"] = 2.0
    assert len(plot_comparison(rows, "mean_width").texts) == 0
    rows[0]["confidence_level"] = 0.5
    assert len(plot_comparison(rows, "coverage").texts) == 0


def test_values_that_cannot_be_drawn_are_counted():
    rows = comparison_rows()
    rows[1]["coverage"], rows[3]["coverage"] = np.inf, np.nan
    del rows[5]["coverage"]
    ax = plot_comparison(rows, "coverage")
    assert names(ax) == ["ours", "theirs\n(3 not drawn)"]
    np.testing.assert_allclose(points(ax)[1][:, 1], [0.89, 0.90])
    assert len(pairs(ax)) == 2
    for row in rows[1::2]:
        row["coverage"] = None
    render(plot_comparison(rows, "coverage"))


def test_pairs_belong_to_their_data_set_and_repetition():
    widths = {("ours", "a"): 1.0, ("theirs", "a"): 2.0, ("ours", "b"): 30.0, ("theirs", "b"): 40.0}
    rows = [{"method": m, "dataset": name, "repetition": 0, "mean_width": w} for (m, name), w in widths.items()]
    assert pairs(plot_comparison(rows, "mean_width")) == [(1.0, 2.0), (30.0, 40.0)]
    rows = [{"method": "ours", "score": 1.0}, {"method": "ours", "score": 2.0}, {"method": "theirs", "score": 3.0}]
    ax = plot_comparison(rows, "score")
    assert pairs(ax) == []
    np.testing.assert_allclose(np.concatenate(points(ax))[:, 1], [1, 2, 3])
