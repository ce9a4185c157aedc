"""The synthetic cases against hand-computed values and against simulations written a second time."""

import pickle
from dataclasses import replace
from functools import partial
from math import cos, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sosbands.datasets import CASE_NUMBERS, synthetic_case
from sosbands.datasets.synthetic import ScaledNoise

Z = 1.959963984540054  # the normal quantile at 0.975
LEVELS = [0.01, 0.05, 0.3, 0.5, 0.8, 0.95, 0.99]
CASES = [(1, 1), (2, 1), (2, 4), (3, 1), (4, 1), (5, 1), (6, 1), (6, 3)]

# Points of every sign of the scale; none where it vanishes, since the law of Y has an atom there.
POINTS = {
    (1, 1): [[-1.0], [-0.3], [0.0], [0.9]],
    (2, 1): [[-2.0], [-0.4], [1.3], [4.0]],
    (2, 4): [[0.2, -1.0, 2.0, -3.0], [-0.1, 0.0, 0.0, 0.0]],
    (3, 1): [[-1.0], [-0.2], [0.1], [0.7]],
    (4, 1): [[0.5], [pi / 2], [4.7], [12.0]],
    (5, 1): [[-1.0], [-0.4], [-0.1], [0.8]],
    (6, 1): [[0.0], [0.5], [1.0]],
    (6, 3): [[0.1, 0.2, 0.9], [1.0, 1.0, 1.0]],
}


def simulate(number, x, n, rng):
    """Draw n values of Y at the point x, from the printed definitions and not through the library."""
    t, z = x[0], rng.standard_normal(n)
    if number == 1:
        wave = sin(pi * (2 * t + 1 / 5)) + 0.2 * cos(4 * pi * (2 * t + 1 / 5))
        return (wave if 10 * t + 1 <= 9.6 else t - 9 / 10) + sqrt(0.1 + 2 * t**2) * z
    if number == 2:
        return 0.5 * sum(x) + sum(abs(sin(v)) for v in x) * z
    if number == 3:
        return sin(5 * t) + t * np.exp(z)
    if number == 4:
        return sin(t) + np.where(z < 0, 0.2 * z, (0.4 * (sin(t) + 1) + 0.1) * z)
    if number == 5:
        return sin(2 * t) - (0.5 + 2 * t) * np.log(rng.uniform(size=n))
    beta_x = sum(v / sqrt(len(x)) for v in x)
    return 2 * sin(pi * beta_x) + pi * beta_x + sqrt(1 + beta_x**2) * z


def assert_quantiles(draws, quantiles, levels=LEVELS, n_sigma=5.0):
    """Check that the number of draws below a true quantile is Binomial(n, level) within n_sigma."""
    n, levels = draws.shape[-1], np.asarray(levels)
    frequency = (draws[..., None, :] <= quantiles[..., :, None]).mean(axis=-1)
    z = (frequency - levels) / np.sqrt(levels * (1 - levels) / n)
    assert np.all(np.abs(z) <= n_sigma), f"worst deviation {np.abs(z).max():.1f} sigma"


def simulated(number, n_features, n=40_000):
    X = POINTS[number, n_features]
    rng = np.random.default_rng(100 * number + n_features)
    return np.array(X), np.array([simulate(number, x, n, rng) for x in X])


class UnsignedNoise(ScaledNoise):
    """A wrong noise: it forgets that a negative scale reverses the order of the quantiles."""

    def quantile(self, X, levels):
        return self.scale(X)[:, None] * self.law.ppf(levels)


class ClassicalSplitNoise:
    """A wrong noise for case 4: the split normal, whose lower half has mass s_lo / (s_lo + s_up)."""

    def __init__(self, noise):
        self.noise = noise

    def quantile(self, X, levels):
        s_lo, s_up = self.noise.scale_below(X)[:, None], self.noise.scale_above(X)[:, None]
        p = s_lo / (s_lo + s_up)
        below = s_lo * stats.norm.ppf(np.minimum(levels / (2 * p), 0.5))
        return np.where(levels < p, below, s_up * stats.norm.ppf(np.maximum(0.5, 1 - (1 - levels) / (2 - 2 * p))))


def unsigned(noise):
    return UnsignedNoise(noise.law, noise.scale)


