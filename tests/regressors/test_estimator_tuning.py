"""What "auto" means for lengthscale and symmetry penalty of the paper's problem: the tuner's choice and report."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from sosbands import SoSBandRegressor, learn_bands, load
from sosbands.bands import BandSettings, penalty_scale
from sosbands.kernels import median_lengthscale
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules, TuningReport, rules, tune
from spelled import spelled

N = 120
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (N, 1))
SCALE = 0.1 + np.abs(X[:, 0])
SKEWED = X[:, 0] + SCALE * (RNG.gamma(0.5, size=N) - 0.5)
SYMMETRIC = X[:, 0] + SCALE * np.random.default_rng(5).standard_normal(N)
CONSTANT = X[:, 0] + np.random.default_rng(13).standard_normal(N)  # neither size nor skew, with p-values above 0.6


@pytest.fixture(autouse=True, scope="module")
def small_grid():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "PENALTIES", (0.0, 30.0, np.inf))
        patch.setattr(rules, "FACTORS", (0.3, 0.6, 1.2))
        yield


def oracle(Z):
    return Z[:, 0]


def fitted(y, **options):
    given = {"calibration_size": None, "cv": 3, "random_state": 0, **PAPER_SETTINGS, **options}
    return SoSBandRegressor(oracle, **spelled(**given)).fit(X, y)


@pytest.fixture(scope="module")
def skewed(small_grid):  # noqa: ARG001
    return fitted(SKEWED)


def test_skewed_noise_gives_asymmetric_bands(skewed):
    model = skewed
    assert isinstance(model.tuning_, TuningReport)
    assert np.isfinite(model.noise_.settings.symmetry_penalty)
    assert model.noise_.settings.symmetry_penalty == model.tuning_.symmetry_penalty
    assert model.noise_.lengthscale == model.tuning_.lengthscale
    assert model.tuning_.symmetry.p_value <= 0.05
    assert f"{model.tuning_.sentence} Chosen: lengthscale {model.noise_.lengthscale:.3g}" in model.summary(detail=True)
    assert model.noise_.mean_upper > 1.5 * model.noise_.mean_lower


def test_noise_of_one_size_gives_constant_bands_and_plain_split_conformal():
    model = fitted(CONSTANT)
    assert (model.noise_.lengthscale, model.noise_.settings.symmetry_penalty) == (np.inf, np.inf)
    assert model.tuning_.homoscedastic
    rng = np.random.default_rng(7)
    X_cal = rng.uniform(-1, 1, (60, 1))
    y_cal = X_cal[:, 0] + rng.standard_normal(60)
    ends = model.conformalize(X_cal, y_cal).predict_interval([[0.3], [9.0]])
    q = np.sort(np.abs(y_cal - X_cal[:, 0]))[int(np.ceil(0.9 * 61)) - 1]
    np.testing.assert_allclose(ends, [[0.3 - q, 0.3 + q], [9 - q, 9 + q]], rtol=1e-9)


def test_the_choice_is_that_of_the_tuner_and_the_bands_those_of_learn_bands(skewed):
    model = skewed
    Z, r = StandardScaler().fit_transform(X), SKEWED - X[:, 0]
    scale = penalty_scale(Z, r)
    chosen = {"lengthscale": model.noise_.lengthscale, "symmetry_penalty": model.noise_.settings.symmetry_penalty}
    bands = learn_bands(Z, r, normalize=scale, constant=True, **chosen)
    np.testing.assert_allclose(model.noise_.upper(Z), bands.upper(Z), rtol=1e-6)
    candidates_seen = {(row["lengthscale"], row["symmetry_penalty"]) for row in model.tuning_.evaluations}
    assert (model.noise_.lengthscale, model.noise_.settings.symmetry_penalty) in candidates_seen


def test_each_may_be_fixed_while_the_other_is_tuned():
    model = fitted(SKEWED, lengthscale=0.7)
    assert model.noise_.lengthscale == 0.7
    assert {row["lengthscale"] for row in model.tuning_.evaluations} == {0.7}
    assert model.tuning_.independence is None
    model = fitted(SKEWED, lengthscale="median")
    assert model.noise_.lengthscale == pytest.approx(median_lengthscale(StandardScaler().fit_transform(X)))
    assert model.tuning_ is not None
    model = fitted(SKEWED, symmetry_penalty=5.0)
    assert {row["symmetry_penalty"] for row in model.tuning_.evaluations} == {5.0}
    assert model.noise_.settings.symmetry_penalty == 5.0
    assert model.tuning_.symmetry is None
    model = fitted(SKEWED, kernel=RBF(0.5))
    assert model.noise_.lengthscale is None
    assert np.isfinite(model.noise_.settings.symmetry_penalty)


@pytest.mark.parametrize("lengthscale", [0.5, "median", [0.5], {"lower": 0.5, "upper": 0.7}])
def test_nothing_is_tuned_if_both_are_given(lengthscale):
    model = fitted(SKEWED, lengthscale=lengthscale, symmetry_penalty=1.0)
    assert model.tuning_ is None
    assert "Set: lengthscale" in model.summary(detail=True)


PAPER = Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive", n_replicates=7)


def test_rules_and_settings_reach_the_tuner(monkeypatch):
    """Rules decide everything but the seed, of which random_state has the say."""
    seen = []

    def spy(points, residuals, **options):
        seen.append(options)
        return tune(points, residuals, **options)

    monkeypatch.setattr("sosbands.regressors.noise.tune", spy)
    given = {"n_jobs": 1, "symmetry_kind": "operator", "width_penalty": 3.0, "conformal_score": "scaled"}
    model = fitted(SKEWED, rules=PAPER, **given)
    fitted(SKEWED)
    asked, plain = (options["rules"] for options in seen)
    assert replace(asked, seed=0) == PAPER == model.rules
    assert asked.seed == plain.seed != 0
    assert replace(plain, seed=0) == Rules()
    assert {name: seen[0][name] for name in given} == given
    assert seen[0]["cv"] == 3
    assert model.tuning_.symmetry.name == "kruskal-wallis of 7 bootstrap replicates"
    assert model.tuning_.criterion == "hsic"


def test_outliers_are_not_tuned_on():
    y = SYMMETRIC.copy()
    y[:6] += 100.0
    trimmed, whole = fitted(y, outlier_fraction=0.05), fitted(y)
    assert trimmed.tuning_.n_rows == N - 6
    best = [max(row["criterion"] for row in model.tuning_.evaluations) for model in (trimmed, whole)]
    assert best[0] > best[1] + 1  # logarithms of scores: outliers of 100 would cost much more than that


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.ZeroResidualsWarning")
def test_kernel_objects_where_nothing_can_be_told():
    for rows in (slice(0, 3), slice(0, N)):
        settings = {**PAPER_SETTINGS, "bands": BandSettings(kernel=RBF(0.5)), "calibration_size": None}
        model = SoSBandRegressor(oracle, **settings).fit(X[rows], X[rows, 0])
        assert model.noise_.lengthscale is None
    assert fitted(SKEWED, kernel=RBF(0.5), symmetry_penalty=1.0).tuning_ is None
    assert fitted(np.array(X[:, 0]), lengthscale=0.5).noise_.lengthscale == 0.5


def test_a_tuned_model_is_saved_with_its_rules_and_its_report(tmp_path):
    model = SoSBandRegressor(LinearRegression(), calibration_size=0.5, cv=3, random_state=0, rules=PAPER).fit(X, SKEWED)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.rules == PAPER == clone(model).get_params()["rules"]
    assert loaded.tuning_.sentence == model.tuning_.sentence
    assert loaded.tuning_.evaluations == model.tuning_.evaluations
    assert loaded.tuning_.independence == model.tuning_.independence
    np.testing.assert_array_equal(loaded.tuning_.rows, np.arange(N // 2))
    for ours, kept in zip(model.tuning_.folds, loaded.tuning_.folds, strict=True):
        np.testing.assert_array_equal(kept, ours)
    assert np.array_equal(loaded.predict_interval(X), model.predict_interval(X))
    assert loaded.summary() == model.summary()
