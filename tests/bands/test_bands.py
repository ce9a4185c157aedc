"""learn_bands: limits of the symmetry penalty, invariances, bounds of the asymmetry, and bad input."""

from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from contracts import matern52
from sosbands import learn_bands
from sosbands.exceptions import (
    InfeasibleProblemError,
    LowRankWarning,
    NotCertifiedWarning,
    NotPositiveSemidefiniteError,
    ScaleError,
    SymmetricLimitError,
    ZeroResidualsWarning,
)
from sosbands.problems import OneSidedProblem, SideTerm
from sosbands.solvers import Status, solve

TOL = 1e-6
KINDS = [("training", 0.0), ("training", 1.0), ("training", np.inf), ("operator", 1.0)]
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
    assert -1e-12 <= solution.gap <= options["tol"]
    if options.get("learning_coverage", 1.0) == 1:
        assert solution.violation <= 1e-9
        assert np.all(solution.values_lower >= -np.asarray(r) - 1e-9 * np.abs(r).max())
        assert np.all(solution.values_upper >= np.asarray(r) - 1e-9 * np.abs(r).max())
    return solution


def grid(d, count=300):
    return np.random.default_rng(99).uniform(-1.3, 1.3, (count, d))


def assert_same_bands(one, two, rel=5e-3):
    """Both functions on a grid, to the square root of the gaps."""
    points = grid(1)
    size = max(one.lower(points).max(), one.upper(points).max())
    assert np.abs(two.lower(points) - one.lower(points)).max() <= rel * size
    assert np.abs(two.upper(points) - one.upper(points)).max() <= rel * size


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


# ---------------------------------------------------------------- limits of the symmetry penalty


LIMITS = [("training", 0.0), ("operator", (0.0, 0.0)), ("training", inf), ("operator", inf), ("operator", (inf, 0.0))]


@pytest.mark.parametrize(("kind", "penalty"), LIMITS)
def test_zero_is_two_separate_problems_and_infinity_one(kind, penalty):
    X, r = data(1)
    solution = certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind, width_penalty=2.0)
    term = SideTerm.of(solution.lower.features.V, b=2.0, lam1=1.0, lam2=1.0)
    targets = (np.abs(r), np.abs(r)) if np.max(penalty) == inf else (-r, r)
    sides = [solve(OneSidedProblem(term, target), tol=TOL) for target in targets]
    assert solution.dual_value == pytest.approx(sum(s.certificate.dual_value for s in sides), rel=3e-6)
    for f, side in zip((solution.values_lower, solution.values_upper), sides, strict=True):
        assert np.abs(f - side.certificate.sides[0].f).max() <= 5e-3 * f.max()
    assert np.array_equal(solution.lower.operator, solution.upper.operator) == (np.max(penalty) == inf)


@pytest.mark.parametrize(
    "ways",
    [
        [(inf, "training"), *((pair, "operator") for pair in [(0.5, inf), (inf, 1.0), (inf, inf), (inf, 0.0)])],
        [(0.7, "operator"), ((0.0, 0.7), "operator"), ([0, 0.7], "operator")],
    ],
    ids=["any infinity of a pair is the symmetric problem", "a number is the second of the pair"],
)
def test_ways_to_ask_for_the_same_penalty(ways):
    X, r = data(3, 12)
    values = {certified(X, r, symmetry_penalty=penalty, symmetry_kind=kind).dual_value for penalty, kind in ways}
    assert max(values) == pytest.approx(min(values), rel=1e-12)


@pytest.mark.parametrize("coverage", [0.8, 1.0])
@pytest.mark.parametrize("kind", ["training", "operator"])
def test_value_grows_from_one_limit_to_the_other(kind, coverage):
    X, r = data(5, 14)
    penalties = [0.0, 1e-8, 1e-3, 1e-1, 1.0, 10.0, 1e3, 1e7, inf]
    options = {"symmetry_kind": kind, "width_penalty": 1.0 if coverage == 1 else 20.0, "learning_coverage": coverage}
    solutions = [certified(X, r, symmetry_penalty=p, **options) for p in penalties]
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


