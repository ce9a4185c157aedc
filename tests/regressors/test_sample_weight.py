"""Rows that count more than others, from `fit` to the point model and the bands; calibration counts rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import GradientBoostingCQR, HomoscedasticGP, LocallyWeightedCP, QuantileForestCQR, SplitCP
from sosbands.point_models import GaussianProcess, ModelBlend, default_regressor, learn_residuals
from sosbands.point_models.gaussian_process import MarginalLikelihood
from sosbands.tuning import Rules

FIXED = {
    "base_scale": "none",
    "noise_features": "inputs",
    "lengthscale": 1.0,
    "width_penalty": 30.0,
    "learning_coverage": 0.9,
    "symmetry_penalty": 0.0,
    "conformal_score": "added",
    "preprocessor": None,
}


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    y = X[:, 0] + (0.2 + np.abs(X[:, 0])) * (rng.exponential(1, n) - 1)
    return X, y, rng.integers(0, 4, n).astype(float)


def first_column(X):
    return X[:, 0]


def test_a_weight_is_a_number_of_copies_and_none_is_no_row():
    X, y, times = rows()
    copies = times.astype(int)
    settings = {**FIXED, "calibration_size": None, "bands": BandSettings(tol=1e-7)}
    weighted = SoSBandRegressor(first_column, **settings).fit(X, y, sample_weight=times)
    copied = SoSBandRegressor(first_column, **settings).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    plain = SoSBandRegressor(first_column, **settings).fit(X, y)
    new = np.linspace(-2, 2, 30)[:, None]
    for side in ("lower", "upper"):
        one, other, without = (getattr(each.noise_, side)(new) for each in (weighted, copied, plain))
        np.testing.assert_allclose(one, other, atol=5e-3 * other.max())
        assert np.abs(without - other).max() > 0.05 * other.max()
    assert times[weighted.noise_.active_upper].all()  # rows of no weight shape nothing


@pytest.mark.parametrize("method", [SplitCP, LocallyWeightedCP, SoSBandRegressor])
def test_the_point_model_gets_the_weights(method):
    X, y, times = rows()
    settings = FIXED if method is SoSBandRegressor else {}
    piped = make_pipeline(StandardScaler(), Ridge())
    for model, name in ((Ridge(), "sample_weight"), (piped, "ridge__sample_weight")):
        fitted = method(clone(model), random_state=0, **settings).fit(X, y, sample_weight=times)
        learning = fitted.learning_rows_
        expected = model.fit(X[learning], y[learning], **{name: times[learning]})
        np.testing.assert_allclose(fitted.estimator_.predict(X), expected.predict(X), rtol=1e-12)


def test_out_of_fold_residuals_are_those_of_weighted_copies():
    X, y, times = rows()
    found = learn_residuals(LinearRegression(), X, y, cv=4, random_state=0, sample_weight=times + 0.1)
    for learn, held in KFold(4, shuffle=True, random_state=0).split(X):
        other = LinearRegression().fit(X[learn], y[learn], (times + 0.1)[learn])
        np.testing.assert_allclose(found.prediction[held], other.predict(X[held]), rtol=1e-10)


def test_the_automatic_choice_follows_the_rows_that_count():
    """Half of the rows are ten times as noisy; who counts decides how wide the bands are before calibration."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (160, 1))
    loud = np.arange(160) % 2 == 0
    y = np.where(loud, 10.0, 1.0) * rng.standard_normal(160)
    widths = []
    for weight in (np.where(loud, 1e-3, 1.0), np.where(loud, 1.0, 1e-3)):
        given = {"base_scale": "none", "width_penalty": 30.0, "calibration_size": None, "random_state": 0}
        model = SoSBandRegressor(first_column, **given).fit(X, X[:, 0] + y, sample_weight=weight)
        widths.append(float(np.mean(model.noise_.lower(X) + model.noise_.upper(X))))
    assert 6 < widths[1] / widths[0] < 15


