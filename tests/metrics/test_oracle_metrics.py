"""The metrics on bands whose quality is known: the oracle's own, and a shifted one of equal two-sided coverage."""

import numpy as np
import pytest
from scipy.optimize import brentq

from sosbands.datasets import synthetic_case
from sosbands.metrics import coverage_gaps, rmse_to_oracle

N_X, N_Y = 200, 1000
SIDED_ERROR = np.sqrt(2 / np.pi) * np.sqrt(0.05 * 0.95 / N_Y)  # mean of |share - 0.95| if the level is exact
TWO_SIDED_ERROR = np.sqrt(2 / np.pi) * np.sqrt(0.1 * 0.9 / N_Y)


@pytest.mark.parametrize("number", [1, 3, 4, 5])
def test_oracle_bands_have_gaps_of_sampling_error_and_no_distance(number):
    case = synthetic_case(number)
    X, _ = case.sample(N_X, 0)
    lower, upper = case.oracle_interval(X, 0.9).T
    gaps = coverage_gaps(lower, upper, case.sample_conditional(X, N_Y, 1), 0.9)
    assert gaps.marginal == pytest.approx(TWO_SIDED_ERROR, rel=0.25)
    for sided in (gaps.lower, gaps.upper, gaps.combined):
        assert sided == pytest.approx(SIDED_ERROR, rel=0.25)
    assert rmse_to_oracle(lower, upper, lower, upper) == 0


@pytest.mark.parametrize("number", [1, 3, 4, 5])
def test_a_shifted_band_of_equal_coverage_is_ranked_worse(number):
    """Miscoverage 0.02 below and 0.08 above instead of 0.05 each: the two-sided gap cannot tell, ACG^c does."""
    case = synthetic_case(number)
    X, _ = case.sample(N_X, 0)
    Y = case.sample_conditional(X, N_Y, 1)
    oracle = case.oracle_interval(X, 0.9)
    shifted = np.column_stack([case.quantile(X, 0.02), case.quantile(X, 0.92)])
    good, bad = (coverage_gaps(*ends.T, Y, 0.9) for ends in (oracle, shifted))
    assert bad.marginal == pytest.approx(good.marginal, rel=0.15)
    assert bad.combined > 4 * good.combined
    assert bad.combined == pytest.approx(0.03, rel=0.1)
    assert rmse_to_oracle(*shifted.T, *oracle.T) > 0


def test_the_shift_is_one_of_the_band():
    """The quantiles used above are those of the law: their difference in probability is the level."""
    case = synthetic_case(4)
    x = np.array([[2.0]])
    low = brentq(lambda p: float(case.quantile(x, p)[0] - case.oracle_interval(x, 0.9)[0, 0]), 1e-3, 0.5)
    assert low == pytest.approx(0.05, abs=1e-6)
