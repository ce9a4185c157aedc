"""The interface of interval regressors: values, shapes, errors and warnings, on a band that needs no fitting."""

import math
import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from sosbands import metrics
from sosbands.conformal import Band, IntervalMixin, Told, conformal_quantile
from sosbands.exceptions import (
    CrossedIntervalsWarning,
    NotCalibratedError,
    SosbandsError,
    TooFewCalibrationPointsWarning,
    TooFewRowsWarning,
)

INF = math.inf


class FixedBand(IntervalMixin, BaseEstimator):
    """[x - below, x + above], with the scale 1 + x^2 if asked for."""

    def __init__(self, confidence_level=0.9, calibration="symmetric", below=1.0, above=0.5, scaled=False):
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.below = below
        self.above = above
        self.scaled = scaled

    def told(self, X):
        x = np.asarray(X, dtype=float)[:, 0]
        return Told(Band(x - self.below, x + self.above, 1 + x**2 if self.scaled else 1.0))


RNG = np.random.default_rng(0)
X_CAL, X_NEW = RNG.uniform(-1, 1, (80, 1)), RNG.uniform(-1, 1, (7, 1))
Y_CAL = X_CAL[:, 0] + RNG.gumbel(size=80)
GROUPS, RATIO = RNG.integers(0, 2, 80), RNG.exponential(size=80)


def calibrated(kind="symmetric", groups=None, likelihood_ratio=None, **parameters):
    model = FixedBand(calibration=kind, **parameters)
    return model.conformalize(X_CAL, Y_CAL, groups=groups, likelihood_ratio=likelihood_ratio)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("scaled", [False, True])
def test_symmetric_intervals(scaled):
    model = calibrated(scaled=scaled)
    x, x_new = X_CAL[:, 0], X_NEW[:, 0]
    unit, unit_new = (1 + x**2, 1 + x_new**2) if scaled else (1.0, 1.0)
    scores = np.maximum(x - 1 - Y_CAL, Y_CAL - (x + 0.5)) / unit
    q = conformal_quantile(scores, 0.9)
    assert np.array_equal(model.scores_, scores)
    assert model.n_calibration_ == 80
    assert model.quantile() == q
    assert type(model.quantile(0.8)) is float
    wanted = np.stack([x_new - 1 - q * unit_new, x_new + 0.5 + q * unit_new], axis=1)
    for level in (None, 0.9, np.float64(0.9), np.array(0.9)):
        np.testing.assert_allclose(model.predict_interval(X_NEW, level), wanted, rtol=1e-15)


def test_asymmetric_intervals():
    model = calibrated("asymmetric")
    x, x_new = X_CAL[:, 0], X_NEW[:, 0]
    below, above = x - 1 - Y_CAL, Y_CAL - (x + 0.5)
    assert np.array_equal(model.scores_, np.stack([below, above], axis=1))
    for share in (0.5, 0.3):
        q_lo, q_up = conformal_quantile(below, 1 - 0.1 * share), conformal_quantile(above, 1 - 0.1 * (1 - share))
        assert model.quantile(lower_share=share) == (q_lo, q_up)
        wanted = np.stack([x_new - 1 - q_lo, x_new + 0.5 + q_up], axis=1)
        np.testing.assert_allclose(model.predict_interval(X_NEW, lower_share=share), wanted, rtol=1e-15)


@pytest.mark.parametrize("share", [0, 1])
def test_a_zero_share_leaves_one_end_infinite_without_a_warning(share):
    ends = calibrated("asymmetric").predict_interval(X_NEW, lower_share=share)
    assert np.all(np.abs(ends[:, share]) == INF)
    assert np.all(np.isfinite(ends[:, 1 - share]))


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("options", [{}, {"groups": GROUPS}, {"likelihood_ratio": RATIO}])
def test_many_levels_at_once_are_nested(kind, options):
    model = calibrated(kind, **options)
    given = {name: values[:7] for name, values in options.items()}
    levels = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewCalibrationPointsWarning)
        ends = model.predict_interval(X_NEW, np.array(levels), **given)
        each = [model.predict_interval(X_NEW, level, **given) for level in levels]
        assert np.array_equal(model.predict_interval(X_NEW, (0.9,), **given), ends[:, :, 5:])
    assert ends.shape == (7, 2, 6)
    assert np.array_equal(ends, np.stack(each, axis=2))
    assert np.all(np.diff(ends[:, 0], axis=1) <= 0)
    assert np.all(np.diff(ends[:, 1], axis=1) >= 0)
    assert np.any(np.diff(ends[:, 1], axis=1) > 0)