def without_absolute_values(noise):
    return replace(noise, scale=lambda X: np.abs(np.sin(X).sum(axis=1)))


def test_case_numbers_and_the_settings_of_the_comparison():
    cases = [synthetic_case(number) for number in CASE_NUMBERS]
    assert CASE_NUMBERS == (1, 2, 3, 4, 5, 6)
    assert [c.number for c in cases] == list(CASE_NUMBERS)
    assert [c.n_learning for c in cases] == [100, 100, 100, 500, 100, 100]
    assert [c.width_penalty for c in cases] == [10, 100, 10, 10, 10, 0]
    assert [c.point_model for c in cases] == ["gp", "gp", "spline", "spline", "spline", "gp"]
    assert len({c.name for c in cases} | {synthetic_case(1, form="classical").name}) == 7
    assert synthetic_case(6, 5).n_features == 5


@pytest.mark.parametrize(
    ("number", "x", "expected"),
    [
        (1, [-0.1], 0.2),  # sin 0 + 0.2 cos 0
        (1, [0.15], 1.2),  # sin(π/2) + 0.2 cos(2π)
        (1, [0.025], sqrt(0.5) - 0.2),  # sin(π/4) + 0.2 cos π
        (1, [0.85], sin(1.9 * pi) + 0.2 * cos(7.6 * pi)),  # 10x + 1 = 9.5, still the wave
        (1, [0.87], -0.03),  # beyond the break
        (1, [1.0], 0.1),
        *(("classical", [-1.0], 0.2), ("classical", [-0.25], -0.8), ("classical", [-0.125], -sqrt(0.5) - 0.2)),
        *(("classical", [-0.03], -0.03), ("classical", [0.5], 0.5)),
        (2, [3.0], 1.5),
        (2, [1.0, -4.0, 6.0], 1.5),
        (3, [pi / 10], 1.0),
        (3, [-pi / 30], -0.5),
        (4, [pi / 2], 1.0),
        (4, [19 * pi / 6], -0.5),
        (5, [pi / 4], 1.0),
        (5, [-pi / 12], -0.5),
        (6, [0.5], 2 + pi / 2),
        (6, [1.0], pi),
        (6, [0.1, 0.2, 0.3, 0.4], 2 + pi / 2),  # β'x = 1.0 / 2
    ],
)
def test_location(number, x, expected):
    case = synthetic_case(1, form="classical") if number == "classical" else synthetic_case(number, len(x))
    assert case.location([x]) == pytest.approx([expected], abs=1e-12)


def test_the_two_forms_break_where_they_should_and_differ_in_location_only():
    appendix, classical = synthetic_case(1), synthetic_case(1, form="classical")
    eps = 1e-9
    for case, at, jump in [(appendix, 0.86, -0.04), (classical, -0.04, -0.04)]:
        left, right = case.location([[at - eps], [at + eps]])
        # Both breaks are at u = 9.6, where the wave is sin(1.92π) + 0.2 cos(7.68π).
        assert left == pytest.approx(sin(1.92 * pi) + 0.2 * cos(7.68 * pi), abs=1e-6)
        assert right == pytest.approx(jump, abs=1e-6)
    X = np.array([[-0.7], [0.2], [0.95]])
    widths = [np.diff(case.oracle_interval(X))[:, 0] for case in (appendix, classical)]
    np.testing.assert_allclose(*widths, rtol=1e-12)


@pytest.mark.parametrize(
    ("number", "x", "expected"),
    [
        (1, [0.0], [sin(0.2 * pi) + 0.2 * cos(0.8 * pi) + s * sqrt(0.1) * Z for s in (-1, 1)]),
        (2, [pi / 2, -pi / 2], [-2 * Z, 2 * Z]),
        (3, [pi / 10], [1 + pi / 10 * np.exp(-Z), 1 + pi / 10 * np.exp(Z)]),
        (3, [-pi / 10], [-1 - pi / 10 * np.exp(Z), -1 - pi / 10 * np.exp(-Z)]),
        (3, [0.0], [0.0, 0.0]),
        (4, [pi / 2], [1 - 0.2 * Z, 1 + 0.9 * Z]),
        (4, [3 * pi / 2], [-1 - 0.2 * Z, -1 + 0.1 * Z]),
        (5, [0.0], [-0.5 * np.log(0.975), -0.5 * np.log(0.025)]),
        (5, [-0.5], [-sin(1) + 0.5 * np.log(0.025), -sin(1) + 0.5 * np.log(0.975)]),
        (6, [1.0], [pi - sqrt(2) * Z, pi + sqrt(2) * Z]),
    ],
)
def test_oracle_interval_by_hand(number, x, expected):
    interval = synthetic_case(number, len(x)).oracle_interval([x], confidence_level=0.95)
    np.testing.assert_allclose(interval, [expected], atol=1e-12)


