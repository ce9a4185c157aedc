"""What the tables and figures of the real data sets show, from made-up rows with known numbers."""

import math

import numpy as np
import pytest

from sosbands.comparison import corrected_interval
from studies import find_entry
from studies.drawing.caption_words import span_words
from studies.drawing.real_tables import mean_over_sets, printed_cell, spread_cell

ENTRIES = (
    *("real-width", "real-coverage", "real-data", "real-worst-set", "real-penalties", "calibration"),
    *("calibration-increase", "more-competitors", "outliers", "residual-kinds", "feature-lengthscales"),
    "open-settings",
)


def row(dataset="Diabetes", method="cqr-paper", repetition=0, **values):
    usual = {
        **{"outliers": "removed", "n": 171.0, "n_learning": 101, "fit_seconds": 2.0, "mean_width": 190.0},
        **{"coverage": 0.9, "interval_score": 250.0, "symmetry_penalty": 10.0, "constant_width": False},
        **{"worst_set_coverage_lower": 0.93, "worst_set_coverage_upper": 0.95, "asymmetric_mean_width": 200.0},
        **{"asymmetric_worst_set_coverage_lower": 0.91, "asymmetric_worst_set_coverage_upper": 0.97},
        **{"error_type": None, "error": None},
    }
    return {"dataset": dataset, "method": method, "repetition": repetition, **usual, **values}


def failed(dataset="Diabetes", method="cqr-paper", repetition=9, **axes):
    axes = {"dataset": dataset, "method": method, "outliers": "removed", "repetition": repetition, **axes}
    return {**axes, "error_type": "ValueError", "error": "no luck"}


def draw(name, rows):
    return find_entry(name).draw(rows)


def shown(table):
    """Lines of the printed table as lists of cells, the heading first."""
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def caption(figure):
    return " ".join(figure.get_supxlabel().split())


# ---------------------------------------------------------------- ours beside the paper's


def test_widths_are_compared_by_their_medians_in_the_papers_deviations():
    widths = (170.0, 190.0, 204.0)
    rows = [row(repetition=k, mean_width=width) for k, width in enumerate(widths)]
    rows += [row("Concrete", "gp", mean_width=21.32), failed()]
    table = draw("real-width", rows)
    concrete, diabetes = table
    assert math.isnan(concrete["mean_width_sd"])
    assert diabetes["mean_width_sd"] == pytest.approx(np.std(widths, ddof=1))
    assert diabetes["difference_in_sd"] == pytest.approx((190 - 189.07) / 12.59)
    assert (diabetes["n"], diabetes["n_failed"]) == (3, 1)
    assert shown(table)[1:] == [  # the paper's order
        ["Concrete", "hom. GP", "21.32", "21.32 ± 1.58", "+0.0", "1"],
        ["Diabetes", "CQR", "190 ± 17", "189.07 ± 12.59", "+0.1", "3"],
    ]
    chance = math.sqrt(math.pi / 2 * (1 / 10 + 1 / 3))
    assert f"about {chance:.2f} at n = 3: 2 of 2 lines are within twice that." in table.note
    assert table.note.endswith("Left out: 1 of 5 runs, which failed.")
    far = draw("real-width", [row(mean_width=300.0, repetition=k) for k in range(10)])
    assert "about 0.56 at n = 10: 0 of 1 lines" in far.note


def test_coverage_is_compared_by_its_mean():
    rows = [row(repetition=k, coverage=value) for k, value in enumerate((0.88, 0.90, 0.95))]
    table = draw("real-coverage", rows)
    assert table[0]["difference_in_sd"] == pytest.approx((0.91 - 0.880) / 0.044)
    assert shown(table)[1] == ["Diabetes", "CQR", "0.910 ± 0.036", "0.880 ± 0.044", "+0.7", "3"]
    assert f"about {math.sqrt(1 / 10 + 1 / 3):.2f} at n = 3" in table.note


