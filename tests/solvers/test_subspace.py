"""Operators restricted to subspaces: values, bounds and the solver that grows the subspaces."""

from functools import cache

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
from sosbands.solvers import Status, solve, subspace

PENALTIES = {"b": 2.0, "lam1": 0.3, "lam2": 0.5}
N = 60


def side_term(ell):
    X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    return SideTerm.of(learn_features(X, StationaryKernel("matern52", (ell,)), "exact").V, **PENALTIES)


def residuals():
    return np.random.default_rng(1).gamma(1.5, size=N) - 1.0


PROBLEMS = {
    "one side": lambda: OneSidedProblem(side_term(0.6), residuals()),
    "symmetric": lambda: SymmetricProblem(side_term(0.6), residuals()),
    "training": lambda: TrainingPenaltyProblem(*2 * (side_term(0.6),), residuals(), 0.5),
    "training, two kernels": lambda: TrainingPenaltyProblem(side_term(0.8), side_term(0.4), residuals(), 0.5),
    "operator": lambda: OperatorPenaltyProblem(side_term(0.6), residuals(), 0.0, 0.5),
    "operator with nuclear part": lambda: OperatorPenaltyProblem(side_term(0.6), residuals(), 0.05, 0.5),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


@cache
def optimum(name):
    result = solve(PROBLEMS[name](), tol=1e-8, solver="newton")
    assert result.certificate.gap <= 1e-8
    return result


def random_bases(problem, k, seed=2):
    rng = np.random.default_rng(seed)
    return tuple(np.linalg.qr(rng.standard_normal((term.space.p, k)))[0] for term in problem.terms)


# ---------------------------------------------------------------- restricted problems


def check_contract(problem):
    small = problem.restricted(random_bases(problem, 7))
    assert [term.space.p for term in small.terms] == [7] * len(problem.terms)
    check_gradient(small)
    check_hessian_product(small)


def check_lift_and_project(problem):
    """They are inverse on the subspace."""
    bases = random_bases(problem, 9)
    for z in random_points(problem.restricted(bases), 3):
        lifted = problem.lift(z, bases)
        assert lifted.shape == (problem.n_variables,)
        np.testing.assert_allclose(problem.project(lifted, bases), z, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(lifted), np.linalg.norm(z), rtol=1e-12)
    for z in random_points(problem, 4):
        once = problem.lift(problem.project(z, bases), bases)
        np.testing.assert_allclose(problem.lift(problem.project(once, bases), bases), once, atol=1e-12)


def check_rotation(problem):
    """A restriction to everything is one."""
    bases = random_bases(problem, N)
    small = problem.restricted(bases)
    for z in random_points(problem, 5):
        value, grad = problem.value_and_grad(z)
        rotated, rotated_grad = small.value_and_grad(problem.project(z, bases))
        assert rotated == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(problem.lift(rotated_grad, bases), grad, atol=1e-9 * np.abs(grad).max())


def check_lifted_operators(problem):
    """They keep values and objective."""
    bases, rng = random_bases(problem, 9), np.random.default_rng(6)
    small = problem.restricted(bases)
    for ridge in (0.0, 0.3):
        sides = []
        for term in small.sides:
            B = rng.standard_normal((9, 3))
            f = np.square(B.T @ term.space.V).sum(axis=0) + ridge * term.space.identity_values
            sides.append(PrimalSide(B, ridge, f))
        lifted = problem.lift_sides(tuple(sides), bases)
        assert problem.objective(lifted) == pytest.approx(small.objective(tuple(sides)), rel=1e-10)
        for side, before, term in zip(lifted, sides, problem.sides, strict=True):
            assert len(side.B) == term.space.p
            np.testing.assert_allclose(side.f, before.f, rtol=1e-12)
            by_hand = np.square(side.B.T @ term.space.V).sum(axis=0) + side.ridge * term.space.identity_values
            np.testing.assert_allclose(side.f, by_hand, rtol=1e-9)


def check_dual_values(problem):
    """The full dual at lifted multipliers is at most the restricted dual."""
    bases = random_bases(problem, 9)
    small = problem.restricted(bases)
    strict = False
    for z in [*random_points(small, 7), *random_points(small, 8, size=0.2)]:
        full, restricted = problem.value_and_grad(problem.lift(z, bases))[0], small.value_and_grad(z)[0]
        assert full <= restricted + 1e-10 * abs(restricted)
        strict |= full < restricted - 1e-3 * abs(restricted)
    assert strict, "nothing was left out"


def check_images(problem):
    """The images are those of the positive eigenvectors, and growing by them lowers the value of the subspace."""
    bases = random_bases(problem, 9)
    small = problem.restricted(bases)
    for z in random_points(small, 10, count=2):
        images, lifted, by_hand = problem.images(small, z, bases), problem.lift(z, bases), []
        sides = (problem.sides, problem.arguments(lifted), problem.per_side(bases), small.state(z).sides)
        for term, (c, W), Q, state in zip(*sides, strict=True):
            V = term.space.V
            M = V @ np.diag(c - term.cost.b / len(c)) @ V.T + (0 if W is None else W)
            Y = M @ Q @ state.positive_vectors
            by_hand.append(Y / np.linalg.norm(Y, axis=0).max())
        for found, true in zip(images, problem._per_term(by_hand), strict=True):
            np.testing.assert_allclose(found, true, atol=1e-11)
        grown = subspace._grown(bases, images)
        larger = problem.restricted(grown).value_and_grad(problem.project(lifted, grown))[0]
        full, restricted = problem.value_and_grad(lifted)[0], small.value_and_grad(z)[0]
        assert full - 1e-10 * abs(full) <= larger < restricted
        assert larger - full < 0.5 * (restricted - full)


@every_problem
@pytest.mark.parametrize(
    "check",
    [check_contract, check_lift_and_project, check_rotation, check_lifted_operators, check_dual_values, check_images],
)
def test_restricted_problems(check, name):
    check(PROBLEMS[name]())


class Scaled(SymmetricProblem):
    """Restricted to vectors that are too long."""

    def restricted(self, bases):
        return super().restricted(tuple(0.5 * Q for Q in bases))


class ForgetsToRotate(OperatorPenaltyProblem):
    """W of the restricted problem put in the first entries of the full one."""

    def lift(self, z, bases):
        k = bases[0].shape[1]
        return super().lift(z, (np.eye(self.p, k),))


class ForgetsW(OperatorPenaltyProblem):
    """Its matrices lack W where images are made."""

    def images(self, small, z, bases):
        return super().images(small, np.concatenate([z[: 2 * self.n], 0 * z[2 * self.n :]]), bases)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (ForgetsToRotate, check_lift_and_project),
        (ForgetsToRotate, check_rotation),
        (Scaled, check_rotation),
        (Scaled, check_lifted_operators),
        (ForgetsW, check_images),
    ],
)
def test_checks_reject_broken_restrictions(broken, check):
    problem = broken(side_term(0.6), residuals(), *((0.0, 0.5) if broken is not Scaled else ()))
    with pytest.raises(AssertionError):
        check(problem)


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
def test_solve_subspace_against_a_full_newton_solve(name, first, monkeypatch):
    monkeypatch.setattr(subspace, "START", first)
    tol = 1e-6
    full, problem = optimum(name).certificate, PROBLEMS[name]()
    result = solve(problem, tol=tol, solver="subspace")
    certificate = result.certificate
    assert result.status == Status.CONVERGED
    assert certificate.gap <= tol
    assert certificate.violation <= 1e-9
    assert certificate.dual_value <= full.primal_value * (1 + 1e-12)
    assert certificate.primal_value >= full.dual_value * (1 - 1e-12)
    assert certificate.dual_value == pytest.approx(problem.value_and_grad(result.variables)[0], rel=1e-10)
    assert certificate.primal_value == pytest.approx(problem.objective(certificate.sides), rel=1e-12)
    (bases,) = result.bases
    for Q, term in zip(bases, problem.terms, strict=True):
        assert first < Q.shape[1] <= term.space.p
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-10)
    again = solve(PROBLEMS[name](), result.variables, tol=tol, solver="subspace", bases=result.bases)
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
    check_certificate(problem, case, result.certificate)
    assert result.decompositions >= problem.decompositions


