"""The certificate: feasible points near any dual point, and bounds that hold far from convergence."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from contracts import CASES, Case, dense, of_every_kind, one_side_cost, parts_of, values_at
from sosbands import learn_bands
from sosbands.bands import learn
from sosbands.exceptions import NotCertifiedWarning
from sosbands.problems import (
    OneSidedProblem,
    PrimalSide,
    SideTerm,
    SymmetricProblem,
)
from sosbands.problems.certificate import add_certificates, certify, smallest_factor
from sosbands.problems.operator_penalty import difference_eigenvalues
from sosbands.solvers import Status, solve


def test_smallest_factor_by_hand():
    assert smallest_factor(np.array([2.0, -5.0, 0.0]), np.array([4.0, 0.0, 0.0])) == 0.5
    assert smallest_factor(np.array([-1.0, 0.0]), np.zeros(2)) == 0.0
    assert smallest_factor(np.array([1.0, 3.0]), np.array([1.0, 0.0])) == np.inf
    assert smallest_factor(np.array([1e300]), np.array([1e-300])) == np.inf


# ---------------------------------------------------------------- operators in factor form


def random_side(rng, V, rank, ridge):
    B = rng.standard_normal((len(V), rank))
    A = B @ B.T + ridge * np.eye(len(V))
    return PrimalSide(B, ridge, values_at(A, V)), A


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_primal_side_against_its_dense_matrix(ridge):
    rng = np.random.default_rng(0)
    V = rng.standard_normal((6, 9))
    side, A = random_side(rng, V, 2, ridge)
    assert side.trace == pytest.approx(np.trace(A), rel=1e-13)
    assert side.squared_norm == pytest.approx(np.sum(A**2), rel=1e-13)
    c = rng.standard_normal(6)
    identity, square = values_at(np.eye(6), V), values_at(np.outer(c, c), V)
    changed = {
        "scaled": (side.scaled(3.0), 3.0 * A),
        "plus identity": (side.plus_identity(0.7, identity), A + 0.7 * np.eye(6)),
        "plus square": (side.plus_square(0.7, c, square), A + 0.7 * np.outer(c, c)),
    }
    for new, expected in changed.values():
        np.testing.assert_allclose(dense(new), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(new.f, values_at(expected, V), rtol=1e-12)


@pytest.mark.parametrize(("ranks", "ridges"), [((2, 3), (0.0, 0.0)), ((0, 2), (0.0, 0.5)), ((6, 6), (0.4, 0.1))])
def test_difference_eigenvalues(ranks, ridges):
    rng = np.random.default_rng(1)
    V = rng.standard_normal((6, 9))
    (first, A), (second, B) = (random_side(rng, V, rank, ridge) for rank, ridge in zip(ranks, ridges, strict=True))
    expected = np.linalg.eigvalsh(A - B)
    np.testing.assert_allclose(np.sort(difference_eigenvalues(first, second)), expected, atol=1e-12)


# ---------------------------------------------------------------- repairs


def test_scaling_is_the_smallest_that_covers():
    """One point, f = 0.5 for a residual of 2: the factor is 4 and everything else follows."""
    V = np.ones((1, 1))
    term = SideTerm.of(V, b=0.0, lam1=1.0, lam2=1.0)
    side = PrimalSide(np.sqrt([[0.5]]), 0.0, np.array([0.5]))
    found = certify([term], [np.array([2.0])], (side,), 1.5, lambda sides: term.objective(sides[0], np.array([2.0])))
    assert found.primal_value == pytest.approx(2.0 + 4.0, rel=1e-12)  # lam1 tr A + lam2 ||A||², A = 2
    assert found.gap == pytest.approx(4.5 / 6.0, rel=1e-12)
    assert found.violation == pytest.approx(0.0, abs=1e-15)


def test_nothing_to_cover_costs_nothing():
    term = SideTerm.of(np.eye(3), b=1.0, lam1=1.0, lam2=1.0)
    problem = OneSidedProblem(term, np.array([-1.0, 0.0, -2.0]))
    certificate = problem.certificate(np.zeros(3))
    assert (certificate.dual_value, certificate.primal_value, certificate.gap) == (0.0, 0.0, 0.0)
    worse = problem.certificate(np.ones(3))
    assert worse.dual_value < worse.primal_value == 0.0
    assert worse.gap > 1e-4  # the point is not optimal, so it does not count as converged


def test_no_feasible_point_is_no_certificate():
    """A point without features cannot be covered: the gap is infinite and the solve has not converged."""
    V = np.array([[1.0, 0.5, 0.0]])
    problem = OneSidedProblem(SideTerm.of(V, b=0.0, lam1=1.0, lam2=1.0), np.array([1.0, 1.0, 1.0]))
    certificate = problem.certificate(np.ones(3))
    assert certificate.gap == np.inf
    assert certificate.primal_value == np.inf
    assert certificate.violation > 0.5
    assert solve(problem, max_iterations=5).status != Status.CONVERGED


@pytest.mark.parametrize("tiny", [1e-3, 1e-10, 1e-40, 0.0])
def test_shifts_save_a_point_that_scaling_cannot_reach(tiny):
    """Orthogonal features (up to `tiny`), weight on one only: scaling costs 1/tiny^4, a shift about 1."""
    V = np.array([[1.0, tiny], [0.0, np.sqrt(1 - tiny**2)]])
    r = np.array([1.0, 0.5])
    problem = SymmetricProblem(SideTerm.of(V, b=0.0, lam1=0.0, lam2=1.0), r)
    z = np.array([2.0, 0.0])
    f = problem.state(z).sides[0].f
    assert f[1] == pytest.approx(tiny**2, rel=1e-6, abs=1e-300)
    certificate = problem.certificate(z)
    (side,) = certificate.sides
    assert np.all(values_at(dense(side), V) >= r - 1e-12)
    by_identity = 2 * one_side_cost(np.array([[1.5, 0.0], [0.0, 0.5]]), V, 0.0, 0.0, 1.0)
    assert certificate.primal_value <= by_identity * (1 + 1e-2)
    assert certificate.gap >= -1e-12


@pytest.mark.parametrize("tiny", [1e-80, 1e-100, 1e-150])
def test_an_exploding_scale_is_passed_over_silently(tiny):
    term = SideTerm.of(np.array([[1.0, tiny], [0.0, 1.0]]), b=0.0, lam1=0.0, lam2=1.0)
    for problem in of_every_kind(term, np.array([1.0, 1.0]), nuclear=0.1).values():
        z = np.zeros(problem.n_variables)
        z[0 if problem.n_variables == 2 else 2] = 2.0  # the first point of the upper side
        certificate = problem.certificate(z)
        assert certificate.dual_value <= certificate.primal_value < 20


def test_asymmetric_sides_are_repaired_each_in_its_own_way():
    """Scaling is best below, a shift above: the certificate of the sum is not worse than the sum of certificates."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        case = Case("training", (0.0, 0.0), seed=seed, n=10, ell=(0.3, 0.9))
        problem = case.problem()
        z = rng.uniform(0, 1, 20) * (rng.uniform(size=20) < 0.4)
        parts = [part.certificate(block) for part, block in zip(parts_of(problem), np.split(z, 2), strict=True)]
        together = problem.certificate(z)
        assert together.dual_value == pytest.approx(sum(c.dual_value for c in parts), rel=1e-12)
        assert together.primal_value <= sum(c.primal_value for c in parts) * (1 + 1e-12)


