"""What all pictures share: matplotlib loaded late, nothing global touched, no warnings, legends that can be read."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot

from pictures import SupportedTent, Tent, choice_report, comparison_rows, render
from pictures import _close_figures as _close_figures
from sosbands import SoSBandRegressor, plotting
from sosbands.datasets import synthetic_case
from sosbands.point_models import GaussianProcess
from sosbands.regressors import PAPER_SETTINGS

ROOT = Path(__file__).parents[2]
FIXED = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 10.0, "random_state": 0}


@pytest.fixture(scope="session")
def learnt():
    """A model with one feature, and the rows given to it."""
    X, y = synthetic_case(5).sample(80, random_state=0)
    return SoSBandRegressor(GaussianProcess(), **FIXED).fit(X, y), X, y


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
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


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


@pytest.mark.parametrize(
    "call",
    [
        lambda: plotting.plot_bands(Tent(), X_TENT, Y_TENT, n_points=1),
        lambda: plotting.plot_bands(Tent(), X_TENT, Y_TENT, feature="prediction", max_intervals=0),
        lambda: plotting.plot_local_coverage(Tent(), X_TENT, Y_TENT, n_bins=0),
        lambda: plotting.plot_calibration(Tent(), X_TENT, Y_TENT, levels=[0.5, 1.0]),
        lambda: plotting.plot_active_rows(Tent(), X_TENT, Y_TENT),
        lambda: plotting.plot_comparison(comparison_rows(), "width"),
    ],
)
def test_bad_input_leaves_no_empty_figure(call):
    with pytest.raises(ValueError, match="expected|does not know"):
        call()
    assert pyplot.get_fignums() == []


def test_the_page_shows_every_picture():
    text = (ROOT / "docs" / "seeing.md").read_text(encoding="utf-8")  # whose code tests/test_docs.py runs
    for name in plotting.__all__:
        assert f"{name}(" in text, f"{name} is not on the page"
