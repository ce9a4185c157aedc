"""Levels, single ends, groups, identifiers and digits: what is asked of `fit`, written by `predict`, measured."""

import json
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
import sosbands as library
from cli_runs import FAST, FIXED, done, mixed_table, number_table, sosbands
from sosbands.cli.output import decimals_for, short
from sosbands.conformal import conformal_quantile

pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning")


def grouped_table(n=200, seed=0):
    """Noise ten times as large in one group as in the other."""
    table = number_table(n, seed).assign(ward=np.where(np.arange(n) % 2, "calm", "wild"), row=np.arange(n))
    return table.assign(y=table.a + np.where(table.ward == "wild", 10.0, 1.0) * (table.y - table.a))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("intervals")
    grouped_table().to_csv(path / "groups.csv", index=False)
    grouped_table(100, seed=1).to_csv(path / "new.csv", index=False)
    words = ("--target", "y", "--drop", "row", *FAST)
    done("fit", path / "groups.csv", *words, "--drop", "ward", "-o", path / "plain.model")
    done("fit", path / "groups.csv", *words, "--groups", "ward", "-o", path / "groups.model")
    done("fit", path / "groups.csv", *words, "--drop", "ward", "--side", "upper", "-o", path / "upper.model")
    return path


def predicted(folder, model, *words, data="new.csv"):
    done("predict", folder / model, folder / data, "-o", folder / "out.parquet", *words)
    return pd.read_parquet(folder / "out.parquet")


NEW = grouped_table(100, seed=1)


@pytest.mark.parametrize("words", [("--confidence-level", "0.5,0.975"), ("--confidence-level", "0.5") * 2])
def test_several_levels_have_columns_of_their_own(folder, words):
    words = (*words[:3], "0.975") if len(words) == 4 else words
    found = predicted(folder, "plain.model", *words)
    ends = library.load(folder / "plain.model").predict_interval(NEW[["a", "b"]], [0.5, 0.975])
    names = ["lower_50", "upper_50", "lower_97.5", "upper_97.5"]
    assert list(found.columns) == ["prediction", *names, "support"]
    assert np.array_equal(found[names], np.column_stack([ends[:, :, 0], ends[:, :, 1]]))


def test_totals_of_several_levels_are_lists(folder):
    words = ("predict", folder / "plain.model", folder / "new.csv", "-o", folder / "o.csv", "--json")
    several = json.loads(done(*words, "--confidence-level", "0.5,0.8"))
    one = [json.loads(done(*words, "--confidence-level", level)) for level in ("0.5", "0.8")]
    assert several["confidence_level"] == [0.5, 0.8]
    assert several["mean_width"] == [each["mean_width"] for each in one]
    assert several["n_off_data"] == one[0]["n_off_data"]


@pytest.mark.parametrize(("side", "share", "column"), [("upper", 0.0, 1), ("lower", 1.0, 0)])
def test_a_single_end_takes_all_of_the_miscoverage(folder, side, share, column):
    found = predicted(folder, "plain.model", "--side", side)
    assert list(found.columns) == ["prediction", side, "support"]
    model = library.load(folder / "plain.model")
    assert model.calibration == "symmetric"
    ends = model.set_params(calibration="asymmetric").predict_interval(NEW[["a", "b"]], lower_share=share)
    assert np.array_equal(found[side], ends[:, column])
    assert np.isinf(ends[:, 1 - column]).all()
    two = predicted(folder, "plain.model")
    assert np.mean(np.abs(found[side] - found.prediction)) < np.mean(np.abs(two[side] - two.prediction))


def test_the_end_that_fit_was_told_is_that_of_later_commands(folder):
    assert list(predicted(folder, "upper.model").columns) == ["prediction", "upper", "support"]
    assert list(predicted(folder, "upper.model", "--side", "both").columns)[1:3] == ["lower", "upper"]
    found = json.loads(done("evaluate", folder / "upper.model", folder / "new.csv", "--json"))
    end = predicted(folder, "upper.model")
    assert found["side"] == "upper"
    assert found["coverage"] == np.mean(end.upper >= NEW.y)
    assert found["mean_reach"] == pytest.approx(np.mean(end.upper - end.prediction))
    missed = NEW.y - end.upper
    assert found["quantile_loss"] == pytest.approx(np.mean(np.where(missed > 0, 0.9 * missed, -0.1 * missed)))
    assert found["n_infinite"] == 0
    assert "mean_width" not in found
    model = library.load(folder / "upper.model")
    held = grouped_table().iloc[model.calibration_rows_]
    split = conformal_quantile(np.asarray(held.y - model.predict(held[["a", "b"]])), 0.9)
    assert found["relative_reach"] == pytest.approx(found["mean_reach"] / split)