@pytest.mark.parametrize(("number", "d"), CASES)
def test_quantiles_agree_with_an_independent_simulation(number, d):
    X, draws = simulated(number, d)
    assert_quantiles(draws, synthetic_case(number, d).quantile(X, LEVELS))


@pytest.mark.parametrize(
    ("number", "d", "wrong"),
    [(3, 1, unsigned), (5, 1, unsigned), (4, 1, ClassicalSplitNoise), (2, 4, without_absolute_values)],
)
def test_the_simulation_check_rejects_wrong_noise(number, d, wrong):
    case, (X, draws) = synthetic_case(number, d), simulated(number, d)
    broken = replace(case, noise=wrong(case.noise))
    with pytest.raises(AssertionError, match="sigma"):
        assert_quantiles(draws, broken.quantile(X, LEVELS))
    if wrong is unsigned:  # right where the scale is positive
        upwards = case.noise.scale(X) > 0
        assert_quantiles(draws[upwards], broken.quantile(X[upwards], LEVELS))


@pytest.mark.parametrize(("number", "d"), CASES)
def test_conditional_samples_follow_the_quantiles(number, d):
    case, X = synthetic_case(number, d), np.array(POINTS[number, d])
    Y = case.sample_conditional(X, 20_000, random_state=7)
    assert Y.shape == (len(X), 20_000)
    assert_quantiles(Y, case.quantile(X, LEVELS))
    # Rows, and values within a row, are independent draws.
    ranks = stats.rankdata(Y, axis=1)
    assert abs(np.corrcoef(ranks[0], ranks[1])[0, 1]) < 5 / sqrt(20_000)
    assert abs(np.corrcoef(ranks[0, :-1], ranks[0, 1:])[0, 1]) < 5 / sqrt(20_000)


@pytest.mark.parametrize(("number", "d"), CASES)
def test_sampled_pairs_lie_below_their_quantile_as_often_as_the_level_says(number, d):
    case = synthetic_case(number, d)
    X, y = case.sample(20_000, random_state=3)
    gaps = y[None, :] - case.quantile(X, LEVELS).T  # a draw is below its quantile when its gap is below 0
    for gap, level in zip(gaps, LEVELS, strict=True):
        assert_quantiles(gap, np.zeros(1), [level])


@pytest.mark.parametrize(("number", "d"), CASES)
def test_law_of_the_features(number, d):
    X, _ = synthetic_case(number, d).sample(5000, random_state=11)
    support = {1: (-1, 2), 3: (-1, 2), 4: (0, 4 * pi), 5: (-1, 2), 6: (0, 1)}
    law = stats.norm() if number == 2 else stats.uniform(*support[number])
    assert X.shape == (5000, d)
    assert all(stats.kstest(column, law.cdf).pvalue > 1e-3 for column in X.T)
    assert X.min() >= law.support()[0]
    assert X.max() <= law.support()[1]
    correlations = np.atleast_2d(np.corrcoef(X.T)) - np.eye(d)
    assert np.abs(correlations).max() < 5 / sqrt(5000)


@given(
    which=st.sampled_from(CASES),
    levels=st.lists(st.floats(1e-300, 1 - 1e-12), min_size=2, max_size=8),
    seed=st.integers(0, 1000),
)
def test_quantiles_are_finite_and_increase_with_the_level(which, levels, seed):
    case = synthetic_case(*which)
    X, _ = case.sample(20, random_state=seed)
    Q = case.quantile(X, np.sort(levels))
    assert np.isfinite(Q).all()
    assert np.all(np.diff(Q, axis=1) >= -1e-12 * (1 + np.abs(Q[:, 1:])))


