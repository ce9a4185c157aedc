"""Levels, single ends, groups, identifiers and digits: what is asked of `fit`, written by `predict`, measured."""

import re

import numpy as np
import pytest

import sosbands as library
from cli_runs import done, fit, flat, grouped_table, noted, pd, refused, said
from sosbands.cli.output import decimals_for, short
from sosbands.conformal import conformal_quantile

pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.CrossedIntervalsWarning")
FEATURES, ENDS = ["a", "b"], ["lower", "upper"]
NEW, WARDS = grouped_table(100, seed=1), grouped_table(100, seed=1).ward.to_numpy(dtype=str)


@pytest.fixture
def predicted(folder, tmp_path):
    """What `predict` writes of the new rows, or of a file, with a model."""

    def run(model, *words, data="groups-new.csv"):
        done("predict", folder / model, folder / data, "-o", tmp_path / "out.parquet", *words)
        return pd.read_parquet(tmp_path / "out.parquet")

    return run


@pytest.mark.parametrize("words", [("0.5,0.975",), ("0.5", "--confidence-level", "0.975")])
def test_several_levels_have_columns_of_their_own(folder, predicted, words):
    found = predicted("plain.model", "--confidence-level", *words)
    ends = library.load(folder / "plain.model").predict_interval(NEW[FEATURES], [0.5, 0.975])
    names = ["lower_50", "upper_50", "lower_97.5", "upper_97.5"]
    assert list(found.columns) == ["prediction", *names, "support"]
    assert np.array_equal(found[names], np.column_stack([ends[:, :, 0], ends[:, :, 1]]))


def test_totals_of_several_levels_are_lists(folder, tmp_path):
    words = ("predict", folder / "plain.model", folder / "groups-new.csv", "-o", tmp_path / "o.csv")
    several = said(*words, "--confidence-level", "0.5,0.8")
    one = [said(*words, "--confidence-level", level) for level in ("0.5", "0.8")]
    assert several["confidence_level"] == [0.5, 0.8]
    assert several["mean_width"] == [each["mean_width"] for each in one]
    assert several["n_off_data"] == one[0]["n_off_data"]


@pytest.mark.parametrize(("side", "share", "column"), [("upper", 0.0, 1), ("lower", 1.0, 0)])
def test_a_single_end_takes_all_of_the_miscoverage(folder, predicted, side, share, column):
    found, two = predicted("plain.model", "--side", side), predicted("plain.model")
    assert list(found.columns) == ["prediction", side, "support"]
    model = library.load(folder / "plain.model")
    assert model.calibration == "symmetric"
    ends = model.set_params(calibration="asymmetric").predict_interval(NEW[FEATURES], lower_share=share)
    assert np.array_equal(found[side], ends[:, column])
    assert np.isinf(ends[:, 1 - column]).all()
    assert np.mean(np.abs(found[side] - found.prediction)) < np.mean(np.abs(two[side] - two.prediction))


def test_the_end_that_fit_was_told_is_that_of_later_commands(folder, predicted):
    end = predicted("upper.model")
    assert list(end.columns) == ["prediction", "upper", "support"]
    assert list(predicted("upper.model", "--side", "both").columns)[1:3] == ENDS
    found = said("evaluate", folder / "upper.model", folder / "groups-new.csv")
    assert found["side"] == "upper"
    assert found["coverage"] == np.mean(end.upper >= NEW.y)
    assert found["mean_reach"] == pytest.approx(np.mean(end.upper - end.prediction))
    missed = NEW.y - end.upper
    assert found["quantile_loss"] == pytest.approx(np.mean(np.where(missed > 0, 0.9 * missed, -0.1 * missed)))
    assert found["n_infinite"] == 0
    assert "mean_width" not in found
    model = library.load(folder / "upper.model")
    held = grouped_table().iloc[model.calibration_rows_]
    split = conformal_quantile(np.asarray(held.y - model.predict(held[FEATURES])), 0.9)
    assert found["relative_reach"] == pytest.approx(found["mean_reach"] / split)


def test_fit_says_what_a_single_end_promises_with_and_without_groups(folder, tmp_path):
    words = fit(folder / "groups.csv", tmp_path / "m.model", "--drop", "row")
    printed = flat(done(*words, "--drop", "ward", "--side", "lower", "--confidence-level", "0.8"))
    assert "lower ends alone, which take all of the miscoverage: at most 20 % of new rows lie below" in printed
    printed = flat(done(*words, "--groups", "ward", "--side", "upper"))
    assert "within each group at least 90% of new rows lie at or below their upper end, on average" in printed
    assert "both ends" not in printed
    assert "their interval" not in printed


