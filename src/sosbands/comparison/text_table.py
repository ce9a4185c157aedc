"""A small table that prints itself, because a core install has no pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from sosbands._extras import need

MISSING = "-"
NOTE_WIDTH = 100


class TextTable(Sequence[dict[str, Any]]):
    """Rows with the same columns: a list of dicts that prints itself as text or Markdown.

    Parameters
    ----------
    rows : sequence of mappings
        What is in the table, with full precision.
    shown : sequence of mappings, optional
        What is printed in its place; a cell "-" stands for a missing number.
    note : str
        What a reader should know, printed below the table.
    """

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]] | None = None, note: str = ""
    ) -> None:
        self._rows = [dict(row) for row in rows]
        self._shown = self._rows if shown is None else [dict(row) for row in shown]
        self.note = note

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._rows[0]) if self._rows else []

    def column(self, name: str) -> list[Any]:
        """The entries of one column."""
        if name not in self.columns:
            raise KeyError(f"column {name!r}: expected one of {', '.join(self.columns)}")
        return [row[name] for row in self._rows]

    def to_frame(self) -> Any:
        """The rows as a pandas data frame."""
        return need("pandas").DataFrame(self._rows)

    def to_markdown(self) -> str:
        """The table in Markdown, numbers to the right."""
        names, cells, right = self._cells()
        lines = ["| " + " | ".join(_escaped(name) for name in names) + " |"]
        lines.append("|" + "|".join("---:" if numeric else "---" for numeric in right) + "|")
        lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in cells]
        return "\n".join([*lines, "", self.note] if self.note else lines)

    def __repr__(self) -> str:
        names, cells, right = self._cells()
        below = ["", fill(self.note, NOTE_WIDTH)] if self.note else []
        if not cells:
            return "\n".join(["(no rows)", *below])
        widths = [max(len(line[i]) for line in [names, *cells]) for i in range(len(names))]
        lines = [
            "  ".join(
                cell.rjust(width) if numeric else cell.ljust(width)
                for cell, width, numeric in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in [names, *cells]
        ]
        return "\n".join([*lines, *below])

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Names, texts and whether a column holds numbers (those that start with a digit or a sign count)."""
        names = list(self._shown[0]) if self._shown else []
        cells = [[_text(row[name]) for name in names] for row in self._shown]
        columns = [[row[i] for row in cells if row[i] != MISSING] for i in range(len(names))]
        return names, cells, [bool(column) and all(map(_is_number, column)) for column in columns]


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    try:
        float(text.split(" ")[0])
    except ValueError:
        return False
    return True


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
