"""Scores by hand, and the interval as their inverse; broken pairs must be told apart."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sosbands.conformal import (
    SCORES,
    AddedScore,
    Band,
    ScaledScore,
    interval,
    lower_scores,
    symmetric_scores,
    upper_scores,
)

INF = math.inf
EPS = np.finfo(float).eps

# small whole numbers and powers of two: all arithmetic is exact, so the equivalence is too
ENDS = st.integers(-20, 20).map(float)
UNITS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 8.0])
QUANTILES = st.one_of(st.sampled_from([-INF, INF, 0.0]), st.integers(-40, 40).map(lambda i: i / 4))


def inside(y, ends):
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


def check_inverse(pair, phases=tuple(Phase)):
    """An observation is in the interval exactly if its scores are at most the quantiles.

    Two allowances, both towards coverage: the point that stands for an empty interval, and where a unit is 0 and its
    quantile negative the end itself, which closes an open interval.
    """

    @settings(max_examples=400, phases=phases, report_multiple_bugs=False)
    @given(st.tuples(ENDS, ENDS, UNITS, UNITS), QUANTILES, QUANTILES)
    def check(row, q_lo, q_up):
        y = np.arange(-200, 201) / 2
        band = Band(*(np.full(len(y), value) for value in row))
        ends, crossed = pair.interval(band, q_lo, q_up)
        assert ends.shape == (len(y), 2)
        assert not np.isnan(ends).any()
        wanted = (pair.lower_scores(band, y) <= q_lo) & (pair.upper_scores(band, y) <= q_up)
        assert crossed.all() or not crossed.any()
        if crossed[0]:
            assert not wanted.any(), "an observation was lost"
            assert np.array_equal(ends[:, 0], ends[:, 1])
            assert np.isfinite(ends).all()
            return
        allowed = (row[2] == 0) & (q_lo < 0) & (y == row[0]) | (row[3] == 0) & (q_up < 0) & (y == row[1])
        found = inside(y, ends)
        assert found[wanted].all(), "an observation was lost"
        assert np.array_equal(found[~allowed], wanted[~allowed])

    check()


PAIR = SimpleNamespace(interval=interval, lower_scores=lower_scores, upper_scores=upper_scores)


def test_the_interval_is_the_inverse_of_the_scores():
    check_inverse(PAIR)


def broken(**changes):
    return SimpleNamespace(**{**vars(PAIR), **changes})


def swapped(band, q_lo, q_up):
    return interval(band, q_up, q_lo)


def without_units(band, q_lo, q_up):
    return interval(Band(band.lower, band.upper), q_lo, q_up)


def one_unit(band, q_lo, q_up):
    return interval(Band(band.lower, band.upper, band.lower_unit), q_lo, q_up)


def swapped_units(band, q_lo, q_up):
    return interval(Band(band.lower, band.upper, band.upper_unit, band.lower_unit), q_lo, q_up)


def still_crossed(band, q_lo, q_up):
    with np.errstate(invalid="ignore"):
        ends = np.stack([band.lower - q_lo * band.lower_unit, band.upper + q_up * band.upper_unit], axis=1)
    return np.nan_to_num(ends, nan=0.0, posinf=INF, neginf=-INF), np.zeros(len(band), dtype=bool)


def finite_at_zero_units(band, q_lo, q_up):
    ends, crossed = interval(band, q_lo, q_up)
    at_zero = np.stack([band.lower_unit == 0, band.upper_unit == 0], axis=1)
    return np.where(at_zero, np.stack([band.lower, band.upper], axis=1), ends), crossed


def zero_scores_at_zero_unit(band, y):
    return np.where(band.upper_unit == 0, 0.0, upper_scores(band, y))


def wrong_end(band, y):
    return upper_scores(Band(band.upper, band.lower, band.upper_unit), y)


@pytest.mark.parametrize(
    "changes",
    [
        {"interval": swapped},
        {"interval": without_units},
        {"interval": one_unit},
        {"interval": swapped_units},
        {"interval": still_crossed},
        {"interval": finite_at_zero_units},
        {"upper_scores": zero_scores_at_zero_unit},
        {"upper_scores": wrong_end},
    ],
    ids=lambda changes: next(iter(changes.values())).__name__,
)
def test_broken_pairs_are_rejected(changes):
    with pytest.raises(AssertionError):
        check_inverse(broken(**changes), [Phase.generate])  # no need for the smallest example


def test_scores_by_hand():
    band = Band([0.0, 0.0, 1.0, 0.0], [2.0, 2.0, 5.0, 2.0], [1.0, 0.5, 2.0, 0.5], [1.0, 0.5, 2.0, 4.0])
    y = np.array([3.0, -1.0, 4.0, 3.0])
    assert lower_scores(band, y).tolist() == [-3.0, 2.0, -1.5, -6.0]
    assert upper_scores(band, y).tolist() == [1.0, -6.0, -0.5, 0.25]
    assert symmetric_scores(band, y).tolist() == [1.0, 2.0, -0.5, 0.25]


def test_scores_where_the_unit_is_zero():
    band = Band([1.0] * 5, [2.0] * 5, [0.0] * 5)
    y = np.array([0.0, 1.0, 1.5, 2.0, 3.0])
    assert lower_scores(band, y).tolist() == [INF, 0.0, -INF, -INF, -INF]
    assert upper_scores(band, y).tolist() == [-INF, -INF, -INF, 0.0, INF]
    assert symmetric_scores(band, y).tolist() == [INF, 0.0, -INF, 0.0, INF]
    # a band of no width and no unit: the squared predecessor's f(x) = 0
    point = Band([1.0, 1.0], [1.0, 1.0], [0.0, 0.0])
    assert symmetric_scores(point, np.array([1.0, 1.5])).tolist() == [0.0, INF]


def test_one_unit_for_all_rows():
    rng = np.random.default_rng(0)
    lower, upper, y = np.sort(rng.standard_normal((3, 7)), axis=0)
    one, many = Band(lower, upper, 0.3), Band(lower, upper, np.full(7, 0.3))
    assert np.array_equal(symmetric_scores(one, y), symmetric_scores(many, y))
    q = np.linspace(-1, 1, 7)  # one quantile for each row
    each = [interval(one, *row)[0][k] for k, row in enumerate(np.stack([q, q[::-1]], axis=1))]
    assert np.array_equal(interval(many, q, q[::-1])[0], each)
    assert np.array_equal(interval(Band(lower, upper, 0.0), INF, 1.0)[0], np.stack([np.full(7, -INF), upper], axis=1))


@pytest.mark.parametrize(
    ("units", "q_lo", "q_up", "ends", "crossed"),
    [
        (1.0, 0.5, 0.25, (0.5, 3.25), False),
        (2.0, 0.5, 0.25, (0.0, 3.5), False),
        (1.0, -0.5, -0.5, (1.5, 2.5), False),
        (1.0, -1.0, -1.0, (2.0, 2.0), False),
        (1.0, -2.0, -2.0, (2.0, 2.0), True),
        (1.0, -4.0, 1.0, (4.5, 4.5), True),
        (1.0, INF, INF, (-INF, INF), False),
        (1.0, INF, -1.0, (-INF, 2.0), False),
        (1.0, -INF, -INF, (2.0, 2.0), True),
        (1.0, -INF, 3.0, (2.0, 2.0), True),
        (1.0, -INF, INF, (2.0, 2.0), True),
        (0.0, INF, INF, (-INF, INF), False),
        (0.0, 7.0, INF, (1.0, INF), False),
        (0.0, -INF, -INF, (1.0, 3.0), False),
        (0.0, -9.0, -9.0, (1.0, 3.0), False),
        (1e300, 1e300, 0.0, (-INF, 3.0), False),
        ((1.0, 4.0), 0.5, 0.25, (0.5, 4.0), False),
        ((0.5, 2.0), -0.5, -0.5, (1.25, 2.0), False),
        ((0.5, 2.0), -2.0, -2.0, (0.5, 0.5), True),  # ends 2 and -1
        ((0.5, 2.0), -8.0, 0.25, (4.25, 4.25), True),  # ends 5 and 3.5
        ((0.0, 2.0), -9.0, 1.0, (1.0, 5.0), False),
        ((0.0, 2.0), -9.0, -2.0, (0.0, 0.0), True),  # ends 1 and -1
        ((0.0, 2.0), INF, INF, (-INF, INF), False),
        ((0.5, 2.0), INF, INF, (-INF, INF), False),
        ((0.5, 2.0), -INF, -INF, (2.0, 2.0), True),
        ((0.5, 2.0), -INF, 3.0, (2.0, 2.0), True),
        ((0.0, 2.0), -INF, -INF, (2.0, 2.0), True),
    ],
)
def test_intervals_by_hand(units, q_lo, q_up, ends, crossed):
    found, mask = interval(Band([1.0], [3.0], *([unit] for unit in np.broadcast_to(units, 2))), q_lo, q_up)
    np.testing.assert_allclose(found, [ends], rtol=4 * EPS, atol=4 * EPS)
    assert crossed or (found[0, 0] <= ends[0] and found[0, 1] >= ends[1])  # rounded outwards
    assert mask.tolist() == [crossed]


NUMBERS = st.floats(-1e6, 1e6) | st.floats(-1, 1) | st.integers(-100, 100).map(lambda i: i / 100)
NUMBERS = NUMBERS.map(lambda value: value if abs(value) > 1e-200 else 0.0)


WIDE = st.just(1.0) | st.floats(1e-3, 1e3)


def check_ties(make):
    """Whatever the digits, an observation whose score equals the quantile is inside, and by no more than rounding."""

    @settings(max_examples=1000, report_multiple_bugs=False, phases=[Phase.generate])
    @given(NUMBERS, NUMBERS, st.tuples(WIDE, WIDE), NUMBERS)
    def check(lower, upper, units, y):
        band, observed = Band([lower], [upper], *units), np.array([y])
        q_lo, q_up = lower_scores(band, observed), upper_scores(band, observed)
        ends, _ = make(band, q_lo, q_up)
        assert inside(observed, ends).all(), "an observation was lost"
        assert abs(ends[0, 0] - y) <= 8 * EPS * max(abs(lower), abs(y), abs(upper))
        worse = symmetric_scores(band, observed)
        assert inside(observed, make(band, worse, worse)[0]).all(), "an observation was lost"

    check()


def rounded_to_nearest(band, q_lo, q_up):
    ends = np.stack([band.lower - q_lo * band.lower_unit, band.upper + q_up * band.upper_unit], axis=1)
    return ends, ends[:, 0] > ends[:, 1]


def test_ties_are_inside():
    check_ties(interval)


def test_rounding_to_nearest_loses_ties():
    with pytest.raises(AssertionError, match="lost"):
        check_ties(rounded_to_nearest)


@given(
    st.tuples(*[st.floats(-1e3, 1e3)] * 2, *[st.floats(0, 1e3)] * 2),
    st.floats(-1e3, 1e3) | st.just(INF),
    st.floats(-1e3, 1e3) | st.just(INF),
)
def test_intervals_with_two_units_are_nested_where_they_are_not_empty(row, a, b):
    band = Band(*(np.array([value]) for value in row))
    small, large = sorted((a, b))
    (inner, empty), (outer, _) = interval(band, small, small), interval(band, large, large)
    assert inner[0, 0] <= inner[0, 1]
    assert empty[0] or (outer[0, 0] <= inner[0, 0] <= inner[0, 1] <= outer[0, 1])


@given(
    st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(0, 1e3)),
    st.floats(-1e3, 1e3) | st.just(INF) | st.just(-INF),
    st.floats(-1e3, 1e3) | st.just(INF) | st.just(-INF),
)
def test_symmetric_intervals_are_nested_to_the_last_digit(row, a, b):
    band = Band(*(np.array([value]) for value in row))
    small, large = sorted((a, b))
    (inner, _), (outer, _) = interval(band, small, small), interval(band, large, large)
    assert outer[0, 0] <= inner[0, 0] <= inner[0, 1] <= outer[0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0]), "shapes .2,. and .1,."),
        (([[1.0]], [[1.0]]), "expected two vectors"),
        (([1.0], [2.0], [1.0, 1.0]), "units .2,. and .2,."),
        (([1.0], [2.0], 1.0, [1.0, 1.0]), "units .. and .2,."),
        (([math.nan], [2.0]), "band.lower has 1 entries that are not finite"),
        (([1.0], [INF]), "band.upper has 1 entries that are not finite"),
        (([1.0], [2.0], [math.nan]), "band.lower_unit has 1 entries that are not finite"),
        (([1.0], [2.0], 1.0, INF), "band.upper_unit has 1 entries that are not finite"),
        (([1.0], [2.0], -0.5), "band.lower_unit has the entry -0.5: expected numbers >= 0"),
        (([1.0], [2.0], 1.0, -0.5), "band.upper_unit has the entry -0.5: expected numbers >= 0"),
    ],
)
def test_bad_bands(arguments, message):
    with pytest.raises(ValueError, match=message):
        Band(*arguments)


def test_scores_are_found_by_their_names():
    assert {"added": AddedScore(), "scaled": ScaledScore()} == SCORES
    assert [score.name for score in SCORES.values()] == list(SCORES)
    support = np.array([0.5])
    for score in SCORES.values():
        assert score.band([1.0], [0.5], [2.0], support).support is support
    assert AddedScore().outwards.format(q=0.25, ends="both ends") == "0.25 added to both ends"
