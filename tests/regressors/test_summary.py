"""`summary` does not contradict the model: ends at the prediction, widths that hardly differ, one band or two."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case

FIXED = {"lengthscale": 0.5, "base_scale": "none", "noise_features": "inputs", "random_state": 0}
FIXED |= {"width_penalty": 1.0, "learning_coverage": 0.9, "conformal_score": "added"}


@pytest.fixture(scope="module")
def rows():
    return synthetic_case(5).sample(160, random_state=0)


def test_an_end_at_the_prediction_is_told_as_such(rows):
    X, _ = rows
    for center, words in (
        (315.0, "from 315 below the prediction up to it"),
        (-315.0, "from the prediction to 315 above it"),
    ):
        model = SoSBandRegressor(lambda X, c=center: np.full(len(X), c), symmetry_penalty=0, **FIXED)
        said = model.fit(X, np.zeros(160)).summary()
        assert f"Intervals are 315 wide, {words}." in said
        assert "the width is as good as the same everywhere; each side has its own band." in said


@pytest.mark.parametrize(
    ("penalty", "words"),
    [
        (0, "each side has its own band"),
        (1e6, "the bands of both sides are as good as the same"),
        (np.inf, "both sides share one band"),
    ],
)
def test_one_band_or_two(rows, penalty, words):
    model = SoSBandRegressor(LinearRegression(), symmetry_penalty=penalty, **FIXED).fit(*rows)
    assert f"the width follows bands that vary with the features; {words}. Watch" in model.summary()


def test_one_band_around_skewed_residuals_says_why(rows):
    model = SoSBandRegressor(LinearRegression(), calibration_size=0.5, max_seconds=0, random_state=0).fit(*rows)
    assert "both sides share one band (test of skew: p = 0.007, but two bands were not tried)" in model.summary()


def test_a_width_that_hardly_differs_is_told_as_such():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    settings = {**FIXED, "calibration_size": 0.5, "lengthscale": 10.0, "symmetry_penalty": np.inf}
    model = SoSBandRegressor(LinearRegression(), **settings).fit(X, rng.normal(size=200))
    assert "the width hardly differs from row to row; what little does follows bands that vary with" in model.summary()
