"""Saving and loading: the same predictions bit by bit, nothing trusted by default, clear errors for bad files."""

import copy
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from contextlib import nullcontext
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import sosbands
from attack.model_files import closed, node, npy, objects_of, opened, with_planted, with_schema
from sosbands import SmoothingSplineRegressor, SoSBandRegressor, load
from sosbands.bands import BandSettings
from sosbands.baselines import SplitCP
from sosbands.conformal import Calibration
from sosbands.exceptions import ModelFileError, NotCalibratedError, SosbandsWarning, UntrustedTypesError
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.regressors import PAPER_SETTINGS
from sosbands.saving import archive, files, trees
from sosbands.tables import TableEncoder
from sosbands.tuning import Rules

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (1 + X[:, 1]) * RNG.exponential(size=60)
X_NEW = RNG.uniform(-1, 1, (40, 2))
ROUGH = BandSettings(tol=1e-2)
MATERN, FEW = ROUGH.replace(kernel=2.0 * Matern(1.5, nu=1.5)), ROUGH.replace(rank=10)
OPERATOR = BandSettings(tol=1e-2, symmetry_kind="operator")
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "bands": ROUGH, "random_state": 0}


def sine(X):
    return np.sin(X[:, 0])


def rbf(X, Z):
    return np.exp(-np.square(X[:, None] - Z[None]).sum(axis=2))


def gp_pipeline():
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    return make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, optimizer=None)).fit(X, Y)


def learnt(estimator=None, X=X, y=Y, **settings):
    estimator = LinearRegression() if estimator is None else estimator
    return SoSBandRegressor(estimator, **{**FAST, **settings}).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return learnt()


@pytest.fixture
def noted(model):
    """A copy of the model, to which notes can be added."""
    return copy.deepcopy(model)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.sosbands"


def again(model, path, *trusted):
    """The model, from a file of it."""
    model.save(path)
    return load(path, *trusted)


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
    "kernel object": {"estimator": LinearRegression(), "bands": MATERN},
    "two lengthscales": {"estimator": LinearRegression(), "lengthscale": {"lower": 1.0, "upper": [2.0, 0.5]}},
    "nested bands": {"estimator": LinearRegression(), "nested_coverages": [0.5, 0.9]},
    "operator pair": {"estimator": LinearRegression(), "bands": OPERATOR, "symmetry_penalty": (0.1, 1.0)},
    "symmetric limit": {"estimator": LinearRegression(), "symmetry_penalty": np.inf, "calibration": "asymmetric"},
    "transformer": {"estimator": LinearRegression(), "preprocessor": PolynomialFeatures(2)},
    "no preprocessor": {"estimator": LinearRegression(), "preprocessor": None, "bands": FEW},
    "random state": {"estimator": LinearRegression(), "random_state": np.random.RandomState(3)},
    "log target": {"estimator": TransformedTargetRegressor(LinearRegression(), func=np.arcsinh, inverse_func=np.sinh)},
}


@pytest.mark.parametrize("name", MODELS)
def test_loaded_models_predict_bit_identically(name, path):
    columns = slice(0, 1) if name == "spline" else slice(None)
    model = SoSBandRegressor(**{**FAST, **MODELS[name]}).fit(X[:, columns], Y)
    assert_same(again(model, path), model, X_NEW[:, columns])


def test_the_comparison_rejects_another_model(model, path):
    with pytest.raises(AssertionError):
        assert_same(again(model, path), learnt(random_state=1))


@pytest.mark.parametrize("labels", [np.arange(60) % 3, np.array(["b", "a", "c"])[np.arange(60) % 3]])
def test_groups_and_weights_are_saved(labels, path):
    model, rng = learnt(calibration_size=None), np.random.default_rng(5)
    X_cal, y_cal = rng.uniform(-1, 1, (60, 2)), rng.standard_normal(60)
    model.conformalize(X_cal, y_cal, groups=labels, likelihood_ratio=np.exp(X_cal[:, 0]))
    assert_same(again(model, path), model, groups=labels[:40], likelihood_ratio=np.exp(X_NEW[:, 0]))


