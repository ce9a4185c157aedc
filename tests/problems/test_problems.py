"""The contract of a dual problem on every kind, on broken ones, and what problems say of one another."""

import numpy as np
import pytest

from contracts import (
    CASES,
    check_certificates_anywhere,
    check_concavity,
    check_decompositions,
    check_gradient,
    check_hessian_product,
    check_optimum,
    check_parts,
    check_round_trip,
    low_rank_features,
)
from sosbands.problems import (
    AsymmetricProblem,
    Certificate,
    OneSidedProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.problems.side import FeatureSpace, PositivePart, SideState
from sosbands.solvers import solve

BOUNDS = (check_certificates_anywhere, check_optimum)  # which need to know the optimum
DERIVATIVES = (check_gradient, check_hessian_product, check_concavity)


def run(check, case, broken=None):
    problem = case.problem(broken)
    check(problem, case) if check in BOUNDS else check(problem)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize(
    "check", [*DERIVATIVES, check_certificates_anywhere, check_round_trip, check_decompositions, check_parts]
)
def test_contract(check, case):
    run(check, case)


def test_one_sided_problem_is_half_of_the_asymmetric_one():
    case = CASES["asymmetric, two kernels, b=0"]
    for part, V, target in zip(case.problem().parts, case.features, case.targets(), strict=True):
        alone = OneSidedProblem(SideTerm.of(V, **case.penalties), target)
        for check in DERIVATIVES:
            check(alone)
        z = np.linspace(0, 2, case.n)
        assert alone.value_and_grad(z)[0] == pytest.approx(part.value_and_grad(z)[0], rel=1e-13)


def test_warm_start_between_kinds_keeps_the_operators():
    """Solutions of neighbouring problems read each other's multipliers: the recovered functions stay the same."""
    case = CASES["training 0.5"]
    training = case.problem()
    z = solve(training, tol=1e-5).variables
    f_lo, f_up = (state.f for state in training.state(z).sides)
    operator = OperatorPenaltyProblem(training.terms[0], case.r, 0.0, 1.0)
    start = operator.start_from(training.dual_point(z))
    lo, up = operator.state(start).sides
    np.testing.assert_allclose(lo.f, f_lo, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(up.f, f_up, rtol=1e-8, atol=1e-10)
    symmetric = SymmetricProblem(training.terms[0], case.r)
    z = solve(symmetric, tol=1e-5).variables
    shared = symmetric.state(z).sides[0].f
    for problem in (training, operator):
        lo, up = problem.state(problem.start_from(symmetric.dual_point(z))).sides
        np.testing.assert_allclose(lo.f, shared, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(up.f, shared, rtol=1e-8, atol=1e-10)


# ---------------------------------------------------------------- broken ones are rejected


class WrongGradientSign(TrainingPenaltyProblem):
    """The sign of alpha_0's gradient."""

    def value_and_grad(self, z):
        value, grad = super().value_and_grad(z)
        return value, np.concatenate([grad[: 2 * self.n], -grad[2 * self.n :]])


class GradientAtMinusW(OperatorPenaltyProblem):
    """The block of W taken at -W: a sign as the paper misprints it."""

    def value_and_grad(self, z):
        value, grad = super().value_and_grad(z)
        mirrored = np.concatenate([z[: 2 * self.n], -z[2 * self.n :]])
        wrong = super().value_and_grad(mirrored)[1]
        return value, np.concatenate([grad[: 2 * self.n], wrong[2 * self.n :]])


class ReturnsItsCache(SymmetricProblem):
    def value_and_grad(self, z):
        if not hasattr(self, "kept") or not np.array_equal(self.kept[0], z):
            self.kept = (z.copy(), *super().value_and_grad(z))
        return self.kept[1], self.kept[2]


class MissesAnEigenvalue(SymmetricProblem):
    """One positive eigenvalue dropped, value and gradient consistent with each other."""

    def state(self, z):
        whole = super().state(z)
        (state,) = whole.sides
        w, U = state.part.w[1:], state.part.U[:, 1:]  # the largest
        part = PositivePart(w, U, int(np.count_nonzero(w > 0)), state.part.lam2)
        return whole._replace(sides=(SideState(state.V, part),))


class Unrepaired(AsymmetricProblem):
    """The recovered operators passed off as feasible."""

    def certificate(self, z):
        honest = super().certificate(z)
        halves = zip(self.parts, np.split(np.maximum(z, 0.0), 2), strict=True)
        sides = tuple(part.state(g).sides[0].primal for part, g in halves)
        value = self.objective(sides)
        gap = (value - honest.dual_value) / max(value, 1e-300)
        return Certificate(honest.dual_value, value, gap, 0.0, sides)


class ForgetsThePenalty(TrainingPenaltyProblem):
    """A primal value without the symmetry penalty."""

    def objective(self, sides):
        return self._separate(sides)


class ForgetsTheSlack(OperatorPenaltyProblem):
    """A primal value in which rows lie outside for nothing."""

    def objective(self, sides):
        return super().objective(sides) - sum(
            term.ceiling * np.maximum(target - side.f, 0.0).sum()
            for term, side, target in zip(self.sides, sides, self.targets, strict=True)
        )


class ForgetsTheCeiling(SymmetricProblem):
    """Multipliers above the price of a row outside, whose dual value is no bound."""

    def __init__(self, term, r):
        super().__init__(term, r)
        self.bounds = self.bounds._replace(upper=np.full(len(r), np.inf))


class ForgetsToClip(AsymmetricProblem):
    def certificate(self, z):
        value, _ = self.value_and_grad(z)
        honest = super().certificate(z)
        gap = (honest.primal_value - value) / honest.primal_value
        return Certificate(value, honest.primal_value, gap, honest.violation, honest.sides)


class CountedOnce(SymmetricProblem):
    """The shared function counted once."""

    def __init__(self, term, r):
        super().__init__(term, r)
        self.weight = 1.0


class Convex(SymmetricProblem):
    def value_and_grad(self, z):
        value, grad = super().value_and_grad(z)
        return -value, -grad


class HalfTheHessian(TrainingPenaltyProblem):
    """The block of alpha_0 too small."""

    def hessian_product(self, z, support):
        product = super().hessian_product(z, support)
        factor = np.repeat([1.0, 1.0, 0.5], self.n)[support]
        return lambda d: factor * product(d)


class SharesItsBuffer(SymmetricProblem):
    """All products in one array, so that each overwrites the one before."""

    def hessian_product(self, z, support):
        product, buffer = super().hessian_product(z, support), np.zeros(np.count_nonzero(support))

        def shared(d):
            buffer[:] = product(d)
            return buffer

        return shared


class ForgetsTheScale(TrainingPenaltyProblem):
    def start_from(self, point):
        return np.concatenate([point.gamma_lo, point.gamma_up, point.mean_alpha_0])


class NeverRemembers(SymmetricProblem):
    def state(self, z):
        self._cached = None
        return super().state(z)


class NeverCounts(SymmetricProblem):
    def state(self, z):
        state = super().state(z)
        self.decompositions = 0
        return state


BROKEN = {
    WrongGradientSign: ("training 0.5", check_gradient),
    GradientAtMinusW: ("operator 1", check_gradient),
    ReturnsItsCache: ("symmetric", check_gradient),
    HalfTheHessian: ("training 1e-3", check_hessian_product),
    SharesItsBuffer: ("symmetric", check_hessian_product),
    Convex: ("symmetric", check_concavity),
    ForgetsTheScale: ("training 1e-3", check_round_trip),
    NeverRemembers: ("symmetric", check_decompositions),
    NeverCounts: ("symmetric", check_decompositions),
    MissesAnEigenvalue: ("symmetric", check_optimum),
    CountedOnce: ("symmetric", check_optimum),
    ForgetsTheCeiling: ("symmetric, rows outside", check_optimum),
    Unrepaired: ("asymmetric", check_certificates_anywhere),
    ForgetsToClip: ("asymmetric", check_certificates_anywhere),
    ForgetsThePenalty: ("training 1, two kernels", check_certificates_anywhere),
    ForgetsTheSlack: ("operator 1, rows outside", check_certificates_anywhere),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_contract_rejects_broken_problems(broken):
    name, check = BROKEN[broken]
    with pytest.raises(AssertionError):
        run(check, CASES[name], broken)


def test_a_missed_eigenvalue_breaks_the_lower_bound():
    """Why all positive eigenvalues are needed: without one the dual value exceeds the optimum."""
    case = CASES["symmetric, b=0"]
    z = solve(case.problem(), tol=1e-6).variables
    assert case.problem().certificate(z).dual_value <= case.optimum() * (1 + 1e-7)
    assert case.problem(MissesAnEigenvalue).certificate(z).dual_value > 1.01 * case.optimum()


def test_leading_vectors_span_most_of_the_leading_eigenvectors():
    space = FeatureSpace(low_rank_features(80, 2, 1.0, 1e-9))
    Q = space.leading(10)
    np.testing.assert_allclose(Q.T @ Q, np.eye(10), atol=1e-10)
    w, U = np.linalg.eigh(space.V @ space.V.T)
    assert np.trace(Q.T @ space.gram @ Q) >= 0.999 * w[-10:].sum()
    assert np.linalg.norm(Q.T @ U[:, -5:], axis=0) == pytest.approx(np.ones(5), abs=1e-3)
