"""Saving and loading: the same predictions bit by bit, nothing trusted by default, clear errors for bad files."""

import copy
import json
import os
import pickle
import re
import stat
import subprocess
import sys
import warnings
import zipfile
from contextlib import nullcontext

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import sosbands
from attack.model_files import closed, node, opened, with_schema
from sosbands import SmoothingSplineRegressor, SoSBandRegressor, load
from sosbands.baselines import HomoscedasticGP, SplitCP
from sosbands.exceptions import ModelFileError, NotCalibratedError, SosbandsWarning, UntrustedTypesError
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.regressors.parameters import PAPER_SETTINGS
from sosbands.saving import container, files, foreign, own_types
from sosbands.saving.loaded_trees import check_trees

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (1 + X[:, 1]) * RNG.exponential(size=60)
X_NEW = RNG.uniform(-1, 1, (40, 2))
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}


def sine(X):
    return np.sin(X[:, 0])


def rbf(X, Z):
    return np.exp(-np.square(X[:, None] - Z[None]).sum(axis=2))


def gp_pipeline():
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    return make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, optimizer=None)).fit(X, Y)


@pytest.fixture(scope="module")
def model():
    return SoSBandRegressor(LinearRegression(), **FAST).fit(X, Y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.sosbands"


def assert_same(loaded, model, X_new=X_NEW, **options):
    """Bit-identical predictions, intervals at several levels, support and words."""
    assert type(loaded) is type(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        for method, args in (("predict", ()), ("predict_interval", ([0.5, 0.9],)), ("support", ())):
            keywords = options if method == "predict_interval" else {}
            found, expected = (getattr(each, method)(X_new, *args, **keywords) for each in (loaded, model))
            assert np.array_equal(found, expected), method
    assert loaded.summary() == model.summary()
    assert np.array_equal(loaded.scores_, model.scores_)
    assert loaded.get_params().keys() == model.get_params().keys()


MODELS = {
    "default of few rows": {"max_seconds": 5, **dict.fromkeys(PAPER_SETTINGS, "auto")},
    "process": {"estimator": GaussianProcess()},
    "forest": {"estimator": RandomForestRegressor(5, random_state=0)},
    "boosting": {"estimator": HistGradientBoostingRegressor(max_iter=5, random_state=0)},
    "boosting of stages": {"estimator": GradientBoostingRegressor(n_estimators=5, random_state=0)},
    "base scales": {"estimator": LinearRegression(), "base_scale": "forest", "noise_features": "prediction"},
    "spline": {"estimator": SmoothingSplineRegressor()},
    "frozen GP pipeline": {"estimator": FrozenEstimator(gp_pipeline())},
    "pipeline": {"estimator": make_pipeline(PolynomialFeatures(2), LinearRegression())},
    "kernel object": {"estimator": LinearRegression(), "kernel": 2.0 * Matern(1.5, nu=1.5)},
    "two lengthscales": {"estimator": LinearRegression(), "lengthscale": {"lower": 1.0, "upper": [2.0, 0.5]}},
    "nested bands": {"estimator": LinearRegression(), "nested_coverages": [0.5, 0.9]},
    "operator pair": {"estimator": LinearRegression(), "symmetry_kind": "operator", "symmetry_penalty": (0.1, 1.0)},
    "symmetric limit": {"estimator": LinearRegression(), "symmetry_penalty": np.inf, "calibration": "asymmetric"},
    "transformer": {"estimator": LinearRegression(), "preprocessor": PolynomialFeatures(2)},
    "no preprocessor": {"estimator": LinearRegression(), "preprocessor": None, "rank": 10},
    "random state": {"estimator": LinearRegression(), "random_state": np.random.RandomState(3)},
    "log target": {"estimator": TransformedTargetRegressor(LinearRegression(), func=np.arcsinh, inverse_func=np.sinh)},
}


@pytest.mark.parametrize("name", MODELS)
def test_loaded_models_predict_bit_identically(name, path):
    columns = slice(0, 1) if name == "spline" else slice(None)
    model = SoSBandRegressor(**{**FAST, **MODELS[name]}).fit(X[:, columns], Y)
    model.save(path)
    assert_same(load(path), model, X_NEW[:, columns])


def test_the_comparison_rejects_another_model(model, path):
    model.save(path)
    other = SoSBandRegressor(LinearRegression(), **{**FAST, "random_state": 1}).fit(X, Y)
    with pytest.raises(AssertionError):
        assert_same(load(path), other)


@pytest.mark.parametrize("labels", [np.arange(60) % 3, np.array(["b", "a", "c"])[np.arange(60) % 3]])
def test_groups_and_weights_are_saved(labels, path):
    model = SoSBandRegressor(LinearRegression(), calibration_size=None, **FAST).fit(X, Y)
    rng = np.random.default_rng(5)
    X_cal, y_cal = rng.uniform(-1, 1, (60, 2)), rng.standard_normal(60)
    model.conformalize(X_cal, y_cal, groups=labels, likelihood_ratio=np.exp(X_cal[:, 0]))
    model.save(path)
    assert_same(load(path), model, groups=labels[:40], likelihood_ratio=np.exp(X_NEW[:, 0]))


def test_a_model_without_calibration_is_saved_without(path):
    SoSBandRegressor(LinearRegression(), calibration_size=None, **FAST).fit(X, Y).save(path)
    loaded = load(path)
    with pytest.raises(NotCalibratedError):
        loaded.predict_interval(X_NEW)
    with pytest.warns(sosbands.exceptions.LearningRowsWarning, match="60 of the 60 rows"):
        loaded.conformalize(X, Y)


def test_features_shared_by_both_bands_are_stored_once(model, path):
    assert model.lower_.features is model.upper_.features
    model.save(path)
    loaded = load(path)
    assert loaded.lower_.features is loaded.upper_.features


def test_feature_names_are_saved(path):
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    SoSBandRegressor(LinearRegression(), **FAST).fit(frame, Y).save(path)
    loaded = load(path)
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["b", "a"]])


