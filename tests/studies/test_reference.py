"""The reference solvers against each other: primal by CVXPY, dual by the paper's recipe."""

import importlib.util
import math
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from contracts import matern52, square_root
from studies.reference import recipe, sdp
from studies.reference.recipe import paper_recipe, paper_recipe_operator

needs_cvxpy = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="CVXPY is not installed (extra 'sdp')"
)


def gaussian(X, Y, ell):
    return np.exp(-cdist(X, Y, "sqeuclidean") / (2 * ell**2))


@dataclass(frozen=True)
class Problem:
    K_lo: np.ndarray
    K_up: np.ndarray
    r: np.ndarray
    b: float
    lam1: float
    lam2: float

    @property
    def penalties(self):
        return {"b": self.b, "lam1": self.lam1, "lam2": self.lam2}

    @property
    def V_lo(self):  # other features than the recipe's: values must not depend on the choice
        return square_root(self.K_lo)

    @property
    def V_up(self):
        return square_root(self.K_up)


def draw(seed, n, d, kernel=matern52, *, ell=(0.5, 0.5), b=1.0, lam1=1.0, lam2=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    r = (0.5 + np.abs(X[:, 0])) * (rng.gamma(2.0, 1.0, n) - 2.0)
    return Problem(kernel(X, X, ell[0]), kernel(X, X, ell[1]), r, b, lam1, lam2)


PROBLEMS = {
    "matern-d1": draw(0, 12, 1),
    "gauss-d1-no-width": draw(1, 16, 1, gaussian, b=0.0, lam1=0.3),
    "matern-d2-no-trace": draw(2, 20, 2, b=10.0, lam1=0.0, lam2=0.5),
    "gauss-d3": draw(3, 25, 3, gaussian, ell=(1.0, 1.0), lam1=0.1, lam2=2.0),
    "matern-d1-two-lengthscales": draw(4, 15, 1, ell=(0.3, 0.9)),
    "gauss-d2-two-lengthscales": draw(5, 8, 2, gaussian, ell=(0.4, 1.5), b=5.0),
}
EQUAL_KERNELS = [name for name in PROBLEMS if "two" not in name]


def values(V, A):
    return np.einsum("ki,kl,li->i", V, A, V)


def training_primal(problem, V_lo, V_up, A_lo, A_up, lam_pen):
    """The primal objective, from the definition."""
    f_lo, f_up = values(V_lo, A_lo), values(V_up, A_up)
    omega = [problem.lam1 * np.trace(A) + problem.lam2 * np.sum(A**2) for A in (A_lo, A_up)]
    penalty = lam_pen * np.sum((f_lo - f_up) ** 2) if lam_pen > 0 else 0.0
    return problem.b * np.mean(f_lo + f_up) + sum(omega) + penalty


def solve_sdp(problem, lam_pen, **options):
    if lam_pen == math.inf:
        return sdp.symmetric_sdp(problem.V_lo, problem.r, **problem.penalties, **options)
    if lam_pen == 0:
        return sdp.asymmetric_sdp(problem.V_lo, problem.V_up, problem.r, **problem.penalties, **options)
    return sdp.training_penalty_sdp(
        problem.V_lo, problem.V_up, problem.r, **problem.penalties, lam_pen=lam_pen, **options
    )


def solve_recipe(problem, lam_pen, **options):
    return paper_recipe(problem.K_lo, problem.K_up, problem.r, **problem.penalties, lam_pen=lam_pen, **options)


# Primal against dual.


SOLVED = [(name, lam_pen, 0.0) for name in PROBLEMS for lam_pen in (0.0, 0.05, 1.0, 20.0, math.inf)]
SOLVED += [  # with points outside at a price: the multipliers have a ceiling
    (name, lam_pen, tau)
    for name in ("matern-d1", "matern-d2-no-trace", "matern-d1-two-lengthscales")
    for tau in (0.2, 0.4)
    for lam_pen in (0.0, 0.05, 20.0, math.inf)
]


@needs_cvxpy
@pytest.mark.parametrize(
    ("name", "lam_pen", "tau"), [each for each in SOLVED if each[1] < math.inf or "two" not in each[0]]
)
def test_primal_equals_dual(name, lam_pen, tau):
    problem = replace(PROBLEMS[name], b=30.0) if tau else PROBLEMS[name]
    primal, dual = (
        solve_sdp(problem, lam_pen, tau=tau),
        solve_recipe(problem, lam_pen, tau=tau, tol=1e-12 if tau else 1e-10),
    )
    assert primal.value > 0.1
    assert dual.value == pytest.approx(primal.value, rel=1e-4)
    # Strong convexity makes the functions unique, whatever the features.
    atol = (1e-2 if tau else 5e-3) * np.max(np.abs(problem.r))
    np.testing.assert_allclose(values(problem.V_lo, primal.lower), values(dual.V_lo, dual.lower), atol=atol)
    np.testing.assert_allclose(values(problem.V_up, primal.upper), values(dual.V_up, dual.upper), atol=atol)
    if (name, lam_pen) == ("matern-d1", 1.0):  # a = 2 lam_pen (f_up - f_lo) at the optimum
        gap = values(dual.V_up, dual.upper) - values(dual.V_lo, dual.lower)
        np.testing.assert_allclose(dual.alpha_0, 2 * gap, atol=1e-2)
    if lam_pen == math.inf:
        assert dual.alpha_0 is None
        np.testing.assert_array_equal(dual.lower, dual.upper)
    if lam_pen == math.inf and not tau:  # two-sided: the value is that of both functions, whose penalty is zero
        A, V = primal.lower, problem.V_lo
        assert training_primal(problem, V, V, A, A, 1.0) == pytest.approx(primal.value, rel=1e-6)
    if tau:
        ceiling = problem.b / (problem.r.size * (2 * tau if lam_pen == math.inf else tau))
        both = np.concatenate([dual.gamma_lower, dual.gamma_upper])
        assert both.min() >= 0
        assert both.max() == ceiling, "no point lies outside: a test of nothing"


@needs_cvxpy
@pytest.mark.parametrize(
    ("name", "lam_pen1", "lam_pen2", "tau"),
    [(name, *pair, 0.0) for name in EQUAL_KERNELS[:3] for pair in ((0.0, 0.5), (0.7, 0.5), (0.3, 5.0))]
    + [("matern-d1", lam_pen1, 0.5, 0.3) for lam_pen1 in (0.0, 0.7)],
)
def test_operator_penalty_primal_equals_dual(name, lam_pen1, lam_pen2, tau):
    problem = replace(PROBLEMS[name], b=20.0) if tau else PROBLEMS[name]
    weights = {"lam_pen1": lam_pen1, "lam_pen2": lam_pen2, "tau": tau, **problem.penalties}
    primal = sdp.operator_penalty_sdp(problem.V_lo, problem.r, **weights)
    dual = paper_recipe_operator(problem.K_lo, problem.r, **weights, tol=1e-12 if tau else 1e-10)
    assert dual.value == pytest.approx(primal.value, rel=1e-4)
    np.testing.assert_array_equal(dual.W, dual.W.T)
    if tau:
        assert max(dual.gamma_lower.max(), dual.gamma_upper.max()) == problem.b / (problem.r.size * tau)
        return
    D = primal.lower - primal.upper
    penalty = lam_pen1 * np.sum(np.abs(np.linalg.eigvalsh(D))) + lam_pen2 * np.sum(D**2)
    V = problem.V_lo
    cost = training_primal(problem, V, V, primal.lower, primal.upper, 0.0) + penalty
    assert primal.value == pytest.approx(cost, rel=1e-6)


@pytest.mark.parametrize("lam_pen", [0.0, 1.0, math.inf])
def test_a_high_ceiling_changes_nothing(lam_pen):
    problem = PROBLEMS["matern-d1"]
    hard, high = (solve_recipe(problem, lam_pen, tau=tau, tol=1e-10) for tau in (0.0, 1e-9))
    assert high.value == pytest.approx(hard.value, rel=1e-6)


@needs_cvxpy
def test_a_large_nuclear_penalty_makes_the_operators_equal():
    problem = PROBLEMS["matern-d1"]
    weights = {"lam_pen1": 100.0, "lam_pen2": 0.1, **problem.penalties}
    dual = paper_recipe_operator(problem.K_lo, problem.r, **weights, tol=1e-10)
    assert dual.value == pytest.approx(solve_sdp(problem, math.inf).value, rel=1e-4)


@needs_cvxpy
@pytest.mark.parametrize("lam_pen", [0.0, 1.0, math.inf])
def test_the_literal_tolerance_gives_a_lower_bound(lam_pen):
    problem = PROBLEMS["gauss-d3"]
    optimum = solve_sdp(problem, lam_pen).value
    assert solve_recipe(problem, lam_pen).value <= optimum * (1 + 1e-7)
    assert solve_recipe(problem, lam_pen, max_iterations=3).value < 0.999 * optimum


# The limits of the penalty.


@needs_cvxpy
def test_values_run_from_asymmetric_to_symmetric():
    problem = PROBLEMS["matern-d1"]
    path = [0.0, 1e-5, 1e-2, 1.0, 1e2, 1e5, math.inf]
    solved = [solve_sdp(problem, lam_pen).value for lam_pen in path]
    assert np.all(np.diff(solved) > -1e-6)
    assert solved[1] == pytest.approx(solved[0], rel=1e-3)
    assert solved[-2] == pytest.approx(solved[-1], rel=1e-3)
    assert solved[-1] > 1.1 * solved[0]


# The SDP by itself.


@needs_cvxpy
@pytest.mark.parametrize("lam_pen", [0.0, 1.0, math.inf])
def test_sdp_solution_satisfies_the_optimality_conditions(lam_pen):
    problem = PROBLEMS["matern-d1-two-lengthscales" if lam_pen < math.inf else "matern-d1"]
    found, r = solve_sdp(problem, lam_pen), problem.r
    f_lo, f_up = values(problem.V_lo, found.lower), values(problem.V_up, found.upper)
    targets = (np.abs(r), np.abs(r)) if lam_pen == math.inf else (-r, r)
    a = 2 * lam_pen * (f_up - f_lo) if 0 < lam_pen < math.inf else np.zeros_like(r)
    assert found.status == "optimal"
    for V, A, f, target, g, c in [
        (problem.V_lo, found.lower, f_lo, targets[0], found.dual_lower, found.dual_lower + a),
        (problem.V_up, found.upper, f_up, targets[1], found.dual_upper, found.dual_upper - a),
    ]:
        assert np.min(np.linalg.eigvalsh(A)) > -1e-6
        assert np.min(f - target) > -1e-6
        assert np.min(g) > -1e-6
        assert abs(g @ (f - target)) < 1e-4
        # A = [V Diag(c - b/n) V' - lam1 I]_+ / (2 lam2)
        M = (V * (c - problem.b / r.size)) @ V.T - problem.lam1 * np.eye(len(V))
        w, U = np.linalg.eigh(M)
        np.testing.assert_allclose(A, (U * np.maximum(w, 0)) @ U.T / (2 * problem.lam2), atol=1e-3)
    cost = training_primal(problem, problem.V_lo, problem.V_up, found.lower, found.upper, min(lam_pen, 1.0))
    assert found.value == pytest.approx(cost, rel=1e-6)


@needs_cvxpy
@pytest.mark.parametrize("lam_pen", [0.0, 1.0, math.inf])
def test_scs_and_clarabel_agree(lam_pen):
    problem = PROBLEMS["matern-d1"]
    scs, clarabel = (solve_sdp(problem, lam_pen, solver=name) for name in ("SCS", "CLARABEL"))
    assert scs.value == pytest.approx(clarabel.value, rel=1e-5)
    np.testing.assert_allclose(scs.dual_upper, clarabel.dual_upper, atol=1e-2)
    weights = {"lam_pen1": 0.3, "lam_pen2": 0.5, **problem.penalties}
    scs, clarabel = (
        sdp.operator_penalty_sdp(problem.V_lo, problem.r, **weights, solver=name) for name in ("SCS", "CLARABEL")
    )
    assert scs.value == pytest.approx(clarabel.value, rel=1e-5)


@needs_cvxpy
def test_what_is_not_solved_is_an_error_or_a_status():
    V = np.array([[1.0, 0.0]])  # f vanishes at the second point, whose residual is positive
    with pytest.raises(sdp.SDPError, match="infeasible"):
        sdp.asymmetric_sdp(V, V, np.array([1.0, 1.0]), b=1.0, lam1=1.0, lam2=1.0)
    with pytest.raises(sdp.SDPError):
        solve_sdp(PROBLEMS["matern-d1"], 1.0, max_iter=2)
    assert solve_sdp(PROBLEMS["matern-d1"], 1.0, solver="SCS", max_iters=50).status == "optimal_inaccurate"


def test_infinite_penalties_are_refused_by_the_finite_problems():
    problem, one = PROBLEMS["matern-d1"], {"b": 1.0, "lam1": 1.0, "lam2": 1.0}
    with pytest.raises(ValueError, match="symmetric_sdp"):
        sdp.training_penalty_sdp(problem.V_lo, problem.V_up, problem.r, **one, lam_pen=math.inf)
    with pytest.raises(ValueError, match="finite"):
        sdp.operator_penalty_sdp(problem.V_lo, problem.r, **one, lam_pen1=0.0, lam_pen2=math.inf)


def test_importing_the_reference_does_not_load_cvxpy():
    code = (
        "import sys, studies.reference, studies.reference.sdp, studies.reference.recipe;"
        "sys.exit('cvxpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# The recipe by itself.


def duals():
    problem = draw(7, 9, 2, ell=(0.4, 0.8), lam1=0.2)
    weights = (problem.b, problem.lam1, problem.lam2)
    lower, upper = recipe._Side(problem.V_lo, *weights), recipe._Side(problem.V_up, *weights)
    return {
        "asymmetric": recipe._TrainingDual(lower, upper, problem.r, 0.0),
        "training": recipe._TrainingDual(lower, upper, problem.r, 0.3),
        "symmetric": recipe._SymmetricDual(lower, problem.r),
        "operator": recipe._OperatorDual(lower, problem.r, 0.2, 0.4),
    }


@pytest.mark.parametrize("kind", ["asymmetric", "training", "symmetric", "operator"])
def test_gradient_matches_finite_differences(kind):
    dual, rng = duals()[kind], np.random.default_rng(0)
    lowest = np.array([-1.0 if low is None else low for low, _ in dual.bounds])
    x, h = rng.uniform(lowest, 1.0), 1e-6
    # The dual is a function of sym(W): a general direction also checks the symmetrised storage.
    for direction in rng.standard_normal((10, x.size)):
        ahead, behind = (dual.objective(x + step * direction)[0] for step in (h, -h))
        slope = dual.objective(x)[1] @ direction
        assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-6)


def test_features_are_the_cholesky_factor_or_of_a_singular_kernel_the_square_root_without_jitter():
    K = PROBLEMS["matern-d1"].K_lo
    V = recipe._features(K)
    np.testing.assert_array_equal(V, np.triu(V))
    np.testing.assert_allclose(V.T @ V, K, atol=1e-14)
    X = np.repeat(np.random.default_rng(1).uniform(-1, 1, (6, 1)), 2, axis=0)
    K = gaussian(X, X, 2.0)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(K)
    V = recipe._features(K)
    np.testing.assert_allclose(V.T @ V, K, atol=1e-14)


@needs_cvxpy
def test_singular_kernel_gives_the_value_of_the_sdp():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.uniform(-1, 1, (6, 1)), 2, axis=0)
    K, r = gaussian(X, X, 0.5), rng.standard_normal(12)
    problem = Problem(K, K, r, 1.0, 0.5, 1.0)
    assert solve_recipe(problem, 1.0, tol=1e-10).value == pytest.approx(solve_sdp(problem, 1.0).value, rel=1e-4)


