"""Coverage of calibrated intervals over random draws, and broken calibrations that the suites must reject."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from coverage_contract import (
    CELLS,
    DISCRETE,
    LAWS,
    ONE_SIDED,
    assert_coverage,
    run_coverage_suite,
    run_group_suite,
    run_levels_suite,
    run_shift_suite,
)
from sosbands.conformal import SCORES, Band, IntervalMixin, Told, calibration
from sosbands.conformal.quantile import conformal_quantile, weighted_conformal_quantile

KINDS = ("symmetric", "asymmetric")


class FixedBand(IntervalMixin, BaseEstimator):
    """A band that nobody learnt, skewed and with a scale that is not that of the noise."""

    def __init__(self, confidence_level=0.9, calibration="symmetric", scaled=False):
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.scaled = scaled

    def told(self, X):
        x = X[:, 0]
        middle = np.sin(3 * x)
        return Told(Band(middle - 1.1, middle + 0.2, 0.3 + x**2 if self.scaled else 1.0))


class FixedFunctions(IntervalMixin, BaseEstimator):
    """Functions that nobody learnt, other ones below and above, with values below the floor of the scaled score."""

    def __init__(self, confidence_level=0.9, calibration="symmetric"):
        self.confidence_level = confidence_level
        self.calibration = calibration

    def _functions(self, X):
        return np.maximum(X[:, 0], 0.0), 0.2 + np.square(1 + X[:, 0])

    def _score(self, X):  # noqa: ARG002
        return SCORES["scaled"].fitted(0.25, 1.5)  # their means over x in [-1, 1]

    def told(self, X):
        return Told(self._score(X).band(np.sin(3 * X[:, 0]), *self._functions(X)))


def always(kind, cls=FixedBand, **parameters):
    model = cls(calibration=kind, **parameters)
    return lambda _: model


def scaled_band(calibration):
    return FixedBand(calibration=calibration, scaled=True)


MODELS = {"added": FixedBand, "with units": scaled_band, "scaled": FixedFunctions}
every_model = pytest.mark.parametrize("name", MODELS)
both_kinds = pytest.mark.parametrize("kind", KINDS)


@both_kinds
@every_model
def test_coverage(name, kind):
    cells = CELLS[:2] if name == "with units" else CELLS
    run_coverage_suite(always(kind, MODELS[name]), kind, cells=cells)


@both_kinds
@every_model
def test_coverage_with_ties(name, kind):
    run_coverage_suite(always(kind, MODELS[name]), kind, laws=DISCRETE, cells=((99, 0.9),))
    if name == "scaled":
        run_coverage_suite(always(kind, FixedFunctions), kind, laws=ONE_SIDED, cells=((99, 0.9),), ties=True)


@pytest.mark.parametrize(("name", "lower_share"), [("added", 0.2), ("added", 0.8), ("added", 1.0), ("scaled", 0.2)])
def test_coverage_with_unequal_shares(name, lower_share):
    model = always("asymmetric", MODELS[name])
    run_coverage_suite(model, "asymmetric", cells=((100, 0.9),), lower_share=lower_share)


@both_kinds
@pytest.mark.parametrize("suite", [run_group_suite, run_shift_suite, run_levels_suite])
@pytest.mark.parametrize("name", ["added", "scaled"])
def test_coverage_in_groups_under_shift_and_at_several_levels(name, suite, kind):
    suite(always(kind, MODELS[name]), kind)


# ---------------------------------------------------------------- models that the suites must reject


class SwappedAtPrediction(FixedFunctions):
    """Broken: the intervals have the units of the other side, the scores their own."""

    def predict_interval(self, X, *args, **options):
        functions = self._functions
        self._functions = lambda X: functions(X)[::-1]
        try:
            return super().predict_interval(X, *args, **options)
        finally:
            del self._functions


class FloorOfTheRows(FixedFunctions):
    """Broken: the floor is that of the rows at hand, which are others in calibration and in each prediction."""

    def _score(self, X):
        return SCORES["scaled"].fitted(*(20 * f.mean() for f in self._functions(X)))  # a floor that often counts

    def predict_interval(self, X, *args, **options):
        return np.concatenate([super(FloorOfTheRows, self).predict_interval(row[None], *args, **options) for row in X])


class OtherSideCounts(FixedFunctions):
    """Broken: rows on the other side of the prediction count as far outside."""

    def conformalize(self, X, y, **options):
        super().conformalize(X, y, **options)
        scores = self.calibration_
        lower, upper = (np.where(S == 0, 10.0, S) for S in (scores.lower_scores, scores.upper_scores))
        self.calibration_ = calibration.Calibration(lower, upper, scores.groups, scores.weights)
        return self


class SwappedSides(FixedBand):
    """Each side gets the quantile of the other."""

    def conformalize(self, X, y, **options):
        known = super().conformalize(X, y, **options).calibration_
        self.calibration_ = replace(known, lower_scores=known.upper_scores, upper_scores=known.lower_scores)
        return self


class SwappedShares(FixedBand):
    """Each side gets the miscoverage of the other."""

    def predict_interval(self, X, confidence_level=None, *, lower_share=0.5, **options):
        return super().predict_interval(X, confidence_level, lower_share=1 - lower_share, **options)


class NoGroups(FixedBand):
    """One quantile for all groups."""

    def conformalize(self, X, y, *, groups=None, **options):  # noqa: ARG002
        return super().conformalize(X, y, **options)

    def predict_interval(self, X, confidence_level=None, *, groups=None, **options):  # noqa: ARG002
        return super().predict_interval(X, confidence_level, **options)


class NoWeights(FixedBand):
    """Calibration and test points taken for alike."""

    def conformalize(self, X, y, *, likelihood_ratio=None, **options):  # noqa: ARG002
        return super().conformalize(X, y, **options)

    def predict_interval(self, X, confidence_level=None, *, likelihood_ratio=None, **options):  # noqa: ARG002
        return super().predict_interval(X, confidence_level, **options)


class Shuffled(FixedFunctions):
    """Broken: levels come back in another order."""

    def predict_interval(self, X, confidence_level=None, **options):
        return super().predict_interval(X, confidence_level, **options)[:, :, ::-1]


SUITES = (run_coverage_suite, run_group_suite, run_shift_suite, run_levels_suite)
BROKEN = [
    *((SwappedAtPrediction, kind, suite, {}) for kind in KINDS for suite in SUITES),
    (FloorOfTheRows, "symmetric", run_coverage_suite, {"cells": ((100, 0.9),), "draws": 200, "n_test": 20}),
    (OtherSideCounts, "asymmetric", run_coverage_suite, {"cells": ((100, 0.9),)}),
    (SwappedSides, "asymmetric", run_coverage_suite, {"laws": LAWS[2:]}),
    (SwappedShares, "asymmetric", run_coverage_suite, {"cells": ((100, 0.9),), "lower_share": 0.2}),
    *((NoGroups, kind, run_group_suite, {}) for kind in KINDS),
    *((NoWeights, kind, run_shift_suite, {}) for kind in KINDS),
    (Shuffled, "symmetric", run_levels_suite, {}),
]


@pytest.mark.parametrize(("cls", "kind", "suite", "options"), BROKEN)
def test_broken_models_are_rejected(cls, kind, suite, options):
    with pytest.raises(AssertionError, match="is below|is above|not nested"):
        suite(always(kind, cls), kind, **options)


# ---------------------------------------------------------------- broken quantiles


def without_the_new_point(scores, level):
    return float(np.sort(scores)[math.ceil(level * len(scores) - 1e-9) - 1])


def clamped(scores, level):
    k = min(len(scores), math.ceil(level * (len(scores) + 1) - 1e-9))
    return float(np.sort(scores)[k - 1])


def two_ranks_too_high(scores, level):
    k = math.ceil(level * (len(scores) + 1) - 1e-9) + 2
    return float(np.sort(scores)[k - 1]) if k <= len(scores) else math.inf


def interpolated(scores, level):
    return float(np.quantile(scores, level))


@both_kinds
@pytest.mark.parametrize("quantile", [without_the_new_point, clamped, two_ranks_too_high, interpolated])
def test_broken_quantiles_are_rejected(monkeypatch, kind, quantile):
    monkeypatch.setattr(calibration, "conformal_quantile", quantile)
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(always(kind), kind)


def test_a_clamped_quantile_is_rejected_where_points_are_too_few_and_only_there(monkeypatch):
    monkeypatch.setattr(calibration, "conformal_quantile", clamped)
    run_coverage_suite(always("symmetric"), "symmetric", cells=((100, 0.9),))
    with pytest.raises(AssertionError, match="is below"):
        run_coverage_suite(always("symmetric"), "symmetric", cells=((20, 0.99),))


def test_ends_that_lose_ties_by_rounding_are_rejected(monkeypatch):
    def nearest(band, q_lo, q_up):
        ends = np.stack([band.lower - q_lo * band.lower_unit, band.upper + q_up * band.upper_unit], axis=1)
        return ends, np.zeros(len(band), dtype=bool)

    monkeypatch.setattr(calibration, "interval", nearest)
    for model in (FixedBand, scaled_band):
        with pytest.raises(AssertionError, match="is below"):
            run_coverage_suite(always("symmetric", model), "symmetric", laws=DISCRETE, cells=((99, 0.9),))


def test_a_weighted_quantile_without_the_test_weight_is_rejected(monkeypatch):
    def forgetful(scores, weights, test_weights, level):
        return weighted_conformal_quantile(scores, weights, 1e-300 * test_weights, level)

    monkeypatch.setattr(calibration, "weighted_conformal_quantile", forgetful)
    with pytest.raises(AssertionError, match="is below"):
        run_shift_suite(always("symmetric"), "symmetric", sizes=(20,))


def test_the_t_tests():
    rng = np.random.default_rng(0)
    covered = 0.9 + 0.05 * rng.standard_normal(1000)  # error of the mean 0.0016
    covered -= covered.mean() - 0.9
    assert_coverage(covered, 0.9, 0.9, 1)
    assert_coverage(covered, 0.9035, 1.0, 1)
    with pytest.raises(AssertionError, match="is below"):
        assert_coverage(covered, 0.904, 1.0, 1)
    with pytest.raises(AssertionError, match="is above"):
        assert_coverage(covered, 0.0, 0.896, 1)
    assert_coverage(covered, 0.904, 1.0, 1000)
    assert_coverage(np.ones(200), 0.9, 1.0, 1)
    with pytest.raises(AssertionError, match="is above"):
        assert_coverage(np.ones(200), 0.9, 0.95, 1)
    with pytest.raises(AssertionError, match="too little"):
        assert_coverage(covered[:199], 0.0, 1.0, 1)


def test_the_laws_have_the_stated_noise():
    assert conformal_quantile(LAWS[0].noise(np.random.default_rng(0), 99_999), 0.975) == pytest.approx(1.96, abs=0.02)
    assert conformal_quantile(LAWS[1].noise(np.random.default_rng(0), 99_999), 0.975) == pytest.approx(3.18, abs=0.06)
    assert conformal_quantile(LAWS[2].noise(np.random.default_rng(0), 99_999), 0.975) == pytest.approx(17.9, abs=0.6)
