"""What an archive of skops must be before skops may read it: no larger in memory than on disk, and without traps.

skops reads an archive by its `schema.json`, a tree of nodes: each names how it is read (``__loader__``), what it
becomes (``__module__``, ``__class__``), and the members with its arrays.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sosbands.exceptions import ModelFileError
from sosbands.saving.container import parsed, parts_of
from sosbands.saving.plain import demand

SCHEMA = "schema.json"
LEAST_PROTOCOL = 2  # of skops
ENTRY = b"PK\x01\x02"  # before the entry of each member in the list at the end of an archive
MAX_MEMBERS = 200_000
MAX_EXPANDED = 64 * 2**20  # bytes of the arrays of sparse matrices, the only ones that are compressed
MAX_READ = 4  # times the size of the archive, if several nodes read the same member
MAX_VISITS = 2_000_000  # of nodes: the audit visits a node again wherever it is referred to
# of what the seed of a generator of random numbers consists of: numpy takes for ever to read much more
LARGEST = {"entropy": 2**512, "pool_size": 64, "n_children_spawned": 2**62, "spawn_key": 2**32 - 1}
SEQUENCES = ("TupleNode", "ListNode")
TREE = ("sklearn.tree._tree", "Tree")
ALLOCATING = {("numpy", "void"), ("numpy", "bytes_")}  # of a number they make that many bytes
Node = dict[str, Any]


def check_archive(data: bytes) -> None:
    """Raise a ModelFileError if reading this archive would take memory or time that its size does not justify."""
    demand(data.count(ENTRY) <= MAX_MEMBERS, f"more than {MAX_MEMBERS} members")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = _check_members(archive, len(data))
            schema = parsed(archive.read(SCHEMA), "the point model")
            arrays = {name: _checked(archive.read(name)) for name in sizes if name.endswith(".npy")}
            for name in sizes:
                if name.endswith(".npz"):
                    _check_sparse(archive.read(name))
    except (zipfile.BadZipFile, NotImplementedError, LookupError, OSError, EOFError, RuntimeError) as error:
        raise ModelFileError(f"the point model cannot be read ({type(error).__name__}: {error})") from error
    _Nodes(sizes, arrays, len(data)).check(schema)


def _check_members(archive: zipfile.ZipFile, size: int) -> dict[str, int]:
    """Sizes of the members, none of which is compressed, encrypted, there twice, or shares its bytes with another."""
    members = archive.infolist()
    plain = all(m.compress_type == zipfile.ZIP_STORED and m.file_size == m.compress_size for m in members)
    demand(plain and not any(m.flag_bits & 1 for m in members), "a compressed or encrypted point model")
    sizes = {member.filename: member.file_size for member in members}
    demand(len(sizes) == len(members), "a point model with two members of one name")
    demand(sum(sizes.values()) <= size, "a point model whose members overlap")
    return sizes


class _Array(NamedTuple):
    """What there is to know of an array; its value if it is a single whole number."""

    shape: tuple[int, ...]
    number: int | None


def _checked(data: bytes) -> _Array:
    """An array in numpy's format, whose shape must be that of what follows it."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except (ValueError, TypeError, EOFError, OverflowError) as error:
        raise ModelFileError(f"an array that cannot be read ({error})") from error
    demand(not dtype.hasobject, "an array of objects")
    demand(math.prod(shape) * dtype.itemsize == len(data) - file.tell(), "an array of another size than it says")
    number = int(np.frombuffer(data[file.tell() :], dtype=dtype)[0]) if dtype.kind in "iu" and shape == () else None
    return _Array(shape, number)


