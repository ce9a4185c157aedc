"""Models of the user's: errors say whose they are, what they give is read as numbers, weights find their way to them.

Any regressor will do, and what is frozen, a pipeline, or a plain function. Copies predict the rows that folds hold out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from sosbands._arguments import check, check_size, is_splitter, naming, read_numbers
from sosbands._threads import within_task
from sosbands._types import Array, IntArray
from sosbands.tables.rows import row_blocks

FORESTS = (ExtraTreesRegressor, RandomForestRegressor)
LARGEST_SINGLE = float(np.finfo(np.float32).max)
Split = tuple[IntArray, IntArray]  # rows to learn from, rows to predict


def last_step(model: Any) -> Any:
    """The model that predicts in the end, inside of pipelines and what is frozen."""
    return _last_step(model)[0]


def _last_step(model: Any, X: Any = None) -> tuple[Any, Any]:
    """The model that predicts in the end, inside of pipelines and what is frozen, and what it sees of X."""
    while isinstance(model, Pipeline | FrozenEstimator):
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if X is not None and len(model.steps) > 1 else X
            model = model.steps[-1][1]
        else:
            model = model.estimator
    return model, X


def model_name(model: Any) -> str:
    """Name of the class of a point model: of the last step of a pipeline, which predicts, and of what is frozen."""
    return type(last_step(model)).__name__


def is_fitted(model: Any) -> bool:
    """Whether something was learnt already, by scikit-learn's rule; what needs no fit has learnt nothing."""
    try:
        check_is_fitted(model)
        return bool(get_tags(model).requires_fit)
    except (NotFittedError, TypeError, AttributeError):  # the last two of what is no estimator of scikit-learn's
        return False


