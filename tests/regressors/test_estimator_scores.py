"""SoSBandRegressor with the scaled score: what it does, what it says, what it keeps."""

import re
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import sosbands
from small_fits import FAST, X_NEW, Y_NEW, N, X, Y, fast
from sosbands import SoSBandRegressor
from sosbands.conformal import SCORES, Told
from sosbands.exceptions import OffDataWarning, ZeroResidualsWarning
from spelled import spelled

KINDS = ("symmetric", "asymmetric")
FAR = np.array([[60.0, 60.0], [-80.0, 10.0]])


def scaled(estimator=None, **options):
    return fast(estimator, **{"conformal_score": "scaled", **options})


@cache
def fitted(**options):
    return scaled(**options).fit(X, Y)


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize("kind", KINDS)
def test_the_intervals_are_the_bands_times_the_quantile(kind):
    model = fitted(calibration=kind)
    learning = model.reader_.preprocessor.transform(X[model.learning_rows_])

    def reaches(rows):
        Z = model.reader_.preprocessor.transform(rows)
        return [np.maximum(f(Z), 0.05 * f(learning).mean()) for f in (model.noise_.lower, model.noise_.upper)]

    m, (below, above) = model.predict(X_NEW), reaches(X_NEW)
    for level in (0.3, 0.9):
        q_lo, q_up = np.broadcast_to(model.quantile(level), 2)
        ends = model.predict_interval(X_NEW, level)
        np.testing.assert_allclose(ends, np.stack([m - q_lo * below, m + q_up * above], axis=1), rtol=1e-9)
    held = model.calibration_rows_
    r, (below, above) = Y[held] - model.predict(X[held]), reaches(X[held])
    signed = np.stack([-r / below, r / above], axis=1)
    expected = signed.max(axis=1) if kind == "symmetric" else np.maximum(signed, 0.0)
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings(f"ignore::{OffDataWarning.__module__}.OffDataWarning")
def test_far_from_the_data_the_floor_counts_and_rows_do_not_matter_to_each_other():
    model = fitted(constant=False)
    ends, center = model.predict_interval(FAR), model.predict(FAR)
    q = model.quantile()
    np.testing.assert_allclose(center - ends[:, 0], q * 0.05 * model.noise_.mean_lower, rtol=1e-6)
    np.testing.assert_allclose(ends[:, 1] - center, q * 0.05 * model.noise_.mean_upper, rtol=1e-6)
    np.testing.assert_array_equal(model.predict_interval(np.vstack([FAR, X_NEW]))[:2], ends)


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
    together = model.predict_interval(np.vstack([FAR, X_NEW]))[:2]
    assert not np.allclose(together, model.predict_interval(FAR))


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_fit_moves_with_y(kind):
    """y -> -4 y - 11: below becomes above."""
    options = {"calibration": kind, "tol": 1e-8, "symmetry_penalty": 0.0}
    ends = scaled(**options).fit(X, Y).predict_interval(X_NEW, [0.6, 0.9])
    found = scaled(**options).fit(X, -4 * Y - 11).predict_interval(X_NEW, [0.6, 0.9])
    np.testing.assert_allclose(found, np.sort(-4 * ends - 11, axis=1), rtol=1e-4, atol=1e-3)


def test_bands_of_constant_width_are_the_same_by_both_scores():
    options = {"lengthscale": np.inf, "symmetry_penalty": np.inf}
    pair = [scaled(conformal_score=name, **options).fit(X, Y).predict_interval(X_NEW) for name in SCORES]
    np.testing.assert_allclose(*pair, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_interval_is_empty_where_the_added_score_empties_some(kind):
    added = scaled(conformal_score="added", calibration=kind, calibration_size=0.7).fit(X, Y)
    with pytest.warns(sosbands.exceptions.CrossedIntervalsWarning):
        added.predict_interval(X, 0.05)
    model = fitted(calibration=kind, calibration_size=0.7)
    ends, m = model.predict_interval(X, [0.05, 0.5]), model.predict(X)[:, None]
    assert (ends[:, 0] <= m).all()
    assert (ends[:, 1] >= m).all()


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


# ---------------------------------------------------------------- words, later changes


def said(model):
    return re.search(r"^Calibration at .*$", model.summary(detail=True), re.MULTILINE)[0]


def test_the_summary_says_what_calibration_did():
    times, added = fitted(), scaled(conformal_score="added", confidence_level=0.975).fit(X, Y)
    assert said(times) == f"Calibration at 90%: the reach of both ends multiplied by {times.quantile():.4g}."
    assert added.quantile() > 0
    assert said(added) == f"Calibration at 97.5%: {added.quantile():.4g} added to both ends."
    less = added.set_params(confidence_level=0.5)
    assert less.quantile() < 0
    assert said(less) == f"Calibration at 50%: {-less.quantile():.4g} taken off both ends."
    both = fitted(calibration="asymmetric")
    lower, upper = (f"{q:.4g}" for q in both.quantile())
    ends = f"the reach of the lower end multiplied by {lower}, the reach of the upper end multiplied by {upper}"
    assert said(both) == f"Calibration at 90%: {ends}."
    other = scaled().fit(X, Y, groups=np.arange(N) % 2)
    assert said(other).endswith("90%: the reach of both ends multiplied by a number, its own for each group.")
    other.conformalize(X_NEW, Y_NEW, likelihood_ratio=np.ones(30))
    assert said(other).endswith("its own for each row.")
    for silent in (fitted(calibration_size=None), other.conformalize(X_NEW[:5], Y_NEW[:5])):  # infinite, which is said
        assert "Calibration at" not in silent.summary(detail=True)


def test_the_score_is_that_of_fit():
    """Scores and intervals must not be of two minds: a parameter that is changed later waits for the next fit."""
    later = scaled().fit(X, Y).set_params(conformal_score="added")
    np.testing.assert_array_equal(later.predict_interval(X_NEW), fitted().predict_interval(X_NEW))
    assert later.noise_.score.name == "scaled"
    assert said(later) == said(fitted())
    assert later.fit(X, Y).noise_.score.name == "added"


def test_outliers_do_not_count_in_the_floor():
    y = Y.copy()
    y[fitted().learning_rows_[0]] += 1e3
    model = scaled(lambda Z: np.sin(2 * Z[:, 0]), outlier_fraction=0.05).fit(X, y)
    assert model.noise_.score.floors == (0.05 * model.noise_.mean_lower, 0.05 * model.noise_.mean_upper)
    assert model.noise_.mean_upper < 10
