"""Models of the user's own: what they get, that fitted ones are left alone, and files that need trust."""

import json
import shlex
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import sosbands as library
from cli_runs import FIXED, done, mixed_table, number_table, sosbands
from report_payload import data_of
from sosbands.point_models import TableColumns

MODULE = """
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression


class Mean(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.types_ = {name: str(X[name].dtype) for name in X}
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        assert {name: str(X[name].dtype) for name in X} == self.types_
        return np.full(len(X), self.mean_)


def make():
    return LinearRegression()


instance = LinearRegression(fit_intercept=False)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with tables and a module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "own_models.py").write_text(MODULE)
    number_table().to_csv("numbers.csv", index=False)
    number_table(50, seed=1).to_csv("numbers-new.csv", index=False)
    mixed_table().to_csv("mixed.csv", index=False)
    mixed_table(50, seed=1).to_csv("mixed-new.csv", index=False)
    yield tmp_path
    sys.modules.pop("own_models", None)


def fit(data, model, *words, output="m.model"):
    return sosbands("fit", data, "--target", "y", "-o", output, "--model", model, *FIXED, *words)


def predicted(*words, model="m.model", data="numbers-new.csv"):
    done("predict", model, data, "-o", "out.parquet", *words)
    return pd.read_parquet("out.parquet")


def test_a_fitted_model_of_a_file_is_used_as_it_is(here):
    other = number_table(60, seed=5)
    trained = LinearRegression().fit(other[["b", "a"]], other.y)  # in another order than the file
    joblib.dump(trained, "trained.joblib")
    result = fit("numbers.csv", "trained.joblib")
    assert result.exit_code == 0, result.stderr
    assert "note: trained.joblib is fitted already and used as it is: none of these rows should be" in result.stderr
    assert "Bands around LinearRegression, learnt from 40 rows" in " ".join(result.stdout.split())
    new = number_table(50, seed=1)
    np.testing.assert_allclose(predicted().prediction, trained.predict(new[["b", "a"]]), rtol=1e-12)
    model = library.load(here / "m.model")
    assert model.residual_rule_ == "in-sample"


def test_refit_fits_a_copy_to_the_learning_rows(here):
    other = number_table(60, seed=5)
    joblib.dump(LinearRegression().fit(other[["a", "b"]], other.y), "trained.pkl")
    result = fit("numbers.csv", "trained.pkl", "--refit")
    assert "used as it is" not in result.stderr
    model = library.load(here / "m.model")
    assert model.residual_rule_ == "out-of-fold"
    learning = number_table().iloc[model.learning_rows_]
    expected = LinearRegression().fit(learning[["a", "b"]], learning.y).predict(number_table(50, seed=1)[["a", "b"]])
    np.testing.assert_allclose(predicted().prediction, expected, rtol=1e-9)


@pytest.mark.usefixtures("here")
def test_a_model_fitted_without_names_gets_an_array():
    other = number_table(60, seed=5)
    trained = LinearRegression().fit(other[["a", "b"]].to_numpy(), other.y)
    joblib.dump(trained, "trained.joblib")
    result = fit("numbers.csv", "trained.joblib")
    assert result.exit_code == 0
    assert "feature names" not in result.stderr
    new = number_table(50, seed=1)[["a", "b"]].to_numpy()
    np.testing.assert_allclose(predicted().prediction, trained.predict(new), rtol=1e-12)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "last", [RandomForestRegressor(20, random_state=0), HistGradientBoostingRegressor(max_iter=20)]
)
def test_a_pipeline_that_pandas_fed_predicts_the_same(last):
    """Booleans are booleans and gaps are none again: an encoder would silently take "true" for something unknown."""
    train, new = pd.read_csv("mixed-new.csv"), mixed_table(40, seed=3)
    names = ["flag", "ward", "x"]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["flag", "ward"]), ("passthrough", ["x"])
    )
    trained = make_pipeline(encode, last).fit(train[names], train.y)
    joblib.dump(trained, "trained.joblib")
    new.to_csv("new.csv", index=False)
    result = fit("mixed.csv", "trained.joblib")
    assert result.exit_code == 0, result.stderr
    assert "--trust" not in result.stdout
    expected = trained.predict(pd.read_csv("new.csv")[names])
    np.testing.assert_allclose(predicted(data="new.csv").prediction, expected, rtol=1e-12)


def test_columns_have_the_types_of_pandas():
    raw = pd.DataFrame(
        {"n": [1.5, np.nan], "t": ["x", ""], "b": ["true", "false"], "g": ["", "true"], "d": [19723.5, np.nan]}
    )
    table = TableColumns(["d", "t", "b", "g", "n"], ["t"], ["b", "g"], ["d"]).fit(raw).transform(raw)
    assert list(table) == ["d", "t", "b", "g", "n"]
    assert table.d.tolist() == [pd.Timestamp("2024-01-01 12:00"), pd.NaT]
    assert table.t.tolist() == ["x", pytest.approx(np.nan, nan_ok=True)]
    assert table.b.dtype == bool
    assert table.b.tolist() == [True, False]
    assert table.g.tolist() == [pytest.approx(np.nan, nan_ok=True), True]
    assert np.array_equal(table.n, [1.5, np.nan], equal_nan=True)
    numbers = TableColumns(["n"], as_array=True).transform(raw)
    assert type(numbers) is np.ndarray
    assert numbers.shape == (2, 1)


def test_modules_give_objects_and_factories(here):
    for name, intercept in (("make", True), ("instance", False)):
        assert fit("numbers.csv", f"own_models:{name}").exit_code == 0
        model = library.load(here / "m.model")
        assert model.estimator_[-1].fit_intercept is intercept
        assert model.residual_rule_ == "out-of-fold"


@pytest.mark.usefixtures("here")
def test_the_command_that_a_message_prints_works():
    printed = fit("mixed.csv", "own_models:Mean", output="of mine.model").stdout
    following = printed.splitlines()[-1].strip()
    assert following == "sosbands predict 'of mine.model' NEW.csv -o OUT.csv --trust own_models.Mean"
    words = (
        "predict",
        "of mine.model",
        "mixed-new.csv",
        "-o",
        "an out.csv",
        "--confidence-level",
        "0.8",
        "--id",
        "ward",
    )
    refused = sosbands(*words)
    assert refused.exit_code == 1
    assert "of mine.model holds own_models.Mean, and reading it could run code" in refused.stderr
    command = shlex.split(refused.stderr.splitlines()[-1])
    assert command == ["sosbands", *words, "--trust", "own_models.Mean"]
    sys.modules.pop("own_models")  # as in a new process
    done(*command[1:])
    assert list(pd.read_csv("an out.csv").columns) == ["ward", "prediction", "lower", "upper", "support"]
    done(*shlex.split(following.replace("NEW", "mixed-new"))[1:])
    evaluated = sosbands("evaluate", "of mine.model", "mixed-new.csv")
    assert evaluated.stderr.splitlines()[-1].strip() == (
        "sosbands evaluate 'of mine.model' mixed-new.csv --trust own_models.Mean"
    )


@pytest.mark.usefixtures("here")
def test_compare_puts_methods_around_a_model_of_the_users():
    words = ("--methods", "sos,split,local,cqr-forest", "--repetitions", "2", "--json", *FIXED)
    train = pd.read_csv("mixed-new.csv")
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["ward", "flag"]), ("passthrough", ["x"]))
    joblib.dump(make_pipeline(encode, LinearRegression()).fit(train[["x", "ward", "flag"]], train.y), "trained.joblib")
    for model in ("own_models:Mean", "trained.joblib"):
        found = json.loads(done("compare", "mixed.csv", "--target", "y", "--model", model, *words))
        assert [row["n_failed"] for row in found["table"]] == [0] * 4, found["remarks"]
        scores = {row["method"]: row["interval_score_mean"] for row in found["table"]}
        if model == "own_models:Mean":
            bad = scores
    assert scores["split"] < bad["split"]  # the better model
    assert scores["cqr-forest"] == bad["cqr-forest"]  # which has no point model


def test_explore_takes_a_model_of_the_users(here):
    done("explore", "mixed.csv", "--target", "y", "-o", "page.html", "--model", "own_models:Mean", *FIXED)
    assert data_of((here / "page.html").read_text(encoding="utf-8"))["model"] == "mean"