def test_infinite_widths_methods_that_the_paper_lacks_and_groups_in_which_every_run_failed():
    table = draw("real-width", [row(mean_width=math.inf), row(method="split", mean_width=5.0)])
    assert [line[2:] for line in shown(table)[1:]] == [["inf", "189.07 ± 12.59", "+inf", "1"], ["5", "-", "-", "1"]]
    assert table.note == ""
    table = draw("real-width", [row(), failed(method="het-gp")])
    assert shown(table)[2] == ["Diabetes", "het. GP", "-", "193.04 ± 16.01", "-", "0"]


# ---------------------------------------------------------------- description


def description(dataset, **values):
    numbers = {"n_features": 10, "n_features_raw": 10, "n_rows": 442, "n_rows_raw": 442}
    sizes = {"n_learning": 101, "n_calibration": 170, "n_test": 171, "outlier_fraction": 0.0, "dropped": ""}
    return {"dataset": dataset, **numbers, **sizes, "error_type": None, **values}


def test_data_sets_are_described():
    changed = {"n_features": 1, "n_features_raw": 6, "n_rows_raw": 500, "outlier_fraction": 0.2, "dropped": "a, b"}
    rows = [description("Yacht", **changed), description("Diabetes"), {"dataset": "MPG", "error_type": "OSError"}]
    table = draw("real-data", rows)
    assert shown(table)[1:] == [
        ["Diabetes", "10", "442", "101", "170", "171", "-", "-"],
        ["Yacht", "1 (6)", "442 (500)", "101", "170", "171", "20 %", "a, b"],
    ]
    assert table.column("n_features_raw") == [10, 6]
    assert table.note.endswith("Not found: MPG.")


# ---------------------------------------------------------------- calibration


def test_calibrations_are_compared_run_by_run():
    rows = [
        row(repetition=0),
        row(repetition=1, asymmetric_mean_width=180.0),
        row(repetition=0, method="sos-paper", asymmetric_mean_width=190.0),  # equal is not wider
        row(repetition=1, method="sos-paper", asymmetric_mean_width=math.inf),
        *(row("MPG", repetition=k, worst_set_coverage_lower=0.85) for k in range(2)),
        failed(),
    ]
    table = draw("calibration", rows)
    everything, diabetes, _ = table
    assert [line["dataset"] for line in table] == ["All datasets", "Diabetes", "MPG"]
    assert [line["wider_percent"] for line in table] == [75, 50, 100]
    assert [line["n"] for line in table] == [6, 4, 2]
    assert [line["symmetric_distance"] for line in table] == pytest.approx([0.03, 0.01, 0.05])  # of 0.93 and 0.95
    assert diabetes["asymmetric_distance"] == pytest.approx(0.03)  # of 0.91 and 0.97
    paper = [everything[f"paper_{name}"] for name in ("wider_percent", "asymmetric_distance", "symmetric_distance")]
    assert paper == [69.17, 0.0322, 0.0315]
    assert shown(table)[2] == ["Diabetes", "50", "70", "0.0300", "0.021", "0.0100", "0.0235", "4"]
    assert "Asymmetric minus symmetric distance, paired: +0.0000 ± 0.0000." in table.note
    assert "1 of 7 runs, which failed" in table.note


def test_standard_errors_count_a_split_once():
    # two splits per set; both methods of a split agree, so that there are two independent numbers, not four
    values = {("A", 0): [1.0, 1.0], ("A", 1): [3.0, 3.0], ("B", 0): [5.0], ("B", 1): [5.0]}
    mean, error = mean_over_sets(values)
    assert mean == 3.5  # of 2 and 5
    assert error == pytest.approx(math.sqrt(2 / 2) / 2)  # variance 2 of two numbers, and none
    assert math.isnan(mean_over_sets({("A", 0): [1.0, 2.0]}).sd)
    assert math.isnan(mean_over_sets({}).value)
    # sets weigh alike, runs within a set too
    assert mean_over_sets({("A", 0): [1.0, 1.0], ("A", 1): [4.0], ("B", 0): [6.0]}).value == 4.0


