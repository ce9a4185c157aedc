"""Operators restricted to subspaces: values, bounds and the solver that grows the subspaces."""

import numpy as np
import pytest

from contracts import CASES, check_certificate, check_gradient, check_hessian_product, random_points
from sosbands import learn_bands
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.problems import (
    OneSidedProblem,
    OperatorPenaltyProblem,
    PrimalSide,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.problems import side as side_module
from sosbands.solvers import Status, solve, subspace

PENALTIES = {"b": 2.0, "lam1": 0.3, "lam2": 0.5}
N = 60


def side_term(ell):
    X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    return SideTerm.of(learn_features(X, StationaryKernel("matern52", (ell,)), "exact").V, **PENALTIES)


def residuals():
    return np.random.default_rng(1).gamma(1.5, size=N) - 1.0


def two_kernels():
    return TrainingPenaltyProblem(side_term(0.8), side_term(0.4), residuals(), 0.5)


def one_kernel():
    term = side_term(0.6)
    return TrainingPenaltyProblem(term, term, residuals(), 0.5)


PROBLEMS = {
    "one side": lambda: OneSidedProblem(side_term(0.6), residuals()),
    "symmetric": lambda: SymmetricProblem(side_term(0.6), residuals()),
    "training": one_kernel,
    "training, two kernels": two_kernels,
    "operator": lambda: OperatorPenaltyProblem(side_term(0.6), residuals(), 0.0, 0.5),
    "operator with nuclear part": lambda: OperatorPenaltyProblem(side_term(0.6), residuals(), 0.05, 0.5),
}
every_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS.keys())


def random_bases(problem, k, seed=2):
    rng = np.random.default_rng(seed)
    return tuple(np.linalg.qr(rng.standard_normal((term.space.p, k)))[0] for term in problem.terms)


def whole_bases(problem):
    return random_bases(problem, N)


# ---------------------------------------------------------------- restricted problems


@every_problem
def test_restricted_problem_keeps_the_contract_of_a_problem(make):
    problem = make()
    small = problem.restricted(random_bases(problem, 7))
    assert [term.space.p for term in small.terms] == [7] * len(problem.terms)
    check_gradient(small)
    check_hessian_product(small)


@every_problem
def test_lift_and_project_are_inverse_on_the_subspace(make):
    problem = make()
    bases = random_bases(problem, 9)
    small = problem.restricted(bases)
    for z in random_points(small, 3):
        lifted = problem.lift(z, bases)
        assert lifted.shape == (problem.n_variables,)
        np.testing.assert_allclose(problem.project(lifted, bases), z, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(lifted), np.linalg.norm(z), rtol=1e-12)
    for z in random_points(problem, 4):
        once = problem.lift(problem.project(z, bases), bases)
        np.testing.assert_allclose(problem.lift(problem.project(once, bases), bases), once, atol=1e-12)


@every_problem
def test_restriction_to_everything_is_a_rotation(make):
    problem = make()
    bases = whole_bases(problem)
    small = problem.restricted(bases)
    for z in random_points(problem, 5):
        value, grad = problem.value_and_grad(z)
        rotated, rotated_grad = small.value_and_grad(problem.project(z, bases))
        assert rotated == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(problem.lift(rotated_grad, bases), grad, atol=1e-9 * np.abs(grad).max())


