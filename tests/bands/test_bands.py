"""learn_bands: limits of the symmetry penalty, invariances, bounds of the asymmetry, and bad input."""

import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern

from contracts import manufacture, matern52
from sosbands import learn_band_path, learn_bands
from sosbands.bands import learn_band_grid
from sosbands.bands.learn import LITERAL
from sosbands.exceptions import (
    InfeasibleProblemError,
    LowRankWarning,
    NotCertifiedWarning,
    NotPositiveSemidefiniteError,
    ScaleError,
    SymmetricLimitError,
    ZeroResidualsWarning,
)
from sosbands.kernels import StationaryKernel, learn_features
from sosbands.problems import OneSidedProblem, SideTerm
from sosbands.solvers import Status, solve

TOL = 1e-6
inf, nan = np.inf, np.nan


def data(seed=0, n=18, d=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, (0.3 + X[:, 0] ** 2) * rng.gumbel(size=n)


def certified(X, r, **options):
    """Solve, and check the proof of quality that comes with the answer."""
    options = {"tol": TOL, "lengthscale": 0.5, **options}
    solution = learn_bands(X, r, **options)
    assert solution.status == Status.CONVERGED
    assert solution.gap <= options["tol"]
    assert solution.violation <= 1e-9
    assert np.all(solution.values_lower >= -np.asarray(r) - 1e-9 * np.abs(r).max())
    assert np.all(solution.values_upper >= np.asarray(r) - 1e-9 * np.abs(r).max())
    return solution


def grid(d, count=300):
    return np.random.default_rng(99).uniform(-1.3, 1.3, (count, d))


def assert_same_bands(one, two, d=1, shift=0.0, rel=5e-3):
    """Both functions on a grid, to the square root of the gaps."""
    points = grid(d)
    size = max(one.lower(points).max(), one.upper(points).max())
    assert np.abs(two.lower(points + shift) - one.lower(points)).max() <= rel * size
    assert np.abs(two.upper(points + shift) - one.upper(points)).max() <= rel * size


# ---------------------------------------------------------------- what a solution says of itself


@pytest.mark.parametrize(
    ("kind", "penalty"), [("training", 0.0), ("training", 1.0), ("training", inf), ("operator", (0.1, 1.0))]
)
def test_solution_agrees_with_its_own_functions(kind, penalty):
    X, r = data()
    solution = certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind)
    np.testing.assert_allclose(solution.lower(X), solution.values_lower, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(solution.upper(X), solution.values_upper, rtol=1e-6, atol=1e-8)
    gap = (solution.primal_value - solution.dual_value) / solution.primal_value
    assert solution.gap == pytest.approx(gap, rel=1e-6, abs=1e-14)
    assert solution.rank == (solution.lower.rank, solution.upper.rank)
    assert np.all(solution.dual.gamma_lo >= 0)
    assert np.all(solution.dual.gamma_up >= 0)
    # active constraints are tight, inactive ones carry next to no weight
    tight = np.abs(r).max() * 1e-2
    heavy = np.flatnonzero(solution.dual.gamma_up > 1e-2 * solution.dual.gamma_up.max())
    assert set(heavy) <= set(solution.active_upper)
    target = np.abs(r) if penalty == inf else r
    assert np.abs(solution.values_upper - target)[heavy].max() <= tight
    assert "converged" in repr(solution)


def test_known_optimum_through_the_front_door():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (300, 1))
    V = learn_features(X, StationaryKernel("matern52", (0.4,)), 1e-7).V
    weights = {"b": 2.0, "lam1": 0.3, "lam2": 1.5}
    for lam_pen in (0.0, 1e-2):
        known = manufacture(V, **weights, lam_pen=lam_pen, seed=4)
        solution = certified(
            X,
            known.r,
            lengthscale=0.4,
            rank=1e-7,
            width_penalty=2.0,
            trace_penalty=0.3,
            frobenius_penalty=1.5,
            symmetry_penalty=lam_pen,
        )
        assert solution.dual_value <= known.value * (1 + 1e-8)
        assert solution.dual_value == pytest.approx(known.value, rel=1e-6)


# ---------------------------------------------------------------- limits of the symmetry penalty


