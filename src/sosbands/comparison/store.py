"""A file that grows by one line per finished task and survives being cut off anywhere.

Line 1 says what the file is: format, settings and their fingerprint, environment. Every further line is a finished task
(``axes``, ``values``), settings of a part of the run that came later (``parts``), or another environment that the run
was continued in (``environment``). Infinite numbers are written as Python's JSON does (``Infinity``).
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sosbands.comparison.axes import canonical
from sosbands.comparison.environment import environment
from sosbands.comparison.fingerprint import describe, fingerprint
from sosbands.exceptions import SosbandsError

FORMAT = 1
KIND = "sosbands comparison"
GZIP = b"\x1f\x8b"  # how a packed file begins
Record = dict[str, Any]  # {"axes": {...}, "values": {...}}


class StoreError(SosbandsError, ValueError):
    """A file is no store of results, is damaged, or is being written by another run."""


class StoreMismatchError(StoreError):
    """A store holds a run with other settings."""


@dataclass
class StoreContents:
    """What a store holds.

    Attributes
    ----------
    settings : dict
        Settings of the run.
    parts : dict
        Settings of parts of it by name, such as those of each method.
    environments : list of dict
        Versions, processor and threads of the first run and of later ones where they differ from the one before.
    records : dict of str to dict
        Finished tasks by their axes; of a task that was done again the last.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    environments: list[dict[str, Any]] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Axes and values of each finished task, as one flat row."""
        return [flat(record) for record in self.records.values()]

    def take(self, line: Mapping[str, Any]) -> None:
        """Read one line."""
        self.settings.update(line.get("settings", {}))
        self.parts.update(line.get("parts", {}))
        if "environment" in line:
            self.environments.append(line["environment"])
        if "axes" in line:
            self.records[canonical(line["axes"])] = {"axes": line["axes"], "values": line["values"]}


def flat(record: Record) -> dict[str, Any]:
    """The row of a finished task."""
    return {**record["axes"], **record["values"]}


def read_store(path: str | os.PathLike[str]) -> StoreContents:
    """Read a store, also one that a run is writing to or that gzip packed; a last line cut off is left out."""
    data = Path(path).read_bytes()
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise StoreError(f"store={os.fspath(path)!r} is a damaged gzip file ({error})") from error
    return _parse(data, os.fspath(path))[0]


class Store:
    """A store opened for one run; use it in a ``with`` block.

    Opening repairs a last line that was cut off, refuses other settings than those in the file, and locks the file
    (not on Windows) until it is closed or the process dies.

    Parameters
    ----------
    path : path
        The file; made if it does not exist, in a directory that does.
    settings : mapping
        What must be equal in every run that adds to the file; anything that `describe` can describe.
    parts : mapping, optional
        Settings of parts of the run by name. Later runs may add names; a name keeps its settings.
    """

    def __init__(
        self, path: str | os.PathLike[str], settings: Mapping[str, Any], parts: Mapping[str, Any] | None = None
    ) -> None:
        self.path = os.fspath(path)
        self._settings = describe(settings)
        self._parts = describe(parts or {})
        self._fd = -1
        self.contents = StoreContents()

    def __enter__(self) -> Self:
        if Path(self.path).is_dir() or not Path(self.path).absolute().parent.is_dir():
            raise StoreError(f"store={self.path!r}: expected a file name in a directory that exists")
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _lock(self._fd, self.path)
            self._load()
            self._begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, record: Record) -> None:
        """Add a finished task; it is on the disk when this returns."""
        self._write({"axes": record["axes"], "values": record["values"]})

    def close(self) -> None:
        """Close the file, which unlocks it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _load(self) -> None:
        """Read the file and repair its end."""
        data = Path(self.path).read_bytes()
        self.contents, length = _parse(data, self.path)
        if length < len(data):
            os.ftruncate(self._fd, length)
        elif length > len(data):  # all of the last line but its end
            _write_all(self._fd, b"\n")

    def _begin(self) -> None:
        """Write or check settings, parts and environment."""
        here = environment()
        if not self.contents.environments:
            head = {"kind": KIND, "format": FORMAT, "fingerprint": fingerprint(self._settings)}
            self._write({**head, "settings": self._settings, "parts": self._parts, "environment": here})
            return
        _refuse_other(self.path, self.contents.settings, self._settings, strict=True)
        _refuse_other(self.path, self.contents.parts, self._parts, strict=False)
        added = {name: part for name, part in self._parts.items() if name not in self.contents.parts}
        if added:
            self._write({"parts": added})
        if self.contents.environments[-1] != here:
            self._write({"environment": here})

    def _write(self, line: dict[str, Any]) -> None:
        _write_all(self._fd, json.dumps(line).encode("ascii") + b"\n")
        os.fsync(self._fd)
        self.contents.take(line)


def _parse(data: bytes, path: str) -> tuple[StoreContents, int]:
    """Contents, and the length of what is whole: one more than that of the data if only the last newline lacks."""
    contents, position = StoreContents(), 0
    for number, raw in enumerate(data.splitlines(keepends=True), start=1):
        line = _loads(raw)
        whole = raw.endswith(b"\n")
        if line is None and not whole:
            break  # cut off while it was written
        if line is None or (number == 1 and (line.get("kind"), line.get("format")) != (KIND, FORMAT)):
            raise StoreError(f"store={path!r}: line {number} is no line of a store of results of this version")
        contents.take(line)
        position += len(raw) + (not whole)
    return contents, position


def _loads(raw: bytes) -> dict[str, Any] | None:
    """The object on a line; None for anything else. No part of an object, cut off, is itself an object."""
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _refuse_other(path: str, stored: dict[str, Any], wanted: dict[str, Any], *, strict: bool) -> None:
    """Complain about settings that differ; names that only one side has count if strict."""
    names = stored.keys() | wanted.keys() if strict else stored.keys() & wanted.keys()
    absent = "nothing"
    different = [
        f"{name}: {_shown(stored.get(name, absent), wanted.get(name, absent))}"
        for name in sorted(names)
        if canonical(stored.get(name, absent)) != canonical(wanted.get(name, absent))
    ]
    if different:
        raise StoreMismatchError(
            f"store={path!r} holds a run with other settings ({'; '.join(different)}): expected the same settings, or "
            "another file"
        )


def _shown(stored: Any, wanted: Any) -> str:
    """The first place where two descriptions differ."""
    where = ""
    while isinstance(stored, dict) and isinstance(wanted, dict) and stored.keys() == wanted.keys():
        key = next(key for key in stored if canonical(stored[key]) != canonical(wanted[key]))
        where += f"{key} "
        stored, wanted = stored[key], wanted[key]
    return f"{where}{canonical(stored):.80} there, {canonical(wanted):.80} here"


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _lock(fd: int, path: str) -> None:
    """Refuse a second writer. The lock ends with the process, however it ends."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreError(f"store={path!r} is being written by another run: expected one run at a time") from None
    except OSError:
        return  # a file system without locks
