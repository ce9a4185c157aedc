"""Tests of independence, equality and symmetry, and the paired bootstrap: values, level, power, degenerate input."""

from functools import partial

import numpy as np
import pytest
from scipy import stats as scipy_stats

from sosbands.stats import (
    TestResult,
    bootstrap_test,
    distance_correlation,
    hsic,
    independence_test,
    kruskal_wallis_test,
    sign_flip_test,
)
from sosbands.stats import tests as permutation_tests
from sosbands.stats.tests import _statistic, feature_independence_test, indicators

DRAWS, N, CANDIDATES = 150, 30, 10


def check_super_uniform(p_values):
    """P(p <= u) <= u at several levels, up to three standard errors."""
    p = np.asarray(p_values)
    for u in (0.05, 0.1, 0.2, 0.5):
        assert np.mean(p <= u) <= u + 3 * np.sqrt(u * (1 - u) / len(p))


def searched(seed):
    """Widths that follow many waves of x, and residuals that follow none."""
    rng = np.random.default_rng(seed)
    x, frequency = rng.uniform(-1, 1, N), np.arange(1, CANDIDATES + 1)
    return list(1.5 + np.sin(frequency[:, None] * 2 * x + frequency[:, None])), np.abs(rng.standard_normal(N))


def noise(seed, kind="symmetric", n=60):
    """Points, and residuals whose size depends on them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    eps = rng.standard_normal(n) if kind == "symmetric" else rng.gamma(1.5, size=n) - 1.5
    return X, np.sqrt(0.1 + 2 * X[:, 0] ** 2) * eps


# ---------------------------------------------------------------- levels


def one_candidate(seed, m):
    x, y = np.random.default_rng(seed).standard_normal((2, 20))
    return independence_test([x], [y], n_permutations=m, random_state=seed)


def best_of_candidates(seed, m, selected=None):
    widths, R = searched(seed)
    return independence_test(widths, [R] * CANDIDATES, selected=selected, n_permutations=m, random_state=seed)


def features_against_sizes(seed, m):
    rng = np.random.default_rng(seed)
    X, r = rng.uniform(-1, 1, (N, 2)), rng.standard_normal(N) if seed % 2 else rng.gamma(1.5, size=N) - 1.5
    return feature_independence_test(X, r, [0.2, 0.6], n_permutations=m, random_state=seed)


def groups(seed, m):
    return kruskal_wallis_test(
        np.random.default_rng(seed).exponential(size=(3, 6)), n_permutations=m, random_state=seed
    )


def signs(seed, m):
    return sign_flip_test(*noise(seed, n=20), 0.6, n_flips=m, random_state=seed)


def choice_of_the_best(seed, m):
    """Ten equally good candidates against an eleventh: taking the best is part of the null."""
    values = np.random.default_rng(seed).standard_normal((11, 50))
    pairs = [(row, row) for row in values]
    return bootstrap(lambda W, _: float(W.mean()), pairs, 0, n_bootstraps=m, random_state=seed)


NULLS = [one_candidate, best_of_candidates, features_against_sizes, groups, signs, choice_of_the_best]


def p_values(null, draws, m):
    return np.array([null(seed, m).p_value for seed in range(draws)])


@pytest.mark.parametrize("null", NULLS)
def test_p_values_are_super_uniform(null):
    p = p_values(null, DRAWS, 39)
    check_super_uniform(p)
    assert 0.4 < np.mean(p) < 0.6  # and not merely conservative


def test_the_check_rejects_a_test_at_the_selected_candidate():
    def naive(seed, m):
        widths, R = searched(seed)
        return best_of_candidates(seed, m, selected=int(np.argmax([hsic(W, R) for W in widths])))

    p = p_values(naive, DRAWS, 39)
    assert np.mean(p <= 0.05) > 0.15
    with pytest.raises(AssertionError):
        check_super_uniform(p)


@pytest.mark.parametrize("null", [one_candidate, signs])
def test_the_check_rejects_bare_fractions(null):
    p = p_values(null, 800, 9)
    check_super_uniform(p)
    with pytest.raises(AssertionError):
        check_super_uniform((p * 10 - 1) / 9)


# ---------------------------------------------------------------- widths against residuals


@pytest.mark.parametrize("kind", ["plain", "ties"])
@pytest.mark.parametrize("n", [2, 3, 10, 57])
def test_statistic_with_all_intervals_is_hsic(n, kind):
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    y = x**2 + rng.standard_normal(n)
    if kind == "ties":
        x, y = np.round(x), np.round(2 * y)
    value = _statistic(indicators(x, n - 1), indicators(y, n - 1))
    np.testing.assert_allclose(value, hsic(x, y), rtol=1e-10, atol=1e-14)


def test_coarse_statistic_is_near_hsic_and_distance_correlation():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=400)
    y = x * rng.standard_normal(400)
    raw = independence_test([x], [np.abs(y)], n_permutations=1, random_state=0)
    free = independence_test([x], [np.abs(y)], scale_free=True, n_permutations=1, random_state=0)
    assert raw.statistic == pytest.approx(hsic(x, np.abs(y)), rel=0.05)
    assert free.statistic == pytest.approx(distance_correlation(x, np.abs(y)) ** 2, rel=0.05)
    scaled = independence_test([7 * x], [3 * np.abs(y)], scale_free=True, n_permutations=1, random_state=0)
    assert scaled.statistic == pytest.approx(free.statistic, rel=1e-10)


def test_power():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=150)
    r = np.abs((0.1 + x) * rng.standard_normal(150))
    widths = [np.cos(20 * x), 1 + x, np.ones(150)]
    for options in ({}, {"selected": 1}, {"scale_free": True}):
        assert independence_test(widths, [r] * 3, random_state=0, **options).p_value <= 0.05
    assert independence_test(widths, [r] * 3, selected=2, random_state=0).p_value == 1


@pytest.mark.parametrize("constant", [np.zeros(30), np.full(30, 2.0), 1 + 1e-8 * np.arange(30)])
@pytest.mark.parametrize("scale_free", [False, True])
def test_constant_widths_or_residuals(constant, scale_free):
    y = np.random.default_rng(0).standard_normal(30)
    for pair in ((constant, y), (y, constant)):
        result = independence_test([pair[0]], [pair[1]], scale_free=scale_free, random_state=0)
        assert (result.statistic, result.p_value) == (0.0, 1.0)


def test_seeded_and_generators():
    widths, R = searched(0)
    first, again = (independence_test(widths, [R] * CANDIDATES, random_state=3) for _ in range(2))
    assert first == again
    assert first == independence_test(widths, [R] * CANDIDATES, random_state=np.random.default_rng(3))
    assert isinstance(first, TestResult)
    assert first.name == "max-statistic permutation"


# ---------------------------------------------------------------- features against sizes


def test_feature_test_has_power():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 1))
    r = np.sqrt(0.1 + 2 * X[:, 0] ** 2) * rng.standard_normal(100)
    first, again = (feature_independence_test(X, r, [0.15, 0.6], random_state=0) for _ in range(2))
    assert first == again
    assert first.p_value == 1 / 200
    assert feature_independence_test(X, r**3, [0.15, 0.6], random_state=0) == first  # ranks only


def test_feature_statistic_by_matrices():
    rng = np.random.default_rng(0)
    X, r = rng.uniform(size=(20, 2)), rng.standard_normal(20)
    u = (scipy_stats.rankdata(np.abs(r)) - 0.5) / 20
    H = np.eye(20) - 1 / 20
    K = H @ np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * 0.3**2)) @ H
    L = sum(np.outer(np.cos(np.pi * k * u), np.cos(np.pi * k * u)) / k**2 for k in range(1, 9))
    expected = np.trace(K @ L) / np.linalg.norm(K) / 20
    found = feature_independence_test(X, r, [0.3], random_state=0).statistic
    assert found == pytest.approx(expected, rel=1e-10)
    # what the cosine series adds up to, once centred
    v = np.linspace(0, 1, 400)
    energy, some = -np.abs(v[:, None] - v[None]) * np.pi**2 / 4, np.cos(3 * v) + v**4
    some = some - some.mean()
    cosines = np.array([some @ np.cos(np.pi * k * v) / k for k in range(1, 9)])
    assert np.square(cosines).sum() == pytest.approx(some @ energy @ some, rel=1e-3)


# ---------------------------------------------------------------- Kruskal-Wallis


@pytest.mark.parametrize("ties", [False, True])
def test_kruskal_wallis_equals_scipy(ties):
    for seed in range(8):
        groups = np.random.default_rng(seed).normal(size=(4, 12)) + 0.25 * np.arange(4)[:, None]
        groups = np.round(2 * groups) if ties else groups
        ours, theirs = kruskal_wallis_test(groups, random_state=0), scipy_stats.kruskal(*groups)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
        assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.035)
        assert ours.n_permutations == 2000


# ---------------------------------------------------------------- sign flips


def test_statistic_is_the_double_sum():
    X, r = noise(0, "gamma", 12)
    a = np.abs(r) / np.median(np.abs(r))
    T = sum(
        np.sign(r[i] * r[j])
        * np.exp(-((X[i, 0] - X[j, 0]) ** 2) / (2 * 0.6**2))
        * (np.exp(-abs(a[i] - a[j])) - np.exp(-(a[i] + a[j])))
        for i in range(12)
        for j in range(12)
        if i != j
    )
    assert sign_flip_test(X, r, 0.6, random_state=0).statistic == pytest.approx(T, rel=1e-12)
    assert sign_flip_test(X, -5 * r, 0.6, random_state=0).statistic == pytest.approx(T, rel=1e-12)


def test_the_check_rejects_a_null_without_new_signs():
    """A null of the observed signs in another order keeps their surplus, all that there is to see here."""

    def shuffled(X, r, ell, *, n_flips, random_state):
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(len(r)) for _ in range(n_flips)]
        null = [sign_flip_test(X, np.abs(r) * np.sign(r)[order], ell, n_flips=1).statistic for order in orders]
        observed = sign_flip_test(X, r, ell, n_flips=1)
        p = (1 + np.count_nonzero(np.array(null) >= observed.statistic - 1e-9)) / (1 + n_flips)
        return type(observed)(observed.statistic, p, n_flips, "shuffled")

    rng = np.random.default_rng(0)
    X, r = rng.uniform(-1, 1, (60, 1)), np.where(rng.uniform(size=60) < 0.25, 1.0, -1.0)
    options = {"n_flips": 99, "random_state": 0}
    check_power([sign_flip_test(X, r, np.inf, **options).p_value])
    assert shuffled(X, r, np.inf, **options).p_value == 1
    with pytest.raises(AssertionError):
        check_power([shuffled(X, r, np.inf, **options).p_value])


def check_power(p):
    assert np.mean(np.asarray(p) <= 0.05) > 0.8


def test_power_for_gamma_noise():
    p = [sign_flip_test(*noise(k, "gamma", 200), 0.6, n_flips=99, random_state=k).p_value for k in range(60)]
    check_power(p)


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(permutation_tests, "MAX_ROWS", 50)
    X, r = noise(0, "gamma", 400)
    first, again = (sign_flip_test(X, r, 0.6, random_state=1) for _ in range(2))
    assert first == again
    assert first != sign_flip_test(X, r, 0.6, random_state=2)


# ---------------------------------------------------------------- paired bootstrap


def bootstrap(criterion, pairs, reference, **options):
    criteria = [lambda rows, W=W, R=R: criterion(W[rows], R[rows]) for W, R in pairs]
    return bootstrap_test(criteria, len(pairs[0][0]), reference, **options)


def two_candidates(seed, n=80):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    R = np.abs((0.1 + x) * rng.standard_normal(n))
    return (x, R), (rng.permutation(x), R)


def test_bootstrap_finds_the_better_candidate_and_no_other():
    good, bad = two_candidates(0)
    result = bootstrap(hsic, [good, bad], 0, n_bootstraps=99, random_state=0)
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert bootstrap(hsic, [good, good], 1, n_bootstraps=99, random_state=0).p_value == 1
    result = bootstrap(hsic, [bad, good], 0, n_bootstraps=99, random_state=0)
    assert result.statistic == pytest.approx(hsic(*good) - hsic(*bad), rel=1e-12)
    assert result.p_value < 0.05


def test_bootstrap_is_paired():
    """All candidates see the same rows: noise that they share leaves no doubt about a constant gain."""
    rng = np.random.default_rng(0)
    W, R = rng.uniform(size=60), rng.exponential(size=60)
    pairs = [(W, R), (W, R + 0.01)]
    result = bootstrap(lambda _, residuals: float(residuals.mean()), pairs, 0, random_state=0)
    assert result.statistic == pytest.approx(0.01)
    assert result.p_value == 1 / 200
    unpaired = [(W, R), (W, rng.permutation(R) + 0.01)]
    assert bootstrap(lambda _, r: float(r.mean()), unpaired, 0, random_state=0).p_value > 0.2


# ---------------------------------------------------------------- degenerate and bad input


LINE, SAME = np.arange(10.0)[:, None], np.zeros((4, 1))
DEGENERATE = {
    "one pair": (lambda: independence_test([[1.0]], [[2.0]], random_state=0), 1),
    "two pairs, whose permutations are alike": (lambda: independence_test([[1, 2]], [[2, 5]], random_state=0), 1),
    "three in order: as extreme in reverse, two of six orders": (
        lambda: independence_test([[1, 2, 3]], [[1, 2, 3]], n_permutations=999, random_state=0),
        pytest.approx(1 / 3, abs=0.05),
    ),
    "sizes alike": (lambda: feature_independence_test(LINE, np.tile([1.0, -1.0], 5), [1.0], random_state=0), 1),
    "points alike": (lambda: feature_independence_test(0 * LINE, np.arange(10.0), [1.0], random_state=0), 1),
    "groups alike": (lambda: kruskal_wallis_test(np.full((3, 5), 0.7)), 1),
    "equal rank sums": (lambda: kruskal_wallis_test([[1.0, 3.0], [2.0, 2.0]], random_state=0), 1),
    "groups apart": (lambda: kruskal_wallis_test(np.arange(20.0).reshape(2, 10), random_state=1), 1 / 2001),
    "no residual": (lambda: sign_flip_test(LINE, np.zeros(10), 1.0, random_state=0), 1),
    "one residual": (lambda: sign_flip_test(LINE, np.eye(10)[0], 1.0, random_state=0), 1),
    "one row": (lambda: sign_flip_test(LINE[:1], [2.0], 1.0, random_state=0), 1),
    "two of one sign: half of the flips agree": (
        lambda: sign_flip_test(LINE[:2], [1.0, 1.0], 1.0, n_flips=999, random_state=0),
        pytest.approx(0.5, abs=0.06),
    ),
    "two of opposite signs: every flip is at least as large": (
        lambda: sign_flip_test(LINE[:2], [1.0, -1.0], 1.0, random_state=0),
        1,
    ),
    "four equal ones at one place: equal sums are ties, two of sixteen patterns": (
        lambda: sign_flip_test(SAME, np.full(4, 0.1), np.inf, n_flips=1999, random_state=0),
        pytest.approx(2 / 16, abs=0.03),
    ),
}


@pytest.mark.parametrize(("call", "p_value"), DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_input(call, p_value):
    assert call().p_value == p_value


BAD = [
    (independence_test, ([], []), "0 and 0 candidates"),
    (independence_test, ([[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]), "1 and 2 candidates"),
    (independence_test, ([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), r"residuals\[0\] has shape \(3,\)"),
    (independence_test, ([[1.0, 2.0], [1.0]], [[1.0, 2.0]] * 2), r"widths\[1\] has shape \(1,\)"),
    (independence_test, ([[1.0, np.nan]], [[1.0, 2.0]]), r"widths\[0\] holds NaN"),
    (partial(independence_test, selected=1), ([[1.0, 2.0]], [[1.0, 2.0]]), "selected=1"),
    (feature_independence_test, (LINE, np.ones(9), [1.0]), r"shapes \(10, 1\) and \(9,\)"),
    *(
        (kruskal_wallis_test, (groups,), "groups h")
        for groups in ([1.0, 2.0], [[1.0, 2.0]], [[], []], [[1.0], [2.0]], [[1.0, 2.0], [2.0, np.nan]])
    ),
    (sign_flip_test, (np.zeros(3), np.ones(3), 1.0), r"shapes \(3,\) and \(3,\)"),
    (sign_flip_test, (np.zeros((3, 1)), np.ones(2), 1.0), r"shapes \(3, 1\) and \(2,\)"),
    (sign_flip_test, (np.zeros((2, 1)), [1.0, np.nan], 1.0), "NaN"),
    (sign_flip_test, (np.zeros((2, 1)), [1.0, 2.0], 0.0), "lengthscale=0.0"),
    (bootstrap, (hsic, list(two_candidates(0)), 2), "reference=2"),
]


@pytest.mark.parametrize(("test", "given", "message"), BAD)
def test_bad_input_is_named(test, given, message):
    with pytest.raises(ValueError, match=message):
        test(*given)
