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

from pictures import _close_figures as _close_figures
from pictures import penalty_report, render
from sosbands import SoSBandRegressor, plotting
from sosbands.datasets import synthetic_case
from sosbands.point_models import GaussianProcess
from sosbands.regressors import PAPER_SETTINGS

ROOT = Path(__file__).parents[2]
FIXED = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 10.0, "random_state": 0}


class Tent:
    """A stand-in: prediction twice the first feature, intervals that reach `level` below and `3 level` above it."""

    confidence_level = 0.8

    def predict(self, X):
        return 2.0 * np.asarray(X, dtype=float)[:, 0]

    def predict_interval(self, X, confidence_level=None, *, lower_share=0.5):
        level = np.asarray(self.confidence_level if confidence_level is None else confidence_level)
        ends = np.array([-2 * lower_share, 3.0])[:, None] * np.atleast_1d(level) + self.predict(X)[:, None, None]
        return ends if level.ndim else ends[:, :, 0]


class SupportedTent(Tent):
    """The stand-in with support for |x| <= 1 only."""

    def support(self, X):
        return (np.abs(np.asarray(X)[:, 0]) <= 1).astype(float)


def choice_row(base="both", features="inputs", ell=2.0, width=30.0, penalty=np.inf, score="added", **rest):
    """A line of the automatic choice."""
    return {
        "base_scale": base,
        "noise_features": features,
        "lengthscale": ell,
        "width_penalty": width,
        "learning_coverage": 0.9,
        "symmetry_penalty": penalty,
        "conformal_score": score,
        "uncertified": 0,
        **rest,
    }


def choice_report(**changes):
    """A report of the automatic choice, which is its first candidate; others lose so many per cent."""
    rows = [
        choice_row(criterion=-1.0),
        choice_row(score="scaled", criterion=-1.0 - np.log(1.005)),
        choice_row(base="none", criterion=-1.0 - np.log(1.2)),
        choice_row(base="none", ell=np.inf, criterion=-1.0 - np.log(1.1)),
        choice_row(features="prediction", ell=0.3, criterion=-1.0 - np.log(1.04)),
        choice_row(ell=1.0, criterion=-1.0 - np.log(1.02)),
        choice_row(ell=4.0, width=3.0, penalty=0.0, criterion=-1.0 - np.log(1.03)),
    ]
    chosen = {name: rows[0][name] for name in choice_row() if name != "uncertified"}
    sentence = "Symmetric bands that vary with inputs."
    words = {"criterion": "interval-score", "sentence": sentence}
    return penalty_report(**{"evaluations": tuple(rows), **words, **chosen, **changes})


def comparison_rows():
    return [
        {"method": method, "repetition": k, "coverage": 0.88 + 0.01 * k + shift, "confidence_level": 0.9}
        for k in range(5)
        for method, shift in (("ours", 0.0), ("theirs", -0.02))
    ]


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
def test_axes_come_back_and_nothing_global_changes(draw):
    before = dict(mpl.rcParams)
    figure, ax = pyplot.subplots()
    assert draw(ax, True) is ax
    assert len(pyplot.get_fignums()) == 1
    assert draw(None, True).figure is not figure
    assert len(pyplot.get_fignums()) == 2
    assert dict(mpl.rcParams) == before


@picture
def test_figures_are_saved_without_warnings(draw, tmp_path):
    for layout in (None, "tight"):
        figure, ax = pyplot.subplots(layout=layout)
        draw(ax, True)
        figure.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def assert_legend_is_beside_the_data(ax):
    """The legend lies inside of the figure, outside of the axes and below the axis label."""
    figure = render(ax)
    renderer = figure.canvas.get_renderer()
    legend = ax.get_legend().get_window_extent(renderer)
    assert figure.bbox.x0 <= legend.x0 < legend.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= legend.y0
    assert legend.y1 <= ax.xaxis.label.get_window_extent(renderer).y0


@picture
def test_legends_cover_nothing(draw):
    assert_legend_is_beside_the_data(draw(None, True))
    _, ax = pyplot.subplots()  # without a layout engine
    assert_legend_is_beside_the_data(draw(ax, True))


def test_the_check_of_legends_rejects_one_inside():
    ax = PICTURES["widths"](None, True)
    ax.legend(loc="upper left")
    with pytest.raises(AssertionError):
        assert_legend_is_beside_the_data(ax)


@picture
def test_legends_can_be_left_out_and_then_the_layout_is_left_alone(draw):
    figure, ax = pyplot.subplots()
    assert draw(ax, False).get_legend() is None
    assert figure.get_layout_engine() is None


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