def test_a_model_without_calibration_is_saved_without(path):
    loaded = again(learnt(calibration_size=None), path)
    with pytest.raises(NotCalibratedError):
        loaded.predict_interval(X_NEW)
    with pytest.warns(sosbands.exceptions.LearningRowsWarning, match="60 of the 60 rows"):
        loaded.conformalize(X, Y)


def test_features_shared_by_both_bands_are_stored_once(model, path):
    for each in (model, again(model, path)):
        assert each.noise_.lower.features is each.noise_.upper.features


def test_feature_names_are_saved(path):
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    loaded = again(learnt(X=frame), path)
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["b", "a"]])


def test_pickle_and_joblib_which_take_functions_too(model, path):
    joblib.dump(model, path)
    assert_same(joblib.load(path), model)
    of_functions = SoSBandRegressor(sine, **{**FAST, "bands": BandSettings(kernel=rbf)}).fit(X, Y)
    for each in (model, of_functions):
        assert_same(pickle.loads(pickle.dumps(each)), each)


# ---------------------------------------------------------------- trust

TREE = "sklearn.tree._tree.Tree"


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
    return learnt(small_blend(), base_scale="both", noise_features="prediction")


def test_the_members_of_the_default_need_no_trust(blended, path):
    assert len(blended.estimator_.members_) == 5
    assert blended.noise_.size_forest is not None
    assert_same(again(blended, path), blended)


def test_boosting_with_categories_is_refused_until_named(path):
    codes = np.column_stack([X[:, 0], np.arange(60) % 3])
    estimator = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, categorical_features=[1], random_state=0)
    model = learnt(estimator, codes, Y + codes[:, 1])
    assert any(tree.nodes["is_categorical"].any() for (tree,) in model.estimator_._predictors)
    model.save(path)
    with pytest.raises(UntrustedTypesError) as caught:
        load(path)
    call = str(caught.value).split("accept them by ")[1]
    types = ["functools.partial", "sklearn.utils.validation.check_array"]
    assert call == f"sosbands.load({str(path)!r}, trusted={types!r})"
    with pytest.raises(UntrustedTypesError):
        load(path, trusted=["another.Type"])
    assert_same(eval(call, {"sosbands": sosbands}), model, codes)  # the message says what works


def test_the_allow_list_holds_full_names_of_classes_and_no_functions():
    for full in archive.TRUSTED:
        module, _, name = full.rpartition(".")
        assert full == "numpy.dtype" or module.startswith("sklearn.")
        found = getattr(__import__(module, fromlist=[name]), name, None)
        assert isinstance(found, type) or name == "_RemainderColsList"  # only some versions have it


def test_files_may_hold_what_models_of_this_package_consist_of():
    for kind in (SoSBandRegressor, GaussianProcess, SplitCP, TableEncoder, Calibration, Rules, trees.PackedForest):
        assert archive.is_own(f"{kind.__module__}.{kind.__qualname__}")
    others = ["os.system", "sosbands.load", "sosbands.bands.learn_bands", "sosbands.comparison.store.LineFile", ""]
    others += ["sosbands.baselines.SplitCP", "sosbands.bands.nowhere.SoSFunction", "sosbandsevil.bands.A", "sosbands"]
    assert not any(map(archive.is_own, others))


class MyBands(SoSBandRegressor):
    """A user's own regressor; it has the constructor of ours."""


def test_a_regressor_of_the_user_must_be_trusted_by_name(path):
    model = MyBands(LinearRegression(), **FAST).fit(X, Y)
    model.save(path)
    with pytest.raises(UntrustedTypesError) as caught:
        load(path)
    assert caught.value.types == (f"{__name__}.MyBands",)
    assert_same(load(path, trusted=caught.value.types), model)


def test_notes_of_the_user_are_saved(noted, path):
    noted.note_ = {"unit": "days", "limits": (0.0, np.inf), "names": np.array(["a", "bcd"]), "since": [None, True]}
    noted.dates_ = np.array(["2024-02-29"], dtype="datetime64[D]")
    loaded = again(noted, path)
    assert loaded.note_["names"].tolist() == ["a", "bcd"]
    assert loaded.note_["names"].dtype == np.dtype("U3")
    assert {**loaded.note_, "names": 0} == {**noted.note_, "names": 0}
    assert loaded.dates_.tolist() == noted.dates_.tolist()
    noted.note_ = {None: 1}
    with pytest.raises(ValueError, match="SoSBandRegressor cannot be saved, because no file can hold it: .*dictionary"):
        noted.save(path)