@pytest.mark.parametrize("kind", ["training", "operator"])
def test_zero_is_two_separate_problems(kind):
    X, r = data(1)
    penalty = 0.0 if kind == "training" else (0.0, 0.0)
    solution = certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind, width_penalty=2.0)
    term = SideTerm.of(solution.lower.features.V, b=2.0, lam1=1.0, lam2=1.0)
    sides = [solve(OneSidedProblem(term, target), tol=TOL) for target in (-r, r)]
    assert solution.dual_value == pytest.approx(sum(s.certificate.dual_value for s in sides), rel=3e-6)
    for f, side in zip((solution.values_lower, solution.values_upper), sides, strict=True):
        assert np.abs(f - side.certificate.sides[0].f).max() <= 5e-3 * f.max()


@pytest.mark.parametrize(("kind", "penalty"), [("training", inf), ("operator", inf), ("operator", (inf, 0.0))])
def test_infinity_is_one_shared_function(kind, penalty):
    X, r = data(2)
    solution = certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind, width_penalty=2.0)
    assert np.array_equal(solution.lower.operator, solution.upper.operator)
    assert np.all(solution.values_lower >= np.abs(r) * (1 - 1e-9))
    alone = solve(
        OneSidedProblem(SideTerm.of(solution.lower.features.V, b=2.0, lam1=1.0, lam2=1.0), np.abs(r)), tol=TOL
    )
    assert solution.dual_value == pytest.approx(2 * alone.certificate.dual_value, rel=3e-6)


@pytest.mark.parametrize("pair", [(0.5, inf), (inf, 1.0), (inf, inf), (inf, 0.0)])
def test_any_infinity_of_a_pair_is_the_symmetric_problem(pair):
    X, r = data(3, 12)
    one = certified(X, r, symmetry_penalty=inf)
    two = certified(X, r, symmetry_penalty=pair, symmetry_kind="operator")
    assert two.dual_value == pytest.approx(one.dual_value, rel=1e-12)


def test_a_single_number_is_the_second_of_the_pair():
    X, r = data(4, 12)
    one = certified(X, r, symmetry_penalty=0.7, symmetry_kind="operator")
    two = certified(X, r, symmetry_penalty=(0.0, 0.7), symmetry_kind="operator")
    three = certified(X, r, symmetry_penalty=[0, 0.7], symmetry_kind="operator")
    assert one.dual_value == two.dual_value == three.dual_value


@pytest.mark.parametrize("kind", ["training", "operator"])
def test_value_grows_from_one_limit_to_the_other(kind):
    X, r = data(5, 14)
    penalties = [0.0, 1e-8, 1e-3, 1e-1, 1.0, 10.0, 1e3, 1e7, inf]
    solutions = [certified(X, r, symmetry_penalty=p, symmetry_kind=kind, width_penalty=1.0) for p in penalties]
    for below, above in zip(solutions[:-1], solutions[1:], strict=True):
        assert below.dual_value <= above.primal_value * (1 + 1e-12)
        assert below.dual_value <= above.dual_value * (1 + 2 * TOL)
    first, last = solutions[0], solutions[-1]
    assert last.dual_value > 1.05 * first.dual_value
    assert solutions[1].dual_value == pytest.approx(first.dual_value, rel=1e-5)
    assert_same_bands(first, solutions[1])
    # The training-set penalty makes the functions equal at the learning points; in exact features of these points
    # the symmetric problem has the same limit, because the average of both operators is feasible and no dearer.
    assert solutions[-2].dual_value == pytest.approx(last.dual_value, rel=1e-4)
    assert_same_bands(last, solutions[-2], rel=2e-2)
    differences = [np.abs(s.values_lower - s.values_upper).max() for s in solutions]
    assert differences[-1] == 0.0
    assert differences[-2] <= 1e-3 * differences[0]


def test_nuclear_penalty_makes_operators_equal_at_a_finite_value():
    """Beyond some lam_pen1 the difference is exactly zero: the value no longer changes."""
    X, r = data(6, 12)
    shared = certified(X, r, symmetry_penalty=inf, width_penalty=1.0)
    for nuclear in (10.0, 100.0):
        options = {"symmetry_kind": "operator", "width_penalty": 1.0}
        solution = certified(X, r, symmetry_penalty=(nuclear, 1.0), **options)
        assert solution.dual_value == pytest.approx(shared.dual_value, rel=1e-5)


