"""Stores that are packed while no run writes to them: ``run.jsonl`` during a run, ``run.jsonl.gz`` after it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sosbands._files import written
from sosbands.comparison import StoreContents, read_store


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The store for a run that is about to write to it, packed afterwards.

    A run that ends with an error leaves the file as it is, because another process may be writing to it; the next run
    goes on with it.
    """
    packed = packed_name(path)
    if packed.exists():
        lines = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
        if path.exists():  # left by a run that was interrupted; the packed one may be newer or older
            known = set(path.read_bytes().splitlines(keepends=True))
            with open(path, "ab") as file:
                file.writelines(line for line in lines if line not in known)
        else:
            _write(path, b"".join(lines))
    yield path
    if path.exists():
        _write(packed, gzip.compress(path.read_bytes(), mtime=0))  # no time: equal rows give equal files
        path.unlink()


def read_packed(path: Path) -> StoreContents:
    """What is stored so far; nothing if there is no file."""
    contents = StoreContents()
    for name in (packed_name(path), path):
        if name.exists():
            found = read_store(name)
            contents.records.update(found.records)
            contents.environments += found.environments
    return contents


def packed_name(path: Path) -> Path:
    """Where a store is kept between runs."""
    return path.with_name(path.name + ".gz")


def _write(path: Path, data: bytes) -> None:
    """All or nothing."""
    with written(path) as partial:
        partial.write_bytes(data)
