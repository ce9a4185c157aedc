"""Coverage of calibrated intervals over random draws, and broken calibrations that the suites must reject."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from coverage_contract import (
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


def always(kind, cls=FixedBand, **parameters):
    model = cls(calibration=kind, **parameters)
    return lambda _: model


@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind):
    run_coverage_suite(always(kind), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_normalised_scores(kind):
    run_coverage_suite(always(kind, scaled=True), kind, cells=((20, 0.9), (100, 0.9)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaled", [False, True])
def test_coverage_with_ties(kind, scaled):
    run_coverage_suite(always(kind, scaled=scaled), kind, laws=DISCRETE, cells=((99, 0.9),))


@pytest.mark.parametrize("lower_share", [0.2, 0.8, 1.0])
def test_coverage_with_unequal_shares(lower_share):
    run_coverage_suite(always("asymmetric"), "asymmetric", cells=((100, 0.9),), lower_share=lower_share)


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_within_groups(kind):
    run_group_suite(always(kind), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_under_shift(kind):
    run_shift_suite(always(kind), kind)


# ---------------------------------------------------------------- the scaled score


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


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_scaled_scores(kind):
    run_coverage_suite(always(kind, FixedFunctions), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_scaled_scores_with_ties(kind):
    run_coverage_suite(always(kind, FixedFunctions), kind, laws=DISCRETE, cells=((99, 0.9),))
    run_coverage_suite(always(kind, FixedFunctions), kind, laws=ONE_SIDED, cells=((99, 0.9),), ties=True)


def test_coverage_of_scaled_scores_with_unequal_shares():
    run_coverage_suite(always("asymmetric", FixedFunctions), "asymmetric", cells=((100, 0.9),), lower_share=0.2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suite", [run_group_suite, run_shift_suite])
def test_coverage_of_scaled_scores_in_groups_and_under_shift(kind, suite):
    suite(always(kind, FixedFunctions), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_scaled_scores_at_several_levels(kind):
    run_levels_suite(always(kind, FixedFunctions), kind)


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suite", [run_coverage_suite, run_group_suite, run_shift_suite, run_levels_suite])
def test_swapped_units_are_rejected(kind, suite):
    with pytest.raises(AssertionError, match="is below|is above"):
        suite(always(kind, SwappedAtPrediction), kind)


def test_a_floor_of_the_rows_at_hand_is_rejected():
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(always("symmetric", FloorOfTheRows), "symmetric", cells=((100, 0.9),), draws=200, n_test=20)


def test_scores_that_count_the_other_side_are_rejected():
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(always("asymmetric", OtherSideCounts), "asymmetric", cells=((100, 0.9),))


class Shuffled(FixedFunctions):
    """Broken: levels come back in another order."""

    def predict_interval(self, X, confidence_level=None, **options):
        return super().predict_interval(X, confidence_level, **options)[:, :, ::-1]


def test_levels_in_another_order_are_rejected():
    with pytest.raises(AssertionError, match="not nested"):
        run_levels_suite(always("symmetric", Shuffled), "symmetric")


# ---------------------------------------------------------------- broken calibrations


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


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("scaled", [False, True])
def test_ends_that_lose_ties_by_rounding_are_rejected(monkeypatch, scaled):
    def nearest(band, q_lo, q_up):
        ends = np.stack([band.lower - q_lo * band.lower_unit, band.upper + q_up * band.upper_unit], axis=1)
        return ends, np.zeros(len(band), dtype=bool)

    monkeypatch.setattr(calibration, "interval", nearest)
    with pytest.raises(AssertionError, match="is below"):
        run_coverage_suite(always("symmetric", scaled=scaled), "symmetric", laws=DISCRETE, cells=((99, 0.9),))


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


def test_swapped_sides_are_rejected():
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(always("asymmetric", SwappedSides), "asymmetric", laws=LAWS[2:])


def test_swapped_shares_are_rejected():
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(always("asymmetric", SwappedShares), "asymmetric", cells=((100, 0.9),), lower_share=0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_ignored_groups_are_rejected(kind):
    with pytest.raises(AssertionError, match="is below|is above"):
        run_group_suite(always(kind, NoGroups), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_ignored_weights_are_rejected(kind):
    with pytest.raises(AssertionError, match="is below"):
        run_shift_suite(always(kind, NoWeights), kind)


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
