"""Tables and point models as steps: columns, linear models, tree ensembles as arrays of nodes, blends and processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

from sosbands._types import AnyArray, Array
from sosbands.exceptions import ExportError
from sosbands.kernels.kernels import StationaryKernel
from sosbands.point_models import GaussianProcess, ModelBlend
from sosbands.point_models.user_model import FORESTS, knows_spread, model_name
from sosbands.serving.kernels import add_landmark_kernel, add_solve
from sosbands.serving.program import NUMBERS, TEXTS, Program
from sosbands.tables import TableEncoder
from sosbands.tables.columns import BOOLEAN, CATEGORY, DATE, MISSING, NUMBER, table_of
from sosbands.tables.encoder import UNSEEN


@dataclass(frozen=True, eq=False)
class Nodes:
    """All nodes of one tree; a leaf leads to itself."""

    feature: AnyArray  # the column that a node looks at
    left: AnyArray  # where it leads if this is at most the threshold
    right: AnyArray
    threshold: Array
    value: Array

    @classmethod
    def of_tree(cls, tree: Any) -> Nodes:
        """Those of a `Tree` of scikit-learn."""
        leaf = tree.children_left < 0
        return cls._of(leaf, tree.feature, tree.children_left, tree.children_right, tree.threshold, tree.value[:, 0, 0])

    @classmethod
    def of_predictor(cls, predictor: Any) -> Nodes:
        """Those of a tree of histogram boosting."""
        nodes = predictor.nodes
        feature, left, right = (nodes[name].astype(np.int64) for name in ("feature_idx", "left", "right"))
        return cls._of(nodes["is_leaf"].astype(bool), feature, left, right, nodes["num_threshold"], nodes["value"])

    @classmethod
    def _of(cls, leaf: AnyArray, feature: Any, left: Any, right: Any, threshold: Any, value: Any) -> Nodes:
        own = np.arange(len(leaf))
        return cls(
            np.where(leaf, 0, feature),
            np.where(leaf, own, left),
            np.where(leaf, own, right),
            np.where(leaf, 0.0, threshold),
            np.where(leaf, value, 0.0),
        )

    @property
    def depth(self) -> int:
        """Steps from the root to the deepest leaf."""
        reached, depth = np.zeros(1, dtype=np.int64), 0
        while True:
            inner = reached[self.left[reached] != reached]
            if not len(inner):
                return depth
            reached, depth = np.concatenate([self.left[inner], self.right[inner]]), depth + 1


def add_trees(program: Program, value: str, trees: Sequence[Nodes], *, each: bool = False, factor: float = 1.0) -> str:
    """What the leaves of a row say, times a factor: of each tree (n, number of trees), or in all (n, 1)."""
    roots = np.cumsum([0, *(len(tree.feature) for tree in trees)])[:-1]
    places = [(tree.feature, tree.left + root, tree.right + root) for tree, root in zip(trees, roots, strict=True)]
    nodes = np.concatenate([np.stack(place) for place in places], axis=1).astype(np.int32)
    numbers = np.concatenate([np.stack([tree.threshold, factor * tree.value]) for tree in trees], axis=1)
    depth = max(tree.depth for tree in trees)
    return program.add("trees", value, nodes, numbers, roots.astype(np.int32), depth=depth, each=each)


TABLE = ""  # in place of a value: the columns of the table, each an input


def add_table_inputs(program: Program, encoder: TableEncoder) -> None:
    """An input for each column."""
    for name, kind in encoder.kinds_.items():
        program.input(name, _input_kind(kind), 1)


def add_table(program: Program, encoder: TableEncoder) -> tuple[str, str | None]:
    """What the encoder makes of the columns, and zero for rows of finite numbers and gaps, NaN for others."""
    for name, kind in encoder.kinds_.items():
        if name not in program.inputs or program.inputs[name].kind != _input_kind(kind):
            raise ExportError(f"estimator: its encoder sees a column {name!r} of another kind than the bands do")
    parts, checked = [], None
    names = [*encoder._of(NUMBER, DATE), *encoder._of(BOOLEAN)]
    if names:
        numbers = program.joined(names)
        medians = encoder.filler_.transform(np.full((1, len(names)), np.nan))
        filled = program.add("fill", numbers, medians)
        checked = add_check(program, filled)
        parts.append(_scaled(program, encoder, filled, len(names)))
        parts += [program.add("missing", name) for name in encoder.gaps_]
    for name, table in (*_one_hot_tables(encoder), *_target_tables(encoder)):
        keys, rows = _with_missing(encoder.levels_[name], table)
        parts.append(program.add("lookup", name, keys, rows))
    return program.joined(parts), checked


def add_check(program: Program, numbers: str) -> str:
    """Zero for each row, NaN if some entry is missing, infinite or too large to be squared."""
    return program.add("multiply", program.squares(numbers), 0.0)


def table_inputs(encoder: TableEncoder, X: Any) -> dict[str, AnyArray]:
    """The inputs of rows of a table."""
    found: dict[str, AnyArray] = {}
    told = set(encoder.kinds or {})
    for column in encoder._columns(table_of(X)):
        kind = encoder.kinds_[column.name]
        if kind == CATEGORY:
            levels, codes = column.texts()
            found[column.name] = np.array(list(levels), dtype=object)[codes][:, None]
        else:
            found[column.name] = column.numbers(kind, days=column.name in told)[:, None]
    return found


def _input_kind(kind: str) -> str:
    return TEXTS if kind == CATEGORY else NUMBERS


def _scaled(program: Program, encoder: TableEncoder, filled: str, columns: int) -> str:
    quantities = len(encoder._of(NUMBER, DATE))
    if not (encoder.scale and quantities):
        return filled
    center, scale = np.zeros(columns), np.ones(columns)
    center[:quantities], scale[:quantities] = encoder.scaler_.mean_, encoder.scaler_.scale_
    return program.standardised(filled, center, scale)


def _codes(k: int, count: int, columns: int, other: int) -> AnyArray:
    """A row of codes for each text of column k, and last for one that no learning row has."""
    codes = np.full((count + 1, columns), other, dtype=np.intp)
    codes[:, k] = [*range(count), UNSEEN]
    return codes


def _one_hot_tables(encoder: TableEncoder) -> list[tuple[str, Array]]:
    if not encoder.one_hot_:
        return []
    columns = len(encoder.one_hot_)
    raw = encoder.columns_encoder_.get_feature_names_out([f"{k}" for k in range(columns)])
    places = np.array([int(text.partition("_")[0]) for text in raw])
    tables = []
    for k, name in enumerate(encoder.one_hot_):
        codes = _codes(k, len(encoder.levels_[name]), columns, 0)
        tables.append((name, np.asarray(encoder.columns_encoder_.transform(codes))[:, places == k]))
    return tables


def _target_tables(encoder: TableEncoder) -> list[tuple[str, Array]]:
    tables = []
    for k, name in enumerate(encoder.by_target_):
        codes = _codes(k, len(encoder.levels_[name]), len(encoder.by_target_), UNSEEN)
        tables.append((name, encoder._scaled_targets(encoder.targets_.transform(codes))[:, k : k + 1]))
    return tables


def _with_missing(levels: list[str], table: Array) -> tuple[AnyArray, Array]:
    """Keys in order and their rows, the last one that of other texts; words for a missing cell are as the empty one."""
    rows: Mapping[str, Array] = dict(zip(levels, table, strict=False))
    empty = rows.get("", table[-1])
    known = {**dict.fromkeys(("", *MISSING), empty), **rows}
    keys = sorted(known)
    return np.array(keys), np.vstack([*(known[key] for key in keys), table[-1]])


TREES = (ExtraTreesRegressor, RandomForestRegressor, DecisionTreeRegressor)
LOG_LINKS = ("poisson", "gamma")


def add_model(program: Program, model: Any, x: str, columns: int) -> str:
    """The prediction of a fitted model, (n, 1), of what it sees."""
    model, x, columns = _unwrapped(program, model, x, columns)
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
        start = 0.0 if isinstance(model.init_, str) else float(np.ravel(model.init_.constant_)[0])
        nodes = [Nodes.of_tree(tree.tree_) for tree in model.estimators_[:, 0]]
        made = add_trees(program, program.add("single", x), nodes, factor=model.learning_rate)
        return program.add("add", made, start)
    if isinstance(model, HistGradientBoostingRegressor) and not np.any(model.is_categorical_):
        nodes = [Nodes.of_predictor(predictor) for (predictor,) in model._predictors]
        raw = program.add("add", add_trees(program, x, nodes), float(np.ravel(model._baseline_prediction)[0]))
        return program.add("exp", raw) if model.loss in LOG_LINKS else raw
    if isinstance(model, LinearModel) and np.ndim(model.coef_) == 1:
        product = program.add("product", x, np.asarray(model.coef_, dtype=float).reshape(-1, 1))
        return program.add("add", product, float(np.ravel(model.intercept_)[0]))
    return program.alien(model, x, columns)


def add_model_with_spread(program: Program, model: Any, x: str, columns: int) -> tuple[str, str]:
    """Prediction and spread, each (n, 1), as `predict_with_spread` gives them."""
    model, x, columns = _unwrapped(program, model, x, columns)
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


def _unwrapped(program: Program, model: Any, x: str, columns: int) -> tuple[Any, str, int]:
    """The model in a frozen one or at the end of a pipeline, and what it sees."""
    while isinstance(model, (FrozenEstimator, Pipeline)):
        if isinstance(model, Pipeline):
            for _, step in model.steps[:-1]:
                x, columns = add_transformer(program, step, x, columns)
        model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
    _refuse_table(model, x)
    return model, x, columns


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
