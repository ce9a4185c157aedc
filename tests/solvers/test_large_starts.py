"""What makes cold starts quick with very many points must not change where they end."""

from functools import cache
from importlib import import_module

import numpy as np
import pytest

from sosbands.problems import (
    AsymmetricProblem,
    OneSidedProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import newton, solve

entry = import_module("sosbands.solvers.solve")  # the function has its name


def problems():
    rng = np.random.default_rng(0)
    V = rng.standard_normal((12, 150)) / 4
    W = rng.standard_normal((9, 150)) / 3
    r = (0.3 + np.abs(V[0])) * (rng.gamma(1.5, size=150) - 1.5)
    term, other = (SideTerm.of(M, b=2.0, lam1=0.3, lam2=0.5) for M in (V, W))
    return {
        "asymmetric": AsymmetricProblem(term, other, r),
        "symmetric": SymmetricProblem(term, r),
        "training": TrainingPenaltyProblem(term, term, r, 0.05),
        "training, two kernels": TrainingPenaltyProblem(term, other, r, 5.0),
        "operator": OperatorPenaltyProblem(term, r, 0.1, 0.5),
    }


SAMPLED = {"MANY_ROWS": 100, "SAMPLE_ROWS": 40, "EXTREME_ROWS": 15}


@cache
def plain_value(name):
    certificate = solve(problems()[name], tol=1e-7).certificate
    assert certificate.gap <= 1e-7
    return certificate.dual_value


@pytest.mark.parametrize("name", problems())
@pytest.mark.parametrize(
    ("solver", "module", "constants"),
    [("newton", entry, SAMPLED), ("subspace", entry, SAMPLED), ("auto", newton, {"ENTERING": 2})],
    ids=["newton", "subspace", "few variables entering at a time"],
)
def test_other_starts_and_steps_end_at_the_same_optimum(name, solver, module, constants, monkeypatch):
    plain = plain_value(name)  # before anything is changed
    for constant, value in constants.items():
        monkeypatch.setattr(module, constant, value)
    certificate = solve(problems()[name], tol=1e-7, solver=solver).certificate
    assert certificate.gap <= 1e-7
    assert certificate.dual_value == pytest.approx(plain, rel=2e-7)


def test_the_sample_holds_the_points_that_ask_for_most(monkeypatch):
    monkeypatch.setattr(entry, "SAMPLE_ROWS", 40)
    monkeypatch.setattr(entry, "EXTREME_ROWS", 15)
    sizes = np.random.default_rng(1).standard_normal(500)
    V = np.ones((1, 500))
    rows = entry._telling_rows(OneSidedProblem(SideTerm.of(V, b=1.0, lam1=0.1, lam2=0.5), sizes))
    assert set(np.argsort(sizes)[-15:]) <= set(rows)
    assert 40 <= len(rows) <= 55
    soft = entry._telling_rows(OneSidedProblem(SideTerm.of(V, b=1.0, lam1=0.1, lam2=0.5, tau=0.1), sizes))
    assert len(soft) == 40  # a fair sample: quantiles are what counts
    assert set(soft) <= set(rows)
