"""TableEncoder: from tables of any columns to finite numbers, by what the learning rows say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.utils.validation import check_is_fitted

from sosbands._arguments import check
from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import listed, many, warn
from sosbands.exceptions import IdentifierWarning
from sosbands.tables.columns import (
    BOOLEAN,
    CATEGORY,
    DATE,
    KINDS,
    NUMBER,
    Column,
    column_names,
    has_names,
    read_column,
    table_of,
)

FEW = 20  # categories up to so many get a column each
RARE = 5  # learning rows that a category needs for a column of its own
IDENTIFIERS = 0.5  # share of the learning rows with a text of their own above which these say nothing
UNSEEN = -1
SMOOTH = 2.0  # rows' worth of the mean of all that a category's mean target is drawn towards
FOLDS = 5


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers from tables with columns of any kind; the dtype, and for texts the cells, say of which.

    Numbers stay as they are and dates become days since 1970 (UTC); gaps are filled with the median of the learning
    rows, and another column says where, if some learning rows have gaps. Booleans are 0 and 1. Up to 20 categories
    become a column each, those of fewer than 5 learning rows one together. More categories become the mean target of
    their learning rows, drawn towards the mean of all. A missing text is a category, and texts that no learning row has
    count as rare ones, or as the mean of all.

    The mean target of a *learning* row must not know its own target: `fit_transform` gives each row that of the other
    folds, `transform` that of all learning rows. So learning rows need ``fit_transform(X, y)``, as pipelines do it.

    Parameters
    ----------
    kinds : dict, optional
        Kinds ("number", "category", "boolean", "date") of columns by name, for those where the dtype or the cells would
        say otherwise. Numbers in a column that is called a date are days since 1970.
    scale : bool
        Give numbers, dates and mean targets mean 0 and standard deviation 1; columns of zeros and ones stay.
    mark_gaps : bool
        Add a column that says where gaps are, for each column in which some learning rows have one.

    Attributes
    ----------
    kinds_ : dict of str to str
    levels_ : dict of str to list of str
        Texts that the learning rows have in each column of categories; an empty one is missing.
    one_hot_, by_target_ : list of str
        Columns of categories that became a column each, and those that became mean targets.
    identifiers_ : list of str
        Of the latter those in which most learning rows have a text of their own: such texts count as one.
    gaps_ : list of str
        Columns with a column that says where gaps are.
    """

    one_hot_: list[str]
    by_target_: list[str]

    def __init__(self, kinds: Mapping[str, str] | None = None, *, scale: bool = True, mark_gaps: bool = True) -> None:
        self.kinds = kinds
        self.scale = scale
        self.mark_gaps = mark_gaps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what to do with each column of a data frame or array; more than 20 categories need the targets y."""
        self._fitted_points(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The same, and the numbers of the learning rows."""
        return self._fitted_points(X, y)

    def transform(self, X: Any) -> Array:
        """Numbers of new rows, shape (n, n_columns); an error names columns that lack, or hold something else now."""
        check_is_fitted(self, "kinds_")
        columns = self._columns(table_of(X))
        codes = self._codes(columns)
        parts = self._plain_parts(columns, codes)
        if self.by_target_:
            parts.append(self._scaled_targets(self.targets_.transform(codes[:, len(self.one_hot_) :])))
        return np.hstack(parts)

    def fold_points(self, X: Any, y: Array, points: Array) -> Callable[[IntArray, IntArray], Array] | None:
        """What cross-validation over the learning rows must see instead of `points`, what `fit_transform` gave.

        A function of the rows that a fold learns from, whose targets alone then count, and those that it holds out,
        which gives all rows; None where no column has mean targets.
        """
        if not self.by_target_:
            return None
        codes = self._codes(self._columns(table_of(X)))[:, len(self.one_hot_) :]

        def of_fold(learn: IntArray, held: IntArray) -> Array:
            table = points.copy()
            places = slice(points.shape[1] - codes.shape[1], None)
            table[learn, places] = self._scaled_targets(cross_fitted(codes[learn], y[learn]))
            of_learn = target_encoder().fit(codes[learn], y[learn])
            table[held, places] = self._scaled_targets(of_learn.transform(codes[held]))
            return table

        return of_fold

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:  # noqa: ARG002
        """Names of the columns that come out."""
        check_is_fitted(self, "kinds_")
        marked = [f"{name}_missing" for name in self.gaps_]
        categories = [f"{name}_{text}" for name, text in self._categories()]
        return np.array([*self._numeric(), *marked, *categories, *self.by_target_], dtype=object)

    def sources(self) -> list[str]:
        """For each column that comes out the column of the table that it is made of."""
        check_is_fitted(self, "kinds_")
        return [*self._numeric(), *self.gaps_, *(name for name, _ in self._categories()), *self.by_target_]

    def describe(self) -> str:
        """What becomes what, in a sentence."""
        check_is_fitted(self, "kinds_")
        words = []
        for kind, how in ((NUMBER, ""), (DATE, " as days since 1970"), (BOOLEAN, " as 0 and 1")):
            if self._of(kind):
                words.append(many(len(self._of(kind)), kind) + how)
        if self.gaps_:
            words.append(f"gaps in {listed(self.gaps_)} filled with the median and marked")
        if self.one_hot_:
            rare = f"those of fewer than {RARE} rows share one"
            words.append(f"a column for each text of {listed(self.one_hot_)} ({rare})")
        if self.by_target_:
            counted = [f"{name!r} ({many(len(self.levels_[name]), 'text')})" for name in self.by_target_]
            words.append(f"the mean target of each text of {', '.join(counted)}, learning rows by those of other folds")
        return f"Columns: {'; '.join(words)}."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """For saving: thousands of texts as one, of which files know no more than that."""
        state = dict(super().__getstate__())
        if "levels_" in state:
            state["levels_"] = json.dumps(state["levels_"])
        state.pop("_places", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "levels_" in state:
            state = {**state, "levels_": json.loads(state["levels_"])}
        super().__setstate__(state)
        if "levels_" in state:
            self._index_levels()

    def _fitted_points(self, X: Any, y: Any) -> Array:
        X = table_of(X)
        names = column_names(X)
        given = dict(self.kinds or {})
        wrong = {name: kind for name, kind in given.items() if kind not in KINDS or name not in names}
        check("kinds", wrong, not wrong, f"columns of X ({listed(names)}) with a kind among {', '.join(KINDS)}")
        columns = [read_column(X, position, name) for position, name in enumerate(names)]
        self.kinds_ = {column.name: given.get(column.name) or column.decided() for column in columns}
        self.has_names_ = has_names(X)
        self.n_features_in_ = len(names)
        # 1. Texts of the learning rows, and which columns of categories have few.
        self.levels_, self.one_hot_, self.by_target_, self.identifiers_ = {}, [], [], []
        for column in columns:
            if self.kinds_[column.name] != CATEGORY:
                continue
            levels, codes = column.texts()
            counts = np.bincount(codes, minlength=len(levels))
            few, least = np.count_nonzero(counts) <= FEW, 1
            (self.one_hot_ if few else self.by_target_).append(column.name)
            if not few and np.count_nonzero(counts == 1) > IDENTIFIERS * counts.sum():
                warn(
                    f"column {column.name!r}: most learning rows have a text of their own there, as identifiers do, "
                    "which says nothing about new rows: these texts count as one; leave the column out",
                    IdentifierWarning,
                )
                self.identifiers_.append(column.name)
                least = 2
            self.levels_[column.name] = sorted(text for text, n in zip(levels, counts, strict=True) if n >= least)
        self._index_levels()
        # 2. Medians, scales, gaps, and the categories with a column each.
        codes = self._codes(columns)
        numbers, quantities = self._numbers(columns), len(self._of(NUMBER, DATE))
        shares = zip(self._numeric(), np.isnan(numbers).mean(axis=0).tolist(), strict=True)
        self.gaps_ = [name for name, share in shares if 0 < share < 1 and self.mark_gaps]
        if numbers.shape[1]:
            self.filler_ = plain_output(SimpleImputer(strategy="median", keep_empty_features=True)).fit(numbers)
            if self.scale and quantities:
                self.scaler_ = plain_output(StandardScaler()).fit(self.filler_.transform(numbers)[:, :quantities])
        if self.one_hot_:
            one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=RARE, sparse_output=False)
            self.columns_encoder_ = plain_output(one_hot).fit(codes[:, : len(self.one_hot_)])
        parts = self._plain_parts(columns, codes)
        if not self.by_target_:
            return np.hstack(parts)
        # 3. Mean targets of all learning rows, kept for new rows, and of the learning rows by those of other folds.
        codes = codes[:, len(self.one_hot_) :]
        if y is None:
            raise ValueError(
                f"y=None: expected the targets of the rows, as the columns {listed(self.by_target_)} have more than "
                f"{FEW} categories, which are encoded by their mean target"
            )
        target = np.asarray(y, dtype=float)
        if target.shape != (len(codes),):
            raise ValueError(f"y has shape {target.shape}: expected ({len(codes)},), one number for each row of X")
        self.targets_ = target_encoder().fit(codes, target)
        means = cross_fitted(codes, target)
        if self.scale:
            self.target_scaler_ = plain_output(StandardScaler()).fit(means)
        return np.hstack([*parts, self._scaled_targets(means)])

    def _index_levels(self) -> None:
        self._places = {name: {text: k for k, text in enumerate(texts)} for name, texts in self.levels_.items()}

    def _scaled_targets(self, means: Array) -> Array:
        return np.asarray(self.target_scaler_.transform(means) if self.scale else means)

    def _plain_parts(self, columns: Sequence[Column], codes: IntArray) -> list[Array]:
        """All but mean targets: numbers and dates, booleans, gaps, categories with a column each."""
        numbers, quantities = self._numbers(columns), len(self._of(NUMBER, DATE))
        parts = []
        if numbers.shape[1]:
            filled = self.filler_.transform(numbers)
            if self.scale and quantities:
                filled[:, :quantities] = self.scaler_.transform(filled[:, :quantities])
            marked = [self._numeric().index(name) for name in self.gaps_]
            parts += [filled, np.isnan(numbers[:, marked]).astype(float)]
        if self.one_hot_:
            parts.append(self.columns_encoder_.transform(codes[:, : len(self.one_hot_)]))
        return parts

    def _numbers(self, columns: Sequence[Column]) -> Array:
        """Numbers, dates and booleans with their gaps, shape (n, n_numbers)."""
        by_name = {column.name: column for column in columns}
        told = set(self.kinds or {})
        found = [by_name[name].numbers(self.kinds_[name], days=name in told) for name in self._numeric()]
        return np.column_stack(found) if found else np.zeros((len(columns[0].values), 0))

    def _codes(self, columns: Sequence[Column]) -> IntArray:
        """Places of the texts among those of the learning rows, -1 for others, columns with few of them first."""
        by_name = {column.name: column for column in columns}
        found = np.full((len(columns[0].values), len(self.one_hot_) + len(self.by_target_)), UNSEEN, dtype=np.intp)
        for k, name in enumerate((*self.one_hot_, *self.by_target_)):
            levels, codes = by_name[name].texts()
            known = self._places[name]
            found[:, k] = np.array([known.get(text, UNSEEN) for text in levels], dtype=np.intp)[codes]
        return found

    def _columns(self, X: Any) -> list[Column]:
        """The columns that were learnt from, by their names where there are names."""
        names = column_names(X)
        if not (self.has_names_ and has_names(X)):
            if len(names) != self.n_features_in_:
                expected = f"{self.n_features_in_} features as input: {listed(self.kinds_)}"
                raise ValueError(f"X has {len(names)} features, but TableEncoder is expecting {expected}")
            return [read_column(X, position, name) for position, name in enumerate(self.kinds_)]
        lacking = [name for name in self.kinds_ if name not in names]
        if lacking:
            raise ValueError(f"X lacks the columns {listed(lacking)} that were learnt from (it has {listed(names)})")
        return [read_column(X, names.index(name), name) for name in self.kinds_]

    def _of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds_.items() if kind in kinds]

    def _numeric(self) -> list[str]:
        """Columns of numbers and dates, and then booleans."""
        return [*self._of(NUMBER, DATE), *self._of(BOOLEAN)]

    def _categories(self) -> list[tuple[str, str]]:
        """Column and text of each column that few categories became."""
        if not self.one_hot_:
            return []
        found = []
        for raw in self.columns_encoder_.get_feature_names_out([f"{k}" for k in range(len(self.one_hot_))]):
            k, _, code = raw.partition("_")  # such as "0_3", the fourth text of the first column
            name = self.one_hot_[int(k)]
            text = "(rare)" if code.startswith("infrequent") else self.levels_[name][int(code)] or "(missing)"
            found.append((name, text))
        return found


def target_encoder() -> Any:
    """Unfitted: codes of categories in, smoothed mean targets out, the mean of all for codes that it has not seen."""
    return plain_output(TargetEncoder(target_type="continuous", smooth=SMOOTH))


def cross_fitted(codes: IntArray, y: Array) -> Array:
    """Mean targets of the category of each row, over rows of the other folds: none knows its own target."""
    # as TargetEncoder.fit_transform, whose way to give a seed changes from version to version
    means = np.empty(codes.shape)
    for learn, held in KFold(min(FOLDS, len(y)), shuffle=True, random_state=0).split(codes):
        means[held] = target_encoder().fit(codes[learn], y[learn]).transform(codes[held])
    return means


def plain_output(part: Any) -> Any:
    """A part that gives arrays, whatever scikit-learn is configured to give."""
    return part.set_output(transform="default")
