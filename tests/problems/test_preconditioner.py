"""The squared kernel, pairs of eigenvectors, and preconditioners made of them."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, cg

from contracts import low_rank_features
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.problems import (
    OperatorPenaltyProblem,
    SideTerm,
    TrainingPenaltyProblem,
    side,
    training_penalty,
)
from sosbands.problems.side import MOST_SQUARES, SQUARES_LEFT
from sosbands.problems.training_penalty import MIN_ROWS, MOST_PAIRS
from sosbands.solvers import solve

PENALTIES = {"b": 5.0, "lam1": 0.5, "lam2": 0.5}


def side_term(n=300, ell=0.6, d=1, rank=1e-9):
    return SideTerm.of(low_rank_features(n, d, ell, rank), **PENALTIES)


def residuals(n):
    return np.random.default_rng(1).gamma(1.5, size=n) - 1.5


# ---------------------------------------------------------------- the squared kernel


@pytest.mark.parametrize(("n", "ell", "d"), [(300, 1.0, 1), (401, 2.0, 1), (300, 0.3, 8), (401, 1.0, 8)])
def test_squares_of_the_kernel(n, ell, d):
    """``T' K2_PP T`` is the Nystrom projection of the squared kernel: exact at the pivots, below it elsewhere."""
    space = side_term(n, ell, d).space
    K2 = np.square(space.V.T @ space.V)
    T, pivots, missing = space.squares
    remainder = K2 - T.T @ K2[np.ix_(pivots, pivots)] @ T
    np.testing.assert_allclose(T[:, pivots], np.eye(len(pivots)), atol=1e-8)
    np.testing.assert_allclose(remainder[pivots], 0.0, atol=1e-9)
    assert np.linalg.eigvalsh(remainder)[0] >= -1e-9 * n
    np.testing.assert_allclose(missing, np.diag(remainder) / np.diag(K2), atol=1e-8)
    left = np.trace(remainder) / np.trace(K2)
    if d == 1:  # smooth: few features are enough
        assert len(T) < 40
        assert left <= SQUARES_LEFT
    else:  # rough: many features leave much out
        assert len(T) == MOST_SQUARES
        assert left > 0.01
    assert space.squares is space.squares


@pytest.fixture
def many_features(monkeypatch):
    """Features that leave out next to nothing, so that formulas hold to a few digits."""
    monkeypatch.setattr(side, "SQUARES_LEFT", 1e-6)
    monkeypatch.setattr(training_penalty, "MOST_PAIRS", 10_000)
    monkeypatch.setattr(training_penalty, "TELLING", 0.0)


# ---------------------------------------------------------------- Newton's equations of the training-set penalty


def training_problem(lam_pen=1.0, different=False):
    lower = side_term(ell=1.0)
    upper = side_term(ell=1.6) if different else lower
    return TrainingPenaltyProblem(lower, upper, residuals(300), lam_pen)


def newton_equations(problem, shift=1e-3):
    """The matrix on the free variables near a solution, the point, and those free variables."""
    z = solve(problem, tol=1e-3, solver="newton").variables
    _, grad = problem.value_and_grad(z)
    free = z + grad > problem.bounds.lower
    assert 0 < np.count_nonzero(free[: 2 * problem.n]) < problem.n
    return matrix_at(problem, z, free, shift), z, free


def matrix_at(problem, z, free, shift):
    product = problem.hessian_product(z, free)
    return np.column_stack([product(e) + shift * e for e in np.eye(np.count_nonzero(free))])


def check_positive_definite(apply, size, atol):
    P = np.column_stack([apply(e) for e in np.eye(size)])
    np.testing.assert_allclose(P, P.T, atol=atol * np.abs(P).max())
    P = (P + P.T) / 2
    assert np.linalg.eigvalsh(P)[0] > 0, "not positive definite"
    return P


def check_inverse(matrix, apply, digits):
    P = check_positive_definite(apply, len(matrix), 1e-10)
    for v in np.random.default_rng(5).standard_normal((5, len(matrix))):
        assert np.linalg.norm(apply(matrix @ v) - v) <= 10.0**-digits * np.linalg.norm(v), "no inverse"
    # what decides about conjugate gradients: the spectrum of the preconditioned matrix
    L = np.linalg.cholesky(matrix)
    spectrum = np.linalg.eigvalsh(L.T @ P @ L)
    assert 0.98 <= spectrum[0] <= spectrum[-1] <= 1.02, "far from the identity"