@pytest.mark.parametrize("copy", [lambda m: pickle.loads(pickle.dumps(m)), None], ids=["pickle", "joblib"])
def test_pickle_and_joblib(copy, model, path):
    if copy is None:
        joblib.dump(model, path)
    assert_same(copy(model) if copy else joblib.load(path), model)


def test_pickle_takes_functions():
    model = SoSBandRegressor(sine, kernel=rbf, **FAST).fit(X, Y)
    assert_same(pickle.loads(pickle.dumps(model)), model)


# ---------------------------------------------------------------- trust

TREE = "sklearn.tree._tree.Tree"
REMAINDER = "sklearn.compose._column_transformer._RemainderColsList"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def small_blend():
    """All members that the default point model may have, with few trees; the pull keeps every one."""
    members = [
        make_pipeline(StandardScaler(), RidgeCV()),
        GaussianProcess(),
        ExtraTreesRegressor(5, random_state=0),
        RandomForestRegressor(5, random_state=0),
        HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, random_state=0),
    ]
    return ModelBlend(members, cv=2, equal_rows=1e9, random_state=0)


@pytest.fixture(scope="module")
def blended():
    return SoSBandRegressor(small_blend(), **{**FAST, "base_scale": "both", "noise_features": "prediction"}).fit(X, Y)


def test_the_members_of_the_default_need_no_trust(blended, path):
    assert len(blended.estimator_.members_) == 5
    assert blended.size_forest_ is not None
    blended.save(path)
    assert_same(load(path), blended)


def test_the_default_needs_no_trust(path):
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (120, 2))
    model = SoSBandRegressor(max_seconds=2, random_state=0).fit(rows, rows[:, 0] + rng.exponential(size=120))
    assert type(model.estimator_) is ModelBlend
    model.save(path)
    assert_same(load(path), model)


def test_boosting_with_categories_is_refused_until_named(path):
    codes = np.column_stack([X[:, 0], np.arange(60) % 3])
    estimator = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, categorical_features=[1], random_state=0)
    model = SoSBandRegressor(estimator, **FAST).fit(codes, Y + codes[:, 1])
    assert any(tree.nodes["is_categorical"].any() for (tree,) in model.estimator_._predictors)
    model.save(path)
    with pytest.raises(UntrustedTypesError) as caught:
        load(path)
    call = str(caught.value).split("accept them by ")[1]
    types = ["functools.partial", PREDICTOR, "sklearn.utils.validation.check_array"]
    assert call == f"sosbands.load({str(path)!r}, trusted={types!r})"
    with pytest.raises(UntrustedTypesError):
        load(path, trusted=["another.Type"])
    assert_same(eval(call, {"sosbands": sosbands}), model, codes)  # the message says what works


