"""The sentence that ends a comparison, of rows made for each kind of it."""

import numpy as np
import pytest

from sosbands.comparison import ComparisonResult, SplitSizes, corrected_interval, judgement

SIZES = SplitSizes(40, 40, 20)
NOISE = np.array([-1.0, 1.0, -1.0, 1.0, 0.0])  # of mean 0
HALF = corrected_interval(NOISE, 0.25).upper


def result(scores, seconds=None, coverage=0.9):
    """A comparison with these interval scores of each method; None where a run failed."""
    rows = []
    for method, values in scores.items():
        for repetition, value in enumerate(values):
            row = {"method": method, "repetition": repetition, "seconds": (seconds or {}).get(method, 1.0)}
            found = {"interval_score": value, "coverage": coverage + 0.001 * NOISE[repetition]}
            ended = {"error_type": None, "error": None, "n_warnings": 0}
            rows.append({**row, **found, **ended} if value is not None else {**row, **ended, "error_type": "E"})
    return ComparisonResult(rows, tuple(scores), 0.9, SIZES)


def test_a_clear_winner():
    scores = {"split": 100 + 1.0 * NOISE, "sos": np.full(5, 94.0), "local": np.full(5, 120.0)}
    lower, upper = 6 - HALF, 6 + HALF
    assert judgement(result(scores)) == (
        f"sos is best: 6 % [{lower:.2g}, {upper:.2g}] lower interval score than the next, split."
    )
    timed = judgement(result(scores, {"sos": 10.0, "split": 0.5, "local": 9.0}))
    assert timed.endswith("the next, split, which takes 5 % of the time.")


def test_as_good_and_faster():
    scores = {"sos": np.full(5, 100.0), "local": 100.3 + 0.5 * NOISE}
    half = 100 * 0.5 * HALF / 100.3
    sentence = f"local is as good as sos (difference 0.3 % ± {half:.2g} %)"
    assert half < 1
    assert judgement(result(scores, {"sos": 20.0, "local": 2.0})) == f"{sentence} in a tenth of the time."
    assert judgement(result(scores, {"sos": 20.0, "local": 1.0})) == f"{sentence} in 5 % of the time."
    assert judgement(result(scores, {"sos": 20.0, "local": 19.0})) == f"{sentence}."
    assert judgement(result(scores, {"sos": 2.0, "local": 20.0})) == f"{sentence}."


def test_the_fastest_of_those_that_are_as_good_is_named():
    scores = {
        "sos": np.full(5, 100.0),
        "local": 100.3 + 0.5 * NOISE,
        "split": 100.4 + 0.5 * NOISE,
        "gp": np.full(5, 150.0),
    }
    found = judgement(result(scores, {"sos": 20.0, "local": 12.0, "split": 5.0, "gp": 0.1}))
    assert found.startswith("split is as good as sos (")
    assert found.endswith(" in a quarter of the time.")


def test_what_is_open_is_left_open():
    scores = {"sos": np.full(5, 95.0), "local": 100 + 10.0 * NOISE, "gp": np.full(5, 150.0)}
    assert judgement(result(scores)) == (
        f"No clear winner: sos has the lowest interval score, ahead of local by 5 % ± {10 * HALF:.2g} %; more "
        "repetitions may tell."
    )


def test_one_repetition():
    found = judgement(result({"sos": [94.0], "split": [100.0]}))
    assert found == (
        "sos has the lowest interval score here, 6 % below the next, split; one repetition does not say whether that "
        "is chance."
    )


def test_a_winner_that_does_not_cover_is_told():
    found = judgement(result({"sos": np.full(5, 94.0), "split": 100 + NOISE}, coverage=0.8))
    assert found.endswith(" But sos covers 80 % only, where 90 % were asked for.")


@pytest.mark.parametrize(
    "scores",
    [
        {"sos": [1.0, 2.0]},
        {"sos": [1.0, 2.0], "split": [None, None]},
        {"sos": [1.0, 2.0], "split": [np.inf, 1.0]},
        {"sos": [1.0, None], "split": [None, 1.0]},
        {"sos": [0.0, 0.0], "split": [0.0, 0.0]},
    ],
    ids=["one method", "always failed", "infinite", "nothing in common", "no width"],
)
def test_nothing_is_said_where_nothing_can_be(scores):
    assert judgement(result(scores)) == ""


def test_only_common_repetitions_count():
    scores = {"sos": [94.0, 94.0, 94.0, None, 94.0], "split": [100.0, 101.0, None, 1.0, 99.0]}
    assert judgement(result(scores)).startswith("sos is best: 6 % [")
