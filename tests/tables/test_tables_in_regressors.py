"""Data frames as they are: the estimator and the baselines around them, what the kernel sees, files, and honesty."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

import sosbands
import sosbands.tables.encoder as encoder
from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import METHODS, make_method
from sosbands.metrics import coverage
from sosbands.plotting.bands import shaping_rows
from sosbands.point_models import ModelBlend, learn_residuals
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tables import TableEncoder
from sosbands.tables.rows import COLUMNS, NUMBERS

FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "random_state": 0}
FAST["bands"] = BandSettings(tol=1e-2)


def deliveries(n=160, seed=0):
    """Numbers with gaps, texts few and many, booleans and dates, with a skewed target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-2, 2, n)),
            "ward": rng.choice(["north", "south", None], n),
            "shop": rng.choice([f"shop {i}" for i in range(30)], n),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )
    y = table.x.fillna(0) + 2.0 * (table.ward == "north") + table.flag + rng.exponential(size=n)
    return table, y.to_numpy()


TABLE, Y = deliveries()


def test_a_data_frame_as_it_is(tmp_path):
    polars = pytest.importorskip("polars")
    model = SoSBandRegressor(**FAST).fit(TABLE, Y)
    assert isinstance(model.reader_.preprocessor, TableEncoder)
    assert model.reader_.model_sees_points
    assert model.reader_.kind == COLUMNS
    learnt = TableEncoder().fit(TABLE.iloc[model.learning_rows_], Y[model.learning_rows_])
    np.testing.assert_allclose(model.predict(TABLE), model.estimator_.predict(learnt.transform(TABLE)), rtol=1e-12)
    assert learnt.describe() in model.summary(detail=True)
    shaping_rows(model, TABLE)  # which knows the learning rows again
    new, truth = deliveries(400, seed=1)
    intervals = model.predict_interval(new)
    assert 0.82 <= coverage(truth, *intervals.T) <= 0.98
    model.save(tmp_path / "m.model")
    assert np.array_equal(sosbands.load(tmp_path / "m.model").predict_interval(new), intervals)
    assert np.array_equal(model.predict_interval(polars.from_pandas(new)), intervals)  # learning from it: test_rows.py
    with pytest.raises(ValueError, match="(?s)feature names.*missing.*- shop"):
        model.predict(new.drop(columns="shop"))
    with pytest.raises(ValueError, match="column 'x', row 0 .*: 'far' is not a number, as in the learning rows"):
        model.predict(new.assign(x="far"))


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_table_of_finite_numbers_is_standardised_to_the_bit(as_frame):
    X = np.random.default_rng(2).normal(size=(60, 3))
    X = (
        pd.DataFrame(X, columns=list("abc")).assign(b=lambda t: t.b > 0, c=(10 * X[:, 2]).astype(int))
        if as_frame
        else X
    )
    y = np.random.default_rng(3).normal(size=60)
    auto, plain = (SoSBandRegressor(preprocessor=word, **FAST).fit(X, y) for word in ("auto", "standardize"))
    assert auto.reader_.kind == NUMBERS
    assert type(auto.reader_.preprocessor) is StandardScaler
    assert np.array_equal(auto.predict_interval(X), plain.predict_interval(X))
    assert np.array_equal(auto.support(X), plain.support(X))


def test_gaps_in_arrays_are_filled_unless_a_model_wants_none():
    X = np.random.default_rng(4).normal(size=(80, 2))
    y = X[:, 0] + np.random.default_rng(5).normal(size=80)
    X[::7, 1] = np.nan
    model = SoSBandRegressor(**FAST).fit(X, y)
    learning = X[model.learning_rows_]
    filled = np.where(np.isnan(learning[:, 1]), np.nanmedian(learning[:, 1]), learning[:, 1])
    points = model.reader_.preprocessor.transform(learning)
    np.testing.assert_allclose(points[:, 1], (filled - filled.mean()) / filled.std())
    assert points[:, 2].tolist() == np.isnan(learning[:, 1]).tolist()
    boosted = SoSBandRegressor(HistGradientBoostingRegressor(max_iter=5), **FAST)
    direct = boosted.fit(X, y).estimator_
    assert np.array_equal(boosted.predict(X), direct.predict(X))  # the model sees the gaps themselves
    allowed = {
        SoSBandRegressor(): True,
        boosted: True,
        SoSBandRegressor(Ridge()): False,
        SoSBandRegressor(preprocessor="standardize"): False,
        make_method("gp"): True,
        make_method("split", estimator=Ridge()): False,
    }
    assert [get_tags(each).input_tags.allow_nan for each in allowed] == list(allowed.values())