def test_quantiles_are_written_in_columns_also_by_groups(folder, predicted):
    found = predicted("plain.model", "--quantiles", "0.5,0.05,0.95")
    names = ["quantile_5", "quantile_50", "quantile_95"]
    assert list(found.columns) == ["prediction", *names, "support"]
    expected = library.load(folder / "plain.model").predict_quantile(NEW[FEATURES], [0.05, 0.5, 0.95])
    assert np.array_equal(found[names], expected)
    one_sided = predicted("upper.model", "--confidence-level", "0.95")["upper"]
    assert np.array_equal(one_sided, predicted("upper.model", "--quantiles", "0.95")["quantile_95"])
    found = predicted("groups.model", "--quantiles", "0.1,0.9")
    expected = library.load(folder / "groups.model").predict_quantile(NEW[FEATURES], [0.1, 0.9], groups=WARDS)
    assert np.array_equal(found[["quantile_10", "quantile_90"]], expected)


def test_what_is_said_of_quantiles(folder, tmp_path):
    words = ("predict", folder / "plain.model", folder / "groups-new.csv", "-o", tmp_path / "o.csv")
    words += ("--quantiles", "0.001,0.5")
    assert "100 of 100 quantiles are infinite at 0.001: there are too few calibration rows" in noted(*words)
    assert "100 rows with quantiles 0.001, 0.5 written to" in done(*words)
    assert said(*words)["n_infinite"] == [100, 0]
    message = refused(*words, "--side", "upper")
    assert "--quantiles beside --confidence-level or --side: expected quantiles or intervals, not both" in message


def test_nested_bands_from_the_command_line(folder, predicted, tmp_path):
    words = ("--drop", "row", "--drop", "ward", "--nested-coverages", "0.9,0.5")
    found = said(*fit(folder / "groups.csv", tmp_path / "nested.model", *words))
    assert found["nested_coverages"] == [0.5, 0.9]
    assert "Nested bands in use, learnt for 50%, 90%" in found["summary"]
    ends = predicted(tmp_path / "nested.model", "--confidence-level", "0.5,0.7,0.9")
    for outer, inner in ((90, 70), (70, 50)):
        assert (ends[f"lower_{outer}"] <= ends[f"lower_{inner}"]).all()
        assert (ends[f"upper_{inner}"] <= ends[f"upper_{outer}"]).all()


def test_groups_are_calibrated_apart_and_not_learnt_from(folder, predicted, tmp_path):
    model = library.load(folder / "groups.model")
    assert list(model.feature_names_in_) == FEATURES
    found = predicted("groups.model")
    assert np.array_equal(found[ENDS], model.predict_interval(NEW[FEATURES], groups=WARDS))
    widths = (found.upper - found.lower).groupby(NEW.ward).mean()
    assert widths["wild"] > 2 * widths["calm"]
    long = grouped_table(10_000, seed=2)  # more than a batch
    long.to_csv(tmp_path / "long.csv", index=False)
    found = predicted("groups.model", data=tmp_path / "long.csv")
    ends = model.predict_interval(long[FEATURES], groups=long.ward.to_numpy(dtype=str))
    assert np.array_equal(found[ENDS], ends)
    del model.asked_  # as of a model from Python
    model.save(tmp_path / "python.model")
    words = ("predict", tmp_path / "python.model", folder / "groups-new.csv", "-o", tmp_path / "o.csv")
    assert "does not say in which column they are: give --groups" in refused(*words)
    done(*words, "--groups", "ward", "--digits", "17")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "o.csv"), predicted("groups.model"), rtol=1e-12)


def test_evaluate_goes_by_groups(folder):
    found = said("evaluate", folder / "groups.model", folder / "groups-new.csv")
    model = library.load(folder / "groups.model")
    row = model.evaluate(NEW[FEATURES], NEW.y, groups=WARDS)
    assert found["coverage"] == row["coverage"]
    assert found["mean_width"] == pytest.approx(row["mean_width"])
    held = grouped_table().iloc[model.calibration_rows_]
    errors = np.abs(held.y - model.predict(held[FEATURES]))
    split = {ward: 2 * conformal_quantile(errors[held.ward == ward], 0.9) for ward in ("calm", "wild")}
    assert found["relative_width"] == pytest.approx(row["mean_width"] / NEW.ward.map(split).mean())


