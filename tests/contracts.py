"""Contracts of the dual problems and conjugates, and independent dense formulas to check values against.

Every check raises AssertionError; the test modules run them on the real objects and on broken ones.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from sosbands.kernels import StationaryKernel, learn_features
from sosbands.problems import (
    AsymmetricProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import Status, solve
from studies.reference import sdp

# ---------------------------------------------------------------- dense formulas, straight from the definitions


def matern52(X, Y, ell):
    s = np.sqrt(5) * cdist(X, Y) / ell
    return (1 + s + s**2 / 3) * np.exp(-s)


def square_root(K):
    """Features with orthogonal rows, ``V'V = K``; not the ones that the library would choose."""
    w, Q = np.linalg.eigh(K)
    keep = w > 1e-12 * w[-1]
    return np.sqrt(w[keep])[:, None] * Q[:, keep].T


def low_rank_features(n, d=1, ell=0.4, left_out=1e-7):
    """The library's, of uniform points."""
    X = np.random.default_rng(n + d).uniform(-1, 1, (n, d))
    return learn_features(X, StationaryKernel("matern52", (ell,)), left_out).V


def positive_part(M):
    w, U = np.linalg.eigh(M)
    return (U * np.maximum(w, 0.0)) @ U.T


def omega_star(M, lam1, lam2):
    """Value and gradient of ``||[M - lam1 I]_+||_F^2 / (4 lam2)``."""
    plus = positive_part(M - lam1 * np.eye(len(M)))
    return np.sum(plus**2) / (4 * lam2), plus / (2 * lam2)


def values_at(A, V):
    return np.diag(V.T @ A @ V)


def one_side_cost(A, V, b, lam1, lam2, tau=0.0, target=None):
    cost = b * values_at(A, V).mean() + lam1 * np.trace(A) + lam2 * np.sum(A**2)
    return cost if tau == 0 else cost + b / (V.shape[1] * tau) * np.maximum(target - values_at(A, V), 0.0).sum()


def dense(side):
    return side.B @ side.B.T + side.ridge * np.eye(len(side.B))


# ---------------------------------------------------------------- the problems under test


@dataclass(frozen=True)
class Case:
    """One random problem of one kind, with what is needed to state it independently."""

    kind: str  # "training", "operator"; penalties (0, 0) and inf are the two limits
    lam_pen: tuple
    seed: int = 0
    n: int = 12
    ell: tuple = (0.6, 0.6)
    b: float = 1.0
    lam1: float = 0.3
    lam2: float = 0.7
    tau: float = 0.0

    @property
    def data(self):
        rng = np.random.default_rng(self.seed)
        X = rng.uniform(-1, 1, (self.n, 2))
        return X, rng.standard_normal(self.n) + 0.3

    @property
    def r(self):
        return self.data[1]

    @property
    def features(self):
        X = self.data[0]
        return tuple(square_root(matern52(X, X, ell)) for ell in self.ell)

    @property
    def is_symmetric(self):
        return np.isinf(self.lam_pen).any()

    @property
    def penalties(self):
        return {"b": self.b, "lam1": self.lam1, "lam2": self.lam2, "tau": self.tau}

    def targets(self):
        return (np.abs(self.r),) if self.is_symmetric else (-self.r, self.r)

    def problem(self, broken=None):
        """The library's problem, or one of the class `broken` that is derived from its own."""

        def kind(base):
            return broken if broken is not None and issubclass(broken, base) else base

        V_lo, V_up = self.features
        lower = SideTerm.of(V_lo, **self.penalties)
        upper = SideTerm.of(V_up, **self.penalties) if self.ell[0] != self.ell[1] else lower
        if self.is_symmetric:
            shared = SideTerm(lower.space, lower.cost.shared)
            return kind(SymmetricProblem)(shared, self.r)
        if not any(self.lam_pen):
            return kind(AsymmetricProblem)(lower, upper, self.r)
        if self.kind == "operator":
            return kind(OperatorPenaltyProblem)(lower, self.r, *self.lam_pen)
        return kind(TrainingPenaltyProblem)(lower, upper, self.r, self.lam_pen[1])

    def objective(self, *operators):
        """Two-sided objective of dense operators (one, counted twice, in the symmetric limit)."""
        if self.is_symmetric:
            A, V, shared = operators[0], self.features[0], {**self.penalties, "tau": 2 * self.tau}
            return 2 * one_side_cost(A, V, **shared, target=np.abs(self.r))
        each = zip(operators, self.features, self.targets(), strict=True)
        value = sum(one_side_cost(A, V, **self.penalties, target=target) for A, V, target in each)
        if self.kind == "operator":
            w = np.linalg.eigvalsh(operators[0] - operators[1])
            return value + self.lam_pen[0] * np.abs(w).sum() + self.lam_pen[1] * np.sum(w**2)
        f_lo, f_up = (values_at(A, V) for A, V in zip(operators, self.features, strict=True))
        return value + self.lam_pen[1] * np.sum((f_lo - f_up) ** 2)

    def optimum(self):
        """Optimal value from the interior point solver."""
        return _optimum(self)


