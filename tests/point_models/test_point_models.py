"""Point models: values against scikit-learn and SciPy, scikit-learn's own checks, and the rule for residuals."""

import pickle
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.interpolate import make_smoothing_spline
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from sklearn_checks import expected_failures
from sosbands.datasets import synthetic_case
from sosbands.exceptions import LeaveOneOutError
from sosbands.point_models import SmoothingSplineRegressor, default_regressor, gaussian_process
from sosbands.point_models.gaussian_process import GaussianProcess, MarginalLikelihood
from sosbands.point_models.residuals import chosen_rule, leave_one_out_process
from sosbands.point_models.smoothing_spline import COST, Knots, best_smoothing, gcv_scores, merge_ties
from sosbands.point_models.user_model import CallableRegressor


def sine(n=80, d=2, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * np.arange(1, d + 1) + 3
    return X, 5 + 2 * np.sin(3 * X[:, 0]) + noise * rng.standard_normal(n)


# ---------------------------------------------------------------- Gaussian process


def check_likelihood(likelihood):
    """Value and gradient against scikit-learn's."""
    for d in (1, 3):
        X, y = sine(40, d)
        Z, z = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
        for theta in (np.zeros(2 + d), np.log([2.0, 0.05, *np.linspace(0.3, 2, d)]), np.log([0.1, 1.5, *[0.1] * d])):
            kernel = ConstantKernel(np.exp(theta[0])) * Matern(np.exp(theta[2:]), nu=2.5)
            other = GaussianProcessRegressor(kernel + WhiteKernel(np.exp(theta[1])), alpha=0, optimizer=None).fit(Z, z)
            order = [0, d + 1, *range(1, d + 1)]  # scikit-learn: variance, lengthscales, noise
            value, gradient = other.log_marginal_likelihood(other.kernel_.theta, eval_gradient=True)
            ours, our_gradient = likelihood(Z, z)(theta)
            assert ours == pytest.approx(value, rel=1e-9)
            np.testing.assert_allclose(our_gradient, gradient[order], rtol=1e-6, atol=1e-8)


def test_likelihood_and_gradient():
    check_likelihood(MarginalLikelihood)


def test_likelihood_and_gradient_from_differences_of_rows_and_over_many_blocks(monkeypatch):
    monkeypatch.setattr(gaussian_process, "BLOCK_COLUMNS", 7)
    check_likelihood(MarginalLikelihood)
    monkeypatch.setattr(gaussian_process, "SMALL_SHARE", 0.0)
    check_likelihood(MarginalLikelihood)


def test_a_likelihood_is_the_same_whatever_was_asked_before():
    X, y = sine(70, 3)
    theta = np.log([2.0, 0.05, 0.5, 1.0, 2.0])
    likelihood = MarginalLikelihood(X, y)
    value, gradient = likelihood(theta)
    likelihood(theta + 1)
    assert likelihood.value(theta) == value
    np.testing.assert_array_equal(likelihood(theta)[1], gradient)


def test_rows_that_products_cannot_tell_apart_are_told_apart_by_differences(monkeypatch):
    rng = np.random.default_rng(0)
    Z, z = np.rint(rng.standard_normal((60, 2))) / 3 + 0.1, rng.standard_normal(60)  # most rows are there several times
    theta = np.log([1e3, 1e-6, 1e-2, 1e-2])
    value, gradient = MarginalLikelihood(Z, z)(theta)
    monkeypatch.setattr(gaussian_process, "SMALL_SHARE", 0.0)
    exact, exact_gradient = MarginalLikelihood(Z, z)(theta)
    assert value == exact
    np.testing.assert_array_equal(gradient, exact_gradient)
    monkeypatch.setattr(gaussian_process, "SMALL_SHARE", np.inf)
    assert MarginalLikelihood(Z, z).value(theta) != pytest.approx(exact, rel=1e-9)  # what products would give


def test_the_check_rejects_a_gradient_that_forgets_the_chain_rule():
    def broken(Z, z):
        def likelihood(theta):
            value, gradient = MarginalLikelihood(Z, z)(theta)
            return value, gradient / np.exp(theta)

        return likelihood

    with pytest.raises(AssertionError):
        check_likelihood(broken)


def test_prediction_equals_scikit_learn_also_in_blocks(monkeypatch):
    X, y = sine()
    model = GaussianProcess().fit(X, y)
    kernel = ConstantKernel(model.variance_ / y.var()) * Matern(model.lengthscale_, nu=2.5)
    kernel += WhiteKernel(model.noise_variance_ / y.var())
    other = GaussianProcessRegressor(kernel, alpha=0, optimizer=None, normalize_y=True).fit(X, y)
    new = np.random.default_rng(1).uniform(0, 6, (50, 2))
    mean, std = model.predict(new, return_std=True)
    other_mean, other_std = other.predict(new, return_std=True)
    np.testing.assert_allclose(mean, other_mean, rtol=1e-6)
    np.testing.assert_allclose(std, other_std, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(new), mean)
    monkeypatch.setattr(gaussian_process, "BLOCK_ENTRIES", 7 * len(X))
    np.testing.assert_allclose(model.predict(new, return_std=True), [mean, std], rtol=1e-12)
    assert model.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_value_, rel=1e-8)


