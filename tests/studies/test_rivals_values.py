"""The numbers of the rivals: against hetgpy, a semidefinite program, and formulas written out again."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold

from sosbands.baselines import SplitCP
from sosbands.exceptions import OffDataWarning, SosbandsWarning, TooFewCalibrationPointsWarning, ZeroResidualsWarning
from sosbands.kernels import StationaryKernel, learn_features, median_lengthscale
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.stats import hsic
from studies.rivals import HeteroscedasticGP, SquaredSoS, squared_tuning
from studies.rivals.heteroscedastic_gp import fit_constant
from studies.rivals.squared_tuning import FACTORS, candidates, held_out_widths, tune_lengthscale

Z90 = 1.6448536269514722  # normal quantile at 0.95


def rows(n, seed, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + (0.2 + (1 + X[:, -1]) ** 2) * rng.standard_normal(n)


LEARN, HELD, (NEW, _) = rows(80, 0), rows(150, 1), rows(25, 2)


def calibrated(model):
    return model.set_params(calibration_size=None, random_state=0).fit(*LEARN).conformalize(*HELD)


def needs(package):
    return pytest.importorskip(package, reason=f"needs {package}, which `make install` brings below Python 3.13")


# ---------------------------------------------------------------- heteroscedastic process


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


def assert_as_hetgpy(model, predict, X_new):
    """Mean, variance and band are those of the peer; the deviations."""
    mean, variance = predict(X_new)
    found_mean, deviation = model._predict_normal(X_new)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-6)
    band = model.told(X_new).band
    np.testing.assert_allclose(band.upper - band.lower, 2 * Z90 * np.sqrt(variance), rtol=1e-6)
    return deviation


@pytest.mark.parametrize(("d", "start"), [(1, "smoothed"), (2, "smoothed"), (2, "residuals")])
def test_heteroscedastic_variance_is_that_of_hetgpy(d, start):
    X, y = rows(60, 7, d)
    peer, predict = direct_hetgpy(X, y, start)
    assert type(peer).__name__ == "hetGP"
    model = HeteroscedasticGP(start=start, calibration_size=None).fit(X, y)
    deviation = assert_as_hetgpy(model, predict, rows(40, 8, d)[0])
    assert np.ptp(deviation) > 0.5 * deviation.mean()
    assert not model.homoscedastic_
    assert model.log_likelihood_ == pytest.approx(float(peer.ll_non_pen))


def test_heteroscedastic_process_with_repeated_rows():
    X = np.repeat(rows(15, 3)[0], 4, axis=0)
    y = X[:, 0] + (1.2 + X[:, 1]) * np.random.default_rng(0).standard_normal(60)
    model = HeteroscedasticGP(calibration_size=None).fit(X, y)
    assert len(model.process_.points) == 15
    assert_as_hetgpy(model, direct_hetgpy(X, y, "smoothed")[1], NEW)


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
    assert_as_hetgpy(model, predict, np.linspace(-1.2, 1.2, 30)[:, None])


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


def test_heteroscedastic_process_of_data_that_say_little():
    needs("hetgpy")
    (X, y), model = rows(40, 9), HeteroscedasticGP(random_state=0, max_iter=5)
    assert np.array_equal(model.fit(X, np.full(40, 3.5)).predict_interval(X), np.full((40, 2), 3.5))
    more = np.column_stack([X, np.full(40, 7.0)])  # a constant feature
    ends = model.fit(more, y).predict_interval(more)
    assert np.array_equal(model.fit(X, y).predict_interval(X), ends)
    same = np.ones((40, 2))
    learnt, band = y[model.fit(same, y).learning_rows_], model.told(same).band
    np.testing.assert_allclose(model.predict(same), learnt.mean())
    np.testing.assert_allclose(band.upper - band.lower, 2 * Z90 * learnt.std())


def test_a_breakdown_of_hetgpy_is_said(monkeypatch):
    hetgpy = needs("hetgpy")

    def broken(*_, **__):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(hetgpy.hetGP, "mle", broken)
    X, y = rows(30, 1)
    model = HeteroscedasticGP(calibration_size=None)
    with pytest.warns(SosbandsWarning, match="could not fit varying noise to 30 rows"):
        model.fit(X, y)
    assert model.homoscedastic_
    span = np.ptp(X, axis=0)
    peer = fit_constant((X - X.min(axis=0)) / span, (y - y.mean()) / y.std(), 100)
    expected = peer.predict((NEW - X.min(axis=0)) / span)
    deviation = model._predict_normal(NEW)[1]
    np.testing.assert_allclose(deviation**2, y.var() * (expected["sd2"] + expected["nugs"]), rtol=1e-6)


# ---------------------------------------------------------------- squared sum of squares

PLAIN = {"preprocessor": None, "normalize": False, "calibration_size": None}


def test_squared_sos_is_the_semidefinite_program_with_squared_residuals():
    """``f(X_i) >= r_i^2`` at the least cost, in the units given, solved by CVXPY; the root of f is the scale."""
    pytest.importorskip("cvxpy", reason="the reference needs CVXPY: pip install sosbands[sdp]")
    from studies.reference.sdp import symmetric_sdp

    X, y = rows(15, 4)
    penalties = {"width_penalty": 2.0, "trace_penalty": 0.3, "frobenius_penalty": 0.5}
    model = SquaredSoS(lambda Z: np.zeros(len(Z)), lengthscale=0.7, tol=1e-7, **PLAIN, **penalties).fit(X, y)
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
    np.testing.assert_allclose(model.told(NEW).band.lower_unit ** 2, expected, rtol=1e-2, atol=1e-3 * y.var())


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
def test_squared_sos_score_and_interval():
    """Score ``r^2/f``, interval ``m -+ sqrt(q f)``, by the definition of the method."""
    model = calibrated(SquaredSoS(Ridge(), lengthscale="median", tol=1e-3))
    assert model.certificate_["gap"] <= 1e-3

    def f(X):
        return model.unit_**2 * model.function_(model.reader_.preprocessor.transform(X))

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
    scale = model.told(X).band.lower_unit
    assert (scale >= np.abs(r) * (1 - 1e-9)).all()
    touching = np.flatnonzero(scale <= np.abs(r) * (1 + 1e-3))
    assert 2 <= len(touching) < 40
    assert set(touching) <= set(model.active_)
    assert model.unit_ == pytest.approx(np.sqrt(np.mean(r**2)))
    # of a process those left out
    model = SquaredSoS(GaussianProcess(), lengthscale="median", calibration_size=None).fit(X, y)
    assert model.residual_rule_ == "leave-one-out"
    r = GaussianProcess().fit(X, y).leave_one_out_residuals()
    assert model.unit_ == pytest.approx(np.sqrt(np.mean(r**2)), rel=1e-12)
    assert (model.told(X).band.lower_unit >= np.abs(r) * (1 - 1e-9)).all()


def test_squared_sos_is_equivariant():
    X, y = LEARN
    options = {"lengthscale": "median", "random_state": 0, "tol": 1e-6}
    ends = SquaredSoS(Ridge(), **options).fit(X, y).predict_interval(NEW)
    moved = SquaredSoS(Ridge(), **options).fit(X, 5 - 1e3 * y).predict_interval(NEW)
    np.testing.assert_allclose(moved, 5 - 1e3 * ends[:, ::-1], rtol=1e-3, atol=1.0)


def test_squared_sos_lengthscale_maximises_held_out_dependence():
    X, y = rows(100, 6)
    model = SquaredSoS(LinearRegression(), calibration_size=None, random_state=0, residuals="in-sample").fit(X, y)
    tuning, median = model.tuning_, median_lengthscale(model.reader_.preprocessor.transform(X))
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
        ell = found["lengthscales"][place]
        fresh = SquaredSoS(lambda Z: np.zeros(len(Z)), lengthscale=ell, tol=1e-6, **PLAIN).fit(X[others], y[others])
        width[held] = fresh.told(X[held]).band.lower_unit
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
    assert np.array_equal(one.told(NEW).band.lower_unit, two.told(NEW).band.lower_unit)


def test_constant_noise_gives_constant_width():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 1))
    y = rng.standard_normal(60)
    model = SquaredSoS(LinearRegression(), random_state=3).fit(X, y)
    assert model.tuning_["p_value"] > 0.05
    assert model.lengthscale_ is None
    assert np.ptp(model.told(X).band.lower_unit) < 1e-9
    plain = SplitCP(LinearRegression(), calibration_size=0.5, random_state=3).fit(X, y)
    np.testing.assert_allclose(model.predict_interval(X), plain.predict_interval(X), rtol=1e-9)
    untested = SquaredSoS(LinearRegression(), random_state=3, test_level=None).fit(X, y)
    assert untested.lengthscale_ == untested.tuning_["lengthscale"]
    assert np.ptp(untested.told(X).band.lower_unit) > 0.1


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