def test_two_lengthscales_need_a_finite_training_penalty():
    X, r = data(7)
    two = {"lower": 0.3, "upper": 0.7}
    for options in ({"symmetry_penalty": inf}, {"symmetry_kind": "operator"}):
        with pytest.raises(SymmetricLimitError, match="lengthscale"):
            learn_bands(X, r, lengthscale=two, **options)
    same = certified(X, r, lengthscale={"lower": 0.5, "upper": 0.5}, symmetry_penalty=inf)
    assert same.dual_value == certified(X, r, symmetry_penalty=inf).dual_value
    lower = certified(X, r, lengthscale=0.3, symmetry_penalty=0.0)
    upper = certified(X, r, lengthscale=0.7, symmetry_penalty=0.0)
    both = certified(X, r, lengthscale=two, symmetry_penalty=0.0)
    assert np.abs(both.values_lower - lower.values_lower).max() <= 5e-3 * lower.values_lower.max()
    assert np.abs(both.values_upper - upper.values_upper).max() <= 5e-3 * upper.values_upper.max()


@pytest.mark.parametrize("kind", ["training", "operator"])
def test_a_finite_penalty_that_overflows_is_not_taken_for_the_symmetric_limit(kind):
    X, r = data(8, 12)
    with pytest.raises(ScaleError, match="symmetry_penalty"):
        learn_bands(X, r, lengthscale=0.3, symmetry_penalty=1e308, symmetry_kind=kind, frobenius_penalty=0.1)


def test_an_infinite_lengthscale_gives_constant_bands():
    X, r = data(9)
    symmetric = certified(X, r, lengthscale=inf, symmetry_penalty=inf)
    np.testing.assert_allclose(symmetric.lower(grid(1)), np.abs(r).max(), rtol=1e-4)
    independent = certified(X, r, lengthscale=inf, symmetry_penalty=0.0)
    np.testing.assert_allclose(independent.lower(grid(1)), (-r).max(), rtol=1e-4)
    np.testing.assert_allclose(independent.upper(grid(1)), r.max(), rtol=1e-4)


@pytest.mark.parametrize("penalty", [0.0, 0.5, inf])
def test_one_sign_leaves_the_other_side_empty_only_without_coupling(penalty):
    X, r = data(9)
    solution = certified(X, np.abs(r), symmetry_penalty=penalty)
    if penalty == 0:
        assert not solution.lower.operator.any()
        assert not solution.lower(grid(1)).any()
        assert solution.active_lower.size == 0
    else:
        assert solution.values_lower.min() > 0
    mirrored = certified(X, -np.abs(r), symmetry_penalty=penalty)
    assert mirrored.primal_value == pytest.approx(solution.primal_value, rel=3e-6)


# ---------------------------------------------------------------- rank of the features


@pytest.mark.parametrize(("kind", "penalty"), [("training", 0.0), ("training", 1.0), ("training", inf)])
def test_tiny_trace_tolerance_is_the_exact_problem(kind, penalty):
    X, r = data(10, 60)
    exact = certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind, rank="exact")
    low = certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind, rank=1e-10)
    assert low.lower.features.rank < exact.lower.features.rank
    assert low.dual_value == pytest.approx(exact.dual_value, rel=3e-6)
    assert_same_bands(exact, low)


def test_fewer_features_cost_more():
    """The projected problem restricts the operators: its optimum is an upper bound of the exact one."""
    X, r = data(11, 40)
    values = [certified(X, r, rank=rank, symmetry_penalty=0.5) for rank in (8, 12, 20, "exact")]
    for coarse, fine in zip(values[:-1], values[1:], strict=True):
        assert coarse.primal_value >= fine.dual_value
    assert values[0].primal_value > values[-1].primal_value


def test_too_few_features_warn():
    X, r = data(12, 30)
    with pytest.warns(LowRankWarning, match="rank"):
        solution = learn_bands(X, r, lengthscale=0.3, rank=3, symmetry_penalty=0.5)
    assert solution.status == Status.CONVERGED
    assert solution.gap <= 1e-4
    assert solution.lower.features.smallest_ratio < 0.5
    assert np.all(solution.upper(X) >= r - 1e-8)