@every_problem
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_lifted_operators_keep_values_and_objective(make, ridge):
    problem = make()
    bases = random_bases(problem, 9)
    small = problem.restricted(bases)
    rng = np.random.default_rng(6)
    sides = []
    for term in getattr(small, "sides", small.terms * len(problem.certificate(np.zeros(problem.n_variables)).sides)):
        B = rng.standard_normal((9, 3))
        sides.append(
            PrimalSide(B, ridge, np.square(B.T @ term.space.V).sum(axis=0) + ridge * term.space.identity_values)
        )
    lifted = problem.lift_sides(tuple(sides), bases)
    assert problem.objective(lifted) == pytest.approx(small.objective(tuple(sides)), rel=1e-10)
    terms = getattr(problem, "sides", problem.terms * len(sides))
    for side, before, term in zip(lifted, sides, terms, strict=True):
        assert len(side.B) == term.space.p
        np.testing.assert_allclose(side.f, before.f, rtol=1e-12)
        by_hand = np.square(side.B.T @ term.space.V).sum(axis=0) + side.ridge * term.space.identity_values
        np.testing.assert_allclose(side.f, by_hand, rtol=1e-9)


def check_dual_values(problem, bases):
    """The full dual at lifted multipliers is at most the restricted dual."""
    small = problem.restricted(bases)
    strict = False
    for z in [*random_points(small, 7), *random_points(small, 8, size=0.2)]:
        full, restricted = problem.value_and_grad(problem.lift(z, bases))[0], small.value_and_grad(z)[0]
        assert full <= restricted + 1e-10 * abs(restricted)
        strict |= full < restricted - 1e-3 * abs(restricted)
    assert strict, "nothing was left out"


@every_problem
def test_full_dual_is_at_most_the_restricted_one(make):
    problem = make()
    check_dual_values(problem, random_bases(problem, 9))


class Scaled(SymmetricProblem):
    """Restricted to vectors that are too long."""

    def restricted(self, bases):
        return super().restricted(tuple(0.5 * Q for Q in bases))


class ForgetsToRotate(OperatorPenaltyProblem):
    """W of the restricted problem put in the first entries of the full one."""

    def lift(self, z, bases):
        k = bases[0].shape[1]
        return super().lift(z, (np.eye(self.p, k),))


def test_checks_reject_broken_restrictions():
    problem = ForgetsToRotate(side_term(0.6), residuals(), 0.0, 0.5)
    with pytest.raises(AssertionError):
        test_lift_and_project_are_inverse_on_the_subspace(lambda: problem)
    with pytest.raises(AssertionError):
        test_restriction_to_everything_is_a_rotation(lambda: problem)
    broken = Scaled(side_term(0.6), residuals())
    with pytest.raises(AssertionError):
        test_restriction_to_everything_is_a_rotation(lambda: broken)
    with pytest.raises(AssertionError):
        test_lifted_operators_keep_values_and_objective(lambda: broken, 0.0)


@every_problem
def test_restricted_optima_are_upper_bounds_that_decrease(make):
    problem = make()
    optimum = solve(problem, tol=1e-5, solver="newton").certificate
    assert optimum.gap <= 1e-5
    everything, values = whole_bases(problem), []
    for k in (8, 20, 40, N):
        small = problem.restricted(tuple(Q[:, :k] for Q in everything))
        certificate = solve(small, tol=1e-5, solver="newton").certificate
        assert certificate.gap <= 1e-5
        values.append(certificate.dual_value)
    assert all(later <= earlier * (1 + 2e-5) for earlier, later in zip(values, values[1:], strict=False))
    assert values[0] > 1.01 * optimum.primal_value
    assert values[-1] == pytest.approx(optimum.dual_value, rel=2e-5)


# ---------------------------------------------------------------- eigenvectors without a decomposition


def check_refine(problem, z, seed=9):
    """Estimates bound the dual value from above, exactly so once the vectors span everything."""
    value, _ = problem.value_and_grad(z)
    for k in (1, 5, 20):
        vectors, estimate = problem.refine(z, list(random_bases(problem, k, seed)))
        assert estimate >= value - 1e-10 * abs(value)
        for X, term in zip(vectors, problem.terms, strict=True):
            assert X.shape[0] == term.space.p
        _, again = problem.refine(z, vectors)
        assert again <= estimate + 1e-10 * abs(value), "a second step is no worse"
    for known in (list(whole_bases(problem)), problem.positive_vectors(z)):
        assert problem.refine(z, known)[1] == pytest.approx(value, rel=1e-9)