# ---------------------------------------------------------------- far from convergence


def test_converged_means_that_the_gap_of_the_whole_is_within_tolerance(monkeypatch):
    """Parts that converge, and a sum whose certificate is far from it."""

    def loose(certificates):
        tight = add_certificates(certificates)
        value = 2 * tight.primal_value
        return replace(tight, primal_value=value, gap=(value - tight.dual_value) / value)

    monkeypatch.setattr(import_module("sosbands.solvers.solve"), "add_certificates", loose)
    result = solve(CASES["asymmetric"].problem(), tol=1e-4)
    assert result.certificate.gap > 0.4
    assert result.status != Status.CONVERGED


def test_a_tolerance_that_was_not_reached_is_reported_at_the_line_of_the_user(monkeypatch):
    monkeypatch.setattr(learn, "solve", lambda *given, **options: solve(*given, **options | {"max_iterations": 1}))
    rng = np.random.default_rng(0)
    X, r = rng.uniform(-1, 1, (20, 1)), rng.standard_normal(20)
    with pytest.warns(NotCertifiedWarning, match=r"above tol=1e-09") as caught:
        solution = learn_bands(X, r, lengthscale=0.4, tol=1e-9)
    assert caught[0].filename == __file__
    assert solution.status != Status.CONVERGED
    assert solution.gap > 1e-9