def test_evaluate_has_a_table_by_group(folder, tmp_path):
    words = ("evaluate", folder / "plain.model", folder / "groups-new.csv")
    printed, found = done(*words, "--by", "ward"), said(*words, "--by", "ward")
    row = library.load(folder / "plain.model").evaluate(NEW[FEATURES], NEW.y, by=WARDS)
    assert found["by"] == [{"group": ward, **numbers} for ward, numbers in row["by"].items()]
    assert re.search(r"^group +n +coverage +coverage_from", printed, re.MULTILINE)
    assert re.search(r"^wild +50 +0\.", printed, re.MULTILINE)
    assert re.search(r"^worst_set_coverage +too few rows  least coverage", printed, re.MULTILINE)  # of 100
    assert "by" not in said(*words)
    of_groups = ("evaluate", folder / "groups.model", folder / "groups-new.csv")
    assert [each["group"] for each in said(*of_groups)["by"]] == ["calm", "wild"]  # which the model knows
    end = said("evaluate", folder / "upper.model", folder / "groups-new.csv", "--by", "ward")
    reach = [each["n"] * each["mean_reach"] for each in end["by"]]
    assert sum(reach) / 100 == pytest.approx(end["mean_reach"])
    assert "mean_width" not in end["by"][0]
    two = said(*words, "--by", "ward", "--confidence-level", "0.5,0.9")
    assert two["levels"][1]["by"] == found["by"]
    assert re.search(
        r"^ ?50 % +calm .*\n ?50 % +wild ",
        done(*words, "--by", "ward", "--confidence-level", "0.5,0.9"),
        re.MULTILINE,
    )
    assert "--by y: expected another column than the target" in refused(*words, "--by", "y")
    many = pd.concat([NEW, NEW], ignore_index=True).assign(house=np.arange(200))
    many.to_csv(tmp_path / "many.csv", index=False)
    assert "--by house: the column holds 200 different values, '0'" in refused(
        *words[:2], tmp_path / "many.csv", "--by", "house"
    )


def test_evaluate_looks_for_places(folder, tmp_path):
    grouped_table(600, seed=2).to_csv(tmp_path / "new.csv", index=False)
    words = ("evaluate", folder / "plain.model", tmp_path / "new.csv", "--places")
    printed, found = done(*words), said(*words)
    table = pd.read_csv(tmp_path / "new.csv")
    row = library.load(folder / "plain.model").evaluate(table[FEATURES], table.y, places=True)
    for name in ("ert_l1", "ert_l2_under", "worst_slab_coverage", "cell_gap", "cell_gap_by_chance"):
        assert found[name] == pytest.approx(row[name], rel=1e-9)
        assert re.search(rf"^{name} +-?\d\S* +\w+", printed, re.MULTILINE)
    few = ("evaluate", folder / "plain.model", folder / "groups-new.csv", "--places")
    assert re.search(r"^ert_l1 +too few rows  mean distance", done(*few), re.MULTILINE)
    assert "excess risk of the coverage: 100 of at least 200" in flat(noted(*few))
    assert "ert_l1" not in said(*few)


def test_groups_can_be_learnt_from_too(folder, tmp_path):
    words = ("--drop", "row", "--groups", "ward", "--groups-as-feature")
    found = said(*fit(folder / "groups.csv", tmp_path / "m.model", *words))
    assert found["columns"]["ward"] == "category"
    assert found["groups"] == "ward"
    model = library.load(tmp_path / "m.model")
    assert found["quantile"] == {ward: model.quantile(group=ward) for ward in ("calm", "wild")}
    assert 0.75 < said("evaluate", tmp_path / "m.model", folder / "groups-new.csv")["coverage"] <= 1


def test_groups_with_too_few_calibration_rows_are_counted(tmp_path):
    table = grouped_table().assign(ward=lambda table: np.where(table["row"] < 6, "rare", table.ward))
    table.to_csv(tmp_path / "t.csv", index=False)
    done(*fit(tmp_path / "t.csv", tmp_path / "m.model", "--drop", "row", "--groups", "ward"))
    table.iloc[:20].to_csv(tmp_path / "new.csv", index=False)
    told = noted("predict", tmp_path / "m.model", tmp_path / "new.csv", "-o", tmp_path / "o.csv")
    few = "6 of 20 intervals are infinite at 90 %: there are too few calibration rows in the group"
    assert f"note: {few}\n" in told
    assert "calibration points" not in told
    words = ("evaluate", tmp_path / "m.model", tmp_path / "new.csv")
    assert "given: 3 in group 'rare'; 6 of 20 intervals infinite" in noted(*words)
    assert "relative_width" not in done(*words)  # as both are infinite


