"""Rows: how X is read, once, becomes what models and kernels see, is split, and is known again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any
from zlib import crc32

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _num_samples, validate_data

from sosbands._arguments import check_size, finite_numbers, naming, read_numbers, read_weights
from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import listed
from sosbands.conformal.asked import read_groups, read_overlapping, read_target
from sosbands.tables.columns import (
    BOOLEAN,
    CATEGORY,
    NUMBER,
    ColumnTable,
    dense_table,
    is_frame,
    odd_columns,
    table_of,
)
from sosbands.tables.encoder import TableEncoder

BLOCK_ROWS = 4096  # rows that are predicted at a time: a Gaussian process builds a kernel matrix of them
KEPT_POINTS = 50_000  # points of no more rows are kept once they are made
SEEN_ROWS = 2  # calibration rows that may equal learning rows without a warning, beyond what repeated rows explain
GAP = 0.7071  # stands for missing and infinite entries where rows are known again
MOST_CATEGORIES = 254  # that boosting can tell apart
AUTO = "auto"  # in place of a calibration size
QUARTER, ROOM, MOST_HELD = 0.25, 5, 5000  # what it holds back; docs/guide/calibration.md has what that costs

# How X is read. What a class wants: NUMBERS; TABLE, numbers or else columns that are encoded; CATEGORIES, the same but
# for tables that boosting takes as they are; DENSE, a table as it is for a model of the user's; GIVEN, whatever a
# transformer of the user's takes. What a fit has found: NUMBERS, COLUMNS, DENSE or GIVEN.
NUMBERS, TABLE, CATEGORIES, COLUMNS, DENSE, GIVEN = "numbers", "table", "categories", "columns", "dense", "given"


@dataclass(eq=False)
class Rows:
    """n rows, read once."""

    given: Any  # as they were given, for models of the user's and for copies of the model that reads them
    table: Any  # as the preprocessor sees them: numbers (an array), columns (`ColumnTable`), or what was given
    points: Array | None = None  # (n, d), what the preprocessor makes of them, once it has (`RowReader.points`)

    def __len__(self) -> int:
        return len(self.table) if isinstance(self.table, ColumnTable) else int(_num_samples(self.table))

    def take(self, rows: IntArray | slice) -> Rows:
        """Some of the rows."""
        table = self.table.take(rows) if isinstance(self.table, ColumnTable) else _safe_indexing(self.table, rows)
        given = table if self.given is self.table else _safe_indexing(self.given, rows)
        return Rows(given, table, None if self.points is None else self.points[rows])

    def blocks(self) -> Iterator[Rows]:
        """The rows in order, a few thousand at a time."""
        blocks = row_blocks(len(self))
        yield from ([self] if len(blocks) < 2 else (self.take(block) for block in blocks))


@dataclass(frozen=True, eq=False)
class LearningData:
    """What `fit` is given, read once: n rows with all that belongs to them."""

    rows: Rows
    y: Array
    weights: Array | None  # None where all rows count alike
    groups: AnyArray | None
    positions: IntArray  # of the rows in what was given

    @classmethod
    def of(cls, rows: Rows, y: Any, sample_weight: Any, groups: Any, *, overlapping: bool = False) -> LearningData:
        """Targets, weights and labels checked, one for each row; groups that may overlap may be a table."""
        n = len(rows)
        target = read_target(y, n)
        weights = None if sample_weight is None else read_weights(sample_weight, n)
        weights = None if weights is None or (weights == weights[0]).all() else weights
        read = read_overlapping if overlapping else read_groups
        return cls(rows, target, weights, None if groups is None else read(groups, n), np.arange(n))

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: IntArray) -> LearningData:
        """Some of it, by places among its rows."""
        weights, groups = (None if each is None else each[places] for each in (self.weights, self.groups))
        return LearningData(self.rows.take(places), self.y[places], weights, groups, self.positions[places])

    def split(
        self,
        calibration_size: float | int | str | None,
        rng: np.random.RandomState,
        *,
        needed: float = 1.0,
        in_order: bool = False,
        most: tuple[int, int] | None = None,
    ) -> tuple[LearningData, LearningData]:
        """What is learnt from, and what is held back for calibration: of very many rows without groups so many.

        With "auto" as many are held back as `auto_rows` says, of each group; `needed` is how many a finite interval
        takes.
        """
        size = auto_rows(len(self), needed) if isinstance(calibration_size, str) else calibration_size
        labels = self.groups if self.groups is None or self.groups.ndim == 1 else None  # a table is not divided by
        if isinstance(calibration_size, str) and labels is not None:
            split = split_groups(labels, needed, rng, in_order=in_order)
        elif in_order:
            split = last_rows(len(self), size, labels)
        else:
            split = split_rows(len(self), size, rng, labels)
        if most is not None and self.groups is None:
            learn, held = zip(split, most, strict=True)
            split = sampled(*learn, rng), sampled(*held, rng)
        return self.take(split[0]), self.take(split[1])


@dataclass(frozen=True, eq=False)
class RowReader:
    """How X becomes rows, as `fit` has found and learnt it."""

    kind: str  # how X is read: as numbers, by columns, or as it is given
    encodes: bool = False  # whether a table that is not one of finite numbers would have been: complaints know it
    preprocessor: Any = None  # fitted; makes points of the rows. None: the rows are the points, where they are numbers
    model_sees_points: bool = False  # whether the point model is fitted to the points instead of the rows as given
    mean: Any = None  # (d,) and standard deviation, of the points of the learning rows
    scale: Any = None
    hashes: Any = None  # (n,) of the learning rows, sorted

    # -------------------------------------------------- reading

    @classmethod
    def learn(cls, model: Any, X: Any, wanted: str) -> tuple[RowReader, Rows]:
        """The reader of a fit, and the rows that it is given; the model keeps number and names of its features."""
        encodes = wanted in (TABLE, CATEGORIES)
        if not encodes:
            reader = cls(wanted)
            return reader, reader.read(model, X, reset=True)
        refuse_masked(X)
        with naming("X"):  # rows of different lengths
            table: Any = X if hasattr(X, "columns") or issparse(X) else np.asarray(X)
        if issparse(table) or len(table.shape) != 2 or getattr(table, "dtype", np.dtype(float)).kind == "c":
            reader = cls(DENSE if wanted == CATEGORIES else NUMBERS, encodes)
            return reader, reader.read(model, table, reset=True)  # which complains
        is_array = isinstance(table, np.ndarray)
        if wanted == TABLE and is_array and table.dtype.kind not in "mM":
            has_gaps = True
            with suppress(TypeError, ValueError):  # of cells that are no numbers
                has_gaps = bool(np.isnan(table.astype(float, copy=False)).any())
            if not has_gaps:
                return cls(NUMBERS, encodes), _number_rows(model, table, table)
        columns = ColumnTable.of(table_of(table))
        kinds = [(getattr(dtype, "kind", ""), str(dtype)) for dtype in (table.dtypes if is_frame(table) else ())]
        # of time, which are days here and other units for other readers
        spans = any(kind == "m" or word.startswith("Duration") for kind, word in kinds)
        few = (len(each.levels) <= MOST_CATEGORIES for each in columns.columns if each.kind == CATEGORY)
        others = {each.kind for each in columns.columns} - {CATEGORY, NUMBER, BOOLEAN}
        if wanted == CATEGORIES and not spans and not others and all(few):  # boosting takes these as they are
            reader = cls(DENSE, encodes)
            return reader, reader.read(model, table, reset=True)
        if wanted == TABLE and not is_array and not spans and (numbers := columns.numbers()) is not None:
            return cls(NUMBERS, encodes), _number_rows(model, table, numbers)
        reader = cls(COLUMNS, encodes)
        return reader, reader._checked(model, table, columns, reset=True)

    def read(self, model: Any, X: Any, *, reset: bool = False) -> Rows:
        """Rows of X, checked against what `fit` has seen."""
        refuse_masked(X)
        if self.kind == NUMBERS:
            try:
                # errstate: of scikit-learn's sums of all entries
                with naming("X"), np.errstate(over="ignore", invalid="ignore"):
                    array = X if hasattr(X, "columns") or issparse(X) else np.asarray(X)
                    options = {"dtype": np.float64, "order": "C", "ensure_min_samples": 2 if reset else 1}
                    numbers = validate_data(model, array, reset=reset, **options)
            except (TypeError, ValueError) as error:
                # what to do about text, dates and missing values, which the kernel cannot compare
                if not any(word in str(error) for word in ("could not convert", "NaN", "dtype", "DType")):
                    raise
                hint = (
                    "The kernel needs numbers: with preprocessor='auto' such columns are encoded and filled in; "
                    "otherwise pass a `preprocessor` (any transformer) that does it."
                )
                if self.encodes:
                    where = listed(odd_columns(X)) if is_frame(X) or np.ndim(X) == 2 else "X"
                    hint = f"Not finite numbers: {where}, but fit has seen a table of finite numbers only."
                raise ValueError(f"{error}\n{hint}") from error
            check_size("X", numbers, "give the column in another unit")
            return Rows(array if hasattr(array, "columns") else numbers, numbers)
        if self.kind == COLUMNS:
            table = table_of(X)
            return self._checked(model, table, table, reset=reset)
        if self.kind == GIVEN:
            if len(np.shape(X)) != 2:
                raise ValueError(f"X has shape {np.shape(X)}: expected two dimensions, rows and features")
            return self._checked(model, X, X, reset=reset)
        table = dense_table(X, as_it_is=hasattr(X, "columns"))
        rows = self._checked(model, table, table, reset=reset)
        values = np.asarray(table)
        if values.dtype.kind == "f":
            check_size("X", values, "give the column in another unit")
        return rows

    def _checked(self, model: Any, given: Any, table: Any, *, reset: bool) -> Rows:
        """Rows whose number, and names of features, are as they should be."""
        n, least = int(given.shape[0] if hasattr(given, "shape") else _num_samples(given)), 2 if reset else 1
        if n < least:
            raise ValueError(f"X has n_samples = {n} rows: expected at least {least}")
        validate_data(model, given, reset=reset, skip_check_array=True)
        return Rows(given, ColumnTable.of(table) if self.kind == COLUMNS else table)

    # -------------------------------------------------- learning

    def learning(self, preprocessor: Any, data: LearningData, estimator: Any = None) -> tuple[RowReader, Array]:
        """The reader with a fitted preprocessor, and the points of the learning rows.

        "auto" is standardised numbers of tables of finite numbers; of other tables what the transformers of a pipeline
        make, if these are numbers, standardised, and otherwise what `TableEncoder` makes. None leaves numbers.
        """
        rows = data.rows
        if self.kind == NUMBERS and (preprocessor is None or isinstance(preprocessor, str)):
            made = None if preprocessor is None else StandardScaler().fit(rows.table)
            points = dense_points(made, rows.table)
        else:
            made, points = self._learnt(preprocessor, rows, data.y, estimator)
        seen = points if self.kind == NUMBERS else dense_points(made, self._input(made, rows), points.shape[1])
        rows.points = seen
        sees = estimator is None and self.kind != NUMBERS
        known = {"mean": seen.mean(axis=0), "scale": seen.std(axis=0)}
        return replace(self, preprocessor=made, model_sees_points=sees, **known), points

    def as_numbers(self, data: LearningData) -> tuple[RowReader, Any]:
        """The reader that encodes columns, unscaled, if these were read, and what a model sees of the learning rows."""
        return self.learning(TableEncoder(scale=False), data) if self.kind == COLUMNS else (self, data.rows.given)

    def _learnt(self, preprocessor: Any, rows: Rows, y: Array, estimator: Any) -> tuple[Any, Array]:
        """A fitted transformer of rows that are no table of finite numbers, and what it makes of the learning rows."""
        if isinstance(preprocessor, str):
            if isinstance(estimator, Pipeline) and len(estimator) > 1:
                steps = Pipeline([("table", clone(estimator[:-1])), ("scale", StandardScaler(with_mean=False))])
                with suppress(TypeError, ValueError):
                    return steps, finite_points(steps.fit_transform(rows.given, y))
            preprocessor = TableEncoder()
        made = clone(preprocessor)
        X = self._input(made, rows)
        if hasattr(made, "fit_transform") and "y" in signature(made.fit).parameters:
            # which sees to it that learning rows know nothing of their own targets
            return made, finite_points(made.fit_transform(X, y), made, X, "fit_transform")
        made = made.fit(X)
        return made, dense_points(made, X)

    def remembering(self, data: LearningData) -> RowReader:
        """The reader that knows these learning rows again; without points it knows their mean, if they are numbers."""
        learnt = replace(self, hashes=np.sort(self.hashes_of(data.rows, data.y)))
        numbers = None if self.mean is not None else finite_numbers(data.rows.table)
        return learnt if numbers is None else replace(learnt, mean=numbers.mean(axis=0), scale=numbers.std(axis=0))

    # -------------------------------------------------- what rows become

    def points(self, rows: Rows) -> Array:
        """What the kernel sees of rows; of no more than a few blocks it is kept."""
        if rows.points is not None:
            return rows.points
        made = self.preprocessor
        width = None if self.mean is None else len(self.mean)
        points = dense_points(made, self._input(made, rows), width)
        if len(rows) <= KEPT_POINTS:
            rows.points = points
        return points

    def for_model(self, rows: Rows) -> Any:
        """What the point model sees of rows."""
        return self.points(rows) if self.model_sees_points else rows.given

    def _input(self, made: Any, rows: Rows) -> Any:
        """What a transformer of rows is given."""
        return rows.table if isinstance(made, TableEncoder) or self.kind == NUMBERS else rows.given

    def standardised(self, rows: Rows) -> dict[str, Array]:
        """`X` and `X_learn` for metrics: points in units of the learning rows; none where rows are no numbers."""
        has_points = self.preprocessor is not None or self.kind == NUMBERS
        points = self.points(rows) if has_points else finite_numbers(rows.table)
        if points is None or self.mean is None or self.scale is None:
            return {} if points is None else {"X": points}
        unit = np.ones((1, points.shape[1]))
        standard = (points - self.mean) / np.where(self.scale > 0, self.scale, 1.0)
        return {"X": standard, "X_learn": np.vstack([-unit, unit])}  # mean 0, standard deviation 1

    def sources(self, model: Any) -> list[str]:
        """For each column of the points the column of the table that it is made of, or the name that it was given."""
        made, count = self.preprocessor, 0 if self.mean is None else len(self.mean)
        if isinstance(made, TableEncoder):
            return [str(name) for name in made.sources()]
        if count == model.n_features_in_ and self.kind == NUMBERS:
            given = getattr(model, "feature_names_in_", None)
            return [f"feature {k}" for k in range(count)] if given is None else [str(name) for name in given]
        try:
            names = [str(name) for name in made.get_feature_names_out()]
        except (AttributeError, ValueError, TypeError):  # not every transformer knows
            names = []
        return names if len(names) == count else [f"column {k}" for k in range(count)]

    # -------------------------------------------------- rows seen before

    def hashes_of(self, rows: Rows, y: Array) -> AnyArray:
        """Of numbers as given, of other rows as the preprocessor shows them, or by checksums of their cells."""
        if self.kind == NUMBERS:
            return row_hashes(rows.table, y)
        return row_hashes(table_of_numbers(rows.table) if self.preprocessor is None else self.points(rows), y)


def _number_rows(model: Any, given: Any, numbers: Array) -> Rows:
    """Rows of a fit whose numbers have been read already."""
    validate_data(model, given, reset=True, skip_check_array=True)
    with naming("X"), np.errstate(over="ignore", invalid="ignore"):
        options = {"dtype": np.float64, "order": "C", "ensure_min_samples": 2, "estimator": model, "input_name": "X"}
        checked = check_array(numbers, **options)
    check_size("X", checked, "give the column in another unit")
    return Rows(given if hasattr(given, "columns") else checked, checked)


def row_blocks(n: int) -> list[slice]:
    """The positions of n rows in order, a few thousand at a time."""
    return [slice(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]


def auto_rows(n: int, needed: float) -> int:
    """How many of n rows to calibrate on: a quarter, at most some thousands, but what a finite interval takes.

    Five times that up to a third of the rows, so that the quantile is no extreme score, and as many as it takes up to
    half of them. With m rows the coverage of one model scatters by ``sqrt(level (1 - level)/m)``.
    """
    room = min(ROOM * (needed + 1), n / 3)
    return round(max(min(n * QUARTER, MOST_HELD), room, min(needed, n / 2)))


def split_groups(
    labels: AnyArray, needed: float, rng: np.random.RandomState, *, in_order: bool
) -> tuple[IntArray, IntArray]:
    """The same for each group alone, at random or its last rows; a group of one row is learnt from."""
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        count = auto_rows(len(rows), needed) if len(rows) > 1 else 0
        held[rows[len(rows) - count :] if in_order else rng.permutation(rows)[:count]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def split_rows(
    n: int, calibration_size: float | int | None, rng: np.random.RandomState, labels: AnyArray | None = None
) -> tuple[IntArray, IntArray]:
    """Positions of the learning rows and of the rows held back for calibration, both increasing.

    With labels each group is held back in the same proportion, up to one row, and of every group of two or more at
    least one, even if these are then more in all. A group of one row is held back or learnt from at random.
    """
    if calibration_size is None:
        return np.arange(n), np.zeros(0, dtype=np.intp)
    count = held_back(n, calibration_size)
    order = rng.permutation(n).astype(np.intp)
    held = np.diff(np.arange(n + 1) * count // n) > 0  # evenly spaced, `count` of them
    if labels is not None:
        distinct, group = np.unique(labels, return_inverse=True)
        group = rng.permutation(len(distinct))[group]  # in random order: no group is the last to be held back
        order = order[np.argsort(group[order], kind="stable")]  # groups one after another, shuffled within
        sizes = np.bincount(group)
        lacking = (sizes > 1) & (np.bincount(group[order[held]], minlength=len(sizes)) == 0)
        held[(np.cumsum(sizes) - 1)[lacking]] = True
    return np.sort(order[~held]), np.sort(order[held])


def last_rows(
    n: int, calibration_size: float | int | None, labels: AnyArray | None = None
) -> tuple[IntArray, IntArray]:
    """The same for rows in the order of time: the last ones are held back, of each group in its proportion.

    Of every group of two or more rows some are held back and some learnt from; single rows are learnt from.
    """
    count = held_back(n, calibration_size)
    if labels is None or not count:
        return np.arange(n - count), np.arange(n - count, n)
    held = np.zeros(n, dtype=bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) > 1:
            held[rows[-int(np.clip(round(len(rows) * count / n), 1, len(rows) - 1)) :]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def held_back(n: int, calibration_size: float | int | None) -> int:
    """How many of n rows are held back for calibration."""
    if calibration_size is None:
        return 0
    count = calibration_size if isinstance(calibration_size, (int, np.integer)) else round(calibration_size * n)
    count = max(1, int(count))
    if count >= n:
        raise ValueError(
            f"calibration_size={calibration_size!r} leaves none of the n_samples = {n} rows to learn from: expected "
            f"fewer than {n} held back, or None and a call of conformalize with other rows"
        )
    return count


def sampled(rows: IntArray, most: int, rng: np.random.RandomState) -> IntArray:
    """At most so many of the rows, drawn at random, in their order."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def groups_without(labels: AnyArray, calibration_rows: IntArray) -> list[Any]:
    """Labels of the groups that have no calibration row."""
    return list(np.setdiff1d(labels, labels[calibration_rows]).tolist())


