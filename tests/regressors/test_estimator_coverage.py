"""Coverage of real fits of SoSBandRegressor over random draws, and broken calibrations that the suites must reject.

The bands of each law are learnt once, on a learning set of their own; every draw then has new calibration and test
rows. One suite fits anew in every draw, so that the split inside `fit` is covered too.
"""

import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from coverage_contract import (
    CELLS,
    LAWS,
    assert_coverage,
    coverages,
    run_coverage_suite,
    run_group_suite,
    run_shift_suite,
)
from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.exceptions import CrossedIntervalsWarning, LearningRowsWarning, OffDataWarning, ZeroResidualsWarning
from sosbands.regressors import PAPER_SETTINGS
from spelled import spelled

KINDS = ("symmetric", "asymmetric")
SCORES = ("added", "scaled")
DRAWS = 200
# Narrow bands may be emptied by calibration, and a test row may lie outside the learning rows: neither harms coverage.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{category.__module__}.{category.__name__}")
    for category in (CrossedIntervalsWarning, OffDataWarning)
]


@cache
def learnt(law_number, kind, score="added"):
    """Bands learnt from 60 rows of a law, without calibration; "default" is everything as it comes."""
    X, y = LAWS[law_number].draw(np.random.default_rng(100 + law_number), 60)
    if score == "default":
        return SoSBandRegressor(calibration=kind, calibration_size=None, random_state=0).fit(X, y)
    options = {
        **PAPER_SETTINGS,
        "calibration": kind,
        "conformal_score": score,
        "calibration_size": None,
        "lengthscale": "median",
        "symmetry_penalty": 0.1,
        "rank": 10,
    }
    return SoSBandRegressor(SmoothingSplineRegressor(), **spelled(**options)).fit(X, y)


def run_on_every_law(suite, kind, score="added", **options):
    """Each law with the bands that were learnt from it."""
    for number, law in enumerate(LAWS):
        model = learnt(number, kind, score)
        suite(lambda _, model=model: model, kind, laws=(law,), draws=DRAWS, seed=number, **options)


@pytest.mark.parametrize("score", [*SCORES, "default"])
@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind, score):
    cells = CELLS if score == "added" else CELLS[:2]
    run_on_every_law(run_coverage_suite, kind, score, cells=cells)


@pytest.mark.parametrize(("kind", "score"), [("symmetric", "added"), ("asymmetric", "scaled")])
def test_coverage_within_groups(kind, score):
    """Common bands for three laws at once."""
    run_group_suite(lambda _: learnt(2, kind, score), kind, draws=DRAWS)


@pytest.mark.parametrize(("kind", "score"), [("symmetric", "scaled"), ("asymmetric", "added")])
def test_coverage_under_shift(kind, score):
    run_on_every_law(run_shift_suite, kind, score, sizes=(20, 100))


# ---------------------------------------------------------------- the split inside fit


def coverage_of_fits(law, m, make_model, draws=DRAWS):
    """Coverages at level 0.9 of models fitted anew in every draw."""

    def one_draw(rng):
        model = make_model(*law.draw(rng, 12 + m), rng)
        X, y = law.draw(rng, 100)
        return y, model.predict_interval(X, 0.9)

    return coverages(one_draw, draws, 5)


def split_fit(X, y, rng, score="added"):
    seed = int(rng.integers(2**31))
    options = {"calibration_size": len(y) - 12, "residuals": "in-sample", "normalize": False, "tol": 0.1}
    fixed = {"lengthscale": "median", "symmetry_penalty": 1.0, "random_state": seed, "conformal_score": score}
    return SoSBandRegressor(LinearRegression(), **spelled(**fixed, **options)).fit(X, y)


def calibrated_on_learning_rows(X, y, rng):  # noqa: ARG001
    """With a model that interpolates: its residuals are zero, and so are the scores."""
    options = {"calibration_size": None, "residuals": "in-sample"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningRowsWarning)
        warnings.simplefilter("ignore", ZeroResidualsWarning)
        return SoSBandRegressor(KNeighborsRegressor(1), **options).fit(X, y).conformalize(X, y)


@pytest.mark.parametrize("score", SCORES)
def test_coverage_of_the_split_inside_fit(score):
    found = coverage_of_fits(LAWS[2], 19, partial(split_fit, score=score))
    assert_coverage(found.both, 0.9, 0.95, 2, "split inside fit, m=19")


def test_calibration_on_the_learning_rows_is_rejected():
    found = coverage_of_fits(LAWS[0], 19, calibrated_on_learning_rows)
    with pytest.raises(AssertionError, match="is below"):
        assert_coverage(found.both, 0.9, 0.95, 2, "calibrated on the rows of fit")


# ---------------------------------------------------------------- bands that calibration has not seen


class SwappedUnits(SoSBandRegressor):
    """Predicts below with the band above, and the other way round."""

    def predict_interval(self, X, *args, **options):
        learnt = self.noise_
        self.noise_ = replace(learnt, lower=learnt.upper, upper=learnt.lower)
        try:
            return super().predict_interval(X, *args, **options)
        finally:
            self.noise_ = learnt


@pytest.mark.parametrize("kind", KINDS)
def test_swapped_units_are_rejected(kind):
    X, y = LAWS[2].draw(np.random.default_rng(102), 60)
    asymmetric = {"learning_coverage": 0.9, "symmetry_penalty": 0.0, "noise_features": "inputs", "base_scale": "none"}
    options = {**asymmetric, "calibration_size": None, "lengthscale": "median", "conformal_score": "scaled"}
    model = SwappedUnits(SmoothingSplineRegressor(), calibration=kind, random_state=0, **options).fit(X, y)
    assert model.noise_.mean_upper > 1.2 * model.noise_.mean_lower  # else swapping them would break nothing
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(lambda _: model, kind, laws=LAWS[2:], cells=((100, 0.9),), draws=DRAWS)


class SlightlyNarrower(SoSBandRegressor):
    """Predicts with a band that calibration has not seen."""

    def predict_interval(self, X, *args, **options):
        ends = super().predict_interval(X, *args, **options)
        return ends + 0.02 * (ends[:, 1:] - ends[:, :1]) * np.array([1.0, -1.0])


def test_a_slightly_narrower_band_is_rejected():
    X, y = LAWS[0].draw(np.random.default_rng(100), 60)
    model = SlightlyNarrower(SmoothingSplineRegressor(), calibration_size=None).fit(X, y)
    with pytest.raises(AssertionError, match="is below"):
        run_coverage_suite(lambda _: model, "symmetric", laws=LAWS[:1], cells=((1000, 0.9),), draws=DRAWS)