@every_problem
def test_refined_vectors_and_estimate(make):
    problem = make()
    for z in random_points(problem, 10, count=2):
        check_refine(problem, z)


class UnderestimatesW(OperatorPenaltyProblem):
    """Refines with W on the wrong side."""

    def refine(self, z, vectors):
        return super().refine(np.concatenate([z[: 2 * self.n], -z[2 * self.n :]]), vectors)


def test_check_rejects_a_wrong_estimate():
    problem = UnderestimatesW(side_term(0.6), residuals(), 0.0, 0.5)
    with pytest.raises(AssertionError):
        check_refine(problem, next(random_points(problem, 10)))


@every_problem
def test_positive_vectors_span_the_recovered_operators(make):
    problem = make()
    z = next(random_points(problem, 11))
    vectors = problem.positive_vectors(z)
    sides = problem.certificate(z).sides
    states = problem.state(z).sides
    assert len(states) == len(sides)
    spaces = vectors if len(vectors) == len(states) else vectors * len(states)
    for X, state in zip(spaces, states, strict=True):
        assert state.part.rank > 0
        left = state.B - X @ np.linalg.lstsq(X, state.B, rcond=None)[0]
        assert np.abs(left).max() <= 1e-10 * np.abs(state.B).max()


# ---------------------------------------------------------------- growing


def test_grown_bases_are_orthonormal_and_nested():
    rng = np.random.default_rng(12)
    Q = np.linalg.qr(rng.standard_normal((12, 4)))[0]
    X = np.column_stack([rng.standard_normal((12, 3)), Q[:, 0], 1e-14 * rng.standard_normal(12)])
    (grown,) = subspace._grown((Q,), [X])
    assert grown.shape == (12, 7)
    assert np.array_equal(grown[:, :4], Q)
    np.testing.assert_allclose(grown.T @ grown, np.eye(7), atol=1e-13)
    np.testing.assert_allclose(grown @ (grown.T @ X[:, :3]), X[:, :3], atol=1e-12)
    (same,) = subspace._grown((Q,), [Q @ rng.standard_normal((4, 2))])
    assert same.shape == Q.shape
    (all_of_it,) = subspace._grown((Q,), [rng.standard_normal((12, 30))])
    assert all_of_it.shape == (12, 12)
    np.testing.assert_allclose(all_of_it.T @ all_of_it, np.eye(12), atol=1e-12)


@every_problem
@pytest.mark.parametrize("first", [3, 12])
def test_solve_subspace_against_a_full_newton_solve(make, first, monkeypatch):
    monkeypatch.setattr(subspace, "START", first)
    tol = 1e-6
    full = solve(make(), tol=1e-8, solver="newton").certificate
    problem = make()
    result = solve(problem, tol=tol, solver="subspace")
    certificate = result.certificate
    assert result.status == Status.CONVERGED
    assert certificate.gap <= tol
    assert certificate.violation <= 1e-9
    assert certificate.dual_value <= full.primal_value
    assert certificate.primal_value >= full.dual_value
    assert certificate.dual_value == pytest.approx(make().value_and_grad(result.variables)[0], rel=1e-10)
    assert certificate.primal_value == pytest.approx(problem.objective(certificate.sides), rel=1e-12)
    (bases,) = result.bases
    for Q, term in zip(bases, problem.terms, strict=True):
        assert first < Q.shape[1] <= term.space.p
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-10)
    again = solve(make(), result.variables, tol=tol, solver="subspace", bases=result.bases)
    assert again.certificate.gap <= tol
    assert again.decompositions < result.decompositions


