"""Units: the scaling law of the problem, normalised penalties, and the reuse of their scale."""

import numpy as np
import pytest

from contracts import matern52, omega_star, square_root
from sosbands import learn_bands
from sosbands.bands import learn, penalty_scale
from sosbands.bands.prepare import root_mean_square, solver_units
from sosbands.bands.settings import PenaltyScale, SymmetryPenalty
from sosbands.exceptions import ScaleError
from sosbands.kernels import median_lengthscale
from sosbands.problems import FeatureSpace, OneSidedProblem, SideCost, SideTerm
from sosbands.solvers import Status, solve

TOL = 1e-6
GRID = np.linspace(-1.2, 1.2, 200)[:, None]


def data(seed=0, n=20):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 1))
    return X, (0.3 + X[:, 0] ** 2) * rng.gumbel(size=n)


def certified(*args, **options):
    solution = learn_bands(*args, **{"tol": TOL, "lengthscale": 0.4, **options})
    assert solution.status == Status.CONVERGED
    assert solution.gap <= options.get("tol", TOL)
    return solution


def assert_same_functions(f, g, factor=1.0, rel=5e-3):
    """Same function up to the square root of the gaps."""
    expected = factor * g(GRID)
    assert np.abs(f(GRID) - expected).max() <= rel * np.abs(expected).max()


@pytest.mark.parametrize("variance", [1e200, 1e-200])
def test_absurd_kernel_variance_is_a_named_error(variance):
    X, r = data()
    with pytest.raises(ScaleError):
        learn_bands(variance * matern52(X, X, 0.4), r, kernel="precomputed")


# ---------------------------------------------------------------- the solver's units


def test_solver_units_state_the_same_problem():
    """Value of the objective and of the dual in both units, at an arbitrary point."""
    X, r = data(5, 12)
    V = 3.0 * square_root(matern52(X, X, 0.4))
    given = SideCost(2.0, 0.5, 3.0)
    variance = float(np.square(V).sum(axis=0).max())
    units = solver_units(r, variance, given)
    assert units.cost.lam2 == 0.5
    assert root_mean_square(r / units.rms) == pytest.approx(1.0, rel=1e-14)
    user = OneSidedProblem(SideTerm(FeatureSpace(V), given), r)
    solver = OneSidedProblem(SideTerm(FeatureSpace(V / np.sqrt(variance)), units.cost), r / units.rms)
    z = np.random.default_rng(0).uniform(0, 20, 12)
    assert user.value_and_grad(units.multiplier * z)[0] == pytest.approx(
        units.value * solver.value_and_grad(z)[0], rel=1e-10
    )
    in_user_units, in_solver_units = user.certificate(units.multiplier * z), solver.certificate(z)
    assert in_user_units.primal_value == pytest.approx(units.value * in_solver_units.primal_value, rel=1e-9)
    # lam_pen sum (f_lo - f_up)^2, f = rms f'
    training = units.symmetry(SymmetryPenalty(0.0, 0.7, "training"))
    assert 0.7 * units.rms**2 == pytest.approx(units.value * training.lam_pen2, rel=1e-12)
    operator = units.symmetry(SymmetryPenalty(0.4, 0.7, "operator"))
    # lam_pen1 ||A||_* + lam_pen2 ||A||^2, A = rms/variance A'
    unit = units.rms / variance
    assert 0.4 * unit == pytest.approx(units.value * operator.lam_pen1, rel=1e-12)
    assert 0.7 * unit**2 == pytest.approx(units.value * operator.lam_pen2, rel=1e-12)


def test_root_mean_square_neither_overflows_nor_underflows():
    assert root_mean_square(np.array([3.0, -4.0])) == pytest.approx(np.sqrt(12.5), rel=1e-15)
    assert root_mean_square(np.array([3e300, -4e300])) == pytest.approx(np.sqrt(12.5) * 1e300, rel=1e-14)
    assert root_mean_square(np.array([3e-300, -4e-300])) == pytest.approx(np.sqrt(12.5) * 1e-300, rel=1e-14)
    assert root_mean_square(np.zeros(3)) == 0.0


@pytest.mark.parametrize(
    ("kind", "penalty"), [("training", 0.2), ("operator", (0.3, 0.2))], ids=["training", "operator"]
)
def test_multipliers_are_in_the_users_units(kind, penalty):
    """At the returned multipliers the user's own dual has the returned dual value, alpha_0 and W included."""
    X, r = data(6, 12)
    r, n, b, lam1, lam2 = 40 * r, 12, 2.0, 0.5, 3.0
    weights = {"width_penalty": b, "trace_penalty": lam1, "frobenius_penalty": lam2}
    options = {"kernel": "precomputed", "lengthscale": "median", "symmetry_kind": kind, "symmetry_penalty": penalty}
    solution = certified(5.0 * matern52(X, X, 0.4), r, **options, **weights)
    V, point = solution.lower.features.V, solution.dual
    value = (point.gamma_up - point.gamma_lo) @ r
    if kind == "training":
        W, coupling = 0.0, point.alpha_0 @ point.alpha_0 / (4 * penalty)
    else:
        W = point.W
        coupling = np.sum(np.maximum(np.abs(np.linalg.eigvalsh(W)) - penalty[0], 0) ** 2) / (4 * penalty[1])
    sides = zip(point.weights if kind == "training" else (point.gamma_lo, point.gamma_up), (-1, 1), strict=True)
    value -= coupling + sum(omega_star((V * (c - b / n)) @ V.T + sign * W, lam1, lam2)[0] for c, sign in sides)
    assert value == pytest.approx(solution.dual_value, rel=1e-9)


