"""Ranges of a coverage against simulation, and intervals of shares against SciPy."""

import numpy as np
import pytest
from scipy.stats import binomtest

from sosbands.metrics.sampling import coverage_range, long_run_coverage, share_range


def test_the_range_with_calibration_rows_is_that_of_conformal_prediction():
    rng = np.random.default_rng(0)
    n, m, level = 30, 19, 0.9  # k = 18
    scores = rng.uniform(size=(20000, m + n))
    quantile = np.sort(scores[:, :m], axis=1)[:, 17]
    found = np.mean(scores[:, m:] <= quantile[:, None], axis=1)
    (low,), (high,) = coverage_range(np.array([level]), n, m)
    inside = (low <= found) & (found <= high)
    assert inside.mean() + 0.005 >= 0.95
    assert np.mean(found < low) <= 0.025 + 0.004
    assert np.mean(found <= low) > 0.025 - 0.004  # one step more would leave out too much
    assert high == 1.0
    (wide,), _ = coverage_range(np.array([level]), n, None)
    assert low < wide  # the binomial one would be too narrow


def test_levels_that_no_finite_interval_has_cover_everything():
    low, high = coverage_range(np.array([0.8, 0.9]), 50, 8)  # 0.9 needs 9 rows
    assert low[0] < 1
    assert low[1] == high[1] == 1


def test_ranks_do_not_suffer_from_rounding():
    exact = coverage_range(np.array([0.7]), 50, 9)  # 0.7 * 10 is 7.000000000000001 or so in some orders
    np.testing.assert_array_equal(exact, coverage_range(np.array([0.7 - 1e-12]), 50, 9))
    np.testing.assert_array_equal(exact, coverage_range(np.array([0.7 + 1e-12]), 50, 9))


@pytest.mark.parametrize("n", [1, 10, 30])
def test_intervals_of_shares(n):
    hits = np.arange(n + 1)
    expected = [binomtest(k, n).proportion_ci(method="wilson") for k in hits]
    np.testing.assert_allclose(share_range(hits, n), [(each.low, each.high) for each in expected], atol=1e-12)


def test_intervals_of_one_share_and_of_shares_of_several_numbers():
    one = binomtest(3, 7).proportion_ci(method="wilson")
    np.testing.assert_allclose(share_range(3, 7), [one.low, one.high], atol=1e-12)
    np.testing.assert_allclose(share_range([3, 2], [7, 4]), [share_range(3, 7), share_range(2, 4)], atol=1e-15)


@pytest.mark.parametrize(("level", "m"), [(0.9, 99), (0.8, 40)])
def test_coverage_of_all_rows_to_come_is_that_of_a_uniform_order_statistic(level, m):
    rng = np.random.default_rng(0)
    k = int(np.ceil(level * (m + 1)))
    drawn = np.sort(rng.uniform(size=(20_000, m)), axis=1)[:, k - 1]  # coverage given the calibration scores
    np.testing.assert_allclose(long_run_coverage(level, m), np.quantile(drawn, [0.025, 0.975]), atol=0.005)


def test_infinite_intervals_cover_all_rows_to_come():
    assert long_run_coverage(0.9, 8) == (1.0, 1.0)
    assert long_run_coverage(0.9, 9)[1] < 1.0