def test_the_allow_list_holds_full_names_of_classes_and_no_functions():
    for full in foreign.TRUSTED:
        module, _, name = full.rpartition(".")
        known = full in ("numpy.dtype", TREE, PREDICTOR, REMAINDER)
        assert known or module.startswith(("sosbands.", "sklearn.gaussian_process.kernels"))
        found = getattr(__import__(module, fromlist=[name]), name, None)
        assert isinstance(found, type) or (found is None and full == REMAINDER)  # only some versions have it


def test_files_know_types_of_the_package_by_name():
    assert own_types.name_of(SoSBandRegressor) == "SoSBandRegressor"
    assert own_types.name_of(GaussianProcess) == "GaussianProcess"
    assert own_types.name_of(SplitCP) == "SplitCP"  # without a list: an interval regressor that a room offers
    assert own_types.name_of(LinearRegression) is None
    assert own_types.type_named("SplitCP") is SplitCP
    assert own_types.type_named("ModelBlend") is ModelBlend
    for name in ("METHODS", "make_method", "os.system", "SplitRegressor", ""):
        assert own_types.type_named(name) is None
    for name in own_types.HOMES:
        assert own_types.name_of(own_types.type_named(name)) == name


class MyBands(SoSBandRegressor):
    """A user's own regressor; it has the constructor of ours."""


def test_a_regressor_of_the_user_must_be_trusted_by_name(path):
    model = MyBands(LinearRegression(), **FAST).fit(X, Y)
    model.save(path)
    with pytest.raises(UntrustedTypesError) as caught:
        load(path)
    assert caught.value.types == (f"{__name__}.MyBands",)
    assert_same(load(path, trusted=caught.value.types), model)


def test_notes_of_the_user_are_saved(model, path):
    noted = copy.deepcopy(model)
    noted.note_ = {"unit": "days", "limits": (0.0, np.inf), "names": np.array(["a", "bcd"]), "since": [None, True]}
    noted.dates_ = np.array(["2024-02-29"], dtype="datetime64[D]")
    noted.save(path)
    loaded = load(path)
    assert loaded.note_["names"].tolist() == ["a", "bcd"]
    assert loaded.note_["names"].dtype == np.dtype("U3")
    assert {**loaded.note_, "names": 0} == {**noted.note_, "names": 0}
    assert loaded.dates_.tolist() == noted.dates_.tolist()
    noted.predict = "not a method any more"
    with pytest.raises(ValueError, match="cannot be saved, because no file can hold it: .*no field 'predict'"):
        noted.save(path)


def test_a_model_of_this_package_alone_needs_no_skops(path):
    HomoscedasticGP(random_state=0).fit(X, Y).save(path)
    code = f"import sosbands, sys; sosbands.load({str(path)!r}); print('skops' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_baseline_is_read_by_a_process_that_has_not_imported_it(path):
    SplitCP(LinearRegression(), random_state=0).fit(X, Y).save(path)
    code = f"import sosbands; print(type(sosbands.load({str(path)!r})).__name__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "SplitCP"


class Recorder:
    """Stands for code that an attacker puts into a file."""

    def __init__(self):
        self.value = 1


def test_a_foreign_class_is_never_made(path, monkeypatch):
    model = SoSBandRegressor(LinearRegression(), **FAST).fit(X, Y)
    model.note_ = Recorder()
    model.save(path)
    monkeypatch.setattr(Recorder, "__new__", lambda _cls: pytest.fail("made while loading"))
    with pytest.raises(UntrustedTypesError, match="Recorder"):
        load(path)


@pytest.mark.parametrize("trusted", ["sklearn.tree._tree.Tree", True, [1], [TREE, None]])
def test_trusted_must_be_names(trusted, model, path):
    model.save(path)
    with pytest.raises(ValueError, match=r"trusted=.*: expected a sequence of full type names"):
        load(path, trusted)


