"""Comparison of interval regressors: pairing, rows, summaries, and differences with honest intervals."""

import math
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import _safe_indexing

from sosbands import metrics
from sosbands.comparison import (
    ComparisonResult,
    SplitSizes,
    StoreError,
    StoreMismatchError,
    TextTable,
    compare,
    corrected_interval,
    run_tasks,
    seed_of,
)
from sosbands.comparison.compare import prepared
from sosbands.conformal import Band, IntervalMixin, Told

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 2))
Y = X[:, 0] + (1.2 + X[:, 1]) * RNG.exponential(size=120)


class ConstantBand(IntervalMixin, RegressorMixin, BaseEstimator):
    """Split conformal prediction around any regressor."""

    calibration = "symmetric"

    def __init__(self, estimator=None, confidence_level=0.9, calibration_size=0.5, random_state=None):
        self.estimator, self.confidence_level = estimator, confidence_level
        self.calibration_size, self.random_state = calibration_size, random_state

    def fit(self, X, y):
        assert self.calibration_size is None
        self.estimator_ = clone(self.estimator or LinearRegression()).fit(X, y)
        return self

    def told(self, X):
        center = self.estimator_.predict(X)
        return Told(Band(center, center))


class Jittered(ConstantBand):
    """Ends that depend on the seed, as those of a random forest."""

    def told(self, X):
        band = super().told(X).band
        return Told(Band(band.lower - np.random.default_rng(self.random_state).uniform(), band.upper))


class Broken(ConstantBand):
    def fit(self, X, y):  # noqa: ARG002
        raise np.linalg.LinAlgError(f"{len(y)} rows are too few")


class Sometimes(ConstantBand):
    def fit(self, X, y):
        return Broken.fit(self, X, y) if self.random_state % 2 else super().fit(X, y)


class Loud(ConstantBand):
    def fit(self, X, y):
        for _ in range(2):
            warnings.warn("slow", UserWarning, stacklevel=1)
        return super().fit(X, y)


class WrongShape(ConstantBand):
    def predict_interval(self, X, confidence_level=None):
        return super().predict_interval(X, [confidence_level])


METHODS = {"linear": ConstantBand(), "mean": ConstantBand(DummyRegressor()), "forest": Jittered(Ridge())}


@pytest.fixture(scope="module")
def result():
    return compare(METHODS, X, Y, n_repetitions=5, random_state=3)


def without_seconds(rows):
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def column(result, method, name):
    return np.array([row[name] for row in result.rows if row["method"] == method])


# ---------------------------------------------------------------- splits


def test_splits_are_disjoint_and_complete():
    sizes = SplitSizes.of(120, 0.4, 25)
    assert sizes == SplitSizes(47, 48, 25)
    learn, calibration, test = sizes.split(9)
    assert sorted([*learn, *calibration, *test]) == list(range(120))
    assert [len(learn), len(calibration), len(test)] == [47, 48, 25]
    again, other = sizes.split(9), sizes.split(10)
    assert all(np.array_equal(a, b) for a, b in zip((learn, calibration, test), again, strict=True))
    assert not np.array_equal(test, other.test)


def test_every_row_is_equally_often_in_each_part():
    sizes = SplitSizes.of(10, 0.3, 0.2)
    counts = np.zeros((3, 10))
    for seed in range(3000):
        for i, rows in enumerate(sizes.split(seed)):
            counts[i, rows] += 1
    shares = counts / 3000
    np.testing.assert_allclose(shares, np.array([[0.5], [0.3], [0.2]]) * np.ones(10), atol=4 * math.sqrt(0.25 / 3000))


# ---------------------------------------------------------------- rows


def by_hand(method, X, y, row):
    """The method fitted and calibrated on the rows of a split, its learning and test rows, and intervals of those."""
    learn, calibration, test = SplitSizes(row["n_learn"], row["n_calibration"], int(row["n"])).split(row["seed"])
    model = clone(method).set_params(calibration_size=None).fit(_safe_indexing(X, learn), y[learn])
    model.conformalize(_safe_indexing(X, calibration), y[calibration])
    return model, learn, test, model.predict_interval(_safe_indexing(X, test), 0.9)


