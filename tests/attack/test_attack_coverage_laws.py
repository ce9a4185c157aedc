"""The exact laws against simulation and brute force, and calibrations with a planted defect, which are caught."""

from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from attack import coverage_laws, exact_law
from sosbands.conformal import band, calibration, cross

SCENARIO = {scenario.__name__: number for number, scenario in enumerate(coverage_laws.SCENARIOS)}


# ---------------------------------------------------------------- the laws


def counts_of(rng, m, k, new, repetitions):
    """Covered rows by the definition, scores uniform."""
    q = np.sort(rng.random((repetitions, m)))[:, k - 1]
    return np.sum(rng.random((repetitions, new)) <= q[:, None], axis=1)


def test_the_law_of_a_sum():
    np.testing.assert_allclose(
        exact_law.power_of_law(np.array([0.3, 0.7]), 50), binom(50, 0.7).pmf(range(51)), atol=1e-15
    )


def test_ranks_are_exact_at_the_edges():
    assert exact_law.rank_promised(20, 0.9) == 19
    assert exact_law.rank_promised(99, 0.55) == 55  # 0.55 * 100 is 55.00000000000001
    assert exact_law.rank_promised(10, 0.95) == 11


@pytest.mark.parametrize(("m", "k"), [(10, 10), (20, 19), (30, 3)])
def test_right_counts_pass_and_those_of_a_neighbouring_rank_fail(m, k):
    rng = np.random.default_rng(0)
    right = counts_of(rng, m, k, 20, 400)
    exact_law.assert_exact(right, 20, m, k, 1e-6, "right")
    with pytest.raises(AssertionError, match="too low"):
        exact_law.assert_exact(counts_of(rng, m, k - 1, 20, 400), 20, m, k, 1e-6, "one rank less")
    many = counts_of(rng, m, k, 20, 400)
    exact_law.assert_exact(many, 20, m, k - 1, 1e-6, "one rank more", ties=True)
    with pytest.raises(AssertionError, match="too high"):
        exact_law.assert_exact(many, 20, m, k - 1, 1e-6, "one rank more")


def test_a_right_mean_of_a_wrong_law_fails():
    """Every calibration covers nine tenths: the mean is right, the spread is not."""
    with pytest.raises(AssertionError, match="too often"):
        exact_law.assert_exact(np.full(400, 18), 20, 19, 18, 1e-6, "no spread")


def test_too_few_scores_allow_nothing_but_all_rows():
    exact_law.assert_exact(np.full(3, 20), 20, 10, 11, 1e-6, "infinite")
    with pytest.raises(AssertionError, match="infinite intervals only"):
        exact_law.assert_exact(np.array([20, 19, 20]), 20, 10, 11, 1e-6, "finite")


def test_the_bound_of_a_mean_holds_and_is_not_idle():
    """Of all outcomes of 12 coins those that are rejected have at most the chance that is stated."""

    def rejected(heads):
        try:
            exact_law.assert_mean_at_least(np.arange(12) < heads, 0.8, 0.05, "coins")
        except AssertionError:
            return True
        return False

    chance = sum(comb(12, h) * 0.8**h * 0.2 ** (12 - h) for h in range(13) if rejected(h))
    assert 0.001 < chance <= 0.05


# ---------------------------------------------------------------- planted defects

# Some laws forgive some defects: ties of many rows, or a level at which a rank more or less is the same.


def attack(scenario, most=6):
    """The first attempts of a scenario, until one of them breaks."""
    for turn in range(most):
        coverage_laws.attempt(SCENARIO[scenario] + turn * len(SCENARIO))


def shifted_rank(shift):
    def quantile(scores, level):
        ordered = np.sort(scores)
        k = exact_law.rank_promised(len(ordered), level) + shift
        return float(ordered[min(k, len(ordered)) - 1])

    return quantile


@pytest.mark.parametrize("scenario", ["fixed_functions", "groups", "fits"])
def test_a_quantile_of_the_wrong_rank_is_caught(monkeypatch, scenario):
    monkeypatch.setattr(calibration, "conformal_quantile", shifted_rank(-1))
    with pytest.raises(AssertionError, match="too low|infinite intervals only"):
        attack(scenario)


def test_too_large_a_quantile_is_caught_where_there_are_no_ties(monkeypatch):
    monkeypatch.setattr(calibration, "conformal_quantile", shifted_rank(1))
    with pytest.raises(AssertionError, match="too high"):
        attack("fixed_functions")


def test_weights_that_forget_the_new_row_are_caught(monkeypatch):
    right = calibration.weighted_conformal_quantile
    monkeypatch.setattr(
        calibration, "weighted_conformal_quantile", lambda S, w, new, level: right(S, w, 0 * new, level)
    )
    with pytest.raises(AssertionError, match="too low|infinite intervals only"):
        attack("equal_weights")


def test_weights_that_are_ignored_are_caught(monkeypatch):
    def ignored(S, _weights, new, level):
        return np.full(len(new), calibration.conformal_quantile(S, level))

    monkeypatch.setattr(calibration, "weighted_conformal_quantile", ignored)
    with pytest.raises(AssertionError, match="tilted by .* too low"):
        attack("covariate_shift", 10)


def test_ends_that_lose_ties_by_rounding_are_caught(monkeypatch):
    monkeypatch.setattr(band, "ROUNDING", -1e-15)
    with pytest.raises(AssertionError, match="too low|too often"):
        attack("tied_scores")


def test_cross_calibration_with_too_small_a_rank_is_caught(monkeypatch):
    monkeypatch.setattr(cross, "conformal_rank", lambda n, level: max(1, round(n * (2 * level - 1.3))))
    with pytest.raises(AssertionError, match="cross-calibrated.* too low"):
        attack("crossed")
