"""Scores of whole distributions: against integrals, closed forms and values by hand."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from sosbands.metrics import crps, normal_crps, pit, pit_distance

RNG = np.random.default_rng(0)


def integral(y, cdf, *breaks):
    """``integral of (F(t) - 1{y <= t})^2 dt`` between the breaks, where the integrand is smooth."""
    edges = np.sort([y, *breaks])
    parts = zip(edges[:-1], edges[1:], strict=True)
    return sum(quad(lambda t: (cdf(t) - (t >= y)) ** 2, *part, limit=200)[0] for part in parts)


@pytest.mark.parametrize("y", [-3.0, 0.1, 0.7, 9.0])
def test_an_ensemble_against_the_integral_and_the_double_sum(y):
    v = RNG.gamma(2.0, size=7)
    pairs = np.abs(v[:, None] - v).mean()
    found = crps([y], [v])
    assert found == pytest.approx(np.abs(v - y).mean() - pairs / 2)
    assert found == pytest.approx(integral(y, lambda t: np.mean(v <= t), *v), rel=1e-6)


def test_quantiles_against_the_integral_and_the_pinball_loss():
    """Levels 0.1, 0.4, 0.8 stand for (0, 0.25), (0.25, 0.6) and (0.6, 1)."""
    v, levels, p, y = np.array([1.0, 2.0, 5.0]), [0.1, 0.4, 0.8], np.array([0.25, 0.35, 0.4]), 2.7
    found = crps([y], [v], levels)
    assert found == pytest.approx(integral(y, lambda t: p @ (v <= t), *v), rel=1e-6)

    def pinball(u):
        quantile = v[np.searchsorted([0.25, 0.6], u)]
        return (u - (y < quantile)) * (y - quantile)

    assert found == pytest.approx(2 * quad(pinball, 0, 1, points=[0.25, 0.6])[0], rel=1e-6)


@pytest.mark.parametrize(("y", "mean", "s"), [(0.0, 0.0, 1.0), (2.0, -1.0, 0.5), (1.0, 1.2, 3.0)])
def test_the_normal_distribution_against_the_integral_and_a_fine_ensemble(y, mean, s):
    found = normal_crps([y], [mean], [s])
    assert found == pytest.approx(integral(y, stats.norm(mean, s).cdf, mean - 20 * s, mean + 20 * s), rel=1e-6)
    levels = (np.arange(4000) + 0.5) / 4000
    fine = stats.norm(mean, s).ppf(levels)
    assert crps([y], [fine]) == pytest.approx(found, rel=1e-3)
    assert crps([y], [fine], levels) == pytest.approx(found, rel=1e-3)


def test_values_by_hand():
    assert crps([3.0], [[1.0]]) == 2.0
    assert crps([0.0], [[-1.0, 1.0]]) == pytest.approx(0.5)  # 1 - 2/4
    assert normal_crps([0.0], [0.0], [1.0]) == pytest.approx((np.sqrt(2) - 1) / np.sqrt(np.pi))
    assert normal_crps([3.0, 0.0], [1.0, 0.0], [0.0, 1.0], sample_weight=[1, 0]) == 2.0
    assert crps([0.0], [[0.0, np.inf]]) == np.inf
    assert crps([1e9 + 3], [[1e9 + 1]]) == 2.0
    assert crps([0.0, 5.0], [[1.0], [2.0]], sample_weight=[3, 1]) == pytest.approx(1.5)


def test_the_order_of_an_ensemble_does_not_matter_and_the_true_law_is_best():
    y = RNG.standard_normal(2000)
    v = np.tile(stats.norm.ppf((np.arange(50) + 0.5) / 50), (2000, 1))
    best = crps(y, v)
    assert crps(y, v[:, ::-1]) == best
    assert best < min(crps(y, 1.3 * v), crps(y, v / 1.3), crps(y, v + 0.3))


def test_transforms_by_hand():
    assert pit([0.0, 1.0, 1.5, 9.0], [[1.0, 2.0]] * 4).tolist() == [0.0, 0.25, 0.5, 1.0]
    assert pit([1.5], [[1.0, 2.0, 3.0]], [0.1, 0.4, 0.8])[0] == pytest.approx(0.25)  # between 0.1 and 0.4
    assert pit_distance([0.5]) == 0.5
    assert pit_distance([0.1, 0.2, 0.9]) == pytest.approx(2 / 3 - 0.2)
    u = RNG.uniform(size=100)
    assert pit_distance(u) == pytest.approx(stats.kstest(u, "uniform").statistic)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"values has shape \(2, 3\): expected \(1, k\)"):
        crps([0.0], np.zeros((2, 3)))
    with pytest.raises(ValueError, match="values holds NaN"):
        crps([0.0], [[np.nan]])
    with pytest.raises(ValueError, match=r"levels=.*: expected 2 increasing numbers in \(0, 1\), one per column"):
        crps([0.0], [[0.0, 1.0]], [0.5, 0.4])
    with pytest.raises(ValueError, match="values decrease along a row: expected quantiles at increasing levels"):
        pit([0.0], [[1.0, 0.0]], [0.4, 0.5])
    with pytest.raises(ValueError, match="deviation has the entry -1.0"):
        normal_crps([0.0], [0.0], [-1.0])
    with pytest.raises(ValueError, match=r"transforms from 0.0 to 2.0: expected numbers in \[0, 1\]"):
        pit_distance([0.0, 2.0])