def test_rows_are_those_of_the_steps_done_by_hand(result):
    assert [(row["method"], row["repetition"]) for row in result.rows] == [(m, i) for i in range(5) for m in METHODS]
    row = result.rows[4]  # the mean in repetition 1
    seed = seed_of({"repetition": 1}, 3)
    assert (row["seed"], row["n_learn"], row["n_calibration"], row["n"]) == (seed, 48, 48, 24)
    model, learn, test, ends = by_hand(METHODS["mean"], X, Y, row)
    where = {"X": X[test], "X_learn": X[learn]}
    wanted = metrics.evaluate_intervals(Y[test], *ends.T, confidence_level=0.9, random_state=seed, **where)
    assert {name: row[name] for name in wanted} == wanted
    assert wanted["mean_width"] > 0
    by_method = model.evaluate(X[test], Y[test])
    assert by_method.keys() == wanted.keys() | {"crps", "pit_distance"}  # which intervals alone do not have
    assert all(by_method[name] == row[name] for name in wanted if not name.startswith("worst"))
    assert "worst_set_coverage" not in row  # 24 test rows are no two sets of 100 neighbours
    assert row["confidence_level"] == 0.9
    parts = row["fit_seconds"] + row["calibrate_seconds"] + row["predict_seconds"]
    assert 0 < parts <= row["seconds"]


def test_the_same_rows_from_two_processes(result):
    parallel = compare(METHODS, X, Y, n_repetitions=5, random_state=3, n_jobs=2)
    assert without_seconds(parallel.rows) == without_seconds(result.rows)
    other = compare(METHODS, X, Y, n_repetitions=5, random_state=4)
    assert not set(column(other, "linear", "mean_width")) & set(column(result, "linear", "mean_width"))


def test_what_is_set_in_each_copy():
    method = ConstantBand(RandomForestRegressor(), confidence_level=0.5, calibration_size=0.3)
    copy = prepared(method, 0.8, 77)
    assert (copy.calibration_size, copy.confidence_level, copy.random_state) == (None, 0.8, 77)
    assert copy.estimator.random_state == 77
    assert (method.calibration_size, method.random_state, method.estimator.random_state) == (0.3, None, None)
    fixed = prepared(ConstantBand(RandomForestRegressor(random_state=1), random_state=2), 0.8, 77)
    assert (fixed.random_state, fixed.estimator.random_state) == (2, 1)


def test_data_frames_reach_the_methods_as_they_are():
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "word": np.where(X[:, 1] > 0, "b", "a")}, index=range(500, 620))
    encode = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    methods = {"table": ConstantBand(make_pipeline(encode, LinearRegression()))}
    rows = compare(methods, frame, pd.Series(Y, index=frame.index), n_repetitions=2, test_size=0.5).rows
    assert [row["error"] for row in rows] == [None, None]
    *_, ends = by_hand(methods["table"], frame, Y, rows[0])
    assert rows[0]["mean_width"] == pytest.approx(np.mean(ends[:, 1] - ends[:, 0]), rel=1e-12)
    many = pd.concat([frame] * 4, ignore_index=True)
    (row,) = compare(methods, many, np.tile(Y, 4), n_repetitions=1, test_size=200).rows
    assert "worst_set_coverage" in row  # in the columns that hold numbers
    words = compare(
        {"mean": ConstantBand(DummyRegressor())}, many[["word"]], np.tile(Y, 4), n_repetitions=1, test_size=200
    )
    assert "worst_set_coverage" not in words.rows[0]
    assert words.rows[0]["error"] is None
    assert words.remarks[-1].startswith("no worst_set_coverage: its sets are neighbours in dense columns")
    thin = compare({"linear": ConstantBand()}, sparse.csr_array(X), Y, n_repetitions=1).rows
    dense = compare({"linear": ConstantBand()}, X, Y, n_repetitions=1).rows
    assert thin[0]["mean_width"] == pytest.approx(dense[0]["mean_width"], rel=1e-6)