def _check_sparse(data: bytes) -> None:
    """A sparse matrix is an archive of its own, and compressed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        demand(sum(member.file_size for member in members) <= MAX_EXPANDED, "a sparse matrix that is too large")
        demand(not any(member.flag_bits & 1 for member in members), "an encrypted sparse matrix")
        for member in members:
            with archive.open(member) as file:
                _checked(file.read(member.file_size + 1))


class _Nodes:
    """The nodes of a schema.

    A node with an identity stands for whichever node with it skops meets first, which depends on its way through them:
    so all of them have to be fine.
    """

    def __init__(self, sizes: dict[str, int], arrays: dict[str, _Array], size: int) -> None:
        self._sizes, self._arrays, self._left = sizes, arrays, MAX_READ * size
        self._named: dict[int | str, list[Node]] = {}
        self._visits: dict[int | str, int] = {}

    def check(self, schema: Any) -> None:
        demand(isinstance(schema, dict), "a point model that is no node")
        protocol = schema.get("protocol")
        # nodes of earlier protocols are read as they were, with their faults
        demand(type(protocol) is int and protocol >= LEAST_PROTOCOL, f"a point model of protocol {protocol!r:.20}")
        nodes = [each for each in _within(schema) if isinstance(each, dict)]
        for node in nodes:
            identity = node.get("__id__")
            demand(identity is None or isinstance(identity, (int, str)), "a node with an odd identity")
            if identity is not None:
                self._named.setdefault(identity, []).append(node)
        for node in nodes:
            self._check(node)
        demand(self._count(schema) <= MAX_VISITS, "a point model that takes too long to look through")

    def _count(self, value: Any) -> int:
        """How many nodes the audit visits from here on."""
        if not isinstance(value, (dict, list)):
            return 0
        identity = value.get("__id__") if isinstance(value, dict) else None
        if identity is None:
            return 1 + sum(map(self._count, parts_of(value)))
        if identity not in self._visits:
            self._visits[identity] = 1  # should it contain itself
            parts = (parts_of(node) for node in self._named[identity])
            self._visits[identity] = 1 + max(sum(map(self._count, each)) for each in parts)
        return self._visits[identity]

    def _check(self, node: Node) -> None:
        kind = (node.get("__module__"), node.get("__class__"))
        demand(kind not in ALLOCATING, f"a value of type {kind[1]}")
        file = node.get("file")
        if file is not None and "__loader__" in node:
            demand(isinstance(file, str) and file in self._sizes, "a node whose data are missing")
            self._left -= self._sizes[str(file)]
            demand(self._left >= 0, "a point model that reads its data over and over")
        if kind == TREE or node.get("__loader__") == "TreeNode":
            self._check_tree(node)
        if node.get("__loader__") == "RandomGeneratorNode":
            self._check_generator(node)

    def _check_tree(self, node: Node) -> None:
        """Trees read as many counts of classes as they have outputs, without looking how many there are."""
        demand(node.get("__loader__") == "TreeNode", "a tree that is made in an odd way")
        for arguments in self._items(_inside(node, "__reduce__", "args")):
            demand(len(arguments) == 3, "a tree with odd arguments")
            outputs = max(self._numbers(arguments[2]))
            for classes in self._meant(arguments[1]):
                array = self._arrays.get(str(classes.get("file")))
                fine = array is not None and len(array.shape) == 1 and outputs <= array.shape[0]
                fine = fine and (classes.get("__loader__"), classes.get("__class__")) == ("NdArrayNode", "ndarray")
                demand(fine, "a tree with other outputs than it says")

    def _check_generator(self, node: Node) -> None:
        """Seeds that numpy would take for ever to read."""
        for seed in self._meant(_inside(node, "content", "seed_seq")):
            state = seed.get("content")
            fine = seed.get("__loader__") == "DictNode" and isinstance(state, dict)
            demand(fine, "a generator of random numbers without a seed")
            for name, part in dict(state or {}).items():
                demand(name in LARGEST, f"a generator of random numbers with {name!r:.40}")
                listed = all(each.get("__loader__") in SEQUENCES for each in self._meant(part))
                keys = [key for items in self._items(part) for key in items] if listed else [part]
                large = max((number for key in keys for number in self._numbers(key)), default=0)
                demand(large <= LARGEST[name], f"a generator of random numbers with an odd {name}")

    def _meant(self, node: Any) -> list[Node]:
        """The nodes that a node may stand for."""
        demand(isinstance(node, dict), "a part that is no node")
        identity = node.get("__id__")
        return [node] if identity is None else self._named[identity]

    def _items(self, node: Any) -> list[list[Any]]:
        """What a node lists, in each of its meanings."""
        meant = self._meant(node)
        sequences = all(each.get("__loader__") in SEQUENCES for each in meant)
        demand(sequences and all(isinstance(each.get("content"), list) for each in meant), "a part that is no sequence")
        return [each["content"] for each in meant]

    def _numbers(self, node: Any) -> list[int]:
        """The whole number that a node is, in each of its meanings; complains about negative ones and other things."""
        found = []
        for each in self._meant(node):
            number = None
            array = self._arrays.get(str(each.get("file")))
            if each.get("__loader__") == "NdArrayNode" and each.get("type") == "numpy" and array is not None:
                number = array.number
            elif each.get("__loader__") == "JsonNode":
                number = _json_number(each.get("content"))
            demand(number is not None and number >= 0, "a part that is no whole number")
            found.append(int(number or 0))
        return found


def _json_number(text: Any) -> int | None:
    try:
        number = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return number if type(number) is int else None


def _within(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, (dict, list)):
            waiting += parts_of(each)


def _inside(node: Node, *names: str) -> Any:
    for name in names:
        demand(isinstance(node.get(name), dict), f"a node without {name}")
        node = node[name]
    return node