def test_the_maximum_is_one_and_the_noise_is_found(monkeypatch):
    X, y = sine(150, noise=0.3)
    early = GaussianProcess().fit(X, y)
    monkeypatch.setattr(gaussian_process, "LIKELIHOOD_TOL", 1e-8)
    model = GaussianProcess().fit(X, y)
    assert model.converged_
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.3, rel=0.15)
    assert model.lengthscale_[1] > 10 * model.lengthscale_[0]  # the second feature does nothing
    Z, z = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    theta = np.log([model.variance_ / y.var(), model.noise_variance_ / y.var(), *(model.lengthscale_ / X.std(0))])
    value, gradient = MarginalLikelihood(Z, z)(theta)
    assert 0 <= value - early.log_marginal_likelihood_ < 0.1  # it stops where nothing is gained on new rows
    assert value == pytest.approx(model.log_marginal_likelihood_, rel=1e-10)
    inside = np.exp(theta) < 0.99 * np.array([1e3, 1e2, 1e3, 1e3])
    assert np.abs(gradient[inside]).max() < 0.05
    truth = 5 + 2 * np.sin(3 * X[:, 0])
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.15


def test_process_is_equivariant():
    X, y = sine()
    mean, std = GaussianProcess().fit(X, y).predict(X, return_std=True)
    other, other_std = GaussianProcess().fit(1e5 * X - 7, -1e-3 * y + 2).predict(1e5 * X - 7, return_std=True)
    np.testing.assert_allclose(other, -1e-3 * mean + 2, rtol=1e-5)
    np.testing.assert_allclose(other_std, 1e-3 * std, rtol=1e-4)


# ---------------------------------------------------------------- leave-one-out residuals


def duplicated(n=20):
    """Every row twice, every other one with the same target."""
    X, y = sine(n)
    return np.vstack([X, X]), np.concatenate([y, y + np.where(np.arange(n) % 2, 0.3, 0.0)])


LEAVE_ONE_OUT = {
    "two features": sine(40),
    "other units": (1e4 * sine(30)[0] - 5, 1e-3 * sine(30)[1] + 2),
    "duplicated rows": duplicated(),
    "no noise": (np.linspace(0, 1, 25)[:, None], np.sin(5 * np.linspace(0, 1, 25))),
    "two rows": (np.array([[0.0, 1.0], [0.3, 2.0]]), np.array([3.0, 7.0])),
    "two equal rows": (np.ones((2, 1)), np.array([3.0, 7.0])),
}