def test_models_of_the_user_inside_of_objects_of_the_user_are_saved(noted, path):
    noted.note_ = Recorder()
    noted.note_.value = [
        RandomForestRegressor(2, random_state=0).fit(X, Y),
        RandomForestClassifier(3).fit(X, Y > 0),
        DecisionTreeRegressor().fit(X, np.column_stack([Y, X])),
        GradientBoostingClassifier().fit(X, Y > 0),
        BaggingRegressor(DecisionTreeRegressor(), max_features=1, n_estimators=3).fit(X, Y),
        HistGradientBoostingClassifier(max_iter=3).fit(X, np.digitize(Y, [0.5, 1])),
    ]
    types = files.save(noted, path)
    assert types == (f"{__name__}.Recorder",)
    loaded = load(path, types)
    for one, other in zip(loaded.note_.value, noted.note_.value, strict=True):
        assert np.array_equal(one.predict(X_NEW), other.predict(X_NEW))
    assert np.array_equal(loaded.note_.value[0].feature_importances_, noted.note_.value[0].feature_importances_)


def test_a_baseline_is_read_by_a_process_that_has_not_imported_it(path):
    SplitCP(LinearRegression(), random_state=0).fit(X, Y).save(path)
    code = f"import sosbands; print(type(sosbands.load({str(path)!r})).__name__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "SplitCP"


class Recorder:
    """Stands for code that an attacker puts into a file."""

    def __init__(self):
        self.value = 1


def test_a_foreign_class_is_never_made(noted, path, monkeypatch):
    noted.note_ = Recorder()
    noted.save(path)
    monkeypatch.setattr(Recorder, "__new__", lambda _cls: pytest.fail("made while loading"))
    with pytest.raises(UntrustedTypesError, match="Recorder"):
        load(path)


@pytest.mark.parametrize("trusted", ["sklearn.tree._tree.Tree", True, [1], [TREE, None]])
def test_trusted_must_be_names(trusted, model, path):
    model.save(path)
    with pytest.raises(ValueError, match=r"trusted=.*: expected a sequence of full type names"):
        load(path, trusted)


# ---------------------------------------------------------------- what cannot be saved


def double(X):
    return 2 * X


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": sine}, r"estimator=<function sine.*cannot be saved, because.*code"),
        ({"bands": BandSettings(kernel=rbf)}, r"kernel=<function rbf.*cannot be saved, because.*code"),
        (
            {"preprocessor": FunctionTransformer(lambda X: 2 * X)},
            r"holds \[.*<lambda>'\], which cannot be saved, because.*by name",
        ),
        ({"preprocessor": FunctionTransformer(double)}, "double'], which cannot be saved"),
    ],
)
def test_functions_are_refused_with_the_reason(settings, message, path, monkeypatch):
    fitted = learnt(**settings)
    monkeypatch.delattr(sys.modules[__name__], "double")  # as of a function that is defined in another
    with pytest.raises(ValueError, match=message):
        fitted.save(path)
    assert os.listdir(path.parent) == []


def test_only_fitted_models_are_saved(path):
    with pytest.raises(sosbands.exceptions.NotFittedError, match="not fitted yet"):
        SoSBandRegressor().save(path)


def test_a_failure_in_the_middle_leaves_the_old_file(model, path, monkeypatch):
    path.write_text("old")

    def half(file, _):
        with open(file, "wb") as opened:
            opened.write(b"half a model")
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="disk full"):
        model.save(str(path))
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == [path.name]
    for target in (path.with_name("nowhere") / "model", path.parent):
        with pytest.raises(FileNotFoundError, match="path=.*expected a file name in a directory that exists"):
            model.save(target)


# ---------------------------------------------------------------- bad files


