"""Paths of neighbouring problems: the same solutions as cold solves, for less work."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from sosbands import learn_band_path, learn_bands
from sosbands.bands import learn_band_grid
from sosbands.exceptions import SymmetricLimitError, ZeroResidualsWarning
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.problems import (
    AsymmetricProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import Status, solve, solve_path, subspace

N, TOL = 60, 1e-5
VALUES = [0.0, 1e-3, 0.03, 1.0, 30.0, np.inf]


def points():
    return np.random.default_rng(0).uniform(-1, 1, (N, 1))


def residuals():
    X = points()
    return (0.5 + np.abs(X[:, 0])) * (np.random.default_rng(1).gamma(1.5, size=N) - 1.5)


def side_term(ell=0.6, rank=1e-7):
    V = learn_features(points(), StationaryKernel("matern52", (ell,)), rank).V
    return SideTerm.of(V, b=5.0, lam1=0.5, lam2=0.5)


def problem(term, kind, penalty):
    r = residuals()
    if penalty == 0:
        return AsymmetricProblem(term, term, r)
    if np.isinf(penalty):
        return SymmetricProblem(term, r)
    if kind == "operator":
        return OperatorPenaltyProblem(term, r, 0.0, penalty)
    return TrainingPenaltyProblem(term, term, r, penalty)


def check_path(warm, cold, tol):
    """Every result certified, with the value of the cold solve."""
    warm = list(warm)
    for ours, other in zip(warm, cold, strict=True):
        assert ours.status == Status.CONVERGED
        assert ours.certificate.violation <= 1e-9
        one, two = ours.certificate, other.certificate
        assert max(one.gap, two.gap) <= tol
        assert max(one.dual_value, two.dual_value) <= min(one.primal_value, two.primal_value) * (1 + 1e-12)
        assert abs(one.dual_value - two.dual_value) <= tol * two.primal_value
    return warm


both_kinds = pytest.mark.parametrize("kind", ["training", "operator"])


@both_kinds
@pytest.mark.parametrize("solver", ["newton", "subspace"])
@pytest.mark.parametrize("order", ["increasing", "decreasing"])
def test_path_of_penalties_equals_cold_solves_for_less_work(kind, order, solver, monkeypatch):
    monkeypatch.setattr(subspace, "START", 12)
    term = side_term()
    values = VALUES if order == "increasing" else VALUES[::-1]
    cold = [solve(problem(term, kind, value), tol=TOL, solver=solver) for value in values]
    warm = check_path(solve_path([problem(term, kind, value) for value in values], tol=TOL, solver=solver), cold, TOL)
    assert sum(result.decompositions for result in warm) < 0.8 * sum(result.decompositions for result in cold)


def test_check_rejects_the_path_of_another_problem():
    term = side_term()
    cold = [solve(problem(term, "training", value), tol=TOL) for value in VALUES]
    others = [problem(term, "training", 1.2 * value) for value in VALUES]
    with pytest.raises(AssertionError):
        check_path(solve_path(others, tol=TOL), cold, TOL)


@pytest.mark.parametrize(("kind", "penalty"), [("training", 0), ("training", 0.5), ("operator", 0.5), ("", np.inf)])
@pytest.mark.parametrize(("solver", "rank"), [("newton", 1e-7), ("subspace", 1e-7), ("subspace", 20)])
def test_path_along_lengthscales(solver, rank, kind, penalty, monkeypatch):
    """Other kernels have other features, as many or not: bases and W are dropped where they do not fit."""
    monkeypatch.setattr(subspace, "START", 12)
    terms = [side_term(ell, rank) for ell in (1.5, 0.8, 0.4)]
    assert len({term.space.p for term in terms}) == (1 if rank == 20 else 3)
    cold = [solve(problem(term, kind, penalty), tol=TOL, solver=solver) for term in terms]
    check_path(solve_path([problem(term, kind, penalty) for term in terms], tol=TOL, solver=solver), cold, TOL)


def test_path_is_lazy_and_may_be_empty():
    assert list(solve_path([])) == []
    term, asked = side_term(), []

    def problems():
        for value in (0.1, 1.0):
            asked.append(value)
            yield problem(term, "training", value)

    path = solve_path(problems(), tol=1e-3)
    assert asked == []
    assert next(path).certificate.gap <= 1e-3
    assert asked == [0.1]


# ---------------------------------------------------------------- warm starts


ENDS = [("training", 0.0), ("training", 0.1), ("training", 10.0), ("operator", 0.1), ("operator", 10.0), ("", np.inf)]


@pytest.fixture(scope="module")
def solved():
    """Solutions of neighbouring problems on one term."""
    term = side_term()
    problems = {key: problem(term, *key) for key in ENDS}
    return {key: (each, solve(each, tol=1e-6).variables) for key, each in problems.items()}


NEIGHBOURS = [
    *permutations([("training", 0.0), ("training", 0.1)], 2),
    *permutations([("training", 0.0), ("operator", 0.1)], 2),
    *permutations([("training", 10.0), ("", np.inf)], 2),
    *permutations([("operator", 10.0), ("", np.inf)], 2),
    *permutations([("training", 0.0), ("", np.inf)], 2),
]


@pytest.mark.parametrize(("source", "target"), list(product(ENDS, ENDS)))
def test_starts_from_another_kind_are_feasible_and_from_a_neighbour_better_than_zero(source, target, solved):
    """Far from it, as from 10 to 0.1, the kept operators may cost more than none; a solve gains even then."""
    (before, z), (after, best) = solved[source], solved[target]
    start = after.start_from(before.dual_point(z))
    assert start.shape == (after.n_variables,)
    assert np.all(start >= after.bounds.lower)
    value, optimum = (after.value_and_grad(each)[0] for each in (start, best))
    assert value <= optimum * (1 + 1e-6)
    assert after.value_and_grad(np.zeros(after.n_variables))[0] == 0
    assert value >= 0.2 * optimum or (source, target) not in NEIGHBOURS
    if source == target:
        np.testing.assert_allclose(start, z, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("target", ENDS)
def test_starts_save_work(target, solved):
    term = side_term()
    cold = solve(problem(term, *target), tol=TOL)
    work = []
    for source in ENDS:
        before, z = solved[source]
        start = problem(term, *target).start_from(before.dual_point(z))
        warm = solve(problem(term, *target), start, tol=TOL)
        check_path([warm], [cold], TOL)
        work.append(warm.decompositions)
    assert np.mean(work) < cold.decompositions  # also from the other end of all penalties


@pytest.mark.parametrize("source", [("training", 0.1), ("training", 10.0), ("", np.inf)])
def test_asymmetric_start_has_no_weight_where_nothing_is_to_be_covered(source, solved):
    """There the gradient is at most zero: leaving the weight out raises the dual."""
    (before, z), (after, _) = solved[source], solved["training", 0.0]
    point = before.dual_point(z)
    start, r = after.start_from(point), residuals()
    assert not start[:N][r >= 0].any()
    assert not start[N:][r <= 0].any()
    unmasked = np.maximum(np.concatenate(point.weights), 0.0)
    assert after.value_and_grad(start)[0] >= after.value_and_grad(unmasked)[0]


# ---------------------------------------------------------------- learn_band_path


@both_kinds
@pytest.mark.parametrize("normalize", [False, True])
def test_learn_band_path_equals_learn_bands(kind, normalize):
    X, r = points(), residuals()
    options = {"lengthscale": 0.6, "symmetry_kind": kind, "normalize": normalize, "tol": TOL}
    values = [np.inf, 1.0, 0.0, 1e-2, 10.0]
    path = list(learn_band_path(X, r, values, **options))
    work = []
    for value, warm in zip(values, path, strict=True):
        cold = learn_bands(X, r, symmetry_penalty=value, **options)
        assert warm.status == Status.CONVERGED
        assert warm.gap <= TOL
        assert cold.gap <= TOL
        assert warm.violation <= 1e-9
        assert abs(warm.dual_value - cold.dual_value) <= TOL * cold.primal_value
        assert np.all(warm.lower(X) >= -r - 1e-8)
        assert np.all(warm.upper(X) >= r - 1e-8)
        work.append((warm.decompositions, cold.decompositions))
    ours, theirs = np.sum(work, axis=0)
    assert ours < theirs
    assert path[0].lower.features is path[-1].lower.features
    increasing = np.argsort(values)
    assert all(path[i].primal_value <= path[j].primal_value * (1 + 2 * TOL) for i, j in pairwise(increasing))


OTHER_PATHS = {
    "pairs": ([(0.0, 0.1), (0.1, 0.1), (0.1, 1.0)], {"symmetry_kind": "operator", "rank": 12}),
    "two lengthscales": ([0.0, 1.0], {"lengthscale": {"lower": 0.4, "upper": 0.9}}),
}


@pytest.mark.parametrize(("values", "options"), OTHER_PATHS.values(), ids=OTHER_PATHS.keys())
def test_learn_band_path_with_pairs_and_two_lengthscales(values, options):
    X, r = points(), residuals()
    for value, warm in zip(values, learn_band_path(X, r, values, **options), strict=True):
        cold = learn_bands(X, r, symmetry_penalty=value, **options)
        assert max(warm.gap, cold.gap) <= 1e-4
        assert abs(warm.dual_value - cold.dual_value) <= 1e-4 * cold.primal_value


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([1.0, -1.0], {}, "symmetry_penalty=-1.0"),
        ([1.0, "a"], {}, "symmetry_penalty='a'"),
        ([1.0], {"solver": "cg"}, "solver='cg'"),
        ([], {"solver": "cg"}, "solver='cg'"),
    ],
)
def test_errors_of_learn_band_path_come_before_the_first_solve(values, options, match):
    with pytest.raises(ValueError, match=match):
        learn_band_path(points(), residuals(), values, **options)


def test_impossible_problems_and_unknown_settings_of_a_path_are_named_before_the_first_solve():
    with pytest.raises(SymmetricLimitError, match="lengthscale differs"):
        next(learn_band_path(points(), residuals(), [0.0, np.inf], lengthscale={"lower": 0.4, "upper": 0.9}))
    for function, more in ((learn_band_path, ([1.0],)), (learn_band_grid, (["median"], [1.0]))):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'foo'"):
            function(points(), residuals(), *more, foo=1)
    assert list(learn_band_path(points(), residuals(), [])) == []


def test_path_of_zero_residuals():
    with pytest.warns(ZeroResidualsWarning, match="all residuals are zero"):
        path = list(learn_band_path(points(), np.zeros(N), [0.0, 1.0, np.inf]))
    assert len(path) == 3
    for bands in path:
        assert bands.gap == 0
        assert bands.primal_value == bands.dual_value == 0
        assert not bands.upper(points()).any()


@pytest.mark.parametrize("kind", ["training", "operator"])
def test_a_grid_of_lengthscales_and_penalties_equals_cold_solves(kind):
    rng = np.random.default_rng(3)
    X, r = rng.uniform(-1, 1, (40, 2)), rng.gumbel(size=40)
    lengthscales, penalties = [0.3, 0.6, 1.2], [0.0, 0.5, np.inf]
    options = {"symmetry_kind": kind, "tol": 1e-6}
    seen = {}
    for i, j, solution in learn_band_grid(X, r, lengthscales, penalties, **options):
        seen[i, j] = solution
        cold = learn_bands(X, r, lengthscale=lengthscales[i], symmetry_penalty=penalties[j], **options)
        assert solution.gap <= 1e-6
        assert solution.dual_value == pytest.approx(cold.dual_value, rel=2e-6)
        assert solution.lower.features.kernel.lengthscale == (lengthscales[i],)
    assert list(seen) == [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0), (2, 0), (2, 1), (2, 2)]
