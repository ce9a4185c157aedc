"""The blend of point models: weights by brute force, out-of-fold predictions by hand, spreads, and the default."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_checks import expected_failures
from sosbands.point_models import GaussianProcess, ModelBlend, default_regressor, learn_residuals
from sosbands.point_models.blend import HUBER, LEAST_SPREAD, _least_squares, _robust_weights, blend_weights, model_words
from sosbands.point_models.gaussian_process import LIKELIHOOD_ROWS, MarginalLikelihood
from sosbands.point_models.user_model import knows_spread, predict_rows, predict_trees, predict_with_spread

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
    found = _least_squares(errors, equal_rows, np.ones(50))
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
    assert blend_weights(np.tile(good[:50, None], 60), 20.0) == pytest.approx(1 / 60)


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
    useless = DummyRegressor(strategy="constant", constant=1e6)
    model = ModelBlend([LinearRegression(), useless], random_state=0).fit(X, Y)
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


def test_bad_arguments_are_named():
    for options, message in (({"equal_rows": -1}, "equal_rows=-1: expected a number >= 0"), ({"cv": 1}, "cv=1: exp")):
        with pytest.raises(ValueError, match=message):
            ModelBlend([Ridge()], **options).fit(X, Y)
    with pytest.raises(ValueError, match=r"members=\[\]: expected at least one regressor"):
        ModelBlend([]).fit(X, Y)


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
    error = np.mean((model.predict(rows[150:]) - y[150:]) ** 2)
    assert error < 1.08 * min(errors)  # 1.01 to 1.02 with other seeds
    assert error < np.mean(errors)


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


# ---------------------------------------------------------------- the process in it


def test_a_process_may_start_where_another_ended():
    first = GaussianProcess().fit(X, Y)
    again = GaussianProcess(start=first.theta_).fit(X, Y)
    assert again.n_iter_ <= 3
    np.testing.assert_allclose(again.lengthscale_, first.lengthscale_, rtol=1e-2)
    with pytest.raises(ValueError, match="start=.*expected 4 numbers, as theta_"):
        GaussianProcess(start=np.zeros(3)).fit(X, Y)


def test_the_likelihood_of_many_rows_is_that_of_a_sample(monkeypatch):
    assert LIKELIHOOD_ROWS == 500
    monkeypatch.setattr("sosbands.point_models.gaussian_process.LIKELIHOOD_ROWS", 40)
    model = GaussianProcess().fit(X, Y)
    some = np.sort(np.random.default_rng(0).choice(N, 40, replace=False))
    assert model.X_train_.shape == (N, 2)  # conditioned on all
    Z, z = (X - X.mean(0)) / X.std(0), (Y - Y.mean()) / Y.std()
    value, gradient = MarginalLikelihood(Z[some], z[some])(model.theta_)
    assert model.log_marginal_likelihood_ == pytest.approx(value, rel=1e-10)
    assert np.abs(gradient[1:2]).max() < 0.1


# ---------------------------------------------------------------- folds that know nothing of what they predict


@pytest.mark.parametrize("n", [60, 620])
def test_a_target_tells_its_own_out_of_fold_prediction_nothing(n):
    """Not even through hyperparameters: those of a fold come from rows that no fold of its group holds out."""
    rng = np.random.default_rng(0)
    rows, targets = rng.standard_normal((n, 3)), rng.standard_normal(n)
    targets += 2 * rows[:, 0]
    other = targets.copy()
    other[7] += 3.0
    one = ModelBlend([GaussianProcess(max_iter=10), Ridge()], random_state=0).fit(rows, targets)
    assert one.members_[0].start is None
    process = ModelBlend([GaussianProcess(max_iter=10)], random_state=0)
    seen = [clone(process).fit(rows, y).out_of_fold_prediction_ for y in (targets, other)]
    assert seen[0][7] == seen[1][7]
    assert np.abs(seen[0] - seen[1]).max() > 1e-3  # of the others it tells something


def test_the_process_of_all_rows_starts_from_those_of_the_folds(monkeypatch):
    starts = []
    inner = GaussianProcess._maximise

    def watched(self, *arguments):
        starts.append(self.start)
        return inner(self, *arguments)

    monkeypatch.setattr(GaussianProcess, "_maximise", watched)
    ModelBlend([GaussianProcess()], cv=5, random_state=0).fit(X, Y)
    # the hyperparameters of two groups, two folds of each, the fold that is its own group, and all rows
    assert [start is None for start in starts] == [True] * 2 + [False] * 4 + [True, False]
    np.testing.assert_array_equal(starts[2], starts[3])
    assert starts[-1].shape == (2, 4)


def test_one_row_with_a_huge_error_decides_nothing():
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((200, 2)) * [1.0, 1.6]
    before = blend_weights(errors, 20.0)
    squares = _least_squares(errors, 20.0, np.ones(200))
    errors[3] += [60.0, 40.0]
    assert before[0] == pytest.approx(squares[0], abs=0.05)
    assert _robust_weights(errors, 20.0, np.ones(200), HUBER)[0] == pytest.approx(before[0], abs=0.3)
    assert _robust_weights(errors, 20.0, np.ones(200), np.inf)[0] < 0.3  # which squares alone would let it do
    assert 0.3 < blend_weights(errors, 20.0)[0] < before[0]  # half of the resamples, half of their weight


def test_weights_do_not_depend_on_the_unit_of_the_errors():
    errors = np.random.default_rng(0).standard_normal((80, 3)) * [1.0, 1.2, 2.0]
    for unit in (1e-200, 1e200):
        np.testing.assert_allclose(blend_weights(unit * errors, 20.0), blend_weights(errors, 20.0), rtol=1e-9)


@pytest.mark.parametrize("forest", [ExtraTreesRegressor(30, random_state=0), RandomForestRegressor(30, random_state=0)])
def test_trees_called_one_by_one_are_the_forest_to_the_bit(forest):
    forest = clone(forest).fit(X, Y)
    np.testing.assert_array_equal(predict_rows(forest, X), forest.predict(X))
    spread = predict_with_spread(forest, X)[1]
    np.testing.assert_allclose(spread, np.std(list(predict_trees(forest, X)), axis=0), rtol=1e-12)
    np.testing.assert_array_equal(predict_with_spread(forest, X[3:4])[1], spread[3:4])
    np.testing.assert_array_equal(predict_rows(forest, X[:1]), forest.predict(X[:1]))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("rows", [np.full((1, 4), 1e300), np.zeros((3, 5)), np.zeros((3, 2)), np.full((2, 4), "a")])
def test_forests_say_what_is_wrong_with_rows(rows):
    forest = ExtraTreesRegressor(5, random_state=0).fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError) as theirs:  # noqa: PT011
        forest.predict(rows)
    with pytest.raises(ValueError, match=re.escape(str(theirs.value))):
        predict_rows(forest, rows)
    with pytest.raises(ValueError, match=r"feature|float|large"):
        predict_with_spread(forest, rows)


def test_forests_of_renamed_columns_or_two_targets_are_refused():
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    named = ExtraTreesRegressor(5, random_state=0).fit(frame, np.arange(4.0))
    with pytest.raises(ValueError, match="feature names should match"):
        predict_rows(named, frame.rename(columns={"a": "e"}))
    two = ExtraTreesRegressor(5, random_state=0).fit(np.eye(4), np.ones((4, 2)))
    with pytest.raises(ValueError, match="one number per row"):
        predict_rows(two, np.eye(4))


def test_a_group_of_folds_without_any_weight_outside_of_it_learns_in_its_folds():
    weight = np.zeros(len(Y))
    weight[:12] = 1.0
    for seed in range(4):
        model = ModelBlend([GaussianProcess(), Ridge()], cv=5, random_state=seed).fit(X, Y, sample_weight=weight)
        assert np.isfinite(model.predict(NEW)).all()


# ---------------------------------------------------------------- forests behind transformers that make sparse matrices


def brands(n=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"brand": rng.choice(list("abcdefgh"), n), "fuel": rng.choice(["petrol", "diesel"], n)})
    return X, X["brand"].map(ord).to_numpy() + rng.standard_normal(n)


@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesRegressor])
def test_sparse_columns_give_the_mean_and_the_spread_of_the_trees(forest):
    X, y = brands()
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), forest(10, random_state=0)).fit(X, y)
    sparse = model[:-1].transform(X)
    assert hasattr(sparse, "tocsr")
    mean, spread = predict_with_spread(model, X)
    np.testing.assert_allclose(mean, model.predict(X))
    trees = [tree.predict(sparse.toarray()) for tree in model[-1].estimators_]
    np.testing.assert_allclose(spread, np.std(trees, axis=0), atol=1e-12)
    assert spread.max() > 0
