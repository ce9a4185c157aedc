"""The numbers of the baselines: against MAPIE, hetgpy, a semidefinite program, and formulas written out again."""

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from sosbands.baselines import (
    GradientBoostingCQR,
    HeteroscedasticGP,
    HomoscedasticGP,
    LocallyWeightedCP,
    QuantileForestCQR,
    SplitCP,
    SquaredSoS,
    squared_tuning,
)
from sosbands.baselines.normal_band import normal_band
from sosbands.baselines.squared_tuning import FACTORS, candidates, held_out_widths, tune_lengthscale
from sosbands.exceptions import OffDataWarning, SosbandsWarning, TooFewCalibrationPointsWarning, ZeroResidualsWarning
from sosbands.kernels import StationaryKernel, learn_features, median_lengthscale
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.stats import hsic

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
        return self.model._quantiles_at(self.model._read(X, reset=False))[:, self.column]


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
    band = model._band(NEW)
    assert np.array_equal(np.column_stack([band.lower, model.predict(NEW), band.upper]), expected)
    assert (np.diff(expected) >= 0).all()


def test_default_levels_are_those_of_the_confidence_level():
    for model in (QuantileForestCQR(confidence_level=0.8), GradientBoostingCQR(confidence_level=0.8, max_iter=2)):
        if isinstance(model, QuantileForestCQR):
            needs("quantile_forest")
        np.testing.assert_allclose(calibrated(model).levels_, [0.1, 0.5, 0.9], rtol=1e-12)


def test_crossing_quantiles_are_sorted():
    """Learnt from 80 rows with small leaves, the three boosted models cross at many new rows."""
    X_new, _ = rows(400, 5)
    model = calibrated(GradientBoostingCQR(quantiles=(0.4, 0.6), min_samples_leaf=2))
    raw = np.column_stack([each.predict(X_new) for each in model.models_])
    crossed = (np.diff(raw) < 0).any(axis=1)
    assert crossed.mean() > 0.1
    band = model._band(X_new)
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


def test_signed_errors_have_one_quantile_for_each_side():
    model = calibrated(SplitCP(Ridge(), calibration="asymmetric"))
    (X, y), center = HELD, model.predict(NEW)
    errors = np.sort(y - model.predict(X))
    k = int(np.ceil(0.95 * 151 - 1e-9))  # of m + 1 = 151
    expected = np.column_stack([center + errors[150 - k], center + errors[k - 1]])
    np.testing.assert_allclose(model.predict_interval(NEW), expected, rtol=1e-14)


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


def test_bands_of_a_normal_distribution():
    mean, deviation = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    additive = normal_band(mean, deviation, "additive", 0.9)
    np.testing.assert_allclose(additive.lower, mean - Z90 * deviation, rtol=1e-12)
    np.testing.assert_allclose(additive.upper, mean + Z90 * deviation, rtol=1e-12)
    assert additive.lower_unit == 1.0
    normalized = normal_band(mean, deviation, "normalized", 0.9)
    assert np.array_equal(normalized.lower, mean)
    assert np.array_equal(normalized.lower_unit, deviation)


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


def direct_hetgpy(X, y, start, max_iter=100):
    """hetgpy as its manual has it, on features in [0, 1] and standardised targets."""
    hetgpy = needs("hetgpy")
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    model = hetgpy.hetGP()
    settings = {"initStrategy": start, "factr": 1e9, "ignore_MLE_divide_invalid": True, "trace": -1}
    model.mleHetGP((X - low) / span, (y - y.mean()) / y.std(), covtype="Matern5_2", maxit=max_iter, settings=settings)

    def predict(X_new):
        found = model.predict((X_new - low) / span)
        return y.mean() + y.std() * found["mean"], y.var() * (found["sd2"] + found["nugs"])

    return model, predict


@pytest.mark.parametrize(("d", "start"), [(1, "smoothed"), (2, "smoothed"), (2, "residuals")])
def test_heteroscedastic_variance_is_that_of_hetgpy(d, start):
    X, y = rows(60, 7, d)
    peer, predict = direct_hetgpy(X, y, start)
    assert type(peer).__name__ == "hetGP"
    model = HeteroscedasticGP(start=start, calibration_size=None).fit(X, y)
    X_new, _ = rows(40, 8, d)
    mean, variance = predict(X_new)
    found_mean, deviation = model._predict_normal(model._read(X_new, reset=False))
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-6)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6, atol=1e-8)
    assert np.ptp(deviation) > 0.5 * deviation.mean()
    assert not model.homoscedastic_
    assert model.log_likelihood_ == pytest.approx(float(peer.ll_non_pen))
    band = model._band(X_new)
    np.testing.assert_allclose(band.upper - band.lower, 2 * Z90 * np.sqrt(variance), rtol=1e-6)


