"""The picture of the automatic choice: each setting, each value, what the best candidate with it loses."""

import numpy as np
import pytest

from pictures import choice_report, choice_row, labels, offsets, penalty_report
from sosbands.plotting import plot_tuning


def lines(ax):
    """Words and heights of the lines of an automatic choice, from the top."""
    return {text.get_text(): height for height, text in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}


def losses(ax, label):
    """Losses by height, of all marks of a kind."""
    return {float(y): float(x) for x, y in offsets(ax, label)}


def test_each_value_of_a_setting_stands_at_its_loss():
    ax = plot_tuning(choice_report())
    rows = lines(ax)
    assert list(rows) == [
        *("both", "none", "inputs", "prediction", "1", "2", "4", "∞ (constant)", "3", "30", "0", "∞"),
        *("added", "scaled"),
    ]
    best = losses(ax, "best with this value")
    expected = {"none": 10, "prediction": 4, "1": 2, "4": 3, "∞ (constant)": 10, "3": 3, "0": 3, "scaled": 0.5}
    assert best == pytest.approx({rows[words]: loss for words, loss in expected.items()})
    chosen, at_zero = losses(ax, "chosen"), ("both", "inputs", "2", "30", "∞", "added")
    assert chosen == pytest.approx({rows[words]: 0.0 for words in at_zero}, abs=1e-9)
    names = [text.get_text().replace("\n", " ") for text in ax.texts]
    assert names == [
        *("base scale", "noise features", "lengthscale", "width penalty", "symmetry penalty", "conformal score"),
    ]  # no other learning coverage was tried
    assert ax.get_xlabel() == "held-out interval score, % worse than the chosen"
    assert ax.get_xlim()[1] >= 10
    assert sorted(labels(ax)) == ["best with this value", "chosen", "other candidates with this value"]


def test_candidates_that_score_better_than_the_chosen_are_left_of_it():
    report = choice_report()
    better = choice_row(penalty=300.0, criterion=-1.0 - np.log(0.992))
    same_penalty = choice_row(ell=1.0, width=3.0, criterion=-1.0 - np.log(0.996))
    report.evaluations = (*report.evaluations, better, same_penalty)
    ax = plot_tuning(report)
    rows, best = lines(ax), losses(ax, "best with this value")
    assert best[rows["300"]] == pytest.approx(-0.8)
    assert best[rows["both"]] == pytest.approx(-0.8)
    assert best[rows["1"]] == pytest.approx(-0.4)
    assert set(losses(ax, "chosen").values()) == {0.0}
    assert ax.get_xlim()[0] < -0.8
    assert ax.get_xlabel() == "held-out interval score, % worse than the chosen (below 0: better)"
    assert "-0.5" in [text.get_text().replace("\u2212", "-") for text in ax.get_xticklabels()]


def test_what_the_choice_could_not_show_is_said():
    report = choice_report(interrupted=True, timed_out=True)
    report.evaluations = (*report.evaluations, choice_row(base="model", criterion=-np.inf))
    report.evaluations[2]["uncertified"] = 1
    report.evaluations[3]["uncertified"] = 2
    ax = plot_tuning(report)
    notes = [label.replace("\n", " ") for label in labels(ax)]
    assert "1 candidates without a finite criterion are not shown" in notes
    assert "the search was interrupted" in notes
    assert "the search ran out of time" in notes
    assert "model" not in lines(ax)
    np.testing.assert_allclose(offsets(ax, "solves missed")[0], [10, lines(ax)["none"]])


@pytest.mark.parametrize("ell", [{"lower": 0.1, "upper": 1.0}, np.array([0.1, 1.0])])
def test_lengthscales_that_were_given_in_any_form_are_no_setting(ell):
    rows = [choice_row(ell=ell, criterion=-1.0), choice_row(ell=ell, base="none", criterion=-2.0)]
    ax = plot_tuning(choice_report(evaluations=rows, lengthscale=ell))
    assert list(lines(ax)) == ["both", "none"]
    assert losses(ax, "best with this value") == pytest.approx({1.0: 100 * np.expm1(1.0)})


def test_a_choice_by_rules_or_without_alternatives_is_told_in_words():
    (text,) = plot_tuning(penalty_report()).texts
    assert text.get_text() == "Chosen by rules.\nBest by hsic: symmetric bands."
    for count in (0, 1):
        report = choice_report()
        report.evaluations = report.evaluations[:count]
        (text,) = plot_tuning(report).texts
        assert text.get_text() == f"There is nothing to compare: no setting had two values.\n{report.sentence}"
