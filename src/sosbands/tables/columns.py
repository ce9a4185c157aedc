"""The columns of a table (pandas, polars, arrays), each read once: numbers as floats, texts as levels and codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sosbands._arguments import LARGEST, naming
from sosbands._types import AnyArray, Array, IntArray
from sosbands.tables.kinds import (
    BOOLEAN,
    CATEGORY,
    DATE,
    MISSING,
    NOUNS,
    NUMBER,
    PARSERS,
    days_since_1970,
    kind_of_texts,
    text_of,
)

TEXT = "text"  # of a kind that its cells decide
PLURALS = {NUMBER: "numbers", CATEGORY: "categories", BOOLEAN: "booleans", DATE: "dates", TEXT: "texts"}
EPOCH = date(1970, 1, 1).toordinal()
MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which need not be installed


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column.

    Attributes
    ----------
    name : str
    kind : str
        What its dtype, or the types of its cells, say: "number", "boolean", "date", "category" or "text".
    values : ndarray of float
        Of numbers, booleans (1 and 0) and dates (days since 1970), NaN where a cell is missing; otherwise the position
        of each cell in `levels`.
    levels : list of str
        Different texts, trimmed; a missing cell is the empty text.
    """

    name: str
    kind: str
    values: AnyArray
    levels: Sequence[str] = ()

    def decided(self) -> str:
        """The kind; that of texts is decided by all of them."""
        if self.kind != TEXT:
            return self.kind
        counts = np.bincount(self.values, minlength=len(self.levels)).tolist()
        found = kind_of_texts({text: count for text, count in zip(self.levels, counts, strict=True) if text and count})
        if found.wrong:
            position, text = self._first(found.wrong)
            raise self.error(found.mistake(text, "give the column the dtype 'category'"), position)
        return found.kind

    def numbers(self, kind: str, *, days: bool = False) -> Array:
        """Floats of a column that is to hold numbers, booleans or dates; `days` lets numbers stand for dates."""
        if self.kind in (TEXT, CATEGORY):
            return self._parsed(kind)
        if self.kind != kind and not (kind == NUMBER and self.kind == BOOLEAN) and not (days and self.kind == NUMBER):
            empty = bool(np.isnan(self.values).all())
            # booleans become such numbers by gaps, by means, and along an axis that is drawn through them
            near = kind == BOOLEAN and self.kind == NUMBER and bool(np.nanmax(np.abs(self.values - 0.5), initial=0) < 1)
            if not (empty or near):
                raise self.error(f"holds {PLURALS[self.kind]}, expected {PLURALS[kind]} as in the learning rows")
        return self._finite(self.values)

    def texts(self) -> tuple[Sequence[str], IntArray]:
        """Levels and codes of a column that is to hold categories."""
        if self.kind in (TEXT, CATEGORY):
            return self.levels, self.values
        if self.kind == DATE:
            raise self.error("holds dates, expected categories as in the learning rows")
        found, codes = np.unique(self.values, return_inverse=True)
        as_cell: Callable[[float], Any] = bool if self.kind == BOOLEAN else float
        return [text_of(value if np.isnan(value) else as_cell(value)) for value in found.tolist()], codes.reshape(-1)

    def error(self, problem: str, position: int | None = None) -> ValueError:
        """An error about the column, or about one of its cells."""
        row = "" if position is None else f", row {position} (the first is 0)"
        return ValueError(f"X: column {self.name!r}{row}: {problem}")

    def _parsed(self, kind: str) -> Array:
        parse = PARSERS[kind]
        found = [np.nan if not text else parse(text) for text in self.levels]
        wrong = [text for text, value in zip(self.levels, found, strict=True) if value is None]
        if wrong:
            position, text = self._first(wrong)
            raise self.error(f"{text!r} is not {NOUNS[kind]}, as in the learning rows", position)
        values = np.array([*found, np.nan], dtype=float)[self.values]
        return self._finite(values)

    def _finite(self, values: Array) -> Array:
        """The values, none of them infinite or too large to be squared; gaps stay."""
        wrong = np.flatnonzero(np.abs(values) > LARGEST)
        if len(wrong):
            value = values[wrong[0]]
            finite = f"expected at most {LARGEST:g}, so give the column in another unit"
            problem = "is not a finite number" if np.isinf(value) else f"is too large: {finite}"
            raise self.error(f"{value} {problem}", int(wrong[0]))
        return values

    def _first(self, texts: Iterable[str]) -> tuple[int, str]:
        """Position and text of the first cell with one of these texts."""
        wanted = set(texts)
        codes = [code for code, text in enumerate(self.levels) if text in wanted]
        position = int(np.flatnonzero(np.isin(self.values, codes))[0])
        return position, self.levels[int(self.values[position])]


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table; those of an array are x0, x1, ..."""
    if is_frame(X):
        names = [str(name) for name in X.columns]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"X has several columns named {repeated}: expected different names")
        return names
    return [f"x{j}" for j in range(np.shape(X)[1])]


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "iloc") or hasattr(X, "get_columns")


def table_of(X: Any) -> Any:
    """A data frame as it is, anything else as an array of two dimensions."""
    if issparse(X):
        raise TypeError("X is a sparse matrix: expected a dense table (X.toarray()), sparse data are not supported")
    with naming("X"):  # rows of different lengths
        table = X if is_frame(X) else np.asarray(X)
    if len(table.shape) != 2:
        raise ValueError(
            f"X has shape {table.shape}: expected two dimensions, rows and features. Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row"
        )
    if not all(table.shape):
        what, k = ("sample", 0) if not table.shape[0] else ("feature", 1)
        raise ValueError(f"X has {table.shape[k]} {what}(s) (shape={table.shape}) while a minimum of 1 is required.")
    if not is_frame(table) and table.dtype.kind == "c":
        raise ValueError("X holds complex numbers. Complex data not supported")
    return table


def is_number_table(X: Any) -> bool:
    """Whether X can be read as it is, as numbers; True also for what is no table, of which readers complain."""
    if is_frame(X) and not _holds_only_numbers(X):
        return False
    if issparse(X):
        return True
    try:
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind == "c":
            return True
        return array.dtype.kind not in "mM" and not np.isnan(array.astype(float)).any()
    except (TypeError, ValueError):
        with naming("X"):  # rows of different lengths
            return len(np.shape(X)) != 2


def odd_columns(X: Any) -> list[str]:
    """Names of the columns of a table that are not finite numbers."""
    columns = [read_column(X, position, name) for position, name in enumerate(column_names(X))]
    return [each.name for each in columns if each.kind not in (NUMBER, BOOLEAN) or not np.isfinite(each.values).all()]


def _holds_only_numbers(X: Any) -> bool:
    """Whether the dtypes of a data frame are numbers, booleans, or objects, which may be numbers."""
    if hasattr(X, "iloc"):
        return all(dtype.kind in "biuf" or str(dtype) == "object" for dtype in X.dtypes)
    return all(dtype.is_numeric() or str(dtype) == "Boolean" for dtype in X.dtypes)


def read_column(X: Any, position: int, name: str) -> Column:
    """One column of a data frame or array."""
    if hasattr(X, "iloc"):
        return _of_pandas(X.iloc[:, position], name)
    if hasattr(X, "get_columns"):
        return _of_polars(X.get_columns()[position], name)
    return _of_array(X[:, position], name)


def _of_pandas(series: Any, name: str) -> Column:
    kind = series.dtype.kind
    if kind in "biuf":
        return Column(name, BOOLEAN if kind == "b" else NUMBER, series.to_numpy(dtype=float, na_value=np.nan))
    if kind == "M":
        return Column(name, DATE, _days(series.to_numpy(dtype="datetime64[us]")))
    if hasattr(series, "cat"):
        return _with_levels(name, CATEGORY, [*map(text_of, series.cat.categories), ""], series.cat.codes.to_numpy())
    return _of_array(series.to_numpy() if kind == "m" else series.to_numpy(dtype=object, na_value=None), name)


def _of_polars(series: Any, name: str) -> Column:
    kind = str(series.dtype).partition("(")[0]
    if series.dtype.is_numeric():
        return Column(name, NUMBER, np.array(series.cast(float).to_numpy()))
    if kind == "Boolean":
        return Column(name, BOOLEAN, np.array(series.cast(int).cast(float).to_numpy()))
    if kind in ("Categorical", "Enum"):
        column = _of_array(series.cast(str).to_numpy(), name)
        return Column(name, CATEGORY, column.values, column.levels)
    values = series.to_numpy()
    return _of_array(values if kind in ("Date", "Datetime", "Duration") else values.astype(object), name)


def _of_array(values: AnyArray, name: str) -> Column:
    if values.dtype.kind in "biuf":
        return Column(name, BOOLEAN if values.dtype.kind == "b" else NUMBER, values.astype(float))
    if values.dtype.kind == "M":
        return Column(name, DATE, _days(values))
    if values.dtype.kind == "m":
        return Column(name, NUMBER, _days(values))
    return _of_cells(values.tolist(), name)


def _days(moments: AnyArray) -> Array:
    """Days since 1970 of moments, or days that spans of time last."""
    unit = "datetime64[us]" if moments.dtype.kind == "M" else "timedelta64[us]"
    whole = moments.astype(unit).astype(np.int64).astype(float) / 86_400_000_000
    return np.where(np.isnat(moments), np.nan, whole)


def _of_cells(cells: list[Any], name: str) -> Column:
    """A column of Python objects, by their types."""
    types = {each for each in set(map(type, cells)) if each.__name__ not in MISSING_TYPES and each is not type(None)}
    if float in types and all(cell != cell for cell in cells if isinstance(cell, float)):
        types -= {float}  # they are gaps
    odd = [each for each in types if not issubclass(each, (str, Real, np.bool_, Decimal, date))]
    if odd:
        raise TypeError(
            f"X: column {name!r} holds cells of type {odd[0].__name__}: an argument must be a string, a number, a "
            "boolean, a date or missing"
        )
    if types and all(issubclass(each, (bool, np.bool_)) for each in types):
        return Column(name, BOOLEAN, _floats(cells, float))
    if types and all(issubclass(each, (Real, np.bool_, Decimal)) for each in types):
        return Column(name, NUMBER, _floats(cells, float))
    if types and all(issubclass(each, date) for each in types):
        return Column(name, DATE, _floats(cells, _day_of))
    codes: dict[Any, int] = {}
    positions = np.fromiter((codes.setdefault(cell, len(codes)) for cell in cells), dtype=np.intp, count=len(cells))
    return _with_levels(name, TEXT, [_cell_text(cell) for cell in codes], positions)


def _cell_text(cell: Any) -> str:
    return "" if type(cell).__name__ in MISSING_TYPES else text_of(cell)


def _floats(cells: list[Any], convert: Callable[[Any], float]) -> Array:
    gaps = (cell is None or type(cell).__name__ in MISSING_TYPES or cell != cell for cell in cells)
    return np.array([np.nan if gap else convert(cell) for cell, gap in zip(cells, gaps, strict=True)])


def _day_of(moment: date) -> float:
    return days_since_1970(moment) if isinstance(moment, datetime) else float(moment.toordinal() - EPOCH)


def _with_levels(name: str, kind: str, texts: list[str], codes: AnyArray) -> Column:
    """Texts trimmed, those that stand for a missing cell empty, each once; the last one may be reached as -1."""
    clean = ["" if text in MISSING else text for text in (text.strip() for text in texts)]
    levels = {text: code for code, text in enumerate(dict.fromkeys(clean))}
    places = np.array([levels[text] for text in clean], dtype=np.intp)
    return Column(name, kind, places[codes], list(levels))