# ---------------------------------------------------------------- normalised penalties


@pytest.mark.parametrize(
    ("kind", "penalty"),
    [("training", 0.0), ("training", 1.0), ("training", np.inf), ("operator", 1.0), ("operator", (0.5, 2.0))],
)
def test_normalised_bands_are_equivariant(kind, penalty):
    X, r = data(8, 15)
    options = {"normalize": True, "symmetry_kind": kind, "symmetry_penalty": penalty}
    one, small, swapped = (certified(X, c * r, **options) for c in (1, 1e-5, -300))
    for c, two, (lower, upper) in ((1e-5, small, (one.lower, one.upper)), (300, swapped, (one.upper, one.lower))):
        assert two.primal_value == pytest.approx(c * one.primal_value, rel=1e-5)
        assert_same_functions(two.lower, lower, c)
        assert_same_functions(two.upper, upper, c)


def test_penalty_scale_against_a_direct_solve():
    X, r = data(9, 25)
    rms = np.sqrt(np.mean(r**2))
    V = square_root(matern52(X, X, median_lengthscale(X)))
    problem = OneSidedProblem(SideTerm.of(V, b=1.0, lam1=1.0, lam2=1.0), np.abs(r) / rms)
    direct = solve(problem, tol=1e-8)
    assert direct.certificate.gap <= 1e-8
    (side,) = direct.certificate.sides
    scale = penalty_scale(X, r, tol=1e-8)
    assert scale.n == 25
    assert scale.rms == pytest.approx(rms, rel=1e-13)
    assert scale.width == pytest.approx(side.f.mean(), rel=1e-3)
    assert scale.trace == pytest.approx(side.trace, rel=1e-3)
    assert scale.squared_norm == pytest.approx(side.squared_norm, rel=1e-3)


def test_apply_by_hand():
    scale = PenaltyScale(rms=2.0, width=4.0, trace=5.0, squared_norm=8.0, n=10)
    cost = scale.cost(SideCost(20.0, 1.0, 1.0))
    assert (cost.b, cost.lam1, cost.lam2) == pytest.approx((5.0, 0.2, 1 / 8 / 2), rel=1e-14)
    given = scale.symmetry(SymmetryPenalty(0.0, 3.0, "training"))
    assert (given.lam_pen1, given.lam_pen2) == pytest.approx((0.0, 3.0 / (10 * 16) / 2), rel=1e-14)
    given = scale.symmetry(SymmetryPenalty(3.0, 3.0, "operator"))
    assert (given.lam_pen1, given.lam_pen2) == pytest.approx((3 / 5, 3 / 8 / 2), rel=1e-14)
    limits = scale.symmetry(SymmetryPenalty(0.0, np.inf, "training"))
    assert limits.is_symmetric
    assert not limits.is_asymmetric


@pytest.mark.parametrize(("kind", "penalty"), [("training", 2.0), ("operator", (0.5, 2.0))])
def test_normalised_penalties_are_the_literal_ones_divided(kind, penalty):
    """normalize=True is the literal problem on r/rms with the divided penalties, its bands multiplied back."""
    X, r = data(11)
    scale = penalty_scale(X, r, tol=TOL)
    pair = (0.0, penalty) if kind == "training" else penalty
    divided = (
        pair[1] / (scale.n * scale.width**2)
        if kind == "training"
        else (pair[0] / scale.trace, pair[1] / scale.squared_norm)
    )
    literal = certified(
        X,
        r / scale.rms,
        width_penalty=10 / scale.width,
        trace_penalty=1 / scale.trace,
        frobenius_penalty=1 / scale.squared_norm,
        symmetry_penalty=divided,
        symmetry_kind=kind,
    )
    automatic = certified(X, r, normalize=True, symmetry_penalty=penalty, symmetry_kind=kind)
    reused = certified(X, r, normalize=scale, symmetry_penalty=penalty, symmetry_kind=kind)
    for solution in (automatic, reused):
        assert solution.primal_value == pytest.approx(scale.rms * literal.primal_value, rel=1e-5)
        assert_same_functions(solution.lower, literal.lower, scale.rms)
    assert reused.primal_value == pytest.approx(automatic.primal_value, rel=1e-12)


def test_penalty_scale_of_nothing():
    with pytest.raises(ValueError, match="residuals"):
        penalty_scale(np.zeros((3, 1)), np.zeros(3))


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_the_initial_model_is_solved_by_the_solver_asked_for(solver, monkeypatch):
    asked = []
    monkeypatch.setattr(learn, "solve", lambda *a, **k: asked.append(k["solver"]) or solve(*a, **k))
    X, r = data(14)
    learn_bands(X, r, normalize=True, solver=solver)
    assert asked == [solver, solver]  # the initial model, and the bands
