"""The contract of a solver on every solver and kind of problem, on broken solvers, and what `solve` promises."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from contracts import (
    CASES,
    check_certificate,
    check_known,
    check_optimum,
    low_rank_features,
    manufacture,
    of_every_kind,
    parts_of,
)
from sosbands import learn_bands
from sosbands._threads import ONE_THREAD
from sosbands.exceptions import ProblemShapeError
from sosbands.problems import (
    AsymmetricProblem,
    OneSidedProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.problems.certificate import Certificate
from sosbands.problems.side import Box
from sosbands.solvers import Status, newton, solve, subspace
from sosbands.solvers.newton import conjugate_gradients, solve_newton
from sosbands.solvers.solve import SOLVERS, solve_lbfgs

every_solver = pytest.mark.parametrize("solver", ["newton", "subspace", "lbfgs"])
PENALTIES = {"b": 1.0, "lam1": 0.2, "lam2": 0.8}


@pytest.fixture(autouse=True)
def small_first_subspaces(monkeypatch):
    """With the usual first subspace, small problems would be solved in all of their features at once."""
    monkeypatch.setattr(subspace, "START", 5)


# ---------------------------------------------------------------- the contract of a solver


def check_result(problem, result, tol):
    """A certificate that belongs to the returned point, and a status that says what it shows."""
    certificate = result.certificate
    assert (result.status == Status.CONVERGED) == (certificate.gap <= tol)
    assert certificate.gap >= -1e-12
    assert np.array_equal(problem.bounds.clip(result.variables), result.variables)
    value, _ = problem.value_and_grad(result.variables)
    # a bound by a Cholesky factor lies a little below the value of the point
    slack = 1e-4 if max(max(part.dimensions) for part in parts_of(problem)) >= subspace.BOUNDED else 1e-10
    below = value - certificate.dual_value
    assert -1e-10 * abs(value) <= below <= slack * abs(value), "not the value of the returned point"
    assert certificate.primal_value == pytest.approx(problem.objective(certificate.sides), rel=1e-10)
    assert certificate.violation >= 0
    assert certificate.violation <= 1e-9 or not any(part.is_hard for part in parts_of(problem))
    assert result.iterations >= 0
    assert result.decompositions > 0
    assert result.seconds > 0
    assert min(row.gap for row in result.history) >= -1e-12


def check_solver_on_case(case, solver):
    result = check_optimum(case.problem(), case, solver)
    check_result(case.problem(), result, 1e-6)
    return result.certificate.dual_value


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_solvers_agree_with_one_another_and_with_the_sdp(case):
    values = [check_solver_on_case(case, solver) for solver in ("auto", *SOLVERS)]
    assert max(values) - min(values) <= 1e-6 * max(values)


def too_early(problem, start, tol, max_iterations):
    """Says converged at a hundred times the gap."""
    return replace(SOLVERS["lbfgs"](problem, start, 100 * tol, max_iterations), status=Status.CONVERGED)


def another_point(problem, start, tol, max_iterations):
    """Returns a point next to the certified one."""
    result = SOLVERS["newton"](problem, start, tol, max_iterations)
    return replace(result, variables=result.variables * 1.001)


def flattering(problem, start, tol, max_iterations):
    """Reports the dual value of a smaller space, which is too large."""
    bases = tuple(np.eye(term.space.p, 3) for term in problem.terms)
    result = SOLVERS["newton"](problem, start, tol, max_iterations)
    value, _ = problem.restricted(bases).value_and_grad(problem.project(result.variables, bases))
    primal = result.certificate.primal_value
    raised = replace(result.certificate, dual_value=value, gap=(primal - value) / primal)
    return replace(result, certificate=raised)


@pytest.mark.parametrize("broken", [too_early, another_point, flattering])
def test_contract_rejects_broken_solvers(broken, monkeypatch):
    monkeypatch.setitem(SOLVERS, "broken", broken)
    with pytest.raises(AssertionError):
        check_solver_on_case(CASES["training 1, two kernels"], "broken")


# ---------------------------------------------------------------- known optima


@every_solver
@pytest.mark.parametrize(("n", "lam_pen"), [(150, 0.0), (60, 1e-3), (60, 0.1), (60, 10.0)])
def test_manufactured_optimum(n, lam_pen, solver):
    known = manufacture(low_rank_features(n), **PENALTIES, lam_pen=lam_pen, seed=n)
    term = SideTerm.of(known.V, **PENALTIES)
    given = (term, term, known.r)
    problem = TrainingPenaltyProblem(*given, lam_pen) if lam_pen else AsymmetricProblem(*given)
    result = solve(problem, tol=1e-6, solver=solver)
    check_result(problem, result, 1e-6)
    check_known(result, known, PENALTIES["lam2"])


@pytest.mark.parametrize(("lam1", "tol"), [(PENALTIES["lam1"], 1e-2), (1.0005 * PENALTIES["lam1"], 1e-6)])
def test_manufactured_check_rejects_a_loose_solve_and_another_problem(lam1, tol):
    known = manufacture(low_rank_features(60), **PENALTIES, seed=60)
    term = SideTerm.of(known.V, **PENALTIES | {"lam1": lam1})
    result = solve(AsymmetricProblem(term, term, known.r), tol=tol)
    with pytest.raises(AssertionError):
        check_known(result, known, PENALTIES["lam2"])


# ---------------------------------------------------------------- stiff problems


@pytest.mark.parametrize(
    ("kind", "penalty"),
    [("training", 0.0), ("training", 1.0), ("training", np.inf), ("operator", 1.0), ("operator", (1e-3, 1.0))],
)
def test_tiny_residuals_with_literal_penalties_are_certified(kind, penalty):
    """Nearly a linear semidefinite program: the Frobenius penalty is 1e-9 of the others."""
    rng = np.random.default_rng(0)
    n = 8 if isinstance(penalty, tuple) else 25  # the nuclear part makes a second kink, and slow going
    X, r = rng.uniform(-1, 1, (n, 2)), rng.standard_normal(n)
    r *= 1e-6 / np.sqrt(np.mean(r**2))
    bands = learn_bands(X, r, width_penalty=1000.0, symmetry_penalty=penalty, symmetry_kind=kind)
    assert bands.status == Status.CONVERGED
    assert -1e-12 <= bands.gap <= 1e-4
    assert np.all(bands.lower(X) >= -r - 1e-8 * 1e-6)
    assert np.all(bands.upper(X) >= r - 1e-8 * 1e-6)


# ---------------------------------------------------------------- what `solve` promises


@every_solver
@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("name", ["training 1e-3", "operator 1", "symmetric"])
def test_iteration_limit_is_kept_and_its_bounds_hold(name, limit, solver):
    case = CASES[name]
    result = solve(case.problem(), tol=1e-10, solver=solver, max_iterations=limit)
    assert result.status == Status.ITERATION_LIMIT
    assert result.iterations <= limit
    check_result(case.problem(), result, 1e-10)
    check_certificate(case.problem(), case, result.certificate)


def blas_threads():
    return [pool["num_threads"] for pool in ThreadpoolController().info() if pool["user_api"] == "blas"]


class SeesThreads(SymmetricProblem):
    """Notes the number of BLAS threads at every evaluation."""

    def value_and_grad(self, z):
        self.seen = getattr(self, "seen", []) + blas_threads()
        return super().value_and_grad(z)


class Fails(SymmetricProblem):
    def value_and_grad(self, z):  # noqa: ARG002
        raise RuntimeError("on purpose")


def test_blas_threads_are_one_inside_and_restored_after():
    rng = np.random.default_rng(5)
    term, r = SideTerm.of(low_rank_features(60), **PENALTIES), rng.standard_normal(60)
    ONE_THREAD._controller = None  # libraries that other tests loaded are found anew
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        problem = SeesThreads(term, r)
        assert solve(problem, tol=1e-6, solver="newton").certificate.gap <= 1e-6
        assert set(problem.seen) == {1}
        assert blas_threads() == before
        with pytest.raises(RuntimeError, match="on purpose"):
            solve(Fails(term, r), solver="newton")
        assert blas_threads() == before
        with ThreadPoolExecutor(4) as pool:
            solved = pool.map(lambda k: solve(SymmetricProblem(term, k * r)).certificate.gap, range(1, 25))
            assert max(solved) <= 1e-4
        assert blas_threads() == before


def test_a_start_of_the_wrong_shape_and_unknown_solvers_are_named():
    problem = CASES["asymmetric"].problem()
    for shape in ((), (3,), (24, 1), (25,)):
        with pytest.raises(ValueError, match=r"start has shape .*expected \(24,\)"):
            solve(problem, np.zeros(shape))
    for name in ("", "Newton", "cg", None):
        with pytest.raises(ValueError, match=r"solver=.* is not known: expected one of \['auto', 'lbfgs', 'newton'"):
            solve(problem, solver=name)


@every_solver
def test_start_is_used_and_not_written_to(solver):
    """From an optimal start a solve is over at once."""
    problem = CASES["training 0.5"].problem()
    optimal = solve(problem, tol=1e-8, solver="newton").variables
    before = optimal.copy()
    result = solve(CASES["training 0.5"].problem(), optimal, tol=1e-6, solver=solver)
    assert result.certificate.gap <= 1e-6
    assert np.array_equal(optimal, before)
    cold = solve(CASES["training 0.5"].problem(), tol=1e-6, solver=solver)
    assert result.decompositions < cold.decompositions
    assert result.iterations <= 1 or solver == "subspace"


@every_solver
def test_asymmetric_problem_is_solved_by_parts(solver):
    case = CASES["asymmetric, two kernels, b=0"]
    whole = solve(case.problem(), tol=1e-6, solver=solver)
    assert whole.certificate.gap <= 1e-6
    halves = [
        solve(OneSidedProblem(SideTerm.of(V, **case.penalties), target), tol=1e-6, solver=solver)
        for V, target in zip(case.features, case.targets(), strict=True)
    ]
    assert np.array_equal(whole.variables, np.concatenate([half.variables for half in halves]))
    assert whole.certificate.dual_value == sum(half.certificate.dual_value for half in halves)
    assert whole.certificate.primal_value == sum(half.certificate.primal_value for half in halves)
    assert whole.decompositions == sum(half.decompositions for half in halves)
    assert whole.iterations == sum(half.iterations for half in halves)
    assert len(whole.history) == sum(len(half.history) for half in halves)
    assert len(whole.bases) == (2 if solver == "subspace" else 0)


@pytest.mark.parametrize("kind", ["symmetric", "training", "asymmetric", "operator"])
def test_decompositions_of_relaxed_problems_are_counted(kind):
    rng = np.random.default_rng(9)
    term, r = SideTerm.of(low_rank_features(30, 1, 0.8), b=1e5, lam1=1e4, lam2=0.5), rng.standard_normal(30)
    problem = of_every_kind(term, r)[kind]
    with patch.object(np.linalg, "eigh", wraps=np.linalg.eigh) as made:
        result = solve(problem, tol=1e-4, solver="newton")
    assert result.certificate.gap <= 1e-4
    assert result.decompositions == made.call_count
    assert result.iterations > len(result.history), "no relaxed problem was solved first"


# ---------------------------------------------------------------- what a solver asks of a problem


class Least:
    """A problem with the four members, and nothing else: ``-|z - target|^2``, whose certificate is its value."""

    def __init__(self, target, lower, upper):
        self.target, self.bounds, self.decompositions = np.array(target), Box(np.array(lower), np.array(upper)), 0

    def value_and_grad(self, z):
        return -float(np.sum((z - self.target) ** 2)), -2 * (z - self.target)

    def certificate(self, z):
        value, best = self.value_and_grad(z)[0], self.value_and_grad(self.bounds.clip(self.target))[0]
        return Certificate(value, best, best - value, 0.0, ())


@pytest.mark.parametrize("solver", ["newton", "subspace", "auto"])
def test_a_problem_with_the_four_members_only_is_refused_by_other_solvers(solver):
    problem = Least([1.0], [0.0], [1.0])
    assert solve(problem, solver="lbfgs").status == Status.CONVERGED
    with pytest.raises(ProblemShapeError, match=rf"solver='{solver}' needs .* BandDual .*, which Least is not"):
        solve(problem, solver=solver)


class Second(Least):
    """The same with second derivatives."""

    curvature = 2.0

    def hessian_product(self, z, support):  # noqa: ARG002
        return lambda d: 2 * d

    def preconditioner(self, z, free, shift):  # noqa: ARG002
        return None


@pytest.mark.parametrize(("solver", "kind"), [(solve_lbfgs, Least), (solve_newton, Second)])
def test_problems_that_are_no_more_than_a_solver_asks_for_are_solved_in_their_box(solver, kind):
    problem = kind([3.0, -1.0, 0.2, 0.7], [0.0] * 4, [1.0, 1.0, 1.0, 0.5])
    result = solver(problem, np.array([0.5, 0.5, 0.5, 9.0]), 1e-10, 100)
    assert result.status == Status.CONVERGED
    np.testing.assert_allclose(result.variables, [1.0, 0.0, 0.2, 0.5], atol=1e-5)


# ---------------------------------------------------------------- conjugate gradients


@pytest.mark.parametrize("shift", [0.0, 0.7])
@pytest.mark.parametrize("with_inverse", [False, True])
def test_conjugate_gradients_reach_the_residual_they_promise(with_inverse, shift):
    rng = np.random.default_rng(8)
    B = rng.standard_normal((30, 30))
    H, chosen = B @ B.T + 0.1 * np.eye(30), np.arange(30) % 3 > 0
    A, rhs = H[np.ix_(chosen, chosen)] + shift * np.eye(20), rng.standard_normal(20)
    products = []

    def product(v):
        products.append(1)
        return H @ v

    inverse = (lambda v: np.linalg.solve(A, v)) if with_inverse else None
    goal = 1e-2 * np.linalg.norm(rhs)
    x, image, solved = conjugate_gradients(product, chosen, shift, rhs, inverse, goal)
    assert solved
    assert not x[~chosen].any()
    assert np.linalg.norm(A @ x[chosen] - rhs) <= goal
    np.testing.assert_allclose(image, H @ x, atol=1e-10)
    assert len(products) == 1 or not with_inverse  # the exact inverse needs one step


def test_conjugate_gradients_say_when_they_stop_short(monkeypatch):
    monkeypatch.setattr(newton, "CG_ITERATIONS", 2)
    rising = np.geomspace(1, 1e6, 50)
    _, _, solved = conjugate_gradients(lambda v: rising * v, rising > 0, 0.0, np.ones(50), None, 1e-2)
    assert not solved


def quadratic_model(H, grad, moving, *, exact=True):
    """Newton's model of a problem with this Hessian, with its inverse as preconditioner, and the step zero."""

    def preconditioner(_z, free, shift):
        return (lambda v: np.linalg.solve(H[np.ix_(free, free)] + shift * np.eye(len(v)), v)) if exact else None

    problem = SimpleNamespace(
        curvature=1.0,
        hessian_product=lambda _z, support: lambda v: H[np.ix_(support, support)] @ v,
        preconditioner=preconditioner,
    )
    return newton.Model(problem, np.zeros_like(grad), grad, moving, damping=0.01), np.zeros_like(grad)