def test_the_increase_of_the_width_leaves_infinite_widths_out():
    rows = [
        row(repetition=0, mean_width=100.0, asymmetric_mean_width=104.0),
        row(repetition=1, mean_width=100.0, asymmetric_mean_width=98.0),
        row(repetition=2, asymmetric_mean_width=math.inf),
        row("MPG", "sos-paper", mean_width=10.0, asymmetric_mean_width=11.0),
        row("MPG", "sos-paper", repetition=1, mean_width=math.inf, asymmetric_mean_width=math.inf),
        failed(),
    ]
    table = draw("calibration-increase", rows)
    assert table[0]["increase_percent"] == pytest.approx(5.5)
    assert table[0]["paper_increase_percent"] == 1.48
    assert shown(table)[2:] == [
        ["Diabetes", "CQR", "1.0 ± 3.0", "2.02", "2", "1"],  # of 4 and -2
        ["MPG", "pen. kSoS", "10", "5.68", "1", "1"],
    ]
    assert "2 runs with intervals of infinite width are left out." in table.note
    assert "1 of 6 runs, which failed" in table.note
    assert "No width is infinite." in draw("calibration-increase", [row()]).note


# ---------------------------------------------------------------- beyond the paper


def test_scores_are_relative_to_the_best_method_of_each_set():
    rows = [
        *(row(repetition=k, interval_score=score) for k, score in enumerate((190.0, 210.0))),
        row(method="sos", interval_score=203.0, coverage=0.92, fit_seconds=4.0),
        row("MPG", "sos", interval_score=10.0, coverage=0.88, fit_seconds=2.0),
        row("MPG", "local", interval_score=math.inf),
        failed("MPG", "gp"),
    ]
    table = draw("more-competitors", rows)
    assert shown(table) == [
        ["score / best", "CQR", "hom. GP", "sosbands", "local CP"],
        ["Diabetes", "1.000", "-", "1.015 (1)", "-"],
        ["MPG", "-", "-", "1.000", "inf"],
        ["best or within 2 %", "1 of 1", "-", "2 of 2", "0 of 1"],
        ["coverage", "0.900", "-", "0.900", "0.900"],
        ["seconds per fit", "2", "-", "3", "2"],
    ]
    assert "over n = 2 repetitions" in table.note
    assert "1 of 6 runs, which failed" in table.note


def test_outliers_removed_and_kept_stand_side_by_side():
    rows = [
        *(row("Yacht", "gp", k, mean_width=width) for k, width in enumerate((0.5, 0.6, 0.9))),
        row("Yacht", "gp", outliers="kept", mean_width=0.7, coverage=0.93),
        row("Concrete", "gp", mean_width=20.0),
        failed("Yacht", "gp", outliers="kept"),
    ]
    table = draw("outliers", rows)
    assert table[1]["kept_n_failed"] == 1
    assert math.isnan(table[0]["kept_width_median"])
    assert shown(table)[1:] == [
        ["Concrete", "hom. GP", "20", "0.900", "-", "-", "21.32 ± 1.58", "1 / 0"],
        ["Yacht", "hom. GP", "0.60 ± 0.21", "0.900", "0.7", "0.930", "0.614 ± 0.082", "3 / 1"],
    ]
    assert table.note.endswith("Left out: 1 of 6 runs, which failed.")