@pytest.mark.parametrize(("number", "d"), CASES)
def test_scalar_levels_oracle_and_pickled_cases_give_the_same_quantiles(number, d):
    case, X = synthetic_case(number, d), np.array(POINTS[number, d])
    Q = case.quantile(X, [0.05, 0.95])
    np.testing.assert_array_equal(case.quantile(X, 0.05), Q[:, 0])
    np.testing.assert_allclose(case.oracle_interval(X), Q, rtol=1e-12)
    assert np.all(Q[:, 0] < Q[:, 1])
    copy = pickle.loads(pickle.dumps(case))
    np.testing.assert_array_equal(copy.quantile(X, [0.05, 0.95]), Q)
    np.testing.assert_array_equal(copy.sample(5, 1)[1], case.sample(5, 1)[1])


@pytest.mark.parametrize("make", [int, np.int64, np.random.default_rng, np.random.RandomState])
def test_equal_random_states_give_equal_samples(make):
    case = synthetic_case(3)
    first, second = case.sample(50, make(5)), case.sample(50, make(5))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    X = first[0]
    np.testing.assert_array_equal(case.sample_conditional(X, 3, make(5)), case.sample_conditional(X, 3, make(5)))
    assert np.all(case.sample(50, make(6))[1] != first[1])


def test_a_generator_advances_and_no_seed_means_fresh_draws():
    case, rng = synthetic_case(5), np.random.default_rng(0)
    assert np.all(case.sample(10, rng)[1] != case.sample(10, rng)[1])
    assert np.all(case.sample(10)[1] != case.sample(10)[1])
    X, y = synthetic_case(6, 2).sample(0, random_state=0)
    assert (X.shape, y.shape) == ((0, 2), (0,))
    assert synthetic_case(4).sample_conditional([[1.0]], 0).shape == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "form", "message"),
    [
        ((0,), "appendix", r"number=0: expected an integer >= 1"),
        ((7,), "appendix", r"number=7: expected one of \(1, 2, 3, 4, 5, 6\)"),
        (("1",), "appendix", r"number='1': expected an integer"),
        ((2, 0), "appendix", r"n_features=0: expected an integer >= 1"),
        ((6, 2.0), "appendix", r"n_features=2.0: expected an integer"),
        *(((number, 2), "appendix", rf"n_features=2: case {number} expected 1") for number in (1, 3, 4, 5)),
        ((1,), "main", r"form='main': case 1 expected one of \('appendix', 'classical'\)"),
        ((2,), "classical", r"form='classical': case 2 expected one of \('appendix',\)"),
    ],
)
def test_errors_of_the_factory(arguments, form, message):
    with pytest.raises(ValueError, match=message):
        synthetic_case(*arguments, form=form)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([0.1, 0.2], r"X has shape \(2,\): case 2 expected \(n, 2\)"),
        ([[0.1]], r"X has shape \(1, 1\): case 2 expected \(n, 2\)"),
        ([[0.1, np.nan], [np.inf, 0.0]], r"X holds 2 values that are NaN or infinite"),
    ],
)
def test_errors_about_features(X, message):
    case = synthetic_case(2, 2)
    quantile, sample = partial(case.quantile, level=0.5), partial(case.sample_conditional, n_samples=1)
    for call in (case.location, case.oracle_interval, quantile, sample):
        with pytest.raises(ValueError, match=message):
            call(X)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, np.nan, [0.5, 1.5], [[0.5]]])
def test_errors_about_levels(level):
    case = synthetic_case(1)
    with pytest.raises(ValueError, match=r"^level=.*: expected a number in \(0, 1\) or a flat sequence"):
        case.quantile([[0.0]], level)
    with pytest.raises(ValueError, match=r"^confidence_level=.*: expected a number in \(0, 1\)$"):
        case.oracle_interval([[0.0]], confidence_level=level)


@pytest.mark.parametrize("value", [-1, 2.0, True, "3", None])
def test_errors_about_sizes_and_seeds(value):
    case = synthetic_case(1)
    with pytest.raises(ValueError, match=r"^n=.*: expected an integer >= 0"):
        case.sample(value)
    with pytest.raises(ValueError, match=r"^n_samples=.*: expected an integer >= 0"):
        case.sample_conditional([[0.0]], value)
    if value is not None:
        with pytest.raises(ValueError, match=r"^random_state=.*: expected an integer >= 0"):
            case.sample(3, random_state=value)
