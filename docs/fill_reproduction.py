"""Write the tables of docs/reproduction.md from the stored rows: ``python docs/fill_reproduction.py``.

A table stands between ``<!-- table NAME -->`` and ``<!-- end -->``, NAME an entry of ``sosbands reproduce --list``.
"""

from __future__ import annotations

import re
from pathlib import Path

from sosbands.experiments import Config, find_entry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
BLOCK = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """The page with every table made anew."""
    config = Config(ROOT / "results" / "reproduction", "paper", compute_missing=False)

    def table(match: re.Match[str]) -> str:
        entry = find_entry(match[2])
        return f"{match[1]}\n{entry.draw(entry.compute(config)).to_markdown()}\n\n{match[3]}"

    return BLOCK.sub(table, text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
