"""More rows than a stage needs, of which some are used; and more to predict, in blocks, so that memory stays small."""

import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.point_models import GaussianProcess, ModelBlend, learn_residuals
from sosbands.point_models.user_model import shuffled_folds
from sosbands.regressors import sos_bands
from sosbands.tables import rows as table_rows

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (1200, 2))
Y = X[:, 0] + (0.2 + 0.3 * (X[:, 1] > 0)) * RNG.standard_normal(1200)
SETTINGS = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 1.0, "width_penalty": 30.0}
SETTINGS |= {"learning_coverage": 0.9, "symmetry_penalty": 0.0, "conformal_score": "added", "random_state": 0}
SETTINGS["calibration_size"] = 0.5


@pytest.mark.parametrize(
    ("n", "enough", "expected"), [(100, None, 5), (100, 1, 1), (100, 20, 1), (100, 21, 2), (100, 100, 5), (100, 999, 5)]
)
def test_folds_that_hold_enough_rows(n, enough, expected):
    assert len(shuffled_folds(n, 5, None, enough)) == expected


@pytest.mark.parametrize("model", [LinearRegression(), ModelBlend([LinearRegression()], random_state=0)])
def test_residuals_of_some_folds_are_those_of_all_folds(model):
    all_rows = learn_residuals(model, X, Y, random_state=0)
    found = learn_residuals(model, X, Y, random_state=0, enough_rows=300)
    assert len(found.rows) == 480  # two of five folds
    assert np.array_equal(all_rows.rows, np.arange(1200))
    assert np.all(np.diff(found.rows) > 0)
    np.testing.assert_allclose(found.residual, all_rows.residual[found.rows], rtol=1e-12)
    np.testing.assert_allclose(found.prediction + found.residual, Y[found.rows], rtol=1e-12)


def test_a_sample_of_residuals_stays_in_step():
    found = learn_residuals(LinearRegression(), X, Y, random_state=0, enough_rows=300)
    some = found.sample(100, np.random.RandomState(0))
    rows = some.rows
    assert len(rows) == 100
    assert np.isin(rows, found.rows).all()
    np.testing.assert_allclose(some.prediction + some.residual, Y[rows], rtol=1e-12)
    assert found.sample(480, np.random.RandomState(0)) is found


def test_a_process_of_some_rows():
    some = GaussianProcess(max_rows=100).fit(X, Y)
    assert some.X_train_.shape == (100, 2)
    plain = GaussianProcess().fit(X[:100], Y[:100])
    whole = GaussianProcess(max_rows=100).fit(X[:100], Y[:100])
    assert np.array_equal(whole.predict(X), plain.predict(X))
    found = learn_residuals(GaussianProcess(max_rows=100), X[:150], Y[:150], random_state=0)
    assert found.rule == "out-of-fold"
    assert len(found.residual) == 150
    with pytest.raises(ValueError, match="max_rows=0: expected None or an integer >= 1"):
        GaussianProcess(max_rows=0).fit(X, Y)


@pytest.fixture
def few_rows_are_enough(monkeypatch):
    monkeypatch.setattr(sos_bands, "NOISE_ROWS", 200)
    monkeypatch.setattr(sos_bands, "BAND_ROWS", 90)
    monkeypatch.setattr(SoSBandRegressor, "_most_rows", (500, 300))


@pytest.mark.usefixtures("few_rows_are_enough")
def test_every_stage_sees_as_many_rows_as_it_needs():
    model = SoSBandRegressor(LinearRegression(), **SETTINGS).fit(X, Y)
    assert (len(model.learning_rows_), len(model.calibration_rows_), model.n_unused_rows_) == (500, 300, 400)
    assert (model.n_noise_rows_, model.noise_.n_rows) == (200, 90)
    assert not np.isin(model.learning_rows_, model.calibration_rows_).any()
    assert np.isin(model.noise_.active_upper, model.learning_rows_).all()
    expected = LinearRegression().fit(X[model.learning_rows_], Y[model.learning_rows_]).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    words = model.summary(detail=True)
    assert "from the residuals of 200 of these rows, the bands from 90." in words
    assert "400 of the rows given, drawn at random, were not used" in words
    new = RNG.uniform(-1, 1, (4000, 2))
    y = new[:, 0] + (0.2 + 0.3 * (new[:, 1] > 0)) * RNG.standard_normal(4000)
    lower, upper = model.predict_interval(new).T
    assert 0.84 < np.mean((lower <= y) & (y <= upper)) < 0.96


@pytest.mark.usefixtures("few_rows_are_enough")
def test_bands_that_cover_every_row_see_every_row():
    settings = SETTINGS | {"learning_coverage": 1}
    model = SoSBandRegressor(LinearRegression(), **settings, bands=BandSettings(constant=False)).fit(X, Y)
    assert (model.n_noise_rows_, model.noise_.n_rows) == (500, 500)
    assert "The noise was learnt" not in model.summary(detail=True)


@pytest.mark.usefixtures("few_rows_are_enough")
def test_groups_keep_all_rows():
    model = SoSBandRegressor(LinearRegression(), **SETTINGS).fit(X, Y, groups=np.arange(1200) % 3)
    assert len(model.calibration_rows_) == 600
    assert model.n_unused_rows_ == 0


def test_few_rows_are_all_used():
    model = SoSBandRegressor(HistGradientBoostingRegressor(max_iter=5), **SETTINGS).fit(X, Y)
    assert (model.n_noise_rows_, model.noise_.n_rows, model.n_unused_rows_) == (600, 600, 0)
    assert "The noise was learnt" not in model.summary(detail=True)


# ---------------------------------------------------------------- prediction in blocks

ROWS, LEARNING = 200_000, 200
BYTES_PER_ROW = 160  # the features as float64, both ends, the support and what the metrics of a block need


def learn(estimator, base_scale="none"):
    settings = {**SETTINGS, "base_scale": base_scale, "bands": BandSettings(tol=1e-2)}
    return SoSBandRegressor(estimator, **settings).fit(X[: 2 * LEARNING], Y[: 2 * LEARNING])


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
    model, rows = learn(None, "forest"), many[:3000]
    ends, center, support = model.predict_interval(rows), model.predict(rows), model.support(rows)
    monkeypatch.setattr(table_rows, "BLOCK_ROWS", 77)
    np.testing.assert_allclose(model.predict_interval(rows), ends, rtol=1e-12)
    np.testing.assert_allclose(model.predict(rows), center, rtol=1e-12)
    np.testing.assert_allclose(model.support(rows), support, rtol=1e-9)