@cache
def _optimum(case):
    V_lo, V_up = case.features
    if case.is_symmetric:
        return sdp.symmetric_sdp(V_lo, case.r, **case.penalties).value
    if not any(case.lam_pen):
        return sdp.asymmetric_sdp(V_lo, V_up, case.r, **case.penalties).value
    if case.kind == "operator":
        pens = {"lam_pen1": case.lam_pen[0], "lam_pen2": case.lam_pen[1]}
        return sdp.operator_penalty_sdp(V_lo, case.r, **case.penalties, **pens).value
    return sdp.training_penalty_sdp(V_lo, V_up, case.r, **case.penalties, lam_pen=case.lam_pen[1]).value


CASES = {
    "asymmetric": Case("training", (0.0, 0.0)),
    "asymmetric, two kernels, b=0": Case("training", (0.0, 0.0), seed=1, ell=(0.3, 0.9), b=0.0),
    "training 1e-3": Case("training", (0.0, 1e-3), seed=2),
    "training 0.5": Case("training", (0.0, 0.5), seed=3, b=0.0, lam1=0.0),
    "training 1, two kernels": Case("training", (0.0, 1.0), seed=4, ell=(0.3, 0.9)),
    "training 100, two kernels": Case("training", (0.0, 100.0), seed=5, ell=(0.8, 0.4), b=10.0),
    "operator 1": Case("operator", (0.0, 1.0), seed=6),
    "operator 1e-3": Case("operator", (0.0, 1e-3), seed=7, b=0.0),
    "operator with nuclear part": Case("operator", (0.4, 0.3), seed=8),
    "operator 100 with nuclear part": Case("operator", (1.0, 100.0), seed=9, b=10.0),
    "symmetric": Case("training", (0.0, np.inf), seed=10),
    "symmetric, b=0": Case("training", (0.0, np.inf), seed=11, b=0.0, lam1=0.0),
    "asymmetric, rows outside": Case("training", (0.0, 0.0), seed=12, n=15, b=5.0, tau=0.1),
    "asymmetric, two kernels, rows outside": Case("training", (0.0, 0.0), seed=13, ell=(0.3, 0.9), b=30.0, tau=0.2),
    "training 1e-3, rows outside": Case("training", (0.0, 1e-3), seed=14, b=20.0, tau=0.05),
    "training 1, two kernels, rows outside": Case("training", (0.0, 1.0), seed=15, ell=(0.3, 0.9), b=10.0, tau=0.25),
    "training 100, rows outside": Case("training", (0.0, 100.0), seed=16, b=50.0, tau=0.1, lam1=0.0),
    "operator 1, rows outside": Case("operator", (0.0, 1.0), seed=17, b=10.0, tau=0.1),
    "operator with nuclear part, rows outside": Case("operator", (0.4, 0.3), seed=18, b=10.0, tau=0.2),
    "symmetric, rows outside": Case("training", (0.0, np.inf), seed=19, n=15, b=10.0, tau=0.1),
}


def of_every_kind(term, r, lam_pen=1.0, nuclear=0.0):
    return {
        "asymmetric": AsymmetricProblem(term, term, r),
        "symmetric": SymmetricProblem(term, r),
        "training": TrainingPenaltyProblem(term, term, r, lam_pen),
        "operator": OperatorPenaltyProblem(term, r, nuclear, lam_pen),
    }


# ---------------------------------------------------------------- the contract of a dual problem


def parts_of(problem):
    """Independent problems over consecutive blocks of the variables, itself if they are all coupled."""
    return getattr(problem, "parts", (problem,))