def test_groups_have_their_own_quantiles():
    model = calibrated(groups=GROUPS)
    alone = [FixedBand().conformalize(X_CAL[rows], Y_CAL[rows]) for rows in (~GROUPS.astype(bool), GROUPS.astype(bool))]
    assert model.quantile(group=0) == alone[0].quantile()
    assert model.quantile(group=1) == alone[1].quantile()
    assert model.quantile(group=0) != model.quantile(group=1)
    asked = np.array([0, 1, 1, 0, 0, 1, 0])
    ends = model.predict_interval(X_NEW, groups=asked)
    for g in (0, 1):
        assert np.array_equal(ends[asked == g], alone[g].predict_interval(X_NEW[asked == g]))


def test_likelihood_ratios_move_the_quantile_to_the_points_that_count():
    scores = calibrated().scores_
    model = calibrated(likelihood_ratio=(scores > np.median(scores)) * 1.0)
    assert model.quantile(0.5, likelihood_ratio=1.0) == conformal_quantile(scores[scores > np.median(scores)], 0.5)


# ---------------------------------------------------------------- state


def test_a_second_calibration_replaces_the_first_and_a_failed_one_does_not():
    model = calibrated(groups=GROUPS)
    first = model.calibration_
    with pytest.raises(ValueError, match="y has"):
        model.conformalize(X_CAL, np.full(80, np.nan))
    assert model.calibration_ is first
    assert model.conformalize(X_CAL[:40], Y_CAL[:40]) is model
    assert model.n_calibration_ == 40
    assert model.calibration_.groups is None


def test_prediction_changes_nothing():
    model = calibrated("asymmetric")
    before = pickle.dumps(model)
    model.predict_interval(X_NEW, [0.5, 0.8])
    model.quantile(0.7)
    assert pickle.dumps(model) == before


def test_the_kind_of_calibration_and_the_level_can_change_without_new_data():
    model = calibrated().set_params(calibration="asymmetric", confidence_level=0.8)
    assert model.scores_.shape == (80, 2)
    assert model.quantile() == calibrated("asymmetric").quantile(0.8)


def test_cloning_and_pickling():
    model = calibrated(groups=np.array(["a", "b"], dtype=object)[GROUPS])
    assert not hasattr(clone(model), "calibration_")
    again = pickle.loads(pickle.dumps(model))
    groups = ["a", "b", "a", "b", "a", "b", "a"]
    assert np.array_equal(again.predict_interval(X_NEW, groups=groups), model.predict_interval(X_NEW, groups=groups))


def test_lists_integers_and_single_precision():
    wanted = calibrated().predict_interval(X_NEW)
    model = FixedBand().conformalize(X_CAL.tolist(), Y_CAL.tolist())
    assert np.array_equal(model.predict_interval(X_NEW.tolist()), wanted)
    whole = np.arange(80)
    assert FixedBand().conformalize(X_CAL, whole).quantile() == FixedBand().conformalize(X_CAL, whole * 1.0).quantile()
    model = FixedBand().conformalize(X_CAL, Y_CAL.astype(np.float32))
    assert model.scores_.dtype == np.float64


# ---------------------------------------------------------------- before calibration


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.predict_interval(X_NEW),
        lambda model: model.quantile(),
        lambda model: model.evaluate(X_NEW, np.zeros(7)),
        lambda model: model.scores_,
        lambda model: model.n_calibration_,
    ],
)
def test_before_calibration(call):
    with pytest.raises(NotCalibratedError, match=r"needs a calibration: call conformalize\(X, y\) first"):
        call(FixedBand())
    assert not hasattr(FixedBand(), "scores_")
    assert issubclass(NotCalibratedError, NotFittedError)
    assert issubclass(NotCalibratedError, SosbandsError)


def test_a_subclass_without_a_band():
    with pytest.raises(NotImplementedError, match=r"Unfinished must define told\(X\)"):
        type("Unfinished", (IntervalMixin,), {"calibration": "symmetric"})().conformalize(X_CAL, Y_CAL)


# ---------------------------------------------------------------- warnings