def test_callback_sees_every_iteration_and_stops_the_run():
    problem, seen = PROBLEMS["matern-d1"], []

    def stop_at_the_fifth(gamma_lo, gamma_up, alpha_0, seconds):
        seen.append((gamma_lo, gamma_up, alpha_0, seconds))
        return len(seen) == 5

    result = solve_recipe(problem, 1.0, tol=0.0, callback=stop_at_the_fifth)
    assert result.iterations == len(seen) == 5
    assert "StopIteration" in result.message
    np.testing.assert_array_equal(result.gamma_lower, seen[-1][0])
    np.testing.assert_array_equal(result.gamma_upper, seen[-1][1])
    np.testing.assert_array_equal(result.alpha_0, seen[-1][2])
    assert np.any(seen[0][2] != seen[-1][2])
    times = [entry[3] for entry in seen]
    assert np.all(np.diff([0.0, *times, result.seconds]) > 0)
    # The reported value belongs to the reported multipliers.
    side = recipe._Side(result.V_lo, problem.b, problem.lam1, problem.lam2)
    dual = recipe._TrainingDual(side, side, problem.r, 1.0)
    assert result.value == pytest.approx(-dual.objective(np.concatenate(seen[-1][:3]))[0], rel=1e-12)


@pytest.mark.parametrize("lam_pen", [0.0, 1.0, math.inf])
def test_decompositions_are_counted(lam_pen, monkeypatch):
    problem, calls, eigh = PROBLEMS["matern-d1"], [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda M: calls.append(M.shape) or eigh(M))
    result = solve_recipe(problem, lam_pen)
    assert result.decompositions == len(calls)
    assert result.iterations > 0
    calls.clear()
    shapes, n = set(), problem.r.size
    weights = {"lam_pen1": 0.1, "lam_pen2": 0.5, **problem.penalties}
    seen = {"callback": lambda _lo, _up, W, _seconds: shapes.add(W.shape)}
    operator = paper_recipe_operator(problem.K_lo, problem.r, **weights, **seen)
    assert operator.decompositions == len(calls)
    assert shapes == {(n, n)} == {operator.W.shape}
    assert operator.alpha_0 is None