def reformatted(**facts):
    """The same file with another first line."""

    def spoil(path):
        path.write_bytes(closed(path.read_bytes().partition(b"\n")[2], **facts))

    return spoil


def cut_after(share):
    """The first part of the same file."""
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def damaged(path):
    data = bytearray(path.read_bytes())
    data[-200] ^= 255
    path.write_bytes(data)


def foreign_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")


BAD_FILES = {
    "truncated": (cut_after(0.99), "not a model file of sosbands, or cut short"),
    "cut in half": (cut_after(0.5), "not a model file of sosbands, or cut short"),
    "damaged": (damaged, "damaged, its checksum is wrong"),
    "foreign zip": (foreign_zip, "not a model file of sosbands"),
    "foreign skops": (lambda p: skops.io.dump(LinearRegression(), p), "not a model file of sosbands"),
    "random bytes": (lambda p: p.write_bytes(np.random.default_rng(0).bytes(5000)), "not a model file of sosbands"),
    "empty": (lambda p: p.write_bytes(b""), "not a model file of sosbands"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps({"format": 1})), "not a model file of sosbands"),
    "newer": (
        reformatted(format=2),
        "written by sosbands 9.1 in format 2; this version reads format 1: upgrade sosbands",
    ),
    **{
        f"format {number!r}": (reformatted(format=number), "not a model file of sosbands, its format is ")
        for number in (0, -1, 4.0, True, np.inf, np.nan, "", "1", None, [1])
    },
    "format beyond all bounds": (reformatted(format="9" * 5000), "not a model file of sosbands"),
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


