"""Pictures of comparisons: boxes, points and pairs hold the rows; what cannot be drawn is counted."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_plotting import comparison_rows

from pictures import _close_figures as _close_figures
from pictures import render
from sosbands.plotting import plot_comparison


def points(ax):
    """Values of each method, sorted."""
    return [np.sort(np.asarray(each.get_offsets())[:, 1]) for each in ax.collections if len(each.get_offsets())]


def medians(ax):
    return [line.get_ydata()[0] for line in ax.get_lines() if line.get_linewidth() == 2]


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
    ax = plot_comparison(form(comparison_rows()), "coverage")
    assert names(ax) == ["ours", "theirs"]
    np.testing.assert_allclose(points(ax), [OURS, OURS - 0.02])
    np.testing.assert_allclose(medians(ax), [0.90, 0.88])
    np.testing.assert_allclose(pairs(ax), np.column_stack([OURS, OURS - 0.02]))
    assert ax.texts[0].get_text() == "nominal\n90 %"
    assert any(np.allclose(line.get_ydata(), 0.9) and line.get_linestyle() == "--" for line in ax.get_lines())


def test_points_stay_near_their_method():
    ax = plot_comparison(comparison_rows(), "coverage")
    for place, each in enumerate(each for each in ax.collections if len(each.get_offsets())):
        x = np.asarray(each.get_offsets())[:, 0]
        assert np.all(np.abs(x - place) < 0.2)
        assert len(np.unique(x)) == len(x)


def test_methods_in_a_chosen_order():
    ax = plot_comparison(comparison_rows(), "coverage", methods=["theirs", "ours"])
    assert names(ax) == ["theirs", "ours"]
    np.testing.assert_allclose(medians(ax), [0.88, 0.90])


def test_the_nominal_line_is_drawn_where_it_is_known():
    rows = comparison_rows()
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
    np.testing.assert_allclose(points(ax)[1], [0.89, 0.90])
    assert len(pairs(ax)) == 2
    for row in rows[1::2]:
        row["coverage"] = None
    render(plot_comparison(rows, "coverage"))


def test_pairs_belong_to_their_data_set():
    rows = [
        {"method": method, "dataset": name, "repetition": 0, "mean_width": width}
        for name, widths in (("a", (1.0, 2.0)), ("b", (30.0, 40.0)))
        for method, width in zip(("ours", "theirs"), widths, strict=True)
    ]
    assert pairs(plot_comparison(rows, "mean_width")) == [(1.0, 2.0), (30.0, 40.0)]


def test_rows_without_repetitions_have_no_pairs():
    rows = [{"method": "ours", "score": 1.0}, {"method": "ours", "score": 2.0}, {"method": "theirs", "score": 3.0}]
    ax = plot_comparison(rows, "score")
    assert pairs(ax) == []
    np.testing.assert_allclose(np.concatenate(points(ax)), [1, 2, 3])


@pytest.mark.parametrize(
    ("rows", "metric", "message"),
    [
        ([], "coverage", "rows: got 0 rows"),
        ([{"coverage": 1.0}], "coverage", "each with the key 'method'"),
        (comparison_rows(), "width", r"metric='width': expected one of \['confidence_level', 'coverage'\]"),
        (comparison_rows() * 2, "coverage", r"method 'ours' has two rows with .* = \(None, None, 0\)"),
    ],
)
def test_bad_rows_are_named(rows, metric, message):
    with pytest.raises(ValueError, match=message):
        plot_comparison(rows, metric)


def test_unknown_methods_are_named():
    with pytest.raises(ValueError, match=r"methods: 'cqr' has no rows, expected some of \['ours', 'theirs'\]"):
        plot_comparison(comparison_rows(), "coverage", methods=["cqr"])