def test_fit_says_what_a_single_end_promises(folder):
    words = ("--target", "y", "--drop", "row", "--drop", "ward", "--side", "lower", "-o", folder / "m.model", *FAST)
    printed = done("fit", folder / "groups.csv", *words, "--confidence-level", "0.8")
    assert "lower ends alone, which take all of the miscoverage: at most 20 % of new rows lie below" in " ".join(
        printed.split()
    )


def test_a_single_end_with_groups_is_all_that_fit_speaks_of(folder):
    words = ("--target", "y", "--drop", "row", "--groups", "ward", "--side", "upper", "-o", folder / "g.model", *FAST)
    printed = " ".join(done("fit", folder / "groups.csv", *words).split())
    assert "within each group at least 90% of new rows lie at or below their upper end, on average" in printed
    assert "both ends" not in printed
    assert "their interval" not in printed


def test_quantiles_are_written_in_columns(folder):
    found = predicted(folder, "plain.model", "--quantiles", "0.5,0.05,0.95")
    names = ["quantile_5", "quantile_50", "quantile_95"]
    assert list(found.columns) == ["prediction", *names, "support"]
    model = library.load(folder / "plain.model")
    assert np.array_equal(found[names], model.predict_quantile(NEW[["a", "b"]], [0.05, 0.5, 0.95]))
    one_sided = predicted(folder, "upper.model", "--confidence-level", "0.95")
    assert np.array_equal(one_sided["upper"], predicted(folder, "upper.model", "--quantiles", "0.95")["quantile_95"])


def test_quantiles_by_groups(folder):
    found = predicted(folder, "groups.model", "--quantiles", "0.1,0.9")
    labels = NEW.ward.to_numpy(dtype=str)
    expected = library.load(folder / "groups.model").predict_quantile(NEW[["a", "b"]], [0.1, 0.9], groups=labels)
    assert np.array_equal(found[["quantile_10", "quantile_90"]], expected)


def test_what_is_said_of_quantiles(folder):
    words = ("predict", folder / "plain.model", folder / "new.csv", "-o", folder / "o.csv", "--quantiles", "0.001,0.5")
    result = sosbands(*words)
    assert result.exit_code == 0, result.stderr
    assert "100 of 100 quantiles are infinite at 0.001: there are too few calibration rows" in result.stderr
    assert "100 rows with quantiles 0.001, 0.5 written to" in result.stdout
    assert json.loads(done(*words, "--json"))["n_infinite"] == [100, 0]
    both = sosbands(*words, "--side", "upper")
    assert both.exit_code == 1
    assert "--quantiles beside --confidence-level or --side: expected quantiles or intervals, not both" in both.stderr


def test_nested_bands_from_the_command_line(folder):
    words = ("--target", "y", "--drop", "row", "--drop", "ward", "--nested-coverages", "0.9,0.5", *FAST, "--json")
    found = json.loads(done("fit", folder / "groups.csv", *words, "-o", folder / "nested.model"))
    assert found["nested_coverages"] == [0.5, 0.9]
    assert "Nested bands in use, learnt for 50%, 90%" in found["summary"]
    ends = predicted(folder, "nested.model", "--confidence-level", "0.5,0.7,0.9")
    assert (ends.lower_90 <= ends.lower_70).all()
    assert (ends.lower_70 <= ends.lower_50).all()
    assert (ends.upper_50 <= ends.upper_70).all()


def test_groups_are_calibrated_apart_and_not_learnt_from(folder):
    model = library.load(folder / "groups.model")
    assert list(model.feature_names_in_) == ["a", "b"]
    found = predicted(folder, "groups.model")
    ends = model.predict_interval(NEW[["a", "b"]], groups=NEW.ward.to_numpy(dtype=str))
    assert np.array_equal(found[["lower", "upper"]], ends)
    widths = (found.upper - found.lower).groupby(NEW.ward).mean()
    assert widths["wild"] > 2 * widths["calm"]


def test_groups_are_read_in_every_batch_of_a_long_file(folder, tmp_path):
    table = grouped_table(10_000, seed=2)
    table.to_csv(tmp_path / "long.csv", index=False)
    found = predicted(folder, "groups.model", data=tmp_path / "long.csv")
    model = library.load(folder / "groups.model")
    assert np.array_equal(
        found[["lower", "upper"]], model.predict_interval(table[["a", "b"]], groups=table.ward.to_numpy(dtype=str))
    )


