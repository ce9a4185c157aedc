"""Pictures of the search: places of penalties, the interpolated map, what has no place on it."""

import numpy as np
import pytest

from pictures import _close_figures as _close_figures
from pictures import labelled, labels, offsets, penalty_report, render
from studies.drawing.tuning_maps import plot_replicates, plot_tuning_map

PENALTIES = (0.0, 1.0, 10.0, 100.0, 1000.0, np.inf)


def candidate(ell, penalty, value, uncertified=0):
    return {"lengthscale": ell, "symmetry_penalty": penalty, "criterion": value, "uncertified": uncertified}


def ticks(ax):
    return dict(zip([text.get_text() for text in ax.get_xticklabels()], ax.get_xticks(), strict=True))


def filled(ax):
    """The filled contours."""
    (found,) = (each for each in ax.collections if getattr(each, "filled", False))
    return found


def test_penalties_are_decades_with_zero_and_infinity_at_the_ends():
    rows = [candidate(ell, penalty, ell) for penalty in PENALTIES for ell in (0.1, 1.0)]
    ax = plot_tuning_map(penalty_report(evaluations=rows, lengthscale=1.0, symmetry_penalty=100.0))
    assert ticks(ax) == {"0": 0, "1": 1, "10": 2, "100": 3, "1000": 4, "∞": 5}
    np.testing.assert_allclose(offsets(ax, "chosen"), [[3, 1.0]])
    assert ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("symmetry penalty", "lengthscale")
    expected = {(place, ell) for place in range(6) for ell in (0.1, 1.0)}
    assert {tuple(point) for point in offsets(ax, "candidates").tolist()} == expected


def test_penalties_between_decades_have_their_place_but_no_tick():
    rows = [candidate(ell, penalty, ell) for penalty in (0.0, 1.0, 10.0, 31.6227766, 100.0) for ell in (0.1, 1.0)]
    ax = plot_tuning_map(penalty_report(evaluations=rows, lengthscale=1.0, symmetry_penalty=31.6227766))
    assert ticks(ax) == {"0": 0, "1": 1, "10": 2, "100": 3}
    np.testing.assert_allclose(offsets(ax, "chosen"), [[2.5, 1.0]])


def test_the_map_is_linear_between_candidates():
    report = penalty_report()  # criterion log10(lengthscale) + place, which linear interpolation gives back
    refined = [candidate(3.0, 10.0, np.log10(3.0) + 1), candidate(0.2, 0.0, np.log10(0.2))]
    report.evaluations = (*report.evaluations, *refined)
    ax = plot_tuning_map(report)
    contours = filled(ax)
    for level, paths in zip(contours.levels, contours.get_paths(), strict=False):
        points = paths.vertices[np.isfinite(paths.vertices).all(axis=1)]
        heights = points[:, 0] + np.log10(points[:, 1])
        step = contours.levels[1] - contours.levels[0]
        assert np.all((heights >= level - 0.02) & (heights <= level + step + 0.02))
    assert contours.levels[0] <= -1
    assert contours.levels[-1] >= 3
    colorbar = ax.figure.axes[1]
    assert colorbar.get_ylabel() == "HSIC, larger is better"


def test_the_best_is_ringed_where_another_was_chosen():
    ax = plot_tuning_map(penalty_report(lengthscale=1.0, symmetry_penalty=np.inf))
    np.testing.assert_allclose(offsets(ax, "best by HSIC"), [[2, 10.0]])
    np.testing.assert_allclose(offsets(ax, "chosen"), [[2, 1.0]])
    assert "best by HSIC" not in labels(plot_tuning_map(penalty_report()))


def test_candidates_without_one_lengthscale_are_counted():
    odd = [
        candidate({"lower": 0.1, "upper": 1.0}, 0.0, 9.0),
        candidate(np.array([0.1, 1.0]), 0.0, 9.0),
        candidate(1.0, 0.0, np.nan),
    ]
    report = penalty_report(lengthscale=odd[0]["lengthscale"], symmetry_penalty=0.0, interrupted=True)
    report.evaluations = (*report.evaluations, *odd)
    ax = plot_tuning_map(report)
    assert len(offsets(ax, "candidates")) == 9
    notes = [label.replace("\n", " ") for label in labels(ax)]
    assert "2 candidates without one common lengthscale are not shown" in notes
    assert "1 candidates without a finite criterion are not shown" in notes
    assert "chosen: several lengthscales, penalty 0" in notes
    assert "the search was interrupted" in notes
    assert "chosen" not in notes


@pytest.mark.parametrize("ell", [np.inf, 10.0])
def test_constant_bands_are_said_not_drawn(ell):
    report = penalty_report(homoscedastic=True, lengthscale=ell)
    curve = penalty_report(homoscedastic=True, lengthscale=ell, evaluations=report.evaluations[-3:])
    for ax in (plot_tuning_map(report), plot_tuning_map(curve)):
        assert "chosen: bands of constant width" in labels(ax)
        assert "chosen" not in labels(ax)


