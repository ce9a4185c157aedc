"""`sosbands compare`: its words, what its methods see of rows that they must not learn from, and its store."""

import re
import signal

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor

from cli_runs import FAST, FIXED, done, flat, noted, number_table, pd, refused, said
from sosbands.baselines import SplitCP
from sosbands.cli.app import Stopped
from sosbands.cli.columns import learn_columns
from sosbands.cli.compare import TableMethod
from sosbands.cli.table_files import open_table
from sosbands.point_models import ModelBlend
from sosbands.tables import TableEncoder

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


def test_the_method_behind_a_table_gives_its_own_intervals(folder):
    columns, frame, y = learn_columns(open_table(folder / "mixed.csv"), "y")
    learn, hold, new = slice(0, 60), slice(60, 100), slice(100, 120)
    method = SplitCP(DummyRegressor(), calibration_size=None)
    made = TableMethod(method, TableEncoder(columns.kinds, scale=False))
    made.fit(frame[learn], y[learn]).conformalize(frame[hold], y[hold])
    scores = np.sort(np.abs(y[hold] - y[learn].mean()))
    half = scores[int(np.ceil(0.9 * 41)) - 1]
    expected = [y[learn].mean() - half, y[learn].mean() + half]
    np.testing.assert_allclose(made.predict_interval(frame[new], 0.9), np.tile(expected, (20, 1)))


def test_all_methods_stand_around_the_same_point_model(folder, monkeypatch):
    fitted, real = [], TableMethod.fit

    def fit(self, X, y):
        fitted.append(real(self, X, y))
        return self

    monkeypatch.setattr(TableMethod, "fit", fit)
    words = ("--methods", "sos,sos-paper,split,local", "--repetitions", "1", "--jobs", "1", *FIXED)
    found = said("compare", folder / "mixed.csv", "--target", "y", *words)
    assert [row["n_failed"] for row in found["table"]] == [0] * 4
    assert [type(each.method_.estimator_) for each in fitted] == [ModelBlend] * 4
    rows = fitted[0].preprocessor_.transform(learn_columns(open_table(folder / "mixed.csv"), "y")[1])
    predictions = [each.method_.predict(rows) for each in fitted]
    assert all(np.array_equal(each, predictions[0]) for each in predictions)
    assert fitted[0].method_.rules is None
    assert fitted[1].method_.rules.criterion == "hsic"
    assert fitted[1].method_.bands.constant is False


def test_a_method_that_holds_rows_back_is_refused():
    with pytest.raises(ValueError, match=r"method has calibration_size='auto': expected None"):
        TableMethod(SplitCP(), None).fit(None, None)


def test_one_repetition_gives_means_without_deviations(folder):
    words = ("compare", folder / "mixed.csv", "--target", "y", "--methods", "sos,split", "--repetitions", "1", *FAST)
    printed, found = done(*words), said(*words)
    assert printed.startswith("2 methods, 1 repetition at level 0.9\n")
    assert "nan" not in printed
    assert "±" not in printed
    assert "of which one repetition gives no confidence interval" in flat(printed)
    assert found["table"][0]["coverage_sd"] is None
    assert found["differences"][0]["lower"] is None
    assert f"{found['table'][0]['coverage_mean']:.4g}" in printed


@pytest.mark.parametrize("with_gaps", [True, False])
def test_a_metric_that_cannot_be_computed_is_mentioned(tmp_path, with_gaps):
    table = table_with_a_rare_category(1000).drop(columns="row" if with_gaps else "v")
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("compare", tmp_path / "t.csv", "--target", "y", "--methods", "split", "--repetitions", "2", *FAST)
    printed, found = done(*words), said(*words)
    missing = [remark for remark in found["remarks"] if remark.startswith("no worst_set_coverage: ")]
    assert len(missing) == with_gaps
    assert all(remark in printed.splitlines() for remark in found["remarks"])
    assert ("worst_set_coverage_mean" in found["table"][0]) is not with_gaps


def test_groups_and_places_are_compared(folder):
    words = ("compare", folder / "groups.csv", "--target", "y", "--by", "ward", "--drop", "ward", "--places")
    words += ("--methods", "split,local", "--repetitions", "2", "--model", "linear")
    printed, found = done(*words), said(*words)
    assert [(row["group"], row["method"]) for row in found["by"]] == [
        (group, method) for group in ("calm", "wild") for method in ("split", "local")
    ]
    assert re.search(r"^calm +split +\d+ +1 +0\.\d+ +1 ", printed, re.MULTILINE)
    assert "warned in 2 repetitions, split: TooFewRowsWarning" in found["remarks"]  # 40 test rows
    assert any(remark.startswith("no worst_set_coverage: 40 test rows are too few") for remark in found["remarks"])
    assert "no column 'wart': did you mean 'ward'?" in refused(*words[:4], "--by", "wart")
    assert "--by row: the column holds 200 different values" in refused(*words[:4], "--by", "row")