@pytest.mark.parametrize("name", ["training 1, two kernels", "operator with nuclear part", "symmetric"])
def test_fallback_to_the_whole_problem_is_certified_and_counted(name, monkeypatch):
    """Without a single round of growth the problem itself is solved."""
    monkeypatch.setattr(subspace, "ROUNDS", 1)
    monkeypatch.setattr(subspace, "START", 2)
    case = CASES[name]
    problem = case.problem()
    result = solve(problem, tol=1e-6, solver="subspace")
    assert result.status == Status.CONVERGED
    check_certificate(case, problem, result.certificate)
    assert result.decompositions >= problem.decompositions


def far_apart():
    """Points that the first pivots do not see: at this lengthscale each is nearly alone."""
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((200, 4)), rng.standard_normal(200)
    options = {"lengthscale": 0.12, "symmetry_penalty": 0.0, "width_penalty": 10.0}
    return lambda solver: learn_bands(X, r, solver=solver, **options)


def test_points_that_the_first_subspace_does_not_see():
    learn = far_apart()
    found, newton = learn("subspace"), learn("newton")
    assert found.gap <= 1e-4
    np.testing.assert_allclose(found.values_upper, newton.values_upper, rtol=0.05, atol=0.01)


def test_a_restricted_problem_that_diverges_is_given_up(monkeypatch):
    """Without the check of the first subspace its dual grows without end; the whole problem is solved all the same."""
    monkeypatch.setattr(subspace, "REACH", np.inf)
    monkeypatch.setattr(subspace, "INNER", 60)
    found = far_apart()("subspace")
    assert found.gap <= 1e-4
    assert found.values_upper.max() < 10


def test_subspaces_grow_until_they_reach_every_point(monkeypatch):
    problem = CASES["symmetric"].problem()
    (term,) = problem.terms
    first = (np.eye(term.space.p, 1),)
    shares = problem.restricted(first).terms[0].space.identity_values / term.space.identity_values
    needed = np.max(problem.sizes / shares) / problem.sizes.max()
    monkeypatch.setattr(subspace, "REACH", 1.01 * needed)
    (same,) = subspace._reaching(problem, first)
    assert same.shape == first[0].shape
    monkeypatch.setattr(subspace, "REACH", 0.99 * needed)
    (grown,) = subspace._reaching(problem, first)
    assert grown.shape[1] > 1
    monkeypatch.setattr(subspace, "REACH", 0.5)  # nothing reaches
    assert subspace._reaching(problem, first) is None


# ---------------------------------------------------------------- bounds without a decomposition


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_a_bounded_certificate_is_a_bound_close_to_the_value(name, monkeypatch):
    """From the true positive eigenvectors the bound is nearly the value; from too few it is none, or still a bound."""
    problem = PROBLEMS[name]()
    z = solve(problem, tol=1e-5, solver="newton").variables
    exact = problem.certificate(z)
    bounded = problem.bounded_certificate(z, problem.positive_vectors(z), exact.sides)
    assert bounded.dual_value <= exact.dual_value
    assert bounded.dual_value == pytest.approx(exact.dual_value, rel=3e-4)
    assert bounded.primal_value == pytest.approx(exact.primal_value, rel=1e-12)
    few = [X[:, :1] for X in problem.positive_vectors(z)]
    assert problem.bounded_certificate(z, few, exact.sides).dual_value <= exact.dual_value
    # with room it is a bound that uses no more than that, a little added for terms of second order
    room = 0.05 * exact.primal_value
    roomy = problem.bounded_certificate(z, problem.positive_vectors(z), exact.sides, room)
    assert bounded.dual_value - 1.2 * room <= roomy.dual_value < bounded.dual_value
    assert problem.bounded_certificate(z, few, exact.sides, room).dual_value <= exact.dual_value
    # a bound that forgets the rest of the space would be seen
    monkeypatch.setattr(side_module, "cholesky", lambda G, **_: G)
    if any(X.shape[1] > 1 for X in problem.positive_vectors(z)):
        assert problem.bounded_certificate(z, few, exact.sides).dual_value > exact.dual_value
