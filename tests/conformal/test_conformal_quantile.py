"""The conformal quantile against exact fractions, by hand, and weighted; broken ones must be told apart."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sosbands.conformal import (
    conformal_quantile,
    conformal_rank,
    points_needed,
    weighted_conformal_quantile,
)

LEVELS = sorted({Fraction(i, 100) for i in range(1, 101)} | {Fraction(i, 3) for i in (1, 2, 3)} | {Fraction(999, 1000)})
SIZES = range(1, 201)


def exact_rank(m, level):
    return math.ceil(level * (m + 1))


# ---------------------------------------------------------------- contracts


def check_quantile(quantile):
    """The k-th smallest with k from exact fractions, infinite beyond the last, for every size and level."""
    rng = np.random.default_rng(0)
    for m in SIZES:
        scores = rng.permutation(m) + 1.0  # the k-th smallest is k
        before = scores.copy()
        for level in LEVELS:
            k = exact_rank(m, level)
            found = quantile(scores, float(level))
            assert found == (k if k <= m else math.inf), f"m={m}, level={level}: {found}, not {k}"
        assert np.array_equal(scores, before), "the scores were written to"


def exact_weighted(scores, weights, test_weight, level):
    """The definition, in exact fractions: the smallest score whose mass reaches the level."""
    total = int(weights.sum()) + test_weight
    reached = (s for s in sorted(scores) if Fraction(int(weights[scores <= s].sum()), total) >= level)
    return next(reached, math.inf)


def check_weighted(quantile):
    rng = np.random.default_rng(1)
    for _ in range(300):
        m = int(rng.integers(1, 30))
        scores = rng.integers(-5, 15, m).astype(float)  # with ties
        weights = rng.integers(0, 4, m)
        weights[rng.integers(m)] = 3
        test_weights = rng.integers(0, 9, 4)
        for level in (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(19, 20)):
            found = quantile(scores, 0.1 * weights, 0.1 * test_weights, float(level))
            wanted = [exact_weighted(scores, weights, int(w), level) for w in test_weights]
            assert found.tolist() == wanted


def check_equal_weights(quantile):
    """Equal weights of any size give the plain quantile back, also where rounding decides."""
    rng = np.random.default_rng(2)
    for m in (1, 2, 5, 9, 19, 20, 39, 99, 199, 999, 99_999):
        scores = rng.standard_normal(m)
        for w in (1.0, 0.1, 1 / 3, 1e-200, 1e200):
            for level in (1 / 3, 0.5, 0.55, 2 / 3, 0.8, 0.9, 0.95, 0.99, 0.999):
                found = quantile(scores, np.full(m, w), np.full(2, w), level)
                assert found.tolist() == [conformal_quantile(scores, level)] * 2


# ---------------------------------------------------------------- the plain quantile


def test_every_size_and_level():
    """Some of which the plain ceil gets wrong: `without_guard` is rejected."""
    check_quantile(conformal_quantile)


@pytest.mark.parametrize(
    ("scores", "level", "wanted"),
    [
        ([3.0, 1.0, 2.0], 0.75, 3.0),
        ([3.0, 1.0, 2.0], 0.76, math.inf),
        ([3.0, 1.0, 2.0], 1e-12, 1.0),
        ([-4.0, -4.0, -7.0, 0.0], 0.6, -4.0),
        ([], 0.1, math.inf),
        ([1.0, math.inf, -math.inf], 0.25, -math.inf),
        (range(9), 0.90001, math.inf),
        (range(1000), 1.0, math.inf),
    ],
)
def test_by_hand(scores, level, wanted):
    found = conformal_quantile(scores, level)
    assert found == wanted
    assert type(found) is float


def without_guard(scores, level):
    k = math.ceil(level * (len(scores) + 1))
    return float(np.sort(scores)[k - 1]) if k <= len(scores) else math.inf


def without_the_new_point(scores, level):
    return float(np.sort(scores)[math.ceil(level * len(scores) - 1e-9) - 1])


def clamped(scores, level):
    return float(np.sort(scores)[min(len(scores), math.ceil(level * (len(scores) + 1) - 1e-9)) - 1])


def one_rank_too_high(scores, level):
    k = conformal_rank(len(scores), level) + 1
    return float(np.sort(scores)[k - 1]) if k <= len(scores) else math.inf


def sorting_in_place(scores, level):
    scores.sort()
    return conformal_quantile(scores, level)


@pytest.mark.parametrize("broken", [without_guard, without_the_new_point, clamped, one_rank_too_high, sorting_in_place])
def test_broken_quantiles_are_rejected(broken):
    with pytest.raises(AssertionError):
        check_quantile(broken)


def test_points_needed():
    assert [points_needed(level) for level in (0.5, 2 / 3, 0.8, 0.9, 0.95, 0.99, 0.975)] == [1, 2, 4, 9, 19, 99, 39]
    assert points_needed(1.0) == math.inf
    assert points_needed(1e-6) == 1
    for level in LEVELS[:-1]:
        if level < 1:
            needed = points_needed(float(level))
            assert math.isfinite(conformal_quantile(np.zeros(needed), float(level)))
            assert conformal_quantile(np.zeros(needed - 1), float(level)) == math.inf


def test_points_needed_next_to_one():
    for exponent in (25, 26, 27, 29, 33, 40, 47, 52, 53):
        assert points_needed(1 - 2.0**-exponent) == pytest.approx(2**exponent - 1, rel=1e-6)
        if exponent > 26:
            assert points_needed(1 - 2.0**-exponent) == 2**exponent - 1  # without a search, which would take hours
    for tail in (1e-8, 1e-10, 1e-15):
        assert points_needed(1 - tail) == pytest.approx((1 - tail) / (1 - (1 - tail)), rel=1e-6)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_the_quantile_grows_with_the_level_and_with_the_scores(scores, a, b):
    low, high = sorted((a, b))
    assert conformal_quantile(scores, low) <= conformal_quantile(scores, high)
    assert conformal_quantile(scores, a) <= conformal_quantile([s + 1.0 for s in scores], a)


@pytest.mark.parametrize("level", [0.0, -1.0, 1.0000001, math.nan])
def test_bad_levels(level):
    for call in (lambda: conformal_quantile([1.0], level), lambda: points_needed(level)):
        with pytest.raises(ValueError, match=r"level=.*expected a number in \(0, 1\]"):
            call()


@pytest.mark.parametrize("scores", [[1.0, math.nan], [[1.0, 2.0]], 1.0])
def test_bad_scores(scores):
    with pytest.raises(ValueError, match="scores of shape .*without NaN"):
        conformal_quantile(scores, 0.5)


# ---------------------------------------------------------------- the weighted quantile


def test_weighted_by_the_definition():
    check_weighted(weighted_conformal_quantile)


def test_equal_weights_give_the_plain_quantile():
    check_equal_weights(weighted_conformal_quantile)


def test_weighted_by_hand():
    # masses of the scores 1, 2, 3 are 0.5, 0.2, 0.1 with a test weight of 2, and 0.25, 0.1, 0.05 with one of 12
    scores, weights, test_weights = [3.0, 1.0, 2.0], [1.0, 5.0, 2.0], [2.0, 12.0, 0.0]
    for level, wanted in [
        (0.2, [1, 1, 1]),
        (0.3, [1, 2, 1]),
        (0.5, [1, math.inf, 1]),
        (0.6, [2, math.inf, 1]),
        (0.7, [2, math.inf, 2]),
        (0.8, [3, math.inf, 2]),
        (0.9, [math.inf, math.inf, 3]),
        (1.0, [math.inf, math.inf, math.inf]),
    ]:
        assert weighted_conformal_quantile(scores, weights, test_weights, level).tolist() == wanted


def test_weights_count_up_to_a_constant_and_points_of_weight_zero_not_at_all():
    rng = np.random.default_rng(3)
    S, w, w_test = rng.standard_normal(50), rng.exponential(size=50), rng.exponential(size=20)
    for level in (0.001, 0.5, 0.9, 0.95):
        wanted = weighted_conformal_quantile(S, w, w_test, level)
        assert np.array_equal(weighted_conformal_quantile(S, 8 * w, 8 * w_test, level), wanted)
        S_more, w_more = np.append(S, [-99.0, 99.0]), np.append(w, [0.0, 0.0])
        assert np.array_equal(weighted_conformal_quantile(S_more, w_more, w_test, level), wanted)


def test_weights_of_any_size_without_a_warning():
    S, small = np.arange(20.0), np.full(20, 1e-300)
    assert weighted_conformal_quantile(S, small, [1e300, 1e-300, 0.0], 0.9).tolist() == [math.inf, 18.0, 17.0]
    assert weighted_conformal_quantile(S, np.full(20, 1e300), [1e-300], 0.9).tolist() == [17.0]


def weighted_without_test_weight(scores, weights, test_weights, level):
    return weighted_conformal_quantile(scores, weights, 0 * np.asarray(test_weights), level)


def weighted_without_guard(scores, weights, test_weights, level):
    order = np.argsort(scores)
    mass = np.cumsum(np.asarray(weights)[order])
    index = np.searchsorted(mass, level * (mass[-1] + np.asarray(test_weights)))
    return np.append(np.asarray(scores)[order], np.inf)[index]


def weighted_clamped(scores, weights, test_weights, level):
    return np.minimum(weighted_conformal_quantile(scores, weights, test_weights, level), np.max(scores))


def weights_ignored(scores, weights, test_weights, level):
    return weighted_conformal_quantile(scores, np.ones(len(weights)), np.ones(len(test_weights)), level)


@pytest.mark.parametrize(
    "broken", [weighted_without_test_weight, weighted_without_guard, weighted_clamped, weights_ignored]
)
def test_broken_weighted_quantiles_are_rejected(broken):
    for check in (check_weighted, check_equal_weights)[: 1 if broken is weights_ignored else 2]:
        with pytest.raises(AssertionError):
            check(broken)


@pytest.mark.parametrize(
    ("weights", "test_weights", "message"),
    [
        ([1.0, -1.0], [1.0], "weights of shape"),
        ([1.0, math.nan], [1.0], "weights of shape"),
        ([0.0, 0.0], [1.0], "weights are all zero"),
        ([1.0], [1.0], "weights has 1 entries: expected one per score, 2"),
        ([1.0, 1.0], [-1.0], "test_weights of shape"),
        ([1.0, 1.0], 1.0, "test_weights of shape"),
    ],
)
def test_bad_weights(weights, test_weights, message):
    with pytest.raises(ValueError, match=message):
        weighted_conformal_quantile([1.0, 2.0], weights, test_weights, 0.5)
