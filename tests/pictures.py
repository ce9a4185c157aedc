"""What tests of pictures share: a report to draw, and how to look at what was drawn."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot


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
