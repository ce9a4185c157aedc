"""`sosbands card` and `explore`: with and without a table, what is refused, and what bands must not learn from."""

import hashlib
import json
import re

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import pandas as pd

from cli_runs import FAST, done, mixed_table, number_table, sosbands
from report_payload import data_of
from sosbands import load
from sosbands.tables import TableEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("card")
    mixed_table().to_csv(place / "train.csv", index=False)
    mixed_table(90, seed=1).to_csv(place / "test.csv", index=False)
    done("fit", place / "train.csv", "--target", "y", "-o", place / "y.model", *FAST)
    return place


def text_of(page):
    shown = re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8").partition("<body>")[2])
    return re.sub(r"\s+", " ", shown.replace("&nbsp;", " "))


def test_a_card_with_a_table_has_the_coverage_that_evaluate_has(folder, tmp_path):
    page = tmp_path / "card.html"
    words = ("card", folder / "y.model", "--data", folder / "test.csv", "--groups", "ward", "-o", page)
    assert done(*words) == f"Card written to {page}\n"
    text = text_of(page)
    found = json.loads(done("evaluate", folder / "y.model", folder / "test.csv", "--json"))
    assert f"{100 * found['coverage']:.1f} % of 90 rows with a known target are inside" in text
    assert "Prediction intervals for y" in text
    assert "By group: ward" in text
    ward = pd.read_csv(folder / "test.csv").ward
    assert f"east, upper {np.sum(ward == 'east, upper')} " in text
    assert f"(missing) {ward.isna().sum()} " in text
    assert "Along day" in text
    assert re.search(r"2024-\d\d-\d\d to 2024-\d\d-\d\d", text)
    assert hashlib.sha256((folder / "y.model").read_bytes()).hexdigest() in text
    assert "model file y.model" in text


def test_a_card_of_the_model_alone(folder, tmp_path):
    done("card", folder / "y.model", "-o", tmp_path / "card.html")
    text = text_of(tmp_path / "card.html")
    model = load(folder / "y.model")
    assert f"Learnt from {len(model.learning_rows_)} rows, calibrated on {model.n_calibration_}" in text
    assert "No rows with a known target were given" in text


def test_groups_and_one_end_are_those_of_the_model(tmp_path):
    mixed_table(200).to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m", *FAST)
    done(*fit, "--groups", "flag", "--side", "upper")
    result = sosbands("card", tmp_path / "m", "--data", tmp_path / "t.csv", "-o", tmp_path / "card.html")
    assert result.exit_code == 0, result.stderr
    text = text_of(tmp_path / "card.html")
    assert "Each group was calibrated apart." in text
    assert "By group: flag" in text
    assert "Asked for upper ends alone: at most 10 % of new rows lie above theirs." in text
    assert "mean reach" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "card.pdf"], "output card.pdf: expected a name that ends in .html"),
        (["-o", "card.html", "--groups", "a"], "--groups without --data: expected a table"),
        (["-o", "card.html", "--target", "y"], "--target without --data: expected a table"),
        (["-o", "card.html", "--data", "none.csv"], "none.csv"),
        (["-o", "card.html", "--data", "t.csv", "--target", "z"], "'z'"),
        (["-o", "card.html", "--data", "t.csv", "--groups", "z"], "'z'"),
        (["-o", "no/card.html"], "no"),
        (["-o", "t.csv", "--data", "t.csv"], "expected a name that ends in .html"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    number_table().to_csv("t.csv", index=False)
    done("fit", "t.csv", "--target", "y", "-o", "m", *FAST)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = sosbands("card", "m", *words)
    assert result.exit_code == 1
    assert message in result.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_preprocessing_knows_the_learning_rows_only(tmp_path, monkeypatch):
    n = 80
    numbers = np.arange(n)
    names = np.array(["a", "b"])[numbers % 2]
    table = pd.DataFrame({"row": numbers, "v": np.where(numbers % 3, 1.05**numbers, np.nan), "w": names})
    table.assign(y=np.sin(numbers) + numbers / 40).to_csv(tmp_path / "t.csv", index=False)
    seen, real = [], TableEncoder.fit_transform

    def fit_transform(self, X, *given, **named):
        seen.append(X)
        return real(self, X, *given, **named)

    monkeypatch.setattr(TableEncoder, "fit_transform", fit_transform)
    page = tmp_path / "page.html"
    done("explore", tmp_path / "t.csv", "--target", "y", "-o", page, *FAST)
    stored = data_of(page.read_text(encoding="utf-8"))
    assert stored["counts"] == [80, 30, 30, 20]
    learning, again = (set(part["row"].astype(int)) for part in seen if len(part) == 30)
    assert learning == again  # for the kernel and for the point model, else folds
    assert not learning & set(stored["test"]["number"])
    assert all(set(part["row"].astype(int)) <= learning for part in seen)


def test_gaps_are_mentioned(tmp_path):
    table = pd.DataFrame({"v": [np.nan, np.nan, *range(38)], "y": np.arange(40.0)})
    table.to_csv(tmp_path / "t.csv", index=False)
    result = sosbands("explore", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "page.html", *FAST)
    assert result.exit_code == 0
    assert "filled with the median of the learning rows: 2 in 'v'" in result.stderr


@pytest.mark.parametrize("column", [[np.nan, *np.arange(39.0)], ["a", "b"] * 20], ids=["gap", "texts"])
def test_the_only_column_without_an_axis_leaves_the_prediction(tmp_path, column):
    rng = np.random.default_rng(0)
    pd.DataFrame({"v": column, "y": rng.normal(size=40)}).to_csv(tmp_path / "t.csv", index=False)
    done("explore", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "page.html", *FAST)
    stored = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [axis["name"] for axis in stored["axes"]] == ["prediction"]
    assert stored["test"]["x"] == [pytest.approx(stored["test"]["center"], abs=1e-5)]