def refuse_masked(X: Any) -> None:
    """Complain about masked entries, which every other reader takes for what lies below the mask."""
    if np.ma.is_masked(X):
        raise ValueError("X has masked entries: expected numbers, with NaN for what is missing (X.filled(np.nan))")


def dense_points(preprocessor: Any, X: Any, n_columns: int | None = None) -> Array:
    """What the kernel sees, as a dense array of numbers, of as many columns as it has learnt."""
    if preprocessor is None:
        return finite_points(X)
    points = finite_points(preprocessor.transform(X), preprocessor, X)
    if n_columns is not None and points.shape[1] != n_columns:
        raise ValueError(
            f"preprocessor: output of {type(preprocessor).__name__}.transform has {points.shape[1]} columns: expected "
            f"{n_columns}, as for the learning rows"
        )
    return points


def finite_points(points: Any, preprocessor: Any = None, X: Any = None, method: str = "transform") -> Array:
    """What a preprocessor gave of X as a dense array of numbers, one row for each of X, or an error."""
    whose = "X" if preprocessor is None else f"preprocessor: output of {type(preprocessor).__name__}.{method}"
    shape = np.shape(points)
    dtype = getattr(points, "dtype", None) or type(points).__name__
    advice = "" if preprocessor is None else ", so let it encode categories and fill in missing values"
    expected = f"{whose} must be a table of finite numbers{advice} (got shape {shape}, dtype {dtype})"
    try:
        numbers = read_numbers(whose, points.toarray() if hasattr(points, "toarray") else points)
    except (TypeError, ValueError) as error:
        raise ValueError(expected) from error
    if numbers.ndim != 2 or numbers.shape[1] == 0 or not np.isfinite(numbers).all():
        raise ValueError(expected)
    if preprocessor is not None and len(numbers) != _num_samples(X):
        raise ValueError(f"{whose} has {len(numbers)} rows: expected {_num_samples(X)}, one for each row of X")
    check_size(whose, numbers)
    return numbers


