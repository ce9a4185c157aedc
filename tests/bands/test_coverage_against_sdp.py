"""learn_bands with rows outside at a price: against CVXPY, against its own limits, and against what can be proved."""

import importlib.util

import numpy as np
import pytest

from benchmarks import against_sdp
from sosbands import learn_bands

needs_cvxpy = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="CVXPY is not installed (extra 'sdp')"
)
CASES = against_sdp.all_cases(largest=14)[:30]


@needs_cvxpy
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.index}-{case.kind}-{case.options}")
def test_values_and_functions_equal_those_of_the_sdp(case):
    row = against_sdp.compared(case)
    assert row["gap"] <= 1e-6
    assert abs(row["primal_off"]) <= 1e-4
    assert abs(row["dual_off"]) <= 1e-4
    assert row["function_off"] <= 1e-2


def test_every_kind_meets_every_coverage():
    met = {(case.kind, case.options["learning_coverage"]) for case in CASES}
    assert met == {(kind, c) for kind in against_sdp.KINDS for c in (0.5, 0.8, 0.9, 0.99, 1.0)}
    widths = [case.settings["width_penalty"] for case in against_sdp.all_cases()]
    assert len(widths) == 60
    assert 0.1 <= min(widths) < 0.3
    assert 100 < max(widths) <= 300


@needs_cvxpy
def test_a_wrong_share_is_noticed():
    """The comparison can fail: half of the share outside is another problem."""
    case = against_sdp.SDPCase(13, "training", {"learning_coverage": 0.8}, largest=14)
    other = against_sdp.SDPCase(13, "training", {"learning_coverage": 0.9}, largest=14)
    value = against_sdp.solve_reference(other).solution.value
    assert abs(against_sdp.solve_ours(case).primal_value - value) > 1e-2 * value


# ---------------------------------------------------------------- limits


def noisy(seed, n, d=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.3 + np.abs(X[:, 0])) * (rng.gamma(2.0, size=n) - 1.5)


@pytest.mark.parametrize("coverage", [0.8, 1.0])
@pytest.mark.parametrize("kind", ["training", "operator"])
def test_the_value_rises_with_the_symmetry_penalty_from_limit_to_limit(kind, coverage):
    X, r = noisy(1, 25)
    fixed = {"lengthscale": 0.5, "learning_coverage": coverage, "symmetry_kind": kind, "tol": 1e-6}
    penalties = [0.0, 1e-8, 1e-3, 0.1, 10.0, 1e3, 1e8, np.inf]
    found = [learn_bands(X, r, symmetry_penalty=penalty, **fixed) for penalty in penalties]
    values = [bands.dual_value for bands in found]
    assert max(bands.gap for bands in found) <= 1e-6
    assert values[1] == pytest.approx(values[0], rel=1e-4)
    assert values[-2] == pytest.approx(values[-1], rel=1e-4)
    assert values[-1] > 1.01 * values[0]
    assert np.all(np.diff(values) >= -2e-6 * np.array(values[1:]))


@pytest.mark.parametrize("kind", ["training", "operator"])
@pytest.mark.parametrize("penalty", [0.0, 1.0, np.inf])
def test_a_coverage_that_tends_to_one_gives_the_hard_problem(kind, penalty):
    X, r = noisy(2, 30)
    options = {"lengthscale": 0.5, "symmetry_kind": kind, "symmetry_penalty": penalty, "tol": 1e-6}
    hard, nearly, most = (learn_bands(X, r, learning_coverage=c, **options) for c in (1.0, 1 - 1e-9, 0.6))
    assert nearly.dual_value == pytest.approx(hard.dual_value, rel=3e-6)
    assert most.primal_value < 0.99 * hard.dual_value
    np.testing.assert_allclose(nearly.values_upper, hard.values_upper, atol=1e-2 * hard.values_upper.max())
    np.testing.assert_array_less(np.abs(r) - 1e-2, np.where(r > 0, nearly.values_upper, nearly.values_lower))


# ---------------------------------------------------------------- what can be proved about rows outside


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
    X, r = noisy(3, 60)
    n, b, lam1, lam2, tol = len(r), 100.0, 0.5, 0.7, 1e-7
    bands = learn_bands(
        X,
        r,
        lengthscale=0.4,
        width_penalty=b,
        trace_penalty=lam1,
        frobenius_penalty=lam2,
        learning_coverage=coverage,
        symmetry_penalty=penalty,
        symmetry_kind=kind,
        tol=tol,
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
    bands = learn_bands(
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