def positive_definite(rng, n):
    B = rng.standard_normal((n, n))
    return B @ B.T + np.eye(n)


def test_a_model_goes_on_from_its_last_step():
    """Guess after guess of the free variables: the step solves its equations, the slope is that of the whole step."""
    rng = np.random.default_rng(9)
    H = positive_definite(rng, 12)
    grad, moving = rng.standard_normal(12), np.arange(12) != 5
    model, d = quadratic_model(H, grad, moving)
    for fixed in ([0, 1], [0, 1, 2], [2, 7], [1]):
        d[fixed] = rng.standard_normal(len(fixed))
        free = moving & ~np.isin(np.arange(12), fixed)
        at_bounds = d[fixed]
        slope = model.solve(d, free)
        np.testing.assert_array_equal(d[fixed], at_bounds, "at a bound to the last digit")
        np.testing.assert_allclose(slope[moving], (grad - H @ d)[moving], atol=1e-12)
        np.testing.assert_allclose((grad - H @ d)[free], model.shift * d[free], atol=1e-12)
        assert d[5] == slope[5] == 0
    assert model.products == 4, "one for each guess"


@pytest.mark.parametrize("first", [[], [0, 1, 2]])
def test_a_model_whose_first_guess_asks_for_nothing_solves_the_next(first):
    """No variable is free at first, or those that are have no slope."""
    rng = np.random.default_rng(10)
    H, moving = positive_definite(rng, 8), np.ones(8, dtype=bool)
    grad = np.where(np.arange(8) < 3, 0.0, rng.standard_normal(8))
    model, d = quadratic_model(H, grad, moving)
    model.solve(d, np.isin(np.arange(8), first))
    assert not d.any()
    model.solve(d, moving)
    assert model.shift == pytest.approx(0.01 * min(1.0, np.linalg.norm(grad)))
    np.testing.assert_allclose(d, np.linalg.solve(H + model.shift * np.eye(8), grad), atol=1e-12)


def test_a_model_asks_for_no_more_digits_than_its_right_hand_side_has():
    """After a first guess with hardly any slope the next one is solved to a part of its own."""
    rng = np.random.default_rng(11)
    H, moving = positive_definite(rng, 100), np.ones(100, dtype=bool)
    grad = np.where(np.arange(100) < 3, 1e-12, 1.0)
    model, d = quadratic_model(H, grad, moving, exact=False)
    model.solve(d, np.arange(100) < 3)
    before = model.products
    slope = model.solve(d, moving)
    assert model.is_solved
    residual = np.linalg.norm(slope - model.shift * d)
    assert 1e-6 * np.linalg.norm(grad) < residual <= 1e-2 * np.linalg.norm(grad) * (1 + 1e-9)
    assert model.products - before < 60