def test_evaluate_goes_by_groups(folder):
    found = json.loads(done("evaluate", folder / "groups.model", folder / "new.csv", "--json"))
    model = library.load(folder / "groups.model")
    row = model.evaluate(NEW[["a", "b"]], NEW.y, groups=NEW.ward.to_numpy(dtype=str))
    assert found["coverage"] == row["coverage"]
    assert found["mean_width"] == pytest.approx(row["mean_width"])
    held = grouped_table().iloc[model.calibration_rows_]
    errors = np.abs(held.y - model.predict(held[["a", "b"]]))
    split = {ward: 2 * conformal_quantile(errors[held.ward == ward], 0.9) for ward in ("calm", "wild")}
    assert found["relative_width"] == pytest.approx(row["mean_width"] / NEW.ward.map(split).mean())


def test_groups_can_be_learnt_from_too(folder):
    words = (
        "--target",
        "y",
        "--drop",
        "row",
        "--groups",
        "ward",
        "--groups-as-feature",
        "-o",
        folder / "m.model",
        *FAST,
    )
    found = json.loads(done("fit", folder / "groups.csv", *words, "--json"))
    assert found["columns"]["ward"] == "category"
    assert found["groups"] == "ward"
    assert set(found["quantile"]) == {"calm", "wild"}
    model = library.load(folder / "m.model")
    assert found["quantile"] == {ward: model.quantile(group=ward) for ward in ("calm", "wild")}
    evaluated = json.loads(done("evaluate", folder / "m.model", folder / "new.csv", "--json"))
    assert 0.75 < evaluated["coverage"] <= 1


def test_groups_with_too_few_calibration_rows_are_counted(tmp_path):
    table = grouped_table().assign(ward=lambda table: np.where(table["row"] < 6, "rare", table.ward))
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "--drop", "row", "--groups", "ward", "-o", tmp_path / "m.model", *FAST)
    done("fit", tmp_path / "t.csv", *words)
    table.iloc[:20].to_csv(tmp_path / "new.csv", index=False)
    result = sosbands("predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    assert (
        "note: 6 of 20 intervals are infinite at 90 %: there are too few calibration rows in the group\n"
        in result.stderr
    )
    assert "calibration points" not in result.stderr
    evaluated = sosbands("evaluate", tmp_path / "m.model", tmp_path / "new.csv")
    assert "given: 3 in group 'rare'; 6 of 20 intervals infinite" in evaluated.stderr
    assert "relative_width" not in evaluated.stdout  # as both are infinite


def test_a_group_without_calibration_rows_is_named(folder, tmp_path):
    NEW.assign(ward="odd").to_csv(tmp_path / "odd.csv", index=False)
    for command in (("predict", "-o", tmp_path / "o.csv"), ("evaluate",)):
        result = sosbands(command[0], folder / "groups.model", tmp_path / "odd.csv", *command[1:])
        assert result.exit_code == 1
        assert "column 'ward' holds 'odd', of which no calibration row is: expected 'calm', 'wild'" in result.stderr
    assert not (tmp_path / "o.csv").exists()


def test_a_model_of_python_with_groups_needs_their_column(folder, tmp_path):
    model = library.load(folder / "groups.model")
    del model.asked_
    model.save(tmp_path / "python.model")
    words = ("predict", tmp_path / "python.model", folder / "new.csv", "-o", tmp_path / "o.csv")
    assert "does not say in which column they are: give --groups" in sosbands(*words).stderr
    done(*words, "--groups", "ward", "--digits", "17")
    expected = predicted(folder, "groups.model")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "o.csv"), expected, rtol=1e-12)


def test_identifiers_come_first(folder, tmp_path):
    words = ("predict", folder / "plain.model", folder / "new.csv", "-o", tmp_path / "o.csv")
    result = sosbands(*words, "--id", "row", "--id", "ward")
    found = pd.read_csv(tmp_path / "o.csv")
    assert list(found.columns) == ["row", "ward", "prediction", "lower", "upper", "support"]
    assert found["row"].tolist() == list(range(100))
    assert "does not use" not in result.stderr  # they are used, in the output
    done(*words, "--id", "row", "--keep-columns")
    assert list(pd.read_csv(tmp_path / "o.csv").columns)[:5] == ["row", "a", "b", "y", "ward"]