# ---------------------------------------------------------------- invariances


KINDS = [("training", 0.0), ("training", 1.0), ("training", inf), ("operator", 1.0)]
few = settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
penalties = st.sampled_from([0.0, 1e-2, 1.0, inf])
seeds = st.integers(0, 10_000)


@few
@given(seed=seeds, penalty=penalties)
def test_permuting_samples_permutes_values(seed, penalty):
    X, r = data(seed, 12, 2)
    order = np.random.default_rng(seed).permutation(12)
    one = certified(X, r, symmetry_penalty=penalty)
    two = certified(X[order], r[order], symmetry_penalty=penalty)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)
    assert np.abs(two.values_lower - one.values_lower[order]).max() <= 5e-3 * np.abs(r).max()
    assert_same_bands(one, two, d=2)


@few
@given(seed=seeds, penalty=penalties, shift=st.floats(-20, 20))
def test_translating_the_points_changes_nothing(seed, penalty, shift):
    X, r = data(seed, 12, 2)
    one = certified(X, r, symmetry_penalty=penalty)
    two = certified(X + shift, r, symmetry_penalty=penalty)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)
    assert_same_bands(one, two, d=2, shift=shift)


@few
@given(seed=seeds, factor=st.floats(0.1, 50))
def test_points_and_lengthscale_in_another_unit(seed, factor):
    X, r = data(seed, 12, 2)
    one = certified(X, r, lengthscale=[0.5, 0.8])
    two = certified(factor * X, r, lengthscale=[0.5 * factor, 0.8 * factor])
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)


@few
@given(seed=seeds, case=st.sampled_from([("training", 0.0), ("training", inf), ("operator", (0.2, 1.0))]))
def test_duplicating_all_points_changes_nothing(seed, case):
    """Same constraints, same mean width, same operators; only a sum over the points would notice."""
    kind, penalty = case
    X, r = data(seed, 10)
    options = {"symmetry_kind": kind, "symmetry_penalty": penalty}
    one = certified(X, r, **options)
    two = certified(np.vstack([X, X]), np.concatenate([r, r]), **options)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)
    assert_same_bands(one, two)


@few
@given(seed=seeds)
def test_duplicating_all_points_doubles_the_training_penalty(seed):
    X, r = data(seed, 10)
    one = certified(X, r, symmetry_penalty=0.6)
    two = certified(np.vstack([X, X]), np.concatenate([r, r]), symmetry_penalty=0.3)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)
    assert_same_bands(one, two)


@few
@given(seed=seeds, penalty=st.sampled_from([0.0, inf]), share=st.floats(0, 1), row=st.integers(0, 9))
def test_a_repeated_point_with_a_smaller_residual_is_implied(seed, penalty, share, row):
    """Its constraint follows from the other one; without a mean width (b = 0) nothing else sees it."""
    X, r = data(seed, 10)
    options = {"symmetry_penalty": penalty, "width_penalty": 0.0}
    one = certified(X, r, **options)
    two = certified(np.vstack([X, X[row]]), np.append(r, share * r[row]), **options)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)
    assert_same_bands(one, two)


@few
@given(seed=seeds, penalty=st.sampled_from([0.0, inf]), factor=st.floats(1, 3), row=st.integers(0, 9))
def test_a_repeated_point_with_a_larger_residual_replaces_the_first(seed, penalty, factor, row):
    X, r = data(seed, 10)
    options = {"symmetry_penalty": penalty, "width_penalty": 0.0}
    larger = r.copy()
    larger[row] *= factor
    one = certified(X, larger, **options)
    two = certified(np.vstack([X, X[row]]), np.append(r, factor * r[row]), **options)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)


@few
@given(seed=seeds, penalty=penalties)
def test_larger_residuals_cost_more(seed, penalty):
    """Every constraint tighter, so the optimum cannot fall."""
    X, r = data(seed, 12)
    factor = 1 + np.random.default_rng(seed).uniform(0, 1, 12)
    one, two = certified(X, r, symmetry_penalty=penalty), certified(X, factor * r, symmetry_penalty=penalty)
    assert two.primal_value >= one.dual_value


