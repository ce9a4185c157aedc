"""Relaxed quantile regression: its loss, what minimises it, and what comes out under skewed noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from sosbands.baselines import SplitCP
from sosbands.datasets import synthetic_case
from sosbands.kernels import median_lengthscale
from sosbands.metrics import coverage, interval_score, mean_width
from studies.rivals import RelaxedQuantileCQR
from studies.rivals.relaxed_loss import (
    SMOOTHING,
    Axes,
    Target,
    ends_of,
    minimise,
    objective,
    relaxed_loss,
)
from studies.rivals.relaxed_tuning import FACTORS, feature_matrix, least_squares, tune_ridges

RNG = np.random.default_rng(0)
N, P = 60, 4
FEATURES = RNG.standard_normal((N, P)) * [3.0, 1.0, 0.3, 0.1]
Y = FEATURES[:, 0] / 3 + (1 + 0.5 * np.tanh(FEATURES[:, 1])) * (RNG.exponential(size=N) - 1)
AXES = Axes.of(FEATURES)
TARGET = Target(Y, 0.9, 1.0, 1e-2, 1e-1)
FIXED = {"lengthscale": 1.0, "center_ridge": 1e-2, "width_ridge": 1e-2}


def rho(kappa, level):
    return kappa * (level - (kappa < 0))


# ---------------------------------------------------------------- the loss


@pytest.mark.parametrize("lam", [0.0, 0.05, 1.0, 7.0])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_loss_is_that_of_the_method(level, lam):
    """The same as the loss of the product of both distances, at level + 2 lam, and the penalty of the width."""
    rng = np.random.default_rng(1)
    y, lower, upper = rng.standard_normal((3, 500))
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    expected = rho((y - lower) * (y - upper), level + 2 * lam) + lam * (upper - lower) ** 2 / 2
    found = relaxed_loss(y, (lower + upper) / 2, (upper - lower) ** 2 / 4, level, lam)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def check_gradient(function, at):
    gradient = function(at)[1]
    differences = approx_fprime(at.ravel(), lambda theta: function(theta.reshape(at.shape))[0], 1e-7)
    np.testing.assert_allclose(gradient.ravel(), differences, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_gradient_by_finite_differences(lam):
    rng = np.random.default_rng(2)
    target = replace(TARGET, width_penalty=lam)
    at = 0.3 * rng.standard_normal((1 + P, 2)) + [[0.0, 1.0], *[[0.0, 0.0]] * P]
    v = at[0, 1] + AXES.coordinates @ at[1:, 1] - (Y - at[0, 0] - AXES.coordinates @ at[1:, 0]) ** 2
    assert (np.abs(v) < SMOOTHING).any()  # the rounded corner is part of it
    check_gradient(lambda linear: objective(linear, AXES.coordinates, target), at)
    gradient = objective(at, AXES.coordinates, target)[1]
    with pytest.raises(AssertionError):  # a gradient whose widths have the wrong sign is noticed
        check_gradient(lambda linear: (objective(linear, AXES.coordinates, target)[0], gradient * [1, -1]), at)


def test_smoothing_adds_a_quarter_of_its_width_at_most():
    rng = np.random.default_rng(3)
    linear = np.vstack([[0.0, 1.0], 0.2 * rng.standard_normal((P, 2))])
    center, squared = (linear[0] + AXES.coordinates @ linear[1:]).T
    target = replace(TARGET, center_ridge=0.0, width_ridge=0.0)
    excess = objective(linear, AXES.coordinates, target)[0] - relaxed_loss(Y, center, squared, 0.9, 1.0).mean()
    assert 0 < excess <= SMOOTHING / 4
    corner = Axes.of(np.zeros((3, 1))).coordinates
    value, _ = objective(np.array([[0.0, 4.0], [0.0, 0.0]]), corner, replace(target, y=np.full(3, 2.0)))
    assert value == pytest.approx(2.9 * 4 - 0.9 * 4 + SMOOTHING / 4, rel=1e-12)


def test_convex_from_half_of_the_tail_on():
    """Midpoints of random pairs are never above the mean of the ends if 2 lam >= 1 - level."""
    rng = np.random.default_rng(4)

    def excess(a, b, lam):
        target = replace(TARGET, width_penalty=lam, center_ridge=0.0, width_ridge=0.0)
        middle, *ends = (objective(each, AXES.coordinates, target)[0] for each in ((a + b) / 2, a, b))
        return middle - np.mean(ends)

    start = np.vstack([[0.0, 1.0], np.zeros((P, 2))])
    pairs = start + 0.5 * rng.standard_normal((300, 2, 1 + P, 2))
    everything_inside = np.zeros((2, 1 + P, 2))
    everything_inside[:, 0] = [[-0.5, 100.0], [0.5, 100.0]]  # r^2 has the factor 2 lam - 0.1 there
    assert max(excess(a, b, 0.05) for a, b in (*pairs, everything_inside)) <= 1e-12
    assert excess(*everything_inside, 0.0) == pytest.approx(0.1 * 0.5**2, rel=1e-9)


# ---------------------------------------------------------------- the minimiser


@pytest.mark.parametrize(("level", "lam"), [(0.8, 0.1), (0.8, 1.0), (0.9, 0.05), (0.9, 0.1), (0.9, 1.0)])
def test_minimum_against_a_convex_solver(level, lam):
    cvxpy = pytest.importorskip("cvxpy", reason="the reference needs CVXPY: pip install sosbands[sdp]")
    target = replace(TARGET, level=level, width_penalty=lam)
    found = minimise(AXES, target, max_iter=2000, tol=1e-13)
    assert found.converged
    w = cvxpy.Variable((1 + P, 2))
    c, t = (w[0, i] + AXES.coordinates @ w[1:, i] for i in (0, 1))
    r2 = cvxpy.square(Y - c)
    pieces = cvxpy.maximum((level + 2 * lam) * r2 - level * t, (level + 2 * lam - 1) * r2 + (1 - level) * t)
    ridges = (level + 2 * lam) * 1e-2 * cvxpy.sum_squares(w[1:, 0]) + 0.5 * 1e-1 * cvxpy.sum_squares(w[1:, 1])
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(pieces) / N + ridges)).solve(solver="CLARABEL")
    center, squared = (found.linear[0] + AXES.coordinates @ found.linear[1:]).T
    weights = np.array([(level + 2 * lam) * 1e-2, 0.5 * 1e-1])
    ours = relaxed_loss(Y, center, squared, level, lam).mean() + np.sum(weights * found.linear[1:] ** 2)
    assert best - 1e-7 <= ours <= best + SMOOTHING / 4  # what smoothing may cost
    assert ours <= best + 2e-3  # what it costs here


def test_any_start_leads_to_the_same_minimum():
    rng = np.random.default_rng(5)
    one = minimise(AXES, TARGET, max_iter=2000, tol=1e-14).linear
    other = minimise(AXES, TARGET, rng.standard_normal((1 + P, 2)), max_iter=2000, tol=1e-14).linear
    np.testing.assert_allclose(one, other, atol=2e-3)
    with pytest.raises(AssertionError):  # another penalty leads elsewhere
        np.testing.assert_allclose(one, minimise(AXES, replace(TARGET, width_penalty=0.05)).linear, atol=2e-3)


def of_one_law(y, level, lam):
    """Ends learnt where no feature says anything."""
    axes = Axes.of(np.zeros((len(y), 1)))
    found = minimise(axes, Target(y, level, lam, 1.0, 1.0), max_iter=2000, tol=1e-14)
    lower, upper = ends_of(found.linear, axes.coordinates[:1])
    return lower[0], upper[0]


EXPONENTIAL = stats.expon.ppf((np.arange(20000) + 0.5) / 20000)


@pytest.mark.parametrize("lam", [0.0, 0.05, 0.3, 1.0, 5.0])
def test_conditions_of_the_minimum(lam):
    """Coverage, and where the interval lies: 2 lam c = (1 - level) E[y outside] + (2 lam - 1 + level) E[y]."""
    y = EXPONENTIAL
    lower, upper = of_one_law(y, 0.9, lam)
    inside = (y > lower) & (y < upper)
    assert inside.mean() == pytest.approx(0.9, abs=5e-3)
    center = (lower + upper) / 2
    moved = 0.1 * y[~inside].mean() + (2 * lam - 0.1) * y.mean()
    assert 2 * lam * center == pytest.approx(moved, abs=0.02)
    if lam == 0:
        assert y[inside].mean() == pytest.approx(y.mean(), abs=0.02)


def test_widths_under_exponential_noise():
    """Shortest interval of probability 0.9: [0, 2.303]. Of equal tails: 2.944. Plain RQR is wider than both."""
    widths = [np.diff(of_one_law(EXPONENTIAL, 0.9, lam))[0] for lam in (0.0, 0.1, 1.0)]
    np.testing.assert_allclose(widths, [3.85, 2.93, 2.38], atol=0.03)
    law = stats.expon()
    equal, shortest = law.ppf(0.95) - law.ppf(0.05), law.ppf(0.9)
    assert widths[0] > 1.25 * equal
    assert shortest < widths[2] < 1.05 * shortest


def test_brute_force_agrees_where_the_problem_is_not_convex():
    y = EXPONENTIAL[::20]
    centers, squares = np.linspace(0.5, 3.5, 121), np.linspace(0.5, 6.0, 121)
    grid = np.array([[relaxed_loss(y, c, t, 0.9, 0.0).mean() for t in squares] for c in centers])
    i, j = np.unravel_index(grid.argmin(), grid.shape)
    lower, upper = of_one_law(y, 0.9, 0.0)
    assert (lower + upper) / 2 == pytest.approx(centers[i], abs=0.05)
    assert (upper - lower) ** 2 / 4 == pytest.approx(squares[j], abs=0.15)


# ---------------------------------------------------------------- lengthscale and ridges


def test_left_out_residuals_are_those_of_ridge_regression_without_the_row():
    expected = [  # the ridge of the sum over rows, the same without a row
        Y[i] - Ridge(0.03 * N).fit(np.delete(FEATURES, i, 0), np.delete(Y, i)).predict(FEATURES[i : i + 1])[0]
        for i in range(N)
    ]
    found = AXES.left_out_residuals(Y, 0.03)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_least_squares_takes_the_best_of_its_candidates():
    X, y = synthetic_case(3).sample(80, random_state=0)
    z = (y - y.mean()) / y.std()
    points = (X - X.mean(axis=0)) / X.std(axis=0)
    start = least_squares(points, z, 0.9, "auto", "auto", 200)
    errors = {}
    for factor in FACTORS:
        ell = factor * median_lengthscale(points)
        for gamma in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
            alone = least_squares(points, z, 0.9, ell, gamma, 200)
            errors[ell, gamma] = np.square(Axes.of(alone.matrix).left_out_residuals(z, gamma)).mean()
    squares = np.square(Axes.of(start.matrix).left_out_residuals(z, start.center_ridge))
    assert squares.mean() <= min(errors.values()) * (1 + 1e-12)
    assert start.unit == pytest.approx(np.sqrt(np.quantile(squares, 0.9)), rel=1e-12)
    np.testing.assert_allclose(start.matrix, feature_matrix(points, start.features), rtol=1e-10, atol=1e-10)


def test_ridges_by_cross_validation():
    X, y = synthetic_case(5).sample(60, random_state=0)
    points, z = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    start = least_squares(points, z, 0.9, "auto", "auto", 200)
    target = Target(z / start.unit, 0.9, 1.0, 0.0, 0.0)
    folds = KFold(3, shuffle=True, random_state=0)
    found = tune_ridges(start, target, folds, center_ridges=[1.0, 1e-2], width_ridges=[1.0, 1e-2])
    scores = found["interval_score"]
    i, j = np.unravel_index(scores.argmin(), scores.shape)
    assert (found["center_ridge"], found["width_ridge"]) == ([1.0, 1e-2][i], [1.0, 1e-2][j])
    # one of them written out: the first candidate, from its own start
    lower, upper = np.empty((2, len(z)))
    for others, held in folds.split(z):
        axes = Axes.of(start.matrix[others])
        linear = minimise(axes, replace(target, y=target.y[others], center_ridge=1.0, width_ridge=1.0)).linear
        weights = axes.coefficients(linear)
        center, squared = (weights[0] + start.matrix[held] @ weights[1:]).T
        lower[held], upper[held] = center - np.sqrt(squared), center + np.sqrt(squared)
    q = np.sort(np.maximum(lower - target.y, target.y - upper))[55 - 1]  # ceil(0.9 * 61)
    assert coverage(target.y, lower - q, upper + q) >= 0.9
    assert scores[0, 0] == pytest.approx(interval_score(target.y, lower - q, upper + q, 0.9), rel=2e-3)


# ---------------------------------------------------------------- the estimator


def test_ends_are_centre_and_root_of_the_learnt_functions():
    X, y = synthetic_case(5).sample(100, random_state=0)
    model = RelaxedQuantileCQR(calibration_size=None, **FIXED).fit(X, y)
    assert (model.lengthscale_, model.center_ridge_, model.width_ridge_) == (1.0, 1e-2, 1e-2)
    assert model.tuning_ is None
    assert model.converged_
    points = (X - X.mean(axis=0)) / X.std(axis=0)
    axes = Axes.of(feature_matrix(points, model.features_))
    target = Target((y - y.mean()) / model.unit_, 0.9, 1.0, 1e-2, 1e-2)
    lower, upper = ends_of(minimise(axes, target).linear, axes.coordinates)
    band = model.told(X).band
    np.testing.assert_allclose(band.lower, y.mean() + model.unit_ * lower, rtol=1e-6)
    np.testing.assert_allclose(band.upper, y.mean() + model.unit_ * upper, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), (band.lower + band.upper) / 2, rtol=1e-10, atol=1e-10)
    assert coverage(y, band.lower, band.upper) == pytest.approx(0.9, abs=0.04)
    narrow = RelaxedQuantileCQR(confidence_level=0.5, calibration_size=None, **FIXED).fit(X, y).told(X).band
    assert coverage(y, narrow.lower, narrow.upper) == pytest.approx(0.5, abs=0.05)
    new, z = synthetic_case(5).sample(60, random_state=1)
    held = model.told(new).band
    q = np.sort(np.maximum(held.lower - z, z - held.upper))[55 - 1]  # that of CQR: ceil(0.9 * 61)
    expected = np.column_stack([band.lower - q, band.upper + q])
    np.testing.assert_allclose(model.conformalize(new, z).predict_interval(X), expected)


def test_equivariant_in_the_target_whatever_the_units_of_the_features():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 3))
    y = X[:, 0] + (1 + X[:, 1]) * rng.exponential(size=100)
    ends = RelaxedQuantileCQR(random_state=0, cv=3).fit(X, y).predict_interval(X)
    scaled = X * [1e4, 1.0, 1e-5] + [3.0, 0.0, 1.0]
    for rows, factor, shift in ((X, 1e3, 5.0), (X, 1e-4, 0.0), (X, -2.0, 1e3), (scaled, 1.0, 0.0)):
        moved = RelaxedQuantileCQR(random_state=0, cv=3).fit(rows, factor * y + shift).predict_interval(rows)
        back = np.sort((moved - shift) / factor, axis=1)
        np.testing.assert_allclose(back, ends, atol=1e-6 * np.diff(ends).mean())


@pytest.mark.parametrize(("number", "measured"), [(3, 0.83), (5, 0.79)])
def test_narrower_than_split_conformal_under_skewed_noise(number, measured):
    """Ratio of mean widths, measured over 12 draws of 400 rows; three of them are taken here."""
    case, widths, covered = synthetic_case(number), [], []
    for seed in range(3):
        X, y = case.sample(2400, random_state=seed)
        pair = [RelaxedQuantileCQR(random_state=seed), SplitCP(calibration_size=0.5, random_state=seed)]
        pair = [model.fit(X[:400], y[:400]) for model in pair]
        ends = [model.predict_interval(X[400:]).T for model in pair]
        widths.append([mean_width(*each) for each in ends])
        covered.append(coverage(y[400:], *ends[0]))
    relaxed, split = np.mean(widths, axis=0)
    assert relaxed < (measured + 0.06) * split
    assert np.mean(covered) == pytest.approx(0.9, abs=0.025)


def test_the_band_follows_skew_that_changes_direction():
    """Case 5: the tail points down left of -0.25 and up right of it; the centre must lie on its side."""
    case = synthetic_case(5)
    X, y = case.sample(800, random_state=0)
    model = RelaxedQuantileCQR(random_state=0).fit(X, y)
    x = np.array([[-0.9], [0.9]])
    beyond = model.predict(x) - case.location(x)
    assert beyond[0] < -0.7  # scale -1.3: the shortest interval has its centre at -1.3 * 1.15 = -1.5
    assert beyond[1] > 1.4  # scale 2.3: at 2.6
    widths = np.diff(model.predict_interval(x), axis=1)[:, 0]
    assert widths[1] > 1.4 * widths[0]
    far = model.told(np.array([[-1e6], [50.0], [1e6]])).band  # numbers stay finite
    assert np.isfinite(far.lower).all()
    assert (far.upper >= far.lower).all()


@pytest.mark.parametrize(("slope", "value", "atol"), [(3.0, 0.0, 0.01), (0.0, 0.0, 1e-5), (0.0, 7.0, 1e-5)])
def test_data_without_noise(slope, value, atol):
    X = np.linspace(-1, 1, 60)[:, None]
    model = RelaxedQuantileCQR(random_state=0).fit(X, slope * X[:, 0] + value)
    np.testing.assert_allclose(model.predict(X), slope * X[:, 0] + value, atol=atol)
    assert np.diff(model.predict_interval(X)).max() <= atol


def test_few_rows_need_no_folds_and_many_features_are_capped():
    X, y = synthetic_case(5).sample(18, random_state=0)
    model = RelaxedQuantileCQR(calibration_size=None, cv=10).fit(X, y)
    assert model.tuning_ is None
    assert model.width_ridge_ == 1.0
    two = RelaxedQuantileCQR(calibration_size=None).fit(X[:2], y[:2])
    assert np.isfinite(two.predict(X)).all()
    X = np.random.default_rng(0).standard_normal((150, 13))
    model = RelaxedQuantileCQR(max_rank=30, cv=2, calibration_size=None, random_state=0).fit(X, X[:, 0])
    assert model.features_.rank == 30
    assert model.coefficients_.shape == (1 + 13 + 30, 2)
    assert model.features_.V.shape == (30, 0)  # learning rows are not kept


def test_one_and_two_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (640, 3))
    y = np.sin(3 * X[:, 0]) + (0.2 + np.abs(X[:, 2])) * rng.exponential(size=640)
    ends = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            ends.append(RelaxedQuantileCQR(random_state=0).fit(X, y).predict_interval(X[:300] + 0.01))
    np.testing.assert_array_equal(*ends)