def test_the_worst_sets_are_those_of_standardised_features():
    rng = np.random.default_rng(1)
    many = rng.normal(size=(450, 2)) * [1.0, 50.0]
    y = rng.normal(size=450) * np.where(many[:, 0] > 0, 3.0, 0.1)
    methods = {"a": ConstantBand(), "b": ConstantBand()}
    found = compare(methods, many, y, n_repetitions=1, test_size=200, calibration_size=245)
    row = found.rows[0]
    _, learn, test, ends = by_hand(methods["a"], many, y, row)
    given = (y[test], *ends.T, many[test])
    wanted = metrics.worst_set_coverage(*given, X_learn=many[learn], random_state=row["seed"])
    assert wanted.marginal < row["coverage"] - 0.03
    by_test_rows = metrics.worst_set_coverage(*given, random_state=row["seed"])
    assert wanted.marginal != by_test_rows.marginal  # five learning rows have another scale
    assert [row["worst_set_coverage"] for row in found.rows] == [wanted.marginal] * 2
    assert [row["worst_set_coverage_upper"] for row in found.rows] == [wanted.upper] * 2
    assert "worst_set_coverage:" not in repr(found)


def spread(y, lower, upper):  # noqa: ARG001
    return np.ptp(y)


def test_metrics_of_ones_own():
    result = compare({"a": ConstantBand()}, X, Y, n_repetitions=2, metrics={"spread": spread})
    test = SplitSizes(48, 48, 24).split(seed_of({"repetition": 1})).test
    assert result.rows[1]["spread"] == np.ptp(Y[test])
    assert result.table(["spread"])[0]["spread_mean"] == column(result, "a", "spread").mean()


# ---------------------------------------------------------------- failures and warnings


def test_a_failing_method_is_a_row_and_the_others_go_on(result):
    methods = {"broken": Broken(), **METHODS}
    found = compare(methods, X, Y, n_repetitions=5, random_state=3)
    others = [row for row in found.rows if row["method"] != "broken"]
    assert without_seconds(others) == without_seconds(result.rows)
    assert len(found.failures) == 5
    assert {row["confidence_level"] for row in found.rows} == {0.9}
    assert {(row["error_type"], row["error"]) for row in found.failures} == {("LinAlgError", "48 rows are too few")}
    summary = found.table()[0]
    assert (summary["method"], summary["n"], summary["n_failed"]) == ("broken", 0, 5)
    assert math.isnan(summary["coverage_mean"])
    assert "failed 5 times, broken: LinAlgError: 48 rows are too few" in repr(found)
    assert found.describe(["coverage"]).splitlines()[4].split() == ["broken", "-", "-", "-", "0", "5", "0"]
    assert [row["n"] for row in found.differences(reference="broken")] == [0, 0, 0]


def test_differences_use_the_repetitions_in_which_both_succeed():
    found = compare({"a": Sometimes(), "b": METHODS["mean"]}, X, Y, n_repetitions=8)
    widths = {name: {r["repetition"]: r.get("mean_width") for r in found.rows if r["method"] == name} for name in "ab"}
    d = [width - widths["b"][k] for k, width in widths["a"].items() if width is not None]
    assert 2 <= len(d) < 8
    (row,) = found.differences("mean_width")
    assert (row["n"], row["difference"]) == (len(d), pytest.approx(np.mean(d), rel=1e-12))


def test_warnings_are_counted_in_rows_and_shown_once(recwarn):
    found = compare({"loud": Loud(), "a": ConstantBand()}, X, Y, n_repetitions=3)
    assert not list(recwarn)
    assert [(row["n_warnings"], row["warnings"]) for row in found.rows] == [(2, "UserWarning"), (0, "")] * 3
    assert [row["n_warnings"] for row in found.table()] == [6, 0]
    assert repr(found).count("warned in 3 repetitions, loud: UserWarning") == 1
    few = compare({"a": ConstantBand()}, X, Y, n_repetitions=1, calibration_size=5)
    assert few.rows[0]["warnings"] == "TooFewCalibrationPointsWarning"
    assert few.rows[0]["mean_width"] == math.inf
    assert "nan" not in few.describe()
    assert few.table()._shown[0]["mean_width"] == "inf"


def test_one_repetition_has_no_deviation_and_no_interval():
    found = compare({"a": ConstantBand(), "b": METHODS["mean"]}, X, Y, n_repetitions=1)
    text = found.describe()
    assert text.startswith("2 methods, 1 repetition at level 0.9\n")
    assert repr(found) == f"ComparisonResult: {text}"
    assert "±" not in text
    row = found.table()[0]
    assert found.table()._shown[0]["coverage"] == f"{row['coverage_mean']:.4g}"
    assert math.isnan(row["coverage_sd"])
    difference = found.differences("mean_width")
    assert math.isnan(difference[0]["lower"])
    assert repr(difference).splitlines()[1].split()[-3:] == ["-", "-", "1"]


