"""docs/reproduction.md says what the stored rows say, and leaves no entry out."""

import socket
from pathlib import Path

import pytest
from PIL import Image

from sosbands.comparison import read_store
from sosbands.comparison.describe import fingerprint
from studies import ENTRIES
from studies.fill_page import filled, rows_of
from studies.reproduce import ROWS_KEY

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"


def test_the_tables_are_those_of_the_stored_rows_whatever_stands_there():
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("<!-- table real-width -->")
    position = next(i for i in range(start, len(text)) if text[i].isdigit())
    changed = text[:position] + str((int(text[position]) + 1) % 10) + text[position + 1 :]
    assert filled(changed) == text, "run python -m studies.fill_page"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_has_its_place(entry):
    text = PAGE.read_text(encoding="utf-8")
    table, figure = f"<!-- table {entry.name} -->", f"../results/reproduction/paper/{entry.name}.png"
    assert (table in text) != (figure in text)
    assert entry.name == "claims" or f"{entry.name} --preset paper`" in text
    if figure in text:
        rows, _ = rows_of(entry.name)
        with Image.open(PAGE.parent / figure) as image:
            drawn = image.text[ROWS_KEY]
        assert drawn == fingerprint(rows), f"python -m studies reproduce {entry.name} --preset paper --stored"


def test_rows_are_small_and_name_no_machine():
    folder = ROOT / "results" / "reproduction" / "paper"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 20e6
    rows = [row for entry in ENTRIES for row in rows_of(entry.name)[0]]
    environments = [read_store(path).environments for path in folder.glob("*.jsonl.gz")]
    assert rows
    assert all(environments)
    text = repr((rows, environments))
    names = {"/home/", "/root/", "/work/", "/tmp/", socket.gethostname()} - {"localhost"}
    assert [name for name in names if name in text] == []