# ---------------------------------------------------------------- what cannot be saved


def test_functions_are_refused_with_the_reason(path):
    with pytest.raises(ValueError, match=r"estimator=<function sine.*cannot be saved, because.*code"):
        SoSBandRegressor(sine, **FAST).fit(X, Y).save(path)
    with pytest.raises(ValueError, match=r"kernel=<function rbf.*cannot be saved, because.*code"):
        SoSBandRegressor(LinearRegression(), kernel=rbf, **FAST).fit(X, Y).save(path)
    local = FunctionTransformer(lambda X: 2 * X)
    with pytest.raises(ValueError, match=r"holds \[.*<lambda>'\], which cannot be saved, because.*by name"):
        SoSBandRegressor(LinearRegression(), preprocessor=local, **FAST).fit(X, Y).save(path)
    assert os.listdir(path.parent) == []


def test_local_functions_are_refused(path):
    def double(X):
        return 2 * X

    model = SoSBandRegressor(LinearRegression(), preprocessor=FunctionTransformer(double), **FAST).fit(X, Y)
    with pytest.raises(ValueError, match="double'], which cannot be saved"):
        model.save(path)


def test_only_fitted_models_are_saved(path):
    with pytest.raises(sosbands.exceptions.NotFittedError, match="not fitted yet"):
        SoSBandRegressor().save(path)


# ---------------------------------------------------------------- atomic saving


@pytest.mark.parametrize("broken", ["write", "replace"])
def test_a_failure_in_the_middle_leaves_the_old_file(broken, model, path, monkeypatch):
    model.save(path)
    before = path.read_bytes()

    def half(file, *_):
        file.write_bytes(b"half a model")
        raise OSError("disk full")

    def fail(*_):
        raise OSError("disk full")

    if broken == "write":
        monkeypatch.setattr(container, "write", half)
    else:
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_saving_replaces_follows_links_and_respects_the_umask(model, path):
    path.write_text("old")
    link = path.with_name("link")
    link.symlink_to(path)
    model.save(str(link))
    assert link.is_symlink()
    assert_same(load(link), model)
    other = path.with_name("plain")
    other.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_a_missing_directory_and_a_directory_are_named(model, tmp_path):
    for target in (tmp_path / "nowhere" / "model", tmp_path):
        with pytest.raises(FileNotFoundError, match="path=.*expected a file name in a directory that exists"):
            model.save(target)


# ---------------------------------------------------------------- bad files


def reformatted(number, version="9.1"):
    """The same file with another format number and version."""

    def spoil(path):
        arrays, facts = opened(path.read_bytes())
        path.write_bytes(closed(arrays, {**facts, "format": number, "sosbands": version}))

    return spoil


def truncated(path):
    path.write_bytes(path.read_bytes()[:-200])


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damaged(path):
    data = bytearray(path.read_bytes())
    data[-200] ^= 255
    path.write_bytes(data)


def foreign_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")


BAD_FILES = {
    "truncated": (truncated, "not a model file of sosbands, or cut short"),
    "cut in half": (cut_in_half, "not a model file of sosbands, or cut short"),
    "damaged": (damaged, "damaged, its checksum is wrong"),
    "foreign zip": (foreign_zip, "not a model file of sosbands.*an archive, as sosbands wrote models up to format 3"),
    "foreign skops": (lambda p: skops.io.dump(LinearRegression(), p), "not a model file of sosbands"),
    "random bytes": (lambda p: p.write_bytes(np.random.default_rng(0).bytes(5000)), "not a model file of sosbands"),
    "empty": (lambda p: p.write_bytes(b""), "not a model file of sosbands"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps({"format": 1})), "not a model file of sosbands"),
    "newer": (
        reformatted("5"),
        "written by sosbands 9.1 in format 5; this version reads formats up to 4: upgrade sosbands",
    ),
    "older": (
        reformatted("1", "0.1.0"),
        "written by sosbands 0.1.0 in format 1, which this version does not read .* fit the model again, or use it",
    ),
    **{
        f"format {number}": (reformatted(number), f"not a model file of sosbands, its format is {number!r}")
        for number in ("0", "-1", "4.0", "inf", "nan", "", "x")
    },
    "format beyond all bounds": (reformatted("9" * 5000), "not a model file of sosbands, its format is '999"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_give_clear_errors(name, model, path):
    spoil, message = BAD_FILES[name]
    model.save(path)
    spoil(path)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match="model.sosbands'?: no such file"):
        load(path)