@pytest.mark.parametrize("how", ["infinite lengthscale", "all points equal"])
def test_where_points_are_alike_the_largest_residual_of_each_sign_decides(how):
    X, r = data(9)
    X, ell = (X, inf) if how == "infinite lengthscale" else (0 * X, "median")
    at = grid(1) if how == "infinite lengthscale" else X[:1]
    for penalty, lower, upper in ((0.0, (-r).max(), r.max()), (inf, np.abs(r).max(), np.abs(r).max())):
        solution = certified(X, r, lengthscale=ell, symmetry_penalty=penalty)
        np.testing.assert_allclose(solution.lower(at), lower, rtol=1e-3)
        np.testing.assert_allclose(solution.upper(at), upper, rtol=1e-3)


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
        assert coarse.primal_value >= fine.dual_value * (1 - 1e-12)
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


ELL = np.array([0.5, 0.8])
POINTS, RESIDUALS = data(13, 12, 2)
ORDER = np.random.default_rng(5).permutation(12)
LITERAL = {"lengthscale": ELL, "width_penalty": 2.0, "trace_penalty": 0.5, "frobenius_penalty": 3.0}
TOLD = {
    "asymmetric": {"symmetry_penalty": 0.0},
    "training": {"symmetry_penalty": 0.6},
    "operator": {"symmetry_penalty": (0.2, 1.0), "symmetry_kind": "operator"},
    "symmetric": {"symmetry_penalty": inf},
    "rows outside": {"symmetry_penalty": 0.6, "learning_coverage": 0.8, "width_penalty": 20.0},
}


def kernel(A, B=POINTS):
    return matern52(A / ELL, B / ELL, 1.0)


def symmetry(options, training, nuclear, frobenius):
    """The symmetry penalty times numbers that depend on its kind."""
    given = options["symmetry_penalty"]
    times = (nuclear * given[0], frobenius * given[1]) if isinstance(given, tuple) else training * given
    return {"symmetry_penalty": times}


def by_kernel(given):
    return {"kernel": given, "lengthscale": "median"}


def twice(o):
    """Same constraints, same mean width, same operators; only a sum over the points notices."""
    return np.vstack([POINTS, POINTS]), np.tile(RESIDUALS, 2), symmetry(o, 0.5, 1, 1)


def other_variance(o):
    """Kernel v k with (b, v lam1, v^2 lam2, lam_pen; v lam_pen1, v^2 lam_pen2) gives the same functions and value."""
    penalties = {"trace_penalty": 50 * o["trace_penalty"], "frobenius_penalty": 2500 * o["frobenius_penalty"]}
    return 50 * kernel(POINTS), RESIDUALS, by_kernel("precomputed") | penalties | symmetry(o, 1, 50, 2500)


def scaled(o, c=25.0):
    """Residuals c r with (b, lam1, lam2/c, lam_pen/c; lam_pen1, lam_pen2/c) give c f and c times the value."""
    return POINTS, c * RESIDUALS, {"frobenius_penalty": o["frobenius_penalty"] / c} | symmetry(o, 1 / c, 1, 1 / c)


# How a problem is told again; where its bands are looked at; what they are multiplied by, with the sides swapped if
# that is negative.
GUISES = {
    "in another order": (lambda _: (POINTS[ORDER], RESIDUALS[ORDER], {}), lambda P: P, 1),
    "elsewhere": (lambda _: (POINTS + 17.3, RESIDUALS, {}), lambda P: P + 17.3, 1),
    "points in another unit": (lambda _: (7 * POINTS, RESIDUALS, {"lengthscale": 7 * ELL}), lambda P: 7 * P, 1),
    "seen by the kernel alone": (
        lambda _: (None, RESIDUALS, {"X_kernel": POINTS / ELL, "lengthscale": 1.0}),
        lambda P: P / ELL,
        1,
    ),
    "scikit-learn's kernel": (
        lambda _: (POINTS, RESIDUALS, by_kernel(Matern(ELL, length_scale_bounds="fixed", nu=2.5))),
        lambda P: P,
        1,
    ),
    "function as kernel": (lambda _: (POINTS, RESIDUALS, by_kernel(kernel)), lambda P: P, 1),
    "kernel matrix": (lambda _: (kernel(POINTS), RESIDUALS, by_kernel("precomputed")), kernel, 1),
    "kernel of another variance": (other_variance, lambda P: 50 * kernel(P), 1),
    "every point twice": (twice, lambda P: P, 1),
    "residuals in another unit": (scaled, lambda P: P, 25),
    "the other sign": (lambda _: (POINTS, -RESIDUALS, {}), lambda P: P, -1),
}


