"""Saving and loading: the same predictions bit by bit, nothing trusted by default, clear errors for bad files."""

import json
import os
import pickle
import stat
import subprocess
import sys
import warnings
import zipfile

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import sosbands
from sosbands import SmoothingSplineRegressor, SoSBandRegressor, load
from sosbands.baselines import SplitCP
from sosbands.exceptions import ModelFileError, NotCalibratedError, SosbandsWarning, UntrustedTypesError
from sosbands.regressors import persistence

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (1 + X[:, 1]) * RNG.exponential(size=60)
X_NEW = RNG.uniform(-1, 1, (40, 2))
FAST = {"lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}


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
    "default": {},
    "spline": {"estimator": SmoothingSplineRegressor()},
    "frozen GP pipeline": {"estimator": FrozenEstimator(gp_pipeline())},
    "pipeline": {"estimator": make_pipeline(PolynomialFeatures(2), LinearRegression())},
    "kernel object": {"estimator": LinearRegression(), "kernel": 2.0 * Matern(1.5, nu=1.5)},
    "two lengthscales": {"estimator": LinearRegression(), "lengthscale": {"lower": 1.0, "upper": [2.0, 0.5]}},
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
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


@pytest.mark.parametrize(
    ("estimator", "types"),
    [
        (RandomForestRegressor(5, random_state=0), [TREE]),
        (HistGradientBoostingRegressor(max_iter=5, random_state=0), [PREDICTOR]),
    ],
)
def test_trees_are_refused_until_named(estimator, types, path):
    model = SoSBandRegressor(estimator, **FAST).fit(X, Y)
    model.save(path)
    with pytest.raises(UntrustedTypesError) as caught:
        load(path)
    call = str(caught.value).split("accept them by ")[1]
    assert call == f"sosbands.load({str(path)!r}, trusted={types!r})"
    with pytest.raises(UntrustedTypesError):
        load(path, trusted=["another.Type"])
    assert_same(eval(call, {"sosbands": sosbands}), model)  # the message says what works


def test_the_allow_list_holds_full_names_of_classes_and_no_functions():
    for full in persistence.TRUSTED:
        module, _, name = full.rpartition(".")
        assert full == "numpy.dtype" or module.startswith(("sosbands.", "sklearn.gaussian_process.kernels"))
        assert isinstance(getattr(__import__(module, fromlist=[name]), name), type)


def test_regressors_of_the_package_are_known_without_a_list():
    found = persistence.regressor_types(
        [
            "sosbands.regressors.sos_bands.SoSBandRegressor",
            "sosbands.baselines.heteroscedastic_gp.HeteroscedasticGP",  # with the part that it declares
            "sosbands.baselines.squared_sos.learn_bands",  # a function
            "sosbands.baselines.squared_sos.ConstantKernel",  # another package's class
            "sosbands.baselines.methods.SplitCP",  # not where it is defined
            "sosbands.baselines.nowhere.SplitCP",
            "sosbands.report.recorded.RecordedBands",  # in another room
            "evil.baselines.SplitCP",
        ]
    )
    assert found == {
        "sosbands.regressors.sos_bands.SoSBandRegressor",
        "sosbands.baselines.heteroscedastic_gp.HeteroscedasticGP",
        "sosbands.baselines.noisy_process.NoisyProcess",
    }
    assert persistence.regressor_types(["sosbands.baselines.noisy_process.NoisyProcess"]) == set()


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


@pytest.mark.parametrize("broken", ["dump", "header", "replace"])
def test_a_failure_in_the_middle_leaves_the_old_file(broken, model, path, monkeypatch):
    model.save(path)
    before = path.read_bytes()

    def half(_, file):
        with open(file, "wb") as handle:
            handle.write(b"half a model")
        raise OSError("disk full")

    def fail(*_):
        raise OSError("disk full")

    if broken == "dump":
        monkeypatch.setattr(skops.io, "dump", half)
    elif broken == "header":
        monkeypatch.setattr(persistence, "_write_header", fail)
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


def rewrite(path, **members):
    """The same archive with some members replaced."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content.update({name.replace("_json", ".json"): data for name, data in members.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-200])


def cut_in_half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damaged(path):
    data = bytearray(path.read_bytes())
    data[data.find(b"\x93NUMPY") + 200] ^= 255
    path.write_bytes(data)


def foreign_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")


BAD_FILES = {
    "truncated": (truncated, "not a model file of sosbands, or cut short"),
    "cut in half": (cut_in_half, "not a model file of sosbands, or cut short"),
    "damaged": (damaged, "damaged|cut short|cannot be read"),
    "foreign zip": (foreign_zip, "not a model file of sosbands"),
    "foreign skops": (lambda p: skops.io.dump(LinearRegression(), p), "not a model file of sosbands"),
    "random bytes": (lambda p: p.write_bytes(np.random.default_rng(0).bytes(5000)), "not a model file of sosbands"),
    "empty": (lambda p: p.write_bytes(b""), "not a model file of sosbands"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps({"format": 1})), "not a model file of sosbands"),
    "newer": (
        lambda p: rewrite(p, sosbands_json=json.dumps({"format": 3, "sosbands": "9.1"})),
        "written by sosbands 9.1 in format 3; this version reads formats up to 2: upgrade sosbands",
    ),
    "older": (
        lambda p: rewrite(p, sosbands_json=json.dumps({"format": 1, "sosbands": "0.1.0"})),
        "written by sosbands 0.1.0 in format 1, which this version does not read .* fit the model again, or use it",
    ),
    "newer, unknown content": (
        lambda p: rewrite(p, sosbands_json=json.dumps({"format": 3, "sosbands": "10"}), schema_json="{}"),
        "written by sosbands 10 in format 3",
    ),
    "header is a list": (lambda p: rewrite(p, sosbands_json="[]"), "not a model file of sosbands"),
    "header is no JSON": (lambda p: rewrite(p, sosbands_json="{"), "not a model file of sosbands"),
    "format is a word": (lambda p: rewrite(p, sosbands_json='{"format": "x", "sosbands": "1"}'), "not a model file"),
    "schema is empty": (lambda p: rewrite(p, schema_json="{}"), "cannot be read"),
    "schema is no JSON": (lambda p: rewrite(p, schema_json="nonsense"), "cannot be read"),
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
    skops.io.dump({"a": 1}, path)
    persistence._write_header(path)
    with pytest.raises(ModelFileError, match="holds a dict"):
        load(path)
