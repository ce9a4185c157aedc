"""Forests behind transformers that make sparse matrices know their spread, too."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sosbands import SoSBandRegressor
from sosbands.point_models import predict_with_spread


def rows(n=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"brand": rng.choice(list("abcdefgh"), n), "fuel": rng.choice(["petrol", "diesel"], n)})
    return X, X["brand"].map(ord).to_numpy() + rng.standard_normal(n)


@pytest.mark.parametrize("forest", [RandomForestRegressor, ExtraTreesRegressor])
def test_sparse_and_dense_columns_give_the_same(forest):
    X, y = rows()
    found = []
    for sparse in (True, False):
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
        model = make_pipeline(encoder, forest(10, random_state=0)).fit(X, y)
        assert hasattr(model[:-1].transform(X), "tocsr") == sparse
        found.append(predict_with_spread(model, X))
    np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(found[0][0], model.predict(X))
    assert found[0][1].max() > 0


def test_bands_around_such_a_pipeline():
    X, y = rows()
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestRegressor(20, random_state=0))
    bands = SoSBandRegressor(model, max_seconds=0, random_state=0).fit(X, y)
    assert bands.evaluate(X, y)["coverage"] >= 0.85
