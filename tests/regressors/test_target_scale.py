"""Targets with a range, and targets that are learnt on another scale."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from sosbands import GaussianProcess, SoSBandRegressor, load
from sosbands.conformal import Band, TargetScale, interval, lower_scores, upper_scores

FIXED = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 1.0, "width_penalty": 3.0}
FIXED |= {"learning_coverage": 0.9, "symmetry_penalty": 1.0, "conformal_score": "scaled", "random_state": 0}


def prices(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.exp(1 + X[:, 0] + (0.3 + 0.4 * (X[:, 1] > 0)) * rng.standard_normal(n))


def counts(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, rng.poisson(np.exp(X[:, 0])).astype(float)


@pytest.mark.parametrize("transform", ["log", "sqrt", PowerTransformer(), FunctionTransformer(np.log1p, np.expm1)])
def test_there_and_back(transform):
    _, y = prices(200)
    scale = TargetScale.learn(transform, None, y)
    z = scale.forward(np.sort(y))
    assert (np.diff(z) > 0).all()
    assert np.allclose(scale.backward(z), np.sort(y), rtol=1e-9)


def test_values_by_hand():
    log = TargetScale.learn("log", (0.5, 20), np.array([1.0, 2.0]))
    assert np.allclose(log.forward(np.array([1.0, np.e])), [0, 1])
    assert log.forward(np.array([0.0, -1.0])).tolist() == [-np.inf, -np.inf]
    assert np.allclose(log.backward(np.array([-9.0, 1.0, 9.0, np.inf])), [0.5, np.e, 20, 20])
    root = TargetScale.learn("sqrt", None, np.array([0.0, 4.0]))
    assert root.forward(np.array([9.0, -1.0])).tolist() == [3.0, -np.inf]
    assert root.backward(np.array([3.0, -2.0])).tolist() == [9.0, 0.0]
    assert TargetScale.learn(None, None, np.ones(3)) is None


def test_what_a_transformer_cannot_hold_is_outside():
    """A quantile transformer is flat beyond the targets that it has seen: nothing there may count as covered."""
    scale = TargetScale.learn(QuantileTransformer(n_quantiles=50), None, np.linspace(1, 2, 50))
    assert scale.forward(np.array([0.5, 3.0])).tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("transform", ["log", "sqrt", PowerTransformer()])
def test_every_observation_up_to_its_own_score_is_inside(transform):
    rng = np.random.default_rng(1)
    y = rng.lognormal(3.0, 2.0, 500)
    scale = TargetScale.learn(transform, (0, None), y)
    z = scale.forward(y)
    band = Band(z - 0.1, z + 0.2 * rng.uniform(-1, 1, 500), rng.uniform(0.1, 3, 500), target=scale)
    ends, _ = interval(band, lower_scores(band, y), upper_scores(band, y))
    assert (ends[:, 0] <= y).all()
    assert (y <= ends[:, 1]).all()


def test_a_range_cuts_ends_and_loses_no_coverage(tmp_path):
    X, y = counts(300)
    new, y_new = counts(2000, 1)
    plain = SoSBandRegressor(Ridge(), target_transform=None, **FIXED).fit(X, y)
    assert "lower ends lie below 0, as no target does: target_range=(0, None)" in plain.summary()
    cut = SoSBandRegressor(Ridge(), target_transform=None, target_range=(0, None), **FIXED).fit(X, y)
    ends, open_ends = cut.predict_interval(new), plain.predict_interval(new)
    assert open_ends[:, 0].min() < 0
    assert np.array_equal(ends, np.maximum(open_ends, 0))
    assert "(no end is below 0)" in cut.summary()
    assert "target_range=(0, None) cuts" not in cut.summary()
    covered = [model.evaluate(new, y_new)["coverage"] for model in (plain, cut)]
    assert covered[0] == covered[1]
    assert cut.predict(new).min() >= 0
    assert cut.predict_quantile(new, [0.05, 0.5]).min() >= 0
    assert cut.predict_ensemble(new[:50]).min() >= 0
    cut.save(tmp_path / "model.sos")
    assert np.array_equal(load(tmp_path / "model.sos").predict_interval(new), ends)


def test_intervals_of_a_logarithm_are_carried_back():
    X, y = prices(200)
    new = prices(50, 1)[0]
    given = {**FIXED, "target_transform": None}
    by_hand = SoSBandRegressor(Ridge(), **given).fit(X, np.log(y))
    model = SoSBandRegressor(Ridge(), **{**given, "target_transform": "log"}).fit(X, y)
    assert np.allclose(model.predict_interval(new), np.exp(by_hand.predict_interval(new)), rtol=1e-10)
    assert np.allclose(model.predict(new), np.exp(by_hand.predict(new)))
    for q in (0.1, 0.5, 0.9):
        assert np.allclose(model.predict_quantile(new, q), np.exp(by_hand.predict_quantile(new, q)), rtol=1e-10)
    assert np.allclose(model.predict_cdf(new, 3.0), by_hand.predict_cdf(new, np.log(3.0)))
    assert np.allclose(model.scores_, by_hand.scores_)
    assert "on the log scale" in model.summary()
    ends = model.predict_interval(new)
    assert np.allclose(model.explain(new).width, ends[:, 1] - ends[:, 0])


def test_out_of_fold_and_cross_calibration_on_another_scale():
    X, y = prices(80)
    new, y_new = prices(1000, 1)
    for size in ("out-of-fold", "cross"):
        given = {**FIXED, "calibration_size": size}
        model = SoSBandRegressor(Ridge(), target_transform="log", **given).fit(X, y)
        by_hand = SoSBandRegressor(Ridge(), target_transform=None, **given).fit(X, np.log(y))
        assert np.allclose(model.predict_interval(new), np.exp(by_hand.predict_interval(new)), rtol=1e-9)
        assert 0.8 < model.evaluate(new, y_new)["coverage"] < 0.98


def test_copies_share_one_scale():
    """Each copy would choose one for itself: their ends, and their scores, could not be compared."""
    X, y = prices(120)
    model = SoSBandRegressor(GaussianProcess(), calibration_size="cross", random_state=0).fit(X, y)
    assert {each.noise_.target for each in (model, *model.calibration_.copies)} == {None}
    assert model.target_transform == "auto"
    with pytest.raises(ValueError, match="target_transform='PowerTransformer': expected 'log', 'sqrt' or None"):
        SoSBandRegressor(target_transform=PowerTransformer(), calibration_size="cross").fit(X, y)


def test_auto_takes_the_logarithm_of_prices_and_leaves_sums_alone():
    X, y = prices(300)
    model = SoSBandRegressor(random_state=0).fit(X, y)
    assert model.noise_.target is not None
    assert model.noise_.target.transform == "log"
    assert any(reason.startswith("target transform log: with none, ") for reason in model.tuning_.reasons)
    assert SoSBandRegressor(random_state=0).fit(X, np.log(y) + 9).noise_.target is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"target_transform": "log"}, "target_transform='log': expected targets greater than 0, but y has"),
        ({"target_transform": "cube"}, "target_transform='cube': expected 'auto', None, 'log', 'sqrt', or a trans"),
        ({"target_transform": FunctionTransformer(np.negative, np.negative)}, "expected an increasing transform"),
        ({"target_range": (0, None)}, r"target_range=\(0, None\): expected a range of all targets, but y has -"),
        ({"target_range": (3, 1)}, r"target_range=\(3, 1\): expected None, or a pair"),
        ({"target_range": 0}, "target_range=0: expected None, or a pair"),
    ],
)
def test_errors_name_the_argument(given, words):
    X, y = prices(60)
    with pytest.raises(ValueError, match=words):
        SoSBandRegressor(Ridge(), **{**FIXED, **given}).fit(X, y - 3)


def test_functions_predict_in_units_of_the_target():
    X, y = prices(60)
    with pytest.raises(
        ValueError, match="target_transform='log': expected None for a point model that is used as it is"
    ):
        SoSBandRegressor(lambda rows: np.exp(rows[:, 0]), target_transform="log", **FIXED).fit(X, y)