def test_uncertified_candidates_are_marked():
    report = penalty_report()
    report.evaluations[4]["uncertified"] = 2
    np.testing.assert_allclose(offsets(plot_tuning_map(report), "solves missed"), [[1, 1.0]])
    del report.evaluations[0]["uncertified"]
    plot_tuning_map(report)


def test_one_penalty_gives_a_curve_over_lengthscales():
    rows = [candidate(ell, 10.0, value) for ell, value in ((1.0, 2.0), (0.1, 1.0), (0.3, 3.0))]
    ax = plot_tuning_map(penalty_report(evaluations=rows, lengthscale=0.3, symmetry_penalty=10.0))
    np.testing.assert_allclose(labelled(ax, "candidates").get_xydata(), [[0.1, 1], [0.3, 3], [1, 2]])
    np.testing.assert_allclose(offsets(ax, "chosen"), [[0.3, 3.0]])
    assert ax.get_xscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lengthscale", "HSIC, larger is better")


@pytest.mark.parametrize("ell", [0.5, "median", {"lower": 0.1, "upper": 0.2}, np.array([0.1, 0.2])])
def test_one_lengthscale_of_any_form_gives_a_curve_over_penalties(ell):
    rows = [candidate(ell, penalty, value) for penalty, value in ((np.inf, 1.0), (0.0, 2.0), (10.0, 5.0))]
    ax = plot_tuning_map(penalty_report(evaluations=rows, lengthscale=ell, symmetry_penalty=10.0))
    np.testing.assert_allclose(labelled(ax, "candidates").get_xydata(), [[0, 2], [1, 5], [2, 1]])
    np.testing.assert_allclose(offsets(ax, "chosen"), [[1, 5.0]])
    assert ticks(ax) == {"0": 0, "10": 1, "∞": 2}


def test_pairs_of_penalties_are_named():
    rows = [candidate(1.0, (0.0, 2.0), 1.0), candidate(1.0, (3.0, np.inf), 2.0)]
    ax = plot_tuning_map(penalty_report(evaluations=rows, lengthscale=1.0, symmetry_penalty=(3.0, np.inf)))
    assert ticks(ax) == {"(0, 2)": 0, "(3, ∞)": 1}
    np.testing.assert_allclose(offsets(ax, "chosen"), [[1, 2.0]])


def test_nothing_to_draw_is_said_in_words():
    report = penalty_report(evaluations=(), homoscedastic=True, sentence="All residuals are zero: bands of no width.")
    ax = plot_tuning_map(report)
    (text,) = ax.texts
    assert text.get_text() == "No candidates were evaluated.\nAll residuals are zero: bands of no width."
    report.evaluations = [candidate("median", 1.0, 2.0)]
    assert plot_tuning_map(report).texts[0].get_text().startswith("None of the 1 candidates has one lengthscale")


@pytest.mark.parametrize(
    "rows",
    [
        [candidate(0.1, 0.0, 1.0), candidate(1.0, 1.0, 2.0)],  # on one line
        [candidate(ell, penalty, 1.0) for ell in (0.1, 1.0) for penalty in (0.0, 1.0)],  # all alike
    ],
)
def test_candidates_that_span_no_map_are_coloured_points(rows):
    ax = plot_tuning_map(penalty_report(evaluations=rows, lengthscale=0.1, symmetry_penalty=0.0))
    render(ax)
    coloured = next(each for each in ax.collections if each.get_array() is not None)
    np.testing.assert_allclose(coloured.get_array(), [row["criterion"] for row in rows])


def test_replicates_follow_their_penalties():
    # evaluations name inf first; the rows of the replicates have the order of the evaluations, the axis that of size
    rows = [candidate(1.0, penalty, 1.0) for penalty in (np.inf, 0.0, 10.0)]
    replicates = np.array([[30.0, 31, 32], [10, 11, 12], [20, 21, np.nan]])
    report = penalty_report(evaluations=rows, replicates=replicates, symmetry_penalty=np.inf)
    ax = plot_replicates(report)
    assert ticks(ax) == {"0": 0, "10": 1, "∞": 2}
    medians = [line.get_ydata()[0] for line in ax.get_lines() if line.get_linewidth() == 2]
    assert medians == [11.0, 20.5, 31.0]
    hatched = [box.get_hatch() for box in ax.patches]
    assert hatched == [None, None, "//"]
    assert labels(ax) == ["chosen"]
    assert ax.get_ylabel() == "replicates of HSIC"


def test_replicates_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"shape \(2, 4\): expected 3 rows, one per symmetry penalty"):
        plot_replicates(penalty_report(replicates=np.zeros((2, 4))))
    with pytest.raises(ValueError, match="report.replicates is None"):
        plot_replicates(penalty_report())
