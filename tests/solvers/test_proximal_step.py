"""A step of the proximal point method: its derivatives, its fixed point, and what it says of the problem itself."""

import numpy as np
import pytest

from contracts import check_concavity, check_gradient, check_hessian_product, dense
from sosbands.problems import OperatorPenaltyProblem, SideTerm
from sosbands.solvers import solve
from sosbands.solvers.proximal import Centre, ProximalStep

PENALTIES = {"plain": (0.0, 0.7), "nuclear": (0.3, 0.05)}
every_penalty = pytest.mark.parametrize("lam_pen", PENALTIES.values(), ids=PENALTIES.keys())


def turned(lam_pen, tau=0.0, n=9, p=6):
    """A problem in features with a diagonal Gram matrix."""
    rng = np.random.default_rng(3)
    V = rng.standard_normal((p, n))
    V = np.linalg.eigh(V @ V.T)[1].T @ V
    term = SideTerm.of(V, b=2.0, lam1=0.5, lam2=0.5, tau=tau)
    return OperatorPenaltyProblem(term, rng.standard_normal(n), *lam_pen)


def some_centre(problem):
    rng = np.random.default_rng(4)
    lower, upper = (B @ B.T / 4 for B in rng.standard_normal((2, problem.p, 2)))
    return Centre((lower, upper), 0.5 * (lower - upper), np.zeros(problem.n_variables))


@every_penalty
@pytest.mark.parametrize("check", [check_gradient, check_hessian_product, check_concavity])
def test_derivatives(lam_pen, check):
    problem = turned(lam_pen)
    check(ProximalStep(problem, some_centre(problem), 0.2))


class WrongMetric(ProximalStep):
    """The derivative of the coupling forgets the weights of the directions."""

    def _coupling_derivative(self, z):
        return self.penalty.derivative(self._pulled(z))


@every_penalty
def test_contract_rejects_a_wrong_metric(lam_pen):
    problem = turned(lam_pen)
    with pytest.raises(AssertionError):
        check_hessian_product(WrongMetric(problem, some_centre(problem), 0.2))


@every_penalty
@pytest.mark.parametrize("tau", [0.0, 0.2])
@pytest.mark.parametrize("sigma", [1.0, 0.01])
def test_the_optimum_is_its_own_fixed_point(lam_pen, tau, sigma):
    problem = turned(lam_pen, tau)
    z = solve(problem, tol=1e-10, solver="newton").variables
    state = problem.state(z)
    operators = tuple(dense(side.primal) for side in state.sides)
    step = ProximalStep(problem, Centre(operators, state.slope, z), sigma)
    at = step.start()
    assert step.residual(at) <= 1e-3 / sigma * 1e-2
    assert step.moved(at) <= 1e-3 / sigma * 1e-2
    after = step.next_centre(at)
    np.testing.assert_allclose(after.variables, z, atol=1e-12)
    for found, known in zip(after.operators, operators, strict=True):
        np.testing.assert_allclose(found, known, atol=1e-5 / sigma)
    # elsewhere it is none
    far = ProximalStep(problem, Centre((operators[1], operators[0]), state.slope, z), sigma)
    assert far.moved(far.start()) > 0.05
