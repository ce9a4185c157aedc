"""How unsure a point model is of each row, where it knows: a standard deviation, or how far its trees are apart."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_array

from sosbands._types import Array
from sosbands.point_models.outputs import one_per_row, output_of, predict_rows

FORESTS = (ExtraTreesRegressor, RandomForestRegressor)
GAPS = {"ensure_all_finite": "allow-nan"}  # trees compare single precision, and know what to do with gaps


def knows_spread(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, takes `return_std` or is a forest."""
    last = _last(model)
    return isinstance(last, FORESTS) or "return_std" in signature(last.predict).parameters


def predict_with_spread(model: Any, X: Any) -> tuple[Array, Array]:
    """Prediction and spread of each row; a spread of 1 everywhere where the model knows none."""
    last = _last(model)
    if isinstance(last, FORESTS):
        rows = check_array(_before_last(model, X), accept_sparse="csr", dtype=np.float32, order="C", **GAPS)
        each = np.stack([tree.predict(rows, check_input=False) for tree in last.estimators_])
        return each.mean(axis=0), each.std(axis=0)
    n, name = _num_samples(X), output_of(model)
    if knows_spread(model):
        found = model.predict(X, return_std=True)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ValueError(f"{name} with return_std=True is no pair: expected predictions and standard deviations")
        return one_per_row(found[0], n, name), one_per_row(found[1], n, f"{name}, standard deviation,")
    return predict_rows(model, X), np.ones(n)


def _last(model: Any) -> Any:
    if isinstance(model, Pipeline):
        return _last(model.steps[-1][1])
    return _last(model.estimator) if isinstance(model, FrozenEstimator) else model


def _before_last(model: Any, X: Any) -> Any:
    """What the last step of a pipeline sees."""
    if isinstance(model, FrozenEstimator):
        return _before_last(model.estimator, X)
    if isinstance(model, Pipeline):
        return _before_last(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X)
    return X
