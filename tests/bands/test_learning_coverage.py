"""Rows outside at a price, and the constant among the squares: what the solution says, paths, and the limits."""

from itertools import product

import numpy as np
import pytest

from contracts import matern52, values_at
from sosbands import learn_band_path, learn_bands
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.solvers import Status
from studies.reference import sdp

TOL = 1e-6
PENALTIES = {"trace_penalty": 0.1, "frobenius_penalty": 0.5}


def data(n=60, seed=0, d=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.5 + X[:, 0] ** 2) * (rng.gamma(1.5, size=n) - 1.5)


def learn(X, r, **settings):
    solution = learn_bands(X, r, **{"lengthscale": 0.5, "tol": TOL, **PENALTIES, **settings})
    assert solution.status == Status.CONVERGED
    assert -1e-12 <= solution.gap <= TOL
    return solution


# ---------------------------------------------------------------- rows outside


@pytest.mark.parametrize("penalty", [0.0, 0.3, np.inf])
def test_rows_at_their_ceiling_lie_outside_and_rows_below_it_on_the_band(penalty):
    X, r = data()
    bands = learn(X, r, learning_coverage=0.8, width_penalty=30.0, symmetry_penalty=penalty)
    sides = [
        (-r, bands.values_lower, bands.outside_lower, bands.active_lower),
        (r, bands.values_upper, bands.outside_upper, bands.active_upper),
    ]
    for target, f, outside, active in sides:
        assert np.all(target[outside] >= f[outside] - 1e-3)
        np.testing.assert_allclose(target[active], f[active], atol=2e-3)
        rest = np.setdiff1d(np.arange(len(r)), np.concatenate([outside, active]))
        assert np.all(target[rest] <= f[rest] + 1e-3)
    n_outside = len(bands.outside_lower) + len(bands.outside_upper)
    assert 4 <= n_outside <= 18
    assert bands.certificate["n_outside"] == n_outside
    assert f"outside        {len(bands.outside_lower)} points below, {len(bands.outside_upper)} above" in repr(bands)
    rms = np.sqrt(np.mean(r**2))
    worst = max(np.max(-r - bands.values_lower), np.max(r - bands.values_upper))
    assert bands.violation == pytest.approx(worst / rms, rel=1e-9)


def test_hard_bands_have_no_row_outside():
    bands = learn(*data(), symmetry_penalty=0.0)
    assert len(bands.outside_lower) == len(bands.outside_upper) == 0
    assert bands.violation <= 1e-9
    assert "outside" not in repr(bands)


def test_the_farthest_row_has_no_influence_once_it_is_outside():
    X, r = data()
    far = r.copy()
    far[np.argmax(r)] *= 50
    one, other = (learn(X, target, learning_coverage=0.8, width_penalty=30.0) for target in (r, far))
    np.testing.assert_allclose(other.values_upper, one.values_upper, atol=2e-2 * one.values_upper.max())
    hard = learn(X, far, width_penalty=30.0)
    assert hard.values_upper.max() > 20 * one.values_upper.max()


@pytest.mark.parametrize(("kind", "penalty"), [*product(["training", "operator"], [0.0, 1.0]), ("training", np.inf)])
def test_coverage_towards_one_tends_to_the_hard_problem(kind, penalty):
    X, r = data(30)
    settings = {"symmetry_kind": kind, "symmetry_penalty": penalty, "width_penalty": 1.0}
    hard, *soft = (learn(X, r, learning_coverage=c, **settings) for c in (1.0, 0.5, 0.9, 1 - 1e-9))
    most, some, nearly = (hard.primal_value - each.primal_value for each in soft)
    assert most > some > 1e-3 * hard.primal_value
    assert abs(nearly) <= 3 * TOL * hard.primal_value  # the price exceeds every multiplier
    np.testing.assert_allclose(soft[-1].values_upper, hard.values_upper, atol=1e-2 * hard.values_upper.max())


