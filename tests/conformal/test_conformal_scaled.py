"""The scaled score: values, floors, what it does without bands, and the contract that rejects broken ones."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from score_contract import check_equivariant, check_nested, check_never_crossed, check_rows_alone
from sosbands.conformal import (
    SCORES,
    AddedScore,
    Band,
    Calibration,
    ScaledScore,
    interval,
    lower_scores,
    move_in_words,
    symmetric_scores,
    upper_scores,
)

INF = math.inf
SCALED = SCORES["scaled"]


def test_scores_by_hand():
    """y = 4 is 2 below m = 6, which is 4 times f_lo = 0.5, and nothing above."""
    band = SCALED.band([6.0, 6.0, 6.0], [0.5, 0.5, 2.0], [4.0, 4.0, 4.0])
    y = np.array([4.0, 7.0, 6.0])
    assert lower_scores(band, y).tolist() == [4.0, 0.0, 0.0]
    assert upper_scores(band, y).tolist() == [0.0, 0.25, 0.0]
    assert symmetric_scores(band, y).tolist() == [4.0, 0.25, 0.0]
    ends, crossed = interval(band, 3.0, 0.5)
    np.testing.assert_allclose(ends, [[4.5, 8.0], [4.5, 8.0], [0.0, 8.0]], atol=1e-14)
    assert not crossed.any()


def test_the_larger_side_is_the_score_without_a_least_one():
    rng = np.random.default_rng(0)
    m, r = rng.normal(size=(2, 300))
    below, above = rng.uniform(0.1, 2.0, (2, 300))
    signed = np.maximum(-r / below, r / above)
    np.testing.assert_allclose(symmetric_scores(SCALED.band(m, below, above), m + r), signed, rtol=1e-9, atol=1e-12)


def test_floors_are_five_per_cent_of_the_means():
    score = SCALED.fitted(2.0, 30.0)
    assert score.floors == pytest.approx((0.1, 1.5))
    band = score.band(np.zeros(3), np.array([0.0, 0.05, 0.4]), np.array([0.0, 1.6, 1.5]))
    np.testing.assert_allclose(band.units, [[0.1, 0.1, 0.4], [1.5, 1.6, 1.5]])
    assert SCALED.floors == (0.0, 0.0)  # fitting makes another score
    assert AddedScore().fitted(2.0, 30.0) == AddedScore()


def test_a_side_without_a_band_has_the_floor_of_the_other():
    """Not 0, of which every miss would be infinitely many: one row on that side could make all intervals infinite."""
    assert SCALED.fitted(0.0, 3.0).floors == SCALED.fitted(3.0, 0.0).floors == pytest.approx((0.15, 0.15))


def test_bands_of_no_width_give_one_distance_for_all():
    """Nothing to multiply: split conformal prediction, and words that say so."""
    score = SCALED.fitted(0.0, 0.0)
    zero, y = np.zeros(19), np.arange(-9.0, 10.0)
    band = score.band(zero, zero, zero)
    calibration = Calibration.of(band, y)
    (q_lo, q_up) = calibration.quantiles(0.9, "symmetric")[0]
    assert q_lo == q_up == 9.0
    ends, _ = interval(band, q_lo, q_up)
    np.testing.assert_allclose(ends, np.broadcast_to([-9.0, 9.0], (19, 2)), rtol=1e-14)
    assert move_in_words(score, 9.0, "both ends") == "9 added to both ends"
    ends, crossed = interval(band, *Calibration.of(band, zero).quantiles(0.9, "asymmetric")[0])  # and no noise
    assert (ends == 0.0).all()
    assert not crossed.any()


def test_a_score_that_was_not_fitted_has_the_units_of_the_band():
    band = SCALED.band([1.0, 1.0], [0.0, 2.0], [0.0, 3.0])
    np.testing.assert_array_equal(band.units, [[0.0, 2.0], [0.0, 3.0]])
    assert symmetric_scores(band, np.array([1.0, 1.0])).tolist() == [0.0, 0.0]
    assert symmetric_scores(band, np.array([0.5, 0.0])).tolist() == [INF, 0.5]


def test_words():
    assert move_in_words(SCALED, 1.13, "both ends") == "the reach of both ends multiplied by 1.13"
    assert move_in_words(SCALED, 0.0, "both ends") == "the reach of both ends multiplied by 0"
    assert move_in_words(AddedScore(), 0.80001, "both ends") == "0.8 added to both ends"
    assert move_in_words(AddedScore(), -0.8, "the lower end") == "0.8 taken off the lower end"


def test_one_sided_quantiles_are_those_of_signed_scores_where_these_are_positive():
    rng = np.random.default_rng(0)
    m, below, above = np.zeros(400), *rng.uniform(0.2, 2.0, (2, 400))
    y = rng.normal(0.3, 1.0, 400)
    signed = Band(m, m, below, above)
    for level in (0.05, 0.3, 0.9):
        q = Calibration.of(SCALED.band(m, below, above), y).quantiles(level, "asymmetric")[0]
        np.testing.assert_array_equal(q, np.maximum(Calibration.of(signed, y).quantiles(level, "asymmetric")[0], 0.0))


# ---------------------------------------------------------------- the contract


KEPT = [(SCALED, check) for check in (check_never_crossed, check_nested, check_equivariant, check_rows_alone)]
KEPT += [(AddedScore(), check) for check in (check_equivariant, check_rows_alone)]


@pytest.mark.parametrize(("score", "check"), KEPT)
def test_the_contract_is_kept(score, check):
    check(score)


@dataclass(frozen=True)
class Signed(ScaledScore):
    """Broken: one-sided scores may be negative."""

    def band(self, *args):
        return replace(super().band(*args), least_score=-INF)


@dataclass(frozen=True)
class FloorOfTheRows(ScaledScore):
    """Broken: the least unit is that of the rows at hand."""

    def band(self, center, below, above, support=None):
        return ScaledScore().fitted(np.mean(below), np.mean(above)).band(center, below, above, support)


@dataclass(frozen=True)
class FixedFloor(ScaledScore):
    """Broken: a least unit that does not know the unit of y."""

    def fitted(self, *_):
        return replace(self, floors=(0.1, 0.1))


@dataclass(frozen=True)
class FloorOfOneSide(ScaledScore):
    """Broken: what holds below is taken for what holds above."""

    def fitted(self, mean_below, mean_above):  # noqa: ARG002
        return super().fitted(mean_below, mean_below)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Signed(), check_never_crossed),
        (Signed(), check_nested),
        (FloorOfTheRows(), check_rows_alone),
        (FixedFloor(), check_equivariant),
        (FloorOfOneSide(), check_equivariant),
        (AddedScore(), check_never_crossed),
    ],
)
def test_broken_scores_are_rejected(broken, check):
    with pytest.raises(AssertionError):
        check(broken)