def random_points(problem, seed, count=3, size=1.0):
    """Feasible points with every multiplier well inside, large enough for operators of several squares."""
    rng = np.random.default_rng(seed)
    bounded = np.isfinite(problem.bounds.lower)
    reach = np.where(np.isfinite(problem.bounds.upper), problem.bounds.upper / 3.1, 1.0)
    for _ in range(count):
        inside = rng.uniform(0.3, 3.0, problem.n_variables) * reach
        yield size * np.where(bounded, inside, 0.5 * rng.standard_normal(problem.n_variables))


def check_gradient(problem):
    rng = np.random.default_rng(0)
    for z in random_points(problem, 1):
        before = z.copy()
        value, grad = problem.value_and_grad(z)
        assert np.array_equal(z, before), "the point was written to"
        assert value != 0
        assert grad.shape == (problem.n_variables,)
        kept = grad.copy()
        grad *= np.nan  # the caller owns the gradient: spoiling it must not change the next answer
        again, grad = problem.value_and_grad(z)
        assert again == value
        assert np.array_equal(grad, kept)
        h = 1e-5
        for _ in range(3):
            d = rng.standard_normal(problem.n_variables)
            difference = (problem.value_and_grad(z + h * d)[0] - problem.value_and_grad(z - h * d)[0]) / (2 * h)
            assert abs(difference - grad @ d) <= 1e-6 * np.linalg.norm(grad) * np.linalg.norm(d)


def check_hessian_product(problem):
    """Minus the Hessian on a support: differences of gradients, symmetric, positive semidefinite, calls independent."""
    rng = np.random.default_rng(2)
    h = 1e-6
    for part, share in product(parts_of(problem), (1.0, 0.5, 0.1)):
        for z in random_points(part, 3):
            support = rng.uniform(size=part.n_variables) < share
            support[rng.integers(part.n_variables)] = True
            d, e = rng.standard_normal((2, np.count_nonzero(support)))
            before = d.copy()
            times = part.hessian_product(z, support)
            Hd, He = times(d), times(e)
            assert np.array_equal(times(d), Hd), "one product changes the next"
            assert np.array_equal(d, before), "the direction was written to"
            step = np.zeros(part.n_variables)
            step[support] = h * d
            difference = (part.value_and_grad(z - step)[1] - part.value_and_grad(z + step)[1]) / (2 * h)
            assert np.linalg.norm(difference[support] - Hd) <= 1e-5 * np.linalg.norm(Hd)
            assert abs(e @ Hd - d @ He) <= 1e-9 * np.linalg.norm(e) * np.linalg.norm(Hd), "not symmetric"
            assert d @ Hd >= 0, "not positive semidefinite"


def check_concavity(problem):
    points = list(random_points(problem, 4, count=4)) + list(random_points(problem, 5, count=2, size=0.05))
    points.append(np.zeros(problem.n_variables))
    for x in points:
        at_x, grad = problem.value_and_grad(x)
        for y in points:
            at_y, _ = problem.value_and_grad(y)
            slack = 1e-10 * (abs(at_x) + abs(at_y) + 1)
            assert at_y <= at_x + grad @ (y - x) + slack, "above its tangent"
            assert problem.value_and_grad((x + y) / 2)[0] >= (at_x + at_y) / 2 - slack, "below its chord"


def check_certificate(problem, case, certificate):
    """Bounds, feasibility and values of one certificate, all recomputed from dense operators."""
    scale = max(abs(case.optimum()), 1e-12)
    assert certificate.dual_value <= case.optimum() + 1e-6 * scale, "the dual value is no lower bound"
    assert certificate.primal_value >= case.optimum() - 1e-6 * scale, "the primal value is no upper bound"
    assert certificate.gap >= -1e-12
    assert np.isfinite(certificate.primal_value)
    gap = (certificate.primal_value - certificate.dual_value) / certificate.primal_value
    assert certificate.gap == pytest.approx(gap, rel=1e-12)
    operators = [dense(side) for side in certificate.sides]
    for A, side, V, target in zip(operators, certificate.sides, case.features, case.targets(), strict=False):
        f = values_at(A, V)
        size = np.abs(target).max() + np.abs(f).max()
        np.testing.assert_allclose(side.f, f, rtol=1e-8, atol=1e-11 * size)
        assert case.tau > 0 or np.all(f >= target - 1e-9 * size), "a residual is not covered"
    missing = [np.max(t - s.f, initial=0.0) for s, t in zip(certificate.sides, case.targets(), strict=True)]
    rms = np.sqrt(np.mean(np.concatenate(case.targets()) ** 2))
    assert certificate.violation == pytest.approx(max(missing) / rms, rel=1e-12)
    assert case.tau > 0 or 0 <= certificate.violation <= 1e-9
    np.testing.assert_allclose(certificate.primal_value, problem.objective(certificate.sides), rtol=1e-12)
    np.testing.assert_allclose(certificate.primal_value, case.objective(*operators), rtol=1e-8)