def test_without_a_price_the_bands_vanish():
    bands = learn(*data(), width_penalty=0.0, learning_coverage=0.9)
    assert bands.dual_value == bands.primal_value == 0
    assert not bands.values_lower.any()


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("kind", ["training", "operator"])
def test_the_share_outside_is_what_stationarity_allows(kind, penalty, coverage):
    """Rows outside pay the full price, and a constant on top of both functions does not lower the cost.

    With ``V'c = 1`` the operators ``A + s cc'`` are feasible for all s >= 0 on both sides at once, which leaves the
    symmetry penalty as it is. The derivative at s = 0 is not negative:
    ``sum of all multipliers <= 2 b + 2 lam1 c'c + 2 lam2 c'(A_lo + A_up)c``. A row strictly outside has the multiplier
    ``2 b/(n (1 - coverage))``, so the share of rows outside is at most
    ``(1 - coverage) (1 + (lam1 c'c + lam2 c'(A_lo + A_up)c) / b)``.
    """
    X, r = data(60)
    n, b, lam1, lam2 = len(r), 100.0, 0.5, 0.7
    bands = learn(
        X,
        r,
        lengthscale=0.4,
        width_penalty=b,
        trace_penalty=lam1,
        frobenius_penalty=lam2,
        learning_coverage=coverage,
        symmetry_penalty=penalty,
        symmetry_kind=kind,
        tol=1e-7,
    )
    V = bands.lower.features.V
    c = np.linalg.lstsq(V.T, np.ones(n), rcond=1e-13)[0]
    np.testing.assert_allclose(V.T @ c, 1.0, atol=1e-4)
    gamma_lo, gamma_up = bands.dual.gamma_lo, bands.dual.gamma_up
    curved = lam1 * c @ c + lam2 * c @ (bands.lower.operator + bands.upper.operator) @ c
    assert gamma_lo.sum() + gamma_up.sum() <= 2 * (b + curved) * (1 + 1e-3)
    # each term of the gap is not negative, (ceiling - gamma_i) (r_i - f_i)_+ among them
    ceiling = 2 * b / (n * (1 - coverage))
    assert max(gamma_lo.max(), gamma_up.max()) <= ceiling * (1 + 1e-12)
    for gamma, target, f in ((gamma_lo, -r, bands.values_lower), (gamma_up, r, bands.values_upper)):
        paid = (ceiling - gamma) * np.maximum(target - f, 0.0)
        assert paid.max() <= bands.primal_value - bands.dual_value + 1e-12 * bands.primal_value
    margin = 1e-3 * np.sqrt(np.mean(r**2))
    outside = np.mean((r > bands.values_upper + margin) | (-r > bands.values_lower + margin))
    assert outside <= (1 - coverage) * (1 + curved / b) * (1 + 1e-3)
    assert outside > 0 or coverage > 0.8


