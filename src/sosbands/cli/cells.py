"""What the cells of a column mean: numbers, categories, booleans or dates; as arrays that models take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.cli.extras import need

NUMBER, CATEGORY, BOOLEAN, DATE = "number", "category", "boolean", "date"
KINDS = (NUMBER, CATEGORY, BOOLEAN, DATE)
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
MOST_CATEGORIES = 50
MICROSECONDS_PER_DAY = 86_400_000_000
MOSTLY = 0.5  # of the cells: above this a column is taken to be of a kind, and the other cells to be mistakes
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?")


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
    """The kind of a column, decided by all of its cells.

    Texts are numbers, booleans (true or false) or ISO 8601 dates if all cells are, missing ones aside. If only most of
    them are numbers or dates, the others are mistakes, and an error names the first. Other texts are categories, of
    which there may be 50.
    """
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
    counts = [(entry["values"], entry["counts"]) for entry in column.drop_null().value_counts().to_pylist()]
    total = sum(count for _, count in counts)
    for kind, parse, noun in ((NUMBER, number, "a number"), (DATE, _day, "an ISO date such as 2024-12-31")):
        wrong = {text for text, _ in counts if parse(text) is None}
        share = 1 - sum(count for text, count in counts if text in wrong) / total
        if not wrong:
            return kind
        if share > MOSTLY:
            texts = column.to_pylist()
            first = next(i for i, text in enumerate(texts) if text in wrong)
            hint = f"as {share:.0%} of the column; correct it, or use --category or --drop"
            raise place.error(f"{texts[first]!r} is not {noun}, {hint}", first)
    if {text.lower() for text, _ in counts} <= {"true", "false"}:
        return BOOLEAN
    check_categories(len(counts), place)
    return CATEGORY


def check_categories(count: int, place: Place) -> None:
    """Refuse columns such as names and identifiers."""
    if count > MOST_CATEGORIES:
        raise place.error(
            f"holds {count} different texts, expected numbers, ISO dates (2024-12-31) or at most {MOST_CATEGORIES} "
            "categories; leave it out with --drop"
        )


def numbers(column: Any, place: Place) -> Array:
    """Finite floats, NaN where a cell is missing."""
    column = _simple(column)
    pa, pc, pa_types = need("pyarrow"), need("pyarrow.compute"), need("pyarrow.types")
    if pa_types.is_string(column.type):
        try:
            column = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:
            column = pa.array(_parsed(column, number, "a number", place), pa.float64())
    elif _is_number(column.type) or pa_types.is_null(column.type):
        column = pc.cast(column, pa.float64(), safe=False)
    else:
        raise place.error(f"holds {column.type}, expected numbers")
    values = np.array(column.to_numpy(zero_copy_only=False), dtype=float)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise place.error(f"{values[infinite[0]]} is not a finite number", int(infinite[0]))
    return values


def days(column: Any, place: Place) -> Array:
    """Dates and times as days since 1970-01-01, NaN where a cell is missing; without a time zone UTC is meant."""
    column = _simple(column)
    pa, pc, pa_types = need("pyarrow"), need("pyarrow.compute"), need("pyarrow.types")
    if pa_types.is_string(column.type):
        return np.array(_parsed(column, _day, "an ISO date such as 2024-12-31", place), dtype=float)
    if not (pa_types.is_timestamp(column.type) or pa_types.is_date(column.type) or pa_types.is_null(column.type)):
        raise place.error(f"holds {column.type}, expected dates")
    zone = getattr(column.type, "tz", None)
    microseconds = pc.cast(pc.cast(column, pa.timestamp("us", zone), safe=False), pa.int64())
    values = np.array(pc.cast(microseconds, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float)
    return np.asarray(values / MICROSECONDS_PER_DAY)


def categories(column: Any) -> AnyArray:
    """Texts; a missing cell is the empty text, whole numbers have no decimals, booleans are in small letters."""
    column = _simple(column)
    texts = [_text(value) for value in column.to_pylist()]
    return np.array(texts, dtype=object)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def booleans(column: Any, place: Place) -> AnyArray:
    """The texts "true" and "false", empty where a cell is missing."""
    texts = np.array([text.lower() for text in categories(column)], dtype=object)
    wrong = [i for i, text in enumerate(texts) if text not in ("", "true", "false")]
    if wrong:
        raise place.error(f"{texts[wrong[0]]!r} is neither true nor false", wrong[0])
    return texts


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


def _parsed(column: Any, parse: Any, noun: str, place: Place) -> list[float | None]:
    values: list[float | None] = []
    for position, text in enumerate(column.to_pylist()):
        value = None if text is None else parse(text)
        if text is not None and value is None:
            raise place.error(f"{text!r} is not {noun}", position)
        values.append(value)
    return values


def number(text: str) -> float | None:
    """The number that a text is, None if it is none; underscores between digits are Python's, not those of data."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _day(text: str) -> float | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # such as month 13
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.timestamp() / 86_400