def test_compare_in_words(folder):
    words = ("--methods", "split,cqr-forest", "--repetitions", "2", "--rows", "60", "--model", "linear")
    printed = done("compare", folder / "numbers.csv", "--target", "y", *words)
    assert re.search(r"^method +coverage +mean_width +relative_width +interval_score", printed, re.MULTILINE)
    assert re.search(r"^split .* 1 ± 0 ", printed, re.MULTILINE)
    assert re.search(r"\n\n(split|cqr-forest) is |\n\nNo clear winner: ", printed)
    assert printed.startswith("2 methods, 2 repetitions at level 0.9\nrows: 24 to learn, 24 to calibrate, 12 to test")
    assert re.search(r"^cqr-forest +split +interval_score", printed, re.MULTILINE)


def test_compare_names_what_makes_every_run_fail(folder):
    words = ("--methods", "sos", "--repetitions", "1", "--model", "spline", *FIXED)
    message = refused("compare", folder / "numbers.csv", "--target", "y", *words)
    assert "--model spline needs one column of numbers, there are 2: 'a', 'b'" in message


# ---------------------------------------------------------------- the store


class Counted:
    """Fits of methods, the last of which is interrupted."""

    def __init__(self, monkeypatch, last=None):
        self.count, self.last, self.real = 0, last, TableMethod.fit
        monkeypatch.setattr(TableMethod, "fit", lambda method, X, y: self(method, X, y))

    def __call__(self, method, X, y):
        self.count += 1
        if self.count == self.last:
            raise Stopped(signal.SIGINT)
        return self.real(method, X, y)


def compared(path, *words):
    return ("compare", path, "--target", "y", "--methods", "sos,split", "--repetitions", "3", *FAST, *words)


@pytest.fixture(scope="module")
def stored(folder, tmp_path_factory):
    """A whole comparison and its store."""
    path = tmp_path_factory.mktemp("store") / "runs.jsonl"
    return path, said(*compared(folder / "numbers.csv", "--store", path))


def test_an_interrupted_comparison_goes_on_from_its_store_with_the_same_numbers(folder, stored, tmp_path, monkeypatch):
    words, store = compared(folder / "numbers.csv"), tmp_path / "runs.jsonl"
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        message = refused(*words, "--store", store, code=130)
    assert f"finished runs are in {store}: the same command continues\n" in message
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        told, again = noted(*words, "--store", store), said(*words, "--store", store)
    assert counted.count == 3
    assert "3 of 6 done before" in told
    assert again["differences"] == stored[1]["differences"]


def test_more_repetitions_are_added_to_the_store(folder, stored, tmp_path):
    path, first = tmp_path / "runs.jsonl", stored[1]
    path.write_bytes(stored[0].read_bytes())
    assert [(row["method"], row["n_failed"]) for row in first["table"]] == [("sos", 0), ("split", 0)]
    assert (first["n_learning"], first["n_calibration"], first["n_test"]) == (32, 32, 16)
    (difference,) = first["differences"]
    means = {row["method"]: row["interval_score_mean"] for row in first["table"]}
    assert difference["difference"] == pytest.approx(means["split"] - means["sos"])
    words = ("--store", path, "--repetitions", "4", "-o", tmp_path / "table.csv")
    more = said(*compared(folder / "numbers.csv", *words))
    assert len(more["rows"]) == 8
    assert more["rows"][:6] == first["rows"]  # read, not computed: even the seconds are the same
    table = pd.read_csv(tmp_path / "table.csv")
    assert table.method.tolist() == ["sos", "split"]
    assert table.coverage_mean.tolist() == pytest.approx([row["coverage_mean"] for row in more["table"]])


def test_without_a_store_nothing_is_kept_and_other_data_are_refused(folder, stored, tmp_path, monkeypatch):
    number_table(seed=1).to_csv(tmp_path / "t.csv", index=False)
    assert str(stored[0]) in refused(*compared(tmp_path / "t.csv", "--store", stored[0]))
    other = refused(*compared(folder / "numbers.csv", "--store", stored[0], "--confidence-level", "0.8"))
    assert "confidence_level" in other
    Counted(monkeypatch, last=4)
    assert "finished runs" not in refused(*compared(tmp_path / "t.csv"), code=130)
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_stored_runs_of_other_code_are_refused_run_again_or_kept(folder, stored, monkeypatch):
    path, whole = stored
    words = compared(folder / "numbers.csv", "--store", path)
    monkeypatch.setattr("sosbands.comparison.runner.code_version", lambda *_: "new")
    message = refused(*words)
    assert "6 of 6 finished rows were made by other code" in message
    assert "--other-code again" in message
    for choice, fits in (("keep", 0), ("again", 6), ("refuse", 0)):
        with monkeypatch.context() as patched:
            counted = Counted(patched)
            found = said(*words, "--other-code", choice)
        assert (choice, counted.count) == (choice, fits)
        assert found["differences"] == whole["differences"]
