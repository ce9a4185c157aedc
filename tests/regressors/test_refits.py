"""A fitted model that is not frozen is fitted anew, and that is said once; levels that no affordable test resolves."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sosbands import SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.exceptions import RefittedWarning
from sosbands.regressors import PAPER_SETTINGS
from sosbands.tuning import Rules
from sosbands.tuning.rules import SMALLEST_LEVEL, permutations_for

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 2))
Y = X[:, 0] + RNG.standard_normal(40)
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "random_state": 0}
FAST["bands"] = BandSettings(tol=1e-2)
FITTED = LinearRegression().fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        SoSBandRegressor(FITTED, **FAST),
        SoSBandRegressor(make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y), **FAST),
        SoSBandRegressor(FITTED, **FAST, calibration_size="cross", cv=2),
        SplitCP(FITTED),
        LocallyWeightedCP(scale_estimator=FITTED, estimator=LinearRegression()),
    ],
)
def test_a_refit_is_told_once(model):
    name = "scale_estimator" if model.estimator is not FITTED and hasattr(model, "scale_estimator") else "estimator"
    expected = f"^{name}: the LinearRegression is fitted already, but a copy .*FrozenEstimator.*clone"
    with pytest.warns(RefittedWarning, match=expected) as heard:
        model.fit(X, Y)
    assert len(heard) == 1
    assert heard[0].filename == __file__


def test_nothing_is_told_of_models_that_are_used_as_they_are_or_that_are_not_fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (FrozenEstimator(FITTED), LinearRegression(), clone(FITTED), FITTED.predict):
            SplitCP(model).fit(X, Y)
        search = GridSearchCV(SplitCP(LinearRegression(), random_state=0), {"confidence_level": [0.8, 0.9]}, cv=2)
        cross_val_score(search.fit(X, Y).best_estimator_, X, Y, cv=2)
        clone(SplitCP(FITTED)).fit(X, Y)


def test_the_frozen_model_is_the_one_that_was_given():
    frozen = SplitCP(FrozenEstimator(FITTED), random_state=0).fit(X[:20], 5 * Y[:20])
    assert np.array_equal(frozen.predict(X), FITTED.predict(X))


# ---------------------------------------------------------------- levels


@pytest.mark.parametrize("level", [1e-9, 1e-300, np.nextafter(SMALLEST_LEVEL, 0)])
def test_levels_below_what_permutations_resolve_are_refused(level):
    expected = "^level=.*: expected at least 0.0001, as p-values of the 9999 permutations made at most are"
    with pytest.raises(ValueError, match=expected):
        Rules(level=level)


@pytest.mark.parametrize(("level", "count"), [(0.5, 199), (0.05, 199), (0.01, 999), (0.001, 9999), (1e-4, 9999)])
def test_permutations_of_a_level(level, count):
    assert permutations_for(level) == Rules(level=level).permutations == count
    assert (count + 1) * level >= 1


def test_the_smallest_level_can_be_significant():
    """With 999 flips no p-value was as small as it."""
    skewed = np.random.default_rng(1).exponential(size=200) ** 2
    points = np.linspace(0, 1, 200)[:, None]
    model = SoSBandRegressor(lambda rows: np.full(len(rows), 0.5), rules=Rules(level=SMALLEST_LEVEL), base_scale="none")
    model.set_params(noise_features="inputs", lengthscale=1.0, calibration_size=20, random_state=0).fit(points, skewed)
    assert model.tuning_.symmetry.n_permutations == 9999
    assert model.tuning_.symmetry.p_value == 1e-4
