"""The contract of a dual problem on every kind, on broken ones, and problems of known optimum."""

import numpy as np
import pytest

from contracts import (
    CASES,
    Case,
    check_certificates_anywhere,
    check_concavity,
    check_decompositions,
    check_gradient,
    check_hessian_product,
    check_optimum,
    check_parts,
    check_round_trip,
    manufacture,
    matern52,
    parts_of,
    square_root,
)
from sosbands.kernels import StationaryKernel, learn_features
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
from sosbands.solvers import Status, solve

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@every_case
def test_gradient(case):
    check_gradient(case.problem())


@every_case
def test_hessian_product(case):
    for part in parts_of(case.problem()):
        check_hessian_product(part)


@every_case
def test_concavity(case):
    check_concavity(case.problem())


@every_case
def test_certificates_far_from_convergence(case):
    check_certificates_anywhere(case, case.problem())


@every_case
def test_optimum_is_enclosed_along_a_solve(case):
    check_optimum(case, case.problem())


@every_case
def test_round_trip_of_multipliers(case):
    check_round_trip(case.problem())


@pytest.fixture
def made(monkeypatch):
    """Number of symmetric eigendecompositions with vectors made since the test began."""
    calls = []
    original = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda *args, **kwargs: calls.append(1) or original(*args, **kwargs))
    return lambda: len(calls)


@pytest.mark.parametrize("case", [pytest.param(c, id=name) for name, c in CASES.items()])
def test_decompositions_are_counted(case, made):
    problem = case.problem()
    before = made()
    check_decompositions(problem, lambda: made() - before)


@every_case
def test_parts_add_up(case):
    check_parts(case.problem())


def test_one_sided_problem_is_half_of_the_asymmetric_one():
    case = CASES["asymmetric, two kernels, b=0"]
    lower, upper = case.problem().parts
    for part, V, target in zip((lower, upper), case.features, case.targets(), strict=True):
        alone = OneSidedProblem(SideTerm.of(V, **case.penalties), target)
        check_gradient(alone)
        check_hessian_product(alone)
        check_concavity(alone)
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


ON_PROBLEM = {
    "gradient sign": ("training 0.5", {"training": WrongGradientSign}, check_gradient),
    "gradient at -W": ("operator 1", {"operator": GradientAtMinusW}, check_gradient),
    "gradient shared with the caller": ("symmetric", {"symmetric": ReturnsItsCache}, check_gradient),
    "half of the Hessian": ("training 1e-3", {"training": HalfTheHessian}, check_hessian_product),
    "convex": ("symmetric", {"symmetric": Convex}, check_concavity),
    "scale of alpha_0": ("training 1e-3", {"training": ForgetsTheScale}, check_round_trip),
    "Hessian products share an array": ("symmetric", {"symmetric": SharesItsBuffer}, check_hessian_product),
}


@pytest.mark.parametrize(("name", "classes", "check"), ON_PROBLEM.values(), ids=ON_PROBLEM.keys())
def test_contract_rejects_broken_derivatives(name, classes, check):
    with pytest.raises(AssertionError):
        check(CASES[name].problem(classes))


@pytest.mark.parametrize("broken", [NeverRemembers, NeverCounts])
def test_contract_rejects_broken_counts(broken, made):
    problem = CASES["symmetric"].problem({"symmetric": broken})
    before = made()
    with pytest.raises(AssertionError):
        check_decompositions(problem, lambda: made() - before)


ON_CASE = {
    "missed eigenvalue": ("symmetric", {"symmetric": MissesAnEigenvalue}, check_optimum),
    "not feasible": ("asymmetric", {"asymmetric": Unrepaired}, check_certificates_anywhere),
    "penalty forgotten": ("training 1, two kernels", {"training": ForgetsThePenalty}, check_certificates_anywhere),
    "slack forgotten": ("operator 1, rows outside", {"operator": ForgetsTheSlack}, check_certificates_anywhere),
    "ceiling forgotten": ("symmetric, rows outside", {"symmetric": ForgetsTheCeiling}, check_optimum),
    "negative multipliers": ("asymmetric", {"asymmetric": ForgetsToClip}, check_certificates_anywhere),
    "counted once": ("symmetric", {"symmetric": CountedOnce}, check_optimum),
}


@pytest.mark.parametrize(("name", "classes", "check"), ON_CASE.values(), ids=ON_CASE.keys())
def test_contract_rejects_broken_bounds(name, classes, check):
    with pytest.raises(AssertionError):
        check(CASES[name], CASES[name].problem(classes))


