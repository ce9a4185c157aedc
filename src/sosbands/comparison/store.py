"""A file that grows by one line per finished task and survives being cut off anywhere.

Line 1 says what the file is: format, settings and their fingerprint, environment. Every further line is a finished task
(``axes``, ``values``, and ``code``, the sources that made it, which older files do not say), settings of a part of the
run that came later (``parts``), or another environment that it was continued in (``environment``). Infinite numbers are
written as Python's JSON does (``Infinity``).

A packed file, ``run.jsonl.gz``, is never appended to: the lines of a run go to a plain file beside it, with `ADDED` to
its name, until the run ends and all are packed together.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sosbands._files import check_place, remove_leftovers, written
from sosbands.comparison.describe import canonical, describe, environment, fingerprint
from sosbands.exceptions import SosbandsError

GZIP = b"\x1f\x8b"  # how a packed file begins
ADDED = ".added"
FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)


class StoreError(SosbandsError, ValueError):
    """A file is no store of results, is damaged, or is being written by another run."""


class LineFile:
    """The file, opened by one process; use it in a ``with`` block.

    It is locked (not on Windows) until it is closed or the process dies.

    Attributes
    ----------
    lines : list of bytes
        All lines, those that were appended included, each with its end.
    rest : bytes
        What there is of a last line that was cut off; `repair` it before anything is appended.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._packed, self._plain = _places(self.path)
        self.lines: list[bytes] = []
        self.rest = b""
        self._whole = 0  # bytes of the lines of the plain file
        self._fd = -1

    def __enter__(self) -> Self:
        try:
            check_place(self.path, "store")
        except OSError as error:
            raise StoreError(str(error)) from error
        remove_leftovers(Path(os.path.realpath(self.path)).parent)
        self._fd = _open_locked(self._plain, self.path)
        try:
            added, self.rest = _read(self._plain)
            self._whole = sum(map(len, added))
            packed: list[bytes] = []
            if self._packed and os.path.exists(self.path):
                packed, rest = _read(self.path)
                self.rest = rest or self.rest
            self.lines = _joined(packed, added)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._packed and os.fstat(self._fd).st_size and not isinstance(error, StoreError):
                with suppress(OSError):  # a full disk: the lines stay where they are
                    self._pack()
                    os.ftruncate(self._fd, 0)
        finally:
            self._close()

    def append(self, line: bytes) -> None:
        """Add a line; it is on the disk when this returns."""
        self.lines.append(line)  # first: whatever interrupts this, the line is not left out when all are packed
        length = os.fstat(self._fd).st_size
        try:
            if self._packed and len(self.lines) == 1:
                self._pack()  # so that the file is there as soon as anything is stored
                return
            _write_all(self._fd, line)
            os.fsync(self._fd)
        except OSError:  # a full disk
            self.lines.pop()
            os.ftruncate(self._fd, length)
            raise

    def repair(self) -> None:
        """Take a last line that was cut off away, or add the end that is all it lacks."""
        length = os.fstat(self._fd).st_size
        if length > self._whole:
            os.ftruncate(self._fd, self._whole)
        elif length < self._whole:
            _write_all(self._fd, b"\n")
        self.rest = b""

    def _close(self) -> None:
        if self._packed and not os.fstat(self._fd).st_size:
            with suppress(OSError):  # Windows removes no open file
                os.unlink(self._plain)
        os.close(self._fd)

    def _pack(self) -> None:
        with written(self.path) as partial:
            partial.write_bytes(gzip.compress(b"".join(self.lines), mtime=0))  # no time: equal lines give equal files


def _places(path: str) -> tuple[bool, str]:
    """Whether the name is that of a packed file, and where lines are appended."""
    packed = path.endswith(".gz")
    return packed, os.path.realpath(path) + ADDED if packed else path


def _joined(packed: list[bytes], added: list[bytes]) -> list[bytes]:
    """All lines; those that were added are packed already if a run was killed just then."""
    known = set(packed)
    return [*packed, *(line for line in added if line not in known)]


def _read(path: str) -> tuple[list[bytes], bytes]:
    """Whole lines of a plain or packed file, each with its end, and what there is of a cut one."""
    data = Path(path).read_bytes()
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise StoreError(f"store={path!r} is a damaged gzip file ({error})") from error
    lines, rest = data.splitlines(keepends=True), b""
    if lines and not lines[-1].endswith(b"\n"):
        rest = lines.pop()
        if _as_object(rest) is not None:  # then it is all there but its end: no part of an object is an object
            lines, rest = [*lines, rest + b"\n"], b""
    return lines, rest