@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
def test_kernel_as_name_object_callable_and_matrix(penalty):
    X, r = data(13, 15, 2)
    options = {"symmetry_penalty": penalty, "lengthscale": "median"}
    named = certified(X, r, symmetry_penalty=penalty, lengthscale=0.7)
    points = grid(2)
    for kernel, given_X, new in (
        (Matern(length_scale=0.7, nu=2.5, length_scale_bounds="fixed"), X, points),
        (lambda A, B: matern52(A, B, 0.7), X, points),
        ("precomputed", matern52(X, X, 0.7), matern52(points, X, 0.7)),
    ):
        other = certified(given_X, r, kernel=kernel, **options)
        assert other.dual_value == pytest.approx(named.dual_value, rel=3e-6)
        assert np.abs(other.upper(new) - named.upper(points)).max() <= 5e-3 * named.upper(points).max()


def test_what_the_kernel_sees_instead_of_the_points():
    X, r = data(14, 15, 2)
    one = certified(X * [1.0, 3.0], r)
    two = certified(X, r, X_kernel=X * [1.0, 3.0])
    assert two.dual_value == one.dual_value


def test_inputs_are_not_written_to():
    X, r = data(15, 12)
    X0, r0 = X.copy(), r.copy()
    for normalize in (False, True):
        certified(X, r, normalize=normalize)
    assert np.array_equal(X, X0)
    assert np.array_equal(r, r0)


# ---------------------------------------------------------------- bad input


def changed(a, where, value):
    a = np.array(a, dtype=float)
    a[where] = value
    return a


X0, r0 = data(19, 10, 2)
K0 = matern52(X0, X0, 0.7)
pre = {"kernel": "precomputed"}
operator = {"symmetry_kind": "operator"}