def test_zero_tolerance_runs_to_the_iteration_limit_and_a_side_without_positive_targets_vanishes():
    problem = PROBLEMS["matern-d1"]
    assert solve_recipe(problem, 1.0, tol=0.0, max_iterations=30).iterations == 30
    result = paper_recipe(problem.K_lo, problem.K_up, np.abs(problem.r), **problem.penalties, lam_pen=0.0, tol=1e-10)
    np.testing.assert_array_equal(result.lower, 0.0)
    np.testing.assert_array_equal(result.gamma_lower, 0.0)


def test_wrong_penalties_are_refused():
    problem = PROBLEMS["matern-d1-two-lengthscales"]
    with pytest.raises(ValueError, match="same kernel"):
        solve_recipe(problem, math.inf)
    with pytest.raises(ValueError, match="non-negative"):
        solve_recipe(problem, -1.0)
    with pytest.raises(ValueError, match="lam2 > 0"):
        paper_recipe(problem.K_lo, problem.K_up, problem.r, b=1.0, lam1=1.0, lam2=0.0, lam_pen=1.0)
    with pytest.raises(ValueError, match="tau"):
        solve_recipe(problem, 1.0, tau=0.5)
    with pytest.raises(ValueError, match="lam_pen2"):
        paper_recipe_operator(problem.K_lo, problem.r, **problem.penalties, lam_pen1=1.0, lam_pen2=0.0)