def test_another_object_in_our_clothes_is_refused(path):
    files.save(GaussianProcess().fit(X, Y), path)
    with pytest.raises(ModelFileError, match="holds a GaussianProcess, expected a model that predicts intervals"):
        load(path)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_arrays_of_other_numbers_than_declared_are_refused(dtype, model, path):
    model.save(path)
    arrays, facts = opened(path.read_bytes())
    objects = json.loads(arrays[files.MODEL].tobytes())
    (band,) = [each for each in objects if each["type"] == "SoSFunction"][:1]
    name = f"arrays/{band['fields']['B']['name']}"
    arrays[name] = arrays[name].astype(dtype)
    path.write_bytes(closed(arrays, facts))
    with pytest.raises(
        ModelFileError, match=f"B of SoSFunction is an array of {np.dtype(dtype)}, expected an array of float64"
    ):
        load(path)


LATER = ("inner_places", "nested_coverages", "nested_", "nested_steps_", "nested_certificates_")


def test_files_from_before_distributions_are_read(model, path):
    """Everything else is as it was; what quantiles need is asked for."""
    model.save(path)
    arrays, facts = opened(path.read_bytes())
    objects = json.loads(arrays[files.MODEL].tobytes())
    for each in objects:
        each["fields"] = {name: value for name, value in each["fields"].items() if name not in LATER}
    arrays[files.MODEL] = np.frombuffer(json.dumps(objects).encode(), dtype=np.uint8)
    path.write_bytes(closed(arrays, facts))
    loaded = load(path)
    assert_same(loaded, model)
    assert "crps" not in loaded.evaluate(X_NEW, np.zeros(len(X_NEW)))
    with pytest.raises(ValueError, match="which an earlier version made, keeps no places inside the band"):
        loaded.predict_quantile(X_NEW, 0.5)


@pytest.mark.parametrize(("kind", "many"), [("a subclass of the reader", 5_000_000), ("deep", 0)])
def test_texts_that_hold_too_much_are_refused_before_they_are_read(kind, many):
    text = b"[" + b"[]," * many + b"[]]" if many else b"[" * 5000 + b"]" * 5000
    with pytest.raises(
        ModelFileError, match="more values than its size justifies" if many else "RecursionError|nested"
    ):
        container.parsed(text, kind)


# ---------------------------------------------------------------- forged trees


def forest_of(model):
    """The decision tree that is forged."""
    return model.estimator_.members_[2].estimators_[1]


def boosting_of(model):
    return model.estimator_.members_[4]


def node_of(model, name, value, place=0):
    """Write into a node of a tree of histogram gradient boosting."""
    boosting_of(model)._predictors[2][0].nodes[name][place] = value


def leaf_of(model):
    return int(np.flatnonzero(forest_of(model).tree_.children_left < 0)[0])


def without_columns(model):
    del forest_of(model).n_features_in_


def for_two_owners(model):
    """A pipeline that gives the checked tree of a forest rows that nothing checks."""
    model.estimator_.members_[0] = make_pipeline(StandardScaler(), forest_of(model).tree_)


