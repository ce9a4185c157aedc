"""What tests of pictures share: models and reports to draw, and how to look at what was drawn."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot

from sosbands.regressors import PAPER_SETTINGS

FIXED = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 10.0, "random_state": 0}


def penalty_report(**changes):
    """A tuning report of three penalties times three lengthscales whose criterion is log10(lengthscale) + place."""
    places = {0.0: 0, 10.0: 1, np.inf: 2}
    rows = [
        {"lengthscale": ell, "symmetry_penalty": penalty, "criterion": np.log10(ell) + place, "uncertified": 0}
        for ell in (0.1, 1.0, 10.0)
        for penalty, place in places.items()
    ]
    settings = {
        "evaluations": tuple(rows),
        "criterion": "hsic",
        "independence": None,
        "symmetry": None,
        "replicates": None,
        "lengthscale": 10.0,
        "symmetry_penalty": np.inf,
        "homoscedastic": False,
        "sentence": "Best by hsic: symmetric bands.",
        "interrupted": False,
        "seconds": 1.0,
    }
    return SimpleNamespace(**{**settings, **changes})


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


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def labelled(ax, start):
    """The artist whose label begins like this."""
    handles, names = ax.get_legend_handles_labels()
    (found,) = (handle for handle, name in zip(handles, names, strict=True) if name.startswith(start))
    return found


def offsets(ax, start):
    return np.asarray(labelled(ax, start).get_offsets())


def render(ax):
    """Draw the whole figure, so that anything wrong with it is raised."""
    figure = np.atleast_1d(ax)[0].figure
    figure.canvas.draw()
    return figure


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")
