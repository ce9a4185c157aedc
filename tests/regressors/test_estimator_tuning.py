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
CONSTANT = X[:, 0] + RNG.standard_normal(N)


@pytest.fixture(autouse=True)
def small_grid(monkeypatch):
    monkeypatch.setattr(rules, "PENALTIES", (0.0, 30.0, np.inf))
    monkeypatch.setattr(rules, "FACTORS", (0.3, 0.6, 1.2))


def oracle(Z):
    return Z[:, 0]


def fitted(y, **options):
    given = {"calibration_size": None, "cv": 3, "random_state": 0, **PAPER_SETTINGS, **options}
    return SoSBandRegressor(oracle, **spelled(**given)).fit(X, y)


def test_skewed_noise_gives_asymmetric_bands():
    model = fitted(SKEWED)
    assert isinstance(model.tuning_, TuningReport)
    assert np.isfinite(model.noise_.settings.symmetry_penalty)
    assert model.noise_.settings.symmetry_penalty == model.tuning_.symmetry_penalty
    assert model.noise_.lengthscale == model.tuning_.lengthscale
    assert model.tuning_.symmetry.p_value <= 0.05
    assert f"{model.tuning_.sentence} Chosen: lengthscale {model.noise_.lengthscale:.3g}" in model.summary(detail=True)
    assert model.noise_.mean_upper > 1.5 * model.noise_.mean_lower


def test_symmetric_noise_gives_symmetric_bands():
    model = fitted(SYMMETRIC)
    assert model.noise_.settings.symmetry_penalty == np.inf
    assert model.tuning_.sentence.startswith("Residuals show no skew (p = ")
    assert "the bands are as good as symmetric" in model.summary(detail=True)
    assert np.ptp(model.noise_.upper(np.linspace(-1, 1, 50)[:, None])) > 0.1


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


def test_the_choice_is_that_of_the_tuner_and_the_bands_those_of_learn_bands():
    model = fitted(SKEWED)
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


def test_settings_reach_the_tuner(monkeypatch):
    seen = {}

    def spy(points, residuals, **options):
        seen.update(options)
        return tune(points, residuals, **options)

    monkeypatch.setattr("sosbands.regressors.noise.tune", spy)
    rules = Rules(criterion="dcor", symmetry_test=None, level=0.2)
    fitted(SKEWED, n_jobs=1, symmetry_kind="operator", rules=rules, width_penalty=3.0)
    asked = seen["rules"]
    assert (asked.criterion, asked.symmetry_test, asked.level) == ("dcor", None, 0.2)
    assert (seen["width_penalty"], seen["cv"], seen["symmetry_kind"], seen["n_jobs"]) == (3.0, 3, "operator", 1)
    assert isinstance(asked, Rules)


PAPER = Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive", n_replicates=7)


def test_rules_decide_everything_but_the_seed(monkeypatch):
    seen = []

    def spy(points, residuals, *, rules, **options):
        seen.append(rules)
        return tune(points, residuals, rules=rules, **options)

    monkeypatch.setattr("sosbands.regressors.noise.tune", spy)
    model = fitted(SKEWED, rules=PAPER)
    fitted(SKEWED)
    assert replace(seen[0], seed=0) == PAPER
    assert seen[0].seed == seen[1].seed != 0  # random_state has the say, with rules and without
    assert replace(seen[1], seed=0) == Rules()
    assert model.tuning_.symmetry.name == "kruskal-wallis of 7 bootstrap replicates"
    assert model.tuning_.criterion == "hsic"
    assert model.rules is PAPER


def test_rules_are_cloned_and_saved(tmp_path):
    model = SoSBandRegressor(LinearRegression(), cv=3, random_state=0, rules=PAPER).fit(X, SKEWED)
    assert clone(model).get_params()["rules"] == PAPER
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.rules == PAPER
    assert np.array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_the_papers_rule_is_a_setting():
    model = fitted(SKEWED, criterion="hsic", symmetry_test="kruskal-wallis")
    assert model.tuning_.symmetry.name == "kruskal-wallis of 30 bootstrap replicates"
    assert model.tuning_.replicates.shape == (3, 30)


def test_the_same_seed_gives_the_same_choice():
    first, second = fitted(SKEWED), clone(fitted(SKEWED)).fit(X, SKEWED)
    assert [dict(row) for row in first.tuning_.evaluations] == [dict(row) for row in second.tuning_.evaluations]
    assert first.tuning_.symmetry == second.tuning_.symmetry


def test_outliers_are_not_tuned_on():
    y = SYMMETRIC.copy()
    y[:6] += 100.0
    trimmed, whole = fitted(y, outlier_fraction=0.05), fitted(y)
    assert trimmed.tuning_.n_rows == N - 6
    best = [max(row["criterion"] for row in model.tuning_.evaluations) for model in (trimmed, whole)]
    assert best[0] > best[1] + 1  # logarithms of scores: outliers of 100 would cost much more than that


@pytest.mark.parametrize("level", [1e-3, 0.5])
def test_small_levels_get_permutations_enough(level):
    model = fitted(SYMMETRIC, test_level=level)
    assert model.tuning_.independence.n_permutations >= 10 / level - 1
    assert not model.tuning_.homoscedastic


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.ZeroResidualsWarning")
def test_kernel_objects_where_nothing_can_be_told():
    for rows in (slice(0, 3), slice(0, N)):
        settings = {**PAPER_SETTINGS, "bands": BandSettings(kernel=RBF(0.5)), "calibration_size": None}
        model = SoSBandRegressor(oracle, **settings).fit(X[rows], X[rows, 0])
        assert model.noise_.lengthscale is None
    assert fitted(SKEWED, kernel=RBF(0.5), symmetry_penalty=1.0).tuning_ is None
    assert fitted(np.array(X[:, 0]), lengthscale=0.5).noise_.lengthscale == 0.5


def test_a_tuned_model_is_saved_with_its_report(tmp_path):
    model = SoSBandRegressor(LinearRegression(), cv=3, random_state=0, **PAPER_SETTINGS).fit(X, SKEWED)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.tuning_.sentence == model.tuning_.sentence
    assert loaded.tuning_.evaluations == model.tuning_.evaluations
    assert loaded.tuning_.independence == model.tuning_.independence
    np.testing.assert_array_equal(loaded.tuning_.rows, np.arange(N // 2))
    for ours, kept in zip(model.tuning_.folds, loaded.tuning_.folds, strict=True):
        np.testing.assert_array_equal(kept, ours)
    assert np.array_equal(loaded.predict_interval(X), model.predict_interval(X))
    assert loaded.summary() == model.summary()


def test_progress_lines_of_the_tuning(capsys):
    fitted(SKEWED, verbose=1)
    words = [line.split("] ")[0] for line in capsys.readouterr().out.splitlines()]
    assert words[0] == "[SoSBandRegressor"
    assert "[tuning" in words
    assert words[-1] == "[SoSBandRegressor"
