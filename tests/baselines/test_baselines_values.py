"""The numbers of the baselines: against MAPIE, and formulas written out again."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from sosbands.baselines import (
    GradientBoostingCQR,
    HomoscedasticGP,
    LocallyWeightedCP,
    QuantileForestCQR,
    SplitCP,
)
from sosbands.point_models.gaussian_process import GaussianProcess

Z90 = 1.6448536269514722  # normal quantile at 0.95


def rows(n, seed, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + (0.2 + (1 + X[:, -1]) ** 2) * rng.standard_normal(n)


LEARN, HELD, (NEW, _) = rows(80, 0), rows(150, 1), rows(25, 2)


def calibrated(model):
    return model.set_params(calibration_size=None, random_state=0).fit(*LEARN).conformalize(*HELD)


def needs(package):
    return pytest.importorskip(package, reason=f"needs {package}: pip install sosbands[baselines,peers]")


# ---------------------------------------------------------------- CQR


class Prefit(RegressorMixin, BaseEstimator):
    """A quantile of a fitted baseline as a fitted model, which is all that MAPIE wants."""

    def __init__(self, model=None, column=0):
        self.model = model
        self.column = column
        self.fitted_ = True

    def fit(self, *_):
        raise AssertionError("a fitted model must not be fitted again")

    def predict(self, X):
        return self.model._quantiles_at(self.model.reader_.read(self.model, X))[:, self.column]


def mapie_cqr(model, level, symmetric):
    needs("mapie")
    from mapie.regression import ConformalizedQuantileRegressor

    models = [Prefit(model, column) for column in (0, 2, 1)]  # lower, upper, median
    peer = ConformalizedQuantileRegressor(models, confidence_level=level, prefit=True).conformalize(*HELD)
    points, intervals = peer.predict_interval(NEW, symmetric_correction=symmetric)
    return points, intervals[:, :, 0]


@pytest.mark.parametrize("level", [0.8, 0.9])
@pytest.mark.parametrize("calibration", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("make", [QuantileForestCQR, GradientBoostingCQR])
def test_cqr_agrees_with_mapie_given_the_same_quantiles(make, calibration, level):
    if make is QuantileForestCQR:
        needs("quantile_forest")
    model = calibrated(make(confidence_level=level, calibration=calibration, min_samples_leaf=10))
    np.testing.assert_allclose(model.levels_, [(1 - level) / 2, 0.5, (1 + level) / 2], rtol=1e-12)
    points, ends = mapie_cqr(model, level, symmetric=calibration == "symmetric")
    np.testing.assert_allclose(model.predict_interval(NEW), ends, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(model.predict(NEW), points, rtol=1e-14, atol=1e-14)


def test_forest_quantiles_are_those_of_quantile_forest():
    package = needs("quantile_forest")
    model = calibrated(QuantileForestCQR(n_estimators=20, min_samples_leaf=3, quantiles=(0.2, 0.7)))
    assert model.levels_.tolist() == [0.2, 0.5, 0.7]
    seed = model.forest_.random_state
    direct = package.RandomForestQuantileRegressor(20, min_samples_leaf=3, max_samples_leaf=None, random_state=seed)
    expected = direct.fit(*LEARN).predict(NEW, quantiles=[0.2, 0.5, 0.7])
    band = model.told(NEW).band
    assert np.array_equal(np.column_stack([band.lower, model.predict(NEW), band.upper]), expected)
    assert (np.diff(expected) >= 0).all()


def test_crossing_quantiles_are_sorted():
    """Learnt from 80 rows with small leaves, the three boosted models cross at many new rows."""
    X_new, _ = rows(400, 5)
    model = calibrated(GradientBoostingCQR(quantiles=(0.4, 0.6), min_samples_leaf=2))
    raw = np.column_stack([each.predict(X_new) for each in model.models_])
    crossed = (np.diff(raw) < 0).any(axis=1)
    assert crossed.mean() > 0.1
    band = model.told(X_new).band
    found = np.column_stack([band.lower, model.predict(X_new), band.upper])
    assert (np.diff(found) >= 0).all()
    assert np.array_equal(found[~crossed], raw[~crossed])
    assert np.array_equal(np.sort(raw, axis=1), found)
    direct = HistGradientBoostingRegressor(
        loss="quantile", quantile=0.4, min_samples_leaf=2, random_state=model.models_[0].random_state
    )
    assert np.array_equal(direct.fit(*LEARN).predict(X_new), raw[:, 0])


# ---------------------------------------------------------------- split and local


@pytest.mark.parametrize("calibration", ["symmetric", "asymmetric"])
def test_split_agrees_with_mapie(calibration):
    needs("mapie")
    from mapie.conformity_scores import AbsoluteConformityScore
    from mapie.regression import SplitConformalRegressor

    score = AbsoluteConformityScore(sym=calibration == "symmetric")
    prefit = Ridge().fit(*LEARN)
    peer = SplitConformalRegressor(prefit, confidence_level=0.9, conformity_score=score, prefit=True)
    _, ends = peer.conformalize(*HELD).predict_interval(NEW)
    ours = calibrated(SplitCP(Ridge(), calibration=calibration)).predict_interval(NEW)
    np.testing.assert_allclose(ours, ends[:, :, 0], rtol=1e-14, atol=1e-14)


def test_local_widths_are_a_multiple_of_the_learnt_scale():
    model = calibrated(LocallyWeightedCP(LinearRegression(), KNeighborsRegressor(9), min_scale=0.3))
    X, y = LEARN
    rng = np.random.RandomState(0)
    folds = KFold(5, shuffle=True, random_state=rng)
    sizes = np.abs(y - cross_val_predict(LinearRegression(), X, y, cv=folds))
    assert model.residual_rule_ == "out-of-fold"
    scale, center = KNeighborsRegressor(9).fit(X, sizes), LinearRegression().fit(X, y)
    floor = 0.3 * sizes.mean()
    assert model.smallest_scale_ == pytest.approx(floor)
    sigma = np.maximum(scale.predict(HELD[0]), floor)
    q = np.sort(np.abs(HELD[1] - center.predict(HELD[0])) / sigma)[int(np.ceil(0.9 * 151)) - 1]
    sigma_new = np.maximum(scale.predict(NEW), floor)
    assert (sigma_new == floor).any()
    assert (sigma_new > floor).any()
    expected = np.column_stack([center.predict(NEW) - q * sigma_new, center.predict(NEW) + q * sigma_new])
    np.testing.assert_allclose(model.predict_interval(NEW), expected, rtol=1e-12)


def test_local_scale_of_a_process_is_learnt_from_leave_one_out_residuals():
    model = calibrated(LocallyWeightedCP(GaussianProcess(), scale_estimator=KNeighborsRegressor(9)))
    X, y = LEARN
    assert model.residual_rule_ == "leave-one-out"
    sizes = np.abs(GaussianProcess().fit(X, y).leave_one_out_residuals())
    assert model.smallest_scale_ == pytest.approx(0.05 * sizes.mean(), rel=1e-12)
    expected = KNeighborsRegressor(9).fit(X, sizes).predict(NEW)
    np.testing.assert_allclose(model.scale_estimator_.predict(NEW), expected, rtol=1e-12)


def test_local_with_residuals_of_zero_is_plain_split():
    X = LEARN[0]
    model = LocallyWeightedCP(LinearRegression(), calibration_size=None, residuals="in-sample", random_state=0)
    model.fit(X, np.zeros(len(X))).conformalize(*HELD)
    assert model.smallest_scale_ == 1.0
    q = np.sort(np.abs(HELD[1]))[int(np.ceil(0.9 * 151)) - 1]
    np.testing.assert_allclose(model.predict_interval(NEW), np.tile([-q, q], (25, 1)), rtol=1e-12)


# ---------------------------------------------------------------- Gaussian processes


@pytest.mark.parametrize("score", ["additive", "normalized"])
def test_homoscedastic_process(score):
    model = calibrated(HomoscedasticGP(conformal_score=score))
    process = GaussianProcess().fit(*LEARN)
    (mean, deviation), (m, s) = process.predict(NEW, return_std=True), process.predict(HELD[0], return_std=True)
    k = int(np.ceil(0.9 * 151)) - 1
    error = np.abs(HELD[1] - m)
    half = Z90 * deviation + np.sort(error - Z90 * s)[k] if score == "additive" else deviation * np.sort(error / s)[k]
    np.testing.assert_allclose(
        model.predict_interval(NEW), np.column_stack([mean - half, mean + half]), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(model.predict(NEW), mean, rtol=1e-12)
