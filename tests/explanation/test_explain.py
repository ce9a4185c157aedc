"""Widths taken apart: parts that sum exactly, that are what they are said to be, and words that say them."""

import math
import warnings
from dataclasses import replace
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures

from sosbands import SoSBandRegressor, learn_bands, load
from sosbands.bands import SoSFunction
from sosbands.conformal import Calibration
from sosbands.exceptions import NotCalibratedError
from sosbands.explanation import explain
from sosbands.explanation.explain import feature_parts, landmark_parts
from spelled import spelled

FIXED = {
    "base_scale": "none",
    "noise_features": "inputs",
    "conformal_score": "added",
    "lengthscale": 1.0,
    "width_penalty": 5.0,
    "learning_coverage": 0.9,
    "symmetry_penalty": 1.0,
    "random_state": 0,
}
MODELS = {
    "plain": {},
    "scaled": {"conformal_score": "scaled"},
    "asymmetric": {"calibration": "asymmetric", "symmetry_penalty": 0.0},
    "asymmetric-scaled": {"calibration": "asymmetric", "conformal_score": "scaled", "symmetry_penalty": 0.0},
    "symmetric": {"symmetry_penalty": math.inf},
    "model": {"base_scale": "model", "estimator": RandomForestRegressor(10, random_state=0)},
    "forest": {"base_scale": "forest", "conformal_score": "scaled"},
    "both": {"base_scale": "both", "estimator": RandomForestRegressor(10, random_state=0)},
    "all-features": {
        "base_scale": "forest",
        "noise_features": "inputs+prediction+scale",
        "estimator": RandomForestRegressor(10, random_state=0),
    },
    "prediction": {"noise_features": "prediction"},
    "covers-all": {"learning_coverage": 1.0, "constant": False},
    "two-lengthscales": {"lengthscale": {"lower": 0.5, "upper": 2.0}, "symmetry_penalty": 0.0},
    "constant-width": {"lengthscale": math.inf},
    "gaussian": {"kernel": "gaussian"},
    "low-rank": {"rank": 50},
    "transformer": {"preprocessor": PolynomialFeatures(2, include_bias=False)},
    "cross": {"calibration_size": "cross", "cv": 2},
}