def row_hashes(points: Array, y: Array) -> AnyArray:
    """A 64-bit number per row, of its single precision, so that rows are known again after a change of their dtype."""
    with np.errstate(over="ignore"):
        rounded = np.column_stack([points, y]).astype(np.float32)
    table = np.ascontiguousarray(rounded.astype(np.float64) + 0.0)  # -0.0 becomes 0.0
    odd = np.random.default_rng(0).integers(1, 2**63, size=table.shape[1], dtype=np.uint64) | np.uint64(1)
    bits = table.view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(31))) * odd
        return np.asarray((mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64))


def learnt_rows(hashes: AnyArray, learnt: AnyArray, others: AnyArray | None = None) -> int:
    """How many rows are among the learnt ones, 0 if no more are than repeated rows in the data explain, and two.

    The share p of new rows that equal one of these by chance is taken to be that of `others`, rows beside them, which
    do, or that of themselves which equal another one. With n rows that tell it and m new rows it explains
    ``p m + 3 sqrt(p (1 - p) m (1 + m/n))`` of them, three standard errors above the mean; without repeated rows it
    explains none.
    """
    m = len(hashes)
    if others is not None and len(others):
        n, share = len(others), float(np.isin(others, learnt).mean())
    else:
        _, counts = np.unique(learnt, return_counts=True)
        n = len(learnt)
        share = counts[counts > 1].sum() / n
    explained = share * m + 3 * np.sqrt(share * (1 - share) * m * (1 + m / n))
    seen = int(np.isin(hashes, learnt).sum())
    return seen if seen > explained + SEEN_ROWS else 0


def table_of_numbers(X: Any) -> Array:
    """Finite numbers, equal where the entries of the table are equal; the same in every process, never to learn from.

    Columns of numbers stay as they are. Of any other column each entry becomes a checksum of its text.
    """

    def numbers_of(column: AnyArray) -> Array:
        if column.dtype.kind in "biufO":
            with suppress(TypeError, ValueError):
                return column.astype(float)
        distinct, place = np.unique(column.astype(str), return_inverse=True)
        return np.array([crc32(word.encode()) for word in distinct], dtype=float)[place]

    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else list(np.asarray(X).T)
    numbers = np.column_stack([numbers_of(column) for column in columns]).astype(float)
    return np.where(np.isfinite(numbers), numbers, GAP)