@pytest.mark.parametrize("tau", [0.05, 0.1, 0.25])
def test_with_weak_penalties_the_bands_are_quantiles_of_the_residuals(tau):
    """At repeated points far apart: the only value with fewer than tau m rows above it and at least tau m not below."""
    rng = np.random.default_rng(4)
    places, m = 4, 31
    X = np.repeat(np.arange(places, dtype=float)[:, None], m, axis=0)
    r = (1.0 + X[:, 0]) * rng.standard_normal(places * m) + 0.3
    bands = learn(
        X,
        r,
        lengthscale=0.05,
        width_penalty=1.0,
        trace_penalty=1e-5,
        frobenius_penalty=1e-4,
        learning_coverage=1 - 2 * tau,
        symmetry_penalty=0.0,
        tol=1e-7,
    )
    outside = int(np.floor(tau * m))  # tau m is no integer
    at = np.arange(places)[:, None].astype(float)
    for f, targets in ((bands.lower(at), -r), (bands.upper(at), r)):
        ordered = np.sort(targets.reshape(places, m), axis=1)[:, ::-1]
        np.testing.assert_allclose(f, np.maximum(ordered[:, outside], 0.0), atol=1e-3)


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("name", "values"),
    [("width_penalties", [1.0, 5.0, 30.0, 200.0]), ("learning_coverages", [0.5, 0.8, 0.95, 1.0, 0.9])],
)
@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
def test_paths_of_other_settings_equal_cold_solves(name, values, penalty):
    X, r = data(80)
    single = {"width_penalties": "width_penalty", "learning_coverages": "learning_coverage"}[name]
    fixed = {"lengthscale": 0.5, "tol": TOL, **PENALTIES, "symmetry_penalty": penalty, "solver": "newton"}
    fixed |= {"learning_coverage": 0.9} if single == "width_penalty" else {"width_penalty": 20.0}
    warm = list(learn_band_path(X, r, **{name: values}, **fixed))
    cold = [learn_bands(X, r, **fixed, **{single: value}) for value in values]
    for one, other in zip(warm, cold, strict=True):
        assert one.gap <= TOL
        assert one.dual_value == pytest.approx(other.dual_value, rel=2 * TOL)
    assert sum(s.decompositions for s in warm) < 0.8 * sum(s.decompositions for s in cold)


@pytest.mark.parametrize("given", [{}, {"symmetry_penalties": [1.0], "width_penalties": [1.0]}])
def test_a_path_is_along_one_setting(given):
    with pytest.raises(ValueError, match=f"{len(given)} of symmetry_penalties, .* were given: expected one"):
        learn_band_path(*data(10), **given)


# ---------------------------------------------------------------- the constant


def test_features_with_a_constant_are_those_of_the_kernel_plus_one():
    X = data(12, d=2)[0]
    features = learn_features(X, StationaryKernel("matern52", (0.7,)), "exact", constant=True)
    np.testing.assert_allclose(features.V.T @ features.V, matern52(X, X, 0.7) + 1, atol=1e-12)
    np.testing.assert_allclose(features.transform(X), features.V, atol=1e-8)
    np.testing.assert_allclose(features.kept(features.V), 1.0, atol=1e-12)
    assert features.constant == 1.0


@pytest.mark.parametrize("coverage", [0.8, 1.0])
def test_off_the_data_bands_with_the_constant_tend_to_a_constant(coverage):
    X, r = data()
    settings = {"learning_coverage": coverage, "width_penalty": 20.0, "symmetry_penalty": 0.0}
    far = np.array([[1e3], [-1e4], [1e5]])
    bands, without = (learn(X, r, constant=constant, **settings) for constant in (True, False))
    values = bands.upper(far)
    np.testing.assert_allclose(values, values[0], rtol=1e-9)
    assert values[0] > 0.1 * bands.values_upper.mean()
    np.testing.assert_allclose(without.upper(far), 0.0, atol=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 0.5, np.inf])
def test_the_constant_against_the_sdp(penalty):
    X, r = data(14)
    bands = learn(X, r, constant=True, learning_coverage=0.8, width_penalty=10.0, symmetry_penalty=penalty)
    K = matern52(X, X, 0.5) + 1
    w, Q = np.linalg.eigh(K)
    V = np.sqrt(np.maximum(w, 0))[:, None] * Q.T
    given = {"b": 10.0, "lam1": 0.1, "lam2": 0.5, "tau": 0.1}
    if penalty == 0:
        reference = sdp.asymmetric_sdp(V, V, r, **given)
    elif np.isinf(penalty):
        reference = sdp.symmetric_sdp(V, r, **given)
    else:
        reference = sdp.training_penalty_sdp(V, V, r, **given, lam_pen=penalty)
    assert bands.primal_value == pytest.approx(reference.value, rel=1e-5)
    np.testing.assert_allclose(bands.values_upper, values_at(reference.upper, V), atol=5e-3 * bands.values_upper.max())
