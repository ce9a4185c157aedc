"""The commands do what the library does, with CSV and Parquet files of every kind of column."""

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
import typer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sosbands as library
from cli_runs import (
    FAST,
    FIXED,
    as_learnt,
    done,
    fit,
    flat,
    mixed_table,
    noted,
    number_table,
    pd,
    refused,
    said,
    sosbands,
)
from report_payload import data_of
from sosbands import SoSBandRegressor
from sosbands.cli import pages
from sosbands.cli.app import PLAIN
from sosbands.cli.options import flag, option, spelled
from sosbands.datasets import DELIVERY_COLUMNS, delivery_times
from sosbands.exceptions import OffDataWarning
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tables import TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
SETTINGS = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 10.0, "random_state": 0}
ROOT = Path(__file__).parents[2]
# the default of pandas 2 loses the last bit
read_csv = partial(pd.read_csv, float_precision="round_trip") if pd.__version__ < "3" else pd.read_csv
WRITTEN = ["prediction", "lower", "upper", "support"]
ENDS = ["lower", "upper"]
NEW = number_table(50, seed=1)


def predicted(folder, tmp_path, model, data, *words, output="out.csv"):
    words = (*words, *(() if "--digits" in words else ("--digits", "17")))
    done("predict", folder / model, folder / data, "-o", tmp_path / output, *words)
    read = read_csv if output.endswith(".csv") else pd.read_parquet
    return read(tmp_path / output)


def test_predict_writes_what_the_library_predicts(folder, tmp_path, monkeypatch):
    X, y = number_table()[["a", "b"]], number_table()["y"]
    # gaps are filled before standardising, which changes nothing without gaps
    ridge = make_pipeline(StandardScaler(), RidgeCV(alphas=[10.0**k for k in range(-3, 4)]))
    model, new = SoSBandRegressor(ridge, **SETTINGS).fit(X, y), NEW[["a", "b"]]
    asked, real = [], RidgeCV.predict

    def predict(self, X):
        asked.append(len(X))
        return real(self, X)

    with monkeypatch.context() as patched:
        patched.setattr(RidgeCV, "predict", predict)
        found = predicted(folder, tmp_path, "numbers.model", "numbers-new.csv")
    assert asked == [50]  # each row once
    assert list(found.columns) == WRITTEN
    np.testing.assert_allclose(found[ENDS], model.predict_interval(new), rtol=1e-4)
    np.testing.assert_allclose(found["prediction"], model.predict(new), rtol=1e-9)
    np.testing.assert_allclose(found["support"], model.support(new), rtol=1e-9)


@pytest.mark.parametrize(("name", "rtol"), [("mixed.model", 0), ("cross.model", 1e-12)])
def test_a_saved_model_gives_the_same_bits_in_python(folder, tmp_path, name, rtol):
    model, frame = library.load(folder / name), as_learnt(mixed_table(50, seed=1))
    words = ("--confidence-level", "0.8")
    found = predicted(folder, tmp_path, name, "mixed-new.parquet", *words, output="out.parquet")
    np.testing.assert_allclose(found[ENDS], model.predict_interval(frame, 0.8), rtol=rtol)
    np.testing.assert_allclose(found["prediction"], model.predict(frame), rtol=rtol)
    np.testing.assert_allclose(found["support"], model.support(frame), rtol=1000 * rtol)
    kinds = {"x": "number", "z": "number", "ward": "category", "flag": "boolean", "day": "date"}
    assert model.columns_["kinds"] == kinds
    evaluated = said("evaluate", folder / name, folder / "mixed-new.csv", *words)
    assert evaluated["mean_width"] == pytest.approx((found["upper"] - found["lower"]).mean())


def test_cross_calibration_says_what_is_proven(folder):
    fitted = json.loads((folder / "cross.json").read_text())
    assert fitted["n_learning"] == fitted["n_calibration"] == 120
    assert (fitted["quantile"], fitted["trust"]) == (None, [])
    assert "Cross-calibrated on all 120 rows: about 90% of new rows" in fitted["summary"]
    words = done("evaluate", folder / "cross.model", folder / "mixed-new.csv")
    assert "90 % is aimed at on average" in words
    assert "promised" not in words


