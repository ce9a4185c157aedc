"""The file itself: a line with format and checksum, then an archive of skops, looked through before it is read.

skops builds no object of a type that is not trusted. The rest is ours: an archive that asks for much more memory or
time than its size justifies, and types that do harm if what they are made of is odd.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from sosbands._extras import __version__
from sosbands.exceptions import ModelFileError
from sosbands.saving.trees import demand

FORMAT = 1
KIND = "sosbands model"
MAX_HEADER = 500  # bytes
LEAST_PROTOCOL = 2  # of skops: nodes of earlier ones are read as they were, with their faults
FLOOR, RATIO = 32 * 2**20, 16  # bytes that any file may unpack to, and how many times its size a larger one
MAX_NODES, NODE_BYTES = 40_000, 100  # of the schema of any file, and the part of a larger one's size that each takes
NODE_VALUES = 12  # of JSON in a node, on average
MAX_MEMBERS = 50_000
ENTRY = b"PK\x01\x02"  # before the entry of each member in the list at the end of an archive
SEED, SEED_POOL, SEED_BYTES = "pool_size", 64, 4096  # of random generators: numpy takes for ever to mix much more
UNSAFE_LOADERS = ("TreeNode", "CachedNode", "BytearrayNode")  # unchecked trees, other nodes, eight times the bytes
UNSAFE_TYPES = (  # whoever trusts them: unchecked trees, and as many bytes as a number says
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "numpy.void",
    "numpy.bytes_",
)
# Types of this package that a file may hold: dataclasses, named tuples and estimators of the rooms that make a model.
ROOMS = (
    *("bands", "baselines", "conformal", "explanation", "kernels", "point_models", "regressors", "saving", "stats"),
    *("tables", "tuning"),
)
OWN_LOADERS = ("ObjectNode", "TupleNode")  # which set attributes, and call nothing
GP_KERNELS = "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Hyperparameter Matern Product RBF"
TRUSTED = (  # of other packages, besides what skops knows to be harmless
    "numpy.dtype",  # of scikit-learn's imputers
    "sklearn.compose._column_transformer._RemainderColsList",  # a list of columns, in scikit-learn 1.6
    *(f"sklearn.gaussian_process.kernels.{name}" for name in f"{GP_KERNELS} RationalQuadratic Sum WhiteKernel".split()),
)


def closed(archive: bytes) -> bytes:
    """The file with this archive."""
    facts = {"kind": KIND, "format": FORMAT, "sosbands": __version__, "size": len(archive)}
    return json.dumps({**facts, "sha256": digest(facts, archive)}).encode() + b"\n" + archive


def read_facts(path: Path) -> dict[str, Any]:
    """What the first line says, before anything else is read."""
    with open(path, "rb") as file:
        line = file.readline(MAX_HEADER)
    try:
        facts = json.loads(line)
    except (ValueError, RecursionError):
        facts = None
    demand(isinstance(facts, dict) and facts.get("kind") == KIND and line.endswith(b"\n"), "no such first line")
    held = path.stat().st_size - len(line)
    demand(facts.get("size") == held, f"{held} bytes instead of {facts.get('size')!s:.40}")
    return dict(facts)


def read_archive(path: Path, facts: dict[str, Any]) -> bytes:
    """The archive, if its checksum is right."""
    archive = path.read_bytes().partition(b"\n")[2]
    if digest({name: fact for name, fact in facts.items() if name != "sha256"}, archive) != facts.get("sha256"):
        raise ModelFileError("damaged, its checksum is wrong")
    return archive


def digest(facts: dict[str, Any], archive: bytes) -> str:
    """Checksum over all of a file."""
    found = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    found.update(archive)
    return found.hexdigest()


def allowed(archive: bytes) -> int:
    """Bytes of memory that an archive may ask for."""
    return max(FLOOR, RATIO * len(archive))


def check_archive(archive: bytes) -> set[str]:
    """Full names of the types of this package in an archive; a ModelFileError if it asks for too much or for harm."""
    demand(archive.count(ENTRY) <= MAX_MEMBERS, f"more than {MAX_MEMBERS} members")
    most = max(MAX_NODES, len(archive) // NODE_BYTES)
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        sizes = _sizes(opened, allowed(archive))
        text = opened.read("schema.json")
        left = allowed(archive) - sum(sizes.values())
        for name in sizes:
            if name.endswith(".npz"):  # a sparse matrix is an archive of its own
                with zipfile.ZipFile(io.BytesIO(opened.read(name))) as matrix:
                    left -= sum(_sizes(matrix, left).values())
    demand(sum(map(text.count, (b",", b"[", b"{"))) <= NODE_VALUES * most, "more values than its size allows")
    schema = json.loads(text)
    demand(isinstance(schema, dict) and "__loader__" in schema, "no model")
    protocol = schema.get("protocol")
    demand(type(protocol) is int and protocol >= LEAST_PROTOCOL, f"a model of protocol {protocol!r:.20}")
    number, own = _look(schema, sizes)
    demand(number <= most, "more parts than its size allows")
    return own


def _sizes(opened: zipfile.ZipFile, most: int) -> dict[str, int]:
    """Sizes of the members, none of which zipfile unpacks beyond what it says."""
    members = opened.infolist()
    plain = all(member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members)
    demand(plain and sum(member.file_size for member in members) <= most, "more than its size allows")
    return {member.filename: member.file_size for member in members}


def _look(schema: Any, sizes: dict[str, int]) -> tuple[int, set[str]]:
    """How many nodes there are in a schema, each of which must be fine by itself, and the types of this package in it.

    A node with an identity stands for the one with it that skops meets first. They are of one kind, value and size, so
    that the way of skops through the schema is as long as it looks.
    """
    own: set[str] = set()
    meant: dict[Any, Any] = {}  # by identity
    readers: dict[Any, Any] = {}  # identities by the data that they name

    def look(value: Any) -> tuple[int, int]:
        """Nodes in a value, and the bytes of the data that they name."""
        parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        looked = [look(part) for part in parts]
        number, size = sum(each for each, _ in looked), sum(each for _, each in looked)
        if not isinstance(value, dict) or not ("__loader__" in value or "__id__" in value):
            return number, size
        number, size = number + 1, size + sizes.get(str(value.get("file")), 0)
        loader, identity, file, content = map(value.get, ("__loader__", "__id__", "file", "content"))
        full = f"{value.get('__module__')}.{value.get('__class__')}"
        unsafe = not isinstance(loader, str) or loader in UNSAFE_LOADERS or full in UNSAFE_TYPES
        demand(not unsafe, f"a value of type {full:.80} that cannot be checked")
        if full.startswith("sosbands."):
            demand(loader in OWN_LOADERS, f"{full:.80} made in another way than models are")
            own.update({full} if is_own(full) else ())
        if identity is not None:
            one = (loader, full, content if isinstance(content, str) else None, number, size)
            fine = isinstance(identity, (int, str)) and meant.setdefault(identity, one) == one
            demand(fine, "a node with two meanings")
        if file is not None:
            fine = isinstance(file, str) and file in sizes and identity is not None
            demand(fine and readers.setdefault(file, identity) == identity, "data that are missing or read again")
        if loader == "RandomGeneratorNode":
            fine = isinstance(content, dict) and content.get("seed_seq", {}).get("__loader__") == "DictNode"
            demand(fine, "a random generator without a seed")
        if loader == "DictNode" and isinstance(content, dict) and SEED in content:
            pool = content[SEED].get("content")
            fine = isinstance(pool, str) and len(pool) < 4 and pool.isdecimal() and int(pool) <= SEED_POOL
            demand(fine and size <= SEED_BYTES, "a random generator with an odd seed")
        return number, size

    return look(schema)[0], own


def is_own(full: str) -> bool:
    """Whether this is the full name of a type of this package that a file may hold."""
    module, _, name = full.rpartition(".")
    if not any(f"{module}.".startswith(f"sosbands.{room}.") for room in ROOMS):
        return False
    try:
        found: Any = getattr(import_module(module), name, None)
    except ImportError:
        return False
    fine = isinstance(found, type) and found.__module__ == module
    return fine and (is_dataclass(found) or issubclass(found, (BaseEstimator, tuple)))