def test_heteroscedastic_process_with_repeated_rows():
    X = np.repeat(rows(15, 3)[0], 4, axis=0)
    y = X[:, 0] + (1.2 + X[:, 1]) * np.random.default_rng(0).standard_normal(60)
    _, predict = direct_hetgpy(X, y, "smoothed")
    model = HeteroscedasticGP(calibration_size=None).fit(X, y)
    assert len(model.process_.points) == 15
    mean, variance = predict(NEW)
    found_mean, deviation = model._predict_normal(model._read(NEW, reset=False))
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-6)


def test_heteroscedastic_process_falls_back_to_constant_noise():
    """hetgpy turns into its homoscedastic class, without the attributes of the other, where that is more likely."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(40)
    peer, predict = direct_hetgpy(X, y, "residuals", max_iter=2)
    assert type(peer).__name__ == "homGP"
    assert peer.get("ll_non_pen") is None
    model = HeteroscedasticGP(start="residuals", max_iter=2, calibration_size=None).fit(X, y)
    assert model.homoscedastic_
    X_new = np.linspace(-1.2, 1.2, 30)[:, None]
    mean, variance = predict(X_new)
    found_mean, deviation = model._predict_normal(model._read(X_new, reset=False))
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-6)


def test_both_starts_keep_the_more_likely_fit():
    needs("hetgpy")
    X, y = rows(60, 7, 1)
    found = {start: HeteroscedasticGP(start=start, calibration_size=None).fit(X, y) for start in ("smoothed", "both")}
    other = HeteroscedasticGP(start="residuals", calibration_size=None).fit(X, y)
    likelihoods = {"smoothed": found["smoothed"].log_likelihood_, "residuals": other.log_likelihood_}
    assert found["both"].log_likelihood_ == max(likelihoods.values())
    assert found["both"].start_ == max(likelihoods, key=likelihoods.get)


def test_heteroscedastic_process_is_equivariant():
    needs("hetgpy")
    X, y = rows(40, 9)
    ends = HeteroscedasticGP(max_iter=5, random_state=0).fit(X, y).predict_interval(NEW)
    moved = HeteroscedasticGP(max_iter=5, random_state=0).fit(8 * X - 3, 1000 - 50 * y).predict_interval(8 * NEW - 3)
    np.testing.assert_allclose(moved, 1000 - 50 * ends[:, ::-1], rtol=1e-3)


@pytest.mark.parametrize("case", ["constant y", "constant features", "one constant feature"])
def test_heteroscedastic_process_of_data_that_say_little(case):
    needs("hetgpy")
    X, y = rows(40, 9)
    if case == "constant y":
        y = np.full(40, 3.5)
    elif case == "constant features":
        X = np.ones((40, 2))
    else:
        X = np.column_stack([X, np.full(40, 7.0)])
    model = HeteroscedasticGP(random_state=0, max_iter=5).fit(X, y)
    ends = model.predict_interval(X)
    learnt = y[model.learning_rows_]
    if case == "constant y":
        assert np.array_equal(ends, np.full((40, 2), 3.5))
    elif case == "constant features":
        np.testing.assert_allclose(model.predict(X), learnt.mean())
        band = model._band(X)
        np.testing.assert_allclose(band.upper - band.lower, 2 * Z90 * learnt.std())
    else:
        without = HeteroscedasticGP(random_state=0, max_iter=5).fit(X[:, :2], y)
        assert np.array_equal(ends, without.predict_interval(X[:, :2]))


def test_a_breakdown_of_hetgpy_is_said(monkeypatch):
    hetgpy = needs("hetgpy")
    from sosbands.baselines.heteroscedastic_gp import fit_constant

    def broken(*_, **__):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(hetgpy.hetGP, "mle", broken)
    X, y = rows(30, 1)
    model = HeteroscedasticGP(calibration_size=None)
    with pytest.warns(SosbandsWarning, match="could not fit varying noise to 30 rows") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.homoscedastic_
    span = np.ptp(X, axis=0)
    peer = fit_constant((X - X.min(axis=0)) / span, (y - y.mean()) / y.std(), 100)
    expected = peer.predict((NEW - X.min(axis=0)) / span)
    deviation = model._predict_normal(model._read(NEW, reset=False))[1]
    np.testing.assert_allclose(deviation**2, y.var() * (expected["sd2"] + expected["nugs"]), rtol=1e-6)


# ---------------------------------------------------------------- squared sum of squares


def test_squared_sos_is_the_semidefinite_program_with_squared_residuals():
    """``f(X_i) >= r_i^2`` at the least cost, in the units given, solved by CVXPY; the root of f is the scale."""
    pytest.importorskip("cvxpy", reason="the reference needs CVXPY: pip install sosbands[sdp]")
    from studies.reference.sdp import symmetric_sdp

    X, y = rows(15, 4)
    model = SquaredSoS(
        lambda Z: np.zeros(len(Z)),
        preprocessor=None,
        lengthscale=0.7,
        normalize=False,
        width_penalty=2.0,
        trace_penalty=0.3,
        frobenius_penalty=0.5,
        calibration_size=None,
        tol=1e-7,
    ).fit(X, y)
    assert model.certificate_["status"] == "converged"
    assert model.certificate_["gap"] <= 1e-7
    f = model.function_(X)
    assert (f >= y**2 * (1 - 1e-9)).all()
    assert (np.abs(f - y**2) < 1e-3).sum() >= 3  # active constraints
    features = learn_features(X, StationaryKernel("matern52", (0.7,)))
    exact = symmetric_sdp(features.V, y**2, b=2.0, lam1=0.3, lam2=0.5)
    assert model.certificate_["primal_value"] == pytest.approx(exact.value, rel=1e-6)
    Phi = features.transform(NEW)
    expected = np.einsum("in,ij,jn->n", Phi, exact.upper, Phi)
    np.testing.assert_allclose(model._band(NEW).lower_unit ** 2, expected, rtol=1e-2, atol=1e-3 * y.var())


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_squared_sos_score_and_interval():
    """Score ``r^2/f``, interval ``m -+ sqrt(q f)``, by the definition of the method."""
    model = calibrated(SquaredSoS(Ridge(), lengthscale="median", tol=1e-3))
    assert model.certificate_["gap"] <= 1e-3

    def f(X):
        return model.unit_**2 * model.function_(model.preprocessor_.transform(X))

    X, y = HELD
    r = y - model.predict(X)
    S = np.sort(r**2 / f(X))
    np.testing.assert_allclose(np.sort(model.scores_) ** 2, S, rtol=1e-9)
    q = S[int(np.ceil(0.9 * 151)) - 1]
    half, center = np.sqrt(q * f(NEW)), model.predict(NEW)
    np.testing.assert_allclose(model.predict_interval(NEW), np.column_stack([center - half, center + half]), rtol=1e-9)


def test_squared_sos_covers_the_squared_residuals_it_learnt_from():
    X, y = LEARN
    model = SquaredSoS(Ridge(), lengthscale="median", residuals="in-sample", calibration_size=None).fit(X, y)
    r = y - Ridge().fit(X, y).predict(X)
    scale = model._band(X).lower_unit
    assert (scale >= np.abs(r) * (1 - 1e-9)).all()
    touching = np.flatnonzero(scale <= np.abs(r) * (1 + 1e-3))
    assert 2 <= len(touching) < 40
    assert set(touching) <= set(model.active_)
    assert model.unit_ == pytest.approx(np.sqrt(np.mean(r**2)))


def test_squared_sos_of_a_process_covers_leave_one_out_residuals():
    X, y = LEARN
    model = SquaredSoS(GaussianProcess(), lengthscale="median", calibration_size=None).fit(X, y)
    assert model.residual_rule_ == "leave-one-out"
    r = GaussianProcess().fit(X, y).leave_one_out_residuals()
    assert model.unit_ == pytest.approx(np.sqrt(np.mean(r**2)), rel=1e-12)
    assert (model._band(X).lower_unit >= np.abs(r) * (1 - 1e-9)).all()


def test_squared_sos_is_equivariant():
    X, y = LEARN
    options = {"lengthscale": "median", "random_state": 0, "tol": 1e-6}
    ends = SquaredSoS(Ridge(), **options).fit(X, y).predict_interval(NEW)
    moved = SquaredSoS(Ridge(), **options).fit(X, 5 - 1e3 * y).predict_interval(NEW)
    np.testing.assert_allclose(moved, 5 - 1e3 * ends[:, ::-1], rtol=1e-3, atol=1.0)


def test_squared_sos_lengthscale_maximises_held_out_dependence():
    X, y = rows(100, 6)
    model = SquaredSoS(LinearRegression(), calibration_size=None, random_state=0, residuals="in-sample").fit(X, y)
    tuning, median = model.tuning_, median_lengthscale(model.preprocessor_.transform(X))
    np.testing.assert_allclose(tuning["lengthscales"], median * np.array(FACTORS), rtol=1e-12)
    assert model.lengthscale_ == tuning["lengthscales"][np.argmax(tuning["hsic"])] == tuning["lengthscale"]
    assert tuning["hsic"].max() > 1.1 * tuning["hsic"].min() > 0
    assert tuning["p_value"] == 1 / 200  # the noise grows along the second feature


def test_the_criterion_is_hsic_of_held_out_root_and_residual():
    """Each fold's f, learnt without it, written out again for one lengthscale."""
    X, y = rows(45, 6)
    folds, options = KFold(3, shuffle=True, random_state=0), {"kernel": "matern52", "normalize": False}
    found = tune_lengthscale(X, y, folds, options, n_jobs=None, seed=0)
    place = 7
    width = np.empty(45)
    for others, held in folds.split(X):
        fresh = SquaredSoS(
            lambda Z: np.zeros(len(Z)),
            preprocessor=None,
            lengthscale=found["lengthscales"][place],
            normalize=False,
            calibration_size=None,
            tol=1e-6,
        ).fit(X[others], y[others])
        width[held] = fresh._band(X[held]).lower_unit
    assert found["hsic"][place] == pytest.approx(hsic(width, np.abs(y)), rel=2e-2)


