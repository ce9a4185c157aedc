"""The commands do what the library does, with CSV and Parquet files of every kind of column."""

import importlib.util
import json
import re
import sys
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
import typer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sosbands as library
from cli_runs import FAST, FIXED, done, mixed_table, number_table, sosbands
from report_payload import data_of
from sosbands import SoSBandRegressor
from sosbands.cli.app import PLAIN
from sosbands.cli.options import flag, option, spelled
from sosbands.cli.pages import RIVALS
from sosbands.datasets import DELIVERY_COLUMNS, delivery_times
from sosbands.exceptions import OffDataWarning
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.regressors import PAPER_SETTINGS

pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
SETTINGS = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 10.0}
EXACT = ("--digits", "17")
# the default of pandas 2 loses the last bit
read_csv = partial(pd.read_csv, float_precision="round_trip") if pd.__version__ < "3" else pd.read_csv
WRITTEN = ["prediction", "lower", "upper", "support"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of numbers and of mixed columns, and a model of each."""
    path = tmp_path_factory.mktemp("cli")
    for name, table in (("numbers", number_table()), ("mixed", mixed_table())):
        table.to_csv(path / f"{name}.csv", index=False)
        table.to_parquet(path / f"{name}.parquet")
        done("fit", path / f"{name}.csv", "--target", "y", "-o", path / f"{name}.model", *FAST)
    number_table(50, seed=1).to_csv(path / "numbers-new.csv", index=False)
    mixed_table(50, seed=1).to_csv(path / "mixed-new.csv", index=False)
    mixed_table(50, seed=1).to_parquet(path / "mixed-new.parquet")
    return path


def predicted(folder, tmp_path, model, data, *words, output="out.csv"):
    words = (*words, *(() if "--digits" in words else EXACT))
    done("predict", folder / model, folder / data, "-o", tmp_path / output, *words)
    read = read_csv if output.endswith(".csv") else pd.read_parquet
    return read(tmp_path / output)


def test_predict_writes_what_the_library_predicts(folder, tmp_path):
    X, y = number_table()[["a", "b"]], number_table()["y"]
    # gaps are filled before standardising, which changes nothing without gaps
    model = SoSBandRegressor(
        make_pipeline(StandardScaler(), RidgeCV(alphas=[10.0**k for k in range(-3, 4)])), random_state=0, **SETTINGS
    ).fit(X, y)
    new = number_table(50, seed=1)[["a", "b"]]
    found = predicted(folder, tmp_path, "numbers.model", "numbers-new.csv")
    assert list(found.columns) == WRITTEN
    np.testing.assert_allclose(found[["lower", "upper"]], model.predict_interval(new), rtol=1e-4)
    np.testing.assert_allclose(found["prediction"], model.predict(new), rtol=1e-9)
    np.testing.assert_allclose(found["support"], model.support(new), rtol=1e-9)


def test_a_saved_model_gives_the_same_bits_in_python(folder, tmp_path):
    model = library.load(folder / "mixed.model")
    new = mixed_table(50, seed=1)
    frame = new.assign(
        ward=new.ward.fillna("").astype(object),
        flag=new.flag.map({True: "true", False: "false"}).astype(object),
        day=(new.day - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
    )[["x", "z", "ward", "flag", "day"]]
    found = predicted(folder, tmp_path, "mixed.model", "mixed-new.parquet", output="out.parquet")
    assert np.array_equal(found[["lower", "upper"]], model.predict_interval(frame))
    assert np.array_equal(found["prediction"], model.predict(frame))
    assert np.array_equal(found["support"], model.support(frame))
    assert model.columns_["kinds"] == {
        "x": "number",
        "z": "number",
        "ward": "category",
        "flag": "boolean",
        "day": "date",
    }


def test_the_confidence_level_changes_the_ends_and_nothing_else(folder, tmp_path):
    wide = predicted(folder, tmp_path, "numbers.model", "numbers-new.csv", "--confidence-level", "0.9")
    narrow = predicted(folder, tmp_path, "numbers.model", "numbers-new.csv", "--confidence-level", "0.5")
    default = predicted(folder, tmp_path, "numbers.model", "numbers-new.csv")
    assert wide.equals(default)
    assert (wide.lower < narrow.lower).all()
    assert (narrow.upper < wide.upper).all()
    assert wide[["prediction", "support"]].equals(narrow[["prediction", "support"]])


@pytest.mark.parametrize("source", ["mixed-new.csv", "mixed-new.parquet"])
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_csv_and_parquet_say_the_same(folder, tmp_path, source, output):
    done("fit", folder / "mixed.parquet", "--target", "y", "-o", tmp_path / "parquet.model", *FAST)
    expected = predicted(folder, tmp_path, "mixed.model", "mixed-new.csv", output="expected.csv")
    for model in (folder / "mixed.model", tmp_path / "parquet.model"):
        found = predicted(folder, tmp_path, model, source, output=output)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_long_files_give_the_bits_of_one_call_in_python(folder, tmp_path):
    table = number_table(20_000, seed=2)[["a", "b"]]
    table.to_csv(tmp_path / "long.csv", index=False)
    table.to_parquet(tmp_path / "long.parquet", row_group_size=3000)
    model = library.load(folder / "numbers.model")
    ends = model.predict_interval(table)
    for source in ("long.csv", "long.parquet"):
        found = predicted(folder, tmp_path, "numbers.model", tmp_path / source, output="out.parquet")
        assert np.array_equal(found[["lower", "upper"]], ends)
        assert np.array_equal(found["prediction"], model.predict(table))


def test_columns_are_found_by_name_in_any_order(folder, tmp_path):
    table = pd.read_csv(folder / "mixed-new.csv", dtype=str)
    table[table.columns[::-1]].assign(more="1").to_csv(tmp_path / "other.csv", index=False)
    expected = predicted(folder, tmp_path, "mixed.model", "mixed-new.csv")
    words = ("predict", folder / "mixed.model", tmp_path / "other.csv", "-o", tmp_path / "found.csv", *EXACT)
    result = sosbands(*words)
    pd.testing.assert_frame_equal(read_csv(tmp_path / "found.csv"), expected, check_exact=True)
    assert "that the model does not use: 'more'\n" in result.stderr
    assert "'y'" not in result.stderr  # the target is no surprise


def test_input_columns_are_kept_as_they_were_written(tmp_path, folder):
    (tmp_path / "new.csv").write_text('b,note,a\n1.50,"x, ""y""",+2\n-0,NA,1e-1\n')
    found = predicted(folder, tmp_path, "numbers.model", tmp_path / "new.csv", "--keep-columns")
    assert list(found.columns) == ["b", "note", "a", *WRITTEN]
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1].startswith('1.50,"x, ""y""",+2,')
    assert lines[2].startswith("-0,NA,1e-1,")


