"""SoSBandRegressor with each conformal score: what it does, what it says, what it keeps, what it refuses."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import sosbands
from sklearn_checks import expected_failures
from sosbands import SoSBandRegressor
from sosbands.conformal import SCORES, Told
from sosbands.exceptions import OffDataWarning, ZeroResidualsWarning
from sosbands.point_models import GaussianProcess
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules
from spelled import spelled

RNG = np.random.default_rng(7)
N = 80
X = RNG.uniform(-1, 1, (N, 2))
Y = np.sin(2 * X[:, 0]) + (1.2 + X[:, 1]) * (RNG.exponential(size=N) - 0.7)
X_NEW = RNG.uniform(-0.8, 0.8, (30, 2))
Y_NEW = np.sin(2 * X_NEW[:, 0]) + (1.2 + X_NEW[:, 1]) * (RNG.exponential(size=30) - 0.7)
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}
KINDS = ("symmetric", "asymmetric")


def scaled(estimator=None, **options):
    estimator = LinearRegression() if estimator is None else estimator
    return SoSBandRegressor(estimator, **spelled(**{**FAST, "conformal_score": "scaled", **options}))


@pytest.fixture(scope="module")
def model():
    return scaled().fit(X, Y)


@pytest.mark.every_configuration
@parametrize_with_checks(
    [SoSBandRegressor(GaussianProcess(), **{**PAPER_SETTINGS, "conformal_score": "scaled"})],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_parameter_does_not_hide_the_r2_of_scikit_learn(model):
    """A parameter called `score` would: `cross_val_score` calls `score`."""
    assert model.score(X_NEW, Y_NEW) == pytest.approx(model.estimator_.score(X_NEW, Y_NEW))
    assert len(cross_val_score(scaled(), X, Y, cv=2)) == 2
    assert "score" not in model.get_params()


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize("kind", KINDS)
def test_the_intervals_are_the_bands_times_the_quantile(kind):
    model = scaled(calibration=kind).fit(X, Y)
    Z = model.reader_.preprocessor.transform(X_NEW)
    m, below, above = model.predict(X_NEW), model.noise_.lower(Z), model.noise_.upper(Z)
    learning = model.reader_.preprocessor.transform(X[model.learning_rows_])
    below = np.maximum(below, 0.05 * model.noise_.lower(learning).mean())
    above = np.maximum(above, 0.05 * model.noise_.upper(learning).mean())
    for level in (0.3, 0.9):
        q_lo, q_up = np.broadcast_to(model.quantile(level), 2)
        ends = model.predict_interval(X_NEW, level)
        np.testing.assert_allclose(ends, np.stack([m - q_lo * below, m + q_up * above], axis=1), rtol=1e-9)
    held = model.calibration_rows_
    Z, r = model.reader_.preprocessor.transform(X[held]), Y[held] - model.predict(X[held])
    below = np.maximum(model.noise_.lower(Z), 0.05 * model.noise_.mean_lower)
    above = np.maximum(model.noise_.upper(Z), 0.05 * model.noise_.mean_upper)
    signed = np.stack([-r / below, r / above], axis=1)
    expected = signed.max(axis=1) if kind == "symmetric" else np.maximum(signed, 0.0)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings(f"ignore::{OffDataWarning.__module__}.OffDataWarning")
def test_far_from_the_data_the_floor_counts_and_rows_do_not_matter_to_each_other():
    model = scaled(constant=False).fit(X, Y)
    far = np.array([[60.0, 60.0], [-80.0, 10.0]])
    ends, center = model.predict_interval(far), model.predict(far)
    q = model.quantile()
    np.testing.assert_allclose(center - ends[:, 0], q * 0.05 * model.noise_.mean_lower, rtol=1e-6)
    np.testing.assert_allclose(ends[:, 1] - center, q * 0.05 * model.noise_.mean_upper, rtol=1e-6)
    np.testing.assert_array_equal(model.predict_interval(np.vstack([far, X_NEW]))[:2], ends)


class FloorOfTheRows(SoSBandRegressor):
    """Broken: the floor is that of the rows at hand."""

    def _tell_block(self, rows):
        Z = self.reader_.points(rows)
        below, above = self.noise_.lower(Z), self.noise_.upper(Z)
        score = SCORES["scaled"].fitted(below.mean(), above.mean())
        center = self._center(rows)
        return Told(score.band(center, below, above), center)


@pytest.mark.filterwarnings(f"ignore::{OffDataWarning.__module__}.OffDataWarning")
def test_a_floor_of_the_rows_at_hand_would_be_noticed():
    settings = spelled(**FAST | {"conformal_score": "scaled", "constant": False})
    model = FloorOfTheRows(LinearRegression(), **settings).fit(X, Y)
    far = np.array([[60.0, 60.0], [-80.0, 10.0]])
    together = model.predict_interval(np.vstack([far, X_NEW]))[:2]
    assert not np.allclose(together, model.predict_interval(far))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("c", [2.5, -4.0])
def test_the_whole_fit_moves_with_y(kind, c):
    """y -> c y + d; a negative c turns below into above."""
    options = {"calibration": kind, "tol": 1e-8, "symmetry_penalty": 0.0}
    ends = scaled(**options).fit(X, Y).predict_interval(X_NEW, [0.6, 0.9])
    found = scaled(**options).fit(X, c * Y - 11).predict_interval(X_NEW, [0.6, 0.9])
    np.testing.assert_allclose(found, np.sort(c * ends - 11, axis=1), rtol=1e-4, atol=1e-3)


def test_bands_of_constant_width_are_the_same_by_both_scores():
    options = {"lengthscale": np.inf, "symmetry_penalty": np.inf}
    pair = [scaled(conformal_score=name, **options).fit(X, Y).predict_interval(X_NEW) for name in SCORES]
    np.testing.assert_allclose(*pair, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_interval_is_empty_where_the_added_score_empties_some(kind):
    added = scaled(conformal_score="added", calibration=kind, calibration_size=0.7).fit(X, Y)
    with pytest.warns(sosbands.exceptions.CrossedIntervalsWarning):
        added.predict_interval(X, 0.05)
    model = scaled(calibration=kind, calibration_size=0.7).fit(X, Y)
    ends, m = model.predict_interval(X, [0.05, 0.5]), model.predict(X)[:, None]
    assert (ends[:, 0] <= m).all()
    assert (ends[:, 1] >= m).all()


def test_groups_and_weights_and_a_new_calibration():
    grouped = scaled().fit(X, Y, groups=np.arange(N) % 2)
    pair = [grouped.quantile(group=label) for label in (0, 1)]
    assert pair[0] != pair[1]
    ends = grouped.predict_interval(X_NEW, groups=np.arange(30) % 2)
    plain = grouped.conformalize(X_NEW, Y_NEW).predict_interval(X_NEW)
    factor = (ends[:, 1] - ends[:, 0]) / (plain[:, 1] - plain[:, 0])
    np.testing.assert_allclose(factor, np.array(pair)[np.arange(30) % 2] / grouped.quantile(), rtol=1e-9)
    grouped.conformalize(X_NEW, Y_NEW, likelihood_ratio=np.ones(30))
    np.testing.assert_allclose(grouped.predict_interval(X_NEW, likelihood_ratio=np.ones(30)), plain)


# ---------------------------------------------------------------- no bands


def test_all_residuals_zero():
    """Of the learning rows and of the calibration rows: the interval is the prediction."""
    with pytest.warns(ZeroResidualsWarning):
        exact = scaled(lambda Z: Z[:, 0]).fit(X, X[:, 0])
    np.testing.assert_array_equal(exact.predict_interval(X_NEW), np.repeat(X_NEW[:, :1], 2, axis=1))
    assert "Intervals have no width: they are the prediction." in exact.summary()
    assert "All residuals learnt from are zero: the bands have no width." in exact.summary(detail=True)
    assert "Calibration at 90%: 0 added to both ends." in exact.summary(detail=True)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_residuals_of_the_learning_rows_only(kind):
    """Nothing to multiply: one distance for all rows, as by the added score, and nothing infinite."""
    with pytest.warns(ZeroResidualsWarning):
        exact = scaled(lambda Z: Z[:, 0], calibration=kind, calibration_size=None).fit(X, X[:, 0])
    y = X_NEW[:, 0] + np.linspace(-1, 2, 30)
    exact.conformalize(X_NEW, y)
    q = np.broadcast_to(exact.quantile(0.8), 2)
    r = np.linspace(-1, 2, 30)
    ranked = [np.abs(r)] * 2 if kind == "symmetric" else [-r, r]
    assert q == pytest.approx([np.sort(each)[24 if kind == "symmetric" else 27] for each in ranked])
    np.testing.assert_allclose(exact.predict_interval(X_NEW, 0.8), X_NEW[:, :1] + q * [-1, 1], rtol=1e-12)


# ---------------------------------------------------------------- tuning, words, files, refusals


def test_tuning_is_by_the_score_in_use():
    rules = Rules(symmetry_test=None, independence=None)
    options = {"lengthscale": "auto", "symmetry_penalty": np.inf, "rules": rules, "cv": 3}
    tables = {
        name: [row["criterion"] for row in scaled(conformal_score=name, **options).fit(X, Y).tuning_.evaluations]
        for name in SCORES
    }
    assert len(tables["added"]) == len(tables["scaled"])
    assert not set(tables["added"]) & set(tables["scaled"])
    hsic = Rules(criterion="hsic", symmetry_test=None, independence=None)
    same = [scaled(conformal_score=name, **{**options, "rules": hsic}).fit(X, Y).tuning_.evaluations for name in SCORES]
    assert [row["criterion"] for row in same[0]] == [row["criterion"] for row in same[1]]


def said(model):
    return re.search(r"^Calibration at .*$", model.summary(detail=True), re.MULTILINE)[0]


def test_the_summary_says_what_calibration_did():
    times, added = scaled().fit(X, Y), scaled(conformal_score="added", confidence_level=0.975).fit(X, Y)
    assert said(times) == f"Calibration at 90%: the reach of both ends multiplied by {times.quantile():.4g}."
    assert added.quantile() > 0
    assert said(added) == f"Calibration at 97.5%: {added.quantile():.4g} added to both ends."
    less = scaled(conformal_score="added", confidence_level=0.5).fit(X, Y)
    assert less.quantile() < 0
    assert said(less) == f"Calibration at 50%: {-less.quantile():.4g} taken off both ends."
    both = scaled(calibration="asymmetric").fit(X, Y)
    lower, upper = (f"{q:.4g}" for q in both.quantile())
    ends = f"the reach of the lower end multiplied by {lower}, the reach of the upper end multiplied by {upper}"
    assert said(both) == f"Calibration at 90%: {ends}."
    grouped = scaled().fit(X, Y, groups=np.arange(N) % 2)
    assert said(grouped) == (
        "Calibration at 90%: the reach of both ends multiplied by a number, its own for each group."
    )
    weighted = scaled(calibration_size=None).fit(X, Y)
    assert "Calibration at" not in weighted.summary(detail=True)
    weighted.conformalize(X_NEW, Y_NEW, likelihood_ratio=np.ones(30))
    assert said(weighted).endswith("its own for each row.")
    few = scaled(confidence_level=0.99).fit(X, Y)
    assert "Calibration at" not in few.summary(detail=True)  # infinite, which is said


def test_a_saved_model_has_its_score(tmp_path):
    model = scaled(Ridge(), calibration="asymmetric").fit(X, Y)
    model.save(tmp_path / "model.sosbands")
    loaded = sosbands.load(tmp_path / "model.sosbands")
    assert loaded.conformal_score == loaded.noise_.score.name == "scaled"
    np.testing.assert_array_equal(loaded.predict_interval(X_NEW, [0.5, 0.9]), model.predict_interval(X_NEW, [0.5, 0.9]))
    assert loaded.summary() == model.summary()
    again = loaded.conformalize(X_NEW, Y_NEW).quantile()
    assert again == model.conformalize(X_NEW, Y_NEW).quantile()


def test_the_score_is_that_of_fit(model):
    """Scores and intervals must not be of two minds: a parameter that is changed later waits for the next fit."""
    later = clone(model).fit(X, Y).set_params(conformal_score="added")
    np.testing.assert_array_equal(later.predict_interval(X_NEW), model.predict_interval(X_NEW))
    assert later.noise_.score.name == "scaled"
    assert said(later) == said(model)
    assert later.fit(X, Y).noise_.score.name == "added"


def test_outliers_do_not_count_in_the_floor():
    y = Y.copy()
    y[scaled().fit(X, Y).learning_rows_[0]] += 1e3
    model = scaled(lambda Z: np.sin(2 * Z[:, 0]), outlier_fraction=0.05).fit(X, y)
    assert model.noise_.score.floors == (0.05 * model.noise_.mean_lower, 0.05 * model.noise_.mean_upper)
    assert model.noise_.mean_upper < 10


@pytest.mark.parametrize("value", ["times", None, 1, ["added"], "Scaled"])
def test_bad_scores_are_named(value):
    expected = re.escape(f"conformal_score={value!r}: expected one of ['auto', 'added', 'scaled']")
    with pytest.raises(ValueError, match=expected):
        scaled(conformal_score=value).fit(X, Y)