def check_certificates_anywhere(problem, case):
    for size in (0.0, 1e-3, 0.1, 1.0, 100.0):
        for z in random_points(problem, 6, count=2, size=size):
            before = z.copy()
            certificate = problem.certificate(z)
            assert np.array_equal(z, before), "the point was written to"
            check_certificate(problem, case, certificate)
            inside = problem.bounds.clip(z)
            np.testing.assert_allclose(
                certificate.dual_value, problem.value_and_grad(inside)[0], rtol=1e-12, atol=1e-12
            )
    outside = next(random_points(problem, 7)) - 2.0  # some multipliers negative, or above their ceiling: clipped
    check_certificate(problem, case, problem.certificate(outside))
    inside = problem.bounds.clip(outside)
    assert problem.certificate(outside).dual_value == problem.certificate(inside).dual_value


def check_optimum(problem, case, solver="lbfgs"):
    """Bounds enclose the optimum all along a solve, and meet at it."""
    scale = case.optimum()
    with patch.object(np.linalg, "eigh", wraps=np.linalg.eigh) as made:
        result = solve(problem, tol=1e-6, solver=solver, max_iterations=500)
    assert result.decompositions == made.call_count or solver not in ("newton", "lbfgs")
    check_certificate(problem, case, result.certificate)
    if len(parts_of(problem)) == 1:  # else the rows are those of the parts
        for row in result.history:
            assert row.dual_value <= case.optimum() + 1e-6 * scale
            assert row.primal_value >= case.optimum() - 1e-6 * scale
        assert min(row.gap for row in result.history) == pytest.approx(result.certificate.gap)
        assert np.all(np.diff([row.decompositions for row in result.history]) >= 0)
    assert result.status == Status.CONVERGED
    assert abs(result.certificate.dual_value - case.optimum()) <= 2e-6 * scale  # SDP values have six digits
    return result


def check_round_trip(problem):
    for z in random_points(problem, 8):
        np.testing.assert_allclose(problem.start_from(problem.dual_point(z)), z, rtol=1e-12, atol=1e-14)


def check_decompositions(problem):
    """Every eigendecomposition is counted, and none is made twice."""
    z, other = random_points(problem, 9, count=2)
    start = problem.decompositions
    with patch.object(np.linalg, "eigh", wraps=np.linalg.eigh) as made:
        problem.value_and_grad(z)
        once = problem.decompositions
        assert once - start == made.call_count > 0
        problem.certificate(z)
        problem.value_and_grad(z)
        assert problem.decompositions == once, "the point just evaluated was decomposed again"
        assert made.call_count == once - start
        problem.certificate(other)
        assert problem.decompositions - start == made.call_count > once - start


def check_parts(problem):
    """Values of the parts over consecutive blocks add up."""
    parts = parts_of(problem)
    assert sum(part.n_variables for part in parts) == problem.n_variables
    (z,) = random_points(problem, 10, count=1)
    blocks = np.split(z, np.cumsum([part.n_variables for part in parts])[:-1])
    values = [part.value_and_grad(block) for part, block in zip(parts, blocks, strict=True)]
    value, grad = problem.value_and_grad(z)
    np.testing.assert_allclose(sum(v for v, _ in values), value, rtol=1e-12)
    np.testing.assert_allclose(np.concatenate([g for _, g in values]), grad, rtol=1e-12)


# ---------------------------------------------------------------- the contract of a conjugate