def test_dataclasses_that_are_not_whole_are_refused(model, path):
    model.save(path)
    good = path.read_bytes()

    def without(name):
        def change(schema):
            for each in objects_of(schema, "sosbands.bands.functions.SoSFunction"):
                del each["content"]["content"][name]

        return change

    for name in ("B", "ridge"):
        path.write_bytes(with_schema(good, without(name)))
        with pytest.raises(ModelFileError, match=f"a SoSFunction without {name}"):
            load(path)
    members = opened(good)
    path.write_bytes(closed(members | {name: npy((2, 2, 2), "<f8", bytes(64)) for name in members if "npy" in name}))
    with pytest.raises(ModelFileError, match="cannot be read .ValueError: B has shape"):
        load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" + b"[]," * 5_000_000 + b"[]]", "more values than its size allows"),
        (b"[" * 5000 + b"]" * 5000, "RecursionError|no model"),
        (b"[]", "no model"),
    ],
    ids=["many", "deep", "list"],
)
def test_schemas_that_hold_too_much_are_refused_before_they_are_read(text, message, model, path):
    model.save(path)
    path.write_bytes(with_schema(path.read_bytes(), lambda _: text))
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_model_of_many_equal_parts_is_saved_without_compression(noted, path):
    noted.note_ = np.zeros(5_000_000)
    assert again(noted, path).note_.shape == noted.note_.shape
    assert path.stat().st_size > noted.note_.nbytes > archive.FLOOR
    noted.note_ = [[0.5] for _ in range(archive.MAX_NODES // 2 + 1)]  # a list and a number each
    assert len(again(noted, path).note_) == len(noted.note_)
    tree = DecisionTreeRegressor(random_state=0).fit(np.arange(2000)[:, None], np.arange(2000) % 2)
    forest = RandomForestRegressor(1).fit([[0], [1]], [0, 1])
    forest.estimators_ = [tree] * 300
    noted.note_ = [forest]
    assert len(again(noted, path).note_[0].estimators_) == 300


SHARED = node("JsonNode", content="1", __id__=5)
TRAPS = {
    "another value": ([SHARED, {**SHARED, "content": "2"}], "a node with two meanings"),
    "another size": ([node("ListNode", "builtins.list", content=[], __id__=5), SHARED], "a node with two meanings"),
    "no node": ([SHARED, {"__id__": 5}], "that cannot be checked"),
    "an alias": ([SHARED, node("CachedNode", __id__=5)], "that cannot be checked"),
    "a tree": ([node("TreeNode", TREE)], "Tree that cannot be checked"),
    "a class": ([node("TypeNode", "sosbands.tuning.rules.Rules")], "made in another way"),
    "nowhere": ([node("BytesNode", "builtins.bytes", file="no", __id__=5)], "data that are missing"),
    "anonymous": ([node("BytesNode", "builtins.bytes", file="schema.json")], "data that are missing or read again"),
    "again": ([node("BytesNode", "builtins.bytes", file="schema.json", __id__=k) for k in (5, 6)], "or read again"),
    "many": ([node("JsonNode", content="1")] * 80_000, "more parts than its size allows"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_odd_nodes_are_refused(name, model, path):
    nodes, message = TRAPS[name]
    model.save(path)
    path.write_bytes(with_planted(path.read_bytes(), node("ListNode", "builtins.list", content=nodes)))
    with pytest.raises(ModelFileError, match=message):
        load(path, (TREE,))


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
    "columns": (lambda m: setattr(forest_of(m), "n_features_in_", 1), "other columns than its model checks"),
    "no columns": (without_columns, "other columns than its model checks"),
    "size forest": (lambda m: m.noise_.size_forest.estimators_[7].tree_.feature.__setitem__(0, 3), COLUMN),
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


@pytest.mark.parametrize("name", ["in an array", "in a pipeline", "predictor"])
def test_trees_that_no_model_owns_are_not_saved(name, blended, path):
    """Nothing would check the rows that they are given."""
    model = copy.deepcopy(blended)
    if name == "predictor":
        model.note_ = {"a": (boosting_of(model)._predictors[0][0],)}
    elif name == "in an array":
        model.note_ = np.array([forest_of(model).tree_, None], dtype=object)
    else:
        model.estimator_.members_[0] = make_pipeline(StandardScaler(), forest_of(model).tree_)
    with pytest.raises(ValueError, match="no file can hold it: .*Tree.* that cannot be checked"):
        model.save(path)


ENOUGH = trees.Allowance(np.inf)
PACKED = {
    "attribute": lambda m: setattr(m, "note_", trees.PackedTrees.of([forest_of(m).tree_], ENOUGH)),
    "list": lambda m: setattr(m, "note_", [trees.PackedForest.of([forest_of(m)], ENOUGH)]),
    "wrong name": lambda m: setattr(
        m.estimator_, "_predictors", trees.PackedStages.of(boosting_of(m)._predictors, ENOUGH)
    ),
}


@pytest.mark.parametrize("name", PACKED)
def test_what_stands_for_trees_is_refused_where_no_model_of_trees_has_them(name, blended, path):
    model = copy.deepcopy(blended)
    PACKED[name](model)
    with pytest.raises(ModelFileError, match="belongs to no model of trees"):
        again(model, path)


ENCODERS = {
    "more categories": lambda e: e.categories_.__setitem__(0, np.array([0, 1, 0, 1])),
    "out of order": lambda e: e.categories_.__setitem__(0, np.array([1, 0])),
    "fewer columns": lambda e: e._n_features_outs.__setitem__(0, 0),
    "nothing left out": lambda e: setattr(e, "_drop_idx_after_grouping", np.array([7, None], dtype=object)),
    "rare": lambda e: vars(e).update(
        _infrequent_enabled=True, _default_to_infrequent_mappings=[np.array([0, 9]), None]
    ),
}


@pytest.mark.parametrize("name", [None, *ENCODERS])
@pytest.mark.parametrize("settings", [{}, {"drop": "first"}, {"min_frequency": 20}], ids=["plain", "drop", "rare"])
def test_encoders_that_would_write_beside_their_columns_are_refused(name, settings, noted, path):
    codes = np.column_stack([np.arange(60) % 2, np.arange(60) % 7])
    noted.note_ = encoder = OneHotEncoder(**settings).fit(codes)
    expected = encoder.transform(codes).toarray()
    if name is None:
        assert np.array_equal(again(noted, path).note_.transform(codes).toarray(), expected)
        return
    ENCODERS[name](encoder)
    with pytest.raises(ModelFileError, match="encoder|categories"):
        again(noted, path)


def test_gradient_boosting_with_trees_of_other_columns_is_refused(noted, path):
    boosting = GradientBoostingRegressor(n_estimators=2).fit(X, Y)
    boosting.estimators_[1, 0] = DecisionTreeRegressor(max_depth=2).fit(X[:, :1], Y)
    noted.note_ = [boosting]
    with pytest.raises(ModelFileError, match="gradient boosting with trees for other columns"):
        again(noted, path)
    boosting.estimators_ = np.array([[boosting.estimators_[0, 0]] * 2])  # which would write beside the predictions
    with pytest.raises(ModelFileError, match="gradient boosting with other stages"):
        again(noted, path)


@pytest.mark.parametrize("name", FORGED)
def test_forged_trees_are_refused(name, blended, path):
    forge, message = FORGED[name]
    model = copy.deepcopy(blended)
    model.noise_.size_forest.estimators_ = model.noise_.size_forest.estimators_[:8]  # of 100
    forge(model)
    model.save(path)
    for trusted in ((), (TREE,)):
        with pytest.raises(ModelFileError, match=message) as caught:
            load(path, trusted)
        assert str(path) in str(caught.value)


def stages(bits=3, words=8, **nodes):
    """Boosting with categories, and its trees as a file holds them, with other values in the first node of one."""
    codes = np.column_stack([X[:, 0], np.arange(60) % 3])
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5, categorical_features=[1], random_state=0)
    model.fit(codes, Y + codes[:, 1])
    tree = next(tree for (tree,) in model._predictors if tree.nodes["is_categorical"][0])
    for name, value in nodes.items():
        tree.nodes[name][0] = value
    tree.raw_left_cat_bitsets = np.zeros((bits, words), dtype=np.uint32)
    model._predictors = [[tree]]
    return model, trees.PackedStages.of(model._predictors, trees.Allowance(np.inf))


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({}, None),
        ({"bits": 0}, "too few categories"),
        ({"bitset_idx": 9}, "too few categories"),
        ({"words": 7}, "arrays"),
    ],
)
def test_forged_categories_are_refused(forged, message):
    model, packed = stages(**forged)
    with nullcontext() if message is None else pytest.raises(ModelFileError, match=message):
        ((tree,),) = packed.made(model, trees.Allowance(10**6), trusts_preprocessors=True)
        assert np.array_equal(tree.nodes, model._predictors[0][0].nodes)


FORESTS = {
    "fewer nodes": (lambda p: p.trees.nodes.lengths.__isub__(1), "another size"),
    "no nodes": (lambda p: p.trees.nodes.lengths.__imul__(0), "nodes are none"),
    "negative lengths": (lambda p: p.trees.nodes.lengths.__setitem__(0, -(10**12)), "nodes are none"),
    "other values": (lambda p: p.trees.values.lengths.__iadd__([1, -1]), "another number of values"),
    "no classes": (lambda p: p.trees.n_classes.__imul__(0), "a tree without values"),
    "more classes": (lambda p: p.trees.n_classes.__iadd__(1), "arrays are of another size"),
    "many classes": (lambda p: p.trees.n_classes.__iadd__(10**7), "more than its size allows"),
    "another version": (lambda p: p.trees.nodes.columns.pop("impurity"), "another version of scikit-learn"),
    "texts": (lambda p: p.trees.nodes.columns.update(impurity=np.array(["a"] * 9)), "another size or type"),
    "other seeds": (lambda p: p.varying["random_state"].pop(), "ValueError"),
    "other number": (lambda p: vars(p).update(number=3), "nodes are none"),
    "no trees": (lambda p: vars(p).update(alike=LinearRegression()), "belongs to no model of trees"),
}


@pytest.mark.parametrize("name", FORESTS)
def test_forged_forests_are_refused(name, path, monkeypatch):
    forge, message = FORESTS[name]
    model, pack = learnt(RandomForestRegressor(2, random_state=0)), trees.PackedForest.of

    def forged(*given):
        packed = pack(*given)
        packed.trees.n_classes.setflags(write=True)
        forge(packed)
        return packed

    monkeypatch.setattr(trees.PackedForest, "of", forged)
    with pytest.raises(ModelFileError, match=message):
        again(model, path)
