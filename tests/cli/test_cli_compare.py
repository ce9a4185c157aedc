"""`sosbands compare`: what its methods see of the rows that they must not learn from, and what one split can say."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor

from cli_runs import FAST, FIXED, done, mixed_table
from sosbands.baselines import SplitCP
from sosbands.cli.columns import learn_columns
from sosbands.cli.compare import TableMethod
from sosbands.cli.estimators import table_preprocessor
from sosbands.cli.table_files import open_table
from sosbands.point_models import ModelBlend

RARE = 17  # the only row with its category


class Witness(BaseEstimator):
    """Infinite intervals, and a record of all frames of each split: learning, calibration and test rows."""

    seen = []

    def __init__(self, calibration_size=None, random_state=None):
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(self, X, y):
        self.seen.append([X.assign(y=y)])
        return self

    def conformalize(self, X, y):
        self.seen[-1].append(X.assign(y=y))
        return self

    def predict_interval(self, X, confidence_level):
        assert confidence_level == 0.9
        self.seen[-1].append(X)
        return np.column_stack([np.full(len(X), -np.inf), np.full(len(X), np.inf)])


def table_with_a_rare_category(n=40):
    """Each third `v` is missing, and the others grow fast, so that every set of rows has its own median."""
    numbers = np.arange(n)
    return pd.DataFrame(
        {
            "row": numbers,
            "v": np.where(numbers % 3 == 0, np.nan, 1.1**numbers),
            "w": np.where(numbers == RARE, "rare", np.where(numbers % 2, "a", "b")),
            "y": numbers * 1.0,
        }
    )


def test_preprocessing_knows_the_learning_rows_of_the_split_only(tmp_path, monkeypatch):
    table = table_with_a_rare_category()
    table.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr("sosbands.cli.compare.make_method", lambda *_, **__: Witness())
    monkeypatch.setattr(Witness, "seen", [])
    done("compare", tmp_path / "t.csv", "--target", "y", "--methods", "split", "--repetitions", "8", "--jobs", "1")
    assert len(Witness.seen) == 8
    outside, medians = 0, set()
    for learning, calibration, test in Witness.seen:
        rows = learning["row"].astype(int).tolist()
        assert (len(rows), len(calibration), len(test)) == (16, 16, 8)
        median = table.v[rows].median()
        medians.add(median)
        for part in (learning, calibration, test):
            np.testing.assert_allclose(part.v, table.v.fillna(median)[part["row"].astype(int)], rtol=1e-12)
        texts = [name for name in learning if name.startswith("w_")]
        frequent = [name for name in ("a", "b") if (table.w[rows] == name).sum() >= 5]
        rare = ["w_(rare)"] if len(set(table.w[rows])) > len(frequent) else []
        assert texts == [*(f"w_{name}" for name in frequent), *rare]
        for part in (calibration, test):
            strange = (part["row"] == RARE) & ("w_(rare)" not in texts)
            assert part[texts].sum(axis=1).tolist() == (~strange).astype(float).tolist()
            outside += strange.sum()
    assert outside >= 2  # splits in which the rare category is not learnt from
    assert len(medians) > 4
    assert table.v.median() not in medians


def test_the_method_behind_a_table_gives_its_own_intervals(tmp_path):
    mixed_table().to_csv(tmp_path / "t.csv", index=False)
    columns, frame, y = learn_columns(open_table(tmp_path / "t.csv"), "y")
    learn, hold, new = slice(0, 60), slice(60, 100), slice(100, 120)
    method = SplitCP(DummyRegressor(), calibration_size=None)
    made = TableMethod(method, table_preprocessor(columns, scale=False))
    made.fit(frame[learn], y[learn]).conformalize(frame[hold], y[hold])
    scores = np.sort(np.abs(y[hold] - y[learn].mean()))
    half = scores[int(np.ceil(0.9 * 41)) - 1]
    expected = [y[learn].mean() - half, y[learn].mean() + half]
    np.testing.assert_allclose(made.predict_interval(frame[new], 0.9), np.tile(expected, (20, 1)))


def test_all_methods_stand_around_the_same_point_model(tmp_path, monkeypatch):
    mixed_table().to_csv(tmp_path / "t.csv", index=False)
    fitted, real = [], TableMethod.fit

    def fit(self, X, y):
        fitted.append(real(self, X, y))
        return self

    monkeypatch.setattr(TableMethod, "fit", fit)
    words = ("--methods", "sos,sos-paper,split,local", "--repetitions", "1", "--jobs", "1", *FIXED)
    found = json.loads(done("compare", tmp_path / "t.csv", "--target", "y", *words, "--json"))
    assert [row["n_failed"] for row in found["table"]] == [0] * 4
    assert [type(each.method_.estimator_) for each in fitted] == [ModelBlend] * 4
    rows = fitted[0].preprocessor_.transform(learn_columns(open_table(tmp_path / "t.csv"), "y")[1])
    predictions = [each.method_.predict(rows) for each in fitted]
    assert all(np.array_equal(each, predictions[0]) for each in predictions)
    assert fitted[0].method_.rules is None
    assert fitted[1].method_.rules.criterion == "hsic"
    assert fitted[1].method_.bands.constant is False


def test_a_method_that_holds_rows_back_is_refused():
    with pytest.raises(ValueError, match=r"method has calibration_size=0\.5: expected None"):
        TableMethod(SplitCP(), None).fit(None, None)


def test_one_repetition_gives_means_without_deviations(tmp_path):
    mixed_table().to_csv(tmp_path / "t.csv", index=False)
    words = ("compare", tmp_path / "t.csv", "--target", "y", "--methods", "sos,split", "--repetitions", "1", *FAST)
    printed = done(*words)
    assert printed.startswith("2 methods, 1 repetition at level 0.9\n")
    assert "nan" not in printed
    assert "±" not in printed
    assert "of which one repetition gives no confidence interval" in " ".join(printed.split())
    found = json.loads(done(*words, "--json"))
    assert found["table"][0]["coverage_sd"] is None
    assert found["differences"][0]["lower"] is None
    assert f"{found['table'][0]['coverage_mean']:.4g}" in printed


@pytest.mark.parametrize("with_gaps", [True, False])
def test_a_metric_that_cannot_be_computed_is_mentioned(tmp_path, with_gaps):
    table = table_with_a_rare_category().drop(columns="row" if with_gaps else "v")
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("compare", tmp_path / "t.csv", "--target", "y", "--methods", "split", "--repetitions", "2", *FAST)
    printed, found = done(*words), json.loads(done(*words, "--json"))
    missing = [remark for remark in found["remarks"] if remark.startswith("no worst_set_coverage: ")]
    assert len(missing) == with_gaps
    assert all(remark in printed.splitlines() for remark in found["remarks"])
    assert ("worst_set_coverage_mean" in found["table"][0]) is not with_gaps
