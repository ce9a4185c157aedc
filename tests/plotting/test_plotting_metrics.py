"""Pictures of coverage: shares counted by hand, ranges and error bars against SciPy."""

import numpy as np
import pytest
from scipy import stats
from test_plotting import Tent
from test_plotting import learnt as learnt

from pictures import _close_figures as _close_figures
from pictures import labelled, labels
from sosbands.datasets import synthetic_case
from sosbands.exceptions import OffDataWarning
from sosbands.metrics.local import coverage_range
from sosbands.plotting import plot_calibration, plot_local_coverage


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
    low, high = coverage_range(levels, 40, None)
    np.testing.assert_array_equal(low * 40, stats.binom.ppf(0.025, 40, levels))
    np.testing.assert_array_equal(high * 40, stats.binom.ppf(0.975, 40, levels))
    X, y = rows_with(np.zeros(40))
    corners = labelled(plot_calibration(Tent(), X, y, levels=levels), "95 % range").get_paths()[0].vertices
    for level, first, last in zip(levels, low, high, strict=True):
        assert {first, last} <= set(corners[corners[:, 0] == level, 1])


def test_calibration_of_a_learnt_model(learnt):
    model = learnt[0]
    X, y = synthetic_case(5).sample(300, random_state=7)
    ax = plot_calibration(model, X, y)
    drawn = labelled(ax, "coverage of the test rows").get_xydata()
    np.testing.assert_allclose(drawn[:, 0], np.arange(1, 20) / 20)
    assert drawn[17, 1] == model.evaluate(X, y, 0.9)["coverage"]
    assert labels(ax)[0] == "95 % range for 300 test and 40 calibration rows"


def errorbars(ax, start):
    """Places, values and ends of the error bars of one side."""
    container = labelled(ax, start)
    return container.lines[0].get_xydata(), np.array(container.lines[2][0].get_segments())[:, :, 1]


def test_local_coverage_by_hand():
    # the ends are at -0.5 and 1.5: the first ten rows miss two below and one above, the others none
    shifts = [-1, -1, 2, *[0] * 17]
    X, y = rows_with(shifts)
    ax = plot_local_coverage(Tent(), X, y, confidence_level=0.5, n_bins=2)
    for start, first, shift in (("both", 0.7, 0.0), ("lower end", 0.8, -0.008), ("upper end", 0.9, 0.008)):
        drawn, bars = errorbars(ax, start)
        np.testing.assert_allclose(drawn, [[4.5 + 19 * shift, first], [14.5 + 19 * shift, 1.0]])
        wilson = [stats.binomtest(k, 10).proportion_ci(0.95, method="wilson") for k in (round(10 * first), 10)]
        np.testing.assert_allclose(bars, wilson, atol=1e-12)
    assert ax.get_ylabel() == "coverage in 2 bins of 10 rows"
    assert labels(ax)[:2] == ["nominal 50 %", "75 % for each end"]
    assert labelled(ax, "nominal").get_ydata()[0] == 0.5
    assert labelled(ax, "75 %").get_ydata()[0] == 0.75


def test_unequal_shares_have_a_line_each():
    X, y = rows_with(np.zeros(10))
    ax = plot_local_coverage(Tent(), X, y, lower_share=0.25)
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
    X = np.full((10, 1), 50.0)
    with pytest.warns(OffDataWarning):
        plot_local_coverage(learnt[0], X, np.zeros(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: plot_calibration(Tent(), X, y[:2]), "y has 2 entries: expected 5"),
        (lambda X, y: plot_calibration(Tent(), X, y, levels=[0.0, 0.5]), r"levels run from 0 to 0.5: expected"),
        (lambda X, y: plot_calibration(Tent(), X, y, levels=0.5), r"levels has shape \(\)"),
        (lambda X, y: plot_local_coverage(Tent(), X, y, n_bins=0), "n_bins=0: expected"),
        (lambda X, y: plot_local_coverage(Tent(), X, y, feature=1), "feature=1: expected"),
        (lambda X, y: plot_local_coverage(Tent(), X[:, 0], y), r"X has shape \(5,\)"),
        (lambda X, y: plot_local_coverage(Tent(), X, y, confidence_level=1), "confidence_level=1: expected"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(*rows_with(np.zeros(5)))
