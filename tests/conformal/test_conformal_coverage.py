"""Coverage of calibrated intervals over random draws, and broken calibrations that the suites must reject."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from coverage_contract import DISCRETE, LAWS, assert_coverage, run_coverage_suite, run_group_suite, run_shift_suite
from sosbands.conformal import Band, IntervalMixin, calibration, mixin
from sosbands.conformal.quantile import conformal_quantile, weighted_conformal_quantile

KINDS = ("symmetric", "asymmetric")


class FixedBand(IntervalMixin, BaseEstimator):
    """A band that nobody learnt, skewed and with a scale that is not that of the noise."""

    def __init__(self, confidence_level=0.9, calibration="symmetric", scaled=False):
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.scaled = scaled

    def _band(self, X):
        x = X[:, 0]
        middle = np.sin(3 * x)
        return Band(middle - 1.1, middle + 0.2, 0.3 + x**2 if self.scaled else 1.0)


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

    monkeypatch.setattr(mixin, "interval", nearest)
    with pytest.raises(AssertionError, match="is below"):
        run_coverage_suite(always("symmetric", scaled=scaled), "symmetric", laws=DISCRETE, cells=((99, 0.9),))


class SwappedSides(FixedBand):
    """Each side gets the quantile of the other."""

    def _conformal_quantiles(self, *args):
        return [q[:, ::-1] for q in super()._conformal_quantiles(*args)]


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
