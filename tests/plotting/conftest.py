"""Figures are closed after each test; one model serves them all."""

import pytest

from pictures import FIXED
from pictures import _close_figures as _close_figures
from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case
from sosbands.point_models import GaussianProcess


@pytest.fixture(scope="session")
def learnt():
    """A model with one feature, and the rows given to it."""
    X, y = synthetic_case(5).sample(80, random_state=0)
    return SoSBandRegressor(GaussianProcess(), **FIXED).fit(X, y), X, y