def far_apart(solver):
    """Points that the first pivots do not see: at this lengthscale each is nearly alone."""
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((200, 4)), rng.standard_normal(200)
    bands = learn_bands(X, r, solver=solver, lengthscale=0.12, symmetry_penalty=0.0, width_penalty=10.0)
    assert bands.gap <= 1e-4
    return bands.values_upper


def test_points_that_the_first_subspace_does_not_see(monkeypatch):
    newton = far_apart("newton")
    np.testing.assert_allclose(far_apart("subspace"), newton, rtol=0.05, atol=0.01)
    # without the check of the first subspace its dual grows without end; the whole problem is solved all the same
    monkeypatch.setattr(subspace, "REACH", np.inf)
    monkeypatch.setattr(subspace, "INNER", 60)
    np.testing.assert_allclose(far_apart("subspace"), newton, rtol=0.05, atol=0.01)


def test_subspaces_grow_until_they_reach_every_point(monkeypatch):
    problem = CASES["symmetric"].problem()
    (term,) = problem.terms
    first = (np.eye(term.space.p, 1),)
    shares = problem.restricted(first).terms[0].space.identity_values / term.space.identity_values
    (sizes,) = problem.targets
    needed = np.max(sizes / shares) / sizes.max()
    monkeypatch.setattr(subspace, "REACH", 1.01 * needed)
    (same,) = subspace._reaching(problem, first)
    assert same.shape == first[0].shape
    monkeypatch.setattr(subspace, "REACH", 0.99 * needed)
    (grown,) = subspace._reaching(problem, first)
    assert grown.shape[1] > 1
    monkeypatch.setattr(subspace, "REACH", 0.5)  # nothing reaches
    assert subspace._reaching(problem, first) is None