different_features = pytest.mark.parametrize("different", [False, True], ids=["same", "different"])


@pytest.fixture(params=["pairs", "squares"])
def matrix_kind(request, monkeypatch):
    """Both kinds of features on a problem of few rows."""
    if request.param == "squares":
        monkeypatch.setattr(training_penalty, "MANY_ROWS", 0)
        monkeypatch.setattr(training_penalty, "MANY_PAIRS", 0)
    return request.param


@different_features
@pytest.mark.parametrize("lam_pen", [1e-2, 1.0, 100.0])
def test_newton_preconditioner_inverts(lam_pen, different, matrix_kind, many_features):  # noqa: ARG001
    """And the check notices the coupling ``Y_a = scale [Y_lo; -Y_up]`` with the wrong sign."""
    problem = training_problem(lam_pen, different)
    matrix, z, free = newton_equations(problem)
    inverse = problem.preconditioner(z, free, 1e-3)
    kind, n = problem._matrix[1], problem.n
    assert (len(kind.lo.Y) < 60) == (matrix_kind == "squares")
    digits = 2 if matrix_kind == "squares" else 6
    check_inverse(matrix, inverse, digits)
    if lam_pen == 1:
        kind.Y_a = -kind.Y_a
        with pytest.raises(AssertionError):
            check_inverse(matrix, kind.inverse(free[:n], free[n : 2 * n]), digits=2)


def test_pairs_know_the_share_of_each_row(many_features):  # noqa: ARG001
    """What the difference of the sides costs at each point may differ; all pairs still give the exact inverse."""
    plain = training_problem()
    shares = np.random.default_rng(3).uniform(0.1, 4.0, plain.n)
    problem = TrainingPenaltyProblem(*plain.sides, plain.r, 1.0, shares)
    matrix, z, free = newton_equations(problem)
    check_inverse(matrix, problem.preconditioner(z, free, 1e-3), digits=6)


@different_features
def test_inverse_of_what_features_keep(different, matrix_kind, monkeypatch):
    """With few features the inverse is not that of Newton's matrix, but exactly that of features and diagonals."""
    monkeypatch.setattr(training_penalty, "MOST_PAIRS", 6)
    monkeypatch.setattr(training_penalty, "FEWEST_PAIRS", 6)
    monkeypatch.setattr(side, "MOST_SQUARES", 6)
    problem = training_problem(1.0, different)
    n, scale, shift = problem.n, problem.scale, 1e-3
    _, z, free = newton_equations(problem)
    apply = problem.preconditioner(z, free, shift)
    kind = problem._matrix[1]
    H_lo, H_up = (each.Y.T @ each.Y for each in (kind.lo, kind.up))
    left_lo, left_up = kind.lo.left, kind.up.left
    assert min(left_lo.max(), left_up.max()) > (shift if matrix_kind == "squares" else 0.01)
    assert kind.lo.Y.shape == (6, n)
    sides = ((kind.lo, kind.up), (H_lo, H_up), problem.state(z).sides, problem.sides)
    for features, H, state, term in zip(*sides, strict=True):
        whole = state.hessian_block(np.arange(n))
        if matrix_kind == "pairs":  # below the Hessian, and its diagonal is exact all the same
            np.testing.assert_allclose(np.diag(H) + features.left, np.diag(whole), rtol=1e-10)
            assert np.linalg.eigvalsh(whole - H)[0] >= -1e-10 * np.trace(whole)
        else:
            np.testing.assert_allclose(features.left, term.space.squares[2] * np.diag(whole), atol=1e-12)
    delta = scale**2 / 2 + shift + scale**2 * (left_lo + left_up)
    J = np.block([[np.eye(n), np.zeros((n, n)), scale * np.eye(n)], [np.zeros((n, n)), np.eye(n), -scale * np.eye(n)]])
    H = J.T @ np.block([[H_lo, np.zeros((n, n))], [np.zeros((n, n)), H_up]]) @ J
    H += np.diag(np.concatenate([shift + left_lo, shift + left_up, delta]))
    matrix = H[np.ix_(free, free)]
    for v in np.random.default_rng(5).standard_normal((3, len(matrix))):
        np.testing.assert_allclose(apply(matrix @ v), v, atol=1e-7)


