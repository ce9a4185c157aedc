"""Weights of rows on their way to a regressor: under which name its `fit` takes them."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from sklearn.pipeline import Pipeline

from sosbands._types import Array
from sosbands.point_models.outputs import blaming


def fit_model(
    model: Any, X: Any, y: Array, sample_weight: Array | None = None, argument: str = "estimator", **further: Any
) -> Any:
    """Fit a regressor, with the weights of the rows if there are any; errors say as which argument it was given."""
    arguments = weight_arguments(model, sample_weight)
    with blaming(model, "fit", argument):
        return model.fit(X, y, **arguments, **further)


def weight_arguments(model: Any, sample_weight: Array | None) -> dict[str, Any]:
    """Arguments of `fit` that give a regressor, or the last step of a pipeline, the weights.

    Raises
    ------
    ValueError
        If its `fit` takes none.
    """
    if sample_weight is None:
        return {}
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return {f"{name}__{key}": value for key, value in weight_arguments(last, sample_weight).items()}
    parameters = signature(model.fit).parameters.values()
    if not any(each.name == "sample_weight" or each.kind == Parameter.VAR_KEYWORD for each in parameters):
        raise ValueError(f"sample_weight was given: expected None, as fit of {type(model).__name__} takes no weights")
    return {"sample_weight": sample_weight}
