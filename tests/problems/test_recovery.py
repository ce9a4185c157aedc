"""The best operators with a given range: against a general solver, and how much nearer they are than recovered ones."""

import numpy as np
import pytest

from contracts import CASES, check_certificate
from sosbands.problems import OneSidedProblem, SideTerm, TrainingPenaltyProblem, recovery
from sosbands.solvers import solve

N, P = 30, 8
COST = {"b": 3.0, "lam1": 0.4, "lam2": 0.5}


def one_sided():
    rng = np.random.default_rng(0)
    return OneSidedProblem(SideTerm.of(rng.standard_normal((P, N)), **COST), rng.standard_normal(N))


def training(penalty=0.7, shares=1.0):
    rng = np.random.default_rng(0)
    term = SideTerm.of(rng.standard_normal((P, N)), **COST)
    return TrainingPenaltyProblem(term, term, rng.standard_normal(N), penalty, shares)


PROBLEMS = {
    "one side": one_sided,
    "training": training,
    "strong": lambda: training(50.0),
    "shares": lambda: training(0.7, np.linspace(0.5, 2, N)),
}
every_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS.keys())


def near_optimum(problem, distance, seed=3):
    """Multipliers at about this relative distance from the best, with the same support."""
    z = solve(problem, tol=1e-9, solver="newton").variables
    return z * (1 + distance * np.random.default_rng(seed).standard_normal(len(z)))


def literal_optimum(problem, states):
    """The same problem with operators ``U S U'``, as a semidefinite program."""
    cp = pytest.importorskip("cvxpy")
    values, cost, constraints = [], 0.0, []
    for term, state, target in zip(problem.sides, states, problem.targets, strict=True):
        Z, r = state.positive_vectors.T @ term.space.V, state.part.rank
        S = cp.Variable((r, r), PSD=True)
        f = cp.sum(cp.multiply(Z, S @ Z), axis=0)
        constraints.append(f >= target)
        squares = cp.sum_squares(cp.vec(S, order="F"))  # in a row, as in studies/reference/sdp.py
        cost = cost + COST["b"] / N * cp.sum(f) + COST["lam1"] * cp.trace(S) + COST["lam2"] * squares
        values.append(f)
    if len(values) == 2:
        cost = cost + cp.sum_squares(cp.multiply(np.sqrt(problem.pens * np.ones(N)), values[0] - values[1]))
    return cp.Problem(cp.Minimize(cost), constraints).solve(solver="CLARABEL")


def check_best(problem, sides, optimum):
    """Nearly feasible, and of the least objective."""
    for side, target in zip(sides, problem.targets, strict=True):
        assert np.all(side.f >= target - 1e-5 * np.abs(target).max())
    assert problem.objective(sides) == pytest.approx(optimum, rel=1e-5)


@every_problem
def test_best_operators_of_a_range_against_a_semidefinite_program(make):
    problem = make()
    z = near_optimum(problem, 1e-3)
    state = problem.state(problem.bounds.clip(z))
    sides = problem.better_sides(z, state)
    for side, term in zip(sides, problem.sides, strict=True):
        np.testing.assert_allclose(side.f, np.square(side.B.T @ term.space.V).sum(axis=0), rtol=1e-9, atol=1e-12)
    optimum = literal_optimum(problem, state.sides)
    check_best(problem, sides, optimum)
    with pytest.raises(AssertionError):  # the recovered ones do not pass
        check_best(problem, tuple(side.primal for side in state.sides), optimum)


@every_problem
def test_the_gap_is_of_second_order(make, monkeypatch):
    """Ten times nearer is a hundred times better; without the better operators it is ten times."""
    gaps = {}
    for without in (False, True):
        if without:
            monkeypatch.setattr(type(make()), "better_sides", lambda *_: None)
        for distance in (1e-4, 1e-5):
            problem = make()
            gaps[without, distance] = problem.certificate(near_optimum(problem, distance)).gap
    assert gaps[False, 1e-5] < 0.03 * gaps[False, 1e-4]
    assert gaps[True, 1e-5] > 0.03 * gaps[True, 1e-4]
    assert gaps[False, 1e-4] < 0.3 * gaps[True, 1e-4]


@pytest.mark.parametrize("name", [name for name in CASES if "operator" not in name])
def test_certificates_with_better_operators_keep_the_contract(name):
    case = CASES[name]
    problem = case.problem()
    z = solve(problem, tol=1e-4, solver="newton").variables
    check_certificate(case, problem, problem.certificate(z * (1 + 1e-3)))


def test_too_many_unknowns_or_rows_are_left_alone(monkeypatch):
    problem = training()
    z = near_optimum(problem, 1e-3)
    state = problem.state(problem.bounds.clip(z))
    assert problem.better_sides(z, state) is not None
    crowded = np.abs(z) + 1.0  # every multiplier is positive: more equations than unknowns
    assert problem.better_sides(crowded, state) is None
    monkeypatch.setattr(recovery, "MOST_UNKNOWNS", 5)
    assert problem.better_sides(z, state) is None
