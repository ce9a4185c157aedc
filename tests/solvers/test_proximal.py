"""The proximal point method on problems close to a linear semidefinite program."""

import sys
from unittest.mock import patch

import numpy as np
import pytest

from contracts import check_concavity, check_gradient, check_hessian_product, dense, omega_star
from sosbands import learn_band_path, learn_bands
from sosbands.exceptions import NotCertifiedWarning
from sosbands.problems import OperatorPenaltyProblem, SideTerm, TrainingPenaltyProblem
from sosbands.solvers import Status, proximal, solve
from sosbands.solvers.proximal import Centre, ProximalStep, solve_proximal

STIFF = {"tiny residuals": (1e6, 1e4, 0.0), "no trace penalty": (1e6, 0.0, 0.0), "rows outside": (1e6, 1e4, 0.1)}
PENALTIES = [(0.0, 1e3), (3e3, 1e-2)]


def stiff_problem(b, lam1, tau, lam_pen, n=15):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, 2))
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))
    V = np.linalg.cholesky(K + 1e-10 * np.eye(n)).T
    return OperatorPenaltyProblem(SideTerm.of(V, b=b, lam1=lam1, lam2=0.5, tau=tau), rng.standard_normal(n), *lam_pen)


def dual_by_hand(problem, z):
    """The dual value from its formula, with dense matrices."""
    n, V, cost = problem.n, problem.terms[0].space.V, problem.terms[0].cost
    point = problem.dual_point(z)
    w = np.linalg.eigvalsh(point.W)
    excess = np.maximum(np.abs(w) - problem.penalty.lam_pen1, 0.0)
    value = float((point.gamma_up - point.gamma_lo) @ problem.r - (excess @ excess) / (4 * problem.penalty.lam_pen2))
    for gamma, sign in ((point.gamma_lo, -1), (point.gamma_up, 1)):
        value -= omega_star((V * (gamma - cost.b / n)) @ V.T + sign * point.W, cost.lam1, cost.lam2)[0]
    return value


@pytest.mark.parametrize("lam_pen", PENALTIES)
@pytest.mark.parametrize("cost", STIFF.values(), ids=STIFF.keys())
def test_stiff_problems_are_certified(cost, lam_pen, monkeypatch):
    problem = stiff_problem(*cost, lam_pen)
    bases = problem.principal_bases()
    monkeypatch.setattr(type(problem), "principal_bases", lambda _: bases)
    with patch.object(np.linalg, "eigh", wraps=np.linalg.eigh) as made:
        result = solve_proximal(problem, np.zeros(problem.n_variables), 1e-4, 10_000)
    assert result.decompositions == made.call_count
    certificate = result.certificate
    assert result.status == Status.CONVERGED
    assert -1e-12 <= certificate.gap <= 1e-4
    assert np.array_equal(problem.bounds.clip(result.variables), result.variables)
    assert certificate.dual_value == pytest.approx(dual_by_hand(problem, result.variables), rel=1e-8)
    assert certificate.primal_value == pytest.approx(problem.objective(certificate.sides), rel=1e-10)
    if problem.is_hard:
        assert certificate.violation <= 1e-9
        for side, target in zip(certificate.sides, problem.targets, strict=True):
            values = np.square(side.B.T @ problem.terms[0].space.V).sum(axis=0)
            values += side.ridge * problem.terms[0].space.identity_values
            assert np.all(values >= target - 1e-9)


def test_it_finds_the_optimum_of_newtons_method():
    problem = stiff_problem(1e3, 1e2, 0.0, (0.0, 10.0))
    known = solve(problem, tol=1e-7, solver="newton").certificate
    found = solve_proximal(problem, np.zeros(problem.n_variables), 1e-6, 10_000).certificate
    assert found.dual_value <= known.primal_value * (1 + 1e-12)
    assert known.dual_value <= found.primal_value * (1 + 1e-12)
    assert found.gap <= 1e-6


def test_auto_takes_it_for_stiff_operators_only(monkeypatch):
    taken = []
    module = sys.modules[solve.__module__]  # the package shows the function of the same name
    monkeypatch.setattr(module, "solve_proximal", lambda part, *rest: taken.append(part) or solve_proximal(part, *rest))
    stiff, easy = stiff_problem(1e6, 1e4, 0.0, (0.0, 1e3)), stiff_problem(1.0, 1.0, 0.0, (0.0, 1.0))
    term = stiff.terms[0]
    for problem in (stiff, easy, TrainingPenaltyProblem(term, term, stiff.r, 1.0)):
        assert solve(problem, tol=1e-3).certificate.gap <= 1e-3
    assert taken == [stiff]
    solve(stiff, tol=1e-3, solver="newton")
    assert taken == [stiff]


