"""What a column of a table can be, and how the kind of a column of texts is decided by its cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

NUMBER, CATEGORY, BOOLEAN, DATE = "number", "category", "boolean", "date"
KINDS = (NUMBER, CATEGORY, BOOLEAN, DATE)
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
MOSTLY = 0.5  # of the cells: above this a column is taken to be of a kind, and the other cells to be mistakes
NOUNS = {NUMBER: "a number", DATE: "an ISO date such as 2024-12-31", BOOLEAN: "true or false"}
SECONDS_PER_DAY = 86_400
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?)?")


@dataclass(frozen=True)
class TextKind:
    """What a column of texts is.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    wrong : frozenset of str
        Texts that are not of this kind although most cells are: mistakes.
    share : float
        Of the cells that are of this kind.
    """

    kind: str
    wrong: frozenset[str] = frozenset()
    share: float = 1.0

    def mistake(self, text: str, advice: str) -> str:
        """What to say of one of the wrong cells."""
        return f"{text!r} is not {NOUNS[self.kind]}, as {self.share:.0%} of the column; correct it, or {advice}"


def kind_of_texts(counts: Mapping[str, int]) -> TextKind:
    """Kind of a column by how often each text occurs, missing cells aside.

    Texts are numbers, booleans (true or false) or ISO 8601 dates if all of them are. If only most cells are numbers or
    dates, the others are mistakes. Everything else is categories, and so is a column without cells.
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


def days_since_1970(moment: datetime) -> float:
    """A moment in days; without a time zone UTC is meant."""
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
