"""Newton's method in small dense matrices: its numbers against those of the problems, its solutions against others'."""

import numpy as np
import pytest

from contracts import CASES, parts_of
from sosbands import learn_bands
from sosbands.problems import OneSidedProblem, SideTerm, TrainingPenaltyProblem
from sosbands.solvers import Status, dense, solve
from sosbands.solvers.dense import solve_dense
from sosbands.solvers.solve import is_dense

SOFT = {name: case for name, case in CASES.items() if "rows outside" in name and "operator" not in name}


def random_part(seed, n=60, p=12, coupled=None, b=10.0, tau=0.1):
    """A one-sided problem, or one whose sides are coupled at some rows."""
    rng = np.random.default_rng(seed)
    V, r = rng.standard_normal((p, n)) / np.sqrt(p), rng.gamma(1.0, size=n) - 1.0
    V[0] = 1.0
    term = SideTerm.of(V, b=b, lam1=0.3, lam2=0.5, tau=tau)
    if coupled is None:
        return OneSidedProblem(term, r)
    shares = np.where(rng.permutation(n) < coupled, n / coupled, 0.0)
    return TrainingPenaltyProblem(term, term, r, 0.7, shares)


def inside(part, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.uniform(0.1, 0.9, part.n_variables) * np.minimum(part.bounds.upper, 1.0)
    z[len(part.targets) * part.n :] = 0.3 * rng.standard_normal(part.n_variables - len(part.targets) * part.n)
    return z


@pytest.mark.parametrize("coupled", [None, 60, 17])
def test_the_hessian_is_that_of_the_problem(coupled):
    part = random_part(4, coupled=coupled)
    z = inside(part, 1)
    moving = np.random.default_rng(0).uniform(size=part.n_variables) < 0.5
    moving[len(part.targets) * part.n :] = True
    H = dense.hessian(part, dense._point(part, z, *part.value_and_grad(z)), np.flatnonzero(moving))
    expected = np.column_stack([part.hessian_product(z, moving)(e) for e in np.eye(len(H))])
    np.testing.assert_allclose(H, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("case", SOFT.values(), ids=SOFT.keys())
def test_every_problem_with_rows_outside_is_solved_here(case):
    """What the solution is worth, all solvers are asked in test_solvers.py."""
    for part in parts_of(case.problem()):
        assert is_dense(part)
        result = solve_dense(part, np.zeros(part.n_variables), 1e-7, 1000)
        assert result.status == Status.CONVERGED
        assert part.certificate(result.variables).gap <= 1e-7


@pytest.mark.parametrize(("b", "tau"), [(0.0, 0.1), (1e-3, 0.2), (1.0, 0.05), (100.0, 0.1), (3e3, 0.25)])
@pytest.mark.parametrize("coupled", [None, 20])
def test_any_start_leads_to_the_same_optimum(b, tau, coupled):
    for seed in range(3):
        part = random_part(seed, coupled=coupled, b=b, tau=tau)
        starts = [np.zeros(part.n_variables), inside(part, seed), part.bounds.clip(np.full(part.n_variables, 1e6))]
        values = [solve(part, start, tol=1e-6).certificate for start in starts]
        assert max(each.gap for each in values) <= 1e-6
        assert max(e.dual_value for e in values) <= min(e.primal_value for e in values) * (1 + 1e-12)


def test_what_is_not_dense_is_left_to_others():
    hard = OneSidedProblem(SideTerm.of(np.eye(5, 9), b=1.0, lam1=0.1, lam2=0.5), np.ones(9))
    assert not is_dense(hard)
    assert not is_dense(random_part(0, p=dense.MOST_FEATURES + 1, n=90))
    assert not is_dense(random_part(0, n=dense.MOST_COUPLED + 50, coupled=dense.MOST_COUPLED + 1))
    assert is_dense(random_part(0, n=dense.MOST_COUPLED + 50, coupled=20))


def test_a_solve_that_ends_too_early_is_finished_by_the_others(monkeypatch):
    monkeypatch.setattr(dense, "STEPS", 1)
    part = random_part(3)
    begun = solve_dense(part, np.zeros(60), 1e-8, 1000)
    assert begun.status == Status.ITERATION_LIMIT
    result = solve(random_part(3), tol=1e-8)
    assert result.status == Status.CONVERGED
    assert result.iterations > begun.iterations
    assert result.decompositions > begun.decompositions


def test_where_no_row_moves_the_solve_ends():
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((60, 2)), np.abs(rng.standard_normal(60))
    settings = {"trace_penalty": 0.0, "learning_coverage": 0.9, "symmetry_penalty": 0.0, "constant": True}
    assert learn_bands(X, r, **settings).gap <= 1e-4