def test_numbers_have_as_many_digits_as_errors_need(folder, tmp_path):
    shifted = grouped_table().assign(y=lambda table: table.y + 1e6)
    shifted.to_csv(tmp_path / "far.csv", index=False)
    words = ("--target", "y", "--drop", "row", "--drop", "ward", *FAST)
    done("fit", tmp_path / "far.csv", *words, "-o", tmp_path / "far.model")
    for digits, decimals in ((6, 5), (3, 2)):  # errors are about 7
        words = ("--digits", str(digits)) if digits != 6 else ()
        done("predict", tmp_path / "far.model", folder / "new.csv", "-o", tmp_path / "o.csv", *words)
        text = pd.read_csv(tmp_path / "o.csv", dtype=str)
        lengths = text[["prediction", "lower", "upper"]].map(lambda number: len(number.partition(".")[2]))
        assert lengths.to_numpy().max() == decimals
        assert text.support.str.len().max() <= 6
        exact = predicted(tmp_path, "far.model", data=folder / "new.csv")
        found = text.astype(float)
        np.testing.assert_allclose(found.prediction, exact.prediction, rtol=0, atol=0.5 * 10.0**-decimals + 1e-9)
        np.testing.assert_allclose(found.support, exact.support, rtol=0, atol=5e-5)
        for moved in (exact.lower - found.lower, found.upper - exact.upper):  # outwards: a row at an end stays inside
            assert moved.min() >= 0
            assert 0.4 * 10.0**-decimals < moved.max() <= 10.0**-decimals + 1e-9


@pytest.mark.parametrize(
    ("distance", "decimals"), [(7.0, 5), (0.02, 7), (48_000.0, 1), (1e9, 0), ([np.inf, 30.0], 4), (0.0, 5), (np.nan, 5)]
)
def test_decimals(distance, decimals):
    assert decimals_for(distance, 6) == decimals


def test_short_numbers():
    assert [short(value) for value in (177012.3, 0.93, 200, 1.5e12, float("inf"), -0.00012345)] == [
        "177000",
        "0.93",
        "200",
        "1.5e+12",
        "inf",
        "-0.0001234",
    ]


def test_evaluate_shows_levels_side_by_side(folder):
    printed = done("evaluate", folder / "plain.model", folder / "new.csv", "--confidence-level", "0.5,0.9")
    assert printed.startswith("50 % and 90 % intervals of ")
    assert re.search(r"^metric +50 % +90 % +meaning", printed, re.MULTILINE)
    found = json.loads(
        done("evaluate", folder / "plain.model", folder / "new.csv", "--confidence-level", "0.5,0.9", "--json")
    )
    shown = re.search(r"^mean_width +(\S+) +(\S+) ", printed, re.MULTILINE).groups()
    assert [float(each) for each in shown] == pytest.approx([each["mean_width"] for each in found["levels"]], rel=1e-3)


def test_outliers_and_rank_reach_the_estimator(tmp_path):
    mixed_table().to_csv(tmp_path / "t.csv", index=False)
    words = ("--outlier-fraction", "0.1", "--rank", "7", "-o", tmp_path / "m.model", "--model", "linear", *FIXED)
    with_few = sosbands("fit", tmp_path / "t.csv", "--target", "y", *words)
    assert with_few.exit_code == 0
    model = library.load(tmp_path / "m.model")
    assert (model.bands.outlier_fraction, model.bands.rank) == (0.1, 7)
    assert model.noise_.certificate["n_features"] == 8  # and the constant
    assert "6 rows with the largest residuals left out" in model.summary(detail=True)


@pytest.mark.parametrize(
    ("words", "noted"),
    [
        (("0.95",), "note: --calibration-size 0.95 leaves 4 of 80 rows to learn from, which tell hardly anything"),
        (("10", "--calibration", "asymmetric"), "holds 10 of 80 rows back, but 90 % intervals take 19"),
        (("10", "--side", "upper"), None),  # one end takes 9
        (("65",), "leaves 15 of 80 rows to learn from"),
        (("60",), None),
    ],
)
def test_fit_says_what_a_calibration_size_leaves_too_few_rows_for(tmp_path, words, noted):
    number_table(80).to_csv(tmp_path / "t.csv", index=False)
    result = sosbands(
        "fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m", *FAST, "--calibration-size", *words
    )
    assert result.exit_code == 0
    assert ("--calibration-size" in result.stderr) is (noted is not None)
    assert (noted or "") in result.stderr
