"""The blend of point models: weights by brute force, out-of-fold predictions by hand, spreads, and the default."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_checks import expected_failures
from sosbands.point_models import GaussianProcess, ModelBlend, default_regressor, learn_residuals
from sosbands.point_models.blend import LEAST_SPREAD, blend_weights
from sosbands.point_models.defaults import model_words
from sosbands.point_models.gaussian_process import LIKELIHOOD_ROWS
from sosbands.point_models.spread import knows_spread, predict_with_spread

RNG = np.random.default_rng(2)
N = 90
X = RNG.uniform(-1, 1, (N, 2))
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(N)
NEW = RNG.uniform(-1, 1, (20, 2))


def objective(errors, weights, equal_rows):
    squares = np.mean(np.square(errors), axis=0)
    pull = equal_rows * squares.min() * np.square(weights - 1 / len(weights)).sum()
    return np.square(errors @ weights).sum() + pull


@pytest.mark.parametrize("equal_rows", [0.0, 20.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_best_of_a_fine_grid(seed, equal_rows):
    rng = np.random.default_rng(seed)
    errors = rng.standard_normal((50, 3)) * [1.0, 1.3, 2.0] + 0.5 * rng.standard_normal((50, 1))
    found = blend_weights(errors, equal_rows)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert (found >= 0).all()
    steps = np.linspace(0, 1, 101)
    grid = [np.array([a, b, 1 - a - b]) for a, b in itertools.product(steps, steps) if a + b <= 1 + 1e-12]
    best = min(objective(errors, weights, equal_rows) for weights in grid)
    assert objective(errors, found, equal_rows) <= best * (1 + 1e-6)


def test_equal_members_share_and_a_useless_one_gets_nothing():
    rng = np.random.default_rng(0)
    good = rng.standard_normal(400)
    np.testing.assert_allclose(blend_weights(np.column_stack([good, good]), 20.0), [0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(blend_weights(np.column_stack([good, 100 + good]), 20.0), [1, 0], atol=1e-3)
    assert blend_weights(np.zeros((5, 2)), 20.0).tolist() == [0.5, 0.5]
    assert blend_weights(good[:, None], 20.0).tolist() == [1.0]


@pytest.fixture(scope="module")
def blend():
    members = [Ridge(), BayesianRidge(), ExtraTreesRegressor(10, min_samples_leaf=2, random_state=0)]
    return ModelBlend(members, cv=4, random_state=0).fit(X, Y)


def test_out_of_fold_predictions_by_hand(blend):
    folds = KFold(4, shuffle=True, random_state=0)
    errors = np.column_stack([cross_val_predict(clone(member), X, Y, cv=folds) - Y for member in blend.members])
    weights = blend_weights(errors, 20.0)
    np.testing.assert_allclose(blend.weights_, weights[weights > 0], rtol=1e-9)
    np.testing.assert_allclose(blend.out_of_fold_prediction_, Y + errors @ weights, rtol=1e-9)


def test_predictions_and_the_variance_of_a_mixture(blend):
    each = [predict_with_spread(member, NEW) for member in blend.members_]
    mean = sum(w * m for w, (m, _) in zip(blend.weights_, each, strict=True))
    np.testing.assert_allclose(blend.predict(NEW), mean, rtol=1e-12)
    variance = np.zeros(len(NEW))
    parts = zip(blend.weights_, each, blend.spread_factors_, blend.least_spreads_, strict=True)
    for weight, (m, spread), factor, least in parts:
        variance += weight * ((factor * np.maximum(spread, least)) ** 2 + (m - mean) ** 2)
    found, std = blend.predict(NEW, return_std=True)
    np.testing.assert_allclose(found, mean, rtol=1e-12)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-12)


def test_spreads_have_standardised_errors_of_mean_square_one():
    """A member without a spread of its own has that of its out-of-fold errors."""
    model = ModelBlend([LinearRegression()], cv=3, random_state=1).fit(X, Y)
    r = Y - model.out_of_fold_prediction_
    np.testing.assert_allclose(model.out_of_fold_std_, np.sqrt(np.mean(r**2)), rtol=1e-12)
    assert model.least_spreads_.tolist() == [LEAST_SPREAD]


def test_members_without_weight_are_not_kept():
    model = ModelBlend([LinearRegression(), DummyRegressor(strategy="constant", constant=1e6)], random_state=0).fit(
        X, Y
    )
    assert [type(member) for member in model.members_] == [LinearRegression]
    assert model_words(model) == "a blend of 1.00 LinearRegression"


def test_residuals_are_those_that_the_weights_needed():
    model = ModelBlend([Ridge(), LinearRegression()], random_state=0)
    found = learn_residuals(model, X, Y, with_std=True)
    assert found.rule == "out-of-fold"
    np.testing.assert_array_equal(found.residual, Y - model.out_of_fold_prediction_)
    np.testing.assert_array_equal(found.std, model.out_of_fold_std_)
    assert learn_residuals(clone(model), X, Y, residuals="in-sample").residual.std() < found.residual.std()


def test_processes_give_the_same_numbers():
    members = [Ridge(), ExtraTreesRegressor(5, random_state=0)]
    one, two = (ModelBlend(members, random_state=0, n_jobs=jobs).fit(X, Y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.out_of_fold_prediction_, two.out_of_fold_prediction_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv=1: expected an int >= 2"),
        ({"equal_rows": -1}, "equal_rows=-1: expected a number >= 0"),
        ({"members": []}, r"members=\[\]: expected at least one regressor"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ModelBlend(**{"members": [Ridge()], **options}).fit(X, Y)


@parametrize_with_checks([ModelBlend([Ridge(), LinearRegression()])], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_default_predicts_nearly_as_well_as_the_best_of_its_members():
    """On rows that it has not seen; which member that is, it does not know."""
    rng = np.random.default_rng(5)
    rows = rng.uniform(-1, 1, (400, 3))
    y = np.sin(3 * rows[:, 0]) + np.where(rows[:, 1] > 0, 1.0, 0.0) + 0.3 * rng.standard_normal(400)
    model = default_regressor(150, random_state=0).fit(rows[:150], y[:150])
    errors = [np.mean((member.predict(rows[150:]) - y[150:]) ** 2) for member in model.members_]
    assert len(errors) >= 2
    assert np.mean((model.predict(rows[150:]) - y[150:]) ** 2) < 1.03 * min(errors) < np.mean(errors)


# ---------------------------------------------------------------- spreads


def test_forests_are_as_unsure_as_their_trees_are_apart():
    forest = RandomForestRegressor(7, random_state=0).fit(X, Y)
    each = np.array([tree.predict(NEW) for tree in forest.estimators_])
    piped = make_pipeline(StandardScaler(), RandomForestRegressor(7, random_state=0)).fit(X, Y)
    inner = np.array([tree.predict(piped[0].transform(NEW)) for tree in piped[1].estimators_])
    for model, values in ((forest, each), (FrozenEstimator(forest), each), (piped, inner)):
        assert knows_spread(model)
        mean, spread = predict_with_spread(model, NEW)
        np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(spread, values.std(axis=0), atol=1e-6)


def test_models_that_know_a_deviation_and_models_that_do_not():
    process = GaussianProcess().fit(X[:30], Y[:30])
    np.testing.assert_array_equal(predict_with_spread(process, NEW)[1], process.predict(NEW, return_std=True)[1])
    assert not knows_spread(Ridge())
    mean, spread = predict_with_spread(Ridge().fit(X, Y), NEW)
    np.testing.assert_array_equal(spread, np.ones(20))
    np.testing.assert_array_equal(mean, Ridge().fit(X, Y).predict(NEW))


# ---------------------------------------------------------------- the process in it


def test_a_process_may_start_where_another_ended():
    first = GaussianProcess().fit(X, Y)
    again = GaussianProcess(start=first.theta_).fit(X, Y)
    assert again.n_iter_ <= 3
    np.testing.assert_allclose(again.lengthscale_, first.lengthscale_, rtol=1e-2)
    with pytest.raises(ValueError, match="start=.*expected 4 numbers, as theta_"):
        GaussianProcess(start=np.zeros(3)).fit(X, Y)


def test_the_likelihood_of_many_rows_is_that_of_a_sample(monkeypatch):
    assert LIKELIHOOD_ROWS == 1000
    monkeypatch.setattr("sosbands.point_models.gaussian_process.LIKELIHOOD_ROWS", 40)
    model = GaussianProcess().fit(X, Y)
    some = np.sort(np.random.default_rng(0).choice(N, 40, replace=False))
    assert model.X_train_.shape == (N, 2)  # conditioned on all
    Z, z = (X - X.mean(0)) / X.std(0), (Y - Y.mean()) / Y.std()
    from sosbands.point_models.gaussian_process import log_marginal_likelihood

    value, gradient = log_marginal_likelihood(model.theta_, Z[some], z[some])
    assert model.log_marginal_likelihood_ == pytest.approx(value, rel=1e-10)
    assert np.abs(gradient[1:2]).max() < 0.1