# ---------------------------------------------------------------- summaries and differences


def test_the_corrected_interval_by_hand():
    # mean 2, variance 4/3 (ddof 1), J = 4; t(0.975; 3) = 3.182446305...
    found = corrected_interval([1.0, 1.0, 3.0, 3.0], test_ratio=0.25)
    half = 3.182446305284263 * math.sqrt((1 / 4 + 1 / 4) * 4 / 3)
    assert found == pytest.approx((2, 2 - half, 2 + half), rel=1e-12)
    naive = stats.ttest_1samp([1.0, 1.0, 3.0, 3.0], 0).confidence_interval(0.9)
    assert corrected_interval([1.0, 1.0, 3.0, 3.0], 0, 0.9)[1:] == pytest.approx(tuple(naive), rel=1e-12)


@pytest.mark.parametrize(("d", "mean"), [([], math.nan), ([3.0], 3.0), ([1.0, math.inf], math.inf)])
def test_too_few_or_infinite_differences_have_no_interval(d, mean):
    np.testing.assert_array_equal(corrected_interval(d, 0.2), [mean, math.nan, math.nan])


def test_differences_are_paired_and_corrected(result):
    table = result.differences("mean_width", reference="linear", confidence_level=0.8)
    assert [(row["method"], row["reference"]) for row in table] == [("mean", "linear"), ("forest", "linear")]
    d = column(result, "mean", "mean_width") - column(result, "linear", "mean_width")
    half = stats.t.ppf(0.9, 4) * math.sqrt((1 / 5 + 24 / 96) * d.var(ddof=1))
    found = [table[0][name] for name in ("difference", "lower", "upper", "n")]
    assert found == pytest.approx([d.mean(), d.mean() - half, d.mean() + half, 5], rel=1e-12)
    pairs = [(row["method"], row["reference"]) for row in result.differences()]
    assert pairs == [("linear", "mean"), ("linear", "forest"), ("mean", "forest")]


def test_identical_methods_differ_by_exactly_zero():
    methods = {"one": Jittered(Ridge()), "two": Jittered(Ridge()), "three": Jittered(Ridge(alpha=50))}
    found = compare(methods, X, Y, n_repetitions=4)
    for metric in ("coverage", "mean_width", "interval_score", "hsic"):
        row = found.differences(metric)[0]
        assert (row["difference"], row["lower"], row["upper"]) == (0, 0, 0)
    assert found.differences("mean_width")[1]["difference"] != 0  # the check can fail
    assert len(set(column(found, "one", "mean_width"))) == 4


