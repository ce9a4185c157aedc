"""Saving, loading and pickling of the baselines: the same intervals bit by bit."""

import pickle
import re

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sosbands import load
from sosbands.baselines import METHODS, make_method
from sosbands.exceptions import UntrustedTypesError

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (1.2 + X[:, 1]) * RNG.standard_normal(60)
X_NEW = RNG.uniform(-0.9, 0.9, (20, 2))
SETTINGS = {
    "cqr-forest": {"n_estimators": 5},
    "cqr-boosting": {"max_iter": 5},
    "split": {"estimator": make_pipeline(StandardScaler(), Ridge())},
    "local": {"estimator": Ridge(), "scale_estimator": RandomForestRegressor(5)},
}
FOREIGN = {"cqr-forest"}  # forests of another package, whose types must be named


def fitted(name):
    if name == "cqr-forest":
        pytest.importorskip("quantile_forest", reason="it needs quantile-forest: pip install sosbands[baselines]")
    return make_method(name, random_state=0, **SETTINGS.get(name, {})).fit(X, Y)


def assert_same(loaded, model):
    assert type(loaded) is type(model)
    assert np.array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
    assert np.array_equal(loaded.predict_interval(X_NEW, [0.8, 0.9]), model.predict_interval(X_NEW, [0.8, 0.9]))
    assert np.array_equal(loaded.scores_, model.scores_)
    assert loaded.get_params().keys() == model.get_params().keys()


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.parametrize("name", METHODS)
def test_saved_models_predict_bit_identically(name, tmp_path):
    model, path = fitted(name), tmp_path / "model.sosbands"
    model.save(path)
    trusted = []
    if name in FOREIGN:
        with pytest.raises(UntrustedTypesError, match="not trusted") as refused:
            load(path)
        trusted = re.findall(r"'([\w.]+)'", str(refused.value).split("not trusted: ")[1].split("]")[0])
        assert trusted
        assert not [full for full in trusted if full.startswith("sosbands")]
    assert_same(load(path, trusted=trusted), model)


@pytest.mark.filterwarnings("ignore::sosbands.exceptions.OffDataWarning")
@pytest.mark.parametrize("name", METHODS)
def test_pickle_and_memory_maps(name, tmp_path):
    model = fitted(name)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    joblib.dump(model, tmp_path / "model")
    assert_same(joblib.load(tmp_path / "model", mmap_mode="r"), model)
    assert_same(model, model)  # writing leaves it as it was


def test_the_comparison_rejects_another_model():
    with pytest.raises(AssertionError):
        assert_same(fitted("split"), make_method("split", random_state=1, **SETTINGS["split"]).fit(X, Y))
