"""The baselines as scikit-learn's users know them: checks, tables, parameters, names."""

import inspect
import pickle
import re
import subprocess
import sys
from functools import cache

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_checks import expected_failures
from sosbands import load
from sosbands.baselines import (
    COMMON,
    METHODS,
    GradientBoostingCQR,
    HomoscedasticGP,
    LocallyWeightedCP,
    QuantileForestCQR,
    SplitCP,
    make_method,
)
from sosbands.conformal import interval
from sosbands.exceptions import LearningRowsWarning, NotCalibratedError, UntrustedTypesError
from sosbands.metrics import evaluate_intervals
from sosbands.metrics.distribution import ensemble_crps
from sosbands.regressors.split import SplitRegressor
from sosbands.tables.rows import table_of_numbers

RNG = np.random.default_rng(3)
N = 80
X = RNG.uniform(-1, 1, (N, 2))
Y = np.sin(2 * X[:, 0]) + (1.2 + X[:, 1]) * RNG.standard_normal(N)
X_NEW = RNG.uniform(-0.9, 0.9, (30, 2))
Y_NEW = np.sin(2 * X_NEW[:, 0]) + (1.2 + X_NEW[:, 1]) * RNG.standard_normal(30)

# Settings under which every baseline fits in milliseconds.
FAST = {
    "cqr-forest": {"n_estimators": 10},
    "cqr-boosting": {"max_iter": 10},
    "split": {"estimator": Ridge()},
    "local": {"estimator": Ridge(), "scale_estimator": DecisionTreeRegressor(min_samples_leaf=5, random_state=0)},
}


def fast(name, **settings):
    if name == "cqr-forest":
        pytest.importorskip("quantile_forest", reason="it needs quantile-forest: pip install sosbands[baselines]")
    return make_method(name, **{"random_state": 0, "calibration_size": 0.5, **FAST.get(name, {}), **settings})


# ---------------------------------------------------------------- true scikit-learn estimators

