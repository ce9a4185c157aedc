"""What all pictures share: matplotlib loaded late, nothing global touched, no warnings, legends that can be read."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
from matplotlib import pyplot

from pictures import SupportedTent, Tent, choice_report, comparison_rows, render
from sosbands import plotting

PAGE = Path(__file__).parents[2] / "docs" / "seeing.md"  # whose code tests/test_docs.py runs
X_TENT = np.linspace(-2, 2, 60)[:, None]
Y_TENT = 2 * X_TENT[:, 0] + np.sin(37 * X_TENT[:, 0])
PICTURES = {
    "bands": lambda ax, legend: plotting.plot_bands(SupportedTent(), X_TENT, Y_TENT, ax=ax, legend=legend),
    "widths": lambda ax, legend: plotting.plot_widths(SupportedTent(), X_TENT, ax, legend=legend),
    "calibration": lambda ax, legend: plotting.plot_calibration(Tent(), X_TENT, Y_TENT, ax, legend=legend),
    "local": lambda ax, legend: plotting.plot_local_coverage(Tent(), X_TENT, Y_TENT, ax=ax, legend=legend),
    "tuning": lambda ax, legend: plotting.plot_tuning(choice_report(), ax, legend=legend),
}
picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


@picture
def test_axes_come_back_without_a_legend_and_nothing_global_changes(draw):
    before = dict(mpl.rcParams)
    figure, ax = pyplot.subplots()
    assert draw(ax, False) is ax
    assert ax.get_legend() is None
    assert figure.get_layout_engine() is None
    assert len(pyplot.get_fignums()) == 1
    assert draw(None, True).figure is not figure
    assert len(pyplot.get_fignums()) == 2
    assert dict(mpl.rcParams) == before


def assert_legend_is_beside_the_data(ax):
    """The legend lies inside of the figure, outside of the axes and below the axis label."""
    figure = render(ax)
    renderer = figure.canvas.get_renderer()
    legend = ax.get_legend().get_window_extent(renderer)
    assert figure.bbox.x0 <= legend.x0 < legend.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= legend.y0
    assert legend.y1 <= ax.xaxis.label.get_window_extent(renderer).y0


@picture
def test_legends_cover_nothing_and_figures_are_saved_without_warnings(draw, tmp_path):
    assert_legend_is_beside_the_data(draw(None, True))
    for layout in (None, "tight"):
        figure, ax = pyplot.subplots(layout=layout)
        draw(ax, True)
        if layout is None:
            assert_legend_is_beside_the_data(ax)
        figure.savefig(tmp_path / "picture.png")


def test_the_check_of_legends_rejects_one_inside():
    ax = PICTURES["widths"](None, True)
    ax.legend(loc="upper left")
    with pytest.raises(AssertionError):
        assert_legend_is_beside_the_data(ax)


@pytest.mark.parametrize("name", ["bands", "widths"])
def test_what_was_measured_is_the_title_unless_there_is_one(name):
    measured = {"bands": "80 % of 60 rows inside, mean width 3.2", "widths": "mean width 3.2: 0.8 below, 2.4 above"}
    assert PICTURES[name](None, True).get_title() == measured[name]
    _, ax = pyplot.subplots()
    ax.set_title("mine")
    assert PICTURES[name](ax, True).get_title() == "mine"


def test_pictures_go_into_subfigures():
    figure = pyplot.figure(layout="constrained")
    left, right = figure.subfigures(1, 2)
    for part, draw in ((left, PICTURES["bands"]), (right, PICTURES["tuning"])):
        draw(part.subplots(), True)
    figure.canvas.draw()


def test_importing_the_room_does_not_load_matplotlib():
    script = "import sys, sosbands.plotting; print([m for m in ('matplotlib', 'plotly') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr("matplotlib.pyplot", raising=False)
    with pytest.raises(ImportError, match=re.escape("pip install matplotlib")):
        plotting.plot_widths(Tent(), X_TENT)


class Two(Tent):
    def predict(self, X):
        return np.asarray(X)[:, :2]


class OneSided(Tent):
    def predict_interval(self, X, confidence_level=None):
        return self.predict(X) - confidence_level


X3, TWICE = np.random.default_rng(0).normal(size=(40, 3)), comparison_rows() * 2
BAD = {  # what is called, with a model or rows, and what it says
    plotting.plot_bands: [
        ((Tent(), [1.0, 2.0]), {}, r"X has shape \(2,\): expected two dimensions"),
        ((Tent(), np.zeros((0, 2))), {}, r"X has shape \(0, 2\)"),
        ((Tent(), X3, [1.0]), {}, "y has 1 entries: expected 40"),
        ((Tent(), X3), {"feature": 3}, "feature=3: expected 'prediction', a position from 0"),
        ((Tent(), X3), {"feature": -1}, "feature=-1: expected"),
        ((Tent(), X3), {"feature": True}, "feature=True: expected"),
        ((Tent(), X3), {"feature": "age"}, "feature='age': expected .* from 0 to 2$"),
        ((Tent(), pd.DataFrame(X3, columns=[*"abc"])), {"feature": "age"}, r"names \['a', 'b', 'c'\]"),
        ((Tent(), [[0.0], [np.nan]]), {}, "feature='x' holds missing or infinite"),
        ((Tent(), X3), {"confidence_level": 1.5}, "confidence_level=1.5: expected"),
        ((Tent(), X3), {"confidence_level": [0.5]}, r"confidence_level=\[0.5\]: expected one"),
        ((Tent(), X3), {"feature": 0, "n_points": 1}, "n_points=1: expected"),
        ((Tent(), X3), {"feature": 0, "x_range": (1, 0)}, r"x_range=\(1, 0\): expected"),
        ((Tent(), X3), {"max_intervals": 0}, "max_intervals=0: expected"),
        ((Tent(), X3), {"colour": "red"}, "colour"),
        ((object(), X3), {}, "confidence_level=None: expected"),
        ((object(), X3), {"confidence_level": 0.9}, "model=object: expected .* has predict$"),
        ((Two(), X3), {}, r"its predictions have shape \(40, 2\), expected \(40,\)"),
        ((OneSided(), X3), {}, r"its intervals have shape \(40,\), expected \(40, 2\)"),
    ],
    plotting.plot_active_rows: [((Tent(), X_TENT, Y_TENT), {}, "this Tent does not know which rows shape")],
    plotting.plot_calibration: [
        ((Tent(), X_TENT, Y_TENT[:2]), {}, "y has 2 entries: expected 60"),
        ((Tent(), X_TENT, Y_TENT), {"levels": [0.0, 0.5]}, "levels run from 0 to 0.5: expected"),
        ((Tent(), X_TENT, Y_TENT), {"levels": 0.5}, r"levels has shape \(\)"),
    ],
    plotting.plot_local_coverage: [
        ((Tent(), X_TENT, Y_TENT), {"n_bins": 0}, "n_bins=0: expected"),
        ((Tent(), X_TENT, Y_TENT), {"feature": 1}, "feature=1: expected"),
        ((Tent(), X_TENT[:, 0], Y_TENT), {}, r"X has shape \(60,\)"),
        ((Tent(), X_TENT, Y_TENT), {"confidence_level": 1}, "confidence_level=1: expected"),
    ],
    plotting.plot_comparison: [
        (([], "coverage"), {}, "rows: got 0 rows"),
        (([{"coverage": 1.0}], "coverage"), {}, "each with the key 'method'"),
        ((comparison_rows(), "width"), {}, r"metric='width': expected one of \['confidence_level', 'coverage'\]"),
        ((TWICE, "coverage"), {}, r"method 'ours' has two rows with .* = \(None, None, 0\)"),
        ((comparison_rows(), "coverage"), {"methods": ["cqr"]}, r"'cqr' has no rows, expected .* \['ours', 'theirs'\]"),
    ],
}


@pytest.mark.parametrize(("function", "given", "options", "message"), [(f, *row) for f in BAD for row in BAD[f]])
def test_bad_arguments_are_named_and_leave_no_empty_figure(function, given, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        function(*given, **options)
    assert pyplot.get_fignums() == []


def test_the_page_shows_every_picture():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in plotting.__all__ if f"{name}(" not in text] == []
