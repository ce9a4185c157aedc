"""Calibration rows that are added over time: windows, decay, groups, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from sosbands import load
from sosbands.baselines import SplitCP
from sosbands.conformal import Band, Calibration, IntervalMixin, Told, conformal_quantile
from sosbands.exceptions import LearningRowsWarning, TooFewCalibrationPointsWarning


class Zero(IntervalMixin, BaseEstimator):
    """The band [0, 0]: the symmetric score is |y|."""

    def __init__(self, confidence_level=0.9, calibration="symmetric"):
        self.confidence_level = confidence_level
        self.calibration = calibration

    def told(self, X):
        return Told(Band(np.zeros(len(X)), np.zeros(len(X))))


RNG = np.random.default_rng(0)
Y = RNG.exponential(size=60)
X = np.zeros((60, 1))


def decayed_quantile(scores, decay, level):
    """Smallest score whose weight and that of those below reach the level; the new row has weight 1, written out."""
    weights = decay ** np.arange(len(scores), 0.0, -1.0)
    total = weights.sum() + 1
    return next((s for s in sorted(scores) if weights[scores <= s].sum() >= level * total - 1e-12), math.inf)


# ---------------------------------------------------------------- values


def test_rows_added_one_by_one_or_at_once_are_those_of_one_calibration():
    whole = Zero().conformalize(X, Y)
    parts = Zero().conformalize(X[:20], Y[:20]).update(X[20:45], Y[20:45])
    for k in range(45, 60):
        parts.update(X[k : k + 1], Y[k : k + 1])
    fresh = Zero().update(X, Y)  # without a calibration it is the first one
    for model in (parts, fresh):
        assert np.array_equal(model.scores_, Y)
        assert model.quantile() == whole.quantile() == conformal_quantile(Y, 0.9)


def test_a_window_keeps_the_last_rows():
    model = Zero().conformalize(X[:20], Y[:20]).update(X[20:], Y[20:], window=25)
    assert np.array_equal(model.scores_, Y[35:])
    assert model.quantile() == conformal_quantile(Y[35:], 0.9)
    assert np.array_equal(Zero().update(X, Y, window=100).scores_, Y)


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("decay", [0.99, 0.97])
def test_decay_weighs_rows_by_their_age(kind, decay):
    signed = Y * RNG.choice([-1, 1], 60)
    model = Zero(calibration=kind).conformalize(X[:10], signed[:10]).update(X[10:], signed[10:], decay=decay)
    if kind == "symmetric":
        assert model.quantile(0.8) == decayed_quantile(Y, decay, 0.8)
    else:
        assert model.quantile(0.8) == (decayed_quantile(-signed, decay, 0.9), decayed_quantile(signed, decay, 0.9))
    assert model.update(X[:1], signed[:1]).calibration_.decay is None  # of each call its own


def test_a_decay_below_the_level_makes_every_interval_infinite_and_says_why():
    model = Zero().update(X, Y, decay=0.85)
    with pytest.warns(TooFewCalibrationPointsWarning, match=r"60 \(of the weight of 5\.7 by decay=0\.85\)"):
        assert model.quantile() == math.inf
    near_one = Zero().update(X, Y, decay=1 - 1e-12)
    assert [near_one.quantile(q) for q in (0.1, 0.5, 0.9)] == [conformal_quantile(Y, q) for q in (0.1, 0.5, 0.9)]


def test_groups_have_windows_and_ages_of_their_own():
    labels = np.array(["a"] * 50 + ["b"] * 10)
    model = Zero().update(X, Y, groups=labels, window=30, decay=0.97)
    assert np.array_equal(model.scores_, np.concatenate([Y[20:50], Y[50:]]))
    assert model.quantile(0.8, group="a") == decayed_quantile(Y[20:50], 0.97, 0.8)
    assert model.quantile(0.8, group="b") == decayed_quantile(Y[50:], 0.97, 0.8)
    longer = model.update(X[:1], Y[:1], groups=["another one"])
    assert set(longer.calibration_.groups) == {"a", "b", "another one"}


def covered(decay, window, draws=1500, m=40, seed=3):
    """How many of the new rows are inside, for exchangeable rows."""
    rng = np.random.default_rng(seed)
    inside = 0
    for _ in range(draws):
        y = rng.exponential(size=m + 1)
        model = Zero(confidence_level=0.8).update(X[:m], y[:m], decay=decay, window=window)
        inside += y[m] <= model.quantile()
    return inside


@pytest.mark.parametrize(("decay", "window"), [(0.95, None), (None, 15), (0.95, 30)])
def test_exchangeable_rows_are_covered_whatever_the_window_and_the_decay(decay, window):
    assert covered(decay, window) >= stats.binom.ppf(1e-3, 1500, 0.8)


def test_weights_that_leave_the_new_row_out_are_noticed(monkeypatch):
    def without_it(self):
        return 1e6 * self.decay ** np.arange(len(self), 0.0, -1.0)

    monkeypatch.setattr(Calibration, "age_weights", without_it)
    assert covered(0.8, None) < stats.binom.ppf(1e-3, 1500, 0.8)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0}, "window=0: expected None or a number of rows >= 1"),
        ({"window": 2.5}, "window=2.5: expected None or a number of rows"),
        ({"window": True}, "window=True"),
        ({"decay": 1.0}, r"decay=1.0: expected None or a number in \(0, 1\)"),
        ({"decay": "0.9"}, "decay='0.9'"),
        ({"decay": 0.9, "likelihood_ratio": np.ones(60)}, "decay=0.9: expected None beside likelihood_ratio"),
        ({"groups": ["a"] * 60}, "groups was given: expected None, because the calibration rows so far have no groups"),
        ({"likelihood_ratio": np.ones(60)}, "likelihood_ratio was given: expected None"),
        ({"first": {"groups": ["a"] * 60}}, "groups=None: expected one value per row, because the calibration rows so"),
        ({"first": {"groups": ["a"] * 60}, "groups": np.arange(60)}, "expected labels of the kind seen so far"),
    ],
)
def test_what_update_refuses_leaves_the_calibration_as_it_was(arguments, message):
    model = Zero().conformalize(X, Y, **arguments.get("first", {}))
    before = model.calibration_
    with pytest.raises(ValueError, match=message):
        model.update(X, Y, **{name: value for name, value in arguments.items() if name != "first"})
    assert model.calibration_ is before


# ---------------------------------------------------------------- in regressors


X_FIT = RNG.normal(size=(80, 2))
Y_FIT = X_FIT @ [1.0, 2.0] + RNG.normal(size=80)
X_MORE = RNG.normal(size=(50, 2))
Y_MORE = X_MORE @ [1.0, 2.0] + 3 * RNG.normal(size=50)


def test_a_regressor_is_updated_saved_and_read_again(tmp_path):
    model = SplitCP(LinearRegression(), random_state=0).fit(X_FIT, Y_FIT)
    held = np.abs(Y_FIT - model.predict(X_FIT))[model.calibration_rows_]
    model.update(X_MORE, Y_MORE, window=70, decay=0.98)
    scores = np.concatenate([held, np.abs(Y_MORE - model.predict(X_MORE))])[-70:]
    np.testing.assert_allclose(model.scores_, scores, rtol=1e-12)
    assert model.quantile() == pytest.approx(decayed_quantile(scores, 0.98, 0.9), rel=1e-12)
    model.save(tmp_path / "m.sosbands")
    again = load(tmp_path / "m.sosbands")
    assert again.calibration_.decay == 0.98
    assert np.array_equal(again.predict_interval(X_MORE), model.predict_interval(X_MORE))


def test_learning_rows_are_counted_until_the_window_has_none():
    model = SplitCP(LinearRegression(), calibration_size=40, random_state=0).fit(X_FIT, Y_FIT)
    learnt = model.learning_rows_
    with pytest.warns(LearningRowsWarning, match="40 of the 40 rows given to update were learnt from"):
        model.update(X_FIT[learnt], Y_FIT[learnt])
    assert model.n_learnt_calibration_rows_ == 40
    assert model.update(X_MORE[:5], Y_MORE[:5]).n_learnt_calibration_rows_ == 40
    assert model.update(X_MORE[:5], Y_MORE[:5], window=20).n_learnt_calibration_rows_ == 15  # no more than are left
    assert model.update(X_MORE, Y_MORE, window=50).n_learnt_calibration_rows_ == 0


def test_quantiles_of_rows_that_fade_are_those_of_one_sided_intervals_and_say_why_they_are_infinite():
    model = Zero(calibration="asymmetric").update(X, Y, decay=0.97)
    low, high = model.predict_quantile(X[:1], [0.1, 0.9])[0]
    assert high == pytest.approx(decayed_quantile(Y, 0.97, 0.9), rel=1e-12)
    assert low == pytest.approx(-decayed_quantile(-Y, 0.97, 0.9), rel=1e-12)
    model.update(X, Y, decay=0.9)
    with pytest.warns(TooFewCalibrationPointsWarning, match="given: 120 .of the weight of 9.0 by decay=0.9."):
        assert model.predict_quantile(X[:1], 0.95)[0] == np.inf


def test_cross_calibrated_models_refuse_by_name():
    model = SplitCP(LinearRegression(), calibration_size="cross", random_state=0).fit(X_FIT, Y_FIT)
    with pytest.raises(ValueError, match="update of a model fitted with calibration_size='cross': not offered"):
        model.update(X_MORE, Y_MORE)
