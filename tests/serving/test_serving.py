"""Exported files: the same intervals as the model's, what is refused, and rows that are no rows."""

import ast
import io
import json
import subprocess
import sys
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, RobustScaler
from sklearn.svm import SVR

from sosbands import GaussianProcess, SoSBandRegressor
from sosbands.baselines import SplitCP
from sosbands.exceptions import ExportError, SosbandsWarning
from sosbands.serving import export, export_numpy, export_onnx, load_scorer, scorer
from spelled import spelled

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX files need onnxruntime: pip install onnxruntime")
pytest.importorskip("skl2onnx", reason="other models need skl2onnx: pip install skl2onnx")
pd = pytest.importorskip("pandas", reason="tables are data frames of pandas")

LEVELS = [0.5, 0.9]
FIXED = {
    "lengthscale": 1.0,
    "symmetry_penalty": 0.0,
    "width_penalty": 1.0,
    "learning_coverage": 0.9,
    "conformal_score": "scaled",
    "base_scale": "none",
    "noise_features": "inputs+prediction",
    "cv": 3,
    "random_state": 0,
}


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1, 100] + [5, 0]
    return X, np.sin(X[:, 0]) + X[:, 1] / 100 + rng.exponential(size=n) * (0.2 + np.abs(X[:, 1] / 100))


def fitted(estimator=None, groups=None, **settings):
    X, y = data()
    model = SoSBandRegressor(Ridge() if estimator is None else estimator, **spelled(**{**FIXED, **settings}))
    return model.fit(X, y, groups=groups)


@pytest.fixture(scope="module")
def ridge():
    return fitted()


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # errors are asserted
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def of_onnx(path, **inputs):
    run = session(path)
    names = [each.name for each in run.get_outputs()]
    return dict(zip(names, run.run(names, inputs), strict=True))


def intervals_of(found):
    return np.stack([found["lower"], found["upper"]], axis=1)


def exported(model, folder, levels=LEVELS, **options):
    """Both files: a function of rows that asks the ONNX file, and the scorer."""
    export_onnx(model, folder / "m.onnx", levels, **options)
    export_numpy(model, folder / "m.npz", levels, **options)
    return partial(of_onnx, folder / "m.onnx"), load_scorer(folder / "m.npz")


