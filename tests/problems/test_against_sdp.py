"""learn_bands against the same problems written out as semidefinite programs and solved by CVXPY."""

import importlib.util
from dataclasses import dataclass

import numpy as np
import pytest

from contracts import one_side_cost, values_at
from sosbands import learn_bands
from sosbands.solvers import Status
from studies.reference import sdp

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cvxpy") is None, reason="CVXPY is not installed (extra 'sdp')"
)

TOL = 1e-6


@dataclass(frozen=True)
class Problem:
    """One random problem, as a user would pose it."""

    seed: int
    n: int
    d: int
    b: float
    kind: str
    penalty: object
    ell: object
    kernel: str = "matern52"
    lam: tuple = (1.0, 1.0)

    def __str__(self):
        return f"{self.seed}-{self.kind}-{self.penalty}-n{self.n}-d{self.d}-b{self.b}"

    @property
    def data(self):
        rng = np.random.default_rng(1000 + self.seed)
        X = rng.uniform(-1, 1, (self.n, self.d))
        return X, (0.2 + np.abs(X[:, 0])) * rng.gamma(1.0, size=self.n) * rng.choice([-0.5, 1.0], self.n)

    @property
    def pair(self):
        """(nuclear, squared Frobenius) or (0, lam_pen)."""
        return self.penalty if isinstance(self.penalty, tuple) else (0.0, self.penalty)

    def solve(self):
        return learn_bands(
            *self.data,
            kernel=self.kernel,
            lengthscale=self.ell,
            width_penalty=self.b,
            trace_penalty=self.lam[0],
            frobenius_penalty=self.lam[1],
            symmetry_penalty=self.penalty,
            symmetry_kind=self.kind,
            normalize=False,
            tol=TOL,
        )

    @property
    def weights(self):
        return {"b": self.b, "lam1": self.lam[0], "lam2": self.lam[1]}

    def reference(self, V_lo, V_up, solver):
        _, r = self.data
        options = {"solver": solver, **self.weights}
        if np.isinf(self.pair).any():
            return sdp.symmetric_sdp(V_lo, r, **options)
        if not any(self.pair):
            return sdp.asymmetric_sdp(V_lo, V_up, r, **options)
        if self.kind == "operator":
            return sdp.operator_penalty_sdp(V_lo, r, **options, lam_pen1=self.pair[0], lam_pen2=self.pair[1])
        return sdp.training_penalty_sdp(V_lo, V_up, r, **options, lam_pen=self.pair[1])

    def objective(self, A_lo, A_up, V_lo, V_up):
        """Two-sided primal value of dense operators."""
        value = one_side_cost(A_lo, V_lo, **self.weights) + one_side_cost(A_up, V_up, **self.weights)
        if np.isinf(self.pair).any():
            return value
        if self.kind == "operator":
            w = np.linalg.eigvalsh(A_lo - A_up)
            return value + self.pair[0] * np.abs(w).sum() + self.pair[1] * np.sum(w**2)
        return value + self.pair[1] * np.sum((values_at(A_lo, V_lo) - values_at(A_up, V_up)) ** 2)