def leave_one_out_by_refits(model, X, y):
    """By scikit-learn's process refitted without each row: its kernel, noise and mean are those of all rows."""
    kernel = ConstantKernel(model.variance_) * Matern(model.lengthscale_, nu=2.5) + WhiteKernel(model.noise_variance_)
    found = np.empty((2, len(y)))
    for i in range(len(y)):
        others = np.delete(np.arange(len(y)), i)
        process = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(X[others], y[others] - y.mean())
        mean, std = process.predict(X[i : i + 1], return_std=True)
        found[:, i] = y[i] - y.mean() - mean[0], std[0]
    return found


@cache
def refits(name):
    X, y = LEAVE_ONE_OUT[name]
    model = GaussianProcess().fit(X, y)
    return model, leave_one_out_by_refits(model, X, y)


def check_leave_one_out(told):
    """Residuals and standard deviations, as `told` by the model and its rows, are those of refits."""
    for name, (X, y) in LEAVE_ONE_OUT.items():
        model, expected = refits(name)
        found = told(model, X, y)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.shape == y.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7 * y.std())


def by_leaving_out(model, X, y):  # noqa: ARG001
    return model.leave_one_out_residuals(), model.leave_one_out_std()


def test_leave_one_out_residuals_and_deviations_are_those_of_refits():
    check_leave_one_out(by_leaving_out)


