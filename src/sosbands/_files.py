"""Writing files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path`; the file takes its place at the end, or is removed if anything goes wrong.

    The content is on the disk before the name is: after a power failure there is the old file or the new one. A link
    stays a link, to the new content.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}{target.suffix}")  # some writers go by the suffix
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> None:
    """Complain about a path where no file can be, before the work begins."""
    target = Path(os.path.realpath(path))
    if target.is_dir() or not target.parent.is_dir():
        raise FileNotFoundError(f"path={os.fspath(path)!r}: expected a file name in a directory that exists")
