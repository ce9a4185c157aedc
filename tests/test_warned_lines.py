"""Warnings are given at the line of whoever called the package, however far below it they arise."""

import threading
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

from sosbands import SoSBandRegressor, learn_band_path, learn_bands
from sosbands._words import warn
from sosbands.bands import BandSettings
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.exceptions import (
    LearningRowsWarning,
    LowRankWarning,
    OffDataWarning,
    RefittedWarning,
    TooFewCalibrationPointsWarning,
    ZeroResidualsWarning,
)
from sosbands.regressors import PAPER_SETTINGS

rng = np.random.default_rng(0)
X, Y = rng.uniform(-1, 1, (60, 4)), rng.standard_normal(60)
FITTED = LinearRegression().fit(X, Y)
FAST = {
    **PAPER_SETTINGS,
    "lengthscale": "median",
    "symmetry_penalty": 1.0,
    "bands": BandSettings(tol=1e-2),
    "random_state": 0,
}
NARROW = {**FAST, "lengthscale": 0.5, "bands": BandSettings(tol=1e-2, rank=2)}
FAR = np.full((3, 4), 50.0)


class Doubtful(LinearRegression):
    """A point model that warns by the package's own means."""

    def fit(self, X, y, sample_weight=None):
        warn("doubtful", UserWarning)  # in the tests' module: this is the user's line
        return super().fit(X, y, sample_weight)


@pytest.fixture(scope="module")
def bands():
    return SoSBandRegressor(LinearRegression(), **FAST).fit(X, Y)


@pytest.fixture(scope="module")
def few():
    return SplitCP(LinearRegression(), random_state=0).fit(X[:20], Y[:20])


@pytest.mark.parametrize(
    ("category", "call"),
    [
        (ZeroResidualsWarning, lambda *_: learn_bands(X, 0 * Y)),
        (ZeroResidualsWarning, lambda *_: list(learn_band_path(X, 0 * Y, [1.0]))),
        (LowRankWarning, lambda *_: learn_bands(X, Y, rank=2, lengthscale=0.5, constant=True, tol=1e-2)),
        (RefittedWarning, lambda *_: SoSBandRegressor(FITTED, **FAST).fit(X, Y)),
        (RefittedWarning, lambda *_: SoSBandRegressor(FITTED, **FAST, calibration_size="cross", cv=2).fit(X, Y)),
        (RefittedWarning, lambda *_: SplitCP(FITTED).fit(X, Y)),
        (RefittedWarning, lambda *_: LocallyWeightedCP(LinearRegression(), scale_estimator=FITTED).fit(X, Y)),
        (LowRankWarning, lambda *_: SoSBandRegressor(LinearRegression(), **NARROW).fit(X, Y)),
        (LowRankWarning, lambda *_: cross_val_score(SoSBandRegressor(LinearRegression(), **NARROW), X, Y, cv=2)),
        (OffDataWarning, lambda bands, _: bands.predict_interval(FAR)),
        (OffDataWarning, lambda bands, _: bands.evaluate(FAR, Y[:3])),
        (LearningRowsWarning, lambda bands, _: bands.evaluate(X, Y)),
        (TooFewCalibrationPointsWarning, lambda _, few: few.predict_interval(X, 0.95)),
        (TooFewCalibrationPointsWarning, lambda _, few: few.predict_quantile(X, [0.99])),
        (TooFewCalibrationPointsWarning, lambda _, few: few.quantile(0.95)),
    ],
)
def test_the_line_is_that_of_the_call(category, call, bands, few):
    with pytest.warns(category) as caught:
        call(bands, few)
    places = {(each.filename, each.lineno) for each in caught if each.category is category}
    assert places == {(__file__, call.__code__.co_firstlineno)}


@pytest.mark.parametrize("jobs", [None, 2])
def test_what_the_copies_of_a_cross_fit_warn_of(jobs):
    model = SoSBandRegressor(LinearRegression(), **NARROW, calibration_size="cross", cv=2, n_jobs=jobs)
    with pytest.warns(LowRankWarning) as caught:
        model.fit(X, Y)
    assert {each.filename for each in caught} == {__file__}


def test_a_line_between_two_calls_of_the_package_is_the_users():
    with pytest.warns(UserWarning, match="doubtful") as caught:
        SplitCP(Doubtful()).fit(X, Y)
    assert {(each.filename, each.lineno) for each in caught} == {(__file__, Doubtful.fit.__code__.co_firstlineno + 1)}


def test_a_run_as_a_module_is_the_package():
    module = {"__name__": "__main__", "__package__": "sosbands", "warn": warn}
    with pytest.warns(UserWarning, match="said") as caught:
        exec("warn('said', UserWarning)", module)
    assert caught[0].filename == __file__


def test_a_thread_without_a_line_of_a_user_warns_all_the_same():
    thread = threading.Thread(target=partial(warn, "said", UserWarning))
    with pytest.warns(UserWarning, match="said") as caught:
        run(thread)
    assert caught[0].filename == threading.__file__


def run(thread):
    thread.start()
    thread.join()


def test_one_line_warns_once_by_default():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn("said", UserWarning)
        warn("said", UserWarning)
    assert len(caught) == 2
