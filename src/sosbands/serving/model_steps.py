"""Steps of point models: those of this package and the usual ones of scikit-learn; others are left to skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model._base import LinearModel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sosbands.exceptions import ExportError
from sosbands.kernels.stationary import StationaryKernel
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.point_models.outputs import model_name
from sosbands.point_models.spread import FORESTS, knows_spread
from sosbands.serving.kernel_steps import add_landmark_kernel, add_solve
from sosbands.serving.program import Program
from sosbands.serving.table_steps import TABLE, add_table
from sosbands.serving.trees import Nodes, add_trees
from sosbands.tables import TableEncoder

TREES = (ExtraTreesRegressor, RandomForestRegressor, DecisionTreeRegressor)
LOG_LINKS = ("poisson", "gamma")


def add_model(program: Program, model: Any, x: str, columns: int) -> str:
    """The prediction of a fitted model, (n, 1), of what it sees."""
    if isinstance(model, FrozenEstimator):
        return add_model(program, model.estimator, x, columns)
    if isinstance(model, Pipeline):
        return add_model(program, *_last_step(program, model, x, columns))
    _refuse_table(model, x)
    if isinstance(model, ModelBlend):
        means = [add_model(program, member, x, columns) for member in model.members_]
        return program.add("product", program.joined(means), model.weights_.reshape(-1, 1))
    if isinstance(model, GaussianProcess):
        return add_process(program, model, x)[0]
    if isinstance(model, TREES):
        trees = [model] if isinstance(model, DecisionTreeRegressor) else list(model.estimators_)
        nodes = [Nodes.of_tree(each.tree_) for each in trees]
        return add_trees(program, program.add("single", x), nodes, factor=1 / len(trees))
    if isinstance(model, GradientBoostingRegressor) and isinstance(model.init_, (str, DummyRegressor)):
        return _boosting(program, model, x)
    if isinstance(model, HistGradientBoostingRegressor) and not np.any(model.is_categorical_):
        return _histogram_boosting(program, model, x)
    if isinstance(model, LinearModel) and np.ndim(model.coef_) == 1:
        product = program.add("product", x, np.asarray(model.coef_, dtype=float).reshape(-1, 1))
        return program.add("add", product, float(np.ravel(model.intercept_)[0]))
    return program.alien(model, x, columns)


def add_model_with_spread(program: Program, model: Any, x: str, columns: int) -> tuple[str, str]:
    """Prediction and spread, each (n, 1), as `predict_with_spread` gives them."""
    if isinstance(model, FrozenEstimator):
        return add_model_with_spread(program, model.estimator, x, columns)
    if isinstance(model, Pipeline):
        return add_model_with_spread(program, *_last_step(program, model, x, columns))
    _refuse_table(model, x)
    if isinstance(model, FORESTS):
        nodes = [Nodes.of_tree(each.tree_) for each in model.estimators_]
        each = add_trees(program, program.add("single", x), nodes, each=True)
        mean = program.add("mean", each)
        apart = program.add("subtract", each, mean)
        return mean, program.add("sqrt", program.add("mean", program.add("multiply", apart, apart)))
    if isinstance(model, GaussianProcess):
        return add_process(program, model, x)
    if isinstance(model, ModelBlend):
        return _blend_with_spread(program, model, x, columns)
    if knows_spread(model):
        raise ExportError(
            f"estimator: the standard deviation of a {model_name(model)} is the base scale of the bands and cannot be "
            "exported; with bands_only=True prediction and standard deviation are inputs"
        )
    mean = add_model(program, model, x, columns)
    return mean, program.add("add", program.add("multiply", mean, 0.0), 1.0)


def add_transformer(program: Program, fitted: Any, x: str, columns: int) -> tuple[str, int]:
    """What a fitted transformer makes of numbers, and how many columns it has."""
    if fitted is None or isinstance(fitted, str):
        return x, columns
    if isinstance(fitted, Pipeline):
        for _, step in fitted.steps:
            x, columns = add_transformer(program, step, x, columns)
        return x, columns
    if isinstance(fitted, TableEncoder) and x == TABLE:
        return add_table(program, fitted)[0], len(fitted.get_feature_names_out())
    _refuse_table(fitted, x)
    center, scale = _affine(fitted)
    if center is None:
        made = program.alien(fitted, x, columns)
        return made, int(fitted.transform(np.zeros((1, columns))).shape[1])
    return program.standardised(x, center, scale), columns


def add_process(program: Program, process: GaussianProcess, x: str) -> tuple[str, str]:
    """Mean and standard deviation of a Gaussian process; what nobody asks for is not written."""
    variance = process.variance_ / process.y_scale_**2
    noise = process.noise_variance_ / process.y_scale_**2
    scaled = program.add("divide", x, process.lengthscale_)
    K = add_landmark_kernel(program, scaled, StationaryKernel("matern52", (1.0,)), process.X_train_)
    weighed = program.add("product", K, process.y_scale_ * variance * process.dual_coef_.reshape(-1, 1))
    mean = program.add("add", weighed, process.y_mean_)
    half = add_solve(program, K, process.cholesky_)
    left = program.add(
        "subtract", variance * np.ones((1, 1)), program.add("multiply", program.squares(half), variance**2)
    )
    kept = program.add("add", program.add("maximum", left, 0.0), noise)
    return mean, program.add("multiply", program.add("sqrt", kept), process.y_scale_)


def _last_step(program: Program, model: Pipeline, x: str, columns: int) -> tuple[Any, str, int]:
    for _, step in model.steps[:-1]:
        x, columns = add_transformer(program, step, x, columns)
    return model.steps[-1][1], x, columns


def _refuse_table(fitted: Any, x: str) -> None:
    if x == TABLE:
        raise ExportError(
            f"estimator: a {model_name(fitted)} that sees the table itself, texts and gaps included, cannot be "
            "exported; with bands_only=True its prediction is an input"
        )


def _affine(fitted: Any) -> tuple[Any, Any]:
    """Center and scale of a transformer that takes one off and divides by the other; None of any other."""
    if isinstance(fitted, StandardScaler):
        mean, scale = (fitted.mean_ if fitted.with_mean else None), fitted.scale_
    elif isinstance(fitted, RobustScaler):
        mean, scale = fitted.center_, fitted.scale_
    elif isinstance(fitted, MaxAbsScaler) and not getattr(fitted, "clip", False):
        mean, scale = None, fitted.scale_
    elif isinstance(fitted, MinMaxScaler) and not fitted.clip:
        mean, scale = -fitted.min_ / fitted.scale_, 1 / fitted.scale_
    else:
        return None, None
    return 0.0 if mean is None else mean, 1.0 if scale is None else scale


def _boosting(program: Program, model: GradientBoostingRegressor, x: str) -> str:
    start = 0.0 if isinstance(model.init_, str) else float(np.ravel(model.init_.constant_)[0])
    nodes = [Nodes.of_tree(tree.tree_) for tree in model.estimators_[:, 0]]
    made = add_trees(program, program.add("single", x), nodes, factor=model.learning_rate)
    return program.add("add", made, start)


def _histogram_boosting(program: Program, model: HistGradientBoostingRegressor, x: str) -> str:
    nodes = [Nodes.of_predictor(predictor) for (predictor,) in model._predictors]
    raw = program.add("add", add_trees(program, x, nodes), float(np.ravel(model._baseline_prediction)[0]))
    return program.add("exp", raw) if model.loss in LOG_LINKS else raw


def _blend_with_spread(program: Program, blend: ModelBlend, x: str, columns: int) -> tuple[str, str]:
    """The mixture of `ModelBlend`: variances of the members and squares by which they differ from the mean."""
    seen = [add_model_with_spread(program, member, x, columns) for member in blend.members_]
    mean = program.add("product", program.joined([each for each, _ in seen]), blend.weights_.reshape(-1, 1))
    parts = []
    for (each, spread), least, factor in zip(seen, blend.least_spreads_, blend.spread_factors_, strict=True):
        own = program.add("multiply", program.add("maximum", spread, least), factor)
        parts.append(program.squares(program.joined([own, program.add("subtract", each, mean)])))
    variance = program.add("product", program.joined(parts), blend.weights_.reshape(-1, 1))
    return mean, program.add("sqrt", variance)
