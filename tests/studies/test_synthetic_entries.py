"""Figures and tables of the synthetic experiments: drawn from small made-up rows whose numbers are known."""

import math

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from matplotlib.colors import to_rgb

from studies import find_entry
from studies.drawing.caption_words import cases_words, count_words, penalty_words, span_words
from studies.drawing.figures import COLOURS, add_caption, new_figure
from studies.drawing.map_panels import common_levels, largest
from studies.drawing.panels import GREY, legend_above, penalty_places
from studies.entries.penalty_kinds import KIND_COLOURS

OK = {"error_type": None}
INF = math.inf


def draw(name, rows):
    return find_entry(name).draw(rows)


def caption(figure):
    return figure.get_supxlabel().replace("\n", " ")


def panels(figure):
    """The axes that are no colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def titles(figure):
    return [ax.get_title() or ax.get_title(loc="left") for ax in panels(figure)]


def curve(ax, label):
    """The only line of that label."""
    (line,) = [line for line in ax.get_lines() if line.get_label() == label]
    return np.column_stack(line.get_data())


def error_line(ax, label):
    """Points of an error bar plot, and the ends of its bars."""
    (found,) = [each for each in ax.containers if each.get_label() == label]
    line, _, (bars,) = found.lines
    return np.array(line.get_data(), dtype=float).T, np.array([segment[:, 1] for segment in bars.get_segments()])


def medians(ax):
    """Medians of horizontal boxes by the name of the box."""
    names = ax.yaxis.get_major_formatter().format_ticks(ax.get_yticks())
    lines = [line for line in ax.get_lines() if line.get_linewidth() == 1.4]
    found = {names[round(float(np.mean(line.get_ydata())))]: float(line.get_xdata()[0]) for line in lines}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def failed(row, *axes):
    """What is left of a row of a task that fails: its axes and the error."""
    return {name: row[name] for name in axes} | {"error_type": "ValueError", "error": "no"}


def curves_row(**more):
    x = [0.0, 0.5, 1.0]
    curves = {"x": x, "center": [0.0, 0.0, 0.0], "lower": [-1.0, -1.0, -1.0], "upper": [3.0, 3.0, 3.0]}
    points = {"X": [0.1, 0.2, 0.9], "y": [0.0, 2.0, -0.5]}
    oracle = {"oracle_lower": [-2.0, -2.0, -2.0], "oracle_upper": [2.0, 2.5, 2.0]}
    return {**curves, **points, **oracle, **OK, **more}


def bands_rows():
    return [
        curves_row(case=1, n=77, symmetry_penalty=0.0, mean_width=4.125, acg_combined=0.0404),
        curves_row(case=1, n=77, symmetry_penalty=INF, mean_width=2.0, acg_combined=0.05, lower=[-3.0, -3.0, -3.0]),
    ]


def map_row(case=5, width_penalty=10.0, number=0, top=0.9):
    hsic = [[0.1, 0.2, 0.3, 0.2], [0.4, 0.5, 0.2, top]]
    dcor = [[0.6, 0.2, 0.3, 0.2], [0.4, 0.5, 0.2, 0.1]]
    grid = {"factors": [0.1, 10.0], "penalties": [0.0, 0.1, 1000.0, INF], "hsic": hsic, "dcor": dcor, "uncertified": 1}
    return {"case": case, "n": 77, "width_penalty": width_penalty, "draw": number, **grid, **OK}


def synthetic_rows():
    return [
        {"case": case, "n": 70 + case, "method": method, "repetition": k, **OK}
        | {"mean_width": case + shift + k, "rmse": 0.1 * (case + shift + k), "oracle_width": case - 0.5}
        # the pool of both has the median of the numbers without 0.001
        | {"acg_lower": 0.01 * (case + shift + k) - 0.001, "acg_upper": 0.01 * (case + shift + k) + 0.001}
        for method, shift in (("gp", 0.25), ("sos", 0.0))
        for case in (1, 4)
        for k in range(3)
    ]


def histogram_rows():
    picks = {"sos-paper": [0.0, 10.0, INF, INF], "sos-hard": [INF, INF, INF, INF]}
    return [
        {"case": 2, "n": n, "point_model": "gp", "method": method, "repetition": k, **OK}
        | {"symmetry_penalty": penalty, "constant_width": method == "sos-hard" and k < 3}
        for n in (77, 177)
        for method, penalties in picks.items()
        for k, penalty in enumerate(penalties)
    ]


def time_rows():
    seconds = {"sdp": (30.0, 50.0), "recipe": (0.5, 1.5), "sosbands": (1.0, 3.0)}
    status = {"sdp": "optimal", "recipe": "CONVERGENCE", "sosbands": "converged"}
    return [
        {"solver": s, "n": n, "repetition": k, "solve_seconds": n / 20 * t, "status": status[s], **OK}
        for s, times in seconds.items()
        for n in (20, 40)
        for k, t in enumerate(times)
    ]


def warm_rows():
    work = {"cold_decompositions": [10, 10, 20], "warm_decompositions": [10, 6, 4]}
    counts = [{"cold_iterations": [4 + k, 4, 8], "warm_iterations": [4 + k, 1, 0]} for k in (0, 2)]
    return [
        {"solver": s, "n": 77, "repetition": k, "penalties": [0.01, 1.0, 100.0], **counts[k], **work, **OK}
        for s in ("recipe", "sosbands")
        for k in range(2)
    ]


def seeds_rows():
    gaps = {"mean_width": 1.234, "acg": 0.0111, "acg_lower": 0.0222, "acg_upper": 0.0333}
    return [
        curves_row(case=case, n=77, method=method, draw=k, **gaps)
        for case in (4, 5)
        for k in range(2)
        for method in ("het-gp", "sos-paper")
    ]


def norm_rows():
    rows = [
        {"case": 1, "n": 77, "norm_penalties": penalty, "repetition": k, **OK}
        | {"mean_width": factor * (2.0 + k), "acg_combined": 0.04 / factor}
        for penalty, factor in ((1.0, 1.0), (0.1, 2.0), (10.0, 2.0))
        for k in range(3)
    ]
    return rows[:-1]


def kinds_rows():
    synthetic = [
        {"case": 1, "n": 77, "kind": kind, "repetition": k, "mean_width": w + k, **OK}
        | {"acg_lower": 0.1 * w + k - 0.01, "acg_upper": 0.1 * w + k + 0.01}
        for kind, w in (("training", 2.0), ("operator", 5.0))
        for k in range(3)
    ]
    real = [
        {"dataset": "Diabetes", "n": 170.0, "n_learning": 99, "kind": kind, "repetition": k, "mean_width": w + k, **OK}
        | {"worst_set_coverage_lower": low, "worst_set_coverage_upper": low + 0.1 + 0.01 * k}
        for kind, w, low in (("training", 200.0, 0.8), ("operator", 300.0, 0.7))
        for k in range(2)
    ]
    return synthetic + real


def large_rows():
    return [curves_row(case=case, n=777, gap=1.5e-6, solve_seconds=0.5 * case) for case in (1, 2, 3, 4)]


def stop_rows():
    certified = {
        **{"penalties": [0.0, INF], "value": [10.0, 20.0], "width": [2.0, 4.0], "violation": [0.0, 1e-12]},
        **{"calibrated_width": [1.0, 1.0], "lengthscale_factor": 1.0, "symmetry_penalty": INF, "criterion": 0.4},
    }
    loose = certified | {"value": [4.0, 16.0], "width": [1.0, 3.0], "violation": [0.5, 1.5]}
    loose |= {"calibrated_width": [1.25, 0.75], "criterion": 0.6}
    rows = [
        {"case": 5, "n": 77, "stop": stop, "repetition": k, **values, **OK}
        for k in range(2)
        for stop, values in (("certified", certified), ("loose", loose))
    ]
    rows[3] |= {"symmetry_penalty": 0.0, "violation": [2.5, 0.1], "value": [6.0, 20.0], "criterion": 0.4}
    return rows


def criteria_rows():
    numbers = {
        ("hsic", "none"): {1: (3.0, 0.02, 0.4, 0.0), 3: (6.0, 0.04, 1.0, 10.0)},
        ("dcor", "none"): {1: (2.0, 0.01, 0.2, INF), 3: (9.0, 0.03, 2.0, INF)},
    }
    return [
        {"criterion": criterion, "symmetry_test": test, "case": case, "n": 77, "repetition": k, "mean_width": width}
        | {"oracle_width": 2.0 if case == 1 else 3.0, "acg_combined": acg, "rmse": rmse * (0.5 + k)}  # the mean is rmse
        | {"symmetry_penalty": penalty if k == 0 else INF, **OK}
        for (criterion, test), cases in numbers.items()
        for case, (width, acg, rmse, penalty) in cases.items()
        for k in range(2)
    ]


# rows of each entry, and the axes of its tasks
FIGURES = {
    "penalty-bands": (bands_rows, ("case", "n", "symmetry_penalty")),
    "criterion-maps": (lambda: [map_row(5), map_row(1), map_row(2)], ("case", "n", "width_penalty", "draw")),
    "synthetic-main": (synthetic_rows, ("case", "n", "method", "repetition")),
    "synthetic-cases": (synthetic_rows, ("case", "n", "method", "repetition")),
    "penalty-histograms": (histogram_rows, ("case", "n", "point_model", "method", "repetition")),
    "sdp-time": (time_rows, ("solver", "n", "repetition")),
    "width-penalty-maps": (
        lambda: [map_row(2, b, k, 0.1 * b) for k in range(2) for b in (1.0, 10.0)],
        ("case", "n", "width_penalty", "draw"),
    ),
    "warm-start": (warm_rows, ("solver", "n", "repetition")),
    "two-seeds": (seeds_rows, ("case", "n", "method", "draw")),
    "penalty-kinds": (kinds_rows, ("kind", "repetition")),
    "large-solutions": (large_rows, ("case", "n")),
}
TABLES = {
    "stopping-rule": (stop_rows, ("case", "n", "stop", "repetition")),
    "criteria": (criteria_rows, ("criterion", "symmetry_test", "case", "n", "repetition")),
    "norm-penalties": (norm_rows, ("case", "norm_penalties", "repetition")),
}


def failed_row(name, rows, which):
    axes = {**FIGURES, **TABLES}[name][1]
    source = ("case", "dataset") if name == "penalty-kinds" else ()
    return failed(rows[which], *axes, *(each for each in source if each in rows[which]))


def overlap(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1


def assert_readable(figure):
    """All text lies inside of the figure, and no two texts of the figure lie on one another."""
    figure.draw_without_rendering()
    whole = figure.bbox
    boxes = [legend.get_window_extent() for legend in figure.legends]
    boxes += [figure._supxlabel.get_window_extent()]
    for ax in (ax for ax in figure.axes if ax.axison):
        marks = [ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            marks += [label for tick in ticks for label in (tick.label1, tick.label2)]
        boxes += [text.get_window_extent() for text in marks if text.get_text() and text.get_visible()]
    for position, box in enumerate(boxes):
        assert min(box.x0, box.y0, whole.x1 - box.x1, whole.y1 - box.y1) >= -1
        assert not any(overlap(box, other) for other in boxes[:position])


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_readable_and_say_what_they_show(name):
    figure = draw(name, FIGURES[name][0]())
    assert figure.get_figwidth() == 7
    assert_readable(figure)
    assert "failed" not in caption(figure)
    assert all(ax.get_xlabel() for ax in panels(figure)[-1:])


def test_the_check_of_readability_rejects_bad_figures():
    cut, covered = draw("sdp-time", time_rows()), draw("sdp-time", time_rows())
    cut.axes[0].set_title("a very long title " * 12)
    with pytest.raises(AssertionError):
        assert_readable(cut)
    covered.axes[0].set_xticks([20, 20.5], ["one mark", "another"])
    with pytest.raises(AssertionError):
        assert_readable(covered)


@pytest.mark.parametrize("name", FIGURES)
def test_failed_runs_are_left_out_and_counted(name):
    rows = FIGURES[name][0]()
    figure = draw(name, [failed_row(name, rows, 0), *rows[1:]])
    assert f"Left out: 1 of {len(rows)} runs, which failed." in caption(figure)
    nothing = draw(name, [failed_row(name, rows, k) for k in range(len(rows))])
    assert caption(nothing) == f"There are no rows to show. Left out: {len(rows)} of {len(rows)} runs, which failed."
    assert "There are no rows to show." in caption(draw(name, []))
    assert "There are no rows to show." not in caption(draw(name, rows[:1]))


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_no_rows_and_of_failures(name):
    rows = TABLES[name][0]()
    assert repr(draw(name, [])) == "(no rows)"
    lost = [failed_row(name, rows, k) for k in range(len(rows))]
    table = draw(name, lost)
    assert sum(table.column("failed")) == len(rows)
    assert sum(table.column("runs")) == 0
    assert " -" in repr(table)
    table = draw(name, [lost[0], *rows[1:]])
    assert (sum(table.column("failed")), sum(table.column("runs"))) == (1, len(rows) - 1)


def test_penalty_bands_show_curves_and_asymmetry():
    figure = draw("penalty-bands", bands_rows())
    assert [title.split("\n")[0] for title in titles(figure)] == ["symmetry penalty 0", "symmetry penalty ∞"]
    assert titles(figure)[0].split("\n")[1] == r"width 4.12, $\mathrm{ACG}^c$ 0.040"
    left, right = panels(figure)
    np.testing.assert_allclose(curve(left, "90 % interval"), [[0, -1], [0.5, -1], [1, -1]])
    np.testing.assert_allclose(curve(left, "oracle")[:, 1], -2)
    for ax, ends in ((left, (1, 3)), (right, (3, 3))):
        (shade,) = [each for each in ax.collections if each.get_label() == "asymmetry"]
        box = shade.get_datalim(ax.transData)
        np.testing.assert_allclose((box.y0, box.y1), ends)
    assert "case 1" in caption(figure)
    assert "n = 77" in caption(figure)
    # on the longer side
    (ax,) = panels(draw("penalty-bands", [{**bands_rows()[0], "lower": [-5.0, -5.0, -5.0]}]))
    above, below = [each.get_datalim(ax.transData) for each in ax.collections[2:4]]
    np.testing.assert_allclose((above.y0, above.y1, below.y0, below.y1), (3, 3, -5, -3))


def test_maps_mark_the_largest_value():
    figure = draw("criterion-maps", [map_row(5), map_row(1)])
    hsic, _, dcor, _ = panels(figure)
    places = penalty_places([0.0, 0.1, 1000.0, INF])
    np.testing.assert_allclose(curve(hsic, "largest value"), [[places[INF], 1]])
    np.testing.assert_allclose(curve(dcor, "largest value"), [[places[0.0], -1]])
    assert [text.get_text() for text in hsic.get_xticklabels()] == ["0", "$10^{0}$", "$10^{1}$", "$10^{2}$", "∞"]
    assert titles(figure) == [
        "case 5, exponential noise\nmax 0.9 at (∞, 10)",
        "case 1, normal noise\nmax 0.9 at (∞, 10)",
        "max 0.6 at (0, 0.1)",
        "max 0.6 at (0, 0.1)",
    ]
    bars = [ax.get_ylabel() for ax in figure.axes if ax.get_label() == "<colorbar>"]
    assert bars == ["HSIC", "HSIC", "distance correlation", "distance correlation"]
    assert "n = 77" in caption(figure)
    assert "Solves without a certificate: 2." in caption(figure)


def test_maps_with_missing_and_with_equal_values():
    row = map_row()
    row["hsic"] = [[math.nan] * 4] * 2
    row["dcor"] = [[0.5] * 4] * 2
    figure = draw("criterion-maps", [row])
    assert_readable(figure)
    assert math.isnan(largest(row, "hsic").value)
    assert largest(row, "dcor")[:] == (0.5, 0.1, 0.0)
    assert np.all(np.diff(common_levels([row], "dcor")) > 0)


def test_a_legend_takes_as_many_columns_as_fit():
    figure, axes = new_figure(1, 1, (7.0, 3.0))
    for k in range(5):
        axes[0, 0].plot([0, 1], label=f"a label of some thirty letters {k}")
    legend_above(figure, [axes[0, 0], axes[0, 0]])
    add_caption(figure, "Five lines.")
    assert len(figure.legends[0].get_texts()) == 5
    assert_readable(figure)


def test_width_penalty_maps_share_colours_within_a_draw():
    rows = FIGURES["width-penalty-maps"][0]()
    figure = draw("width-penalty-maps", rows)
    assert titles(figure)[:2] == ["b = 1, max 0.5\nat (0.1, 10)", "b = 10, max 1\nat (∞, 10)"]
    for ax in panels(figure):
        assert {tuple(each.levels) for each in ax.collections} == {tuple(common_levels(rows[:2], "hsic"))}
    assert "2 draws of n = 77 points of case 2" in caption(figure)
    titles_left = titles(draw("width-penalty-maps", rows[:3]))
    assert titles_left == [*titles(figure)[:3], "b = 10"]


@pytest.mark.parametrize(("name", "metrics"), [("synthetic-main", 2), ("synthetic-cases", 3)])
def test_boxes_of_each_case_and_metric(name, metrics):
    figure = draw(name, synthetic_rows())
    axes = np.reshape(panels(figure), (2, metrics))
    for line, case in zip(axes, (1, 4), strict=True):
        for ax, unit in zip(line, (1.0, 0.01, 0.1), strict=False):
            assert medians(ax) == pytest.approx({"hom. GP": unit * (case + 1.25), "sosbands": unit * (case + 1)})
        np.testing.assert_allclose(curve(line[0], "mean width of the oracle")[:, 0], case - 0.5)
    assert titles(figure)[0] == "case 1, normal noise, n = 71"
    assert [ax.get_xlabel() for ax in axes[0]] == [""] * metrics
    assert axes[1, 0].get_xlabel() == "mean width (units of y)"
    faces = [box.get_facecolor()[:3] for box in axes[0, 0].patches]
    assert faces == [to_rgb(COLOURS["gp"]), to_rgb(COLOURS["sos"])]
    assert "3 repetitions of each case and method" in caption(figure)


def test_boxes_without_a_method_and_with_infinite_values():
    rows = [row for row in synthetic_rows() if (row["case"], row["method"]) != (4, "gp")]
    rows[0]["mean_width"] = INF
    figure = draw("synthetic-main", rows)
    width, _, other, _ = panels(figure)
    assert medians(width) == pytest.approx({"hom. GP": 2.75, "sosbands": 2.0})
    assert medians(other) == pytest.approx({"sosbands": 5.0})
    assert "Values that are not finite, left out: 1." in caption(figure)


def test_histograms_count_constant_widths_apart():
    rows = histogram_rows()
    figure = draw("penalty-histograms", rows)
    left, right = panels(figure)
    assert [text.get_text() for text in left.get_xticklabels()] == ["0", "10", "100", "1000", "∞", "constant"]
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in left.containers}
    assert list(heights.values()) == [[0.25, 0.25, 0, 0, 0.5, 0], [0, 0, 0, 0, 0.25, 0.75]]
    assert titles(figure)[1] == "case 2, n = 177, around the Gaussian process"
    assert "4 repetitions" in caption(figure)
    part = draw("penalty-histograms", rows[:4])
    assert len(panels(part)) == 1
    assert len(panels(part)[0].containers) == 1


def test_times_with_mean_and_sd():
    (ax,) = panels(figure := draw("sdp-time", time_rows()))
    points, ends = error_line(ax, "SDP (SCS)")
    np.testing.assert_allclose(points, [[20, 40], [40, 80]])
    sd = np.std([30, 50], ddof=1)
    np.testing.assert_allclose(ends, [[40 - sd, 40 + sd], [80 - 2 * sd, 80 + 2 * sd]])
    np.testing.assert_allclose(error_line(ax, "sosbands (certified)")[0], [[20, 2], [40, 4]])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert "2 repetitions" in caption(figure)
    assert "At n = 40 the SDP takes 20 times as long as sosbands." in caption(figure)
    assert "At n = 40 the recipe takes 0.5 times as long as sosbands." in caption(figure)
    assert "before their tolerance" not in caption(figure)
    # bars stay above zero, and bad ends are counted
    rows = time_rows()[:2]
    rows[0] |= {"solve_seconds": 0.001, "status": "optimal_inaccurate"}
    (ax,) = panels(figure := draw("sdp-time", rows))
    (ends,) = error_line(ax, "SDP (SCS)")[1]
    assert 0 < ends[0] < 25 < ends[1]
    assert "1 of 2 solves of the SDP stopped before their tolerance." in caption(figure)
    assert "times as long" not in caption(figure)


def test_warm_starts_and_what_they_save():
    figure = draw("warm-start", warm_rows())
    recipe, ours = panels(figure)
    points, ends = error_line(recipe, "cold start")
    np.testing.assert_allclose(points, [[-2, 5], [0, 4], [2, 8]])
    np.testing.assert_allclose(ends[0], [5 - math.sqrt(2), 5 + math.sqrt(2)])
    np.testing.assert_allclose(error_line(ours, "warm start, sosbands (certified)")[0][:, 1], [5, 1, 0])
    # iterations: 6 + 8 of 16 + 18; decompositions: 20 of 40
    assert titles(figure)[0] == "paper's dual recipe\n65 % fewer iterations, 50 % fewer decompositions"
    assert recipe.containers[0].lines[0].get_color() == GREY
    assert "2 repetitions of case 1, n = 77" in caption(figure)


def test_two_seeds_print_the_metrics():
    figure = draw("two-seeds", seeds_rows())
    assert len(panels(figure)) == 8
    first = titles(figure)[0]
    assert first.startswith("case 4, draw 1, n = 77: het. GP\nMW 1.23, ACG 0.011, ")
    assert r"\mathrm{low}$ 0.022" in first
    assert r"\mathrm{up}$ 0.033" in first
    np.testing.assert_allclose(curve(panels(figure)[0], "90 % interval, het. GP")[:, 1], -1)
    assert "4 draws of cases 4 and 5 with n = 77" in caption(figure)
    part = draw("two-seeds", seeds_rows()[:3])
    assert titles(part)[3] == "case 4, draw 2, n = 77: pen. kSoS"
    assert not panels(part)[3].get_lines()


def test_penalty_kinds_pool_both_sides():
    figure = draw("penalty-kinds", kinds_rows())
    width, gap, real_width, worst = panels(figure)
    assert medians(width) == pytest.approx({"training-set penalty": 3.0, "operator penalty": 6.0})
    assert medians(gap) == pytest.approx({"training-set penalty": 1.2, "operator penalty": 1.5})
    assert medians(real_width) == pytest.approx({"training-set penalty": 200.5, "operator penalty": 300.5})
    assert medians(worst) == pytest.approx({"training-set penalty": 0.85, "operator penalty": 0.75})
    np.testing.assert_allclose(curve(worst, "nominal, one side")[:, 0], 0.95)
    assert titles(figure)[::2] == ["case 1, tuned, n = 77", "Diabetes, tuned, n = 99"]
    assert "3 repetitions of case 1, tuned and 2 repetitions of Diabetes, tuned" in caption(figure)
    assert KIND_COLOURS["training"] == COLOURS["sos-paper"]
    # a fixed penalty has panels of its own
    fixed = [{**row, "fixed_penalty": 100.0, "mean_width": 10 * row["mean_width"]} for row in kinds_rows()]
    figure = draw("penalty-kinds", kinds_rows() + fixed)
    assert titles(figure)[4] == "case 1, penalty 100, n = 77"
    assert medians(panels(figure)[4]) == pytest.approx({"training-set penalty": 30.0, "operator penalty": 60.0})


def test_norm_penalties_are_compared_on_the_same_draws():
    table = draw("norm-penalties", norm_rows())
    assert [(row["case"], row["norm_penalties"]) for row in table] == [(1, 0.1), (1, 1.0), (1, 10.0)]
    tenth, _, ten = table
    # the last draw of the last line is missing: it is compared on the other two
    assert [row["mean_width_mean"] for row in table] == pytest.approx([6.0, 3.0, 5.0])
    assert tenth["mean_width_change"] == pytest.approx(1.0)
    assert ten["mean_width_change"] == pytest.approx((5.0 - 2.5) / 3.0)
    assert tenth["acg_combined_change"] == pytest.approx(-0.5)
    assert table.column("runs") == [3, 3, 2]
    lines = table.to_markdown().splitlines()
    assert "| - |" in lines[3]
    assert "+100" in lines[2]


def test_large_solutions_have_their_certificate_in_the_title():
    figure = draw("large-solutions", large_rows())
    assert len(panels(figure)) == 4
    assert titles(figure)[2] == "case 3, log-normal noise\ngap 1.5e-06, 1.50 s"
    np.testing.assert_allclose(curve(panels(figure)[0], "bands before calibration")[:, 1], -1)
    assert "n = 777" in caption(figure)


def test_stopping_rules_relative_to_the_certified_one():
    table = draw("stopping-rule", stop_rows())
    certified, loose = table
    assert (certified["violation"], certified["width"], certified["criterion"]) == (1e-12, 1.0, 1.0)
    assert (certified["other_symmetry_penalty"], certified["other_lengthscale_factor"]) == (0.0, 0.0)
    assert loose["violation"] == 2.0  # the median of 1.5 and 2.5
    assert (loose["width"], loose["width_lowest"], loose["width_highest"]) == (0.625, 0.5, 0.75)
    assert (loose["calibrated_width"], loose["calibrated_width_lowest"]) == (1.0, 0.75)
    assert (loose["value"], loose["value_at_0"], loose["value_at_inf"]) == pytest.approx((0.7, 0.5, 0.9))
    assert loose["criterion"] == pytest.approx(1.25)
    assert (loose["other_symmetry_penalty"], loose["other_lengthscale_factor"]) == (50.0, 0.0)
    line = repr(table).split("\n\n")[0].splitlines()[-1]
    assert "0.625 (0.5 to 0.75)" in line
    assert line.split()[-2:] == ["50", "0"]
    # without the certified solution
    table = draw("stopping-rule", [row for row in stop_rows() if row["stop"] == "loose"])
    (row,) = table
    assert row["violation"] == 2.0
    assert (row["width"], row["value_at_0"], row["other_symmetry_penalty"]) == (None, None, None)
    assert repr(table).split("\n\n")[0].splitlines()[-1].split()[-1] == "-"


def test_criteria_by_means_over_cases():
    table = draw("criteria", criteria_rows())
    hsic, dcor = table
    assert (hsic["cases"], hsic["runs"]) == (2, 4)
    assert hsic["width"] == pytest.approx((1.5 + 2) / 2)
    assert hsic["acg_combined"] == pytest.approx(0.03)
    assert hsic["rmse"] == pytest.approx((2 + 1) / 2)
    assert dcor["rmse"] == pytest.approx((1 + 2) / 2)
    assert (hsic["asymmetric_if_symmetric"], hsic["asymmetric_if_skewed"]) == (50.0, 50.0)
    assert (dcor["asymmetric_if_symmetric"], dcor["asymmetric_if_skewed"]) == (0.0, 0.0)
    only = draw("criteria", [row for row in criteria_rows() if row["case"] == 3])
    assert (only[1]["rmse"], only[0]["asymmetric_if_symmetric"]) == (pytest.approx(2.0), None)


def test_words_and_places():
    assert penalty_places([INF, 10.0, 0.0, 1000.0]) == {0.0: 1 - 1.1, 10.0: 1.0, 1000.0: 3.0, INF: 3 + 1.1}
    assert penalty_places([0.0, INF]) == {0.0: -1.1, INF: 1.1}
    rows = [{"case": 1, **OK}, {"case": 4, **OK}, {"case": 4, **OK}, {"case": 4, "error_type": "E"}]
    assert count_words(rows, "case") == "1 to 2 repetitions"
    assert count_words(rows[:1], "case") == "1 repetition"
    assert count_words([], "case") == "no repetitions"
    assert cases_words(rows) == "cases 1 and 4"
    assert span_words([100, 500, 200]) == "100 to 500"
    shown = [penalty_words(penalty) for penalty in (0.0, 0.1, 3.1623, 1000.0, 1e4, 17783.0, 1e-4, INF)]
    assert shown == ["0", "0.1", "3.16", "1000", "$10^{4}$", r"$1.8\cdot 10^{4}$", "$10^{-4}$", "∞"]