def learns_nothing(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, is used as it is: frozen, or a plain function."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return isinstance(last, FrozenEstimator | CallableRegressor) or getattr(last, "learns_nothing", False)


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


def fit_model(
    model: Any, X: Any, y: Array, sample_weight: Array | None = None, argument: str = "estimator", **further: Any
) -> Any:
    """Fit a regressor, with weights under the name that the last step knows; errors say which argument it was."""
    if sample_weight is not None:
        steps, last = "", model
        while isinstance(last, Pipeline):
            name, last = last.steps[-1]
            steps += f"{name}__"
        known = signature(last.fit).parameters.values()
        if not any(each.name == "sample_weight" or each.kind == Parameter.VAR_KEYWORD for each in known):
            raise ValueError(
                f"sample_weight was given: expected None, as fit of {type(last).__name__} takes no weights"
            )
        further[f"{steps}sample_weight"] = sample_weight
    with blaming(model, "fit", argument):
        return model.fit(X, y, **further)


def predict_rows(model: Any, X: Any, argument: str = "estimator") -> Array:
    """Predictions of a model as a vector of finite numbers, one for each row; `argument` is what it was given as."""
    if _is_plain(model, X):
        return _mean(predict_trees(model, X))
    with blaming(model, "predict", argument):
        found = model.predict(X)
    return one_per_row(found, _num_samples(X), f"{argument}: output of {model_name(model)}.predict")


def _is_plain(model: Any, X: Any) -> bool:
    """A forest, and rows about which nothing has to be said: its trees may be called one after another."""
    # the mean is that of the forest to the bit; a pool around a hundred small calls takes ten times as long
    plain = type(model) in FORESTS and type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
    if not plain or not hasattr(model, "estimators_") or hasattr(model, "feature_names_in_"):
        return False
    alone = model.n_jobs in (None, 1) and model.n_outputs_ == 1 and model.n_features_in_ == X.shape[1]
    return bool(alone and (np.abs(X) <= LARGEST_SINGLE).all())


def predict_trees(forest: Any, X: Any) -> Iterator[Array]:
    """What each tree of a forest predicts, shape (n,); trees know what to do with gaps."""
    if _is_plain(forest, X):
        rows = X.astype(np.float32)
        yield from (tree.tree_.predict(rows)[:, 0] for tree in forest.estimators_)
        return
    with np.errstate(over="ignore"):  # of rows that are refused
        rows = check_array(X, accept_sparse="csr", dtype=np.float32, order="C", ensure_all_finite="allow-nan")
    yield from (tree.predict(rows, check_input=False) for tree in forest.estimators_)


def _mean(values: Iterable[Array]) -> Array:
    """Mean of vectors, summed in this order: a row has the same bits alone and among others."""
    total, count = np.zeros(()), 0
    for each in values:
        total = total + each
        count += 1
    return total / count


def one_per_row(values: Any, n: int, name: str) -> Array:
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


def knows_spread(model: Any) -> bool:
    """Whether a model, or the last step of a pipeline, takes `return_std` or is a forest."""
    last = last_step(model)
    known = isinstance(last, FORESTS) or hasattr(last, "predict_ends")
    return known or "return_std" in signature(last.predict).parameters


def predict_with_spread(model: Any, X: Any) -> tuple[Array, Array]:
    """Prediction and spread of each row: a standard deviation, or how far trees are apart, or 1 if none is known.

    That of a model with ends has two columns: how far these reach below and above.
    """
    if hasattr(last_step(model), "predict_ends"):
        lower, middle, upper = model.predict_ends(X)
        return middle, np.column_stack([middle - lower, upper - middle])
    if isinstance(last_step(model), FORESTS):
        each = np.stack(list(predict_trees(*_last_step(model, X))))
        mean = _mean(each)
        return mean, np.sqrt(_mean(np.square(each - mean)))
    if not knows_spread(model):
        return predict_rows(model, X), np.ones(_num_samples(X))
    n, name = _num_samples(X), f"estimator: output of {model_name(model)}.predict"
    found = model.predict(X, return_std=True)
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(f"{name} with return_std=True is no pair: expected predictions and standard deviations")
    return one_per_row(found[0], n, name), one_per_row(found[1], n, f"{name}, standard deviation,")


def predict_in_blocks(model: Any, X: Any, with_std: bool) -> tuple[Array, Array | None]:
    """Prediction of each row, and its spread if that is wanted."""
    parts = row_blocks(_num_samples(X))
    blocks = [X] if len(parts) == 1 else (_safe_indexing(X, rows) for rows in parts)
    if not with_std:
        return np.concatenate([predict_rows(model, block) for block in blocks]), None
    mean, std = zip(*(predict_with_spread(model, block) for block in blocks), strict=True)
    return np.concatenate(mean), np.concatenate(std)


def keeps_order(cv: Any) -> bool:
    """Whether folds predict later rows from earlier ones, so that rows are in the order of time."""
    return isinstance(cv, TimeSeriesSplit)


def own_splits(cv: Any, y: Array) -> list[Split] | None:
    """The splits that a splitter makes, with each row in one fold or, as the first of a series, in none; else None."""
    if not is_splitter(cv):
        return None
    with naming("cv"):
        splits = [(np.asarray(learn), np.asarray(held)) for learn, held in cv.split(np.zeros((len(y), 1)), y)]
    held = np.concatenate([each for _, each in splits]) if splits else np.zeros(0, dtype=np.intp)
    if max((int(each.max(initial=-1)) for split in splits for each in split), default=-1) >= len(y):
        raise ValueError(f"cv={cv!r} is about more rows than the {len(y)} that are learnt from: expected one of these")
    if not len(held) or any(len(learn) == 0 for learn, _ in splits):
        raise ValueError(f"cv={cv!r} leaves nothing to predict, or nothing to learn from: expected folds with rows")
    twice = int(len(held) - len(np.unique(held)))
    if twice:
        raise ValueError(f"cv={cv!r} predicts {twice} of the rows more than once: expected folds that share no row")
    if any(len(np.intersect1d(learn, each)) for learn, each in splits):
        raise ValueError(f"cv={cv!r} learns from rows that it predicts: expected folds that hold them out")
    return splits


def shuffled_folds(n: int, cv: int, random_state: Any, enough_rows: int | None = None) -> list[Split]:
    """Folds of n rows, at most as many as rows; as soon as some hold `enough_rows`, the others are left out."""
    folds = list(KFold(min(cv, n), shuffle=True, random_state=random_state).split(np.zeros(n)))
    return folds if enough_rows is None else folds[: max(1, -(-enough_rows * len(folds) // n))]


def predict_held_out(
    model: Any, X: Any, y: Array, weight: Array | None, fold: Split, with_std: bool, argument: str = "estimator"
) -> tuple[Array, Array | None]:
    """Prediction and spread of the rows that a fold holds out, by a model that is fitted here to its other rows."""
    learn, held = fold
    with within_task():
        weight = None if weight is None else weight[learn]
        fitted = fit_model(model, _safe_indexing(X, learn), y[learn], weight, argument)
        return predict_in_blocks(fitted, _safe_indexing(X, held), with_std)


def in_order_of_rows(folds: Sequence[Split], parts: Sequence[tuple[Array, Array | None]]) -> tuple[Array, Any]:
    """Predictions and spreads of the rows that folds hold out, one fold after the other, as the rows are numbered."""
    order = np.argsort(np.concatenate([held for _, held in folds]))
    mean, std = zip(*parts, strict=True)
    return np.concatenate(mean)[order], None if std[0] is None else np.concatenate(std)[order]


class CallableRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A plain function as a fitted regressor: one finite number per row of X, which it gets as `predict` does."""

    def __init__(self, function: Callable[[Any], ArrayLike]) -> None:
        self.function = function

    def fit(self, X: Any = None, y: Any = None, **weights: Any) -> Self:  # noqa: ARG002
        """Do nothing but check that `function` can be called."""
        check("function", self.function, callable(self.function), "a callable")
        return self

    def predict(self, X: Any) -> Array:
        """Value of the function at every row, of shape (n,)."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return one_per_row(self.function(X), _num_samples(X), f"estimator: output of the function {name}")

    def __sklearn_is_fitted__(self) -> bool:
        return True


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Some columns of a data frame in the types that pandas gives them, or as an array; nothing is learnt.

    Parameters
    ----------
    names : sequence of str
        The columns, in the order that the model wants. Numbers stay floats, NaN where a cell is missing.
    texts, booleans, dates : sequences of str
        Those among them that hold texts, which have NaN where they are empty; the texts "true" and "false", which
        become booleans (NaN where there is neither); and days since 1970, which become dates.
    as_array : bool
        For a model that was fitted without names.
    """

    def __init__(
        self,
        names: Sequence[str],
        texts: Sequence[str] = (),
        booleans: Sequence[str] = (),
        dates: Sequence[str] = (),
        as_array: bool = False,
    ) -> None:
        self.names = names
        self.texts = texts
        self.booleans = booleans
        self.dates = dates
        self.as_array = as_array

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        """The columns of these rows."""
        table = X[list(self.names)].copy()
        for name in self.texts:
            table[name] = _objects(table[name], lambda text: text)
        for name in self.booleans:
            values = _objects(table[name], lambda text: str(text).lower() == "true")
            table[name] = values if values.isna().any() else values.astype(bool)
        for name in self.dates:
            days = np.asarray(table[name], dtype=float)
            known = np.isfinite(days)
            stamps = np.full(len(days), np.datetime64("NaT", "us"))
            stamps[known] = np.round(days[known] * 86_400_000_000).astype(np.int64).astype("datetime64[us]")
            table[name] = stamps
        return table.to_numpy() if self.as_array else table


def _objects(column: Any, read: Any) -> Any:
    """What `read` makes of each text; NaN where it is empty or missing, as pandas reads it."""
    gaps = column.isna() | (column == "")
    values = [np.nan if gap else read(value) for value, gap in zip(column.tolist(), gaps.tolist(), strict=True)]
    return type(column)(values, index=column.index, dtype=object)
