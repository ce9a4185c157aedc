"""What the cells of a column mean: numbers, categories, booleans or dates; as arrays that models take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._arguments import LARGEST
from sosbands._types import AnyArray, Array
from sosbands.cli.extras import need
from sosbands.tables.kinds import BOOLEAN, DATE, MISSING, NOUNS, NUMBER, PARSERS, kind_of_texts, text_of

MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Place:
    """A column of a file, from some row on (the first after the header is 1): what an error message names."""

    path: Path
    column: str
    first_row: int = 1

    def error(self, problem: str, position: int | None = None) -> ValueError:
        """An error about the column, or about one of its cells."""
        row = "" if position is None else f", row {self.first_row + position}"
        return ValueError(f"{self.path}: column {self.column!r}{row}: {problem}")


def kind_of(column: Any, place: Place) -> str:
    """The kind of a column, decided by all of its cells; an error names the first one that is a mistake."""
    column = _simple(column)
    pa_types = need("pyarrow.types")
    if column.null_count == len(column):
        raise place.error("every cell is missing; leave the column out with --drop")
    if pa_types.is_string(column.type):
        return _kind_of_texts(column, place)
    if pa_types.is_boolean(column.type):
        return BOOLEAN
    if _is_number(column.type):
        return NUMBER
    if pa_types.is_timestamp(column.type) or pa_types.is_date(column.type):
        return DATE
    raise place.error(f"holds {column.type}, expected numbers, texts, booleans or dates; leave it out with --drop")


def _kind_of_texts(column: Any, place: Place) -> str:
    counted = column.drop_null().value_counts()
    counts = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
    found = kind_of_texts(counts)
    if found.wrong:
        position, text = _first(column, sorted(found.wrong))
        raise place.error(found.mistake(text, "use --category or --drop"), position)
    return found.kind


def numbers(column: Any, place: Place) -> Array:
    """Floats whose squares are finite, NaN where a cell is missing."""
    column = _simple(column)
    pa, pc, pa_types = need("pyarrow"), need("pyarrow.compute"), need("pyarrow.types")
    if pa_types.is_string(column.type):
        try:
            column = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:
            column = pa.array(_parsed(column, NUMBER, place))
    elif _is_number(column.type) or pa_types.is_null(column.type):
        column = pc.cast(column, pa.float64(), safe=False)
    else:
        raise place.error(f"holds {column.type}, expected numbers")
    values = np.array(column.to_numpy(zero_copy_only=False), dtype=float)
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        value, position = values[wrong[0]], int(wrong[0])
        if np.isinf(value):
            raise place.error(f"{value} is not a finite number", position)
        largest = f"expected at most {LARGEST:g}, so give the column in another unit"
        raise place.error(f"{value} is too large: {largest}", position)
    return values


def days(column: Any, place: Place) -> Array:
    """Dates and times as days since 1970-01-01, NaN where a cell is missing; without a time zone UTC is meant."""
    column = _simple(column)
    pa, pc, pa_types = need("pyarrow"), need("pyarrow.compute"), need("pyarrow.types")
    if pa_types.is_string(column.type):
        return _parsed(column, DATE, place)
    if not (pa_types.is_timestamp(column.type) or pa_types.is_date(column.type) or pa_types.is_null(column.type)):
        raise place.error(f"holds {column.type}, expected dates")
    zone = getattr(column.type, "tz", None)
    microseconds = pc.cast(pc.cast(column, pa.timestamp("us", zone), safe=False), pa.int64())
    values = np.array(pc.cast(microseconds, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float)
    return np.asarray(values / MICROSECONDS_PER_DAY)


def categories(column: Any) -> AnyArray:
    """Texts; a missing cell is the empty text, whole numbers have no decimals, booleans are in small letters."""
    cells, codes = _distinct(_simple(column))
    return np.array([*map(text_of, cells), ""], dtype=object)[codes]


def booleans(column: Any, place: Place) -> AnyArray:
    """The texts "true" and "false", empty where a cell is missing."""
    cells, codes = _distinct(_simple(column))
    texts = [*(text_of(cell).lower() for cell in cells), ""]
    wrong = [code for code, text in enumerate(texts) if text not in ("", "true", "false")]
    if wrong:
        first = int(np.flatnonzero(np.isin(codes, wrong))[0])
        raise place.error(f"{texts[codes[first]]!r} is neither true nor false", first)
    return np.array(texts, dtype=object)[codes]


def _distinct(column: Any) -> tuple[list[Any], AnyArray]:
    """The different cells of a column and the place of each row's among them, -1 for a missing one."""
    pc = need("pyarrow.compute")
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)


def _first(column: Any, texts: list[str]) -> tuple[int, str]:
    """Position and text of the first cell with one of these texts."""
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    position = pc.index(pc.is_in(column, value_set=pa.array(texts)), True).as_py()
    return position, column[position].as_py()


def _simple(column: Any) -> Any:
    """One array, without dictionary; texts are trimmed, and those that stand for a missing value are null."""
    pa, pc, pa_types = need("pyarrow"), need("pyarrow.compute"), need("pyarrow.types")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa_types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa_types.is_large_string(column.type) or column.type == pa.string_view():
        column = pc.cast(column, pa.string())
    if pa_types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        missing = pc.is_in(column, value_set=pa.array(MISSING))
        column = pc.if_else(missing, pa.scalar(None, pa.string()), column)
    elif pa_types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column


def _is_number(kind: Any) -> bool:
    pa_types = need("pyarrow.types")
    return bool(pa_types.is_integer(kind) or pa_types.is_floating(kind) or pa_types.is_decimal(kind))


def _parsed(column: Any, kind: str, place: Place) -> Array:
    """Texts of a column as floats, each different one read once."""
    texts, codes = _distinct(column)
    values = [PARSERS[kind](text) for text in texts]
    wrong = [text for text, value in zip(texts, values, strict=True) if value is None]
    if wrong:
        position, text = _first(column, wrong)
        raise place.error(f"{text!r} is not {NOUNS[kind]}", position)
    return np.array([*values, np.nan], dtype=float)[codes]
