"""The residual stage: predictions, residuals and standard deviations of the learning rows by each rule."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sosbands.exceptions import LeaveOneOutError
from sosbands.point_models import (
    GaussianProcess,
    SmoothingSplineRegressor,
    learn_residuals,
)
from sosbands.point_models.user_model import CallableRegressor, knows_spread, one_per_row, shuffled_folds
from sosbands.tables.rows import row_blocks

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 2))
Y = np.sin(3 * X[:, 0]) + (0.3 + X[:, 1] ** 2) * RNG.standard_normal(40)
KNOWS_STD = {
    "BayesianRidge": BayesianRidge(),
    "scikit-learn's process": GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None),
    "GaussianProcess": GaussianProcess(),
    "pipeline": make_pipeline(StandardScaler(), BayesianRidge()),
}


def by_hand(model, rule, seed=3):
    """Prediction and standard deviation of each row by the definition of the rule."""

    def predict(fitted, rows):
        return fitted.predict(rows, return_std=True)

    if rule == "in-sample":
        return predict(clone(model).fit(X, Y), X)
    mean, std = np.empty(40), np.empty(40)
    for others, held in KFold(4, shuffle=True, random_state=np.random.RandomState(seed)).split(X):
        mean[held], std[held] = predict(clone(model).fit(X[others], Y[others]), X[held])
    return mean, std


def stage(model, rule="auto", seed=3, **options):
    rng = np.random.RandomState(seed)
    return learn_residuals(clone(model), X, Y, residuals=rule, cv=4, random_state=rng, **options)


def check_stage(run, rule, model):
    """Model, rule, prediction, residual and standard deviation are those by hand."""
    mean, std = by_hand(model, rule)
    found = run(model, rule, with_std=True)
    assert found.rule == rule
    np.testing.assert_array_equal(found.residual, Y - found.prediction)
    np.testing.assert_allclose(found.prediction, mean, rtol=1e-10)
    np.testing.assert_allclose(found.std, std, rtol=1e-10)
    np.testing.assert_array_equal(found.model.predict(X[:5]), clone(model).fit(X, Y).predict(X[:5]))


@pytest.mark.parametrize("rule", ["in-sample", "out-of-fold"])
@pytest.mark.parametrize("name", KNOWS_STD)
def test_each_row_is_predicted_by_the_model_of_the_rule(name, rule):
    check_stage(stage, rule, KNOWS_STD[name])


def in_sample_deviations(model, rule, **options):
    """Broken on purpose: standard deviations of the model that has seen the rows."""
    found = stage(model, rule, **options)
    return replace(found, std=found.model.predict(X, return_std=True)[1])


def test_the_check_rejects_deviations_of_another_model():
    check_stage(in_sample_deviations, "in-sample", BayesianRidge())
    with pytest.raises(AssertionError):
        check_stage(in_sample_deviations, "out-of-fold", BayesianRidge())


def test_leave_one_out_by_the_process_of_the_model():
    for model in (GaussianProcess(), make_pipeline(StandardScaler(), GaussianProcess())):
        found = stage(model, "leave-one-out", with_std=True)
        process = found.model if isinstance(found.model, GaussianProcess) else found.model[-1]
        np.testing.assert_array_equal(found.residual, process.leave_one_out_residuals())
        np.testing.assert_array_equal(found.prediction, Y - found.residual)
        np.testing.assert_array_equal(found.std, process.leave_one_out_std())
    assert stage(GaussianProcess()).rule == "leave-one-out"


@pytest.mark.parametrize("rule", ["in-sample", "leave-one-out", "out-of-fold"])
def test_deviations_cost_nothing_unless_asked_for(rule, monkeypatch):
    monkeypatch.setattr(GaussianProcess, "leave_one_out_std", lambda _: pytest.fail("computed"))
    predict = GaussianProcess.predict
    monkeypatch.setattr(
        GaussianProcess, "predict", lambda self, X, return_std=False: predict(self, X) if not return_std else 1 / 0
    )
    assert stage(GaussianProcess(), rule).std is None


@pytest.mark.parametrize(
    "model", [Ridge(), SmoothingSplineRegressor(), CallableRegressor(lambda rows: rows[:, 0]), FrozenEstimator(Ridge())]
)
def test_models_that_know_no_deviation(model):
    rows = X[:, :1]
    if isinstance(model, FrozenEstimator):
        model = FrozenEstimator(Ridge().fit(rows, Y))
    assert learn_residuals(model, rows, Y, residuals="in-sample", with_std=True).std is None
    assert not knows_spread(make_pipeline(StandardScaler(), model))


def test_a_frozen_model_is_asked_for_the_deviation_it_knows():
    frozen = FrozenEstimator(make_pipeline(StandardScaler(), BayesianRidge()).fit(X[:20], Y[:20]))
    found = learn_residuals(frozen, X, Y, with_std=True)
    assert found.rule == "in-sample"
    np.testing.assert_array_equal(found.std, frozen.predict(X, return_std=True)[1])


def test_one_row_has_in_sample_residuals():
    for rule in ("leave-one-out", "out-of-fold"):
        found = learn_residuals(GaussianProcess(), X[:1], Y[:1], residuals=rule, with_std=True)
        assert found.rule == "in-sample"
        assert found.residual.tolist() == [0.0]
        variance, noise = found.model.variance_, found.model.noise_variance_
        assert found.std == pytest.approx(np.sqrt(noise + variance * noise / (variance + noise)), rel=1e-6)


def test_only_the_folds_draw_random_numbers():
    for rule, drawn in (("in-sample", 0), ("leave-one-out", 0), ("out-of-fold", 1)):
        rng = np.random.RandomState(5)
        learn_residuals(GaussianProcess(), X, Y, residuals=rule, random_state=rng)
        expected = np.random.RandomState(5)
        if drawn:
            expected.shuffle(np.arange(40))
        assert rng.randint(2**31) == expected.randint(2**31)


def test_a_rule_that_a_model_cannot_follow_is_refused_before_the_fit():
    class Unfit(Ridge):
        def fit(self, X, y):  # noqa: ARG002
            pytest.fail("fitted")

    with pytest.raises(LeaveOneOutError, match="residuals='leave-one-out' with the point model Unfit"):
        learn_residuals(Unfit(), X, Y, residuals="leave-one-out")


def test_folds_and_blocks(monkeypatch):
    assert [len(shuffled_folds(n, 5, 0)) for n in (3, 9)] == [3, 5]
    monkeypatch.setattr("sosbands.tables.rows.BLOCK_ROWS", 17)
    assert row_blocks(40) == [slice(0, 17), slice(17, 34), slice(34, 40)]
    whole = GaussianProcess().fit(X, Y).predict(X, return_std=True)
    pieces = stage(GaussianProcess(), "in-sample", with_std=True)
    np.testing.assert_allclose([pieces.prediction, pieces.std], whole, rtol=1e-12)


def test_predictions_of_another_shape_are_refused():
    assert one_per_row([[1], [2]], 2, "model").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"model has shape \(2, 2\): expected \(2,\), one"):
        one_per_row(np.ones((2, 2)), 2, "model")