BROKEN = {
    "in-sample residuals": lambda r, s, model, X, y: (y - model.predict(X), s),  # noqa: ARG005
    "standardised residuals": lambda r, s, model, X, y: (r / y.std(), s),  # noqa: ARG005
    "other sign": lambda r, s, model, X, y: (-r, s),  # noqa: ARG005
    "mean of the others": lambda r, s, model, X, y: (r + (y - y.mean()) / (len(y) - 1), s),  # noqa: ARG005
    "other order": lambda r, s, model, X, y: (r[::-1], s),  # noqa: ARG005
    "standardised deviations": lambda r, s, model, X, y: (r, s / model.y_scale_),  # noqa: ARG005
    "noise only": lambda r, s, model, X, y: (r, np.full(len(y), np.sqrt(model.noise_variance_))),  # noqa: ARG005
    "in-sample deviations": lambda r, s, model, X, y: (r, model.predict(X, return_std=True)[1]),  # noqa: ARG005
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_check_rejects_other_residuals_and_deviations(broken):
    with pytest.raises(AssertionError):
        check_leave_one_out(lambda model, X, y: broken(*by_leaving_out(model, X, y), model, X, y))


def test_leave_one_out_without_variation():
    assert GaussianProcess().fit([[1.0]], [4.0]).leave_one_out_residuals().tolist() == [0.0]
    constant = GaussianProcess().fit(np.arange(5.0)[:, None], np.full(5, 3.7))
    np.testing.assert_allclose(constant.leave_one_out_residuals(), 0, atol=1e-9)


def test_leave_one_out_changes_nothing_and_needs_a_fit():
    model = GaussianProcess().fit(*sine(30))
    before = pickle.dumps(model)
    ratio = model.leave_one_out_residuals() / (sine(30)[1] - model.predict(sine(30)[0]))
    assert (ratio > 1).all()
    assert np.array_equal(model.leave_one_out_residuals(), model.leave_one_out_residuals())
    assert pickle.dumps(model) == before
    with pytest.raises(NotFittedError):
        GaussianProcess().leave_one_out_residuals()


@pytest.mark.parametrize("params", [{"n_starts": 0}, {"max_iter": 0.5}])
def test_process_names_bad_parameters(params):
    with pytest.raises(ValueError, match=f"{next(iter(params))}=.*expected an integer >= 1"):
        GaussianProcess(**params).fit(*sine(10))


# ---------------------------------------------------------------- smoothing spline


def check_gcv(scores, cost=1.4):
    """Against hat matrices column by column, with ties counted row by row."""
    rng = np.random.default_rng(0)
    t = rng.choice(np.linspace(0, 1, 12), 40)
    t[:12] = np.linspace(0, 1, 12)
    y = rng.standard_normal(40)
    knots = merge_ties(t, y)
    assert knots.weight.sum() == 40
    rows = np.searchsorted(knots.t, t - 1e-9)
    for lam in (1e-5, 1e-3, 0.1, 10.0):
        mean_of = np.eye(12)[:, rows] / knots.weight[:, None]
        A = np.array([make_smoothing_spline(knots.t, e, knots.weight, lam=lam)(t) for e in np.eye(12)]).T @ mean_of
        expected = 40 * np.sum((y - A @ y) ** 2) / (40 - cost * np.trace(A)) ** 2
        assert scores(knots, np.array([lam]))[0] == pytest.approx(expected, rel=1e-7)


def test_generalised_cross_validation():
    check_gcv(gcv_scores)
    check_gcv(lambda knots, lam: gcv_scores(knots, lam, cost=1.0), cost=1.0)


def test_fits_with_too_many_degrees_of_freedom_are_ruled_out():
    X, y = sine(50, 1)
    knots = merge_ties((X[:, 0] - X.min()) / np.ptp(X), y)
    nearly_interpolating, smooth = gcv_scores(knots, np.array([1e-12, 1.0]))
    assert nearly_interpolating == np.inf
    assert np.isfinite(smooth)
    assert np.isfinite(gcv_scores(knots, np.array([1e-12]), cost=1.0))


def test_the_check_rejects_scores_that_forget_the_spread_at_ties():
    with pytest.raises(AssertionError):
        check_gcv(lambda knots, lam: gcv_scores(Knots(knots.t, knots.y, knots.weight, 0.0), lam))


def test_best_smoothing_is_a_minimum():
    X, y = sine(100, 1)
    knots = merge_ties((X[:, 0] - X.min()) / np.ptp(X), y)
    lam = best_smoothing(knots)
    around = gcv_scores(knots, lam * np.geomspace(0.01, 100, 41))
    assert gcv_scores(knots, np.array([lam]))[0] <= around.min() * (1 + 1e-6)


def test_spline_seldom_follows_single_rows_where_noise_varies():
    """Case 5, skewed noise from nearly none to much: over 40 draws plain cross-validation does so in several."""
    case = synthetic_case(5)
    ratios = {1.0: [], COST: []}
    for seed in range(40):
        X, y = case.sample(100, random_state=seed)
        noise = np.sqrt(np.mean((0.5 + 2 * X) ** 2))
        knots = merge_ties((X[:, 0] - X.min()) / np.ptp(X), y)
        for cost, found in ratios.items():
            smoothing = best_smoothing(knots, cost)
            fit = SmoothingSplineRegressor(smoothing=smoothing).fit(X, y).predict(X)
            found.append(np.sqrt(np.mean((y - fit) ** 2)) / noise)
    followed = {cost: int(np.sum(np.less(found, 0.5))) for cost, found in ratios.items()}
    assert followed[COST] <= 1 < 4 <= followed[1.0]


def test_spline_equals_scipy_at_given_smoothing():
    X, y = sine(50, 1)
    model = SmoothingSplineRegressor(smoothing=1e-3).fit(X, y)
    t = (X[:, 0] - X.min()) / np.ptp(X)
    order = np.argsort(t)
    expected = make_smoothing_spline(t[order], y[order], lam=1e-3)(t)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_spline_finds_the_curve_in_any_unit(scale):
    X, y = sine(300, 1)
    fit = SmoothingSplineRegressor().fit(scale * X, y).predict(scale * X)
    assert np.sqrt(np.mean((fit - 5 - 2 * np.sin(3 * X[:, 0])) ** 2)) < 0.06
    np.testing.assert_allclose(fit, SmoothingSplineRegressor().fit(X, y).predict(X), rtol=1e-5)


def test_spline_ties_are_averaged():
    X, y = sine(30, 1)
    twice = SmoothingSplineRegressor(smoothing=0.02).fit(np.vstack([X, X]), np.concatenate([y + 1, y - 1]))
    once = SmoothingSplineRegressor(smoothing=0.01).fit(X, y)
    np.testing.assert_allclose(twice.predict(X), once.predict(X), rtol=1e-7)


def test_spline_goes_on_straight():
    X, y = sine(60, 1)
    model = SmoothingSplineRegressor().fit(X, y)
    for edge, step in ((X.min(), -1.0), (X.max(), 1.0)):
        values = model.predict(edge + step * np.array([[0.0], [1e-6], [1.0], [2.0], [50.0]]))
        slope = (values[1] - values[0]) / 1e-6
        np.testing.assert_allclose(values[2:], values[0] + slope * np.array([1.0, 2.0, 50.0]), rtol=1e-4)


def test_spline_with_few_different_x():
    line = SmoothingSplineRegressor().fit([[1.0], [2.0], [3.0], [3.0]], [1.0, 2.0, 3.0, 5.0])
    slope = 4.25 / 2.75  # least squares by hand: means 2.25 and 2.75
    np.testing.assert_allclose(line.predict([[0.0], [4.0]]), 2.75 + slope * np.array([-2.25, 1.75]), rtol=1e-12)
    assert line.smoothing_ == np.inf
    np.testing.assert_allclose(SmoothingSplineRegressor().fit([[2.0], [2.0]], [1.0, 5.0]).predict([[9.0]]), 3.0)


def test_spline_names_bad_input():
    with pytest.raises(ValueError, match="X has 2 features: expected 1"):
        SmoothingSplineRegressor().fit(*sine())
    with pytest.raises(ValueError, match="smoothing=-1: expected a number >= 0"):
        SmoothingSplineRegressor(smoothing=-1).fit([[0.0], [1.0]], [0.0, 1.0])


# ---------------------------------------------------------------- functions, defaults, the rule


def test_callable_is_fitted_and_sees_what_it_is_given():
    seen = []
    model = CallableRegressor(lambda X: seen.append(X) or [row[0] * 2 for row in X])
    check_is_fitted(model)
    rows = [[1.0], [4.0]]
    np.testing.assert_array_equal(model.fit(rows, [0, 0]).predict(rows), [2.0, 8.0])
    assert seen[0] is rows
    np.testing.assert_array_equal(CallableRegressor(np.negative).predict(np.ones((3, 1))), [-1.0] * 3)
    assert clone(model).function is model.function


def test_callable_names_bad_values():
    with pytest.raises(ValueError, match=r"output of the function <lambda> has shape \(3, 2\)"):
        CallableRegressor(lambda _: np.ones((3, 2))).predict(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="function=3: expected a callable"):
        CallableRegressor(3).fit()


def test_default_regressor():
    assert type(default_regressor(39)) is GaussianProcess
    forests = [ExtraTreesRegressor, RandomForestRegressor]
    few, some = [GaussianProcess, *forests], [GaussianProcess, ExtraTreesRegressor, HistGradientBoostingRegressor]
    expected = {40: few, 199: few, 200: some, 2000: some, 2001: some, 10_000: some, 10_001: some, 20_000: some}
    for n, types in expected.items():
        blend = default_regressor(n, random_state=3)
        ridge, *others = blend.members
        assert isinstance(ridge[-1], RidgeCV)
        assert [type(each) for each in others] == types
        assert others[0].max_rows == (None if n <= 2000 else 1000)
        assert others[1].max_samples == (None if n <= 10_000 else min(n, 20_000))
        assert others[1].bootstrap == (n > 10_000)
        seeds = {each.random_state for each in others if hasattr(each, "random_state")} | {blend.random_state}
        assert len(seeds) == 1
        assert isinstance(seeds.pop(), int)
    with pytest.raises(ValueError, match="n_rows=0: expected"):
        default_regressor(0)


RULES = [  # the rule of "auto", and whether leave-one-out is possible
    (GaussianProcess(), "leave-one-out", True),
    (make_pipeline(StandardScaler(), GaussianProcess()), "out-of-fold", True),
    (make_pipeline(GaussianProcess()), "out-of-fold", True),
    (make_pipeline(GaussianProcess(), LinearRegression()), "out-of-fold", False),
    (make_pipeline(GaussianProcess(), "passthrough"), "out-of-fold", False),
    (make_pipeline(StandardScaler(), FrozenEstimator(GaussianProcess())), "out-of-fold", False),
    (FrozenEstimator(GaussianProcess().fit(*sine(10))), "in-sample", False),  # which has the method, for its own rows
    (default_regressor(2000), "out-of-fold", False),
    (SmoothingSplineRegressor(), "in-sample", False),
    (CallableRegressor(np.sin), "in-sample", False),
    (np.sin, "in-sample", False),
    (RandomForestRegressor(), "out-of-fold", False),
    (GaussianProcessRegressor(), "out-of-fold", False),
]


@pytest.mark.parametrize(("estimator", "rule", "leaves_out"), RULES, ids=lambda value: str(value)[:25])
def test_residual_rule(estimator, rule, leaves_out):
    assert chosen_rule("auto", estimator) == rule
    assert chosen_rule("in-sample", estimator) == "in-sample"
    assert chosen_rule("out-of-fold", estimator) == "out-of-fold"
    if leaves_out:
        assert chosen_rule("leave-one-out", estimator) == "leave-one-out"
        assert isinstance(leave_one_out_process(estimator), GaussianProcess)
        return
    with pytest.raises(LeaveOneOutError, match="(?s)^residuals='leave-one-out' with the point model .*: expected a G"):
        chosen_rule("leave-one-out", estimator)


@pytest.mark.parametrize("estimator", [None, "forest", 3])
def test_residual_rule_names_bad_models(estimator):
    with pytest.raises(ValueError, match="estimator=.*expected a regressor or a function"):
        chosen_rule("auto", estimator)


# ---------------------------------------------------------------- scikit-learn's checks


class SplineOfTheFirstFeature(SmoothingSplineRegressor):
    """scikit-learn's checks fit several features, which a spline refuses: here the others are passed over."""

    def _feature(self, rows):
        return rows[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one feature of ten explains little
        return tags


NOTHING_IS_LEARNT = {
    "fitted from the start": "estimators_unfitted fit_check_is_fitted",
    "features are not counted": "n_features_in n_features_in_after_fitting",
    "data are the function's business": "complex_data dtype_object",
    "fit ignores the data": "estimators_empty_data_messages estimators_nan_inf estimator_sparse_tag regressors_train "
    "supervised_y_2d supervised_y_no_nan fit1d",
    "X is handed on as it is": "estimator_sparse_array estimator_sparse_matrix fit2d_predict1d",
}


def expected(estimator):
    if isinstance(estimator, CallableRegressor):  # it is fitted from the start, and `fit` does not look at the data
        return {f"check_{name}": reason for reason, names in NOTHING_IS_LEARNT.items() for name in names.split()}
    return expected_failures(estimator)


@dataclass(frozen=True)
class FirstColumn:
    """A function that has the same name in every process."""

    def __call__(self, X):
        return np.asarray(X)[:, 0]


@parametrize_with_checks(
    [GaussianProcess(), SplineOfTheFirstFeature(), CallableRegressor(FirstColumn())], expected_failed_checks=expected
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_models_can_be_pickled_and_fitted_again():
    X, y = sine(40, 1)
    for model in (GaussianProcess(), SmoothingSplineRegressor(), CallableRegressor(FirstColumn())):
        first = model.fit(X, y).predict(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), first)
        np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), first)
        np.testing.assert_array_equal(model.fit(X[:20], y[:20]).fit(X, y).predict(X), first)