def assert_serves(model, X, folder, levels=LEVELS, **groups):
    """Both files give what the model gives: intervals, prediction, support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        wanted, support = model.predict_interval(X, levels, **groups), model.support(X)
    as_input = {name: np.asarray(labels)[:, None] for name, labels in groups.items()}
    by_onnx, by_numpy = exported(model, folder, levels)
    for tolerance, found in ((1e-6, by_onnx(X=X, **as_input)), (1e-8, by_numpy(X, **groups))):
        width = wanted[:, 1:] - wanted[:, :1]
        assert np.all(np.abs(intervals_of(found) - wanted) <= tolerance * width)
        np.testing.assert_allclose(found["prediction"][:, 0], model.predict(X), rtol=tolerance)
        np.testing.assert_allclose(found["support"][:, 0], support, atol=tolerance)


KINDS = [
    (None, {"calibration": "asymmetric", "base_scale": "forest"}),
    (GaussianProcess(), {"base_scale": "both", "noise_features": "lengthscales+scale", "kernel": "gaussian"}),
    (ExtraTreesRegressor(10, random_state=0), {"base_scale": "model", "kernel": "matern32", "constant": False}),
    (HistGradientBoostingRegressor(max_iter=10), {"conformal_score": "added", "symmetry_penalty": np.inf}),
    (None, {"preprocessor": RobustScaler(), "kernel": "matern12", "rank": 10, "lengthscale": np.inf}),
    (None, {"noise_features": "inputs", "lengthscale": {"lower": 0.5, "upper": 2.0}}),
]


@pytest.mark.parametrize(("estimator", "settings"), KINDS)
def test_both_files_give_the_intervals_of_the_model(estimator, settings, tmp_path):
    assert_serves(fitted(estimator, **settings), data(60, seed=1)[0], tmp_path)


@pytest.mark.parametrize(
    "given",
    [{"target_transform": "log", "target_range": (0.2, 3)}, {"target_transform": "sqrt"}, {"target_range": (0, 2)}],
)
def test_targets_on_another_scale_and_with_a_range(given, tmp_path):
    X, y = data(120)
    y = np.exp((y - y.mean()) / y.std() / 2).clip(0.2, 2)
    model = clone(fitted(Ridge())).set_params(**{"target_transform": None, **given})
    assert_serves(model.fit(X, y), data(60, seed=1)[0], tmp_path)


def test_the_contract_rejects_a_file_of_another_model(ridge, tmp_path, monkeypatch):
    other = fitted(Ridge(alpha=1.2))
    monkeypatch.setattr(sys.modules[__name__], "export_onnx", lambda _, *rest: export.export_onnx(other, *rest))
    with pytest.raises(AssertionError):
        assert_serves(ridge, data(60, seed=1)[0], tmp_path)


@pytest.mark.parametrize("seed", [27, 64, 140])
def test_random_models_agree(seed):
    """27 and 64 have one column, whose scale onnxruntime would fuse with a product; 140 has many landmarks."""
    from benchmarks.serving import score_one

    row = score_one(seed)
    assert row["onnx"] <= 1e-9
    assert row["numpy"] == "" or row["numpy"] <= 1e-9


@pytest.mark.parametrize("write", [export_onnx, export_numpy])
def test_a_file_that_disagrees_is_not_written(ridge, write, tmp_path, monkeypatch):
    """A quantile that is wrong by a thousandth."""
    right = export.program_of

    def wrong(*arguments, **options):
        program = right(*arguments, **options)
        for name, value in program.constants.items():
            if value.shape == (1, len(LEVELS)):
                program.constants[name] = value * 1.001
        return program

    monkeypatch.setattr(export, "program_of", wrong)
    with pytest.raises(ExportError, match=r"differ from those of predict_interval by \d.*Nothing was written"):
        write(ridge, tmp_path / "m.file", LEVELS)
    assert list(tmp_path.iterdir()) == []


def test_one_level_has_the_shape_of_predict_interval(ridge, tmp_path):
    X = data(5, seed=1)[0]
    _, scored = exported(ridge, tmp_path, None)
    assert scored.confidence_level == [0.9]
    np.testing.assert_allclose(scored.predict_interval(X), ridge.predict_interval(X), rtol=1e-12)
    np.testing.assert_allclose(scored.predict(X), ridge.predict(X), rtol=1e-12)
    assert json.loads(session(tmp_path / "m.onnx").get_modelmeta().custom_metadata_map["confidence_level"]) == [0.9]


# ---------------------------------------------------------------- rows that are no rows


def test_rows_that_are_no_numbers_give_nan_and_leave_the_others_alone(ridge, tmp_path):
    X = data(4, seed=1)[0]
    whole = ridge.predict_interval(X, LEVELS)
    X[1, 0], X[2, 1] = np.nan, np.inf
    by_onnx, by_numpy = exported(ridge, tmp_path)
    for found in (by_onnx(X=X), by_numpy(X)):
        for values in found.values():
            assert np.isnan(values[[1, 2]]).all()
        np.testing.assert_allclose(intervals_of(found)[[0, 3]], whole[[0, 3]], rtol=1e-12)


def test_too_few_calibration_rows_give_infinite_ends(tmp_path):
    X = np.vstack([data(2, seed=1)[0], [[np.nan, 0.0]]])
    by_onnx, by_numpy = exported(fitted(calibration_size=12), tmp_path, [0.5, 0.99])
    for found in (by_onnx(X=X), by_numpy(X)):
        ends = intervals_of(found)
        assert ends[:2, :, 1].tolist() == [[-np.inf, np.inf]] * 2
        assert np.isfinite(ends[:2, :, 0]).all()
        assert np.isnan(ends[2]).all()


def test_inputs_of_other_shapes_are_errors_that_name_them(ridge, tmp_path):
    by_onnx, by_numpy = exported(ridge, tmp_path)
    with pytest.raises(Exception, match=r"(?s)invalid dimensions.*X.*Got: 3 Expected: 2"):
        by_onnx(X=np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"X has shape \(1, 3\): expected 2 columns"):
        by_numpy(np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"inputs \['groups'\] are given or lacking: expected \['X'\]"):
        by_numpy(np.zeros((1, 2)), groups=[1])
    with pytest.raises(ValueError, match="X holds what is not numbers"):
        by_numpy([["a", "b"]])
    assert by_numpy.predict_interval(np.zeros((0, 2))).shape == (0, 2, 2)


# ---------------------------------------------------------------- groups, tables, other models


@pytest.mark.parametrize("labels", [["a", "b"], [3, 7]])
def test_groups_are_an_input_and_unknown_ones_have_no_interval(labels, tmp_path):
    X = data(6, seed=1)[0]
    model = fitted(groups=np.resize(labels, 120))
    groups = np.resize(labels, 6)
    assert_serves(model, X, tmp_path, groups=groups.astype(object) if groups.dtype.kind == "U" else groups)
    found = load_scorer(tmp_path / "m.npz")(X[:1], groups=["c"] if labels[0] == "a" else [5])
    assert np.isnan(found["lower"]).all()
    assert np.isfinite(found["prediction"]).all()


def table(n=76, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(50, 9, n)),
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="h"),
            "new": rng.random(n) < 0.5,
            "kind": pd.Series(rng.choice(["flat", "house", None], n), dtype=object),
            "street": [f"s{k}" for k in rng.integers(0, 30, n)],
        }
    )
    return frame, 0.1 * frame["size"].fillna(50).to_numpy() + frame["new"] + rng.exponential(size=n)


def test_columns_of_a_table_are_inputs_by_their_names(tmp_path):
    X, y = table()
    model = SoSBandRegressor(**{**FIXED, "lengthscale": 10.0}).fit(X, y)
    new = table(20, seed=1)[0]
    new.loc[0, "kind"], new.loc[1, "street"] = "castle", "elsewhere"
    wanted = model.predict_interval(new, LEVELS)
    by_onnx, scored = exported(model, tmp_path)
    assert {each["name"]: each["kind"] for each in scored.inputs} == {
        **dict.fromkeys(["size", "sold", "new"], "numbers"),
        **dict.fromkeys(["kind", "street"], "texts"),
    }
    np.testing.assert_allclose(scored.predict_interval(new), wanted, rtol=1e-9)
    with pytest.raises(ValueError, match="X has no column 'size': expected"):
        scored(new.drop(columns="size"))
    with pytest.raises(ValueError, match="X is a ndarray: expected a data frame or a dictionary with the columns"):
        scored(np.zeros((2, 5)))
    days = (new["sold"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    columns = {"size": new["size"], "sold": days, "new": new["new"].astype(float)}
    columns |= {"kind": new["kind"].fillna(""), "street": new["street"]}
    given = {name: np.asarray(column)[:, None] for name, column in columns.items()}
    given |= {name: given[name].astype(object) for name in ("kind", "street")}
    np.testing.assert_allclose(intervals_of(by_onnx(**given)), wanted, rtol=1e-9)


def test_a_model_that_skl2onnx_converts_is_exported_to_onnx_only(tmp_path):
    model, X = fitted(KNeighborsRegressor(3)), data(30, seed=1)[0]
    export_onnx(model, tmp_path / "m.onnx", LEVELS)
    wanted = model.predict_interval(X, LEVELS)
    np.testing.assert_allclose(intervals_of(of_onnx(tmp_path / "m.onnx", X=X)), wanted, rtol=1e-9)
    with pytest.raises(ExportError, match="a KNeighborsRegressor cannot be written for NumPy alone.*bands_only=True"):
        export_numpy(model, tmp_path / "m.npz")


def test_the_bands_alone_take_prediction_and_standard_deviation(tmp_path):
    model, X = fitted(BayesianRidge(), base_scale="model"), data(30, seed=1)[0]
    with pytest.raises(ExportError, match="standard deviation of a BayesianRidge.*bands_only=True"):
        export_onnx(model, tmp_path / "m.onnx")
    by_onnx, by_numpy = exported(model, tmp_path, bands_only=True)
    mean, std = model.estimator_.predict(X, return_std=True)
    found, wanted = by_onnx(X=X, prediction=mean[:, None], std=std[:, None]), model.predict_interval(X, LEVELS)
    assert sorted(found) == ["lower", "support", "upper"]
    np.testing.assert_allclose(intervals_of(found), wanted, rtol=1e-9)
    np.testing.assert_allclose(by_numpy.predict_interval(X, prediction=mean, std=std), wanted, rtol=1e-9)
    with pytest.raises(ValueError, match="bands only"):
        by_numpy.predict(X, prediction=mean, std=std)


def mean_of_rows(X):
    return X.mean(axis=1)


def weighted():
    model = fitted(calibration_size=None)
    return model.conformalize(*data(60, seed=2), likelihood_ratio=np.arange(1.0, 61.0))


REFUSED = [
    (lambda: fitted(mean_of_rows), "CallableRegressor.*bands_only=True"),
    (lambda: fitted(SVR()), "onnxruntime does not run the graph.*SVMRegressor.*Nothing was written"),
    (lambda: fitted(calibration_size="cross"), "calibration_size='cross'"),
    (weighted, "likelihood_ratio"),
    (lambda: fitted(nested_coverages=[0.5, 0.9]), r"nested_coverages=\[0.5, 0.9\].*fit with nested_coverages=None"),
    (lambda: SplitCP(Ridge()).fit(*data()), "model is a SplitCP: expected a fitted SoSBandRegressor"),
    (lambda: fitted(preprocessor=FunctionTransformer(np.sin)), "FunctionTransformer"),
    (lambda: fitted(target_transform=PowerTransformer()), "target_transform: a PowerTransformer cannot be exported"),
    (lambda: fitted(noise_features="inputs", lengthscale="median", kernel=lambda X, Y: (1 + X @ Y.T) ** 2), "kernel:"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_cannot_be_exported_is_named_and_leaves_no_file(make, message, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        model = make()
    with pytest.raises(ExportError, match=message):
        export_onnx(model, tmp_path / "m.onnx", rows=data(10)[0])
    assert list(tmp_path.iterdir()) == []


def test_arguments_are_checked_before_the_work(ridge, tmp_path):
    with pytest.raises(ValueError, match="bands_only='yes': expected True or False"):
        export_onnx(ridge, tmp_path / "m.onnx", bands_only="yes")
    with pytest.raises(ValueError, match="confidence_level"):
        export_onnx(ridge, tmp_path / "m.onnx", 1.5)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        export_numpy(ridge, tmp_path / "nowhere" / "m.npz")


# ---------------------------------------------------------------- NumPy alone


def test_the_scorer_is_one_file_that_loads_numpy_alone(ridge, tmp_path):
    export_numpy(ridge, tmp_path / "m.npz")
    code = (
        "import sys\nfrom sosbands.serving import load_scorer\n"
        f"print(load_scorer({str(tmp_path / 'm.npz')!r}).predict_interval([[5.0, 0.0]]).tolist())\n"
        "print(sorted({'scipy', 'sklearn', 'joblib', 'onnx', 'onnxruntime', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ends, loaded = done.stdout.splitlines()
    np.testing.assert_allclose(ast.literal_eval(ends), ridge.predict_interval([[5.0, 0.0]]), rtol=1e-12)
    assert loaded == "[]"
    nodes = [*ast.walk(ast.parse(Path(scorer.__file__).read_text(encoding="utf-8")))]
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert found <= {"io", "json", "tokenize", "zipfile", "zlib", "numpy"}
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", "collections.abc", "typing"}


def test_a_table_without_names_is_checked_and_exported(tmp_path):
    X, y = table()
    model = SoSBandRegressor(**{**FIXED, "lengthscale": 10.0}).fit(X[["size", "kind"]].to_numpy(), y)
    export_numpy(model, tmp_path / "m.npz")
    scored = load_scorer(tmp_path / "m.npz").predict_interval({"x0": [50.0, np.nan], "x1": ["flat", None]})
    rows = np.array([[50.0, "flat"], [np.nan, None]], dtype=object)
    np.testing.assert_allclose(scored, model.predict_interval(rows), rtol=1e-9)


# ---------------------------------------------------------------- where the model raises, the scorer does


def named(n=120, seed=0):
    X, y = data(n, seed)
    return pd.DataFrame(X, columns=["a", "b"]), y


def test_columns_of_a_data_frame_must_be_those_of_the_fit(tmp_path):
    X, y = named()
    model = SoSBandRegressor(Ridge(), **FIXED).fit(X, y)
    _, scored = exported(model, tmp_path, None)
    wanted = model.predict_interval(X[:5])
    assert scored.feature_names == ["a", "b"]
    assert json.loads(session(tmp_path / "m.onnx").get_modelmeta().custom_metadata_map["feature_names"]) == ["a", "b"]
    for rows in (X[:5], X[:5].to_numpy()):
        np.testing.assert_allclose(scored.predict_interval(rows), wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="X has the column 'b' at place 0: expected 'a', as in fit"):
        scored(X[["b", "a"]])
    with pytest.raises(ValueError, match=r"X has 3 columns: expected 2; given or lacking are \['c'\]"):
        scored(X.assign(c=0.0))


def test_columns_of_other_data_frames_are_compared_too(tmp_path):
    pl = pytest.importorskip("polars", reason="its data frames have columns as well")
    X, y = named()
    export_numpy(SoSBandRegressor(Ridge(), **FIXED).fit(X, y), tmp_path / "m.npz")
    scored, frame = load_scorer(tmp_path / "m.npz"), pl.DataFrame({name: X[name].to_numpy()[:5] for name in X})
    wanted = scored.predict_interval(X[:5])
    np.testing.assert_array_equal(scored.predict_interval(frame), wanted)
    for order in "CF":
        np.testing.assert_array_equal(scored.predict_interval(np.array(X[:5], order=order)), wanted)
    with pytest.raises(ValueError, match="X has the column 'b' at place 0: expected 'a'"):
        scored(frame.select("b", "a"))


def test_integer_groups_that_a_cast_would_change_are_refused(tmp_path):
    _, scored = exported(fitted(groups=np.resize([1, 2], 120)), tmp_path)
    X = data(2, seed=1)[0]
    wanted = scored(X, groups=[1, 2])["lower"]
    np.testing.assert_array_equal(scored(X, groups=[1.0, 2.0])["lower"], wanted)
    odd = {1.7: "1.7", np.nan: "nan", np.inf: "inf", "1": "'1'", 2.0**70: r"1.18\d*e\+21", np.uint64(2**63): "9.*"}
    for label, shown in odd.items():
        for given in (np.array([label, label]), np.array([2, label], dtype=object)):
            with pytest.raises(ValueError, match=f"groups holds what is not integers: .*{shown}"):
                scored(X, groups=given)


def test_labels_with_blanks_around_are_labels_of_their_own(tmp_path):
    """The last of 70, beyond the 64 rows that a file is checked with."""
    X, y = data(280)
    model, rows = fitted(calibration_size=None), X[:3]
    for last in ("zz", "zz ", " zz", "zz\t"):
        labels = np.array([f"g{k:02d}" for k in range(69)] + [last])
        model.conformalize(X, y, groups=np.resize(labels, 280))
        assert_serves(model, rows, tmp_path, levels=[0.5], groups=np.array([last, "g00", "g68"], dtype=object))
        other = np.array([f"{last} ", "g00 ", " g68"], dtype=object)
        by_onnx, by_numpy = partial(of_onnx, tmp_path / "m.onnx"), load_scorer(tmp_path / "m.npz")
        for found in (by_onnx(X=rows, groups=other[:, None]), by_numpy(rows, groups=other)):
            assert np.isnan(found["lower"]).all()


@pytest.mark.parametrize("write", [export_onnx, export_numpy])
def test_every_label_is_checked_before_a_file_is_written(write, tmp_path, monkeypatch):
    """A table that is wrong for the last of 70 groups only."""
    right = export.program_of

    def wrong(*arguments, **options):
        program = right(*arguments, **options)
        table = next(value for value in program.constants.values() if len(value) == 71)
        table[69] += 0.001
        return program

    X, y = data(280)
    model = fitted(calibration_size=None).conformalize(X, y, groups=np.resize(np.arange(70), 280))
    write(model, tmp_path / "right", 0.5)
    monkeypatch.setattr(export, "program_of", wrong)
    with pytest.raises(ExportError, match="differ from those of predict_interval"):
        write(model, tmp_path / "wrong", 0.5)
    assert [each.name for each in tmp_path.iterdir()] == ["right"]


# ---------------------------------------------------------------- damaged and crafted files


def test_a_damaged_file_gives_the_same_scores_or_one_error(ridge):
    content = export.numpy_bytes(export.program_of(ridge, LEVELS), many=True)
    X, rng = data(3, seed=1)[0], np.random.default_rng(0)
    wanted = load_scorer(io.BytesIO(content))(X)
    refused = []
    for place, bit in zip(rng.integers(len(content), size=300), rng.integers(8, size=300), strict=True):
        place = place if bit % 2 else len(content) - 1 - place % 1500  # half of them in the directory of the archive
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        try:
            found = load_scorer(io.BytesIO(damaged))(X)
        except ValueError as error:
            refused.append(str(error))
        else:
            for name, values in wanted.items():
                np.testing.assert_array_equal(found[name], values)
    assert len(refused) > 200
    assert all("expected a file of export_numpy" in said for said in refused)


def packed(program, **arrays):
    content = io.BytesIO()
    text = program if isinstance(program, bytes) else json.dumps(program).encode()
    np.savez(content, program=np.frombuffer(text, dtype=np.uint8), **arrays)
    return content.getvalue()


PROGRAM = {
    "format": 1,
    "inputs": [{"name": "X", "kind": "numbers", "columns": 1}],
    "steps": [["add", "/v0", ["X", "/c0"], {}], ["columns", "/v1", ["/v0"], {"start": 0, "end": 1}]],
    "outputs": {"lower": "X", "upper": "/v1"},
    "facts": {"confidence_level": [0.9], "levels_are_a_list": False},
}
CRAFTED = [
    ([], "the program is a list"),
    (b"[" * 100_000, "recursion"),
    (b"\xff{", "can't decode"),
    ({}, "format None"),
    ({"format": 99}, "has format 99: expected 1"),
    ({**PROGRAM, "inputs": []}, "inputs"),
    ({**PROGRAM, "inputs": [{"name": "X", "kind": [], "columns": 1}]}, "inputs"),
    ({**PROGRAM, "inputs": ["X"]}, "inputs"),
    ({**PROGRAM, "steps": None}, "steps"),
    ({**PROGRAM, "steps": [["add", "/v1", ["X"], {}]]}, "steps"),
    ({**PROGRAM, "steps": [["sqrt", "/v1", ["/c0", "X"], {}]]}, "steps"),
    ({**PROGRAM, "steps": [["add", "/v1", ["X", "/c7"], {}]]}, "steps"),
    ({**PROGRAM, "steps": [["add", "/v1", ["X", "/c0"], {"out": 1}]]}, "steps"),
    ({**PROGRAM, "steps": [["columns", "/v1", ["X"], {"start": "a", "end": 1}]]}, "steps"),
    ({**PROGRAM, "steps": [["eval", "/v1", ["X"], {}]]}, "operations.*eval.*does not know"),
    ({**PROGRAM, "outputs": {"lower": "/v1"}}, "outputs"),
    ({**PROGRAM, "outputs": {"lower": [], "upper": "/v1"}}, "outputs"),
    ({**PROGRAM, "facts": {}}, "facts"),
    ({**PROGRAM, "facts": {**PROGRAM["facts"], "feature_names": [1]}}, "facts"),
]


@pytest.mark.parametrize(("program", "message"), CRAFTED)
def test_a_crafted_program_is_refused_by_the_part_that_is_wrong(program, message):
    with pytest.raises(ValueError, match=f"path=.*expected a file of export_numpy .*{message}"):
        load_scorer(io.BytesIO(packed(program, c0=np.ones((1, 1)))))


def test_arrays_that_do_not_fit_are_named_when_rows_are_scored():
    scored = load_scorer(io.BytesIO(packed(PROGRAM, c0=np.ones((1, 1)))))
    assert scored.predict_interval([[2.0]]).tolist() == [[2.0, 3.0]]
    for array in (np.ones((7, 3)), np.array(["a"])):
        odd = load_scorer(io.BytesIO(packed(PROGRAM, c0=array)))
        with pytest.raises(ValueError, match=r"the file is damaged: its step /v0 \(add\) fails"):
            odd([[2.0], [3.0]])


def member(header):
    """An archive whose program is an array with this header."""
    text = header.encode() + b"\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("program.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    return content.getvalue()


HEADERS = ["(" * 5000, "{'descr': '<f8'", "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "'a", "[]"]
HEADERS += [f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n},)}}" for n in (10**17, 10**30, -3, 7)]
HEADERS += ["{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,)}"]


@pytest.mark.parametrize("header", HEADERS)
def test_a_crafted_array_is_refused(header):
    with pytest.raises(ValueError, match="expected a file of export_numpy"):
        load_scorer(io.BytesIO(member(header)))


def test_other_files_are_named(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    np.save(tmp_path / "m.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", program=np.array([{}], dtype=object))
    for name in ("text.npz", "m.npy", "other.npz", "pickled.npz"):
        with pytest.raises(ValueError, match=rf"{name}.*expected a file of export_numpy"):
            load_scorer(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load_scorer(tmp_path / "nowhere.npz")