@pytest.mark.parametrize(
    ("name", "axis", "first", "second"),
    [
        ("residual-kinds", "residuals", "in-sample", "out-of-fold"),
        ("feature-lengthscales", "method", "sos-hard", "sos-per-feature"),
    ],
)
def test_two_kinds_are_compared_in_pairs(name, axis, first, second):
    def one(kind, repetition, score, **values):
        return row("Concrete", repetition=repetition, interval_score=score, **values) | {axis: kind}

    differences = [-2.0, -1.0, 1.0]
    rows = [one(first, k, 30.0 + k, mean_width=20.0 + k) for k in range(3)]
    rows += [one(second, k, 30.0 + k + d, fit_seconds=5.0) for k, d in enumerate(differences)]
    rows += [one(second, 7, 1000.0), {**failed("Concrete"), axis: first}]  # no partner
    rows.append({**row("MPG", interval_score=9.0), axis: second})  # no first kind at all
    table = draw(name, rows)
    plain, other, alone = table
    expected = corrected_interval(differences, 206 / 824)
    assert (other["difference"], other["difference_lower"], other["difference_upper"]) == expected
    assert expected.mean == pytest.approx(-2 / 3)
    assert (plain["n"], plain["n_failed"], other["n"], other["n_pairs"]) == (3, 1, 4, 3)
    assert (alone["dataset"], alone["n_pairs"]) == ("MPG", 0)
    lines = shown(table)
    assert lines[1][2:] == ["21.0 ± 1.0", "0.900", "31.0 ± 1.0", "0.940", "2", "-", "3"]
    assert lines[2][7] == f"{expected.mean:+.3g} [{expected.lower:+.3g}, {expected.upper:+.3g}]"
    assert lines[3][7] == "-"
    assert "1 of 9 runs, which failed" in table.note


def test_settings_that_the_paper_leaves_open_are_compared_split_by_split():
    def one(repetition, width, method="sos-paper", **values):
        return row("MPG", method, repetition, mean_width=width, interval_score=14.0, **values)

    rows = [one(k, width, symmetry_penalty=0.0, constant_width=k == 2) for k, width in enumerate((8.0, 10.0, 11.0))]
    rows += [one(k, width, width_penalty=1.0) for k, width in ((0, 8.8), (1, 10.5), (5, 99.0))]  # 5: no partner
    rows += [one(0, 8.0, "sos-paper-per-side"), failed("MPG", "sos-paper-per-side")]
    process = [row("MPG", "het-gp", mean_width=9.4), row("MPG", "het-gp", mean_width=4.7, start="residuals")]
    for each in process:
        del each["symmetry_penalty"], each["constant_width"]
    table = draw("open-settings", rows + process)
    base, side, wide, smoothed, residuals = table
    assert [(each["method"], each["setting"]) for each in table] == [
        ("sos-paper", "as in the other tables"),
        ("sos-paper", "a lengthscale for each side"),
        ("sos-paper", "width penalty 1"),
        ("het-gp", "as in the other tables"),
        ("het-gp", "search begun at the residuals"),
    ]
    assert (smoothed["difference_in_sd"], residuals["width_change"]) == pytest.approx((0, -50))
    assert math.isnan(smoothed["asymmetric_share"])
    assert base["asymmetric_share"] == pytest.approx(2 / 3)  # bands of constant width are not counted
    assert math.isnan(base["width_change"])
    assert (side["n"], side["n_failed"], side["width_change"]) == (1, 1, 0)
    expected = corrected_interval([10.0, 5.0], 146 / 246)
    assert (wide["asymmetric_share"], wide["n"]) == (0, 3)
    lines = shown(table)
    assert lines[1][3:] == ["10.0 ± 1.5", "9.35 ± 1.13", "+0.6", "-", "14.00 ± 0.00", "67", "3"]
    assert lines[2][6] == "0"
    assert lines[5][:3] == ["MPG", "het. GP", "search begun at the residuals"]
    assert lines[5][5:] == ["-3.6", "-50", "250", "-", "1"]
    assert lines[3][6] == f"+7.5 [{expected.lower:+.3g}, {expected.upper:+.3g}]"
    assert "1 of 10 runs, which failed" in table.note


# ---------------------------------------------------------------- figures