@cache
def plainly_told(problem):
    return certified(POINTS, RESIDUALS, **LITERAL | TOLD[problem])


def check_told(problem, tell, place, factor):
    options = LITERAL | TOLD[problem]
    X, r, changes = tell(options)
    one, two = plainly_told(problem), certified(X, r, **options | changes)
    assert two.dual_value == pytest.approx(abs(factor) * one.dual_value, rel=3e-6)
    assert two.primal_value == pytest.approx(abs(factor) * one.primal_value, rel=3e-6)
    points = grid(2)
    sides = (two.lower, two.upper) if factor > 0 else (two.upper, two.lower)
    for other, f in zip(sides, (one.lower, one.upper), strict=True):
        expected = abs(factor) * f(points)
        assert np.abs(other(place(points)) - expected).max() <= 5e-3 * expected.max()


@pytest.mark.parametrize("problem", TOLD)
@pytest.mark.parametrize("guise", GUISES)
def test_the_same_problem_told_in_another_way(guise, problem):
    check_told(problem, *GUISES[guise])


@pytest.mark.parametrize("problem", TOLD)
def test_another_problem_is_noticed(problem):
    with pytest.raises(AssertionError):
        check_told(problem, lambda _: (POINTS, RESIDUALS, {"trace_penalty": 0.505}), lambda P: P, 1)


@pytest.mark.parametrize("factor", [0.0, 0.7, 1.8])
@pytest.mark.parametrize("penalty", [0.0, inf])
def test_of_a_repeated_point_the_larger_residual_counts(penalty, factor):
    """The other constraint follows from it; without a mean width (b = 0) nothing else sees it."""
    X, r = data(3, 10)
    options = {"symmetry_penalty": penalty, "width_penalty": 0.0}
    larger = r.copy()
    larger[4] *= max(1.0, factor)
    one = certified(X, larger, **options)
    two = certified(np.vstack([X, X[4]]), np.append(r, factor * r[4]), **options)
    assert two.dual_value == pytest.approx(one.dual_value, rel=3e-6)
    assert_same_bands(one, two)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
def test_larger_residuals_cost_more(seed, penalty):
    """Every constraint tighter, so the optimum cannot fall."""
    X, r = data(seed, 12)
    factor = 1 + np.random.default_rng(seed).uniform(0, 1, 12)
    one, two = certified(X, r, symmetry_penalty=penalty), certified(X, factor * r, symmetry_penalty=penalty)
    assert two.primal_value >= one.dual_value * (1 - 1e-12)


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

BAD = {  # what settings refuse is in test_settings.py
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
    "residuals a scalar": (X0, 1.0, {}, "residuals"),
    "solver unknown, residuals zero": (X0, 0 * r0, {"solver": "admm"}, "solver"),
    "lengthscales too many": (X0, r0, {"lengthscale": [1.0, 2.0, 3.0]}, "lengthscale"),
    "lengthscale of a matrix": (K0, r0, {**pre, "lengthscale": 1.0}, "lengthscale"),
    "kernel returns a wrong shape": (X0, r0, {"kernel": lambda A, B: np.ones(3)}, "kernel"),  # noqa: ARG005
    "kernel returns NaN": (X0, r0, {"kernel": lambda A, B: np.full((len(A), len(B)), nan)}, "kernel"),
    "matrix not square": (K0[:, :5], r0, pre, "X"),
    "matrix not symmetric": (changed(K0, (0, 1), 0.9), r0, pre, "X"),
    "matrix with NaN": (changed(K0, (0, 0), nan), r0, pre, "X"),
    "X_kernel of another length": (X0, r0[:5], {"X_kernel": X0[:5]}, "X_kernel"),
}