# One instance of each class, with few trees, iterations or folds.
CHECKED = [
    QuantileForestCQR(n_estimators=10),
    GradientBoostingCQR(max_iter=10),
    HomoscedasticGP(),
    SplitCP(Ridge()),
    LocallyWeightedCP(Ridge(), DecisionTreeRegressor(min_samples_leaf=3, random_state=0), cv=2),
]
CHECKED += [cls() for cls in METHODS.values() if cls not in map(type, CHECKED)]
FURTHER = [
    HomoscedasticGP(conformal_score="normalized", calibration="asymmetric"),
    SplitCP(),
    SplitCP(HistGradientBoostingRegressor(max_iter=30)),
]
for each in (*CHECKED, *FURTHER):  # some checks fit 10 rows, of which "auto" leaves too few to learn from
    each.set_params(calibration_size=0.5)


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.every_configuration
@parametrize_with_checks(FURTHER, expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_further_configurations(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", METHODS)
def test_the_constructor_only_stores(name):
    given = {parameter: object() for parameter in METHODS[name]._get_param_names()}
    assert vars(METHODS[name](**given)) == given


HOUSE = {
    "confidence_level": 0.9,
    "calibration": "symmetric",
    "calibration_size": "auto",
    "random_state": None,
    "verbose": 0,
}


@pytest.mark.parametrize("name", METHODS)
def test_parameters_are_documented_and_have_the_defaults_of_the_house(name):
    signature, words = inspect.signature(METHODS[name]).parameters, METHODS[name].__doc__
    for parameter in signature:
        assert re.search(rf"\b{parameter}( :|,)|, {parameter}\b", words), parameter
    assert {key: value.default for key, value in signature.items()}.items() >= HOUSE.items()


@cache
def fitted(name):
    """A model that several tests ask, and none changes."""
    return fast(name).fit(X, Y)


@pytest.mark.parametrize("name", METHODS)
def test_same_interface_and_reproducible(name, capfd):
    model = fitted(name)
    assert isinstance(model, SplitRegressor)
    again = clone(model).fit(X, Y)
    assert capfd.readouterr() == ("", "")  # silent by default
    ends = model.predict_interval(X_NEW, [0.8, 0.9])
    assert np.array_equal(again.predict_interval(X_NEW, [0.8, 0.9]), ends)
    assert (np.diff(ends, axis=1) > 0).mean() > 0.9
    assert (ends[:, 0, 1] <= ends[:, 0, 0]).all()  # nested in the level
    assert (ends[:, 1, 1] >= ends[:, 1, 0]).all()
    assert len(model.learning_rows_) == len(model.calibration_rows_) == N // 2
    row = model.evaluate(X_NEW, Y_NEW)
    lower, upper = ends[:, :, 1].T
    learn = X[model.learning_rows_]
    expected = evaluate_intervals(Y_NEW, lower, upper, confidence_level=0.9, X=X_NEW, X_learn=learn)
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert row.keys() - expected.keys() == {"crps", "pit_distance"}  # of the distribution
    assert row["crps"] == pytest.approx(np.mean(ensemble_crps(Y_NEW, model.predict_ensemble(X_NEW))), rel=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_a_later_change_of_a_parameter_does_not_part_band_and_calibration(name):
    """The band before calibration is that of fit: intervals at a level do not depend on the default level."""
    model = fast(name).fit(X, Y)
    before = model.predict_interval(X_NEW, 0.8)
    later = {"confidence_level": 0.5, "conformal_score": "normalized", "quantiles": (0.3, 0.4), "min_scale": 1.0}
    model.set_params(**{key: value for key, value in later.items() if key in model.get_params(deep=False)})
    assert np.array_equal(model.predict_interval(X_NEW, 0.8), before)


@pytest.mark.parametrize("name", METHODS)
def test_calibration_by_other_rows(name):
    model = fast(name, calibration_size=None, calibration="asymmetric").fit(X, Y)
    with pytest.raises(NotCalibratedError):
        model.predict_interval(X_NEW)
    with pytest.warns(LearningRowsWarning, match=f"{N} of the {N} rows"):
        model.conformalize(X, Y)
    assert model.conformalize(X_NEW, Y_NEW).scores_.shape == (30, 2)


@pytest.mark.parametrize("name", METHODS)
def test_blocks_of_rows_and_prediction_with_intervals_do_not_change_the_numbers(name, monkeypatch):
    model = fitted(name)
    center, ends = model.predict(X_NEW), model.predict_interval(X_NEW, 0.8)
    by_hand, _ = interval(model.told(X_NEW).band, *np.broadcast_to(model.quantile(0.8), 2))
    assert np.array_equal(by_hand, ends)
    for rows in (30, 7):  # in one piece, and in several
        monkeypatch.setattr("sosbands.tables.rows.BLOCK_ROWS", rows)
        found = model.intervals(X_NEW, 0.8)
        np.testing.assert_allclose(found.prediction, center, rtol=1e-9)
        np.testing.assert_allclose(found.ends[:, :, 0], ends, rtol=1e-9)
        assert np.array_equal(found.prediction, model.predict(X_NEW))


def assert_same(copy, model):
    assert type(copy) is type(model)
    assert np.array_equal(copy.predict(X_NEW), model.predict(X_NEW))
    assert np.array_equal(copy.predict_interval(X_NEW, [0.8, 0.9]), model.predict_interval(X_NEW, [0.8, 0.9]))
    assert np.array_equal(copy.scores_, model.scores_)
    assert copy.get_params().keys() == model.get_params().keys()


@pytest.mark.parametrize("name", METHODS)
def test_files_pickles_and_memory_maps_give_the_same_model(name, tmp_path):
    model, path, trusted = fitted(name), tmp_path / "model.sosbands", []
    model.save(path)
    if name == "cqr-forest":  # a forest of another package, whose types must be named
        with pytest.raises(UntrustedTypesError, match="not trusted") as refused:
            load(path)
        trusted = re.findall(r"'([\w.]+)'", str(refused.value).split("not trusted: ")[1].split("]")[0])
        assert trusted
        assert not [full for full in trusted if full.startswith("sosbands")]
    assert_same(load(path, trusted=trusted), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    joblib.dump(model, tmp_path / "model")
    assert_same(joblib.load(tmp_path / "model", mmap_mode="r"), model)
    with pytest.raises(AssertionError):
        assert_same(clone(model).set_params(random_state=1).fit(X, Y), model)


# ---------------------------------------------------------------- names


def test_methods_by_name():
    assert set(METHODS) >= {"cqr-forest", "cqr-boosting", "gp", "split", "local"}
    assert "sos" not in METHODS
    model = make_method("local", estimator=Ridge(2.0), n_jobs=2, calibration="asymmetric", min_scale=0.2)
    assert isinstance(model, LocallyWeightedCP)
    assert (model.estimator.alpha, model.n_jobs, model.calibration, model.min_scale) == (2.0, 2, "asymmetric", 0.2)


@pytest.mark.parametrize("name", METHODS)
def test_common_settings_serve_every_method(name):
    given = make_method(name, **dict.fromkeys(COMMON, "something")).get_params(deep=False)
    assert {key for key, value in given.items() if value == "something"} == set(COMMON) & given.keys()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sos", {}, "name='sos': expected one of"),
        ("split", {"estimater": None}, "'split' has no setting 'estimater': expected some of .*'estimator'"),
        ("gp", {"n_estimators": 3}, "'gp' has no setting 'n_estimators'"),
    ],
)
def test_unknown_names_are_explained(name, settings, message):
    with pytest.raises(ValueError, match=message):
        make_method(name, **settings)


# ---------------------------------------------------------------- parameters


COMMON_BAD = {"confidence_level": 1.0, "calibration": "both", "calibration_size": 0, "random_state": "s", "verbose": -1}
BAD = [
    *((name, {key: bad}, f"{key}={bad!r}: expected") for name in METHODS for key, bad in COMMON_BAD.items()),
    ("cqr-forest", {"n_estimators": 0}, "n_estimators=0: expected an int >= 1"),
    ("cqr-forest", {"min_samples_leaf": 2.5}, "min_samples_leaf=2.5: expected an int >= 1"),
    ("cqr-forest", {"n_jobs": 0}, "n_jobs=0: expected"),
    ("cqr-forest", {"quantiles": (0.9, 0.1)}, r"quantiles=\(0.9, 0.1\): expected None or two increasing levels"),
    ("cqr-boosting", {"quantiles": 0.1}, "quantiles=0.1: expected None or two increasing levels"),
    ("cqr-boosting", {"quantiles": (0.0, 0.5)}, "quantiles=.*: expected None or two increasing levels"),
    ("cqr-boosting", {"max_iter": True}, "max_iter=True: expected an int >= 1"),
    ("gp", {"conformal_score": "sum"}, r"conformal_score='sum': expected one of \['additive', 'normalized'\]"),
    ("gp", {"n_starts": 0}, "n_starts=0: expected an int >= 1"),
    ("local", {"residuals": "leave-one-out"}, r"residuals='leave-one-out' with the point model Ridge.*: expected"),
    ("split", {"estimator": "ridge"}, "estimator='ridge': expected"),
    ("local", {"scale_estimator": Ridge}, "scale_estimator=.*: expected None or a regressor"),
    ("local", {"min_scale": 0}, r"min_scale=0: expected a number in \(0, 1\]"),
]


@pytest.mark.parametrize(("name", "settings", "message"), BAD)
def test_wrong_parameters_are_explained(name, settings, message):
    with pytest.raises(ValueError, match=message):
        fast(name, **settings).fit(X, Y)


def test_a_missing_package_names_the_extra(monkeypatch):
    model = fast("cqr-forest")
    monkeypatch.setitem(sys.modules, "quantile_forest", None)
    with pytest.raises(ImportError, match="pip install quantile-forest"):
        model.fit(X, Y)


def test_verbose_lines(capsys):
    fast("split", verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["[SplitCP] point model Ridge fitted to 40 rows", "[SplitCP] calibrated on 40 rows"]


# ---------------------------------------------------------------- tables


def frame(n, seed=0, gaps=False):
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    rng = np.random.default_rng(seed)
    ward = rng.choice(["north", "south", "west"], n)
    dose = rng.uniform(0, 2, n)
    y = dose * (ward == "north") + (1 + (ward == "west")) * rng.standard_normal(n)
    if gaps:
        dose[::7] = np.nan
    return pandas.DataFrame({"ward": ward, "dose": dose}), y


def words_pipeline(model):
    table = make_column_transformer((OneHotEncoder(), ["ward"]), (StandardScaler(), ["dose"]))
    return make_pipeline(table, model)


def test_split_takes_categories_through_a_pipeline():
    table, y = frame(120)
    model = SplitCP(words_pipeline(LinearRegression()), calibration_size=0.5, random_state=0).fit(table, y)
    learn, held = model.learning_rows_, model.calibration_rows_
    direct = words_pipeline(LinearRegression()).fit(table.iloc[learn], y[learn])
    errors = np.sort(np.abs(y[held] - direct.predict(table.iloc[held])))
    new, _ = frame(20, seed=1)
    center, q = direct.predict(new), errors[int(np.ceil(0.9 * 61)) - 1]
    np.testing.assert_allclose(model.predict_interval(new), np.column_stack([center - q, center + q]), rtol=1e-12)
    assert model.feature_names_in_.tolist() == ["ward", "dose"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(new[["dose", "ward"]])
    with pytest.warns(LearningRowsWarning, match="60 of the 60 rows"):
        model.conformalize(table.iloc[learn], y[learn])
    assert model.conformalize(*frame(50, seed=2)).n_learnt_calibration_rows_ == 0
    assert "worst_set_coverage" not in model.evaluate(*frame(50, seed=3))  # no distances between words


def test_the_default_scale_shares_the_transformers_of_a_pipeline():
    table, y = frame(500)
    model = LocallyWeightedCP(words_pipeline(Ridge()), random_state=0).fit(table, y)
    assert [step for step, _ in model.scale_estimator_.steps] == ["columntransformer", "forest"]
    new = frame(60, seed=1)[0].sort_values("ward")
    widths = np.diff(model.predict_interval(new))[:, 0]
    assert widths[new["ward"] == "west"].mean() > 1.3 * widths[new["ward"] != "west"].mean()  # truth: 2


def test_the_default_scale_takes_gaps_and_categories():
    table, y = frame(500, gaps=True)
    table = table.astype({"ward": "category"})
    point = HistGradientBoostingRegressor(max_iter=10)
    model = LocallyWeightedCP(point, random_state=0).fit(table, y)
    assert isinstance(model.scale_estimator_, HistGradientBoostingRegressor)
    assert isinstance(LocallyWeightedCP(point).fit(X, Y).scale_estimator_, RandomForestRegressor)
    widths = np.diff(model.predict_interval(table))[:, 0]
    assert widths[table["ward"] == "west"].mean() > 1.3 * widths[table["ward"] != "west"].mean()  # truth: 2


def test_boosting_takes_gaps_and_categories():
    table, y = frame(200, gaps=True)
    table = table.astype({"ward": "category"})
    model = GradientBoostingCQR(random_state=0, max_iter=30).fit(table, y)
    direct = HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=30)
    direct.fit(table.iloc[model.learning_rows_], y[model.learning_rows_])
    np.testing.assert_allclose(model.predict(table), direct.predict(table), atol=1e-12)


@pytest.mark.parametrize("name", ["cqr-forest", "gp", "split"])
def test_gaps_are_rejected_where_the_learning_rows_had_none(name):
    with pytest.raises(ValueError, match="contains NaN"):
        fitted(name).predict_interval(np.where(np.arange(2 * N).reshape(N, 2) == 7, np.nan, X))


def test_functions_and_frozen_models_are_used_as_they_are():
    frozen = SplitCP(FrozenEstimator(Ridge().fit(X_NEW, Y_NEW)), random_state=0).fit(X, Y)
    assert np.array_equal(frozen.predict(X_NEW), Ridge().fit(X_NEW, Y_NEW).predict(X_NEW))
    local = LocallyWeightedCP(lambda Z: 2 * Z[:, 0], random_state=0).fit(X, Y)
    assert local.residual_rule_ == "in-sample"
    assert np.array_equal(local.predict(X_NEW), 2 * X_NEW[:, 0])


def test_sparse_tables_are_rejected():
    with pytest.raises(TypeError, match="sparse data are not supported"):
        SplitCP(Ridge()).fit(csr_array(X), Y)


def test_tables_as_numbers():
    table, _ = frame(6, gaps=True)
    found = table_of_numbers(table)
    assert found.shape == (6, 2)
    assert np.isfinite(found).all()
    words = table["ward"].to_numpy()
    assert np.array_equal(found[:, 0][:, None] == found[:, 0], words[:, None] == words)
    assert np.array_equal(found[1:, 1], table["dose"][1:])
    assert (words[0], found[0, 0]) == ("west", 3402289634.0)  # the same in every process
    assert np.array_equal(table_of_numbers(np.array([[1, "a"], [1, "b"]], dtype=object))[:, 0], [1, 1])
    assert table_of_numbers(np.array([[1, "a"], [2, "a"]], dtype=object))[0, 0] == 1.0


def test_importing_the_baselines_is_light():
    code = "import sys, sosbands.baselines; print(sorted({'quantile_forest', 'skops'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_baseline_must_say_how_it_learns():
    model = SplitRegressor()
    vars(model).update(HOUSE)
    with pytest.raises(NotImplementedError):
        model.fit(X, Y)
