"""Learning coverages and scores of the page are those of the estimator; lists that are packed can be read back."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from test_calibrated import check_numbers

from report_pages import QUIET, fitted_alike
from report_payload import in_use
from sosbands import SoSBandRegressor
from sosbands.conformal import interval
from sosbands.exceptions import ZeroResidualsWarning
from sosbands.regressors import PAPER_SETTINGS
from sosbands.report import explore
from sosbands.report.calibrated import calibrated, groups_along, levels_offered
from sosbands.report.payload import Pool, payload
from sosbands.report.steps import few_of
from spelled import spelled

pytestmark = QUIET


def quick(**settings):
    fixed = {**PAPER_SETTINGS, "lengthscale": 0.15, "symmetry_penalty": 30.0, "learning_coverage": 0.7}
    fixed["constant"] = True  # so that bands widen off the data, to what the learning coverage says
    return SoSBandRegressor(LinearRegression(), **spelled(**{**fixed, **settings}))


@pytest.fixture(scope="module")
def explored():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (140, 1))
    y = np.sin(2 * X[:, 0]) + (1.1 + X[:, 0]) * rng.exponential(size=140)
    return explore(X, y, estimator=quick()), X, y


def test_the_coverage_in_use_is_among_those_offered(explored):
    data = explored[0]
    assert [path.learning_coverage for path in data.coverages] == [0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0]
    assert data.coverages[1] is data.path
    assert [path.chosen is None for path in data.coverages] == [True, False, *[True] * 5]
    for path in data.coverages:
        assert all(step.certificate["status"] == "converged" for step in path.steps)
        assert all(step.certificate["gap"] <= 1e-4 for step in path.steps)
    stored = payload(data)
    assert [path["coverage"] for path in stored["coverages"]] == [0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1]
    assert stored["coverage"] == 1


def test_other_coverages_have_few_penalties():
    penalties = [0.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 500.0, 1000.0, np.inf]
    assert few_of(penalties, 5) == [0, 20, 30, 100, np.inf]
    assert few_of(penalties, 0) == [0, 20, 100, np.inf]
    assert few_of([7.0], 0) == [7]


@pytest.mark.parametrize(("coverage", "penalty", "score"), [(0.5, 0.0, "added"), (0.99, np.inf, "scaled")])
def test_a_step_is_the_estimator_with_these_settings(explored, coverage, penalty, score):
    data, X, y = explored
    path = next(path for path in data.coverages if path.learning_coverage == coverage)
    step = next(step for step in path.steps if step.symmetry_penalty == penalty)
    step = next(each for each in (step, *step.others) if each.score.name == score)
    settings = {"learning_coverage": coverage, "symmetry_penalty": penalty, "conformal_score": score, "tol": 1e-6}
    model = fitted_alike(data, X, y, quick(**settings))
    band = step.score.band(data.test.prediction, *step.test, unit=data.test_unit)
    found = interval(band, *np.broadcast_to(model.quantile(0.8), 2))[0]
    expected, rms = model.predict_interval(X[data.test.numbers], 0.8), model.residual_rms_
    np.testing.assert_allclose(found, expected, atol=0.02 * rms)
    axis = data.axes[0]
    band = step.score.band(axis.prediction, *step.curve, unit=data.curve_unit)
    found = interval(band, *np.broadcast_to(model.quantile(0.8), 2))[0]
    np.testing.assert_allclose(found, model.predict_interval(axis.grid[:, None], 0.8), atol=0.02 * rms)
    assert path.curve_support.min() < 0.2  # off the data too
    own = data.path.steps[data.path.chosen]
    assert np.abs(np.subtract(step.test, own.test)).max() > 0.1 * rms  # another band


def test_the_other_score_is_the_estimator_with_it_at_every_level(explored):
    data, X, y = explored
    data = replace(data, calibration="asymmetric")
    (other,) = data.path.steps[data.path.chosen].others
    assert (data.score.name, other.score.name) == ("added", "scaled")
    groups = [groups_along(x) for x in data.test.positions]
    found = calibrated(other, data, levels_offered(data), groups)
    model = fitted_alike(data, X, y, quick(conformal_score="scaled", calibration="asymmetric"))
    assert check_numbers(data, model, X[data.test.numbers], found, groups) == 0  # ends that are scaled never cross
    stored, drawn = in_use(data, "scaled")
    finite = np.isfinite(found.width)
    np.testing.assert_allclose(drawn["width"], found.width[finite], atol=1e-5)
    np.testing.assert_array_equal(drawn["both"], found.both)
    units = [np.maximum(f, floor) for f, floor in zip(other.test, other.score.floors, strict=True)]
    np.testing.assert_allclose(drawn["test"]["units"], units, atol=1e-5)
    assert stored["scores"] == ["added", "scaled"]
    assert stored["moves"][1] == ["the reach of {ends} multiplied by {q}", "the reach of {ends} multiplied by -{q}"]


def test_residuals_that_are_zero_have_one_coverage():
    X = np.arange(40.0)[:, None]
    with pytest.warns(ZeroResidualsWarning):
        data = explore(X, np.zeros(40), estimator=quick())
    assert [path.learning_coverage for path in data.coverages] == [0.7]
    assert data.why is None
    stored = payload(data)
    assert (len(stored["coverages"]), stored["why"]) == (1, None)


class TestPool:
    @pytest.mark.parametrize("unit", [1e-5, 0.03, 1.0, 4000.0])
    def test_lists_are_rounded_to_their_unit(self, unit):
        pool, lists = Pool(unit), [1e4 * unit * np.random.default_rng(0).normal(size=50), np.zeros(0)]
        assert [pool.add(values) for values in lists] == [0, 1]
        for found, values in zip(pool.lists(), lists, strict=True):
            np.testing.assert_allclose(found, values, atol=unit / 2)

    def test_equal_lists_are_stored_once(self):
        pool, values = Pool(0.1), np.arange(100.0)
        assert [pool.add(values), pool.add(values + 1), pool.add(values + 0.01)] == [0, 1, 0]
        assert pool.lists() == [list(range(100)), list(range(1, 101))]
