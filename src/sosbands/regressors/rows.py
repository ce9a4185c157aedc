"""Rows of an interval regressor: how they are read, split, preprocessed and known again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, validate_data

from sosbands._arguments import check_size, naming, read_numbers
from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import listed
from sosbands.point_models.residuals import row_blocks
from sosbands.tables import TableEncoder
from sosbands.tables.columns import is_frame, odd_columns

SEEN_ROWS = 2  # calibration rows that may equal learning rows without a warning, beyond what repeated rows explain


@dataclass(frozen=True)
class Rows:
    """The same rows as the point model and as the preprocessor see them."""

    for_model: Any
    for_kernel: Any

    def __len__(self) -> int:
        return int(_num_samples(self.for_kernel))

    def take(self, rows: IntArray | slice) -> Rows:
        """Some of the rows, of an array, data frame, list or sparse matrix."""
        model, kernel = (_safe_indexing(X, rows) for X in (self.for_model, self.for_kernel))
        return Rows(model, kernel)

    def blocks(self) -> Iterator[Rows]:
        """The rows in order, a few thousand at a time."""
        blocks = list(row_blocks(len(self)))
        yield from ([self] if len(blocks) < 2 else (self.take(block) for block in blocks))


def split_rows(
    n: int, calibration_size: float | int | None, rng: np.random.RandomState, labels: AnyArray | None = None
) -> tuple[IntArray, IntArray]:
    """Positions of the learning rows and of the rows held back for calibration, both increasing.

    With labels each group is held back in the same proportion, up to one row, and of every group of two or more rows at
    least one, even if these are more than `calibration_size` in all. A group of one row is held back or learnt from at
    random; `groups_without` names those that go without calibration.
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
    """The same for rows in the order of time: the last ones are held back, of each group those in its proportion.

    Of every group of two or more rows at least one is held back and at least one learnt from; single rows are learnt
    from.
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
    found: list[Any] = np.setdiff1d(labels, labels[calibration_rows]).tolist()
    return found


def read_number_rows(model: Any, X: Any, *, reset: bool) -> Rows:
    """Rows that must be a table of finite numbers, by scikit-learn's checks, none too large to be squared."""
    least = 2 if reset else 1
    with naming("X"), np.errstate(over="ignore", invalid="ignore"):  # of scikit-learn's sums of all entries
        numbers = validate_data(model, X, reset=reset, dtype=np.float64, order="C", ensure_min_samples=least)
    check_size("X", numbers, "give the column in another unit")
    return Rows(X if hasattr(X, "columns") else numbers, numbers)


def refuse_masked(X: Any) -> None:
    """Complain about masked entries, which every other reader takes for what lies below the mask."""
    if np.ma.is_masked(X):
        raise ValueError("X has masked entries: expected numbers, with NaN for what is missing (X.filled(np.nan))")


@contextmanager
def naming_preprocessor(X: Any, *, encodes: bool = False) -> Iterator[None]:
    """Say what to do about text, dates and missing values, which the kernel cannot compare."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not any(word in str(error) for word in ("could not convert", "NaN", "dtype", "DType")):
            raise
        if encodes:
            where = listed(odd_columns(X)) if is_frame(X) or np.ndim(X) == 2 else "X"
            hint = f"Not finite numbers: {where}, but fit has seen a table of finite numbers only."
        else:
            hint = (
                "The kernel needs numbers: with preprocessor='auto' such columns are encoded and filled in; otherwise "
                "pass a `preprocessor` (any transformer) that does it."
            )
        raise ValueError(f"{error}\n{hint}") from error


def learn_preprocessor(preprocessor: Any, X: Any, y: Array, *, numbers: bool, estimator: Any) -> tuple[Any, Array]:
    """Fitted transformer of what the kernel sees, None for the features as they are, and what it sees of these rows.

    These are learning rows: a transformer that looks at targets gives them by `fit_transform` what does not know their
    own. "auto" is standardised numbers of tables of finite numbers; of other tables what the transformers of a pipeline
    make, if these are numbers, standardised, and otherwise what `TableEncoder` makes.
    """
    if preprocessor is None:
        return None, finite_points(X)
    if isinstance(preprocessor, str):
        if numbers:
            scaler = StandardScaler().fit(X)
            return scaler, dense_points(scaler, X)
        if isinstance(estimator, Pipeline) and len(estimator) > 1:
            steps = Pipeline([("table", clone(estimator[:-1])), ("scale", StandardScaler(with_mean=False))])
            with suppress(TypeError, ValueError):
                return steps, finite_points(steps.fit_transform(X, y))
        preprocessor = TableEncoder()
    made = clone(preprocessor)
    if hasattr(made, "fit_transform") and "y" in signature(made.fit).parameters:
        return made, finite_points(made.fit_transform(X, y), made, X, "fit_transform")
    made = made.fit(X)
    return made, dense_points(made, X)


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


def without_outliers(r: Array, fraction: float) -> AnyArray:
    """Mask of the rows kept when the `fraction` with the largest residuals is left out."""
    keep = np.ones(len(r), dtype=bool)
    dropped = int(np.floor(fraction * len(r)))
    if dropped:
        keep[np.argsort(-np.abs(r), kind="stable")[:dropped]] = False
    return keep


def row_hashes(points: Array, y: Array) -> AnyArray:
    """A 64-bit number per row, equal for rows that are equal in single precision: multiply and add, wrapping around.

    Single precision, so that rows are known again after a change of their dtype.
    """
    with np.errstate(over="ignore"):
        rounded = np.column_stack([points, y]).astype(np.float32)
    table = np.ascontiguousarray(rounded.astype(np.float64) + 0.0)  # -0.0 becomes 0.0
    odd = np.random.default_rng(0).integers(1, 2**63, size=table.shape[1], dtype=np.uint64) | np.uint64(1)
    bits = table.view(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(31))) * odd
        return np.asarray((mixed ^ (mixed >> np.uint64(29))).sum(axis=1, dtype=np.uint64))


def learnt_rows(hashes: AnyArray, learnt: AnyArray) -> int:
    """How many rows were learnt from, 0 if no more are than repeated rows in the data explain, and two.

    The share p of new rows that equal a learning row by chance is taken to be that of the learning rows that equal
    another one. With n learning and m new rows it explains ``p m + 3 sqrt(p (1 - p) m (1 + m/n))`` of them, three
    standard errors above the mean; without repeated rows it explains none.
    """
    _, counts = np.unique(learnt, return_counts=True)
    m, n = len(hashes), len(learnt)
    share = counts[counts > 1].sum() / n
    explained = share * m + 3 * np.sqrt(share * (1 - share) * m * (1 + m / n))
    seen = int(np.isin(hashes, learnt).sum())
    return seen if seen > explained + SEEN_ROWS else 0