def _as_object(line: bytes) -> dict[str, Any] | None:
    """The object on a line; None for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def lock(fd: int, path: str) -> None:
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


def _open_locked(path: str, shown: str) -> int:
    """The file at this path, made if there is none: not one that was replaced or removed before it was locked."""
    while True:
        fd = os.open(path, FLAGS | os.O_CREAT, 0o666)
        try:
            lock(fd, shown)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(fd)):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


FORMAT = 1
KIND = "sosbands comparison"
BEGINNING = json.dumps({"kind": KIND})[:-1].encode("ascii")
Record = dict[str, Any]  # {"axes": {...}, "values": {...}, "code": which code made it, if that is known}


class StoreMismatchError(StoreError):
    """A store holds a run with other settings, or rows that other code made."""


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

    @classmethod
    def of(cls, lines: list[bytes], path: str) -> StoreContents:
        """Contents of the lines of a file, or an error that says which of them is none of a store."""
        contents = cls()
        for number, raw in enumerate(lines, start=1):
            line = _as_object(raw)
            if line is None or (number == 1 and (line.get("kind"), line.get("format")) != (KIND, FORMAT)):
                raise _no_store(path, number)
            contents.take(line)
        return contents

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
            known = ("axes", "values", "code")
            self.records[canonical(line["axes"])] = {name: line[name] for name in known if name in line}


def flat(record: Record) -> dict[str, Any]:
    """The row of a finished task."""
    return {**record["axes"], **record["values"]}


def read_store(path: str | os.PathLike[str]) -> StoreContents:
    """Read a store, also one that a run is writing to or that gzip packed; a last line cut off is left out."""
    packed, plain = _places(os.fspath(path))
    added: list[bytes] = []
    if packed:
        with suppress(FileNotFoundError):
            added, _ = _read(plain)  # first: when it is gone, its lines are packed
    return StoreContents.of(_joined(_read(os.fspath(path))[0], added), os.fspath(path))


class Store:
    """A store opened for one run; use it in a ``with`` block.

    Opening repairs a last line that was cut off, refuses other settings than those in the file, and locks the file
    (not on Windows) until it is closed or the process dies. A file whose name ends in ``.gz`` is packed at the end.

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
        self._file = LineFile(path)
        self.contents = StoreContents()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            file = opened.enter_context(self._file)
            self.contents = stored = StoreContents.of(file.lines, self.path)
            # a first line that was cut off may be one of ours, to be written anew, or a file of the user's
            if not file.lines and file.rest[: len(BEGINNING)] != BEGINNING[: len(file.rest)]:
                raise _no_store(self.path, 1)
            file.repair()
            here = environment()
            if not stored.environments:
                head = {"kind": KIND, "format": FORMAT, "fingerprint": fingerprint(self._settings)}
                self._write({**head, "settings": self._settings, "parts": self._parts, "environment": here})
            else:
                _refuse_other(self.path, stored.settings, self._settings)
                added = {name: part for name, part in self._parts.items() if name not in stored.parts}
                _refuse_other(self.path, stored.parts | added, stored.parts | self._parts)
                if added:
                    self._write({"parts": added})
                if stored.environments[-1] != here:
                    self._write({"environment": here})
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def append(self, record: Record) -> None:
        """Add a finished task; it is on the disk when this returns."""
        self._write({name: record[name] for name in ("axes", "values", "code") if name in record})

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.append(json.dumps(line).encode("ascii") + b"\n")
        except OSError as error:
            error.filename = self.path  # a full disk does not say where
            raise
        self.contents.take(line)


def _no_store(path: str, number: int) -> StoreError:
    return StoreError(f"store={path!r}: line {number} is no line of a store of results of this version")


def _refuse_other(path: str, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Complain about settings that differ."""
    names = sorted(stored.keys() | wanted.keys())
    pairs = {name: (stored.get(name, "nothing"), wanted.get(name, "nothing")) for name in names}
    different = [f"{name}: {_shown(*pair)}" for name, pair in pairs.items() if canonical(pair[0]) != canonical(pair[1])]
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