def test_one_warning_for_too_few_points():
    model = FixedBand().conformalize(X_CAL[:8], Y_CAL[:8])
    with pytest.warns(
        TooFewCalibrationPointsWarning, match="0.9 needs at least 9 .*; .*0.95 needs at least 19"
    ) as seen:
        ends = model.predict_interval(X_NEW, [0.8, 0.9, 0.95])
    assert len(seen) == 1
    assert np.isfinite(ends[:, :, 0]).all()
    assert np.array_equal(ends[:, :, 1], np.tile([-INF, INF], (7, 1)))
    with pytest.warns(TooFewCalibrationPointsWarning, match="0.9 needs at least 9 calibration points, given: 8"):
        assert model.quantile() == INF


def test_crossed_intervals_are_counted_and_become_their_midpoint():
    model = FixedBand(below=3.0, above=1.0).conformalize(X_CAL, X_CAL[:, 0] - 1.0)  # every score is -2
    assert model.quantile() == pytest.approx(-2)
    small = model.set_params(below=1.0)
    with pytest.warns(CrossedIntervalsWarning, match="7 of 7 intervals are empty"):
        ends = small.predict_interval(X_NEW)
    np.testing.assert_allclose(ends, np.repeat(X_NEW, 2, axis=1), atol=1e-15)
    with pytest.warns(CrossedIntervalsWarning, match="14 of 14 intervals are empty"):
        small.predict_interval(X_NEW, [0.5, 0.9])


# ---------------------------------------------------------------- evaluation


def test_evaluate_hands_over_one_level(monkeypatch):
    def evaluate_intervals(y, lower, upper, **options):
        return {"y": y, "lower": lower, "upper": upper, **options}

    monkeypatch.setitem(sys.modules, "sosbands.metrics", SimpleNamespace(evaluate_intervals=evaluate_intervals))
    model, y = calibrated("asymmetric"), np.arange(7.0)
    row = model.evaluate(X_NEW, y, 0.8, lower_share=0.3)
    ends = model.predict_interval(X_NEW, 0.8, lower_share=0.3)
    assert np.array_equal(np.stack([row["lower"], row["upper"]], axis=1), ends)
    assert np.array_equal(row["y"], y)
    assert row["confidence_level"] == 0.8
    assert np.array_equal(row["X"], X_NEW)
    assert model.evaluate(X_NEW, y)["confidence_level"] == 0.9
    assert "X" not in model.evaluate(X_NEW.astype(object), y)
    grouped = calibrated(groups=GROUPS)
    row = grouped.evaluate(X_NEW, y, groups=GROUPS[:7])
    assert np.array_equal(row["upper"], grouped.predict_interval(X_NEW, groups=GROUPS[:7])[:, 1])


def test_evaluate_with_the_real_metrics():
    row = calibrated().evaluate(X_CAL, Y_CAL)
    ends = calibrated().predict_interval(X_CAL)
    assert row["coverage"] == np.mean((ends[:, 0] <= Y_CAL) & (ends[:, 1] >= Y_CAL))
    assert row["mean_width"] == pytest.approx(np.mean(ends[:, 1] - ends[:, 0]))


def test_evaluate_by_group_and_by_place():
    rng = np.random.default_rng(0)
    X, y, labels = rng.uniform(-1, 1, (250, 1)), rng.standard_normal(250), np.arange(250) % 3
    model, weight = calibrated(), rng.uniform(size=250)
    given = (y, *model.predict_interval(X, 0.8).T)
    with pytest.warns(TooFewRowsWarning, match="250 of at least 500") as seen:
        row = model.evaluate(X, y, 0.8, by=labels, places=True, sample_weight=weight)
    assert {each.filename for each in seen} == {__file__}
    assert row["by"] == metrics.evaluate_groups(*given, labels, confidence_level=0.8, sample_weight=weight)
    assert list(row["by"]) == [0, 1, 2]
    risk = metrics.coverage_excess_risk(*given, X, 0.8)
    assert {name: row[name] for name in risk} == risk
    plain = model.evaluate(X, y, 0.8, sample_weight=weight)
    assert plain == {name: row[name] for name in plain}
    assert row.keys() - plain.keys() == {"by", *risk}  # 250 rows are too few for slabs and cells
    with pytest.raises(ValueError, match="places=True: expected False, as places are looked for in numbers"):
        model.evaluate(X.astype(object), y, places=True)


