"""A small program of a user: it runs with an installed wheel, and its types are those that the wheel declares."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import sosbands
from sosbands import BandSolution, SoSBandRegressor, SoSFunction, learn_bands
from sosbands.metrics import coverage, evaluate_intervals
from sosbands.tuning import TuningReport

Numbers = NDArray[np.float64]


def table(n: int, seed: int) -> tuple[Numbers, Numbers]:
    """Rows and targets with skewed noise that grows to the right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + (1.2 + X[:, 0]) * rng.exponential(size=n)


def intervals() -> None:
    """Fit, predict, save and load."""
    X, y = table(200, seed=0)
    model = SoSBandRegressor(random_state=0, max_seconds=5)
    assert_type(model.fit(X, y), SoSBandRegressor)
    X_new, y_new = table(100, seed=1)
    assert_type(model.predict(X_new), Numbers)
    ends: Numbers = model.predict_interval(X_new, confidence_level=0.9)  # a data frame after set_output
    assert ends.shape == (100, 2)
    assert np.all(ends[:, 0] < ends[:, 1])
    assert_type(model.evaluate(X_new, y_new), dict[str, Any])
    assert 0.7 < model.evaluate(X_new, y_new)["coverage"] <= 1
    assert_type(coverage(y_new, *ends.T), float)
    assert_type(evaluate_intervals(y_new, *ends.T, confidence_level=0.9), dict[str, float])
    assert_type(model.support(X_new), Numbers)
    assert_type(model.summary(), str)
    assert_type(model.tuning_, TuningReport | None)
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.sosbands")
        same = sosbands.load(Path(folder) / "model.sosbands")
    assert np.array_equal(same.predict_interval(X_new, confidence_level=0.9), ends)


def bands() -> None:
    """Bands alone, with their certificate."""
    X, r = table(60, seed=2)
    found = learn_bands(X, r - r.mean(), normalize=True)
    assert_type(found, BandSolution)
    assert_type(found.lower, SoSFunction)
    assert_type(found.lower(X), Numbers)
    assert_type(found.gap, float)
    assert found.gap < 1e-2


if __name__ == "__main__":
    intervals()
    bands()
    print(f"sosbands {sosbands.__version__}: the program of a user ran")
