"""Ranges of a coverage against simulation, shares against SciPy, and bands whose quality is known: the oracle's own."""

import numpy as np
import pytest
from scipy.stats import binomtest

from sosbands.datasets import synthetic_case
from sosbands.metrics import coverage_gaps, rmse_to_oracle
from sosbands.metrics.local import coverage_range, long_run_coverage, share_range


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
    assert long_run_coverage(0.9, 8) == (1.0, 1.0)
    assert long_run_coverage(0.9, 9)[1] < 1.0


def test_ranks_do_not_suffer_from_rounding():
    exact = coverage_range(np.array([0.7]), 50, 9)  # 0.7 * 10 is 7.000000000000001 or so in some orders
    np.testing.assert_array_equal(exact, coverage_range(np.array([0.7 - 1e-12]), 50, 9))
    np.testing.assert_array_equal(exact, coverage_range(np.array([0.7 + 1e-12]), 50, 9))


def test_intervals_of_shares():
    for n in (1, 10, 30):
        hits = np.arange(n + 1)
        expected = [binomtest(k, n).proportion_ci(method="wilson") for k in hits]
        np.testing.assert_allclose(share_range(hits, n), [(each.low, each.high) for each in expected], atol=1e-12)
    np.testing.assert_allclose(share_range([3, 2], [7, 4]), [share_range(3, 7), share_range(2, 4)], atol=1e-15)


@pytest.mark.parametrize(("level", "m"), [(0.9, 99), (0.8, 40)])
def test_coverage_of_all_rows_to_come_is_that_of_a_uniform_order_statistic(level, m):
    rng = np.random.default_rng(0)
    k = int(np.ceil(level * (m + 1)))
    drawn = np.sort(rng.uniform(size=(20_000, m)), axis=1)[:, k - 1]  # coverage given the calibration scores
    np.testing.assert_allclose(long_run_coverage(level, m), np.quantile(drawn, [0.025, 0.975]), atol=0.005)


# ---------------------------------------------------------------- the oracle's bands, and a shifted one


N_X, N_Y = 200, 1000
SIDED_ERROR = np.sqrt(2 / np.pi) * np.sqrt(0.05 * 0.95 / N_Y)  # mean of |share - 0.95| if the level is exact
TWO_SIDED_ERROR = np.sqrt(2 / np.pi) * np.sqrt(0.1 * 0.9 / N_Y)


@pytest.mark.parametrize("number", [1, 3, 4, 5])
def test_oracle_bands_have_no_gap_and_a_shifted_band_of_equal_coverage_is_ranked_worse(number):
    """Miscoverage 0.02 below and 0.08 above instead of 0.05 each: the two-sided gap cannot tell, ACG^c does."""
    case = synthetic_case(number)
    X, _ = case.sample(N_X, 0)
    Y = case.sample_conditional(X, N_Y, 1)
    oracle = case.oracle_interval(X, 0.9)
    good = coverage_gaps(*oracle.T, Y, 0.9)
    assert good.marginal == pytest.approx(TWO_SIDED_ERROR, rel=0.25)
    for sided in (good.lower, good.upper, good.combined):
        assert sided == pytest.approx(SIDED_ERROR, rel=0.25)
    assert rmse_to_oracle(*oracle.T, *oracle.T) == 0
    shifted = np.column_stack([case.quantile(X, 0.02), case.quantile(X, 0.92)])
    bad = coverage_gaps(*shifted.T, Y, 0.9)
    assert bad.marginal == pytest.approx(good.marginal, rel=0.15)
    assert bad.combined > 4 * good.combined
    assert bad.combined == pytest.approx(0.03, rel=0.1)
    assert rmse_to_oracle(*shifted.T, *oracle.T) > 0
