"""Coverage of every baseline over random draws, and broken ones that the suites must reject.

Each baseline is learnt once per law; every draw has new calibration and test rows.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from coverage_contract import LAWS, assert_coverage, coverages, run_coverage_suite, run_group_suite, run_shift_suite
from sosbands.baselines import METHODS, HomoscedasticGP, LocallyWeightedCP, make_method
from sosbands.point_models import SmoothingSplineRegressor

KINDS = ("symmetric", "asymmetric")
DRAWS = 200
CELLS = ((20, 0.9), (100, 0.9))
SETTINGS = {
    "cqr-forest": {"n_estimators": 10},
    "cqr-boosting": {"max_iter": 10},
    "split": {"estimator": SmoothingSplineRegressor()},
    "local": {"estimator": SmoothingSplineRegressor(), "scale_estimator": RandomForestRegressor(5, random_state=0)},
}
# A test row may lie outside the learning rows: no harm to coverage.
pytestmark = pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")


@cache
def learnt(name, law_number, kind):
    if name == "cqr-forest":
        pytest.importorskip("quantile_forest", reason="it needs quantile-forest: pip install sosbands[baselines]")
    X, y = LAWS[law_number].draw(np.random.default_rng(100 + law_number), 60)
    settings = {"calibration": kind, "calibration_size": None, "random_state": 0, **SETTINGS.get(name, {})}
    return make_method(name, **settings).fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_coverage(name, kind):
    """Symmetric calibration with skewed, heavy-tailed noise, asymmetric with normal noise."""
    number = 2 if kind == "symmetric" else 0
    model = learnt(name, number, kind)
    run_coverage_suite(lambda _: model, kind, laws=(LAWS[number],), cells=CELLS, draws=DRAWS, n_test=100, seed=number)


@pytest.mark.parametrize("name", ["gp", "split"])
def test_coverage_within_groups(name):
    run_group_suite(lambda _: learnt(name, 2, "symmetric"), "symmetric", draws=DRAWS)


@pytest.mark.parametrize("name", ["gp", "local"])
def test_coverage_under_shift(name):
    run_shift_suite(
        lambda _: learnt(name, 0, "symmetric"), "symmetric", laws=LAWS[:1], sizes=(100,), draws=DRAWS, n_test=100
    )


def test_coverage_of_the_split_inside_fit():
    """Fitted anew in every draw, with 19 of 40 rows held back."""

    def one_draw(rng):
        X, y = LAWS[2].draw(rng, 40)
        model = LocallyWeightedCP(Ridge(), KNeighborsRegressor(5), calibration_size=19, cv=2, random_state=0).fit(X, y)
        X, y = LAWS[2].draw(rng, 100)
        return y, model.predict_interval(X, 0.9)

    assert_coverage(coverages(one_draw, DRAWS, 5).both, 0.9, 0.95, 2, "split inside fit, m=19")


class ForgetsItsLevel(HomoscedasticGP):
    """Makes its band anew from the level of the moment: calibrated with one band, it predicts with another."""

    def _tell_block(self, rows):
        self.band_level_ = self.confidence_level
        return super()._tell_block(rows)


def test_a_band_that_is_not_the_calibrated_one_is_rejected():
    X, y = LAWS[0].draw(np.random.default_rng(100), 60)

    class Model:
        def __init__(self):
            self.inner = ForgetsItsLevel(calibration_size=None).fit(X, y)

        def conformalize(self, X, y):
            self.inner.set_params(confidence_level=0.9).conformalize(X, y)
            return self

        def predict_interval(self, X, level):
            return self.inner.set_params(confidence_level=0.8).predict_interval(X, level)

    broken = Model()
    with pytest.raises(AssertionError, match="is below"):
        run_coverage_suite(lambda _: broken, "symmetric", laws=LAWS[:1], cells=((100, 0.9),), draws=DRAWS)


def test_a_scale_learnt_from_the_calibration_rows_is_rejected():
    """A scale that interpolates the absolute residuals of the calibration rows makes their scores all alike."""
    scale = KNeighborsRegressor(1)
    model = LocallyWeightedCP(lambda Z: np.sin(3 * Z[:, 0]), scale, calibration_size=None)
    model.fit(*LAWS[0].draw(np.random.default_rng(0), 60))

    def one_draw(rng):
        X, y = LAWS[0].draw(rng, 100)
        model.scale_estimator_ = scale.fit(X, np.abs(y - np.sin(3 * X[:, 0])))
        model.conformalize(X, y)
        X, y = LAWS[0].draw(rng, 100)
        return y, model.predict_interval(X, 0.9)

    with pytest.raises(AssertionError, match="is below"):
        assert_coverage(coverages(one_draw, DRAWS, 6).both, 0.9, 0.91, 2, "scale of the calibration rows")
