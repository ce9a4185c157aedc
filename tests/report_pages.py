"""Rows and estimators of the pages that tests look at, with nothing to tune."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.regressors import PAPER_SETTINGS
from spelled import spelled

QUIET = [
    pytest.mark.filterwarnings(f"ignore::sosbands.exceptions.{name}")
    for name in ("OffDataWarning", "CrossedIntervalsWarning", "TooFewCalibrationPointsWarning")
]
HOSTILE = "</script><script>window.harmed=1</script><img src=x onerror='window.harmed=2'>"


def line_data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    return X, 50 + np.sin(2 * X[:, 0]) + (1.1 + X[:, 0]) * rng.exponential(size=n)


def quick(**settings):
    fixed = {**PAPER_SETTINGS, "lengthscale": 0.6, "symmetry_penalty": 20.0}
    return SoSBandRegressor(LinearRegression(), **spelled(**{**fixed, **settings}))


def fitted_alike(data, X, y, estimator):
    rows = np.setdiff1d(np.arange(len(y)), data.test.numbers)
    return estimator.set_params(random_state=0).fit(X[rows], y[rows])


def middle_ends(page):
    return page.number("read-lower"), page.number("read-upper")
