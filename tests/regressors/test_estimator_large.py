"""Prediction in blocks: memory grows with the rows, not with rows times learning points."""

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.tables import rows as table_rows

ROWS, LEARNING = 200_000, 200
BYTES_PER_ROW = 160  # the features as float64, both ends, the support and what the metrics of a block need


def learn(estimator):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2 * LEARNING, 2))
    y = X[:, 0] + rng.standard_normal(2 * LEARNING)
    settings = {"lengthscale": "median", "symmetry_penalty": 1.0, "bands": BandSettings(tol=1e-2)}
    return SoSBandRegressor(estimator, **settings, random_state=0).fit(X, y)


def extra_memory(call):
    """Largest memory beyond what was there before, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def model():
    return learn(LinearRegression())


@pytest.fixture(scope="module")
def many():
    return np.random.default_rng(1).uniform(-0.9, 0.9, (ROWS, 2)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.parametrize("method", ["predict", "predict_interval", "support"])
def test_memory_of_many_rows(method, model, many):
    used = extra_memory(lambda: getattr(model, method)(many))
    assert used < ROWS * BYTES_PER_ROW  # 32 MB; the kernel matrix alone would be 320 MB


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_the_bound_rejects_prediction_in_one_piece(model, many, monkeypatch):
    few = many[:40_000]
    monkeypatch.setattr(table_rows, "BLOCK_ROWS", len(few))
    monkeypatch.setattr("sosbands.kernels.features.BLOCK_VALUES", len(few) * LEARNING)
    assert extra_memory(lambda: model.predict_interval(few)) > 5 * len(few) * BYTES_PER_ROW


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_blocks_do_not_change_the_numbers(many, monkeypatch):
    model, rows = learn(None), many[:5000]
    ends, center, support = model.predict_interval(rows), model.predict(rows), model.support(rows)
    monkeypatch.setattr(table_rows, "BLOCK_ROWS", 77)
    np.testing.assert_allclose(model.predict_interval(rows), ends, rtol=1e-12)
    np.testing.assert_allclose(model.predict(rows), center, rtol=1e-12)
    np.testing.assert_allclose(model.support(rows), support, rtol=1e-9)