def check_conjugate(regulariser, omega, seed, p=7, scale=3.0):
    """Fenchel-Young with equality at the gradient, finite differences, and untouched inputs.

    `omega` is the regulariser itself: value at a symmetric matrix, +inf outside its domain.
    """
    rng = np.random.default_rng(seed)

    def symmetric(size):
        M = size * rng.standard_normal((p, p))
        return (M + M.T) / 2

    for _ in range(4):
        M = symmetric(scale)
        before = M.copy()
        value, grad = regulariser.conjugate(M)
        assert np.array_equal(M, before), "the matrix was written to"
        assert np.array_equal(grad, grad.T) or np.allclose(grad, grad.T, atol=1e-13)
        assert value > 0
        # equality at the gradient
        np.testing.assert_allclose(omega(grad) + value, np.sum(grad * M), rtol=1e-10)
        # moves along the eigenvectors of M find an eigenvalue that the gradient misses
        aligned = [grad + s * np.outer(u, u) for u in np.linalg.eigh(M)[1].T for s in (0.01, -0.01, 0.5)]
        for _ in range(5):
            root = rng.standard_normal((p, p))
            for A in (root @ root.T, symmetric(1.0), grad + symmetric(0.01), 1.1 * grad, 0.9 * grad, 0 * M, *aligned):
                assert omega(A) + value >= np.sum(A * M) - 1e-10 * (1 + abs(value)), "Fenchel-Young fails"
            D, h = symmetric(1.0), 1e-5
            difference = (regulariser.conjugate(M + h * D)[0] - regulariser.conjugate(M - h * D)[0]) / (2 * h)
            assert abs(difference - np.sum(grad * D)) <= 1e-6 * np.linalg.norm(grad) * np.linalg.norm(D)


# ---------------------------------------------------------------- problems with a known optimum


@dataclass(frozen=True)
class Manufactured:
    """Residuals for which the given multipliers and operators are optimal, so the value is known."""

    V: np.ndarray
    r: np.ndarray
    value: float
    lower: np.ndarray
    upper: np.ndarray


def manufacture(V, *, b, lam1, lam2, lam_pen=0.0, squares=5, size=4.0, seed=0):
    """Two-sided problem of known optimum: sparse multipliers first, residuals from them.

    With disjoint supports S_lo, S_up and alpha_0 = 2 lam_pen (f_up - f_lo)(X) the residuals r = f_up on S_up, -f_lo
    on S_lo and anything in between elsewhere meet all optimality conditions.
    """
    rng = np.random.default_rng(seed)
    n = V.shape[1]
    chosen = rng.permutation(n)[: 2 * squares]
    g_lo, g_up = np.zeros(n), np.zeros(n)
    g_lo[chosen[:squares]] = size * rng.uniform(0.5, 1.5, squares)
    g_up[chosen[squares:]] = size * rng.uniform(0.5, 1.5, squares)

    def sides(a):
        return [omega_star((V * (c - b / n)) @ V.T, lam1, lam2) for c in (g_lo + a, g_up - a)]

    def penalty_part(a):  # what depends on alpha_0 in minus the dual, and its gradient
        (lo, A_lo), (up, A_up) = sides(a)
        slope = a / (2 * lam_pen) + values_at(A_lo, V) - values_at(A_up, V)
        return lo + up + a @ a / (4 * lam_pen), slope

    a = np.zeros(n)
    if lam_pen:
        options = {"maxiter": 5000, "maxfun": 20000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 40}
        a = minimize(penalty_part, a, jac=True, method="L-BFGS-B", options=options).x
    (lo, A_lo), (up, A_up) = sides(a)
    f_lo, f_up = values_at(A_lo, V), values_at(A_up, V)
    r = -0.9 * f_lo + rng.uniform(0, 1, n) * 0.9 * (f_lo + f_up)
    r[g_lo > 0], r[g_up > 0] = -f_lo[g_lo > 0], f_up[g_up > 0]
    dual = (g_up - g_lo) @ r - lo - up - (a @ a / (4 * lam_pen) if lam_pen else 0.0)
    primal = sum(one_side_cost(A, V, b, lam1, lam2) for A in (A_lo, A_up)) + lam_pen * np.sum((f_lo - f_up) ** 2)
    assert dual > 0
    assert abs(primal - dual) <= 1e-8 * dual, "the construction is not optimal"
    return Manufactured(V, r, dual, A_lo, A_up)


def check_known(result, known, lam2):
    """The known value between the bounds and near them, and operators as near as strong convexity says."""
    assert result.status == Status.CONVERGED
    certificate = result.certificate
    assert certificate.gap <= 1e-6
    assert abs(certificate.dual_value - known.value) <= 1e-6 * known.value
    assert certificate.dual_value <= known.value * (1 + 1e-8)
    assert certificate.primal_value >= known.value * (1 - 1e-8)
    # lam2 ||A - A*||² over the sides is at most P - P*
    sides = zip(certificate.sides, (known.lower, known.upper), strict=True)
    distance = sum(np.sum((dense(side) - A) ** 2) for side, A in sides)
    assert lam2 * distance <= certificate.primal_value - known.value + 1e-8 * known.value