BAD = {
    "X with NaN": (changed(X0, (3, 1), nan), r0, {}, "X"),
    "X with inf": (changed(X0, (3, 1), inf), r0, {}, "X"),
    "X of one dimension": (X0[:, 0], r0, {}, "Expected 2D array"),
    "X of three dimensions": (X0[None], r0, {}, "dim 3"),
    "X of strings": ([["a", "b"]] * 10, r0, {}, "could not convert string"),
    "X empty": (X0[:0], r0[:0], {}, "0 sample"),
    "X without features": (X0[:, :0], r0, {}, "0 feature"),
    "residuals with NaN": (X0, changed(r0, 2, nan), {}, "residuals"),
    "residuals with inf": (X0, changed(r0, 2, -inf), {}, "residuals"),
    "residuals too few": (X0, r0[:-1], {}, "residuals"),
    "residuals as a column": (X0, r0[:, None], {}, "residuals"),
    "residuals of strings": (X0, ["a"] * 10, {}, "residuals has dtype <U1: expected real numbers"),
    "residuals complex": (X0, r0 + 1j, {}, "Complex"),
    "residuals missing": (X0, None, {}, "residuals"),
    **{
        f"{name}={value!r}": (X0, r0, {name: value}, name)
        for name in ("width_penalty", "trace_penalty", "frobenius_penalty", "symmetry_penalty")
        for value in (-1.0, nan, -inf, "1", None, [1.0], np.array([1.0]), True)
    },
    "width_penalty=inf": (X0, r0, {"width_penalty": inf}, "width_penalty"),
    "trace_penalty=inf": (X0, r0, {"trace_penalty": inf}, "trace_penalty"),
    "frobenius_penalty=inf": (X0, r0, {"frobenius_penalty": inf}, "frobenius_penalty"),
    "frobenius_penalty=0": (X0, r0, {"frobenius_penalty": 0.0}, "frobenius_penalty"),
    "pair for the training kind": (X0, r0, {"symmetry_penalty": (1.0, 1.0)}, "symmetry_penalty"),
    "triple": (X0, r0, {"symmetry_penalty": (1.0, 1.0, 1.0), **operator}, "symmetry_penalty"),
    "negative pair": (X0, r0, {"symmetry_penalty": (-1.0, 1.0), **operator}, "symmetry_penalty"),
    "NaN in a pair": (X0, r0, {"symmetry_penalty": (nan, 1.0), **operator}, "symmetry_penalty"),
    "nuclear alone": (X0, r0, {"symmetry_penalty": (1.0, 0.0), **operator}, "symmetry_penalty"),
    "symmetry_kind unknown": (X0, r0, {"symmetry_kind": "both"}, "symmetry_kind"),
    "symmetry_kind None": (X0, r0, {"symmetry_kind": None}, "symmetry_kind"),
    **{
        f"lengthscale={value!r}": (X0, r0, {"lengthscale": value}, "lengthscale")
        for value in (0.0, -1.0, nan, "mean", None, [1.0, 0.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [], {})
    },
    "lengthscale of one side": (X0, r0, {"lengthscale": {"lower": 1.0}}, "lengthscale"),
    "lengthscale of other sides": (X0, r0, {"lengthscale": {"low": 1.0, "up": 1.0}}, "lengthscale"),
    "lengthscale of three sides": (X0, r0, {"lengthscale": {"lower": 1.0, "upper": 1.0, "x": 1.0}}, "lengthscale"),
    "lengthscale negative above": (X0, r0, {"lengthscale": {"lower": 1.0, "upper": -1.0}}, "lengthscale"),
    "lengthscale of a matrix": (K0, r0, {**pre, "lengthscale": 1.0}, "lengthscale"),
    "kernel unknown": (X0, r0, {"kernel": "rbf"}, "kernel"),
    "kernel None": (X0, r0, {"kernel": None}, "kernel"),
    "kernel a number": (X0, r0, {"kernel": 3}, "kernel"),
    "kernel returns a wrong shape": (X0, r0, {"kernel": lambda A, B: np.ones(3)}, "kernel"),  # noqa: ARG005
    "kernel returns NaN": (X0, r0, {"kernel": lambda A, B: np.full((len(A), len(B)), nan)}, "kernel"),
    "matrix not square": (K0[:, :5], r0, pre, "X"),
    "matrix not symmetric": (changed(K0, (0, 1), 0.9), r0, pre, "X"),
    "matrix with NaN": (changed(K0, (0, 0), nan), r0, pre, "X"),
    **{f"tol={value!r}": (X0, r0, {"tol": value}, "tol") for value in (0.0, 1.0, -1e-3, nan, inf)},
    **{f"solver={value!r}": (X0, r0, {"solver": value}, "solver") for value in ("admm", None, 3, ["lbfgs"])},
    **{f"rank={value!r}": (X0, r0, {"rank": value}, "rank") for value in (0, -1, 1.0, 0.0, nan, "full", None, True)},
    "X_kernel of another length": (X0, r0[:5], {"X_kernel": X0[:5]}, "X_kernel"),
}


@pytest.mark.parametrize(("X", "r", "options", "match"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_named(X, r, options, match):
    with pytest.raises(ValueError, match=match):
        learn_bands(X, r, **options)


UNNAMED = {
    "tol a string": (X0, r0, {"tol": "1e-3"}, "tol"),
    "tol None": (X0, r0, {"tol": None}, "tol"),
    "normalize a string": (X0, r0, {"normalize": "yes"}, "normalize"),
    "normalize a number": (X0, r0, {"normalize": 2}, "normalize"),
    "penalty complex": (X0, r0, {"width_penalty": 1j}, "width_penalty"),
    "penalty of bytes": (X0, r0, {"width_penalty": b"1"}, "width_penalty"),
    "residuals a scalar": (X0, 1.0, {}, "residuals"),
    "solver unknown, residuals zero": (X0, 0 * r0, {"solver": "admm"}, "solver"),
}


@pytest.mark.parametrize(("X", "r", "options", "match"), UNNAMED.values(), ids=UNNAMED.keys())
def test_wrong_types_are_named(X, r, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        learn_bands(X, r, **options)


def test_named_errors_of_kernels():
    with pytest.raises(NotPositiveSemidefiniteError):
        learn_bands(K0 - 0.5 * np.eye(10), r0, kernel="precomputed")
    with pytest.raises(NotPositiveSemidefiniteError):
        learn_bands(-K0, r0, kernel="precomputed")
    with pytest.raises(InfeasibleProblemError):
        learn_bands(0 * K0, r0, kernel="precomputed")
    without = K0.copy()
    without[4], without[:, 4] = 0.0, 0.0
    with pytest.raises(InfeasibleProblemError, match="row 4"):
        learn_bands(without, r0, kernel="precomputed")
    assert certified(without, changed(r0, 4, 0.0), kernel="precomputed", lengthscale="median").values_upper[4] == 0.0


# ---------------------------------------------------------------- unusual but valid input


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("kind", "penalty"), [("training", 0.0), ("training", 1.0), ("training", inf), ("operator", 1)]
)
def test_zero_residuals_have_zero_bands(kind, penalty, normalize):
    with pytest.warns(ZeroResidualsWarning, match="zero"):
        solution = learn_bands(X0, 0 * r0, symmetry_kind=kind, symmetry_penalty=penalty, normalize=normalize)
    assert (solution.status, solution.gap, solution.primal_value) == (Status.CONVERGED, 0.0, 0.0)
    assert not solution.lower(X0).any()
    assert not solution.upper(grid(2)).any()
    assert "converged" in repr(solution)


@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-6, 1e6, 1e200, 1e300])
def test_any_scale_with_normalisation(scale, penalty):
    solution = certified(X0, scale * r0, normalize=True, symmetry_penalty=penalty, tol=1e-5)
    unit = certified(X0, r0, normalize=True, symmetry_penalty=penalty, tol=1e-5)
    assert solution.primal_value == pytest.approx(scale * unit.primal_value, rel=1e-3)
    assert np.all(np.isfinite(solution.lower(grid(2))))


@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_absurd_scales_without_normalisation_are_a_named_error(scale, penalty):
    with pytest.raises(ScaleError, match="residuals"):
        learn_bands(X0, scale * r0, symmetry_penalty=penalty)


@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6, 1e100])
def test_unusual_scales_without_normalisation_are_certified_or_say_so(scale, penalty):
    """Literal penalties: at 1e-6 the width dominates by seven orders of magnitude; bounds hold in any case."""
    try:
        solution = certified(X0, scale * r0, symmetry_penalty=penalty, tol=1e-4)
    except NotCertifiedWarning:
        with pytest.warns(NotCertifiedWarning):
            solution = learn_bands(X0, scale * r0, symmetry_penalty=penalty, lengthscale=0.5)
        assert scale < 1e-3
        assert solution.status != Status.CONVERGED
        assert 0 <= solution.dual_value <= solution.primal_value < inf
    assert np.all(np.isfinite(solution.upper(grid(2))))