COLUMN, CHILD = "splits a column that does not exist", "a child that is no later node"
FORGED = {
    "feature": (lambda m: forest_of(m).tree_.feature.__setitem__(0, 2), COLUMN),
    "negative feature": (lambda m: forest_of(m).tree_.feature.__setitem__(0, -3), COLUMN),
    "left child": (lambda m: forest_of(m).tree_.children_left.__setitem__(0, 10**9), CHILD),
    "right child": (lambda m: forest_of(m).tree_.children_right.__setitem__(0, -(10**9)), CHILD),
    "endless": (lambda m: forest_of(m).tree_.children_left.__setitem__(0, 0), CHILD),
    "shared child": (
        lambda m: forest_of(m).tree_.children_right.__setitem__(0, forest_of(m).tree_.children_left[0]),
        "a node that is no child, or that of several",
    ),
    "half a leaf": (lambda m: forest_of(m).tree_.children_right.__setitem__(leaf_of(m), 1), "half a leaf"),
    "depth": (lambda m: setattr(forest_of(m).tree_, "max_depth", 1), "deeper than it says"),
    "columns": (lambda m: setattr(forest_of(m), "n_features_in_", 1), "other columns than its model checks"),
    "no columns": (without_columns, "other columns than its model checks"),
    "size forest": (lambda m: m.size_forest_.estimators_[7].tree_.feature.__setitem__(0, 3), COLUMN),
    "in an array": (
        lambda m: setattr(m, "note_", np.array([forest_of(m).tree_, None], dtype=object)),
        "belongs to no model of trees",
    ),
    "two owners": (for_two_owners, "belongs to no model of trees"),
    "predictor alone": (
        lambda m: setattr(m, "note_", {"a": (boosting_of(m)._predictors[0][0],)}),
        "belongs to no model of trees",
    ),
    "boosting feature": (lambda m: node_of(m, "feature_idx", 2), COLUMN),
    "boosting child": (lambda m: node_of(m, "left", 2**32 - 1), CHILD),
    "boosting loop": (lambda m: node_of(m, "right", 0), CHILD),
    "boosting leaf": (lambda m: node_of(m, "is_leaf", 0, -1), COLUMN + "|" + CHILD),
    "boosting categories": (lambda m: node_of(m, "is_categorical", 1), "categories of a column of numbers"),
    "boosting columns": (lambda m: setattr(boosting_of(m), "n_features_in_", 1), "bins of other columns"),
    "boosting bins": (
        lambda m: setattr(boosting_of(m)._bin_mapper, "is_categorical_", np.zeros(1, dtype=np.uint8)),
        "bins without columns",
    ),
    "boosting preprocessor": (
        lambda m: setattr(boosting_of(m), "_preprocessor", StandardScaler().fit(X)),
        "a preprocessor, whose columns are unknown",
    ),
    "boosting in fit": (lambda m: setattr(boosting_of(m), "_in_fit", True), "in the middle of its fit"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_trees_are_refused(name, blended, path):
    forge, message = FORGED[name]
    model = copy.deepcopy(blended)
    model.size_forest_.estimators_ = model.size_forest_.estimators_[:8]  # of 100
    forge(model)
    model.save(path)
    for trusted in ((), (TREE,)):
        with pytest.raises(ModelFileError, match=message) as caught:
            load(path, trusted)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(("bits", "fine"), [((3, 8), True), ((0, 8), False), ((3, 7), False)])
def test_forged_categories_are_refused(bits, fine):
    codes = np.column_stack([X[:, 0], np.arange(60) % 3])
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5, categorical_features=[1], random_state=0)
    model.fit(codes, Y + codes[:, 1])
    tree = next(tree for (tree,) in model._predictors if tree.nodes["is_categorical"].any())
    tree.raw_left_cat_bitsets = np.zeros(bits, dtype=np.uint32)
    with nullcontext() if fine else pytest.raises(ModelFileError, match="too few categories"):
        check_trees(model, trusts_preprocessors=True)


@pytest.mark.parametrize(("number", "fine"), [(0, False), (1, False), (10**9, True)])
def test_a_forged_number_of_nodes_is_refused_or_corrected(number, fine, path):
    model = SoSBandRegressor(RandomForestRegressor(2, random_state=0), **FAST).fit(X, Y)
    model.save(path)
    forged = json.dumps(node("JsonNode", content=f"{number}"))

    def forge(schema):
        text, count = re.subn(r'"node_count": \{[^}]*\}', f'"node_count": {forged}', json.dumps(schema), count=1)
        assert count == 1
        return text.encode()

    path.write_bytes(with_schema(path.read_bytes(), forge))
    if fine:  # scikit-learn takes the number of nodes that there are for one that is too large
        assert_same(load(path), model)
        return
    with pytest.raises(ModelFileError, match="another number of nodes than it says"):
        load(path)
