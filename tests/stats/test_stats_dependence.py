"""The fast distance covariance against its definitions, and its behaviour at the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sosbands.stats import distance_correlation, hsic
from sosbands.stats.dependence import _centred, _row_sums


def energy_kernel(x):
    return np.abs(x)[:, None] + np.abs(x)[None, :] - np.abs(x[:, None] - x[None, :])


def hsic_by_matrices(x, y):
    """tr(K H L H) / n^2, written out."""
    n = len(x)
    H = np.eye(n) - np.ones((n, n)) / n
    return np.trace(energy_kernel(x) @ H @ energy_kernel(y) @ H) / n**2


def samples(kind, n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    y = x**2 + 0.5 * rng.standard_normal(n)
    if kind == "ties":
        return np.round(x), np.round(y)
    if kind == "decreasing":
        return x, -np.exp(x)
    if kind == "shifted":
        return x + 1e4, y - 1e4
    return x, y


def check_against_matrices(statistic):
    for n in (2, 3, 4, 5, 7, 8, 9, 16, 17, 63, 64, 65, 300):
        for kind in ("plain", "ties", "decreasing", "shifted"):
            x, y = samples(kind, n)
            centred = hsic_by_matrices(x - x.mean(), y - y.mean())  # the definition itself loses digits far from 0
            np.testing.assert_allclose(statistic(x, y), centred, rtol=1e-9, atol=1e-10)


def test_equals_the_trace_of_centred_kernels():
    check_against_matrices(hsic)


def test_the_check_rejects_all_pairs_taken_as_concordant():
    def broken(x, y):
        order = np.argsort(x)
        x, y = x[order] - x.mean(), y[order] - y.mean()
        rank = np.argsort(np.argsort(y))
        return _centred(2 * len(x) * (x @ y), _row_sums(x, np.arange(len(x))), _row_sums(y, rank))

    with pytest.raises(AssertionError):
        check_against_matrices(broken)


def test_equals_the_double_sum_of_double_centred_distances():
    x, y = samples("plain", 40)
    a, b = np.abs(x[:, None] - x), np.abs(y[:, None] - y)
    A = a - a.mean(0) - a.mean(1)[:, None] + a.mean()
    B = b - b.mean(0) - b.mean(1)[:, None] + b.mean()
    assert hsic(x, y) == pytest.approx(np.mean(A * B), rel=1e-12)
    expected = np.sqrt(np.mean(A * B) / np.sqrt(np.mean(A * A) * np.mean(B * B)))
    assert distance_correlation(x, y) == pytest.approx(expected, rel=1e-12)


def test_by_hand():
    # two points at distances 1 and 3: centred distances are -+1/2 and -+3/2, so the mean product is 3/4
    assert hsic([0, 1], [5, 2]) == pytest.approx(0.75, rel=1e-15)
    assert distance_correlation([0, 1], [5, 2]) == pytest.approx(1.0, rel=1e-15)
    assert hsic([4.0], [2.0]) == 0.0
    assert distance_correlation([4.0], [2.0]) == 0.0


def test_scales():
    x, y = samples("plain", 50)
    assert hsic(-3 * x + 1, 0.5 * y) == pytest.approx(1.5 * hsic(x, y), rel=1e-12)
    assert hsic(y, x) == pytest.approx(hsic(x, y), rel=1e-12)
    assert distance_correlation(-3 * x + 1, 1e-200 * y) == pytest.approx(distance_correlation(x, y), rel=1e-12)
    assert distance_correlation(x, 7 - 2 * x) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("constant", [np.zeros(20), np.full(20, 3.3), 1e3 + 1e-5 * np.arange(20) / 20])
def test_a_constant_sample_gives_exactly_zero(constant):
    y = np.random.default_rng(0).standard_normal(20)
    for pair in ((constant, y), (y, constant), (constant, constant)):
        assert hsic(*pair) == 0.0
        assert distance_correlation(*pair) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12))
def test_bounds_and_definition_with_many_ties(pairs):
    x, y = np.array(pairs, dtype=float).T
    assert hsic(x, y) >= 0
    assert 0 <= distance_correlation(x, y) <= 1
    np.testing.assert_allclose(hsic(x, y), hsic_by_matrices(x, y), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("function", [hsic, distance_correlation])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[1.0, 2.0]], [1.0, 2.0], r"x has shape \(1, 2\): expected one dimension"),
        ([1.0, 2.0], [], r"y has shape \(0,\): expected one dimension and at least one"),
        ([1.0, 2.0], [1.0], "y has 1 entries: expected 2"),
        ([1.0, np.nan], [1.0, 2.0], "x holds NaN or infinite entries"),
        ([1.0, 2.0], [1.0, np.inf], "y holds NaN or infinite entries"),
    ],
)
def test_bad_input_is_named(function, x, y, message):
    with pytest.raises(ValueError, match=message):
        function(x, y)