def test_the_kernel_sees_what_the_transformers_of_a_pipeline_make_if_these_are_numbers():
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["ward"]), ("passthrough", ["flag"]))
    model = SoSBandRegressor(make_pipeline(columns, Ridge()), **FAST).fit(TABLE, Y)
    learning = TABLE.iloc[model.learning_rows_]
    made = columns.fit(learning).transform(learning).astype(float)
    np.testing.assert_allclose(model.reader_.preprocessor.transform(learning), made / made.std(axis=0))
    assert "The kernel sees what the transformers of the point model make, standardised." in model.summary(detail=True)
    boosting = HistGradientBoostingRegressor(max_iter=5, categorical_features=[0])
    ward_only = make_column_transformer(("passthrough", ["ward"])).set_output(transform="pandas")
    frame = TABLE.assign(ward=TABLE.ward.astype("category"))
    model = SoSBandRegressor(make_pipeline(ward_only, boosting), **FAST).fit(frame, Y)
    assert isinstance(model.reader_.preprocessor, TableEncoder)
    assert not model.reader_.model_sees_points


@pytest.mark.parametrize("name", METHODS)
def test_baselines_take_the_same_tables(name, tmp_path):
    if name == "cqr-forest":
        pytest.importorskip("quantile_forest", reason=f"{name} needs quantile-forest")
    fast = {"cqr-boosting": {"max_iter": 20}}.get(name, {})
    model = make_method(name, random_state=0, **fast).fit(TABLE, Y)
    new, truth = deliveries(300, seed=1)
    intervals = model.predict_interval(new)
    assert 0.8 <= coverage(truth, *intervals.T) == model.evaluate(new, truth)["coverage"] <= 0.99
    model.save(tmp_path / "m.model")
    trusted = ["quantile_forest._quantile_forest.RandomForestQuantileRegressor"] if name == "cqr-forest" else []
    assert np.array_equal(sosbands.load(tmp_path / "m.model", trusted=trusted).predict_interval(new), intervals)
    with pytest.raises(ValueError, match="'x'"):
        model.predict(new.assign(x="far"))


# ---------------------------------------------------------------- categories of pure noise


def noise_of_categories(n, seed, categories=500):
    rng = np.random.default_rng(seed)
    shops = np.array([f"shop {i}" for i in range(categories)], dtype=object)[rng.integers(0, categories, n)]
    return pd.DataFrame({"shop": shops, "x": rng.normal(size=n)}), rng.normal(size=n)


def residual_size(made, fold_points):
    """Out-of-fold residuals of a small blend, relative to the noise."""
    table, y = noise_of_categories(2000, seed=0)
    points = made.fit_transform(table, y)
    members = [Ridge(), HistGradientBoostingRegressor(max_iter=40, random_state=0)]
    folds = made.fold_points(table, y, points) if fold_points else None
    learnt = learn_residuals(ModelBlend(members, random_state=0), points, y, fold_points=folds)
    return np.sqrt(np.mean(learnt.residual**2)) / y.std()


def own_target_known(codes, y):
    """The broken encoder: learning rows get the mean target of all rows, their own included."""
    return encoder.target_encoder().fit(codes, y).transform(codes)


def test_residuals_of_noise_have_the_size_of_the_noise(monkeypatch):
    assert residual_size(TableEncoder(), fold_points=True) == pytest.approx(1, abs=0.05)
    monkeypatch.setattr(encoder, "cross_fitted", own_target_known)
    assert residual_size(TableEncoder(), fold_points=False) < 0.95  # the same test of the broken encoder


def test_intervals_of_noise_cover_and_are_as_wide_as_the_noise():
    table, y = noise_of_categories(1200, seed=1, categories=300)
    plain = {**FAST, "lengthscale": np.inf, "conformal_score": "added"}
    model = SoSBandRegressor(estimator=None, **plain).fit(table, y)
    assert model.residual_rms_ == pytest.approx(y[model.learning_rows_].std(), rel=0.05)
    new, truth = noise_of_categories(4000, seed=2, categories=300)
    intervals = model.predict_interval(new)
    assert coverage(truth, *intervals.T) == pytest.approx(0.9, abs=0.04)  # three standard errors of 600 rows
    assert np.diff(intervals).mean() == pytest.approx(2 * 1.645, rel=0.1)