def test_lengthscales_too_short_for_the_coarse_search_are_left_out(monkeypatch):
    """Few features must explode to cover far residuals, and HSIC would reward it; with all of them nothing is lost."""
    X, y = rows(60, 6, d=6)
    median = median_lengthscale(X)
    assert candidates(X, "matern52").tolist() == pytest.approx([median * factor for factor in FACTORS])
    monkeypatch.setattr(squared_tuning, "SEARCH_RANK", 10)
    kept = candidates(X, "matern52") / median
    assert 1 <= len(kept) < len(FACTORS)
    assert kept.tolist() == pytest.approx(FACTORS[-len(kept) :])
    held, options = np.arange(10), {"kernel": "matern52", "normalize": False}
    widths = held_out_widths(X, y, held, median * np.array([0.14, kept[0]]), options)
    assert widths[0].max() > 10 * np.abs(y).max()
    assert widths[1].max() < 2 * np.abs(y).max()
    monkeypatch.setattr(squared_tuning, "FACTORS", (0.01, 0.02))
    assert candidates(X, "matern52").tolist() == pytest.approx([0.02 * median])


def test_processes_do_not_change_the_choice():
    X, y = rows(30, 6)
    one = SquaredSoS(Ridge(), cv=2, random_state=0).fit(X, y)
    with joblib.parallel_config(backend="multiprocessing"):
        two = SquaredSoS(Ridge(), cv=2, random_state=0, n_jobs=2).fit(X, y)
    assert np.array_equal(one.tuning_["hsic"], two.tuning_["hsic"])
    assert np.array_equal(one._band(NEW).lower_unit, two._band(NEW).lower_unit)


