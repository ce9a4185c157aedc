"""Write the tables of docs/reproduction.md from the stored rows: ``python -m studies.fill_page``.

A table stands between ``<!-- table NAME -->`` and ``<!-- end -->``, NAME an entry of ``python -m studies reproduce
--list``, or ``overview``: what is stored of each. The time of an entry stands between ``<!-- time NAME -->`` and
``<!-- end -->``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sosbands._files import written
from sosbands.comparison import TextTable
from studies import ENTRIES, Config, find_entry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
BLOCK = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
TIME = re.compile(r"(<!-- time (\S+) -->).*?(<!-- end -->)")


class Stored(Config):
    """Stored rows, and how many there should be."""

    expected = 0

    def run(self, name: str, function: Any, tasks: Any, **options: Any) -> list[dict[str, Any]]:
        """Count the tasks and give their rows, as far as they are stored."""
        tasks = list(tasks)
        Stored.expected += len(tasks)
        return super().run(name, function, tasks, **options)


def stored() -> Stored:
    """Rows of the paper's preset in the repository."""
    return Stored(ROOT / "results" / "reproduction", "paper", compute_missing=False)


@cache
def rows_of(name: str) -> tuple[list[dict[str, Any]], int]:
    """Stored rows of an entry, and how many there should be."""
    Stored.expected = 0
    return find_entry(name).compute(stored()), Stored.expected


def overview() -> TextTable:
    """Rows and time of every entry; entries that share a run share its time."""
    lines = []
    for entry in ENTRIES:
        if entry.name == "claims":
            continue
        rows, expected = rows_of(entry.name)
        lines.append(
            {
                "entry": entry.name,
                "in the paper": entry.source,
                "rows stored": f"{len(rows)} of {expected}",
                "failed": sum(row["error_type"] is not None for row in rows),
                "core minutes": f"{core_minutes(rows):.1f}",
            }
        )
    return TextTable(lines)


def core_minutes(rows: list[dict[str, Any]]) -> float:
    """Minutes of one core that the rows took."""
    return float(sum(row["seconds"] for row in rows)) / 60


def filled(text: str) -> str:
    """The page with every table and time made anew."""

    def table(match: re.Match[str]) -> str:
        made = overview() if match[2] == "overview" else find_entry(match[2]).draw(rows_of(match[2])[0])
        return f"{match[1]}\n{made.to_markdown()}\n\n{match[3]}"

    def time(match: re.Match[str]) -> str:
        minutes = core_minutes(rows_of(match[2])[0])
        words = f"{minutes:.0f} core minutes" if minutes >= 1.5 else f"{60 * minutes:.0f} core seconds"
        return f"{match[1]}{words}{match[3]}"

    return TIME.sub(time, BLOCK.sub(table, text))


if __name__ == "__main__":
    made = filled(PAGE.read_text(encoding="utf-8"))
    with written(PAGE) as partial:
        partial.write_text(made, encoding="utf-8")