def draw(count, sizes, first_seed):
    """All kinds in turn, the rest at random."""
    kinds = [
        ("training", 0.0),
        ("training", 1e-4),
        ("training", 1e-2),
        ("training", 1.0),
        ("training", 1e2),
        ("training", 1e4),
        ("training", np.inf),
        ("operator", 1e-4),
        ("operator", 1.0),
        ("operator", 1e4),
        ("operator", (0.3, 0.1)),
        ("operator", (2.0, 10.0)),
        ("operator", (0.0, 0.0)),
        ("operator", (np.inf, 0.0)),
    ]
    kernels = ["matern52", "matern52", "matern32", "gaussian"]
    for k in range(count):
        seed = first_seed + k
        rng = np.random.default_rng(seed)
        kind, penalty = kinds[k % len(kinds)]
        d = 1 + k % 4
        ell = float(rng.uniform(0.3, 0.8) * np.sqrt(d))
        two = kind == "training" and np.isfinite(penalty) and rng.uniform() < 0.6
        n = int(rng.integers(*sizes))
        nuclear = isinstance(penalty, tuple) and 0 < penalty[0] < np.inf  # a cone of size 2 n for the reference
        yield Problem(
            seed,
            min(n, 25) if nuclear else n,
            d,
            (0.0, 1.0, 10.0)[k % 3],
            kind,
            penalty,
            {"lower": ell, "upper": float(ell * rng.uniform(0.5, 2.0))} if two else ell,
            kernels[rng.integers(4)],
            (float(rng.choice([0.0, 0.1, 1.0])), float(rng.choice([0.1, 1.0, 5.0]))),
        )


SMALL = list(draw(42, (5, 19), 0))
LARGE = list(draw(14, (25, 41), 100))


def compare(problem, solver):
    """Values, operators and the certificate; returns both solutions."""
    solution = problem.solve()
    assert solution.status == Status.CONVERGED
    assert solution.gap <= TOL
    V_lo, V_up = solution.lower.features.V, solution.upper.features.V
    reference = problem.reference(V_lo, V_up, solver)
    primal, dual = solution.primal_value, solution.dual_value
    assert dual == pytest.approx(reference.value, rel=1e-5)
    assert primal == pytest.approx(reference.value, rel=1e-5)
    # every residual is covered, and the primal value is the objective at the returned functions
    _, r = problem.data
    A_lo, A_up = solution.lower.operator, solution.upper.operator
    slack = 1e-9 * np.abs(r).max()
    assert np.all(values_at(A_lo, V_lo) >= -r - slack)
    assert np.all(values_at(A_up, V_up) >= r - slack)
    assert problem.objective(A_lo, A_up, V_lo, V_up) == pytest.approx(primal, rel=1e-8)
    # Strong convexity: lam2 ||A - A*||² <= P(A) - P* <= P(A) - D for every feasible A, summed over the sides; the
    # triangle inequality joins two of them. The reference point meets constraints only to its own tolerance (a
    # point slightly outside can even have a value below D), hence 1e-6 P.
    at_reference = problem.objective(reference.lower, reference.upper, V_lo, V_up)
    distance = np.sum((A_lo - reference.lower) ** 2) + np.sum((A_up - reference.upper) ** 2)
    ours, theirs = max(primal - dual, 0.0), max(at_reference - dual, 0.0) + 1e-6 * primal
    assert problem.weights["lam2"] * distance <= (np.sqrt(ours) + np.sqrt(theirs)) ** 2
    return solution, reference


@pytest.mark.parametrize("problem", SMALL, ids=str)
def test_small_problems_against_the_interior_point_solver(problem):
    solution, reference = compare(problem, "CLARABEL")
    grid = np.random.default_rng(problem.seed).uniform(-1.2, 1.2, (400, problem.d))
    for f, A in ((solution.lower, reference.lower), (solution.upper, reference.upper)):
        expected = values_at(A, f.features.transform(grid))
        assert np.abs(f(grid) - expected).max() <= 5e-3 * expected.max() + 1e-6 * np.abs(problem.data[1]).max()


@pytest.mark.parametrize("problem", LARGE, ids=str)
def test_larger_problems_against_the_splitting_solver(problem):
    compare(problem, "SCS")


def test_comparison_rejects_another_problem():
    """The comparison is sharp: a trace penalty one percent off is noticed."""
    problem = next(p for p in SMALL if p.lam[0] > 0 and p.penalty == 1.0)

    class Off(Problem):
        @property
        def weights(self):
            return {**super().weights, "lam1": 1.01 * self.lam[0]}

    compare(problem, "CLARABEL")
    with pytest.raises(AssertionError):
        compare(Off(**vars(problem)), "CLARABEL")