def test_constant_noise_gives_constant_width():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 1))
    y = rng.standard_normal(60)
    model = SquaredSoS(LinearRegression(), random_state=3).fit(X, y)
    assert model.tuning_["p_value"] > 0.05
    assert model.lengthscale_ is None
    assert np.ptp(model._band(X).lower_unit) < 1e-9
    plain = SplitCP(LinearRegression(), random_state=3).fit(X, y)
    np.testing.assert_allclose(model.predict_interval(X), plain.predict_interval(X), rtol=1e-9)
    untested = SquaredSoS(LinearRegression(), random_state=3, test_level=None).fit(X, y)
    assert untested.lengthscale_ == untested.tuning_["lengthscale"]
    assert np.ptp(untested._band(X).lower_unit) > 0.1


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.TooFewCalibrationPointsWarning")
def test_squared_sos_without_residuals():
    X = LEARN[0]
    with pytest.warns(ZeroResidualsWarning):
        model = SquaredSoS(LinearRegression(), residuals="in-sample", calibration_size=None).fit(X, np.zeros(80))
    model.conformalize(*HELD)
    assert np.isinf(model.scores_).all()  # f = 0 and r is not
    with pytest.warns(TooFewCalibrationPointsWarning, match="zero scale"):
        assert np.isinf(model.predict_interval(NEW)).all()


def test_far_rows_are_named():
    model = calibrated(SquaredSoS(Ridge(), lengthscale="median", tol=1e-2))
    with pytest.warns(OffDataWarning, match="2 of 3 rows are far") as caught:
        ends = model.predict_interval(np.vstack([NEW[:1], [[50.0, 0.0], [0.0, -80.0]]]))
    assert caught[0].filename == __file__
    assert (np.diff(ends)[1:, 0] < 1e-6 * np.diff(ends)[0, 0]).all()
