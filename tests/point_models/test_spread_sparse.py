"""Forests behind transformers that make sparse matrices know their spread, too."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sosbands import SoSBandRegressor
from sosbands.point_models.spread import predict_with_spread


def rows(n=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"brand": rng.choice(list("abcdefgh"), n), "fuel": rng.choice(["petrol", "diesel"], n)})
    return X, X["brand"].map(ord).to_numpy() + rng.standard_normal(n)


@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesRegressor])
def test_sparse_columns_give_the_mean_and_the_spread_of_the_trees(forest):
    X, y = rows()
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), forest(10, random_state=0)).fit(X, y)
    sparse = model[:-1].transform(X)
    assert hasattr(sparse, "tocsr")
    mean, spread = predict_with_spread(model, X)
    np.testing.assert_allclose(mean, model.predict(X))
    trees = [tree.predict(sparse.toarray()) for tree in model[-1].estimators_]
    np.testing.assert_allclose(spread, np.std(trees, axis=0), atol=1e-12)
    assert spread.max() > 0


def test_bands_around_such_a_pipeline():
    X, y = rows()
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestRegressor(20, random_state=0))
    bands = SoSBandRegressor(model, max_seconds=0, random_state=0).fit(X, y)
    held = bands.calibration_rows_
    assert bands.evaluate(X.iloc[held], y[held])["coverage"] >= 0.9
