"""A small table, and settings under which SoSBandRegressor fits in milliseconds; shared by the tests of regressors."""

from functools import cache

import numpy as np
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.regressors import PAPER_SETTINGS
from spelled import spelled

FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}
FAST["calibration_size"] = 0.5
N, N_NEW = 80, 30
RNG = np.random.default_rng(7)


def _rows(n, reach):
    """Skewed noise that grows with the second feature."""
    X = RNG.uniform(-reach, reach, (n, 2))
    return X, np.sin(2 * X[:, 0]) + (1.2 + X[:, 1]) * (RNG.exponential(size=n) - 0.7)


X, Y = _rows(N, 1.0)
X_NEW, Y_NEW = _rows(N_NEW, 0.8)


def fast(estimator=None, **options):
    estimator = LinearRegression() if estimator is None else estimator
    return SoSBandRegressor(estimator, **spelled(**{**FAST, **options}))


@cache
def fitted(**options):
    """A model of (X, Y) that several tests ask, and none changes."""
    return fast(**options).fit(X, Y)