def test_worst_sets_are_means_and_deviations_of_both_ends_together():
    pytest.importorskip("matplotlib")
    values = {"worst_set_coverage_lower": 0.90, "worst_set_coverage_upper": 0.96}
    rows = [row("Yacht", n=100.0, **values), row("Yacht", repetition=1, n=100.0), row("Concrete", "gp", **values)]
    figure = draw("real-worst-set", [*rows, failed()])
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Concrete", "Yacht"]
    containers = {container.get_label(): container for container in ax.containers}
    assert list(containers) == ["CQR", "hom. GP"]
    marks, _, (bars,) = containers["CQR"]
    pooled = [0.90, 0.93, 0.96, 0.95]
    assert marks.get_xdata() == pytest.approx([np.mean(pooled)])
    assert marks.get_ydata() == pytest.approx([1], abs=0.3)  # on the line of Yacht
    ends = bars.get_segments()[0][:, 0]
    assert (ends[1] - ends[0]) / 2 == pytest.approx(np.std(pooled, ddof=1))
    assert any(list(line.get_xdata()) == [0.95, 0.95] for line in ax.lines)
    assert "n = 100 to 171" in caption(figure)
    assert "over 1 to 2 repetitions" in caption(figure)
    assert "The sets of Yacht hold all test rows." in caption(figure)
    assert caption(figure).endswith("Left out: 1 of 4 runs, which failed.")


def test_penalties_are_counted_for_each_set():
    pytest.importorskip("matplotlib")
    penalties = [0.0, 0.0, 1000.0, math.inf, math.inf]
    rows = [row(method="sos-paper", repetition=k, symmetry_penalty=p) for k, p in enumerate(penalties)]
    rows[-1]["constant_width"] = True
    rows += [row("MPG", "sos-paper", symmetry_penalty=10.0), failed(method="sos-paper")]
    figure = draw("real-penalties", rows)
    diabetes, mpg = figure.axes
    assert (diabetes.get_title(), mpg.get_title()) == ("Diabetes", "MPG")
    labels = [label.get_text() for label in diabetes.get_xticklabels()]
    assert labels == ["0", "10", "$10^{2}$", "$10^{3}$", "∞", "const."]
    assert [bar.get_height() for bar in diabetes.patches] == [2, 0, 0, 1, 1, 1]
    assert [bar.get_height() for bar in mpg.patches] == [0, 1, 0, 0, 0, 0]
    assert "n = 101 learning rows, 1 to 5 repetitions" in caption(figure)
    assert caption(figure).endswith("Left out: 1 of 7 runs, which failed.")


def test_panels_stand_in_rows_of_four():
    pytest.importorskip("matplotlib")
    names = ["Concrete", "Bike", "Diabetes", "Housing", "Housing log", "MPG", "Boston", "Energy", "Miami", "Sulfur"]
    figure = draw("real-penalties", [row(name, "sos-paper") for name in names])
    seen = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in seen] == names
    lowest = [ax.get_title() for ax in seen if ax.get_xlabel() == "symmetry penalty"]
    assert lowest == names[-4:]


# ---------------------------------------------------------------- nothing at all, and cells


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("rows", [[], [failed(residuals="in-sample")]], ids=["no rows", "only a failed one"])
def test_entries_draw_also_when_there_is_nothing(name, rows):
    pytest.importorskip("matplotlib")
    drawn = draw(name, rows)
    text = drawn.note if hasattr(drawn, "note") else caption(drawn)
    assert ("1 of 1 runs, which failed" in text or "Not found: Diabetes." in text) == bool(rows)


def test_cells():
    cells = {
        **{(189.07, 12.59): "189 ± 13", (315012.0, 11702.0): "315000 ± 12000", (0.0543, 0.0043): "0.0543 ± 0.0043"},
        **{(1.14283, 0.0000123): "1.143 ± 0.000", (2.0, 0.0): "2.000 ± 0.000", (0.0, 0.5): "0.00 ± 0.50"},
        **{(3.14159, math.nan): "3.142", (math.inf, math.nan): "inf", (math.nan, math.nan): "-"},
    }
    assert [spread_cell(*pair) for pair in cells] == list(cells.values())
    assert spread_cell(0.9, 0.01234, decimals=3) == "0.900 ± 0.012"
    assert printed_cell(None) == "-"
    assert [span_words([]), span_words([3]), span_words([10, 3.0, 10])] == ["no", "3", "3 to 10"]
