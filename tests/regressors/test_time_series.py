"""Rows in the order of time: no residual of a model that saw later ones, the last held back, rows without folds."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, LeaveOneOut, PredefinedSplit, ShuffleSplit, TimeSeriesSplit

from sosbands import GaussianProcess, SmoothingSplineRegressor, SoSBandRegressor, load
from sosbands.baselines import LocallyWeightedCP
from sosbands.exceptions import UntrustedTypesError
from sosbands.point_models import ModelBlend, learn_residuals
from sosbands.point_models.user_model import own_splits
from sosbands.tables.rows import last_rows
from sosbands.tuning.search import held_out_folds

FIXED = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 0.5, "width_penalty": 1.0}
FIXED |= {"learning_coverage": 0.9, "symmetry_penalty": 1.0, "conformal_score": "added", "random_state": 0}

N = 120
TIME = np.arange(N, dtype=float)
RNG = np.random.default_rng(0)
X = np.column_stack([TIME, RNG.normal(size=N)])
Y = 0.05 * TIME + X[:, 1] + 0.3 * RNG.normal(size=N)

FITS, PREDICTIONS = [], []


class Witness(RegressorMixin, BaseEstimator):
    """A regressor that notes how late the rows were that it learnt from, and how early those that it predicts."""

    def fit(self, X, y):
        self.model_ = LinearRegression().fit(X, y)
        self.latest_ = float(np.max(np.asarray(X)[:, 0]))
        FITS.append(len(y))
        return self

    def predict(self, X):
        PREDICTIONS.append((self.latest_, float(np.min(np.asarray(X)[:, 0]))))
        return self.model_.predict(X)


def saw_nothing_later():
    assert PREDICTIONS
    return all(latest < first for latest, first in PREDICTIONS)


@pytest.fixture(autouse=True)
def _forgotten():
    FITS.clear()
    PREDICTIONS.clear()


# ---------------------------------------------------------------- residuals


@pytest.mark.parametrize("make", [SoSBandRegressor, LocallyWeightedCP], ids=["bands", "local"])
def test_no_row_is_predicted_by_a_model_that_saw_later_ones(make):
    given = FIXED if make is SoSBandRegressor else {"random_state": 0}
    model = make(Witness(), cv=TimeSeriesSplit(4), calibration_size=40, **given).fit(X, Y)
    assert saw_nothing_later()  # the calibration rows, which the final model predicts, included
    assert max(FITS) == len(model.learning_rows_) == 80  # the rows without a residual are learnt from, too
    PREDICTIONS.clear()
    make(Witness(), cv=5, calibration_size=40, **given).fit(X, Y)
    assert not saw_nothing_later()  # shuffled folds are noticed


def test_nor_by_members_of_a_blend():
    blend = ModelBlend([Witness(), LinearRegression()], cv=TimeSeriesSplit(4), random_state=0).fit(X, Y)
    assert saw_nothing_later()
    assert np.array_equal(blend.out_of_fold_rows_, np.arange(24, 120))
    PREDICTIONS.clear()
    ModelBlend([Witness(), LinearRegression()], random_state=0).fit(X, Y)
    assert not saw_nothing_later()


def test_residuals_are_those_of_copies_fitted_to_earlier_rows():
    found = learn_residuals(LinearRegression(), X, Y, cv=TimeSeriesSplit(3))
    assert found.rule == "out-of-fold"
    assert np.array_equal(found.rows, np.arange(30, 120))
    for learn, held in TimeSeriesSplit(3).split(X):
        wanted = Y[held] - LinearRegression().fit(X[learn], Y[learn]).predict(X[held])
        np.testing.assert_allclose(found.residual[held - 30], wanted, rtol=1e-12)
    np.testing.assert_allclose(found.model.coef_, LinearRegression().fit(X, Y).coef_)
    by_number = learn_residuals(LinearRegression(), X, Y, cv=4, random_state=7)
    by_splitter = learn_residuals(LinearRegression(), X, Y, cv=KFold(4, shuffle=True, random_state=7))
    np.testing.assert_allclose(by_splitter.residual, by_number.residual, rtol=1e-12)


@pytest.mark.parametrize("estimator", [GaussianProcess(max_iter=3), SmoothingSplineRegressor()])
def test_models_with_residuals_of_their_own_keep_to_the_folds(estimator):
    x = X[:, :1] if isinstance(estimator, SmoothingSplineRegressor) else X
    found = learn_residuals(clone(estimator), x, Y, cv=TimeSeriesSplit(2))
    assert found.rule == "out-of-fold"
    assert learn_residuals(clone(estimator), x, Y, cv=2).rule != "out-of-fold"
    copy = clone(estimator).fit(x[:40], Y[:40])
    np.testing.assert_allclose(found.prediction[:40], copy.predict(x[40:80]), rtol=1e-6)


def test_the_default_model_tunes_on_the_rows_that_folds_predict(tmp_path):
    model = SoSBandRegressor(cv=TimeSeriesSplit(3), calibration_size=40, random_state=0, max_seconds=0).fit(X, Y)
    assert model.residual_rule_ == "out-of-fold"
    assert isinstance(model.estimator_, ModelBlend)
    assert np.array_equal(model.estimator_.out_of_fold_rows_, np.arange(20, 80))
    assert model.n_noise_rows_ == model.noise_.n_rows == 60
    assert set(model.noise_.active_lower) | set(model.noise_.active_upper) <= set(range(20, 80))
    assert "of later ones it holds only as far as things stay as they are" in model.summary()
    model.save(tmp_path / "m.sosbands")
    with pytest.raises(UntrustedTypesError, match="TimeSeriesSplit"):  # a type of another package that files may hold
        load(tmp_path / "m.sosbands")
    again = load(tmp_path / "m.sosbands", trusted=["sklearn.model_selection._split.TimeSeriesSplit"])
    assert (again.cv.n_splits, type(again.cv)) == (3, TimeSeriesSplit)
    assert np.array_equal(again.predict_interval(X[20:80]), model.predict_interval(X[20:80]))


def test_tuning_holds_out_blocks_of_consecutive_rows():
    rng = np.random.RandomState(0)
    folds = held_out_folds(20, TimeSeriesSplit(4), rng)
    assert [fold.tolist() for fold in folds] == [list(range(k, k + 5)) for k in (0, 5, 10, 15)]
    assert len(held_out_folds(50, LeaveOneOut(), rng)) == 10
    assert not np.array_equal(held_out_folds(20, 4, rng)[0], np.arange(5))


# ---------------------------------------------------------------- what is held back


def test_the_last_rows_are_held_back():
    given = {"estimator": LinearRegression(), "calibration_size": 0.25, "random_state": 0}
    model, other = (LocallyWeightedCP(cv=cv, **given).fit(X, Y) for cv in (TimeSeriesSplit(3), KFold(3)))
    assert np.array_equal(model.calibration_rows_, np.arange(90, 120))
    assert np.array_equal(model.learning_rows_, np.arange(90))
    assert len(other.calibration_rows_) == 30
    assert not np.array_equal(other.calibration_rows_, model.calibration_rows_)


def test_of_each_group_the_last_rows_in_its_proportion():
    labels = np.array(list("aabababbbbaac"))
    learn, held = last_rows(13, 6, labels)
    for label, count in (("a", 3), ("b", 3)):
        rows = np.flatnonzero(labels == label)
        assert np.array_equal(np.intersect1d(held, rows), rows[-count:])
    assert 12 in learn  # the only one of its group
    assert np.array_equal(np.sort(np.concatenate([learn, held])), np.arange(13))
    assert len(last_rows(10, None)[1]) == 0
    with pytest.raises(ValueError, match="calibration_size=10 leaves none"):
        last_rows(10, 10)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (ShuffleSplit(5, test_size=0.5, random_state=0), "predicts .* of the rows more than once: expected folds that"),
        (TimeSeriesSplit(200), "cv: .*number of folds"),
        (PredefinedSplit(np.arange(len(Y)) % 5), "is about more rows than the .* that are learnt from"),
        ("time", "cv='time': expected an int >= 2, or a splitter such as TimeSeriesSplit"),
        (TimeSeriesSplit, "cv=<class"),
        (1, "cv=1: expected an int >= 2"),
    ],
)
def test_splitters_that_do_not_serve_are_named(cv, message):
    with pytest.raises(ValueError, match=message):
        LocallyWeightedCP(LinearRegression(), cv=cv, random_state=0).fit(X, Y)


class Leaky(KFold):
    def split(self, X, y=None, groups=None):
        for _, held in super().split(X, y, groups):
            yield np.arange(len(X)), held


def test_folds_that_learn_what_they_predict_are_refused():
    with pytest.raises(ValueError, match="learns from rows that it predicts"):
        own_splits(Leaky(3), Y)
    assert own_splits(5, Y) is None
    with pytest.raises(ValueError, match="cv=TimeSeriesSplit.*: expected an int beside calibration_size='cross'"):
        SoSBandRegressor(LinearRegression(), cv=TimeSeriesSplit(3), calibration_size="cross").fit(X, Y)