def test_the_default_blend_takes_weights():
    """The slope of the rows that count."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 1))
    up = np.arange(120) % 2 == 0
    y = np.where(up, 1.0, -1.0) * 3 * X[:, 0] + 0.1 * rng.standard_normal(120)
    for weight, slope in ((np.where(up, 1.0, 1e-4), 3.0), (np.where(up, 1e-4, 1.0), -3.0)):
        model = default_regressor(120, random_state=0)
        assert isinstance(model, ModelBlend)
        ends = model.fit(X, y, sample_weight=weight).predict([[-0.5], [0.5]])
        assert ends[1] - ends[0] == pytest.approx(slope, abs=0.3)


def test_the_process_divides_its_noise_by_the_weights():
    """With the mean of k observations as one of weight k the posterior is that of all of them."""
    rng = np.random.default_rng(1)
    theta = np.array([0.2, -1.0, 0.3])
    Z, ratio = rng.standard_normal((7, 1)), 1 / rng.uniform(0.5, 3, 7)
    z = rng.standard_normal(7)
    likelihood = MarginalLikelihood(Z, z, ratio)
    value, gradient = likelihood(theta)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-6
        difference = likelihood.value(theta + step) - value
        assert difference / 1e-6 == pytest.approx(gradient[k], abs=1e-4)
    X, y, times = rows(30)
    weighted = GaussianProcess().fit(X, y, sample_weight=times + 1)
    C = weighted.cholesky_ @ weighted.cholesky_.T
    noise = weighted.noise_variance_ / weighted.y_scale_**2
    np.testing.assert_allclose(
        np.diag(C) - weighted.variance_ / weighted.y_scale_**2, noise * np.mean(times + 1) / (times + 1)
    )
    i = 4  # the process conditioned on the others, by hand
    others = np.arange(30) != i
    z = (y - weighted.y_mean_) / weighted.y_scale_
    solved = np.linalg.solve(C[np.ix_(others, others)], np.column_stack([z[others], C[others, i]]))
    assert weighted.leave_one_out_residuals()[i] == pytest.approx(
        weighted.y_scale_ * (z[i] - C[i, others] @ solved[:, 0])
    )
    variance = weighted.variance_ / weighted.y_scale_**2 + noise - C[i, others] @ solved[:, 1]
    assert weighted.leave_one_out_std()[i] == pytest.approx(weighted.y_scale_ * np.sqrt(variance))


def test_boosted_quantiles_take_weights():
    X, y, times = rows(200)
    fitted = GradientBoostingCQR(random_state=0, calibration_size=None).fit(X, y, sample_weight=times)
    alone = clone(fitted.models_[2]).fit(X, y, times)
    np.testing.assert_allclose(fitted.models_[2].predict(X), alone.predict(X))


def test_the_process_of_constant_noise_takes_weights():
    X, y, times = rows()
    fitted = HomoscedasticGP(calibration_size=None).fit(X, y, sample_weight=times)
    direct = GaussianProcess().fit(X, y, sample_weight=times)
    np.testing.assert_array_equal(fitted.predict(X), direct.predict(X))
    assert np.abs(fitted.predict(X) - GaussianProcess().fit(X, y).predict(X)).max() > 1e-3


def test_copies_of_cross_calibration_get_their_weights():
    X, y, times = rows(60)
    model = SplitCP(Ridge(), calibration_size="cross", random_state=0).fit(X, y, sample_weight=times)
    np.testing.assert_allclose(model.estimator_.coef_, Ridge().fit(X, y, times).coef_)
    for k, copy in enumerate(model.calibration_.copies):
        others = model.calibration_.folds != k
        np.testing.assert_allclose(copy.estimator_.coef_, Ridge().fit(X[others], y[others], times[others]).coef_)


def test_calibration_counts_rows():
    X, y, times = rows(200)
    model = SplitCP(first_column, random_state=0)
    assert model.fit(X, y, sample_weight=times).quantile() == model.fit(X, y).quantile()


@pytest.mark.parametrize(
    ("model", "weight", "message"),
    [
        (SoSBandRegressor(KNeighborsRegressor()), np.arange(40), "fit of KNeighborsRegressor takes no weights"),
        (SoSBandRegressor(Ridge()), np.ones(3), r"sample_weight has shape \(3,\): expected \(40,\)"),
        (SoSBandRegressor(Ridge()), -np.ones(40), "sample_weight has entries that are NaN, infinite or negative"),
        (SoSBandRegressor(Ridge()), np.zeros(40), "sample_weight is zero in every row"),
        (SoSBandRegressor(Ridge(), rules=Rules(criterion="hsic")), np.arange(40), "the paper's rules"),
    ],
)
def test_what_cannot_be_weighted_is_named(model, weight, message):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weight)


def test_methods_without_weights_do_not_take_the_argument():
    X, y, times = rows()
    with pytest.raises(TypeError, match="sample_weight"):
        QuantileForestCQR().fit(X, y, sample_weight=times)