def test_a_group_without_calibration_rows_is_named(folder, tmp_path):
    NEW.assign(ward="odd").to_csv(tmp_path / "odd.csv", index=False)
    for command, *words in (("predict", "-o", tmp_path / "o.csv"), ("evaluate",)):
        message = refused(command, folder / "groups.model", tmp_path / "odd.csv", *words)
        assert "column 'ward' holds 'odd', of which no calibration row is: expected 'calm', 'wild'" in message
    assert not (tmp_path / "o.csv").exists()


def test_identifiers_come_first(folder, tmp_path):
    words = ("predict", folder / "plain.model", folder / "groups-new.csv", "-o", tmp_path / "o.csv", "--id", "row")
    assert "does not use" not in noted(*words, "--id", "ward")  # they are used, in the output
    found = pd.read_csv(tmp_path / "o.csv")
    assert list(found.columns) == ["row", "ward", "prediction", *ENDS, "support"]
    assert found["row"].tolist() == list(range(100))
    done(*words, "--keep-columns")
    assert list(pd.read_csv(tmp_path / "o.csv").columns)[:5] == ["row", "a", "b", "y", "ward"]


def test_numbers_have_as_many_digits_as_errors_need(folder, predicted, tmp_path):
    grouped_table().assign(y=lambda table: table.y + 1e6).to_csv(tmp_path / "far.csv", index=False)
    half = ("--calibration-size", "0.5")
    done(*fit(tmp_path / "far.csv", tmp_path / "far.model", "--drop", "row", "--drop", "ward", *half))
    exact = predicted(tmp_path / "far.model")
    for words, decimals in (((), 5), (("--digits", "3"), 2)):  # errors are about 7
        done("predict", tmp_path / "far.model", folder / "groups-new.csv", "-o", tmp_path / "o.csv", *words)
        text = pd.read_csv(tmp_path / "o.csv", dtype=str)
        lengths = text[["prediction", *ENDS]].map(lambda number: len(number.partition(".")[2]))
        assert lengths.to_numpy().max() == decimals
        assert text.support.str.len().max() <= 6
        found, unit = text.astype(float), 10.0**-decimals
        np.testing.assert_allclose(found.prediction, exact.prediction, rtol=0, atol=0.5 * unit + 1e-9)
        np.testing.assert_allclose(found.support, exact.support, rtol=0, atol=5e-5)
        for moved in (exact.lower - found.lower, found.upper - exact.upper):  # outwards: a row at an end stays inside
            assert moved.min() >= 0
            assert 0.4 * unit < moved.max() <= unit + 1e-9


@pytest.mark.parametrize(
    ("distance", "decimals"), [(7.0, 5), (0.02, 7), (48_000.0, 1), (1e9, 0), ([np.inf, 30.0], 4), (0.0, 5), (np.nan, 5)]
)
def test_decimals(distance, decimals):
    assert decimals_for(distance, 6) == decimals


def test_short_numbers():
    shown = {177012.3: "177000", 0.93: "0.93", 200: "200", 1.5e12: "1.5e+12", np.inf: "inf", -0.00012345: "-0.0001234"}
    assert {value: short(value) for value in shown} == shown


def test_evaluate_shows_levels_side_by_side(folder):
    words = ("evaluate", folder / "plain.model", folder / "groups-new.csv", "--confidence-level", "0.5,0.9")
    printed, found = done(*words), said(*words)
    assert printed.startswith("50 % and 90 % intervals of ")
    assert re.search(r"^metric +50 % +90 % +meaning", printed, re.MULTILINE)
    shown = re.search(r"^mean_width +(\S+) +(\S+) ", printed, re.MULTILINE).groups()
    assert [float(each) for each in shown] == pytest.approx([each["mean_width"] for each in found["levels"]], rel=1e-3)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("0.95",), "note: --calibration-size 0.95 leaves 4 of 80 rows to learn from, which tell hardly anything"),
        (("10", "--calibration", "asymmetric"), "holds 10 of 80 rows back, but 90 % intervals take 19"),
        (("10", "--side", "upper"), None),  # one end takes 9
        (("65",), "leaves 15 of 80 rows to learn from"),
        (("60",), None),
    ],
)
def test_fit_says_what_a_calibration_size_leaves_too_few_rows_for(folder, tmp_path, words, told):
    notes = noted(*fit(folder / "numbers.csv", tmp_path / "m", "--calibration-size", *words))
    assert ("--calibration-size" in notes) is (told is not None)
    assert (told or "") in notes
