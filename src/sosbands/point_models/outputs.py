"""What point models give, read as numbers: an error says which object gave what, and what was expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from sosbands._arguments import check_size, read_numbers
from sosbands._types import Array


def model_name(model: Any) -> str:
    """Name of the class of a point model: of the last step of a pipeline, which predicts, and of what is frozen."""
    if isinstance(model, Pipeline):
        return model_name(model[-1])
    return model_name(model.estimator) if isinstance(model, FrozenEstimator) else type(model).__name__


def is_fitted(model: Any) -> bool:
    """Whether something was learnt already, by scikit-learn's rule; what needs no fit has learnt nothing."""
    try:
        check_is_fitted(model)
        return bool(get_tags(model).requires_fit)
    except (NotFittedError, TypeError, AttributeError):  # the last two of what is no estimator of scikit-learn's
        return False


@contextmanager
def blaming(model: Any, method: str, argument: str = "estimator") -> Iterator[None]:
    """Say in errors of a model of the user's whose they are; `argument` is what it was given as."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if type(error).__module__.startswith("numpy") else type(error)
        if kind not in (TypeError, ValueError) or type(model).__module__.startswith("sosbands."):
            raise
        raise kind(f"{argument}: {model_name(model)}.{method} failed: {error}") from error


def predict_rows(model: Any, X: Any, argument: str = "estimator") -> Array:
    """Predictions of a model as a vector of finite numbers, one for each row; `argument` is what it was given as."""
    with blaming(model, "predict", argument):
        found = model.predict(X)
    return one_per_row(found, _num_samples(X), output_of(model, argument))


def output_of(model: Any, argument: str = "estimator") -> str:
    """What an error calls the predictions of a model."""
    return f"{argument}: output of {model_name(model)}.predict"


def one_per_row(values: Any, n: int, name: str = "estimator: output of predict") -> Array:
    """A vector of n finite numbers; one column is taken as one."""
    numbers = read_numbers(name, values)
    if numbers.shape not in ((n,), (n, 1)):
        raise ValueError(f"{name} has shape {numbers.shape}: expected ({n},), one number per row of X")
    bad = np.flatnonzero(~np.isfinite(numbers.reshape(n)))
    if len(bad):
        raise ValueError(
            f"{name} has {len(bad)} of {n} entries that are NaN or infinite, the first in row {bad[0]}: expected "
            "finite numbers"
        )
    check_size(name, numbers, "let the model predict the target")
    return numbers.reshape(n)