def test_a_missed_eigenvalue_breaks_the_lower_bound():
    """Why all positive eigenvalues are needed: without one the dual value exceeds the optimum."""
    case = CASES["symmetric, b=0"]
    z = solve(case.problem(), tol=1e-6).variables
    assert case.problem().certificate(z).dual_value <= case.optimum() * (1 + 1e-7)
    assert case.problem({"symmetric": MissesAnEigenvalue}).certificate(z).dual_value > 1.01 * case.optimum()


# ---------------------------------------------------------------- known optima


def low_rank_features(n, d, ell, left_out=1e-7):
    X = np.random.default_rng(n + d).uniform(-1, 1, (n, d))
    return learn_features(X, StationaryKernel("matern52", (ell,)), left_out).V


@pytest.mark.parametrize(("n", "d", "ell", "b"), [(60, 1, 0.3, 0.0), (200, 2, 1.5, 1.0), (500, 1, 0.4, 1.0)])
def test_manufactured_asymmetric_optimum(n, d, ell, b):
    penalties = {"b": b, "lam1": 0.2, "lam2": 0.8}
    known = manufacture(low_rank_features(n, d, ell), **penalties, seed=n)
    term = SideTerm.of(known.V, **penalties)
    result = solve(AsymmetricProblem(term, term, known.r), tol=1e-6)
    check_known(result, known, penalties["lam2"])


@pytest.mark.parametrize(("n", "lam_pen"), [(40, 0.1), (40, 10.0), (120, 1e-3), (500, 1e-2)])
def test_manufactured_optimum_with_training_penalty(n, lam_pen):
    penalties = {"b": 1.0, "lam1": 0.2, "lam2": 0.8}
    known = manufacture(low_rank_features(n, 1, 0.4), **penalties, lam_pen=lam_pen, seed=n)
    term = SideTerm.of(known.V, **penalties)
    result = solve(TrainingPenaltyProblem(term, term, known.r, lam_pen), tol=1e-6)
    check_known(result, known, penalties["lam2"])


def check_known(result, known, lam2):
    assert result.status == Status.CONVERGED
    certificate = result.certificate
    assert certificate.gap <= 1e-6
    assert certificate.dual_value <= known.value * (1 + 1e-8)
    assert abs(certificate.dual_value - known.value) <= 1e-6 * known.value
    assert certificate.primal_value >= known.value * (1 - 1e-8)
    # strong convexity: lam2 ||A - A*||² summed over the sides is at most P - P*
    distance = sum(
        np.sum((side.B @ side.B.T + side.ridge * np.eye(len(A)) - A) ** 2)
        for side, A in zip(certificate.sides, (known.lower, known.upper), strict=True)
    )
    assert lam2 * distance <= certificate.primal_value - known.value + 1e-8 * known.value


def test_manufactured_check_rejects_another_problem():
    penalties = {"b": 1.0, "lam1": 0.2, "lam2": 0.8}
    known = manufacture(low_rank_features(60, 1, 0.3), **penalties)
    term = SideTerm.of(known.V, **{**penalties, "lam1": 0.2001})
    with pytest.raises(AssertionError):
        check_known(solve(AsymmetricProblem(term, term, known.r), tol=1e-6), known, 0.8)


def test_values_do_not_depend_on_the_features():
    """Any V with the same V'V states the same problem."""
    case = Case("training", (0.0, 0.3), seed=21, n=15)
    X, r = case.data
    K = matern52(X, X, 0.6)
    values = []
    for V in (square_root(K), np.linalg.cholesky(K).T):
        term = SideTerm.of(V, **case.penalties)
        problem = TrainingPenaltyProblem(term, term, r, 0.3)
        values.append(problem.value_and_grad(problem.bounds.clip(np.linspace(-1, 2, 45)))[0])
    assert values[0] == pytest.approx(values[1], rel=1e-10)


def test_leading_vectors_span_most_of_the_leading_eigenvectors():
    X = np.random.default_rng(9).uniform(-1, 1, (80, 2))
    space = FeatureSpace(learn_features(X, StationaryKernel("matern52", (1.0,)), 1e-9).V)
    Q = space.leading(10)
    np.testing.assert_allclose(Q.T @ Q, np.eye(10), atol=1e-10)
    w, U = np.linalg.eigh(space.V @ space.V.T)
    assert np.trace(Q.T @ space.gram @ Q) >= 0.999 * w[-10:].sum()
    assert np.linalg.norm(Q.T @ U[:, -5:], axis=0) == pytest.approx(np.ones(5), abs=1e-3)
