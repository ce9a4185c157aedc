"""QuantileModel: a model of the user's that knows its noise, as a point model with two ends."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted

from sosbands._arguments import check, is_fraction, read_numbers
from sosbands._types import Array
from sosbands.point_models.user_model import CallableRegressor, fit_model, one_per_row, predict_rows

MULTI, UNCERTAIN = "MultiQuantile", "RMSEWithUncertainty"  # losses of CatBoost


class QuantileModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Middle and two ends of whatever model predicts quantiles or a distribution.

    `SoSBandRegressor` makes one by itself of a pair or triple of models, and of a model in which it recognises one of
    the ways below; a function needs to be named as one.

    Parameters
    ----------
    model : regressor or function, optional
        Something with ``predict(X, quantiles=[...])`` (quantile-forest), ``predict(X, output_type="quantiles",
        quantiles=[...])`` (TabPFN), ``pred_dist(X)`` (NGBoost), CatBoost with the loss "MultiQuantile:alpha=..." or
        "RMSEWithUncertainty"; or a function of X that gives (lower, upper) or (lower, middle, upper).
    lower, middle, upper : regressors, optional
        Models of one quantile each, in place of `model`. Without a middle the ends' midpoint is taken.
    level : float
        Of the ends: they are the quantiles ``(1 -+ level)/2``, where the model can be asked for them.
    """

    def __init__(
        self, model: Any = None, *, lower: Any = None, middle: Any = None, upper: Any = None, level: float = 0.9
    ) -> None:
        self.model = model
        self.lower = lower
        self.middle = middle
        self.upper = upper
        self.level = level

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit copies of all models; what is frozen, and functions, stay as they are."""
        check("level", self.level, is_fraction(self.level), "a number in (0, 1)")
        alone = self.model is not None and self.lower is None and self.upper is None and self.middle is None
        pair = self.model is None and self.lower is not None and self.upper is not None
        check("model", self.model, alone or pair, "a model alone, or None beside lower and upper")
        if alone and not (_is_function(self.model) or way_of(self.model)):
            check("model", type(self.model).__name__, False, f"one of the ways to predict quantiles: {WAYS}")
        self.fitted_ = [
            model if model is None or _is_function(model) else fit_model(clone(model), X, y, sample_weight)
            for model in ([self.model] if alone else [self.lower, self.middle, self.upper])
        ]
        return self

    def predict(self, X: Any) -> Array:
        """The middle of each row, shape (n,)."""
        return self.predict_ends(X)[1]

    def predict_ends(self, X: Any) -> tuple[Array, Array, Array]:
        """Lower end, middle and upper end of each row; ends that cross the middle are moved to it."""
        check_is_fitted(self)
        if len(self.fitted_) == 1:
            parts = _ends_of(self.fitted_[0], X, self.level)
        else:
            parts = [None if each is None else predict_rows(each, X) for each in self.fitted_]
        name = f"estimator: output of {type(self.fitted_[0]).__name__}"
        lower, upper = (one_per_row(each, _num_samples(X), name) for each in (parts[0], parts[-1]))
        middle = lower / 2 + upper / 2
        if len(parts) == 3 and parts[1] is not None:
            middle = one_per_row(parts[1], _num_samples(X), name)
        return np.minimum(lower, middle), middle, np.maximum(upper, middle)

    @property
    def learns_nothing(self) -> bool:
        """Whether all of its models are used as they are."""
        models = [each for each in (self.model, self.lower, self.middle, self.upper) if each is not None]
        return all(_is_function(each) or isinstance(each, FrozenEstimator | CallableRegressor) for each in models)


WAYS = "predict(X, quantiles=...), pred_dist(X), CatBoost's MultiQuantile or RMSEWithUncertainty, or a pair of models"


def quantile_model(estimator: Any, level: float) -> Any:
    """A quantile model of what is recognised as one; everything else as it is."""
    if isinstance(estimator, tuple):
        expected = "a pair (lower, upper) or a triple (lower, middle, upper) of regressors"
        check("estimator", estimator, len(estimator) in (2, 3), expected)
        parts = dict(
            zip(("lower", "upper") if len(estimator) == 2 else ("lower", "middle", "upper"), estimator, strict=True)
        )
        return QuantileModel(**parts, level=level)
    if isinstance(estimator, Pipeline) and way_of(estimator.steps[-1][1]):
        *steps, (name, last) = estimator.steps
        return Pipeline([*steps, (name, quantile_model(last, level))], memory=estimator.memory)
    if isinstance(estimator, QuantileModel) or _is_function(estimator) or not way_of(estimator):
        return estimator
    return QuantileModel(estimator, level=level)


def way_of(model: Any) -> str:
    """How a model is asked for quantiles; nothing if it is not known to have any."""
    model = model.estimator if isinstance(model, FrozenEstimator) else model
    if isinstance(model, type) or not hasattr(model, "predict"):
        return ""
    if hasattr(model, "pred_dist"):
        return "distribution"
    if type(model).__module__.startswith("catboost"):
        loss = str(model.get_params().get("loss_function"))
        return next((each for each in (MULTI, UNCERTAIN) if loss.startswith(each)), "")
    known = signature(model.predict).parameters
    if "quantiles" in known and not isinstance(known["quantiles"].default, bool):
        return "typed quantiles" if "output_type" in known else "quantiles"
    return ""


def _ends_of(model: Any, X: Any, level: float) -> list[Any]:
    """Lower, middle and upper values, or the two ends."""
    if _is_function(model):
        found = model(X)
        values = list(found) if isinstance(found, (tuple, list)) else list(np.asarray(found).T)
        check(
            "estimator",
            len(values),
            len(values) in (2, 3),
            "a function that gives (lower, upper) or (lower, middle, upper)",
        )
        return values
    way, asked = way_of(model), [(1 - level) / 2, 0.5, (1 + level) / 2]
    model = model.estimator if isinstance(model, FrozenEstimator) else model
    if way == "distribution":
        spread = model.pred_dist(X)
        return [np.asarray(spread.ppf(q)) for q in asked]
    if way == UNCERTAIN:
        mean, variance = np.asarray(model.predict(X, prediction_type=UNCERTAIN)).T
        return [mean - np.sqrt(variance), mean, mean + np.sqrt(variance)]
    if way == MULTI:
        alphas = _alphas(model)
        table = np.asarray(model.predict(X))
        middle = int(np.argmin(np.abs(np.asarray(alphas) - 0.5)))
        order = [int(np.argmin(alphas)), middle, int(np.argmax(alphas))]
        return [table[:, k] for k in (order if abs(alphas[middle] - 0.5) < 0.2 else order[::2])]
    if way == "typed quantiles":
        return [np.asarray(each) for each in model.predict(X, output_type="quantiles", quantiles=asked)]
    table = read_numbers("estimator: output of predict", model.predict(X, quantiles=asked))
    n = _num_samples(X)
    return list(table if table.shape == (3, n) and n != 3 else table.T)


def _alphas(model: Any) -> list[float]:
    """The quantiles of CatBoost's loss "MultiQuantile:alpha=0.05,0.5,0.95"."""
    text = str(model.get_params()["loss_function"])
    return [float(each) for each in text.split("alpha=")[-1].split(":")[0].split(";")[0].split(",")]


def _is_function(model: Any) -> bool:
    return callable(model) and not hasattr(model, "predict")
