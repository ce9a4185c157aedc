"""Models of the user's own: what they get, that fitted ones are left alone, and files that need trust."""

import shlex
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import sosbands as library
from cli_runs import FIXED, done, flat, mixed_table, number_table, refused, said, sosbands
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
def here(folder, tmp_path, monkeypatch):
    """A folder to work in, with tables and a module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "own_models.py").write_text(MODULE)
    for name in ("numbers.csv", "numbers-new.csv", "mixed.csv", "mixed-new.csv"):
        (tmp_path / name).symlink_to(folder / name)
    yield tmp_path
    sys.modules.pop("own_models", None)


def fit(data, model, *words, output="m.model"):
    result = sosbands("fit", data, "--target", "y", "-o", output, "--model", model, *FIXED, *words)
    assert result.exit_code == 0, result.stderr
    return result


def predicted(*words, model="m.model", data="numbers-new.csv"):
    done("predict", model, data, "-o", "out.parquet", *words)
    return pd.read_parquet("out.parquet")


OTHER, NEW = number_table(60, seed=5), number_table(50, seed=1)


def test_a_fitted_model_of_a_file_is_used_as_it_is(here):
    trained = LinearRegression().fit(OTHER[["b", "a"]], OTHER.y)  # in another order than the file
    joblib.dump(trained, "trained.joblib")
    result = fit("numbers.csv", "trained.joblib")
    assert "note: trained.joblib is fitted already and used as it is: none of these rows should be" in result.stderr
    assert "Bands around LinearRegression, learnt from 53 rows" in flat(result.stdout)
    np.testing.assert_allclose(predicted().prediction, trained.predict(NEW[["b", "a"]]), rtol=1e-12)
    assert library.load(here / "m.model").residual_rule_ == "in-sample"
    joblib.dump(trained, "trained.pkl")
    assert "used as it is" not in fit("numbers.csv", "trained.pkl", "--refit").stderr
    model = library.load(here / "m.model")
    assert model.residual_rule_ == "out-of-fold"
    learning = number_table().iloc[model.learning_rows_]
    expected = LinearRegression().fit(learning[["a", "b"]], learning.y).predict(NEW[["a", "b"]])
    np.testing.assert_allclose(predicted().prediction, expected, rtol=1e-9)


@pytest.mark.usefixtures("here")
def test_a_model_fitted_without_names_gets_an_array():
    trained = LinearRegression().fit(OTHER[["a", "b"]].to_numpy(), OTHER.y)
    joblib.dump(trained, "trained.joblib")
    assert "feature names" not in fit("numbers.csv", "trained.joblib").stderr
    np.testing.assert_allclose(predicted().prediction, trained.predict(NEW[["a", "b"]].to_numpy()), rtol=1e-12)


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
    assert "--trust" not in fit("mixed.csv", "trained.joblib").stdout
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
        fit("numbers.csv", f"own_models:{name}")
        model = library.load(here / "m.model")
        assert model.estimator_[-1].fit_intercept is intercept
        assert model.residual_rule_ == "out-of-fold"


@pytest.mark.usefixtures("here")
def test_the_command_that_a_message_prints_works():
    printed = fit("mixed.csv", "own_models:Mean", output="of mine.model").stdout
    following = printed.splitlines()[-1].strip()
    assert following == "sosbands predict 'of mine.model' NEW.csv -o OUT.csv --trust own_models.Mean"
    words = ("predict", "of mine.model", "mixed-new.csv", "-o", "an out.csv")
    words += ("--confidence-level", "0.8", "--id", "ward")
    message = refused(*words)
    assert "of mine.model holds own_models.Mean, and reading it could run code" in message
    command = shlex.split(message.splitlines()[-1])
    assert command == ["sosbands", *words, "--trust", "own_models.Mean"]
    sys.modules.pop("own_models")  # as in a new process
    done(*command[1:])
    assert list(pd.read_csv("an out.csv").columns) == ["ward", "prediction", "lower", "upper", "support"]
    done(*shlex.split(following.replace("NEW", "mixed-new"))[1:])
    message = refused("evaluate", "of mine.model", "mixed-new.csv")
    following = "sosbands evaluate 'of mine.model' mixed-new.csv --trust own_models.Mean"
    assert message.splitlines()[-1].strip() == following


@pytest.mark.usefixtures("here")
def test_compare_puts_methods_around_a_model_of_the_users():
    words = ("--methods", "sos,split,local,cqr-forest", "--repetitions", "1", *FIXED)
    train = pd.read_csv("mixed-new.csv")
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["ward", "flag"]), ("passthrough", ["x"]))
    joblib.dump(make_pipeline(encode, LinearRegression()).fit(train[["x", "ward", "flag"]], train.y), "trained.joblib")
    for model in ("own_models:Mean", "trained.joblib"):
        found = said("compare", "mixed.csv", "--target", "y", "--model", model, *words)
        assert [row["n_failed"] for row in found["table"]] == [0] * 4, found["remarks"]
        scores = {row["method"]: row["interval_score_mean"] for row in found["table"]}
        if model == "own_models:Mean":
            bad = scores
    assert scores["split"] < bad["split"]  # the better model
    assert scores["cqr-forest"] == bad["cqr-forest"]  # which has no point model


def test_explore_takes_a_model_of_the_users(here):
    done("explore", "mixed.csv", "--target", "y", "-o", "page.html", "--model", "own_models:Mean", *FIXED)
    assert data_of((here / "page.html").read_text(encoding="utf-8"))["model"] == "mean"
