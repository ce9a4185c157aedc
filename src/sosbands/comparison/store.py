"""A file that grows by one line per finished task and survives being cut off anywhere.

Line 1 says what the file is: format, settings and their fingerprint, environment. Every further line is a finished task
(``axes``, ``values``, and ``code``, the sources that made it, which older files do not say), settings of a part of the
run that came later (``parts``), or another environment that it was continued in (``environment``). Infinite numbers are
written as Python's JSON does (``Infinity``).
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
PACKED_SUFFIX = ".gz"
CHUNK = 1 << 14  # of packed bytes; what follows the end of a member is copied
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
        self.lines: list[bytes] = []
        self.rest = b""
        self._whole = 0  # bytes of the lines
        self._packed = False
        self._members = 0  # of a packed file
        self._fd = -1

    def __enter__(self) -> Self:
        try:
            check_place(self.path, "store")
        except OSError as error:
            raise StoreError(str(error)) from error
        remove_leftovers(Path(os.path.realpath(self.path)).parent)
        self._fd = _open_locked(self.path)
        try:
            self._load()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._members > 1 and not isinstance(error, StoreError):
                with suppress(OSError):  # a full disk: the members are as good, only larger
                    self._rewrite(self.lines)
        finally:
            self._close()

    def append(self, line: bytes) -> None:
        """Add a line; it is on the disk when this returns."""
        if self._packed and not self.lines:
            self._rewrite([line])  # no first member is ever cut off, so that a cut one is known to be damaged
            return
        length = os.fstat(self._fd).st_size
        self.lines.append(line)  # first: whatever interrupts this, the line is not left out when all are packed
        self._members += self._packed
        try:
            _write_all(self._fd, gzip.compress(line, mtime=0) if self._packed else line)
            os.fsync(self._fd)
        except OSError:  # a full disk
            self.lines.pop()
            os.ftruncate(self._fd, length)
            raise

    def repair(self) -> None:
        """Take a last line that was cut off away."""
        ended = not self.lines or self.lines[-1].endswith(b"\n")  # otherwise all of it is there but its end
        if not ended:
            self.lines[-1] += b"\n"
        if self._packed and (self.rest or not ended):  # a cut file that was packed by hand
            self._rewrite(self.lines)
        elif os.fstat(self._fd).st_size > self._whole:
            os.ftruncate(self._fd, self._whole)
        elif not ended:
            _write_all(self._fd, b"\n")
        self.rest = b""

    def remove(self) -> None:
        """Remove the file while nobody else can write to it."""
        os.unlink(self.path)
        self._members = 0

    def _load(self) -> None:
        data = Path(self.path).read_bytes()
        self._packed = data.startswith(GZIP) or (not data and self.path.endswith(PACKED_SUFFIX))
        if self._packed:
            data, self._whole, self._members = unpacked(data, self.path)
        self.lines, self.rest = split_lines(data)
        if not self._packed:
            self._whole = len(data) - len(self.rest)

    def _rewrite(self, lines: list[bytes]) -> None:
        """Lines as one member, in a file that takes the place of this one and is locked before it does."""
        data = gzip.compress(b"".join(lines), mtime=0)  # no time: equal lines give equal files
        if sys.platform == "win32":  # where no open file can be replaced, and none is locked
            self._close()
            with written(self.path) as partial:
                partial.write_bytes(data)
            self._fd = os.open(self.path, FLAGS)
        else:
            self._replace(data)
        self.lines, self._members = lines, 1

    def _replace(self, data: bytes) -> None:
        fd = -1
        try:
            with written(self.path) as partial:
                fd = os.open(partial, FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
                lock(fd, self.path)
                _write_all(fd, data)
        except BaseException:
            if fd >= 0:
                os.close(fd)
            raise
        self._close()
        self._fd = fd

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_lines(path: str | os.PathLike[str]) -> list[bytes]:
    """Whole lines of a plain or packed file, also of one that a process is writing to."""
    data = Path(path).read_bytes()
    return split_lines(unpacked(data, os.fspath(path))[0] if data.startswith(GZIP) else data)[0]


def split_lines(text: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and what there is of a cut one. No part of an object, cut off, is itself an object."""
    lines = text.splitlines(keepends=True)
    whole = not lines or lines[-1].endswith(b"\n") or as_object(lines[-1]) is not None
    rest = b"" if whole else lines.pop()
    return lines, rest


def as_object(line: bytes) -> dict[str, Any] | None:
    """The object on a line; None for anything else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def unpacked(data: bytes, path: str) -> tuple[bytes, int, int]:
    """Text of the members that are whole, where they end, and how many there are; a cut one is left out."""
    texts: list[bytes] = []
    start = 0
    while start < len(data):
        reader, parts, position = zlib.decompressobj(wbits=31), list[bytes](), start
        try:
            while not reader.eof and position < len(data):
                parts.append(reader.decompress(data[position : position + CHUNK]))
                position += CHUNK
        except zlib.error as error:
            raise StoreError(f"store={path!r} is a damaged gzip file ({error})") from error
        text = b"".join(parts)
        if not reader.eof:
            if not texts or b"\n" in text[:-1]:  # only a member of one line, which is not the first, can be cut off
                raise StoreError(f"store={path!r} is a damaged gzip file (it ends too early)")
            break
        texts.append(text)
        start = min(position, len(data)) - len(reader.unused_data)
    return b"".join(texts), start, len(texts)


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


def _open_locked(path: str) -> int:
    """The file at this path, made if there is none: not one that was replaced or removed before it was locked."""
    while True:
        fd = os.open(path, FLAGS | os.O_CREAT, 0o666)
        try:
            lock(fd, path)
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
    return _parse(read_lines(path), os.fspath(path))


class Store:
    """A store opened for one run; use it in a ``with`` block.

    Opening repairs a last line that was cut off, refuses other settings than those in the file, and locks the file
    (not on Windows) until it is closed or the process dies. A file whose name ends in ``.gz`` is packed.

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
            opened.enter_context(self._file)
            self.contents = _parse(self._file.lines, self.path)
            if not self._file.lines and not _begins_a_store(self._file.rest):
                raise _no_store(self.path, 1)
            self._file.repair()
            self._begin()
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def append(self, record: Record) -> None:
        """Add a finished task; it is on the disk when this returns."""
        self._write({name: record[name] for name in ("axes", "values", "code") if name in record})

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
        try:
            self._file.append(json.dumps(line).encode("ascii") + b"\n")
        except OSError as error:
            error.filename = self.path  # a full disk does not say where
            raise
        self.contents.take(line)


def _parse(lines: list[bytes], path: str) -> StoreContents:
    contents = StoreContents()
    for number, raw in enumerate(lines, start=1):
        line = as_object(raw)
        if line is None or (number == 1 and (line.get("kind"), line.get("format")) != (KIND, FORMAT)):
            raise _no_store(path, number)
        contents.take(line)
    return contents


def _begins_a_store(text: bytes) -> bool:
    """Whether a first line that was cut off may be one of ours, to be written anew, and not a file of the user's."""
    head = json.dumps({"kind": KIND})[:-1].encode("ascii")
    return text[: len(head)] == head[: len(text)]


def _no_store(path: str, number: int) -> StoreError:
    return StoreError(f"store={path!r}: line {number} is no line of a store of results of this version")


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