def test_a_preconditioner_is_of_its_point_and_shift(many_features):  # noqa: ARG001
    problem = training_problem()
    _, z, free = newton_equations(problem)
    seen = []
    for at, shift in ((z, 1e-3), (z, 0.1), (0.5 * z, 0.1)):
        matrix = matrix_at(problem, at, free, shift)
        assert all(np.linalg.norm(matrix - other) > 1e-3 * np.linalg.norm(matrix) for other in seen)
        check_inverse(matrix, problem.preconditioner(at, free, shift), digits=6)
        seen.append(matrix)


def test_more_free_multipliers_than_pairs(many_features):  # noqa: ARG001
    """Their matrix has no full rank, and a tiny shift does not help in double precision: the inverse is still there."""
    X = np.repeat(np.linspace(0, 1, 20), 10)[:, None]
    term = SideTerm.of(learn_features(X, StationaryKernel("matern52", (1.0,)), 1e-3).V, **PENALTIES)
    problem = TrainingPenaltyProblem(term, term, residuals(200), 1.0)
    z = solve(problem, tol=1e-3, solver="newton").variables
    assert 2 * max(side.part.n_pairs for side in problem.state(z).sides) < 400
    apply = problem.preconditioner(z, np.ones(600, dtype=bool), 1e-18)
    solved = apply(np.random.default_rng(2).standard_normal(600))
    assert np.isfinite(solved).all()


def test_no_preconditioner_for_few_rows():
    n = MIN_ROWS - 1
    term = side_term(n)
    problem = TrainingPenaltyProblem(term, term, residuals(n), 1.0)
    assert problem.preconditioner(np.zeros(3 * n), np.ones(3 * n, dtype=bool), 1.0) is None


# ---------------------------------------------------------------- conjugate gradients


def iterations(matrix, rhs, inverse=None):
    """Conjugate gradient steps to a relative residual of 1e-6."""
    steps = []
    M = None if inverse is None else LinearOperator(matrix.shape, matvec=inverse, dtype=float)
    solution, info = cg(matrix, rhs, rtol=1e-6, maxiter=5000, M=M, callback=lambda _: steps.append(1))
    assert info == 0
    assert np.linalg.norm(matrix @ solution - rhs) <= 1e-5 * np.linalg.norm(rhs)
    return len(steps)


def check_saving(problem, shift, part):
    matrix, z, free = newton_equations(problem, shift)
    rhs = np.random.default_rng(6).standard_normal(len(matrix))
    inverse = problem.preconditioner(z, free, shift)
    assert iterations(matrix, rhs, inverse) <= part * iterations(matrix, rhs)
    return z, inverse, len(matrix)


@different_features
def test_training_preconditioner_saves_iterations(different, matrix_kind):  # noqa: ARG001
    check_saving(training_problem(1.0, different), 1e-3, 0.5)


def test_few_of_many_pairs_save_iterations():
    """In many dimensions, where the squared kernel has no low rank, and at a penalty that asks for many iterations."""
    term = side_term(300, ell=2.0, d=8)
    problem = TrainingPenaltyProblem(term, term, residuals(300), 100.0)
    z, *_ = check_saving(problem, 1e-3, 0.5)
    assert problem._matrix[1].lo.Y.shape[0] == MOST_PAIRS
    assert min(side.part.n_pairs for side in problem.state(z).sides) > 2 * MOST_PAIRS


@pytest.mark.parametrize(
    ("lam_pen", "part"), [((0.0, 1e-2), 0.9), ((0.0, 1.0), 0.9), ((0.0, 100.0), 1.2), ((0.3, 1.0), 0.9)]
)
def test_operator_preconditioner_is_positive_definite_and_saves_iterations(lam_pen, part):
    problem = OperatorPenaltyProblem(side_term(80, ell=1.0, rank=1e-6), residuals(80), *lam_pen)
    _, inverse, size = check_saving(problem, 1e-3, part)
    check_positive_definite(inverse, size, 1e-8)
