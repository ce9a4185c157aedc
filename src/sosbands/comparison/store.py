"""A file that grows by one line per finished task and survives being cut off anywhere.

Line 1 says what the file is: format, settings and their fingerprint, environment. Every further line is a finished task
(``axes``, ``values``, and ``code``, the sources that made it, which older files do not say), settings of a part of the
run that came later (``parts``), or another environment that it was continued in (``environment``). Infinite numbers are
written as Python's JSON does (``Infinity``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from sosbands.comparison.axes import canonical
from sosbands.comparison.environment import environment
from sosbands.comparison.fingerprint import describe, fingerprint
from sosbands.comparison.line_file import LineFile, StoreError, as_object, read_lines

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
