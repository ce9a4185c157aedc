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


def test_the_law_of_a_sum_and_ranks_at_the_edges():
    law = exact_law.power_of_law(np.array([0.3, 0.7]), 50)
    np.testing.assert_allclose(law, binom(50, 0.7).pmf(range(51)), atol=1e-15)
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


def test_a_right_mean_of_a_wrong_law_fails_and_too_few_scores_allow_nothing_but_all_rows():
    with pytest.raises(AssertionError, match="too often"):  # every calibration covers nine tenths
        exact_law.assert_exact(np.full(400, 18), 20, 19, 18, 1e-6, "no spread")
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


def attack(scenario):
    """The first attempts of a scenario, until one of them breaks."""
    for turn in range(10):
        coverage_laws.attempt(SCENARIO[scenario] + turn * len(SCENARIO))


def shifted_rank(shift):
    def quantile(scores, level):
        ordered = np.sort(scores)
        k = exact_law.rank_promised(len(ordered), level) + shift
        return float(ordered[min(k, len(ordered)) - 1])

    return quantile


def forgetting_the_new_row(S, w, new, level, right=calibration.weighted_conformal_quantile):
    return right(S, w, 0 * new, level)


def ignoring_weights(S, _weights, new, level):
    return np.full(len(new), calibration.conformal_quantile(S, level))


@pytest.mark.parametrize(
    ("where", "name", "planted", "scenario", "words"),
    [
        (calibration, "conformal_quantile", shifted_rank(-1), "fixed_functions", "too low|infinite intervals only"),
        (calibration, "conformal_quantile", shifted_rank(-1), "groups", "too low|infinite intervals only"),
        (calibration, "conformal_quantile", shifted_rank(-1), "fits", "too low|infinite intervals only"),
        (calibration, "conformal_quantile", shifted_rank(1), "fixed_functions", "too high"),
        (calibration, "weighted_conformal_quantile", forgetting_the_new_row, "equal_weights", "too low|infinite inter"),
        (calibration, "weighted_conformal_quantile", ignoring_weights, "covariate_shift", "tilted by .* too low"),
        (band, "ROUNDING", -1e-15, "tied_scores", "too low|too often"),  # ends that lose ties
        (
            cross,
            "conformal_rank",
            lambda n, level: max(1, round(n * (2 * level - 1.3))),
            "crossed",
            "cross-calibrated.* too low",
        ),
    ],
)
def test_a_planted_defect_is_caught(monkeypatch, where, name, planted, scenario, words):
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(AssertionError, match=words):
        attack(scenario)