@pytest.mark.parametrize(("X", "r", "options", "match"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_named(X, r, options, match):
    with pytest.raises(ValueError, match=match):
        learn_bands(X, r, **options)


def test_named_errors_of_kernels():
    for indefinite in (K0 - 0.5 * np.eye(10), -K0):
        with pytest.raises(NotPositiveSemidefiniteError):
            learn_bands(indefinite, r0, **pre)
    with pytest.raises(InfeasibleProblemError):
        learn_bands(0 * K0, r0, **pre)
    without = changed(changed(K0, 4, 0.0), (slice(None), 4), 0.0)
    with pytest.raises(InfeasibleProblemError, match="row 4"):
        learn_bands(without, r0, **pre)
    assert certified(without, changed(r0, 4, 0.0), lengthscale="median", **pre).values_upper[4] == 0.0


# ---------------------------------------------------------------- unusual but valid input


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(("kind", "penalty"), KINDS)
def test_zero_residuals_have_zero_bands(kind, penalty, normalize):
    with pytest.warns(ZeroResidualsWarning, match="zero"):
        solution = learn_bands(X0, 0 * r0, symmetry_kind=kind, symmetry_penalty=penalty, normalize=normalize)
    assert (solution.status, solution.gap, solution.primal_value) == (Status.CONVERGED, 0.0, 0.0)
    assert not solution.lower(X0).any()
    assert not solution.upper(grid(2)).any()
    assert "converged" in repr(solution)


@pytest.mark.parametrize("penalty", [0.0, 1.0, inf])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-6, 1e200, 1e300])
def test_any_scale_with_normalisation_and_absurd_ones_named_without(scale, penalty):
    solution = certified(X0, scale * r0, normalize=True, symmetry_penalty=penalty, tol=1e-5)
    unit = certified(X0, r0, normalize=True, symmetry_penalty=penalty, tol=1e-5)
    assert solution.primal_value == pytest.approx(scale * unit.primal_value, rel=1e-3)
    assert np.all(np.isfinite(solution.lower(grid(2))))
    if scale != 1e-6:
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


@pytest.mark.parametrize(("kind", "penalty"), KINDS)
@pytest.mark.parametrize("normalize", [False, True])
def test_one_learning_point(kind, penalty, normalize):
    solution = certified([[0.3]], [2.0], symmetry_kind=kind, symmetry_penalty=penalty, normalize=normalize)
    assert solution.values_upper[0] == pytest.approx(2.0, rel=1e-3)


def test_one_point_by_hand():
    """n = 1, k = 1: A is the number f, so the value is b f + lam1 f + lam2 f^2 per side and f_up = r."""
    weights = {"width_penalty": 3.0, "trace_penalty": 2.0, "frobenius_penalty": 0.5}
    r = 2.0
    side = 5 * r + 0.5 * r**2
    values = {0.0: side, inf: 2 * side}
    # min over f >= 0 of 5 f + f²/2 + 4 (r - f)² + c (r - f), c the nuclear part: 5 + f - 8 (r - f) - c = 0
    for penalty, c in ((4.0, 0.0), ((0.0, 4.0), 0.0), ((1.0, 4.0), 1.0)):
        f = (8 * r - 5 + c) / 9
        values[penalty] = side + 5 * f + 0.5 * f**2 + 4 * (r - f) ** 2 + c * (r - f)
    for penalty, value in values.items():
        kind = "operator" if isinstance(penalty, tuple) else "training"
        found = certified([[0.0]], [r], symmetry_penalty=penalty, symmetry_kind=kind, **weights)
        assert found.primal_value == pytest.approx(value, rel=2e-6)


def test_a_gross_outlier_is_covered():
    solution = certified(X0, changed(r0, 0, 1e8), tol=1e-4)
    assert solution.values_upper[0] >= 1e8 * (1 - 1e-9)