@pytest.mark.parametrize(
    ("kind", "penalty"), [("training", 0.0), ("training", 1.0), ("training", inf), ("operator", 1)]
)
@pytest.mark.parametrize("normalize", [False, True])
def test_one_learning_point(kind, penalty, normalize):
    solution = certified([[0.3]], [2.0], symmetry_kind=kind, symmetry_penalty=penalty, normalize=normalize)
    assert solution.values_upper[0] == pytest.approx(2.0, rel=1e-3)


def test_one_point_by_hand():
    """n = 1, k = 1: A is the number f, so the value is b f + lam1 f + lam2 f^2 per side and f_up = r."""
    weights = {"width_penalty": 3.0, "trace_penalty": 2.0, "frobenius_penalty": 0.5}
    r, lam_pen = 2.0, 4.0
    alone = certified([[0.0]], [r], symmetry_penalty=0.0, **weights)
    assert alone.primal_value == pytest.approx(3 * r + 2 * r + 0.5 * r**2, rel=1e-6)
    shared = certified([[0.0]], [r], symmetry_penalty=inf, **weights)
    assert shared.primal_value == pytest.approx(2 * (5 * r + 0.5 * r**2), rel=1e-6)
    # min over f >= 0 of 5 f + f²/2 + 4 (r - f)²: 5 + f - 8 (r - f) = 0
    f = (8 * r - 5) / 9
    value = 5 * r + 0.5 * r**2 + 5 * f + 0.5 * f**2 + lam_pen * (r - f) ** 2
    coupled = certified([[0.0]], [r], symmetry_penalty=lam_pen, **weights)
    assert coupled.primal_value == pytest.approx(value, rel=2e-6)
    assert coupled.values_lower[0] == pytest.approx(f, rel=2e-3)
    operators = certified([[0.0]], [r], symmetry_penalty=lam_pen, symmetry_kind="operator", **weights)
    assert operators.primal_value == pytest.approx(value, rel=2e-6)
    # with a nuclear part 1: 5 + f - 8 (r - f) - 1 = 0
    f = (8 * r - 4) / 9
    value = 5 * r + 0.5 * r**2 + 5 * f + 0.5 * f**2 + lam_pen * (r - f) ** 2 + (r - f)
    operators = certified([[0.0]], [r], symmetry_penalty=(1.0, lam_pen), symmetry_kind="operator", **weights)
    assert operators.primal_value == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
