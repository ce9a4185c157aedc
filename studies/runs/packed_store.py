"""Rows that runs of earlier versions left beside a packed store: ``run.jsonl`` beside ``run.jsonl.gz``."""

from __future__ import annotations

from pathlib import Path

from sosbands.comparison import StoreContents, StoreMismatchError, read_store
from sosbands.comparison.store import LineFile


def adopt(path: Path) -> None:
    """Take such rows into the store, and remove their file; both are locked meanwhile."""
    loose = loose_name(path)
    if not loose.exists():
        return
    with LineFile(loose) as left, LineFile(path) as store:
        if store.lines:
            here, there = read_store(path), read_store(loose)
            if there.records and here.settings != there.settings:
                raise StoreMismatchError(f"{loose} and {path} hold runs with other settings: expected one of them")
        store.repair()
        known = set(store.lines)
        for line in left.lines[1 if store.lines else 0 :]:  # after the line that says what the file is
            if line.rstrip() + b"\n" not in known:
                store.append(line.rstrip() + b"\n")
        loose.unlink()


def read_stored(path: Path) -> StoreContents:
    """What is stored so far; nothing if there is no file."""
    contents = StoreContents()
    for name in (path, loose_name(path)):
        if name.exists():
            found = read_store(name)
            contents.records.update(found.records)
            contents.environments += found.environments
    return contents


def loose_name(path: Path) -> Path:
    """The file beside a packed store."""
    return path.with_suffix("")