def test_newtons_method_ends_what_proximal_steps_leave(monkeypatch):
    monkeypatch.setattr(proximal, "PRODUCTS", 50)
    problem = stiff_problem(1e6, 1e4, 0.0, (0.0, 1e3))
    left = solve_proximal(problem, np.zeros(problem.n_variables), 1e-6, 10_000)
    assert left.status == Status.ITERATION_LIMIT
    assert left.certificate.dual_value <= left.certificate.primal_value
    result = solve(problem, tol=1e-6)
    assert result.status == Status.CONVERGED
    assert result.certificate.gap <= 1e-6 < left.certificate.gap
    assert result.decompositions > left.decompositions


def slow_problem(n):
    rng = np.random.default_rng(0)
    X, _, r = rng.standard_normal((n, 3)), rng.standard_normal(n), rng.standard_normal(n)
    return X, np.rint(r)


def test_strong_symmetry_and_width_penalties_are_certified_with_little_work():
    bands = learn_bands(
        *slow_problem(25),
        symmetry_kind="operator",
        symmetry_penalty=1e3,
        width_penalty=1e3,
        frobenius_penalty=1e-3,
        normalize=True,
    )
    assert bands.status == "converged"
    assert bands.gap <= 1e-4
    assert bands.decompositions < 800  # 540; through relaxed problems 1078, and each of these costs five times as much


def test_a_limit_of_iterations_is_kept():
    X, r = slow_problem(15)
    settings = {"symmetry_kind": "operator", "width_penalty": 1e6, "trace_penalty": 1e3}
    with pytest.warns(NotCertifiedWarning, match="iteration limit") as caught:
        (bands,) = learn_band_path(X, r, [1e3], tol=1e-8, max_iterations=5, **settings)
    assert caught[0].filename == __file__
    assert bands.gap > 1e-8
    assert bands.iterations < 50


# ---------------------------------------------------------------- one step


every_penalty = pytest.mark.parametrize("lam_pen", [(0.0, 0.7), (0.3, 0.05)], ids=["plain", "nuclear"])


def turned(lam_pen, tau=0.0, n=9, p=6):
    """A problem in features with a diagonal Gram matrix."""
    rng = np.random.default_rng(3)
    V = rng.standard_normal((p, n))
    V = np.linalg.eigh(V @ V.T)[1].T @ V
    term = SideTerm.of(V, b=2.0, lam1=0.5, lam2=0.5, tau=tau)
    return OperatorPenaltyProblem(term, rng.standard_normal(n), *lam_pen)


class WrongMetric(ProximalStep):
    """The derivative of the coupling forgets the weights of the directions."""

    def _coupling_derivative(self, z):
        return self.penalty.derivative(self._pulled(z))


@every_penalty
def test_derivatives_of_a_step(lam_pen):
    problem = turned(lam_pen)
    lower, upper = (B @ B.T / 4 for B in np.random.default_rng(4).standard_normal((2, problem.p, 2)))
    centre = Centre((lower, upper), 0.5 * (lower - upper), np.zeros(problem.n_variables))
    for check in (check_gradient, check_hessian_product, check_concavity):
        check(ProximalStep(problem, centre, 0.2))
    with pytest.raises(AssertionError):
        check_hessian_product(WrongMetric(problem, centre, 0.2))


@every_penalty
@pytest.mark.parametrize("tau", [0.0, 0.2])
@pytest.mark.parametrize("sigma", [1.0, 0.01])
def test_the_optimum_is_its_own_fixed_point(lam_pen, tau, sigma):
    problem = turned(lam_pen, tau)
    z = solve(problem, tol=1e-10, solver="newton").variables
    state = problem.state(z)
    operators = tuple(dense(side.primal) for side in state.sides)
    step = ProximalStep(problem, Centre(operators, state.slope, z), sigma)
    at = step.start()
    assert max(step.residual(at), step.moved(at)) <= 1e-5 / sigma
    after = step.next_centre(at)
    np.testing.assert_allclose(after.variables, z, atol=1e-12)
    for found, known in zip(after.operators, operators, strict=True):
        np.testing.assert_allclose(found, known, atol=1e-5 / sigma)
    # elsewhere it is none
    far = ProximalStep(problem, Centre((operators[1], operators[0]), state.slope, z), sigma)
    assert far.moved(far.start()) > 0.05