# ---------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    "level", [0, 1, 90, math.nan, INF, "0.9", True, None, object(), [], [0.9, 1.0], [0.9, "0.8"], [[0.9]], [None]]
)
def test_bad_levels(level):
    model = calibrated()
    if level is None:  # at prediction None means the one of the constructor
        model = model.set_params(confidence_level=None)
    calls = (model.predict_interval, lambda X, level: model.evaluate(X, np.zeros(7), level))
    for call in (*calls, lambda _, level: model.quantile(level)):
        with pytest.raises(ValueError, match="confidence_level=.*: expected a number"):
            call(X_NEW, level)
    for call in (*calls[1:], lambda _, level: model.quantile(level)):  # where one is wanted
        with pytest.raises(ValueError, match=r"confidence_level=.*: expected a number in \(0, 1\)"):
            call(X_NEW, [0.8, 0.9])


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, "0.5", None, True, [0.5]])
def test_bad_shares(share):
    with pytest.raises(ValueError, match=r"lower_share=.*: expected a number in \[0, 1\]"):
        calibrated("asymmetric").predict_interval(X_NEW, lower_share=share)


def test_a_share_needs_two_quantiles():
    for call in (lambda m: m.predict_interval(X_NEW, lower_share=0.3), lambda m: m.quantile(lower_share=0.3)):
        with pytest.raises(ValueError, match="one quantile for both sides .* use calibration='asymmetric'"):
            call(calibrated())


@pytest.mark.parametrize("kind", ["both", None, 1, "Symmetric", ["symmetric"]])
def test_bad_kinds(kind):
    expected = "calibration=.*: expected 'symmetric' or 'asymmetric'"
    with pytest.raises(ValueError, match=expected):
        FixedBand(calibration=kind).conformalize(X_CAL, Y_CAL)
    with pytest.raises(ValueError, match=expected):
        calibrated().set_params(calibration=kind).predict_interval(X_NEW)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y_CAL[:-1], r"y has shape \(79,\): expected one entry per row of X, shape \(80,\)"),
        (np.stack([Y_CAL, Y_CAL], axis=1), r"y has shape \(80, 2\): expected one target"),
        (3.0, r"y has shape \(\)"),
        (np.where(np.arange(80) == 3, np.nan, Y_CAL), "y has 1 entries that are NaN or infinite, the first in row 3"),
        (["1"] * 80, "y has dtype <U1: expected real numbers"),
        (np.array([1.0] * 79 + [b"1"], dtype=object), "y has dtype object with entries of type .*(str|bytes)"),
        (np.array(["1"] * 80, dtype=object)[:, None], "y has dtype object with entries of type .*(str|bytes)"),
        (np.full(80, np.datetime64("2024-01-01")), r"y holds dates \(dtype datetime64.*\): expected real"),
        (np.zeros((80, 0)), r"y has shape \(80, 0\): expected one target per row, shape \(80,\)"),
        (None, "the target y is None: expected one per row of X"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")  # of the column
def test_bad_observations(y, message):
    for call in (FixedBand().conformalize, calibrated().evaluate)[: 2 if np.shape(y) == (80,) else 1]:
        with pytest.raises(ValueError, match=message):
            call(X_CAL, y)
    with pytest.raises(ValueError, match="X has no rows: expected at least one calibration point"):
        FixedBand().conformalize(X_CAL[:0], Y_CAL[:0])


@pytest.mark.parametrize(
    ("at_calibration", "at_prediction", "message"),
    [
        ({"groups": GROUPS}, {}, "groups=None: expected"),
        ({}, {"groups": GROUPS[:7]}, "groups was given: expected None"),
        ({"likelihood_ratio": RATIO}, {}, "likelihood_ratio=None: expected"),
        ({}, {"likelihood_ratio": RATIO[:7]}, "likelihood_ratio was given: expected None"),
        ({"groups": GROUPS}, {"groups": [0, 1, 2, 0, 1, 3, 0]}, "has not seen, 2, 3: expected 0, 1"),
    ],
)
def test_rows_that_do_not_fit_the_calibration(at_calibration, at_prediction, message):
    model = calibrated(**at_calibration)
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X_NEW, **at_prediction)
    with pytest.raises(ValueError, match=message):
        model.evaluate(X_NEW, np.zeros(7), **at_prediction)


def test_the_quantile_of_a_group_or_a_weight_needs_it_named():
    with pytest.raises(ValueError, match="conformalize was called with groups"):
        calibrated(groups=GROUPS).quantile()
    with pytest.raises(ValueError, match="has not seen, 5: expected 0, 1"):
        calibrated(groups=GROUPS).quantile(group=5)
    with pytest.raises(ValueError, match="conformalize was called with likelihood_ratio"):
        calibrated(likelihood_ratio=RATIO).quantile()