def test_all_points_equal(penalty):
    """One feature: every constraint at the same place, so the largest residual of each sign decides."""
    r = np.array([1.0, -3.0, 0.5, 2.0])
    solution = certified(np.zeros((4, 2)), r, symmetry_penalty=penalty, lengthscale="median")
    if penalty == 0:
        np.testing.assert_allclose(solution.values_lower, 3.0, rtol=1e-3)
        np.testing.assert_allclose(solution.values_upper, 2.0, rtol=1e-3)
    if penalty == inf:
        np.testing.assert_allclose(solution.values_upper, 3.0, rtol=1e-3)


def test_a_gross_outlier_is_covered():
    solution = certified(X0, changed(r0, 0, 1e8), tol=1e-4)
    assert solution.values_upper[0] >= 1e8 * (1 - 1e-9)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton"])
def test_solvers_agree(solver):
    X, r = data(20, 20)
    for penalty in (0.0, 1e-2, 10.0, inf):
        one = certified(X, r, symmetry_penalty=penalty, solver=solver)
        two = certified(X, r, symmetry_penalty=penalty, solver="lbfgs")
        assert one.dual_value == pytest.approx(two.dual_value, rel=3e-6)
        assert_same_bands(two, one)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, r, **options: learn_bands(X, r, **options),
        lambda X, r, **options: list(learn_band_path(X, r, [1.0], **options)),
        lambda X, r, **options: list(learn_band_grid(X, r, ["median"], [1.0], **options)),
    ],
    ids=["learn_bands", "path", "grid"],
)
def test_warnings_point_at_the_line_of_the_user(call, monkeypatch):
    from dataclasses import replace

    from sosbands.bands import learn

    solved, alone = learn.solve_path, learn.solve
    monkeypatch.setattr(
        learn, "solve_path", lambda *a, **k: (replace(each, status=Status.STALLED) for each in solved(*a, **k))
    )
    monkeypatch.setattr(learn, "solve", lambda *a, **k: replace(alone(*a, **k), status=Status.STALLED))
    rng = np.random.default_rng(0)
    X, r = rng.uniform(-1, 1, (30, 1)), rng.standard_normal(30)
    with pytest.warns(NotCertifiedWarning) as caught:
        call(X, r)
    assert [warning.filename for warning in caught] == [__file__]


def test_low_rank_warnings_point_at_the_line_of_the_user():
    rng = np.random.default_rng(0)
    X, r = rng.uniform(-1, 1, (30, 4)), np.zeros(30)
    with pytest.warns(LowRankWarning) as caught, pytest.warns(ZeroResidualsWarning) as zero:
        learn_bands(X, r, rank=2, lengthscale=0.3)
    assert caught[0].filename == __file__
    assert zero[0].filename == __file__


def test_unknown_settings_name_the_function():
    for function, more in ((learn_band_path, ([1.0],)), (learn_band_grid, (["median"], [1.0]))):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'foo'"):
            function(np.zeros((3, 1)), np.ones(3), *more, foo=1)


def test_paths_have_the_defaults_of_learn_bands():
    public = inspect.signature(learn_bands).parameters
    read = LITERAL.get_params()
    for name in ("max_iterations", "coupled_rows", "outlier_fraction"):  # of sequences and of the estimator only
        del read[name]
    assert {name: public[name].default for name in read} == read
