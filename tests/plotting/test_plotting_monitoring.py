"""The picture of a stream: what is drawn is what was found, at wide and narrow sizes."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from pictures import labels
from sosbands.baselines import SplitCP
from sosbands.online import monitor
from sosbands.plotting import plot_monitoring


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    y = rng.normal(size=900)
    y[700:] *= 4
    X = np.zeros((900, 1))
    model = SplitCP(lambda rows: np.zeros(len(rows)), calibration_size=None).fit(X[:100], y[:100])
    return monitor(model.conformalize(X[100:300], y[100:300]), X[300:], y[300:], span=50)


def test_lines_are_the_rolling_numbers(found):
    coverage, width, martingale = plot_monitoring(found)
    drawn = [[line for line in ax.get_lines() if len(line.get_xdata()) > 100] for ax in (coverage, width, martingale)]
    for line, values in zip(drawn[0], (found.inside, found.adaptive_inside), strict=True):
        rows = line.get_xdata().astype(int)
        assert (rows[0], rows[-1]) == (50, 600)
        np.testing.assert_allclose(line.get_ydata(), [100 * np.mean(values[row - 50 : row]) for row in rows])
    assert drawn[1][1].get_ydata()[-1] == np.median(found.adaptive_width[-50:])
    shown = found.log10_martingale <= martingale.get_ylim()[1]
    np.testing.assert_allclose(drawn[2][0].get_ydata()[shown], found.log10_martingale[shown])
    marks = [line.get_xdata()[0] for line in martingale.get_lines() if len(set(line.get_xdata())) == 1]
    assert found.alarm + 1 in marks
    title = f"Drift found at row {found.alarm + 1}, since about row {found.began + 1}"
    assert coverage.get_title(loc="left") == title
    assert labels(martingale)[:2] == ["95 % range without drift of 50 rows", "level asked for, 90 %"]
    assert {"alarm at 100: false at most 1 %", "alarm; shaded: since the drift set in"} < {*labels(martingale)}


def test_no_drift_is_said(found):
    calm = replace(found, alarm=None, began=None, log10_martingale=np.zeros(600))
    axes = plot_monitoring(calm, legend=False)
    assert axes[0].get_title(loc="left") == "No drift found in 600 rows"
    assert axes[2].get_legend() is None
    assert [tick.get_text() for tick in axes[2].get_yticklabels()] == ["1", "10", "100"]


def test_infinite_adaptive_intervals_are_marked_and_counted(found):
    widths = np.ones(600)
    widths[[200, 201, 400]] = np.inf
    some = replace(found, adaptive_width=widths)
    _, width, last = plot_monitoring(some)
    (marks,) = [line for line in width.get_lines() if line.get_marker() == "|"]
    assert marks.get_xdata().tolist() == [201, 202, 401]
    assert "adaptive interval that is infinite" in labels(last)
    assert "3 of 600 intervals are infinite" in some.words()
    assert [block["adaptive_infinite"] for block in some.blocks(3)] == [0, 2, 1]


@pytest.mark.parametrize("width", [4.0, 8.4])
def test_the_title_stays_on_the_page(found, width):
    figure = Figure(figsize=(width, 7.4), layout="constrained")
    axes = plot_monitoring(found, list(figure.subplots(3, 1)))
    figure.canvas.draw()
    assert axes[0].get_tightbbox().x1 <= figure.bbox.width
    with pytest.raises(ValueError, match="axes has 2 entries: expected three"):
        plot_monitoring(found, axes[:2])