def test_overlapping_splits_need_the_correction():
    """The interval of the mean difference of widths, on 300 data sets, against the mean over all of them."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y, d = rng.exponential(size=60), []
        for _ in range(10):
            test, rest = np.split(rng.permutation(60), [20])
            d.append(np.mean(np.abs(y[test] - np.median(y[rest])) - np.abs(y[test] - np.mean(y[rest]))))
        found.append(d)
    truth = np.mean(found)

    def covered(ratio):
        intervals = [corrected_interval(d, ratio, 0.9) for d in found]
        return np.mean([each.lower <= truth <= each.upper for each in intervals])

    assert covered(0.0) < 0.8  # the usual paired interval claims 0.9
    assert covered(0.5) > 0.88


# ---------------------------------------------------------------- text, frames


def test_the_summary_is_mean_and_sd_in_a_readable_table(result):
    summary, widths = result.table()[1], column(result, "mean", "mean_width")
    assert summary["method"] == "mean"
    assert summary["mean_width_mean"] == pytest.approx(widths.mean(), rel=1e-14)
    assert summary["mean_width_sd"] == pytest.approx(widths.std(ddof=1), rel=1e-14)
    assert summary["fit_seconds"] == pytest.approx(column(result, "mean", "fit_seconds").mean(), rel=1e-14)
    assert (summary["n"], summary["n_failed"], summary["n_warnings"]) == (5, 0, 0)
    lines = repr(result).splitlines()
    assert lines[0] == "ComparisonResult: 3 methods, 5 repetitions at level 0.9"
    assert lines[1] == "rows: 48 to learn, 48 to calibrate, 24 to test"
    shown = "method coverage mean_width interval_score fit s predict s n failed warnings"
    assert lines[3].split() == shown.split()
    assert lines[5].startswith("mean ")
    assert f"{widths.mean():.4g} ± {widths.std(ddof=1):.2g}" in lines[5]
    few = "24 test rows are too few, as two of its sets of 100 neighbours need 200"
    assert lines[-1] == f"no worst_set_coverage: {few}"
    markdown = result.to_markdown().splitlines()
    assert markdown[0].startswith("| method | coverage | mean_width |")
    assert markdown[1].startswith("|---|---:|---:|")
    assert [line.split()[1] for line in markdown[2:]] == list(METHODS)


def test_groups_and_places_of_a_comparison(tmp_path):
    rng = np.random.default_rng(2)
    many, labels = rng.normal(size=(620, 1)), np.where(np.arange(620) % 3, "often", "rare")
    y = rng.normal(size=620) * np.where(labels == "rare", 3.0, 1.0)
    asked = {"n_repetitions": 2, "test_size": 220, "store": tmp_path / "runs.jsonl"}
    found = compare({"one": ConstantBand()}, many, y, by=labels, places=True, **asked)
    row = found.rows[0]
    _, _, test, ends = by_hand(ConstantBand(), many, y, row)
    wanted = metrics.evaluate_groups(y[test], *ends.T, labels[test], confidence_level=0.9)
    assert row["by"] == [{"group": name, **numbers} for name, numbers in wanted.items()]
    risk = metrics.coverage_excess_risk(y[test], *ends.T, many[test], 0.9, random_state=row["seed"])
    assert {name: row[name] for name in risk} == risk
    assert "worst_slab_coverage" not in row  # 220 rows
    assert (row["n_warnings"], row["warnings"]) == (2, "TooFewRowsWarning")
    table = found.by_group()
    assert [(each["group"], each["method"]) for each in table] == [("often", "one"), ("rare", "one")]
    pair = [each["by"][1] for each in found.rows]
    assert table[1]["coverage"] == pytest.approx(np.mean([each["coverage"] for each in pair]), rel=1e-12)
    assert table[1]["coverage_from"] < table[1]["coverage"] < table[1]["coverage_to"]
    assert table[1]["coverage"] < 0.8 < table[0]["coverage"]
    assert repr(table) in repr(found)
    again = ComparisonResult.from_store(asked["store"])
    assert list(again.by_group()) == list(table)
    with pytest.raises(StoreMismatchError):
        compare({"one": ConstantBand()}, many, y, by=labels[::-1], places=True, **asked)
    assert "by" not in found.metrics
    with pytest.raises(ValueError, match="places=True: expected False, as X has no columns of finite numbers"):
        compare({"one": ConstantBand()}, many.astype(str), y, places=True)


def test_tables_of_text():
    text = TextTable([{"a|b": "x", "n": 1.23456}, {"a|b": "y", "n": math.inf}])
    assert text.to_markdown() == "| a\\|b | n |\n|---|---:|\n| x | 1.235 |\n| y | inf |"
    assert repr(text) == "a|b      n\nx    1.235\ny      inf"
    assert text.column("n") == [1.23456, math.inf]
    assert repr(TextTable([])) == "(no rows)"
    noted = TextTable([{"n": 1.5}, {"n": 2.5}], [{"n": "1.5 ± 1"}, {"n": "-"}], note="About n.")
    assert noted.to_markdown() == "| n |\n|---:|\n| 1.5 ± 1 |\n| - |\n\nAbout n."
    assert repr(noted) == "      n\n1.5 ± 1\n      -\n\nAbout n."
    with pytest.raises(KeyError, match="column 'm': expected one of"):
        text.column("m")


def test_frames_with_and_without_pandas(result, monkeypatch):
    means = result.to_frame().groupby("method")["mean_width"].mean()
    assert means["mean"] == pytest.approx(result.table()[1]["mean_width_mean"], rel=1e-12)
    assert list(result.differences().to_frame()["n"]) == [5, 5, 5]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


# ---------------------------------------------------------------- the store


def test_a_stored_comparison_is_continued_and_extended(tmp_path, result):
    path = tmp_path / "store.jsonl"
    first = compare({"linear": METHODS["linear"]}, X, Y, n_repetitions=3, random_state=3, store=path)
    longer = compare(METHODS, X, Y, n_repetitions=5, random_state=3, store=path)
    assert without_seconds(longer.rows) == without_seconds(result.rows)
    assert [row for row in longer.rows if row["method"] == "linear"][:3] == first.rows  # seconds too
    read = ComparisonResult.from_store(path)
    assert read.rows == longer.rows
    assert (read.methods, read.sizes, read.confidence_level) == (longer.methods, longer.sizes, 0.9)
    assert repr(read) == repr(longer)
    assert read.environments == longer.environments
    assert len(read.environments) == 1


def test_another_comparison_is_refused(tmp_path):
    path = tmp_path / "store"
    common = {"methods": {"a": ConstantBand(Ridge())}, "X": X, "y": Y, "n_repetitions": 1, "store": path}
    compare(**common)
    for change, message in [
        ({"confidence_level": 0.8}, "confidence_level: 0.9 there, 0.8 here"),
        ({"test_size": 30}, "sizes: n_learn 48 there, 42 here"),
        ({"X": X + 1}, "data: X "),
        ({"y": Y[::-1]}, "data: y "),
        ({"methods": {"a": ConstantBand(Ridge(alpha=2))}}, "method a: parameters estimator parameters alpha 1.0 there"),
        ({"random_state": 1}, "random_state: 0 there, 1 here"),
        ({"metrics": {"spread": spread}}, "metrics: "),
    ]:
        with pytest.raises(StoreMismatchError, match=message):
            compare(**{**common, **change})
    run_tasks(lambda axes, seed: {}, [{"i": 0}], store=tmp_path / "other")  # noqa: ARG005
    with pytest.raises(StoreError, match="expected a store that compare has written"):
        ComparisonResult.from_store(tmp_path / "other")


def test_failed_runs_are_repeated_only_if_asked(tmp_path):
    common = {"X": X, "y": Y, "n_repetitions": 2, "store": tmp_path / "s"}
    methods = {"a": Broken()}
    first = compare(methods, **common)
    assert compare(methods, **common).rows == first.rows
    again = compare(methods, **common, retry_failed=True)
    assert again.rows != first.rows
    assert without_seconds(again.rows) == without_seconds(first.rows)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": {}}, r"methods=\{\}: expected a non-empty mapping"),
        ({"methods": [ConstantBand()]}, "expected a non-empty mapping"),
        ({"methods": {1: ConstantBand()}}, "methods has the name 1: expected a non-empty string"),
        ({"methods": {"a": LinearRegression()}}, r"methods\['a'\] has no conformalize: expected an interval regressor"),
        ({"methods": {"a": ConstantBand}}, r"methods\['a'\] is a class: expected"),
        ({"n_repetitions": 0}, "n_repetitions=0: expected an integer >= 1"),
        ({"n_repetitions": 2.0}, "n_repetitions=2.0: expected"),
        ({"confidence_level": 90}, r"confidence_level=90: expected a number in \(0, 1\)"),
        ({"test_size": 1.0}, "test_size=1.0: expected a fraction"),
        ({"calibration_size": 0}, "calibration_size=0: expected a fraction"),
        ({"calibration_size": True}, "calibration_size=True: expected a fraction"),
        ({"calibration_size": 100}, "calibration_size=100 and test_size=0.2 leave -4 of 120 rows"),
        ({"y": Y[:-1]}, r"y has shape \(119,\): expected one entry per row of X"),
        ({"y": np.full(120, np.nan)}, "y has 120 entries that are NaN"),
        ({"random_state": None}, "random_state=None: expected an integer"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        compare(**{"methods": METHODS, "X": X, "y": Y, **change})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda result: result.differences("width"), "metric 'width': expected one of .*mean_width"),
        (lambda result: result.table(["error"]), "metric 'error': expected one of"),
        (lambda result: result.differences(reference="ours"), "reference='ours': expected one of linear, mean, forest"),
        (lambda result: result.differences(confidence_level=95), "confidence_level=95: expected"),
        (lambda _: corrected_interval([1.0], -1), "test_ratio=-1: expected"),
        (lambda _: corrected_interval([[1.0]], 0.1), "one dimension"),
    ],
)
def test_bad_questions_are_named(result, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(result)


def test_intervals_of_another_shape_are_a_failure():
    (row,) = compare({"a": WrongShape()}, X, Y, n_repetitions=1).rows
    assert row["error_type"] == "ValueError"
    assert row["error"] == "predict_interval gave shape (24, 2, 1): expected (24, 2)"
