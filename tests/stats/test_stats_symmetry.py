"""The sign-flip test and the paired bootstrap: values, level, power, degenerate input."""

import numpy as np
import pytest

from sosbands.stats import bootstrap_test, hsic, sign_flip_test, symmetry

DRAWS = 200


def check_super_uniform(p_values):
    """P(p <= u) <= u at several levels, up to three standard errors."""
    p = np.asarray(p_values)
    for u in (0.05, 0.1, 0.2, 0.5):
        assert np.mean(p <= u) <= u + 3 * np.sqrt(u * (1 - u) / len(p))


def noise(seed, kind, n):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    eps = rng.standard_normal(n) if kind == "symmetric" else rng.gamma(1.5, size=n) - 1.5
    return X, np.sqrt(0.1 + 2 * X[:, 0] ** 2) * eps


def p_values(test, kind="symmetric", n=60, draws=DRAWS, flips=99):
    return np.array([test(*noise(k, kind, n), 0.6, n_flips=flips, random_state=k).p_value for k in range(draws)])


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


def test_super_uniform_for_symmetric_heteroscedastic_noise():
    p = p_values(sign_flip_test)
    check_super_uniform(p)
    assert 0.4 < p.mean() < 0.6


def test_the_check_rejects_a_p_value_without_the_one():
    def bare(*args, n_flips, random_state):
        result = sign_flip_test(*args, n_flips=n_flips, random_state=random_state)
        p = (result.p_value * (n_flips + 1) - 1) / n_flips
        return type(result)(result.statistic, p, n_flips, result.name)

    check_super_uniform(p_values(sign_flip_test, n=20, draws=800, flips=9))
    with pytest.raises(AssertionError):
        check_super_uniform(p_values(bare, n=20, draws=800, flips=9))


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
    check_power(p_values(sign_flip_test, "gamma", n=200, draws=60))


def test_degenerate_residuals():
    X = np.arange(6.0)[:, None]
    for r in (np.zeros(6), np.eye(6)[0]):
        assert sign_flip_test(X, r, 1.0, random_state=0).p_value == 1
    assert sign_flip_test(X[:1], [2.0], 1.0, random_state=0).p_value == 1
    # two residuals of one sign: half of the flips agree with them
    p = sign_flip_test(X[:2], [1.0, 1.0], 1.0, n_flips=999, random_state=0).p_value
    assert p == pytest.approx(0.5, abs=0.06)
    # of opposite signs: every flip is at least as large
    assert sign_flip_test(X[:2], [1.0, -1.0], 1.0, random_state=0).p_value == 1


def test_equal_sums_count_as_ties():
    """Four equal residuals at one place: sixteen sign patterns, two of them like the observed one."""
    p = sign_flip_test(np.zeros((4, 1)), np.full(4, 0.1), np.inf, n_flips=1999, random_state=0).p_value
    assert p == pytest.approx(2 / 16, abs=0.03)


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setattr(symmetry, "MAX_ROWS", 50)
    X, r = noise(0, "gamma", 400)
    first, again = (sign_flip_test(X, r, 0.6, random_state=1) for _ in range(2))
    assert first == again
    assert first != sign_flip_test(X, r, 0.6, random_state=2)


@pytest.mark.parametrize(
    ("X", "r", "ell", "message"),
    [
        (np.zeros(3), np.ones(3), 1.0, r"shapes \(3,\) and \(3,\)"),
        (np.zeros((3, 1)), np.ones(2), 1.0, r"shapes \(3, 1\) and \(2,\)"),
        (np.zeros((2, 1)), [1.0, np.nan], 1.0, "NaN"),
        (np.zeros((2, 1)), [1.0, 2.0], 0.0, "lengthscale=0.0"),
    ],
)
def test_bad_input_is_named(X, r, ell, message):
    with pytest.raises(ValueError, match=message):
        sign_flip_test(X, r, ell)


# ---------------------------------------------------------------- paired bootstrap


def two_candidates(seed, n=80):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    R = np.abs((0.1 + x) * rng.standard_normal(n))
    return (x, R), (rng.permutation(x), R)


def test_bootstrap_when_the_reference_is_best():
    good, bad = two_candidates(0)
    result = bootstrap_test(hsic, [good, bad], 0, random_state=0)
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert bootstrap_test(hsic, [good, good], 1, random_state=0).p_value == 1


def test_bootstrap_finds_the_better_candidate():
    good, bad = two_candidates(0)
    result = bootstrap_test(hsic, [bad, good], 0, random_state=0)
    assert result.statistic == pytest.approx(hsic(*good) - hsic(*bad), rel=1e-12)
    assert result.p_value < 0.05


def test_bootstrap_is_paired():
    """All candidates see the same rows: noise that they share leaves no doubt about a constant gain."""
    rng = np.random.default_rng(0)
    W, R = rng.uniform(size=60), rng.exponential(size=60)
    pairs = [(W, R), (W, R + 0.01)]
    result = bootstrap_test(lambda _, residuals: float(residuals.mean()), pairs, 0, random_state=0)
    assert result.statistic == pytest.approx(0.01)
    assert result.p_value == 1 / 200
    unpaired = [(W, R), (W, rng.permutation(R) + 0.01)]
    assert bootstrap_test(lambda _, r: float(r.mean()), unpaired, 0, random_state=0).p_value > 0.2


def test_bootstrap_level_over_the_choice_of_the_best():
    """Ten equally good candidates against an eleventh: taking the best is part of the null."""
    p = []
    for seed in range(DRAWS):
        values = np.random.default_rng(seed).standard_normal((11, 50))
        pairs = [(row, row) for row in values]
        p.append(bootstrap_test(lambda W, _: float(W.mean()), pairs, 0, n_bootstraps=49, random_state=seed).p_value)
    check_super_uniform(p)


def test_bootstrap_names_a_bad_reference():
    with pytest.raises(ValueError, match="reference=2"):
        bootstrap_test(hsic, list(two_candidates(0)), 2)
