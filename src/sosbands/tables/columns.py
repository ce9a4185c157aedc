"""The columns of a table (pandas, polars, arrays, files), each read once: numbers as floats, texts as levels and codes.

What a column of texts is, is decided by its cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sosbands._arguments import LARGEST, naming
from sosbands._extras import need
from sosbands._types import AnyArray, Array, IntArray

NUMBER, CATEGORY, BOOLEAN, DATE = "number", "category", "boolean", "date"
KINDS = (NUMBER, CATEGORY, BOOLEAN, DATE)
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
MOSTLY = 0.5  # of the cells: above this a column is taken to be of a kind, and the other cells to be mistakes
NOUNS = {NUMBER: "a number", DATE: "an ISO date such as 2024-12-31", BOOLEAN: "true or false"}
SECONDS_PER_DAY = 86_400
MICROSECONDS_PER_DAY = 86_400_000_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?")
TEXT = "text"  # of a kind that its cells decide
PLURALS = {NUMBER: "numbers", CATEGORY: "categories", BOOLEAN: "booleans", DATE: "dates", TEXT: "texts"}
EPOCH = date(1970, 1, 1).toordinal()
MISSING_TYPES = ("NAType", "NaTType")  # of pandas, which need not be installed


@dataclass(frozen=True)
class Place:
    """Where columns come from, in the words of messages."""

    table: str = "X"
    first_row: int | None = None  # what the first row is called; None: rows are counted from 0, as in Python
    remedy: str = "give the column the dtype 'category'"  # about texts of a kind of their own
    ending: str = " as in the learning rows"  # of messages about cells of another kind than expected

    def row(self, position: int) -> str:
        """What a row is called."""
        return f"row {position} (the first is 0)" if self.first_row is None else f"row {self.first_row + position}"


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column, of the kind that its dtype, or the types of its cells, say, or else "text"."""

    name: str
    kind: str
    values: AnyArray  # numbers, booleans (1, 0) or dates (days since 1970), NaN for gaps; otherwise positions in levels
    levels: Sequence[str] = ()  # different texts, trimmed, the empty one where a cell is missing
    place: Place = Place()
    stored: str = ""  # the type of the cells in a file

    def take(self, rows: Any) -> Column:
        """Some of the cells, with the levels that these have."""
        if not len(self.levels):
            return replace(self, values=self.values[rows])
        codes = self.values[rows]
        used = np.flatnonzero(np.bincount(codes, minlength=len(self.levels)))
        places = np.zeros(len(self.levels), dtype=np.intp)
        places[used] = np.arange(len(used))
        return replace(self, values=places[codes], levels=[self.levels[code] for code in used.tolist()])

    @property
    def is_empty(self) -> bool:
        """Whether every cell is missing."""
        return not any(self.levels) if len(self.levels) else bool(np.isnan(self.values).all())

    def decided(self) -> str:
        """The kind; that of texts is decided by all of them."""
        if self.kind != TEXT:
            return self.kind
        counts = np.bincount(self.values, minlength=len(self.levels)).tolist()
        found = kind_of_texts({text: count for text, count in zip(self.levels, counts, strict=True) if text and count})
        if found.wrong:
            position, text = self.first(found.wrong)
            raise self.error(found.mistake(text, self.place.remedy), position)
        return found.kind

    def numbers(self, kind: str, *, days: bool = False) -> Array:
        """Floats of a column that is to hold numbers, booleans or dates; `days` lets numbers stand for dates."""
        values: Array = self.values
        if self.kind in (TEXT, CATEGORY):
            found = [PARSERS[kind](text) if text else np.nan for text in self.levels]
            wrong = [text for text, value in zip(self.levels, found, strict=True) if value is None]
            if wrong:
                position, text = self.first(wrong)
                ending = self.place.ending and f",{self.place.ending}"
                raise self.error(f"{text!r} is not {NOUNS[kind]}{ending}", position)
            values = np.array([*found, np.nan], dtype=float)[values]
        elif self.kind != kind and not (kind == NUMBER and self.kind == BOOLEAN) and not (days and self.kind == NUMBER):
            empty = bool(np.isnan(values).all())
            # booleans become such numbers by gaps, by means, and along an axis that is drawn through them
            near = kind == BOOLEAN and self.kind == NUMBER and bool(np.nanmax(np.abs(values - 0.5), initial=0) < 1)
            if not (empty or near):
                raise self.mismatch(PLURALS[kind])
        large = np.flatnonzero(np.abs(values) > LARGEST)
        if len(large):
            value = values[large[0]]
            finite = f"expected at most {LARGEST:g}, so give the column in another unit"
            problem = "is not a finite number" if np.isinf(value) else f"is too large: {finite}"
            raise self.error(f"{value} {problem}", int(large[0]))
        return values

    def texts(self) -> tuple[Sequence[str], IntArray]:
        """Levels and codes of a column that is to hold categories."""
        if self.kind in (TEXT, CATEGORY):
            return self.levels, self.values
        if self.kind == DATE:
            raise self.mismatch(PLURALS[CATEGORY])
        found, codes = np.unique(self.values, return_inverse=True)
        as_cell: Callable[[float], Any] = bool if self.kind == BOOLEAN else float
        return [text_of(value if np.isnan(value) else as_cell(value)) for value in found.tolist()], codes.reshape(-1)

    def error(self, problem: str, position: int | None = None) -> ValueError:
        """An error about the column, or about one of its cells."""
        row = "" if position is None else f", {self.place.row(position)}"
        return ValueError(f"{self.place.table}: column {self.name!r}{row}: {problem}")

    def mismatch(self, expected: str) -> ValueError:
        """An error about a column of another kind."""
        return self.error(f"holds {self.stored or PLURALS[self.kind]}, expected {expected}{self.place.ending}")

    def first(self, texts: Iterable[str]) -> tuple[int, str]:
        """Position and text of the first cell with one of these texts."""
        wanted = set(texts)
        codes = [code for code, text in enumerate(self.levels) if text in wanted]
        position = int(np.flatnonzero(np.isin(self.values, codes))[0])
        return position, self.levels[int(self.values[position])]


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """A table that was read: its columns, and whether they came with names."""

    columns: tuple[Column, ...]
    named: bool

    @classmethod
    def of(cls, X: Any) -> ColumnTable:
        """All columns of a data frame or array; a table that was read is itself."""
        if isinstance(X, ColumnTable):
            return X
        names = [str(name) for name in X.columns] if is_frame(X) else [f"x{j}" for j in range(X.shape[1])]
        return cls(tuple(read_column(X, position, name) for position, name in enumerate(names)), is_frame(X))

    def __len__(self) -> int:
        return len(self.columns[0].values)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    def take(self, rows: Any) -> ColumnTable:
        """Some of the rows."""
        return ColumnTable(tuple(column.take(rows) for column in self.columns), self.named)

    def numbers(self) -> Array | None:
        """The table as an array, if all of its columns are numbers or booleans without gaps."""
        plain = all(column.kind in (NUMBER, BOOLEAN) and not np.isnan(column.values).any() for column in self.columns)
        return np.column_stack([column.values for column in self.columns]) if plain else None


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table; those of an array are x0, x1, ..."""
    if is_frame(X) or isinstance(X, ColumnTable):
        names = [column.name if isinstance(column, Column) else str(column) for column in X.columns]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"X has several columns named {repeated}: expected different names")
        return names
    return [f"x{j}" for j in range(np.shape(X)[1])]


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "iloc") or hasattr(X, "get_columns")


def has_names(X: Any) -> bool:
    """Whether the columns of a table have names."""
    return X.named if isinstance(X, ColumnTable) else is_frame(X)


def dense_table(X: Any, *, as_it_is: bool) -> Any:
    """A table as it is, or as an array, of two dimensions."""
    if issparse(X):
        raise TypeError("X is a sparse matrix: expected a dense table (X.toarray()), sparse data are not supported")
    with naming("X"):  # rows of different lengths
        table = X if as_it_is else np.asarray(X)
    if len(table.shape) != 2:
        raise ValueError(
            f"X has shape {table.shape}: expected two dimensions, rows and features. Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row"
        )
    return table


def table_of(X: Any) -> Any:
    """A data frame as it is, and what was read, anything else as an array of two dimensions."""
    if isinstance(X, ColumnTable):
        return X
    table = dense_table(X, as_it_is=is_frame(X))
    if not all(table.shape):
        what, k = ("sample", 0) if not table.shape[0] else ("feature", 1)
        raise ValueError(f"X has {table.shape[k]} {what}(s) (shape={table.shape}) while a minimum of 1 is required.")
    if not is_frame(table) and table.dtype.kind == "c":
        raise ValueError("X holds complex numbers. Complex data not supported")
    return table


def odd_columns(X: Any) -> list[str]:
    """Names of the columns of a table that are not finite numbers."""
    columns = [read_column(X, position, name) for position, name in enumerate(column_names(X))]
    return [each.name for each in columns if each.kind not in (NUMBER, BOOLEAN) or not np.isfinite(each.values).all()]


def read_column(X: Any, position: int, name: str) -> Column:
    """One column of a data frame, an array, or a table that was read."""
    if isinstance(X, ColumnTable):
        return replace(X.columns[position], name=name)
    if hasattr(X, "get_columns"):  # of polars
        series = X.get_columns()[position]
        kind = str(series.dtype).partition("(")[0]
        if series.dtype.is_numeric():
            return Column(name, NUMBER, np.array(series.cast(float).to_numpy()))
        if kind == "Boolean":
            return Column(name, BOOLEAN, np.array(series.cast(int).cast(float).to_numpy()))
        if kind in ("Categorical", "Enum"):
            return replace(_of_array(series.cast(str).to_numpy(), name), kind=CATEGORY)
        values = series.to_numpy()
        return _of_array(values if kind in ("Date", "Datetime", "Duration") else values.astype(object), name)
    if not hasattr(X, "iloc"):
        return _of_array(X[:, position], name)
    series = X.iloc[:, position]
    kind = series.dtype.kind
    if kind in "biuf":
        return Column(name, BOOLEAN if kind == "b" else NUMBER, series.to_numpy(dtype=float, na_value=np.nan))
    if kind == "M":
        return Column(name, DATE, _days(series.to_numpy(dtype="datetime64[us]")))
    if hasattr(series, "cat"):
        return _with_levels(name, CATEGORY, [*map(text_of, series.cat.categories), ""], series.cat.codes.to_numpy())
    return _of_array(series.to_numpy() if kind == "m" else series.to_numpy(dtype=object, na_value=None), name)


def _of_array(values: AnyArray, name: str) -> Column:
    if values.dtype.kind in "biuf":
        return Column(name, BOOLEAN if values.dtype.kind == "b" else NUMBER, values.astype(float))
    if values.dtype.kind in "Mm":
        return Column(name, DATE if values.dtype.kind == "M" else NUMBER, _days(values))
    return _of_cells(values.tolist(), name)


def column_of_file(cells: Any, name: str, place: Place, wanted: str | None = None) -> Column:
    """One column of a file (pyarrow); `wanted` is its kind, if that is known."""
    pa, pc, types = need("pyarrow"), need("pyarrow.compute"), need("pyarrow.types")
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if types.is_large_string(cells.type) or cells.type == pa.string_view():
        cells = pc.cast(cells, pa.string())
    stored, is_text = str(cells.type), types.is_string(cells.type)
    if is_text and wanted == NUMBER:
        try:  # all at once; the first cell that is none is named elsewhere
            trimmed = pc.utf8_trim_whitespace(cells)
            missing = pc.is_in(trimmed, value_set=pa.array(MISSING))
            cells = pc.cast(pc.if_else(missing, pa.scalar(None, pa.string()), trimmed), pa.float64())
            is_text = False
        except pa.ArrowInvalid:
            pass
    if is_text or wanted in (CATEGORY, BOOLEAN):
        encoded = cells.dictionary_encode()
        texts = [*map(text_of, encoded.dictionary.to_pylist()), ""]
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        found = _with_levels(name, TEXT if is_text else CATEGORY, texts, codes)
        return replace(found, place=place, stored=stored)
    kind, unit = NUMBER, 1.0
    if types.is_boolean(cells.type):
        kind = BOOLEAN
    elif types.is_timestamp(cells.type) or types.is_date(cells.type):
        kind, unit = DATE, MICROSECONDS_PER_DAY
        moments = pc.cast(cells, pa.timestamp("us", getattr(cells.type, "tz", None)), safe=False)
        cells = pc.cast(moments, pa.int64())
    elif not any(test(cells.type) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_null)):
        expected = PLURALS[wanted] if wanted else "numbers, texts, booleans or dates"
        raise Column(name, TEXT, np.empty(0), (), place, stored).mismatch(expected)
    floats = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return Column(name, kind, np.array(floats, dtype=float) / unit, (), place, stored)


def _days(moments: AnyArray) -> Array:
    """Days since 1970 of moments, or days that spans of time last."""
    unit = "datetime64[us]" if moments.dtype.kind == "M" else "timedelta64[us]"
    whole = moments.astype(unit).astype(np.int64).astype(float) / MICROSECONDS_PER_DAY
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
    converted: tuple[tuple[str, Any, Callable[[Any], float]], ...] = (
        (BOOLEAN, (bool, np.bool_), float),
        (NUMBER, (Real, np.bool_, Decimal), float),
        (DATE, date, days_since_1970),
    )
    for kind, known, convert in converted:
        if types and all(issubclass(each, known) for each in types):
            gaps = (cell is None or type(cell).__name__ in MISSING_TYPES or cell != cell for cell in cells)
            values = [np.nan if gap else convert(cell) for cell, gap in zip(cells, gaps, strict=True)]
            return Column(name, kind, np.array(values))
    codes: dict[Any, int] = {}
    positions = np.fromiter((codes.setdefault(cell, len(codes)) for cell in cells), dtype=np.intp, count=len(cells))
    texts = ["" if type(cell).__name__ in MISSING_TYPES else text_of(cell) for cell in codes]
    return _with_levels(name, TEXT, texts, positions)


def _with_levels(name: str, kind: str, texts: list[str], codes: AnyArray) -> Column:
    """Texts trimmed, those that stand for a missing cell empty, each once; the last one may be reached as -1."""
    clean = ["" if text in MISSING else text for text in (text.strip() for text in texts)]
    levels = {text: code for code, text in enumerate(dict.fromkeys(clean))}
    places = np.array([levels[text] for text in clean], dtype=np.intp)
    return Column(name, kind, places[codes], list(levels))


@dataclass(frozen=True)
class TextKind:
    """What a column of texts is, which texts are not of this kind although most cells are, and the share that is."""

    kind: str
    wrong: frozenset[str] = frozenset()
    share: float = 1.0

    def mistake(self, text: str, advice: str) -> str:
        """What to say of one of the wrong cells."""
        return f"{text!r} is not {NOUNS[self.kind]}, as {self.share:.0%} of the column; correct it, or {advice}"


def kind_of_texts(counts: Mapping[str, int]) -> TextKind:
    """Kind of a column by how often each text occurs, missing cells aside: what all of them are, or categories.

    If only most cells are numbers or dates, the others are mistakes.
    """
    total = sum(counts.values())
    for kind, parse in ((NUMBER, number), (DATE, day)):
        wrong = frozenset(text for text in counts if parse(text) is None)
        share = 1 - sum(counts[text] for text in wrong) / total if total else 0.0
        if share > MOSTLY:
            return TextKind(kind, wrong, share)
    boolean = total and all(truth(text) is not None for text in counts)
    return TextKind(BOOLEAN if boolean else CATEGORY)


def number(text: str) -> float | None:
    """The number that a text is, None if it is none; underscores between digits are Python's, not those of data."""
    if text[:1].isalpha() and text[:1] not in "iInN":  # most texts that are none, at little cost; inf and nan are some
        return None
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def day(text: str) -> float | None:
    """The days from 1970-01-01 to an ISO date, None if the text is none; without a time zone UTC is meant."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return days_since_1970(datetime.fromisoformat(text))
    except ValueError:  # such as month 13
        return None


def days_since_1970(moment: date) -> float:
    """A day, or a moment in days; without a time zone UTC is meant."""
    if not isinstance(moment, datetime):
        return float(moment.toordinal() - EPOCH)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / SECONDS_PER_DAY


def truth(text: str) -> float | None:
    """1 for true, 0 for false, in small or large letters, None for anything else."""
    return {"true": 1.0, "false": 0.0}.get(text.lower())


PARSERS = {NUMBER: number, DATE: day, BOOLEAN: truth}


def text_of(value: Any) -> str:
    """A cell as the name of a category: empty if missing, whole numbers without decimals, booleans in small letters."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
