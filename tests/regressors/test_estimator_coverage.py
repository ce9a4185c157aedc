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
from sosbands.exceptions import LearningRowsWarning, ZeroResidualsWarning
from sosbands.regressors import PAPER_SETTINGS
from spelled import spelled

KINDS = ("symmetric", "asymmetric")
SCORES = ("added", "scaled")
DRAWS = 200
LAW_OF = {"symmetric": 2, "asymmetric": 0}  # skewed, heavy-tailed noise; normal noise
# A test row may lie outside the learning rows: no harm to coverage.
pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")


@cache
def learnt(kind, score):
    """Law and bands learnt from 60 rows of it, without calibration; "default" is everything as it comes."""
    number = LAW_OF[kind]
    X, y = LAWS[number].draw(np.random.default_rng(100 + number), 60)
    settings = {"calibration": kind, "calibration_size": None, "random_state": 0}
    if score == "default":
        return LAWS[number], SoSBandRegressor(**settings).fit(X, y)
    options = {**PAPER_SETTINGS, **settings, "conformal_score": score, "lengthscale": "median"}
    options |= {"symmetry_penalty": 0.1, "rank": 10}
    return LAWS[number], SoSBandRegressor(SmoothingSplineRegressor(), **spelled(**options)).fit(X, y)


@pytest.mark.parametrize("score", [*SCORES, "default"])
@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind, score):
    law, model = learnt(kind, score)
    cells = CELLS[:1] if score == "default" else CELLS[:2]  # more rows, and levels too high, are those of any band
    run_coverage_suite(lambda _: model, kind, laws=(law,), cells=cells, draws=DRAWS, n_test=100)


@pytest.mark.parametrize(("kind", "score"), [("symmetric", "added"), ("asymmetric", "scaled")])
def test_coverage_within_groups(kind, score):
    """Common bands for three laws at once."""
    run_group_suite(lambda _: learnt(kind, score)[1], kind, draws=DRAWS)


@pytest.mark.parametrize(("kind", "score"), [("symmetric", "scaled"), ("asymmetric", "added")])
def test_coverage_under_shift(kind, score):
    law, model = learnt(kind, score)
    run_shift_suite(lambda _: model, kind, laws=(law,), sizes=(20, 100), draws=DRAWS, n_test=100)


# ---------------------------------------------------------------- the split inside fit


def coverage_of_fits(law, m, make_model, draws=DRAWS):
    """Coverages at level 0.9 of models fitted anew in every draw."""

    def one_draw(rng):
        model = make_model(*law.draw(rng, 12 + m), rng)
        X, y = law.draw(rng, 100)
        return y, model.predict_interval(X, 0.9)

    return coverages(one_draw, draws, 5)


def split_fit(X, y, rng, **given):
    settings = {**PAPER_SETTINGS, **given, "calibration_size": len(y) - 12, "residuals": "in-sample", "tol": 0.1}
    settings |= {"lengthscale": "median", "symmetry_penalty": 1.0, "random_state": int(rng.integers(2**31))}
    return SoSBandRegressor(LinearRegression(), **spelled(**settings)).fit(X, y)


def calibrated_on_learning_rows(X, y, rng):  # noqa: ARG001
    """With a model that interpolates: its residuals are zero, and so are the scores."""
    options = {"calibration_size": None, "residuals": "in-sample"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningRowsWarning)
        warnings.simplefilter("ignore", ZeroResidualsWarning)
        return SoSBandRegressor(KNeighborsRegressor(1), **options).fit(X, y).conformalize(X, y)


@pytest.mark.parametrize("score", SCORES)
def test_coverage_of_the_split_inside_fit(score):
    found = coverage_of_fits(LAWS[2], 19, partial(split_fit, conformal_score=score, learning_coverage=0.9))
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
    options = {**asymmetric, "width_penalty": 10.0, "lengthscale": "median", "conformal_score": "scaled"}
    options |= {"calibration_size": None, "random_state": 0}
    model = SwappedUnits(SmoothingSplineRegressor(), calibration=kind, **options).fit(X, y)
    assert model.noise_.mean_upper > 1.2 * model.noise_.mean_lower  # else swapping them would break nothing
    with pytest.raises(AssertionError, match="is below|is above"):
        run_coverage_suite(lambda _: model, kind, laws=LAWS[2:], cells=((100, 0.9),), draws=DRAWS)


class Narrower(SoSBandRegressor):
    """Predicts with a band that calibration has not seen."""

    def predict_interval(self, X, *args, **options):
        ends = super().predict_interval(X, *args, **options)
        return ends + 0.04 * (ends[:, 1:] - ends[:, :1]) * np.array([1.0, -1.0])


def test_a_narrower_band_is_rejected():
    X, y = LAWS[0].draw(np.random.default_rng(100), 60)
    options = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 0.1, "calibration_size": None}
    model = Narrower(SmoothingSplineRegressor(), **options).fit(X, y)
    with pytest.raises(AssertionError, match="is below"):
        run_coverage_suite(lambda _: model, "symmetric", laws=LAWS[:1], cells=((1000, 0.9),), draws=DRAWS)
