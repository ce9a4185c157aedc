"""What makes cold starts quick with very many points must not change where they end."""

import sys

import numpy as np
import pytest

from sosbands.problems import (
    AsymmetricProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import newton, solve

solve_module = sys.modules[solve.__module__]  # `sosbands.solvers.solve` is the function


def problems():
    rng = np.random.default_rng(0)
    V = rng.standard_normal((12, 150)) / 4
    W = rng.standard_normal((9, 150)) / 3
    r = (0.3 + np.abs(V[0])) * (rng.gamma(1.5, size=150) - 1.5)
    term, other = (SideTerm(M, b=2.0, lam1=0.3, lam2=0.5) for M in (V, W))
    return {
        "asymmetric": AsymmetricProblem(term, other, r),
        "symmetric": SymmetricProblem(term, r),
        "training": TrainingPenaltyProblem(term, term, r, 0.05),
        "training, two kernels": TrainingPenaltyProblem(term, other, r, 5.0),
        "operator": OperatorPenaltyProblem(term, r, 0.1, 0.5),
    }


@pytest.mark.parametrize("name", list(problems()))
@pytest.mark.parametrize("solver", ["newton", "subspace"])
def test_a_start_from_some_of_the_points_ends_at_the_same_optimum(name, solver, monkeypatch):
    plain = solve(problems()[name], tol=1e-7, solver=solver)
    for constant, value in (("MANY_ROWS", 100), ("SAMPLE_ROWS", 40), ("EXTREME_ROWS", 15)):
        monkeypatch.setattr(solve_module, constant, value)
    started = solve(problems()[name], tol=1e-7, solver=solver)
    assert started.certificate.gap <= 1e-7
    assert started.certificate.dual_value == pytest.approx(plain.certificate.dual_value, rel=2e-7)


@pytest.mark.parametrize("name", list(problems()))
def test_the_sample_holds_the_points_that_ask_for_most(name):
    for part in problems()[name].parts():
        rows = np.argsort(part.sizes)[-30:]
        small = part.subsampled(rows)
        result = solve(small, tol=1e-6)
        z = part.extended(result.variables, rows, small)
        assert part.value_and_grad(z)[0] <= solve(part, tol=1e-6).certificate.primal_value
        # the same multipliers, at their own points, and none elsewhere
        assert np.count_nonzero(z) == np.count_nonzero(result.variables)
        gamma = z[: len(part.sizes)]
        np.testing.assert_array_equal(gamma[rows], result.variables[: len(rows)])


@pytest.mark.parametrize("name", list(problems()))
def test_few_variables_entering_at_a_time_end_at_the_same_optimum(name, monkeypatch):
    plain = solve(problems()[name], tol=1e-7)
    monkeypatch.setattr(newton, "ENTERING", 2)
    slow = solve(problems()[name], tol=1e-7)
    assert slow.certificate.gap <= 1e-7
    assert slow.certificate.dual_value == pytest.approx(plain.certificate.dual_value, rel=2e-7)


def test_only_the_strongest_may_enter(monkeypatch):
    monkeypatch.setattr(newton, "ENTERING", 2)
    z, grad = np.array([0.0, 0.0, 0.0, 1.0, 0.0]), np.array([3.0, 1.0, 2.0, 5.0, -1.0])
    np.testing.assert_array_equal(newton._left_for_later(z, grad, np.zeros(5)), [False, True, False, False, False])
