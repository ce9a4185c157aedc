"""The file itself: named arrays of bytes and numbers in the safetensors format, limited, with a checksum over all.

Nothing is compressed, so that no file takes more memory than a small multiple of its size.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._types import AnyArray
from sosbands.exceptions import ModelFileError

MAX_HEADER = 8 * 2**20  # bytes: some fifty thousand arrays
FEW_ELEMENTS = 1_000_000  # that any JSON text may hold, lists and objects included
ELEMENT = 8  # bytes: the least that each of them takes on average in a text with more
MAX_DEPTH = 100
LENGTH = 8  # bytes before the header, which hold its length
ZIP = b"PK\x03\x04"


class CutShortError(ModelFileError):
    """The header and what follows it do not go together."""


def write(path: Path, arrays: dict[str, AnyArray], facts: dict[str, str]) -> None:
    """Write named arrays and facts about them."""
    from safetensors.numpy import save

    # not by its `save_file`, whose temporary file would outlive a kill under a name of its own
    path.write_bytes(save(arrays, metadata={**facts, "sha256": _digest(arrays, facts)}))


def read_facts(path: Path) -> dict[str, str]:
    """The facts, before anything else is read."""
    header = _header(path)
    facts = header.get("__metadata__")
    if not isinstance(facts, dict) or not all(isinstance(value, str) for value in facts.values()):
        raise ModelFileError("no facts about the file in it")
    return facts


def read_arrays(path: Path) -> dict[str, AnyArray]:
    """All arrays, after a check of sizes and the checksum."""
    from safetensors import SafetensorError, safe_open

    facts = read_facts(path)
    try:
        with safe_open(path, framework="np") as file:
            arrays = {name: np.require(file.get_tensor(name), requirements="W") for name in sorted(file.keys())}
    except SafetensorError as error:
        raise CutShortError(str(error)) from error
    expected = facts.pop("sha256", None)
    if _digest(arrays, facts) != expected:
        raise ModelFileError("damaged, its checksum is wrong")
    return arrays


def parsed(text: bytes, what: str) -> Any:
    """The value of a JSON text of limited size and depth."""
    if sum(map(text.count, (b",", b"[", b"{"))) > max(FEW_ELEMENTS, len(text) // ELEMENT):
        raise ModelFileError(f"{what} holds more values than its size justifies")
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{what} cannot be read ({type(error).__name__})") from error
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for each in level if isinstance(each, (dict, list)) for part in parts_of(each)]
        if not level:
            return value
    raise ModelFileError(f"{what} is nested more than {MAX_DEPTH} deep")


def parts_of(value: dict[str, Any] | list[Any]) -> list[Any]:
    """What a JSON object or list holds."""
    return list(value.values()) if isinstance(value, dict) else value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _header(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(LENGTH)
        if start.startswith(ZIP):
            raise ModelFileError(
                "an archive, as sosbands wrote models up to format 3, which this version does not read: fit the model "
                "again, or use it with the version that wrote it"
            )
        length = int.from_bytes(start, "little")
        if len(start) < LENGTH or length > min(MAX_HEADER, size - LENGTH):
            raise ModelFileError("it does not begin like one")
        header = parsed(file.read(length), "its header")
    if not isinstance(header, dict):
        raise ModelFileError("its header is no object")
    return header


def _digest(arrays: dict[str, AnyArray], facts: dict[str, str]) -> str:
    found = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(json.dumps([name, array.dtype.str, list(array.shape)]).encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()