def test_csv_and_parquet_say_the_same(folder, tmp_path):
    done(*fit(folder / "mixed.parquet", tmp_path / "parquet.model"))
    expected = predicted(folder, tmp_path, "mixed.model", "mixed-new.csv", output="expected.csv")
    for model in (folder / "mixed.model", tmp_path / "parquet.model"):
        for source in ("mixed-new.csv", "mixed-new.parquet"):
            for output in ("out.csv", "out.parquet"):
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
        assert np.array_equal(found[ENDS], ends)
        assert np.array_equal(found["prediction"], model.predict(table))


def test_columns_are_found_by_name_in_any_order(folder, tmp_path):
    table = pd.read_csv(folder / "mixed-new.csv", dtype=str)
    table[table.columns[::-1]].assign(more="1").to_csv(tmp_path / "other.csv", index=False)
    expected = predicted(folder, tmp_path, "mixed.model", "mixed-new.csv")
    words = ("predict", folder / "mixed.model", tmp_path / "other.csv", "-o", tmp_path / "found.csv")
    told = noted(*words, "--digits", "17")
    pd.testing.assert_frame_equal(read_csv(tmp_path / "found.csv"), expected, check_exact=True)
    assert "that the model does not use: 'more'\n" in told
    assert "'y'" not in told  # the target is no surprise


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
    told = noted("predict", folder / "mixed.model", tmp_path / "gaps.csv", "-o", tmp_path / "o.csv", "--digits", "17")
    assert "filled with the median of the learning rows: 2 in 'x', 2 in 'z'" in told
    assert "count as rare or unknown: 'west'" in told
    model = library.load(folder / "mixed.model")
    table.loc[[0, 1], "x"] = pd.read_csv(folder / "mixed.csv").iloc[model.learning_rows_].x.median()
    table.to_csv(tmp_path / "filled.csv", index=False)
    filled = predicted(folder, tmp_path, "mixed.model", tmp_path / "filled.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "o.csv").iloc[:2], filled.iloc[:2], rtol=1e-12)


def test_fit_says_what_was_learnt(folder, tmp_path):
    printed = done(*fit(folder / "mixed.csv", tmp_path / "m.model"))
    words = flat(printed)
    assert words.startswith("Learnt 'y' from 5 columns: 2 numbers, 1 category, 1 boolean, 1 date, in ")
    assert "Bands around RidgeCV, learnt from 80 rows" in words
    assert "Set: lengthscale" not in words  # the rest is in --json
    assert "Calibrated on 40 rows: at least 90% of new rows fall into their interval" in words
    assert printed.endswith(f"Next:\n  sosbands predict {tmp_path / 'm.model'} NEW.csv -o OUT.csv\n")
    assert max(map(len, printed.splitlines()[:-2])) <= 100


def test_fit_tunes_itself_unless_told_otherwise(folder, tmp_path):
    found = said("fit", folder / "mixed.csv", "--target", "y", "-o", tmp_path / "m.model")
    model = library.load(tmp_path / "m.model")  # trees and all, without any trust
    assert found["trust"] == []
    assert model.tuning_ is not None
    assert type(model.estimator_) is ModelBlend
    assert found["point_model"] == "ModelBlend"
    assert sum(found["members"].values()) == pytest.approx(1)
    trees = {"ExtraTreesRegressor", "RandomForestRegressor", "HistGradientBoostingRegressor"}
    assert set(found["members"]) <= {"RidgeCV", "GaussianProcess", *trees}
    assert f"Bands around a blend of {max(found['members'].values()):.2f} " in found["summary"]
    assert model.tuning_.sentence in found["summary"]
    noise = model.noise_
    assert found["lengthscale"] == ("inf" if np.isinf(noise.lengthscale) else noise.lengthscale)
    assert (found["base_scale"], found["noise_features"]) == (noise.view.base_scale, noise.view.noise_features)
    assert found["conformal_score"] == noise.score.name in ("added", "scaled")
    assert found["width_penalty"] == noise.settings.width_penalty > 0
    assert 0 < found["learning_coverage"] == noise.settings.learning_coverage <= 1
    assert (found["reasons"], found["timed_out"]) == (list(model.tuning_.reasons), model.tuning_.timed_out)
    rows = predicted(folder, tmp_path, tmp_path / "m.model", "mixed-new.csv")
    assert ((rows.lower < rows.prediction) & (rows.prediction < rows.upper)).all()


def test_options_of_fit_reach_the_estimator(folder, tmp_path):
    path = tmp_path / "m.model"
    words = ("--confidence-level", "0.8", "--calibration", "asymmetric", "--calibration-size", "30", "--seed", "3")
    words += ("--model", "linear", "--lengthscale", "1.5", "--symmetry-penalty", "inf", "--score", "scaled")
    words += ("--base-scale", "forest", "--noise-features", "prediction+inputs", "--width-penalty", "30")
    words += ("--learning-coverage", "0.85", "--max-seconds", "7.5", "--outlier-fraction", "0.1", "--rank", "7")
    found = said("fit", folder / "numbers.csv", "--target", "y", "-o", path, *words)
    model = library.load(path)
    given = model.get_params(deep=False)
    expected = {"confidence_level": 0.8, "calibration": "asymmetric", "conformal_score": "scaled"}
    expected |= {"base_scale": "forest", "width_penalty": 30, "learning_coverage": 0.85, "lengthscale": 1.5}
    for name, value in {**expected, "noise_features": "inputs+prediction"}.items():
        assert given[name] == found[name] == value
    assert "the reach of the lower end multiplied by" in found["summary"]
    assert given["max_seconds"] == 7.5
    assert (found["reasons"], found["timed_out"]) == ([], False)
    assert given["calibration_size"] == found["n_calibration"] == 30
    assert (found["symmetry_penalty"], model.noise_.settings.symmetry_penalty) == ("inf", np.inf)
    assert tuple(found["quantile"]) == model.quantile()
    assert found["n_learning"] == 50
    assert (model.bands.outlier_fraction, model.bands.rank) == (0.1, 7)
    assert model.noise_.certificate["n_features"] == 8  # and the constant
    assert "5 rows with the largest residuals left out" in model.summary(detail=True)


def test_all_rows_and_a_range_of_the_target(folder, tmp_path):
    table = number_table(60).assign(y=lambda t: np.exp(t.y / t.y.std()))
    table.to_csv(tmp_path / "prices.csv", index=False)
    words = ("--calibration-size", "out-of-fold", "--target-range", "0,", "--target-transform", "log", *FIXED)
    found = said(
        "fit", tmp_path / "prices.csv", "--target", "y", "-o", tmp_path / "m.model", "--model", "linear", *words
    )
    model = library.load(tmp_path / "m.model")
    assert (found["n_learning"], found["n_calibration"]) == (60, 60)
    assert (model.calibration_size, model.target_range, model.target_transform) == ("out-of-fold", (0, None), "log")
    assert model.predict_interval(table.drop(columns="y")).min() > 0
    few = sosbands(
        "fit", folder / "numbers.csv", "--target", "y", "-o", tmp_path / "n.model", "--confidence-level", "0.99"
    )
    assert few.exit_code == 1
    assert "takes 99 rows to calibrate on" in few.stderr
    assert not (tmp_path / "n.model").exists()


def test_columns_can_be_left_out_and_declared_categories(tmp_path):
    table = mixed_table().assign(code=np.arange(120) % 3 + 1)
    table.to_parquet(tmp_path / "codes.parquet")
    words = ("--drop", "day", "--drop", "ward", "--category", "code")
    done(*fit(tmp_path / "codes.parquet", tmp_path / "m.model", *words))
    model = library.load(tmp_path / "m.model")
    assert model.columns_["kinds"] == {"x": "number", "z": "number", "flag": "boolean", "code": "category"}
    assert model.reader_.preprocessor.levels_ == {"code": ["1", "2", "3"]}
    table.assign(code=table.code.astype(float)).to_csv(tmp_path / "codes.csv", index=False)  # 1.0, 2.0, ...
    done("predict", tmp_path / "m.model", tmp_path / "codes.csv", "-o", tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("model", "rule"),
    [("gp", "leave-one-out"), ("forest", "out-of-fold"), ("boosting", "out-of-fold"), ("spline", "in-sample")],
)
def test_every_model_can_be_fitted_saved_and_used(folder, tmp_path, model, rule):
    path, drop = tmp_path / "m.model", ("--drop", "b") if model == "spline" else ()
    told = said("fit", folder / "numbers.csv", "--target", "y", "-o", path, "--model", model, *drop, *FIXED)
    fitted = library.load(path)
    assert fitted.residual_rule_ == rule
    assert (told["point_model"], told["members"]) == (type(fitted.estimator_[-1]).__name__, None)
    assert (told["point_model"] == "GaussianProcess") is (model == "gp")  # alone, however few rows
    found = predicted(folder, tmp_path, path, "numbers-new.csv")
    assert 0.7 <= np.mean((found.lower <= NEW.y) & (NEW.y <= found.upper)) <= 1
    again = predicted(folder, tmp_path, path, "numbers-new.csv", "--trust", "needless.Type", output="again.csv")
    assert again.equals(found)


def with_shops(n=120, seed=0):
    """Two learning rows or so for each of the shops."""
    shops = np.random.default_rng(seed + 10).integers(0, 30, n)
    return mixed_table(n, seed).assign(shop=[f"shop {k}" for k in shops])


def test_models_from_python_work_if_they_know_their_columns(tmp_path, folder):
    table, new = with_shops(), with_shops(50, seed=1)
    model = SoSBandRegressor(**SETTINGS).fit(table.drop(columns="y"), table.y)
    assert isinstance(model.reader_.preprocessor, TableEncoder)
    model.save(tmp_path / "m.model")
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    for file in ("new.csv", "new.parquet"):
        found = predicted(folder, tmp_path, tmp_path / "m.model", tmp_path / file)
        np.testing.assert_allclose(found[ENDS], model.predict_interval(new.drop(columns="y")), rtol=1e-9)
    new.assign(day=2024.5).to_parquet(tmp_path / "bad.parquet")
    message = refused("predict", tmp_path / "m.model", tmp_path / "bad.parquet", "-o", tmp_path / "none.csv")
    assert "column 'day': holds double, expected dates" in message
    X, y = number_table()[["a", "b"]], number_table().y
    model = SoSBandRegressor(RidgeCV(), **SETTINGS).fit(X, y)
    model.save(tmp_path / "python.model")
    found = predicted(folder, tmp_path, tmp_path / "python.model", "numbers-new.csv")
    np.testing.assert_allclose(found[ENDS], model.predict_interval(NEW[["a", "b"]]), rtol=1e-12)
    model.fit(X.to_numpy(), y).save(tmp_path / "nameless.model")
    words = ("predict", tmp_path / "nameless.model", folder / "numbers-new.csv", "-o", tmp_path / "no.csv")
    assert "does not say which columns it needs" in refused(*words)


def test_many_categories_are_learnt_from_and_described(tmp_path):
    table = with_shops().assign(name=[f"n{i}" for i in range(120)])
    table.to_csv(tmp_path / "t.csv", index=False)
    told = noted(*fit(tmp_path / "t.csv", tmp_path / "m.model"))
    assert told.count("column 'name': most learning rows have a text of their own there") == 1
    assert "texts in 'name'" not in told  # which is no news of identifiers
    model = library.load(tmp_path / "m.model")  # nothing to trust
    made = model.reader_.preprocessor
    assert "shop" in made.by_target_
    assert f"'shop' ({len(made.levels_['shop'])} texts)" in model.summary(detail=True)
    learning = table.iloc[model.learning_rows_]
    here = learning.y[learning.shop == made.levels_["shop"][0]]
    codes = np.zeros((1, len(made.by_target_)))
    mean = made.targets_.transform(codes)[0, made.by_target_.index("shop")]
    assert mean == pytest.approx((here.sum() + 2 * learning.y.mean()) / (len(here) + 2))
    with_shops(40, seed=1).assign(shop="another", name="none").to_csv(tmp_path / "new.csv", index=False)
    told = noted("predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "texts in 'shop' that no learning row has count as rare or unknown: 'another', in 40 rows" in told
    found = pd.read_csv(tmp_path / "out.csv")
    assert (found.lower < found.upper).all()


def test_rows_without_a_target_are_left_out_everywhere(folder, tmp_path):
    table = mixed_table()
    pd.concat([table, table[:7].assign(y=np.nan)]).to_csv(tmp_path / "gaps.csv", index=False)
    told, drop = "7 of 127 rows left out, as their target 'y' is missing", "--drop-missing-target"
    message = refused(*fit(tmp_path / "gaps.csv", tmp_path / "m.model"))
    assert "row 121: the target is missing, in 7 of 127 rows in all" in message
    assert drop in message
    dropped = said(*fit(tmp_path / "gaps.csv", tmp_path / "m.model", drop))
    assert told in dropped["notes"]
    assert dropped["quantile"] == library.load(folder / "mixed.model").quantile()
    measured = said("evaluate", tmp_path / "m.model", tmp_path / "gaps.csv", drop)
    assert told in measured["notes"]
    expected = said("evaluate", folder / "mixed.model", folder / "mixed.csv")
    assert (measured["n"], measured["coverage"]) == (120, expected["coverage"])
    words = ("--target", "y", "--methods", "split", "--repetitions", "1", "--model", "linear")
    compared = said("compare", tmp_path / "gaps.csv", drop, *words)
    assert told in compared["notes"]
    assert compared["n_learning"] + compared["n_calibration"] + compared["n_test"] == 120


def test_rows_far_from_the_data_are_counted(tmp_path, folder):
    (tmp_path / "far.csv").write_text("a,b\n0,0\n1e3,0\n0,1e3\n2.5,0\n")
    told = noted("predict", folder / "numbers.model", tmp_path / "far.csv", "-o", tmp_path / "out.csv")
    # the same rows that predict_interval warns of
    assert "note: 2 of 4 rows are far from the learning rows (support below 0.1)" in told
    support = pd.read_csv(tmp_path / "out.csv").support
    assert (support < 0.1).tolist() == [False, True, True, False]
    assert support[3] < 0.5
    with pytest.warns(OffDataWarning, match=r"^2 of 4 rows are far .*support below 0\.1"):
        library.load(folder / "numbers.model").predict_interval(pd.read_csv(tmp_path / "far.csv"))


def test_too_few_calibration_rows_give_infinite_ends_and_a_note(folder, tmp_path):
    words = ("-o", tmp_path / "out.csv", "--confidence-level", "0.99")
    told = noted("predict", folder / "numbers.model", folder / "numbers-new.csv", *words)
    assert re.search(r"note: .* 99 calibration points, given: 27", told)
    assert told.count("note: ") == 1  # none of NumPy's about infinite numbers
    assert np.isinf(pd.read_csv(tmp_path / "out.csv")[ENDS]).all(axis=None)


def test_fit_mentions_that_calibration_rows_are_too_few(folder, tmp_path):
    words = fit(folder / "numbers.csv", tmp_path / "m.model", "--calibration-size", "5")
    result = sosbands(*words)
    before, _, after = result.stderr.partition("point model first")
    assert (
        "note: --calibration-size 5 holds 5 of 80 rows back, but 90 % intervals take 9: they will be infinite; hold "
        "back 9 or more, or ask for a smaller --confidence-level" in before
    )
    assert "note: confidence level 0.9 needs at least 9 calibration points, given: 5" in after
    assert "That takes 9 rows: with 5 the intervals are infinite." in flat(result.stdout)
    assert said(*words)["quantile"] == "inf"


def test_a_file_without_rows_gives_a_file_without_rows(folder, tmp_path):
    (tmp_path / "none.csv").write_text("a,b\n")
    told = noted("predict", folder / "numbers.model", tmp_path / "none.csv", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "prediction,lower,upper,support\n"
    assert "has no rows" in told


def test_evaluate_shows_what_the_library_measures(folder, tmp_path):
    words = ("evaluate", folder / "numbers.model", folder / "numbers-new.csv", "--confidence-level", "0.8")
    model = library.load(folder / "numbers.model")
    row, found = model.evaluate(NEW[["a", "b"]], NEW.y, 0.8), said(*words)
    NEW.rename(columns={"y": "truth"}).to_csv(tmp_path / "truth.csv", index=False)
    other = said(*words[:2], tmp_path / "truth.csv", *words[3:], "--target", "truth")
    assert {**other, "notes": []} == {**found, "notes": []}
    assert found.pop("confidence_level") == 0.8
    assert found.pop("side") == "both"
    found.pop("notes")
    table = pd.read_csv(folder / "numbers.csv").iloc[model.calibration_rows_]
    errors = np.sort(np.abs(table.y - model.predict(table[["a", "b"]])))
    split = 2 * errors[int(np.ceil(0.8 * (len(errors) + 1))) - 1]
    assert found.pop("relative_width") == pytest.approx(row["mean_width"] / split, rel=1e-9)
    assert row.pop("hsic") >= 0
    assert found.keys() == row.keys()
    assert found == pytest.approx(row, rel=1e-9)
    printed = done(*words)
    assert printed.startswith("80 % intervals of ")
    shown = re.search(r"^coverage +(\S+) +share of rows inside their interval; 80 % is promised", printed, re.MULTILINE)
    assert float(shown.group(1)) == pytest.approx(row["coverage"], rel=1e-3)
    for name in row:
        assert re.search(rf"^{name} +\S+ +\w+", printed, re.MULTILINE), f"{name} has no meaning"


def test_evaluate_doubts_a_coverage_that_chance_would_not_give(folder, tmp_path):
    NEW.assign(y=NEW.y + 30).to_csv(tmp_path / "shifted.csv", index=False)
    shifted = noted("evaluate", folder / "numbers.model", tmp_path / "shifted.csv")
    assert "are these rows of another kind?" in shifted
    assert "another kind" not in noted("evaluate", folder / "numbers.model", folder / "numbers-new.csv")


def test_explore_writes_the_page(folder, tmp_path):
    page = tmp_path / "page.html"
    printed = done("explore", folder / "mixed.csv", "--target", "y", "-o", page, *FAST)
    assert printed == f"Page written to {page}\n"
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    stored = data_of(page.read_text())
    # z has gaps, ward and flag are texts
    assert [axis["name"] for axis in stored["axes"]] == ["prediction", "x", "day"]
    assert stored["model"] == "ridge"
    assert stored["notes"] == ["3 of 5 features have no axis: not numbers, with gaps, or too many."]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_json_is_the_only_output(folder, tmp_path):
    model, new = folder / "mixed.model", folder / "mixed-new.csv"
    predict = ("predict", model, new, "-o", tmp_path / "out.csv")
    for words in (fit(folder / "mixed.csv", tmp_path / "m.model"), predict, ("evaluate", model, new)):
        result = sosbands(*words, "--json")
        assert result.stderr == ""
        assert any("filled with the median" in note for note in json.loads(result.stdout)["notes"])
        assert "filled with the median" in sosbands(*words).stderr


@pytest.mark.parametrize("command", ["demo", "fit", "predict", "evaluate", "compare", "explore", "card", "export"])
def test_every_help_has_an_example_of_itself(command):
    printed = done(command, "--help")
    words = re.search(rf"Example:\n +sosbands {command} (.*)", printed).group(1).split()
    described = printed[printed.index("Options:") :]
    assert all(word in described for word in words if word.startswith("-"))
    assert command in done("--help")


def commands_in_the_docs():
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
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
    else:
        assert "no such file" in refused(*words)


def test_demo_says_compares_draws_and_explores(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    assert pages.ROWS == 2000
    monkeypatch.setattr(pages, "ROWS", 600)  # which is enough for all that it says

    def write_page(X, y, path, **settings):  # the real one is tested by explore
        assert tuple(X.columns) == DELIVERY_COLUMNS
        assert (len(X), len(y)) == (600, 600)
        assert settings["target_name"] == "minutes"
        path.write_text("page")
        return path

    monkeypatch.setattr(pages, "write_page", write_page)
    words = flat(done("demo", "-o", tmp_path / "new" / "folder"))
    columns = "distance_km, stops, hour, rain_mm, weight"
    assert words.startswith(f"Minutes that 600 simulated deliveries took, from {columns}")
    assert "Bands around a blend of 0." in words
    below, above = map(float, re.search(r"from (\S+) below to (\S+) above the prediction", words).groups())
    assert above > 1.3 * below  # delays have their long tail above
    assert "each side has its own band (test of skew: p = " in words
    skewed = r"residuals are skewed \(p = (\S+)\), and the best symmetric .* score (\S+)% worse"
    skew, loss = map(float, re.search(skewed, words).groups())
    assert skew <= 0.05
    assert 1 < loss < 30
    compared = words[words.index("On 180 deliveries kept apart, all around the same point model") :]
    found = re.findall(r"(\w+)(?: CP)? (\S+)%, (\S+), (\S+)[;.] ", compared)
    rows = {name: tuple(map(float, numbers)) for name, *numbers in found}
    assert list(rows) == ["sosbands", "split", "weighted"]
    assert all(85 <= coverage <= 96 for coverage, _, _ in rows.values())
    widths, scores = ({name: row[k] for name, row in rows.items()} for k in (1, 2))
    assert scores["sosbands"] < scores["weighted"] < scores["split"]
    assert widths["sosbands"] < 0.9 * widths["split"]
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["bands.png", "page.html"]
    assert (tmp_path / "new" / "folder" / "bands.png").read_bytes().startswith(b"\x89PNG")


def test_methods_of_the_demo_stand_around_the_same_point_model():
    X, y = delivery_times(80)
    methods = [partial(SoSBandRegressor, **{**SETTINGS, "random_state": 3})]
    methods += [partial(rival, random_state=3) for rival in pages.RIVALS.values()]
    predictions = [method().fit(X, y).predict(X) for method in methods]
    assert len(predictions) == 3
    assert all(np.array_equal(each, predictions[0]) for each in predictions)


def test_demo_goes_without_a_picture_where_it_cannot_be_drawn(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(pages, "write_page", lambda *_, **__: tmp_path / "page.html")
    fixed = {name: value for name, value in SETTINGS.items() if name != "random_state"}
    monkeypatch.setattr(pages, "SoSBandRegressor", partial(SoSBandRegressor, GaussianProcess(), **fixed))
    monkeypatch.setattr(pages, "RIVALS", {})
    monkeypatch.setattr(pages, "ROWS", 200)
    told = noted("demo", "-o", tmp_path)
    assert "note: no picture: this needs matplotlib, which" in told
    assert "pip install matplotlib" in told
    assert list(tmp_path.iterdir()) == []


def test_every_extra_that_a_message_or_a_page_names_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    files = [*(ROOT / "src").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    found = re.findall(r"(?:sosbands|\"\.)\[([a-z,]+)\]", text)
    named = {name for names in found for name in names.split(",")}
    assert {"cli", "plot", "baselines"} <= named <= set(extras)


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