# ---------------------------------------------------------------- bounds without a decomposition


def subspaces(problem, z):
    """Of all kinds: with the positive eigenvectors and without, from good to hopeless."""
    vectors = problem.positive_vectors(z)
    leading, more = (tuple(term.space.leading(count) for term in problem.terms) for count in (30, 45))
    yield tuple(np.linalg.qr(np.column_stack([X, Q]))[0] for X, Q in zip(vectors, leading, strict=True))
    yield leading
    yield more
    yield tuple(np.linalg.qr(X)[0] for X in vectors)
    yield tuple(X[:, :1] for X in vectors)
    for k in (5, 30, N - 8, N - 2):
        yield random_bases(problem, k)


def check_bounded_certificate(problem, z):
    """From any subspace the bound is none or below the value, and close to it with the positive eigenvectors."""
    exact = problem.certificate(z)
    first, *others = subspaces(problem, z)
    close = problem.bounded_certificate(z, first, exact.sides)
    assert close.dual_value == pytest.approx(exact.dual_value, rel=1e-3)
    everything = problem.bounded_certificate(z, random_bases(problem, N), exact.sides)
    assert everything.dual_value == pytest.approx(exact.dual_value, rel=1e-9)
    shown = 0
    for bases in (first, random_bases(problem, N), *others):
        for room in (0.0, 0.05 * exact.primal_value):
            bounded = problem.bounded_certificate(z, bases, exact.sides, room)
            assert bounded.dual_value <= exact.dual_value * (1 + 1e-12)
            assert bounded.primal_value == pytest.approx(exact.primal_value, rel=1e-12)
            shown += np.isfinite(bounded.dual_value)
    assert shown >= 6, "hardly anything was shown"


@every_problem
def test_a_bounded_certificate_is_a_bound_close_to_the_value(name):
    check_bounded_certificate(PROBLEMS[name](), optimum(name).variables)


def value_on_subspace(term, c, W, Q, room):  # noqa: ARG001
    small = term.projected(Q)
    return small.regulariser.decompose(small.matrix(c, None if W is None else Q.T @ W @ Q)).value


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("upper_bound", value_on_subspace),  # all of the rest is forgotten
        ("_largest_beside", lambda *_: 0.0),  # what lies beside the subspace is
        ("_largest_beside", lambda *_: -1e6),  # and with it what leads there
    ],
)
def test_a_bound_that_forgets_something_is_seen(name, broken, monkeypatch):
    z = optimum("training").variables
    monkeypatch.setattr(SideTerm, name, broken)
    with pytest.raises(AssertionError):
        check_bounded_certificate(PROBLEMS["training"](), z)