def test_gaps_and_unknown_texts_are_filled_in_and_mentioned(folder, tmp_path):
    table = mixed_table(50, seed=1)
    table.loc[[0, 1], "x"] = np.nan
    table.loc[2, "ward"] = "west"
    table.to_csv(tmp_path / "gaps.csv", index=False)
    result = sosbands("predict", folder / "mixed.model", tmp_path / "gaps.csv", "-o", tmp_path / "out.csv", *EXACT)
    assert "filled with the median of the learning rows: 2 in 'x', 2 in 'z'" in result.stderr
    assert "count as rare or unknown: 'west', '(missing)', in 2 rows\n" in result.stderr
    model = library.load(folder / "mixed.model")
    learning = pd.read_csv(folder / "mixed.csv").iloc[model.learning_rows_]
    table.loc[[0, 1], "x"] = learning.x.median()
    table.to_csv(tmp_path / "filled.csv", index=False)
    filled = predicted(folder, tmp_path, "mixed.model", tmp_path / "filled.csv", output="filled-out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(found.iloc[:2], filled.iloc[:2], rtol=1e-12)


def test_fit_says_what_was_learnt(folder, tmp_path):
    printed = done("fit", folder / "mixed.csv", "--target", "y", "-o", tmp_path / "m.model", *FAST)
    words = " ".join(printed.split())
    assert words.startswith("Learnt 'y' from 5 columns: 2 numbers, 1 category, 1 boolean, 1 date, in ")
    assert "Bands around RidgeCV, learnt from 60 rows" in words
    assert "Set: lengthscale" not in words  # the rest is in --json
    assert "Calibrated on 60 rows: at least 90% of new rows fall into their interval" in words
    assert printed.endswith(f"Next:\n  sosbands predict {tmp_path / 'm.model'} NEW.csv -o OUT.csv\n")
    assert max(map(len, printed.splitlines()[:-2])) <= 100


def test_fit_tunes_itself_unless_told_otherwise(folder, tmp_path):
    words = ("--target", "y", "-o", tmp_path / "m.model", "--max-seconds", "5", "--json")
    found = json.loads(done("fit", folder / "numbers.csv", *words))
    model = library.load(tmp_path / "m.model")  # trees and all, without any trust
    assert found["trust"] == []
    assert model.tuning_ is not None
    assert type(model.estimator_) is ModelBlend
    assert found["point_model"] == "ModelBlend"
    assert sum(found["members"].values()) == pytest.approx(1)
    assert set(found["members"]) <= {"RidgeCV", "GaussianProcess", "ExtraTreesRegressor", "RandomForestRegressor"}
    assert f"Bands around a blend of {max(found['members'].values()):.2f} " in found["summary"]
    assert model.tuning_.sentence in found["summary"]
    assert found["lengthscale"] == ("inf" if np.isinf(model.noise_.lengthscale) else model.noise_.lengthscale)
    assert (found["base_scale"], found["noise_features"]) == (
        model.noise_.view.base_scale,
        model.noise_.view.noise_features,
    )
    assert found["conformal_score"] == model.noise_.score.name in ("added", "scaled")
    assert found["width_penalty"] == model.noise_.settings.width_penalty > 0
    assert 0 < found["learning_coverage"] == model.noise_.settings.learning_coverage <= 1
    assert found["reasons"] == list(model.tuning_.reasons)
    assert found["timed_out"] is False


def test_the_default_predicts_without_trust(folder, tmp_path):
    words = ("--target", "y", "-o", tmp_path / "m.model", "--max-seconds", "5")
    printed = done("fit", folder / "mixed.csv", *words)
    assert "--trust" not in printed
    found = predicted(folder, tmp_path, tmp_path / "m.model", "mixed-new.csv")
    assert (found.lower < found.prediction).all()
    assert (found.prediction < found.upper).all()


def test_model_gp_is_the_process_alone_however_many_rows(folder, tmp_path):
    words = ("--target", "y", "-o", tmp_path / "m.model", "--model", "gp", "--json", *FIXED)
    found = json.loads(done("fit", folder / "numbers.csv", *words))
    assert type(library.load(tmp_path / "m.model").estimator_[-1]) is GaussianProcess
    assert (found["point_model"], found["members"]) == ("GaussianProcess", None)


def test_options_of_fit_reach_the_estimator(folder, tmp_path):
    words = ("--confidence-level", "0.8", "--calibration", "asymmetric", "--calibration-size", "30", "--seed", "3")
    path = tmp_path / "m.model"
    fixed = ("--model", "linear", "--lengthscale", "1.5", "--symmetry-penalty", "inf", "--score", "scaled")
    fixed += ("--base-scale", "forest", "--noise-features", "prediction+inputs", "--width-penalty", "30")
    fixed += ("--learning-coverage", "0.85", "--max-seconds", "7.5")
    found = json.loads(done("fit", folder / "numbers.csv", "--target", "y", "-o", path, *words, *fixed, "--json"))
    model = library.load(path)
    given = model.get_params(deep=False)
    assert given["confidence_level"] == found["confidence_level"] == 0.8
    assert given["calibration"] == found["calibration"] == "asymmetric"
    assert given["conformal_score"] == found["conformal_score"] == "scaled"
    assert "the reach of the lower end multiplied by" in found["summary"]
    assert given["base_scale"] == found["base_scale"] == "forest"
    assert given["noise_features"] == found["noise_features"] == "inputs+prediction"
    assert given["width_penalty"] == found["width_penalty"] == 30
    assert given["learning_coverage"] == found["learning_coverage"] == 0.85
    assert given["max_seconds"] == 7.5
    assert (found["reasons"], found["timed_out"]) == ([], False)
    assert given["calibration_size"] == found["n_calibration"] == 30
    assert given["random_state"] == 3
    assert found["lengthscale"] == model.noise_.lengthscale == 1.5
    assert found["symmetry_penalty"] == "inf"
    assert model.noise_.settings.symmetry_penalty == np.inf
    assert tuple(found["quantile"]) == model.quantile()
    assert found["n_learning"] == 50


def test_columns_can_be_left_out_and_declared_categories(tmp_path):
    table = mixed_table().assign(code=np.arange(120) % 3 + 1)
    table.to_parquet(tmp_path / "codes.parquet")
    words = ("--drop", "day", "--drop", "ward", "--category", "code")
    done("fit", tmp_path / "codes.parquet", "--target", "y", "-o", tmp_path / "m.model", *words, *FAST)
    model = library.load(tmp_path / "m.model")
    assert model.columns_["kinds"] == {"x": "number", "z": "number", "flag": "boolean", "code": "category"}
    assert model.reader_.preprocessor.levels_ == {"code": ["1", "2", "3"]}
    table.assign(code=table.code.astype(float)).to_csv(tmp_path / "codes.csv", index=False)  # 1.0, 2.0, ...
    result = sosbands("predict", tmp_path / "m.model", tmp_path / "codes.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("model", "rule"),
    [("gp", "leave-one-out"), ("forest", "out-of-fold"), ("boosting", "out-of-fold"), ("spline", "in-sample")],
)
def test_every_model_can_be_fitted_saved_and_used(folder, tmp_path, model, rule):
    path, drop = tmp_path / "m.model", ("--drop", "b") if model == "spline" else ()
    words = ("--target", "y", "-o", path, "--model", model, *drop, *FIXED)
    printed = done("fit", folder / "numbers.csv", *words)
    assert library.load(path).residual_rule_ == rule
    assert printed.splitlines()[-1].endswith("OUT.csv")
    found = predicted(folder, tmp_path, path, "numbers-new.csv")
    truth = number_table(50, seed=1)["y"]
    assert 0.7 <= np.mean((found.lower <= truth) & (truth <= found.upper)) <= 1
    again = predicted(folder, tmp_path, path, "numbers-new.csv", "--trust", "needless.Type", output="again.csv")
    assert again.equals(found)


def test_models_from_python_work_if_they_know_their_columns(tmp_path, folder):
    table = number_table()
    model = SoSBandRegressor(RidgeCV(), random_state=0, **SETTINGS)
    model.fit(table[["a", "b"]], table.y).save(tmp_path / "python.model")
    found = predicted(folder, tmp_path, tmp_path / "python.model", "numbers-new.csv")
    new = number_table(50, seed=1)[["a", "b"]]
    np.testing.assert_allclose(found[["lower", "upper"]], model.predict_interval(new), rtol=1e-12)
    nameless = model.fit(table[["a", "b"]].to_numpy(), table.y)
    nameless.save(tmp_path / "nameless.model")
    result = sosbands("predict", tmp_path / "nameless.model", folder / "numbers-new.csv", "-o", tmp_path / "no.csv")
    assert result.exit_code == 1
    assert "does not say which columns it needs" in result.stderr


def test_rows_far_from_the_data_are_counted(tmp_path, folder):
    (tmp_path / "far.csv").write_text("a,b\n0,0\n1e3,0\n0,1e3\n2.5,0\n")
    result = sosbands("predict", folder / "numbers.model", tmp_path / "far.csv", "-o", tmp_path / "out.csv")
    # the same rows that predict_interval warns of
    assert "note: 2 of 4 rows are far from the learning rows (support below 0.1)" in result.stderr
    support = pd.read_csv(tmp_path / "out.csv").support
    assert (support < 0.1).tolist() == [False, True, True, False]
    assert support[3] < 0.5
    with pytest.warns(OffDataWarning, match=r"^2 of 4 rows are far .*support below 0\.1"):
        library.load(folder / "numbers.model").predict_interval(pd.read_csv(tmp_path / "far.csv"))


def test_too_few_calibration_rows_give_infinite_ends_and_a_note(folder, tmp_path):
    words = ("--confidence-level", "0.99")
    result = sosbands(
        "predict", folder / "numbers.model", folder / "numbers-new.csv", "-o", tmp_path / "out.csv", *words
    )
    assert result.exit_code == 0
    assert re.search(r"note: .* 99 calibration points, given: 40", result.stderr)
    assert result.stderr.count("note: ") == 1  # none of NumPy's about infinite numbers
    assert np.isinf(pd.read_csv(tmp_path / "out.csv")[["lower", "upper"]]).all(axis=None)


def test_fit_mentions_that_calibration_rows_are_too_few(folder, tmp_path):
    words = ("--target", "y", "-o", tmp_path / "m.model", "--calibration-size", "5", *FAST)
    result = sosbands("fit", folder / "numbers.csv", *words)
    assert result.exit_code == 0
    before, _, after = result.stderr.partition("point model first")
    assert (
        "note: --calibration-size 5 holds 5 of 80 rows back, but 90 % intervals take 9: they will be infinite; hold "
        "back 9 or more, or ask for a smaller --confidence-level" in before
    )
    assert "note: confidence level 0.9 needs at least 9 calibration points, given: 5" in after
    assert "That takes 9 rows: with 5 the intervals are infinite." in " ".join(result.stdout.split())
    found = json.loads(done("fit", folder / "numbers.csv", *words, "--json"))
    assert found["quantile"] == "inf"


def test_a_file_without_rows_gives_a_file_without_rows(folder, tmp_path):
    (tmp_path / "none.csv").write_text("a,b\n")
    result = sosbands("predict", folder / "numbers.model", tmp_path / "none.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert (tmp_path / "out.csv").read_text() == "prediction,lower,upper,support\n"
    assert "has no rows" in result.stderr


def test_evaluate_shows_what_the_library_measures(folder):
    words = ("evaluate", folder / "numbers.model", folder / "numbers-new.csv", "--confidence-level", "0.8")
    model = library.load(folder / "numbers.model")
    new = number_table(50, seed=1)
    row = model.evaluate(new[["a", "b"]], new.y, 0.8)
    found = json.loads(done(*words, "--json"))
    assert found.pop("confidence_level") == 0.8
    assert found.pop("side") == "both"
    found.pop("notes")
    table = pd.read_csv(folder / "numbers.csv").iloc[model.calibration_rows_]
    errors = np.sort(np.abs(table.y - model.predict(table[["a", "b"]])))
    split = 2 * errors[int(np.ceil(0.8 * 41)) - 1]  # of 40 calibration rows
    assert found.pop("relative_width") == pytest.approx(row["mean_width"] / split, rel=1e-9)
    assert row.pop("hsic") >= 0
    assert found.keys() == row.keys()
    assert found == pytest.approx(row, rel=1e-9)
    printed = done(*words)
    assert printed.startswith("80 % intervals of ")
    shown = re.search(r"^coverage +(\S+)  share of rows inside their interval; 80 % is promised", printed, re.MULTILINE)
    assert float(shown.group(1)) == pytest.approx(row["coverage"], rel=1e-3)
    for name in row:
        assert re.search(rf"^{name} +\S+  \w+", printed, re.MULTILINE), f"{name} has no meaning"


def test_evaluate_doubts_a_coverage_that_chance_would_not_give(folder, tmp_path):
    table = number_table(50, seed=1)
    table.assign(y=table.y + 30).to_csv(tmp_path / "shifted.csv", index=False)
    shifted = sosbands("evaluate", folder / "numbers.model", tmp_path / "shifted.csv")
    assert "are these rows of another kind?" in shifted.stderr
    assert "another kind" not in sosbands("evaluate", folder / "numbers.model", folder / "numbers-new.csv").stderr


def test_evaluate_takes_another_target(folder, tmp_path):
    number_table(50, seed=1).rename(columns={"y": "truth"}).to_csv(tmp_path / "truth.csv", index=False)
    expected = json.loads(done("evaluate", folder / "numbers.model", folder / "numbers-new.csv", "--json"))
    words = ("evaluate", folder / "numbers.model", tmp_path / "truth.csv", "--json", "--target", "truth")
    found = json.loads(done(*words))
    assert {**found, "notes": []} == {**expected, "notes": []}


def test_compare_runs_the_methods_and_continues_from_its_store(folder, tmp_path):
    words = ("compare", folder / "mixed.csv", "--target", "y", *FAST, "--store", tmp_path / "runs.jsonl", "--json")
    first = json.loads(done(*words, "--methods", "sos,split", "--repetitions", "2"))
    assert [row["method"] for row in first["table"]] == ["sos", "split"]
    assert (first["n_learning"], first["n_calibration"], first["n_test"]) == (48, 48, 24)
    assert [row["n_failed"] for row in first["table"]] == [0, 0]
    (difference,) = first["differences"]
    means = {row["method"]: row["interval_score_mean"] for row in first["table"]}
    assert difference["difference"] == pytest.approx(means["split"] - means["sos"])
    more = json.loads(done(*words, "--methods", "sos,split", "--repetitions", "3", "-o", tmp_path / "table.csv"))
    assert len(more["rows"]) == 6
    assert more["rows"][:4] == first["rows"]  # read, not computed: even the seconds are the same
    table = pd.read_csv(tmp_path / "table.csv")
    assert table.method.tolist() == ["sos", "split"]
    assert table.coverage_mean.tolist() == pytest.approx([row["coverage_mean"] for row in more["table"]])


def test_compare_in_words(folder):
    words = ("--methods", "split,cqr-forest", "--repetitions", "2", "--rows", "60", "--model", "linear")
    printed = done("compare", folder / "numbers.csv", "--target", "y", *words)
    assert re.search(r"^method +coverage +mean_width +relative_width +interval_score", printed, re.MULTILINE)
    assert re.search(r"^split .* 1 ± 0 ", printed, re.MULTILINE)
    assert re.search(r"\n\n(split|cqr-forest) is |\n\nNo clear winner: ", printed)
    assert printed.startswith("2 methods, 2 repetitions at level 0.9\nrows: 24 to learn, 24 to calibrate, 12 to test")
    assert re.search(r"^cqr-forest +split +interval_score", printed, re.MULTILINE)


def test_compare_names_the_runs_that_failed(folder):
    words = ("--methods", "sos", "--repetitions", "1", "--model", "spline", *FIXED)
    result = sosbands("compare", folder / "numbers.csv", "--target", "y", *words)
    assert result.exit_code == 1
    assert "--model spline needs one column of numbers, there are 2: 'a', 'b'" in result.stderr


@pytest.mark.skipif(not importlib.util.find_spec("sosbands.report"), reason="the page is not part of this version")
def test_explore_writes_the_page(folder, tmp_path):
    words = ("--target", "y", "-o", tmp_path / "page.html", *FAST)
    printed = done("explore", folder / "mixed.csv", *words)
    assert printed == f"Page written to {tmp_path / 'page.html'}\n"
    page = (tmp_path / "page.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    stored = data_of(page)
    assert [axis["name"] for axis in stored["axes"]] == [
        "prediction",
        "x",
        "day",
    ]  # z has gaps, ward and flag are texts
    assert stored["model"] == "ridge"
    assert stored["notes"] == ["3 of 5 features have no axis: not numbers, with gaps, or too many."]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_json_is_the_only_output(folder, tmp_path):
    model, new = folder / "mixed.model", folder / "mixed-new.csv"
    for words in (
        ("fit", folder / "mixed.csv", "--target", "y", "-o", tmp_path / "m.model", *FAST),
        ("predict", model, new, "-o", tmp_path / "out.csv"),
        ("evaluate", model, new),
    ):
        result = sosbands(*words, "--json")
        assert result.stderr == ""
        assert any("filled with the median" in note for note in json.loads(result.stdout)["notes"])
        assert "filled with the median" in sosbands(*words).stderr


@pytest.mark.parametrize("command", ["demo", "fit", "predict", "evaluate", "compare", "explore", "card", "export"])
def test_every_help_has_an_example_of_itself(command):
    printed = done(command, "--help")
    assert re.search(rf"Example:\n +sosbands {command} ", printed)
    words = re.search(rf"sosbands {command} (.*)", printed).group(1).split()
    options = [word for word in words if word.startswith("-")]
    described = printed[printed.index("Options:") :]
    assert all(option in described for option in options)
    assert command in done("--help")


def commands_in_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("sosbands ")]
    assert len(lines) >= 10
    return lines


@pytest.mark.parametrize("line", commands_in_the_docs())
def test_commands_in_the_docs_can_be_typed(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where none of the files exist: the command line is understood, then a file is missing
    words = line.split()[1:]
    if words[0] == "demo":
        assert all(word in done(words[0], "--help") for word in words if word.startswith("-"))
        return
    result = sosbands(*words)
    assert result.exit_code == 1
    assert "no such file" in result.stderr


def test_demo_says_compares_draws_and_explores(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")

    def write_page(X, y, path, **settings):  # the real one is tested by explore
        assert tuple(X.columns) == DELIVERY_COLUMNS
        assert (len(X), len(y)) == (2000, 2000)
        assert settings["target_name"] == "minutes"
        path.write_text("page")
        return path

    monkeypatch.setattr("sosbands.cli.pages.write_page", write_page)
    printed = done("demo", "-o", tmp_path / "new" / "folder")
    words = " ".join(printed.split())
    assert words.startswith(
        "Minutes that 2000 simulated deliveries took, from distance_km, stops, hour, rain_mm, weight"
    )
    assert "Bands around a blend of 0." in words
    below, above = map(float, re.search(r"from (\S+) below to (\S+) above the prediction", words).groups())
    assert above > 1.3 * below  # delays have their long tail above
    assert "bands that vary with the features; each side has its own band (test of skew: p = " in words
    skew, loss = re.search(
        r"residuals are skewed \(p = (\S+)\), and the best symmetric .* score (\S+)% worse", words
    ).groups()
    assert float(skew) <= 0.05
    assert 1 < float(loss) < 30
    compared = words[words.index("On 600 deliveries kept apart, all around the same point model") :]
    rows = {
        name: tuple(map(float, found))
        for name, *found in re.findall(r"(\w+)(?: CP)? (\S+)%, (\S+), (\S+)[;.] ", compared)
    }
    assert list(rows) == ["sosbands", "split", "weighted"]
    assert all(85 <= coverage <= 96 for coverage, _, _ in rows.values())
    widths, scores = ({name: row[k] for name, row in rows.items()} for k in (1, 2))
    assert scores["sosbands"] < scores["weighted"] < scores["split"]
    assert widths["sosbands"] < 0.9 * widths["split"]
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["bands.png", "page.html"]
    assert (tmp_path / "new" / "folder" / "bands.png").read_bytes().startswith(b"\x89PNG")


def test_methods_of_the_demo_stand_around_the_same_point_model():
    X, y = delivery_times(150)
    methods = [partial(SoSBandRegressor, **SETTINGS), *RIVALS.values()]
    predictions = [method(random_state=3).fit(X, y).predict(X) for method in methods]
    assert len(predictions) == 3
    assert all(np.array_equal(each, predictions[0]) for each in predictions)


def test_demo_goes_without_a_picture_where_it_cannot_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr("sosbands.cli.pages.write_page", lambda *_, **__: tmp_path / "page.html")
    monkeypatch.setattr("sosbands.cli.pages.SoSBandRegressor", partial(SoSBandRegressor, GaussianProcess(), **SETTINGS))
    monkeypatch.setattr("sosbands.cli.pages.RIVALS", {})
    result = sosbands("demo", "-o", tmp_path)
    assert result.exit_code == 0
    assert "note: no picture: this needs matplotlib, which" in result.stderr
    assert "pip install matplotlib" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_extra_that_a_message_or_a_page_names_exists():
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    files = [*(root / "src").rglob("*.py"), root / "README.md", *(root / "docs").glob("*.md")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    found = re.findall(r"(?:sosbands|\"\.)\[([a-z,]+)\]", text)
    named = {name for names in found for name in names.split(",")}
    assert {"cli", "plot", "baselines"} <= named <= set(extras)


def test_predict_asks_the_point_model_once_for_each_row(folder, tmp_path, monkeypatch):
    asked = []
    predict = RidgeCV.predict

    def counting(self, X):
        asked.append(len(X))
        return predict(self, X)

    monkeypatch.setattr(RidgeCV, "predict", counting)
    found = predicted(folder, tmp_path, "numbers.model", "numbers-new.csv")
    assert asked == [len(found)] == [50]


def test_version():
    assert done("--version") == f"{library.__version__}\n"


@dataclass(frozen=True)
class Pair:
    a: int = option(1, "A", "The first.")
    b: bool = flag("--b", "The second.")


def test_groups_of_options_are_spelled_out_where_they_stand():
    seen = []

    @spelled
    def command(*, x: int = option(0, "X", "Before."), pair: Pair, y: str = option("", "Y", "After.")):
        seen.append((x, pair, y))

    program = typer.Typer(**PLAIN)
    program.command()(command)
    assert re.findall(r"--[a-z]+", done("--help", program=program)) == ["--x", "--a", "--b", "--y", "--help"]
    done("--a", "5", "--b", "--y", "w", program=program)
    assert seen == [(0, Pair(5, True), "w")]