def data(n=160, seed=0):
    """Noise that grows with the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0] + (0.2 + 0.8 * (X[:, 1] > 0)) * rng.standard_exponential(n)


def fitted(**settings):
    X, y = data()
    settings = FIXED | settings
    return SoSBandRegressor(settings.pop("estimator", LinearRegression()), **spelled(**settings)).fit(X, y)


@cache
def known(name="plain"):
    """A model that several tests ask, and none changes."""
    return fitted(**MODELS[name])


def widths(model, X, *arguments, **others):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = model.predict_interval(X, *arguments, **others)
    return ends[:, 1] - ends[:, 0]


def new_rows():
    return np.vstack([data(8, seed=1)[0], np.full((1, 3), 4.0), np.full((1, 3), 40.0)])


def assert_sums(found, width):
    np.testing.assert_array_equal(found.width, width)
    logs = found.base_scale + found.band + found.calibration
    np.testing.assert_allclose(logs, np.log(width / found.typical_width), rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.features.sum(axis=1) + found.typical_band, found.band, rtol=0, atol=1e-10)
    total = found.landmarks.sum(axis=1) + found.constant + found.off_data + found.added
    np.testing.assert_allclose(total, width, rtol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_parts_sum_to_the_width_also_of_a_model_that_was_saved(name, tmp_path):
    model, X = known(name), new_rows()
    for level in (None, 0.8):
        found = model.explain(X, level)
        assert_sums(found, widths(model, X, level))
        if name != "cross":
            np.testing.assert_allclose(found.calibration, 0.0, atol=1e-10)
    if not isinstance(model.preprocessor, PolynomialFeatures):
        model.save(tmp_path / "m")
        again = load(tmp_path / "m").explain(X, 0.8)
        for field in ("width", "features", "landmarks", "constant", "landmark_rows"):
            np.testing.assert_array_equal(getattr(again, field), getattr(found, field))
        assert again.words(0) == found.words(0)


@pytest.mark.parametrize("name", ["plain", "scaled"])
def test_calibration_adds_what_its_quantile_says(name):
    model, X = known(name), new_rows()[:8]
    points = model.reader_.preprocessor.transform(X)
    b = model.noise_.lower(points) + model.noise_.upper(points)
    found = model.explain(X)
    q = model.quantile()
    expected = np.full(len(X), 2 * q) if name == "plain" else (q - 1) * b
    np.testing.assert_allclose(found.added, expected, rtol=1e-9)


def test_the_typical_width_is_the_median_over_learning_rows():
    model, (X, _) = known(), data()
    expected = np.median(widths(model, X[model.learning_rows_]))
    found = model.explain(X[:3])
    assert found.typical_width == pytest.approx(expected, rel=1e-9)
    assert found.typical_row in model.learning_rows_
    at_typical = model.explain(X[[found.typical_row]])
    np.testing.assert_allclose(at_typical.features, 0.0, atol=1e-12)
    assert at_typical.band[0] == pytest.approx(found.typical_band, abs=1e-12)


def test_a_base_scale_is_compared_with_its_median():
    model, (X, _) = known("forest"), data()
    found = model.explain(X[:5])
    points = model.reader_.preprocessor.transform(X[:5])
    sizes = model.noise_.size_forest.predict(np.column_stack([points, model.predict(X[:5])]))
    expected = np.log(np.maximum(sizes, model.noise_.view.least) / np.median(model.noise_.typical.unit))
    np.testing.assert_allclose(found.base_scale, expected, rtol=1e-12)


def test_landmarks_are_learning_rows_and_each_makes_all_of_the_band_at_itself():
    model, (X, _) = known(), data()
    rows = model.noise_.typical.landmark_rows[0]
    assert set(rows) <= set(model.learning_rows_)
    np.testing.assert_array_equal(model.reader_.preprocessor.transform(X[rows]), model.noise_.lower.features.landmarks)
    found = model.explain(X[rows[:6]])
    lower, upper = model.noise_.lower, model.noise_.upper
    b = lower(lower.features.landmarks[:6]) + upper(lower.features.landmarks[:6])
    np.testing.assert_allclose(found.landmarks[:, :6], np.diag(b), atol=1e-8 * b.max())
    np.testing.assert_allclose(found.constant, 0.0, atol=1e-8 * b.max())


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("constant", [True, False])
def test_parts_of_landmarks_by_the_definition(ridge, constant):
    rng = np.random.default_rng(3)
    P, r = rng.normal(size=(25, 2)), rng.normal(size=25)
    solved = learn_bands(P, r, kernel="matern32", lengthscale=0.7, constant=constant, rank=15)
    f = SoSFunction(solved.lower.features, solved.lower.B, ridge)
    x = rng.normal(size=(4, 2))
    features, c = f.features, f.features.constant
    k, K = features.kernel(x, features.landmarks), features.kernel(features.landmarks, features.landmarks)
    W = np.linalg.solve(K, k.T).T
    Phi, at = features.transform(x), features.transform(features.landmarks)
    cross = Phi.T @ f.operator @ at
    got = landmark_parts(f, x)
    np.testing.assert_allclose(got, W * cross, rtol=1e-7, atol=1e-9)
    lone = np.zeros(len(Phi))
    lone[0] = c if constant else 0.0
    left = (1 - W.sum(axis=1)) * (Phi.T @ f.operator @ lone)
    np.testing.assert_allclose(got.sum(axis=1) + left, f(x), rtol=1e-7)


def shapley(value, x, reference, n):
    """The mean over all orders in which the features may come."""
    shares = np.zeros(n)
    for order in permutations(range(n)):
        row = reference.copy()
        for k in order:
            before, row[k] = value(row[None])[0], x[k]
            shares[k] += (value(row[None])[0] - before) / math.factorial(n)
    return shares


def test_features_have_their_shapley_values(monkeypatch):
    def value(P):
        return P[:, 0] * P[:, 1] * P[:, 2] + np.sin(P[:, 2]) * P[:, 0] + P[:, 3] ** 2

    rng = np.random.default_rng(0)
    x, reference = rng.normal(size=(2, 4)), rng.normal(size=4)
    groups = [np.array([k]) for k in range(4)]
    found = feature_parts(value, x, reference, groups)
    for row, shares in zip(x, found, strict=True):
        np.testing.assert_allclose(shares, shapley(value, row, reference, 4), rtol=1e-12)
    monkeypatch.setattr(explain, "ALL_ORDERS", 3)  # sampled orders
    sampled = feature_parts(value, x, reference, groups)
    np.testing.assert_allclose(sampled.sum(axis=1), value(x) - value(reference[None]), rtol=1e-12)
    assert not np.allclose(sampled, found)
    assert sampled[:, 3] == pytest.approx(found[:, 3], rel=1e-12)  # which meets no other


def test_a_feature_without_noise_has_no_share():
    X, y = data(400)
    model = SoSBandRegressor(LinearRegression(), **FIXED | {"lengthscale": [50.0, 0.7, 50.0]}).fit(X, y)
    found = model.explain(X[:40])
    sizes = np.abs(found.features).mean(axis=0)
    assert found.feature_names == ("feature 0", "feature 1", "feature 2")
    assert sizes[1] > 5 * max(sizes[0], sizes[2])


def test_groups_have_factors_of_their_own():
    X, y = data(400)
    groups = np.where(np.arange(400) % 2, "a", "b")
    y = y + np.where(groups == "a", 3 * np.random.default_rng(0).standard_normal(400), 0)
    model = SoSBandRegressor(LinearRegression(), **FIXED).fit(X, y, groups=groups)
    found = model.explain(X[:2], groups=["a", "b"])
    assert_sums(found, widths(model, X[:2], groups=["a", "b"]))
    assert found.calibration[0] > 0.1 > -0.1 > found.calibration[1]
    expected = np.log(found.width / model.explain(X[:2], groups=["b", "a"]).width)
    np.testing.assert_allclose(found.calibration - model.explain(X[:2], groups=["b", "a"]).calibration, expected)
    assert "the calibration of its group widens it (x" in found.words(0).replace("The", "the")
    few = np.array(["c"] * 4 + ["d"] * 200)
    with pytest.warns(UserWarning, match="calibration points"):
        found = model.conformalize(X[:204], y[:204] + 1e-3, groups=few).explain(X[:1], groups=["c"])
    assert found.width[0] == found.added[0] == found.calibration[0] == np.inf
    assert found.words(0).startswith("This interval is infinite")


def test_likelihood_ratios_have_factors_of_their_own():
    model, (X, y) = fitted(calibration_size=None), data(300, seed=5)
    model.conformalize(X, y, likelihood_ratio=np.exp(X[:, 1] * 2))
    same = X[[0, 0, 0, 0]]
    found = model.explain(same, likelihood_ratio=[0.1, 1.0, 3.0, 8.0])
    assert_sums(found, widths(model, same, likelihood_ratio=[0.1, 1.0, 3.0, 8.0]))
    assert (np.diff(found.calibration) >= 0).all()
    assert found.calibration[3] > 0


def test_columns_of_a_table_are_named_as_the_user_names_them():
    pd = pytest.importorskip("pandas")
    X, y = data(200)
    frame = pd.DataFrame({"age": X[:, 0], "<city>": np.where(X[:, 1] > 0, "north", "south"), "prediction": X[:, 2]})
    frame.loc[3, "age"] = np.nan
    model = SoSBandRegressor(**FIXED | {"noise_features": "inputs+prediction"}).fit(frame, y)
    found = model.explain(frame[:5])
    assert found.feature_names == ("age", "prediction", "<city>", "(prediction)")
    assert_sums(found, widths(model, frame[:5]))
    table = found.table()
    np.testing.assert_allclose(table.times_typical, table.base_scale * table.band * table.calibration)
    parts_of_width = table.from_landmarks + table.from_constant + table.from_off_data + table.from_calibration
    np.testing.assert_allclose(table.width, parts_of_width)
    assert "feature:<city>" in table.columns


# ---------------------------------------------------------------- words


def test_a_row_that_is_wide_because_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 1))
    y = np.where(X[:, 0] > 0.5, rng.normal(0, 3, 300), 0.1 * rng.normal(size=300))
    settings = FIXED | {"base_scale": "forest", "lengthscale": math.inf, "conformal_score": "scaled"}
    found = SoSBandRegressor(LinearRegression(), **settings).fit(X, y).explain([[0.8], [-0.5]])
    assert "The model is often far off here (x" in found.words(0)
    assert "rows like" not in found.words(0).lower()
    assert found.words(0).startswith(f"This interval is {found.times_typical[0]:.2g} times as wide as the typical one.")


def test_all_of_them_in_two_lines_and_the_first_ones_in_words():
    found = known().explain(data()[0])
    (first, second), times = repr(found).split("\n"), found.times_typical
    wide = f"{times.min():.2g} to {times.max():.2g} times as wide as the typical one ({found.typical_width:.4g})"
    assert first == f"Explanation of 160 intervals at 90%: {wide}"
    assert second == f"  by, as a rule: band x{np.exp(np.abs(found.band).mean()):.2g}; words() says more"
    told = [*(f"{i}: {found.words(i)}" for i in range(10)), "... and 150 more: words(i)"]
    assert found.words().split("\n") == told
    assert known().explain(data()[0][:2]).words().split("\n") == told[:2]


def test_a_row_that_is_wide_because_of_the_band():
    model, (X, _) = known(), data()
    found = model.explain([[0.0, 0.6, 0.0], [0.0, -0.6, 0.0]])
    wide, narrow = found.words(0), found.words(1)
    assert "of the learning data vary much (x" in wide
    assert "mostly because of 'feature 1'" in wide
    assert "of the learning data vary little (x" in narrow
    named = [int(word) for word in wide.replace(",", " ").split("like ")[1].split(" of")[0].split() if word.isdigit()]
    assert (X[named, 1] > 0).all()
    assert len(named) >= 1


def test_a_row_that_lies_off_the_data():
    found = known().explain([[9.0, 9.0, 9.0]])
    assert "lies far from the learning data (support " in found.words(0)
    assert found.support[0] < found.support_limit
    assert found.off_data[0] + found.constant[0] > 0.99 * (found.width - found.added)[0]


def test_a_row_that_is_as_wide_as_the_typical_one():
    model, (X, _) = known(), data()
    found = model.explain(X[:60])
    ratios = np.abs(np.log(found.times_typical))
    i = int(np.argmin(ratios))
    assert ratios[i] < 0.05
    assert found.words(i) == f"This interval is about as wide as the typical one (x{found.times_typical[i]:.3g})."


def test_rows_that_fade_are_typical_too():
    """Calibration has one number for all rows, whatever they count: nothing is wide because of it."""
    model, (X, y) = fitted(), data()
    before = model.explain(X[:5])
    model.update(X, 3 * y, decay=0.95)
    found = model.explain(X[:5])
    assert found.typical_width > 1.5 * before.typical_width
    np.testing.assert_allclose(found.calibration, 0.0, atol=1e-12)


def test_an_interval_that_calibration_makes_a_point():
    X, y = data()
    model = fitted(calibration_size=None)
    points = model.reader_.preprocessor.transform(X)
    reach = model.noise_.lower(points) + model.noise_.upper(points)
    narrowest = X[[int(np.argmin(reach))]]
    q = -float(np.quantile(reach, 0.2)) / 2  # takes off more than the narrowest band is wide
    model.calibration_ = Calibration(np.full(50, q), np.full(50, q))
    found = model.explain(narrowest)
    assert found.width[0] == 0
    assert found.calibration[0] == -np.inf
    assert found.added[0] == pytest.approx(-reach.min(), rel=1e-9)
    assert found.words(0).startswith("This interval is a single point")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_scale": 1e-8}, "base_scale, band and calibration sum to"),
        ({"calibration": np.nan}, "base_scale, band and calibration sum to nan in row 0"),
        ({"features": 1e-8}, "features sum to"),
        ({"added": 1e-8}, "landmarks, constant, off_data and added sum to"),
        ({"landmarks": 1e-8}, "landmarks, constant, off_data and added sum to"),
    ],
)
def test_parts_that_do_not_sum_are_refused(changes, message):
    found = known().explain(new_rows()[:3])
    ((name, error),) = changes.items()
    with pytest.raises(ValueError, match=message):
        replace(found, **{name: getattr(found, name) + error})
    assert replace(found) is not found


def test_rows_and_models_that_cannot_be_explained():
    X, y = data()
    with pytest.raises(NotCalibratedError, match="this SoSBandRegressor needs a calibration"):
        fitted(calibration_size=None).explain(X)
    model = known()
    found = model.explain(X[:2])
    for i in (2, -3, "a", 0.5):
        with pytest.raises(ValueError, match=r"i=.*: expected the number of a row, below 2"):
            found.words(i)
    assert found.words(-1) == found.words(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"confidence_level=0.999 has the width inf"):
            model.explain(X, 0.999)
    with pytest.raises(ValueError, match="confidence_level"):
        model.explain(X, 1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = SoSBandRegressor(LinearRegression(), **FIXED).fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="has the width 0"):
        exact.explain(X)
