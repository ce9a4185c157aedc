"""Flipped bits and forged model files: a named error or the same predictions; no file, little memory, little time.

Most attempts flip bits of a file anywhere. `FORGED` of them forge one with a right checksum, in our own plain part, in
the header, or in the archive of the point model. Each is read in a process of its own, which may take no more than
`MEMORY` and `SECONDS` and may write nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import resource
import struct
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from sosbands import GaussianProcess, SmoothingSplineRegressor, SoSBandRegressor, load
from sosbands.baselines import HomoscedasticGP
from sosbands.exceptions import ModelFileError, UntrustedTypesError
from sosbands.point_models import ModelBlend
from sosbands.regressors.parameters import PAPER_SETTINGS
from sosbands.saving import container, files
from sosbands.tables import TableEncoder

FULL = 2200
QUICK = 56
MEMORY = 500 * 2**20  # bytes, beyond what the process had before
SECONDS = 2.0  # of the processor
FORGED = 200  # the first attempts with an even number

Arrays = dict[str, np.ndarray]
Rng = np.random.Generator
Ask = Callable[[Any], bool]


def attempt(number: int) -> str:
    """One file, spoilt in a way that the number decides, and what reading it came to."""
    rng = np.random.default_rng([18, number])
    original, ask = _base(number)
    name, forged = "flipped", original
    if number % 2 == 0 and number < 2 * FORGED:
        forger = FORGERS[(number // 2) % len(FORGERS)]
        name, forged = forger.__name__.strip("_"), forger(original, rng)
    else:
        forged = _flipped(original, rng)
    return judged(forged, ask, name)


def prepare(number: int) -> None:
    """Fit the model whose file is spoilt."""
    _base(number)


def _base(number: int) -> Base:
    return BASES[(number // 2) % len(BASES)]()


def judged(data: bytes, ask: Ask, name: str = "file") -> str:
    """What reading these bytes comes to, in a process of its own; `ask` compares what a model predicts."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        child = context.Process(target=_in_child, args=(sender, data, ask, folder))
        child.start()
        sender.close()
        try:
            found = receiver.recv() if receiver.poll(20 * SECONDS) else "no answer in time"
        except EOFError:
            found = "no answer, as the reader died"
        child.join(1)
        child.kill()
        left = sorted(os.listdir(folder))
    assert found in ("refused", "identical"), f"{name}: {found}"
    assert left == ["model"], f"{name}: {left} in the folder"
    return f"{name}: {found}"


def _in_child(sender: Any, data: bytes, ask: Ask, folder: str) -> None:
    os.chdir(folder)
    Path("model").write_bytes(data)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 5 * MEMORY, used + 5 * MEMORY))  # for the machine's sake
    before, start = _most_memory(), time.process_time()
    found = "nothing"
    with contextlib.suppress(EOFError), contextlib.redirect_stderr(io.StringIO()):
        found = _outcome(ask)
    seconds, memory = time.process_time() - start, _most_memory() - before
    found += f" after {seconds:.1f} s" * (seconds > SECONDS) + f" in {memory / 2**20:.0f} MB" * (memory > MEMORY)
    sender.send(found)
    os._exit(0)


def _most_memory() -> int:
    """The most bytes of memory that this process had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _outcome(ask: Ask) -> str:
    try:
        model = load("model")
    except (ModelFileError, UntrustedTypesError):
        return "refused"
    except BaseException as error:
        return f"load raised {type(error).__name__}: {error}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same = ask(model)
    except BaseException as error:
        return f"predict_interval raised {type(error).__name__}: {error}"
    return "identical" if same else "other intervals"


# ---------------------------------------------------------------- the files that are spoilt

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (1.2 + X[:, 1]) * RNG.exponential(size=60)
FAST = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "tol": 1e-2, "random_state": 0}
Base = tuple[bytes, Ask]


def _saved(model: Any, rows: Any, **options: Any) -> Base:
    import skops.io  # noqa: F401  before the clock of an attempt runs

    expected = model.predict_interval(rows, **options)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        data = Path(folder, "model").read_bytes()
    return data, lambda read: np.array_equal(read.predict_interval(rows, **options), expected)


@cache
def _bands() -> Base:
    """Bands around a blend with trees and a process: both parts of the file are large."""
    members = [
        GaussianProcess(),
        RandomForestRegressor(3, random_state=0),
        HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=5, random_state=0),
    ]
    blend = ModelBlend(members, cv=2, equal_rows=1e9, random_state=0)
    settings = {**FAST, "base_scale": "model", "noise_features": "inputs+prediction"}
    return _saved(SoSBandRegressor(blend, **settings).fit(X, Y), X[:10])


@cache
def _table() -> Base:
    """Bands of a table with texts and gaps, calibrated by group."""
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v"), "c": [f"t{k % 30}" for k in range(60)]})
    frame.loc[3, "a"] = np.nan
    labels = np.array(["north", "south"])[np.arange(60) % 2]
    model = SoSBandRegressor(make_pipeline(TableEncoder(), LinearRegression()), calibration_size=None, **FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the calibration rows have been learnt from
        model.fit(frame, Y).conformalize(frame, Y, groups=labels)
    return _saved(model, frame[:10], groups=labels[:10])


@cache
def _process() -> Base:
    """A model without any part of another package."""
    return _saved(HomoscedasticGP(random_state=0).fit(X, Y), X[:10])


@cache
def _copies() -> Base:
    """A model with copies for cross-calibration, around a spline."""
    settings = {**FAST, "calibration_size": "cross", "cv": 2}
    return _saved(SoSBandRegressor(SmoothingSplineRegressor(), **settings).fit(X[:, :1], Y), X[:10, :1])


BASES = (_bands, _table, _process, _copies)


# ---------------------------------------------------------------- ways to spoil them


def _flipped(data: bytes, rng: Rng) -> bytes:
    """One to four bits flipped, often in the header, or the end cut off."""
    spoilt = bytearray(data)
    header = 8 + int.from_bytes(data[:8], "little")
    for _ in range(rng.integers(1, 5)):
        place = rng.integers(header if rng.random() < 0.3 else len(spoilt))
        spoilt[place] ^= 1 << int(rng.integers(8))
    return bytes(spoilt[: rng.integers(len(spoilt))] if rng.random() < 0.05 else spoilt)


def opened(data: bytes) -> tuple[Arrays, dict[str, str]]:
    """Arrays and facts of a file."""
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        return container.read_arrays(Path(file.name)), container.read_facts(Path(file.name))


def closed(arrays: Arrays, facts: dict[str, str]) -> bytes:
    """A file of these arrays and facts with a right checksum."""
    with tempfile.TemporaryDirectory() as folder:
        facts = {name: value for name, value in facts.items() if name != "sha256"}
        container.write(Path(folder, "file"), arrays, facts)
        return Path(folder, "file").read_bytes()


def with_objects(data: bytes, change: Callable[[list[Any]], Any]) -> bytes:
    """A file with other objects in its plain part."""
    arrays, facts = opened(data)
    objects = json.loads(arrays[files.MODEL].tobytes())
    changed = change(objects)
    text = changed if isinstance(changed, bytes) else json.dumps(objects if changed is None else changed).encode()
    arrays[files.MODEL] = np.frombuffer(text, dtype=np.uint8)
    return closed(arrays, facts)


def with_archive(data: bytes, change: Callable[[dict[str, bytes]], Any]) -> bytes:
    """A file with other members in the archive of its point model."""
    arrays, facts = opened(data)
    archive = arrays.get(files.FOREIGN)
    members = {"schema.json": b"{}"}
    if archive is not None:
        with zipfile.ZipFile(io.BytesIO(archive.tobytes())) as held:
            members = {name: held.read(name) for name in held.namelist()}
    changed = change(members)
    arrays[files.FOREIGN] = np.frombuffer(changed if isinstance(changed, bytes) else zipped(members), dtype=np.uint8)
    return closed(arrays, facts)


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def with_schema(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """A file with other nodes in the archive of its point model."""

    def changed(members: dict[str, bytes]) -> None:
        schema = json.loads(members["schema.json"])
        found = change(schema)
        members["schema.json"] = found if isinstance(found, bytes) else json.dumps(found or schema).encode()

    return with_archive(data, changed)


def node(loader: str, kind: str = "builtins.str", **fields: Any) -> dict[str, Any]:
    """A node of an archive."""
    module, _, name = kind.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": name, **fields}


def listed(*nodes: Any, **fields: Any) -> dict[str, Any]:
    """A node that is a list of others."""
    return node("ListNode", "builtins.list", content=list(nodes), **fields)


def with_first(data: bytes, planted: Any) -> bytes:
    """A file whose point model is led by a node of ours."""
    return with_schema(data, lambda schema: _led(schema, planted))


def _led(schema: Any, planted: Any) -> None:
    schema.update({"__loader__": "ListNode", "__module__": "builtins", "__class__": "list", "protocol": 2})
    schema["content"] = [planted, *schema.get("content", [])]


def _dropped(data: bytes, rng: Rng) -> bytes:
    """A field that is missing."""

    def change(objects: list[Any]) -> None:
        fields = objects[rng.integers(len(objects))]["fields"]
        if fields:
            del fields[str(rng.choice(sorted(fields)))]

    return with_objects(data, change)


WRONG: tuple[Any, ...] = (
    "text",
    -(10**30),
    [],
    [[[]]],
    True,
    {"$": "float", "is": "nan"},
    {"$": "foreign", "at": 0},
    {"$": "object", "at": 0},
    {"$": "array", "name": "0"},
    {"$": "tuple", "items": [1, "a"]},
    {"$": "dict", "items": [["a", 1]]},
    {"$": "items", "shape": [1], "items": [None]},
    {"$": "texts", "of": {"$": "array", "name": "0"}},
    {"$": "times", "dtype": "M8[s]", "of": {"$": "array", "name": "0"}},
)
ODD: tuple[Any, ...] = (
    {"$": "object", "at": 10**9},
    {"$": "object", "at": -1},
    {"$": "foreign", "at": True},
    {"$": "array", "name": "model"},
    {"$": "model"},
    {"$": "__init__"},
    {"$": ["tuple"]},
    {"$": "dict", "items": [[[], 1]]},
    {"$": "items", "shape": [10**9, 10**9], "items": []},
    {"$": "items", "shape": [-1], "items": [1]},
    {"$": "times", "dtype": "O", "of": {"$": "array", "name": "0"}},
    {"$": "float", "is": "1e308"},
    {"no": "kind"},
)


def _retyped(data: bytes, rng: Rng) -> bytes:
    """A field of the learnt part, or a parameter, of another type."""

    def change(objects: list[Any]) -> None:
        fields = objects[rng.integers(len(objects))]["fields"]
        name = str(rng.choice(sorted(fields) or ["new_"]))
        fields[name] = WRONG[rng.integers(len(WRONG))]

    return with_objects(data, change)


def _misdirected(data: bytes, rng: Rng) -> bytes:
    """A value of no kind, or a part that is not there."""

    def change(objects: list[Any]) -> None:
        fields = objects[rng.integers(len(objects))]["fields"]
        fields[str(rng.choice(sorted(fields) or ["new_"]))] = ODD[rng.integers(len(ODD))]

    return with_objects(data, change)


def _reshaped(data: bytes, rng: Rng) -> bytes:
    """An array of the learnt part of another shape; other numbers would be another model."""
    arrays, facts = opened(data)
    names = sorted(name for name in arrays if name.startswith("arrays/"))
    name = str(rng.choice(names))
    ways = (
        lambda a: a[:-1],
        lambda a: a[..., None],
        lambda a: a.reshape(-1),
        lambda a: np.concatenate([a, a]),
        lambda a: a[:0],
        lambda a: a.view(np.uint8),
        lambda a: a.sum().reshape(()),
    )
    arrays[name] = np.ascontiguousarray(ways[rng.integers(len(ways))](arrays[name]))
    return closed(arrays, facts)


def _renamed(data: bytes, rng: Rng) -> bytes:
    """An object of another type."""
    kinds = ("os.system", "sosbands.cli.app.main", "builtins.eval", "Calibration", "SplitCP", "StationaryKernel", "")
    kinds += ("SoSBandRegressor", "METHODS", "make_method", "__class__", "numpy.ndarray", "posix.system")

    def change(objects: list[Any]) -> None:
        objects[rng.integers(len(objects))]["type"] = kinds[rng.integers(len(kinds))]

    return with_objects(data, change)


def _malformed(data: bytes, rng: Rng) -> bytes:
    """A plain part that is no list of objects, is very deep, or holds very much."""
    texts = (
        b"",
        b"[]",
        b"{}",
        b"[null]",
        b'[{"type": "Rules", "fields": []}]',
        b"[" * 100_000,
        b"[" * 900 + b"]" * 900,
        b"[" + b"[],[]," * 2_000_000 + b"[]]",
        b"[" + b"9" * 100_000 + b"]",
        b"[NaN]",
        b'"\\ud800"',
        b"\xff\xfe",
        b'[{"type": "Rules", "fields": {"level": 1e999}}]',
    )
    return with_objects(data, lambda _: texts[rng.integers(len(texts))])


def _of_other_format(data: bytes, rng: Rng) -> bytes:
    """Odd format numbers and versions."""
    numbers = ("0", "-1", "4.0", "4e0", "inf", "nan", "Infinity", "", " 4", "\u0664", "1" * 5000, "None", "3", "5")
    arrays, facts = opened(data)
    return closed(arrays, {**facts, "format": numbers[rng.integers(len(numbers))]})


def _of_odd_header(data: bytes, rng: Rng) -> bytes:
    """A header that lies about its length, or about the place, shape or type of arrays."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    name = str(rng.choice(names))
    way = rng.integers(9)
    if way == 0:
        return struct.pack("<Q", (0, 1, length + 1, 10**9, 2**62, 2**64 - 1)[rng.integers(6)]) + data[8:]
    if way == 1:
        header[name]["shape"] = [2**40, 2**40]
    elif way == 2:
        header[name]["shape"] = [-1]
    elif way == 3:
        header[name]["dtype"] = str(rng.choice(["F64", "BF16", "O", "U8", "F8_E4M3", "evil"]))
    elif way == 4:
        header[name]["data_offsets"] = header[names[0]]["data_offsets"]
    elif way == 5:
        header[name]["data_offsets"] = [0, 2**60]
    elif way == 6:
        header = {f"arrays/{k}": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for k in range(60_000)}
    elif way == 7:
        header["__metadata__"] = rng.choice(["x", "y"]).item()
    else:
        header[name] = []
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def _of_odd_members(data: bytes, rng: Rng) -> bytes:
    """An archive that is compressed, encrypted, full of members, overlapping or none."""
    way = rng.integers(9)

    def change(members: dict[str, bytes]) -> Any:
        first = next(iter(members))
        if way == 0:
            return zipped({**members, "zeros.npy": bytes(300 * 2**20)}, zipfile.ZIP_DEFLATED)
        if way == 1:
            return zipped(members, zipfile.ZIP_LZMA)
        if way == 2:
            return _patched(zipped(members), b"PK\x01\x02", 8, b"\x01")  # encrypted, says the list at the end
        if way == 3:
            return _patched(zipped(members), b"PK\x01\x02", 10, b"\x08")  # deflated, it says
        if way == 4:
            return _patched(zipped(members), b"PK\x01\x02", 24, b"\xff\xff\xff\x7f")  # large, it says
        if way == 5:
            return zipped({str(k): b"" for k in range(250_000)} if rng.random() < 0.2 else {first: b""})
        if way == 6:
            return b"PK\x03\x04" + bytes(1000)
        if way == 7:
            return zipped(members) + bytes(10)
        return _patched(zipped(members), b"PK\x05\x06", 16, b"\xff\xff\xff\xff")

    return with_archive(data, change)


def _patched(data: bytes, mark: bytes, offset: int, value: bytes) -> bytes:
    place = data.rindex(mark) + offset
    return data[:place] + value + data[place + len(value) :]


def npy(shape: tuple[int, ...], dtype: str = "<f8", content: bytes = b"") -> bytes:
    """An array in numpy's format that may lie about its shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def _of_odd_arrays(data: bytes, rng: Rng) -> bytes:
    """Arrays and sparse matrices in the archive that lie about their size."""
    huge = io.BytesIO()
    np.savez_compressed(huge, data=np.zeros(30_000_000))
    contents = (
        ("x.npy", npy((2**33,))),
        ("x.npy", npy((2**62, 2**62))),
        ("x.npy", npy((3,), "|O", b"cos\nsystem\n")),
        ("x.npy", b"\x93NUMPY\x09\x09" + bytes(100)),
        ("x.npy", b""),
        ("x.npz", huge.getvalue()),
        ("x.npz", b"not an archive"),
        ("x.npy", npy((0, 2**62))),
    )
    name, content = contents[rng.integers(len(contents))]
    loader = "SparseMatrixNode" if name.endswith("z") else "NdArrayNode"
    kind = "scipy.sparse._csr.csr_matrix" if name.endswith("z") else "numpy.ndarray"

    def change(members: dict[str, bytes]) -> None:
        members[name] = content
        schema = json.loads(members["schema.json"])
        _led(schema, node(loader, kind, type="scipy" if name.endswith("z") else "numpy", file=name))
        members["schema.json"] = json.dumps(schema).encode()

    return with_archive(data, change)


def _with_code(data: bytes, rng: Rng) -> bytes:
    """Nodes that would run code or write a file, if they were made."""
    text = node("JsonNode", content='"touch broken"')
    path = node("JsonNode", content='"broken"')
    written = node("TupleNode", "builtins.tuple", content=[path, path])
    planted = (
        node("FunctionNode", "os.system"),
        node("TypeNode", "os.system"),
        node("PartialNode", "functools.partial", content={"func": node("TypeNode", "os.system"), "args": written}),
        node("ConstructorFromReduceNode", "os.system", content=node("TupleNode", "builtins.tuple", content=[text])),
        node("OperatorFuncNode", "operator.methodcaller", attrs=written),
        node("MethodNode", "sklearn.tree._tree.Tree", content={"func": "tofile", "obj": text}),
        node("MethodNode", "numpy.ndarray", content={"func": "tofile", "obj": node("NdArrayNode", "numpy.ndarray")}),
        node("MethodNode", "sosbands.tables.encoder.TableEncoder", content={"func": "fit", "obj": text}),
        node(
            "ObjectNode", "subprocess.Popen", content=node("DictNode", "builtins.dict", content={}, key_types=listed())
        ),
        node("ListNode", "numpy.savetxt", content=[path, path]),
        node("LossNode", "os.system", content=listed(), __reduce__={"args": written}),
        node("SetNode", "builtins.exec", content=[text]),
        node("DefaultDictNode", "collections.defaultdict", content={"main": text, "default_factory": text}),
        node("EvilNode", "os.system"),
    )
    return with_first(data, planted[rng.integers(len(planted))])


def _with_traps(data: bytes, rng: Rng) -> bytes:
    """Nodes that would take for ever, or much memory, or lead out of an array."""
    one, many = node("JsonNode", content="1"), node("JsonNode", content=str(10**9))
    doubling = listed(one, __id__=1)
    for k in range(2, 60):
        doubling = listed(doubling, {"__id__": k - 1, **node("CachedNode")}, __id__=k)
    deep: Any = one
    for _ in range(200):
        deep = listed(deep)
    classes = node("NdArrayNode", "numpy.ndarray", type="numpy", file="classes.npy")
    arguments = node("TupleNode", "builtins.tuple", content=[one, classes, many])
    tree = node("TreeNode", "sklearn.tree._tree.Tree", __reduce__={"args": arguments}, content=listed())
    number = node("NdArrayNode", "numpy.void", type="numpy", file="many.npy")
    again = node("NdArrayNode", "numpy.ndarray", type="numpy", file="large.npy")
    planted = (
        doubling,
        deep,
        tree,
        node("ConstructorFromReduceNode", "sklearn.tree._tree.Tree", content=arguments),
        node("LossNode", "sklearn.tree._tree.Tree", content=listed(), __reduce__={"args": arguments}),
        number,
        listed(*[again] * 3000),
        _generator("entropy", "-1"),
        _generator("pool_size", str(10**9)),
        _generator("entropy", "9" * 4000),
        _generator("spawn_key", "[-1]"),
    )

    def change(members: dict[str, bytes]) -> None:
        members["classes.npy"] = npy((1,), "<i8", bytes(8))
        members["many.npy"] = npy((), "<i8", (10**9).to_bytes(8, "little"))
        members["large.npy"] = npy((2**17,), "<f8", bytes(2**20))
        schema = json.loads(members["schema.json"])
        _led(schema, planted[rng.integers(len(planted))])
        members["schema.json"] = json.dumps(schema).encode()

    return with_archive(data, change)


def _generator(name: str, value: str) -> dict[str, Any]:
    """A generator of random numbers with an odd seed."""
    names = node("JsonNode", content='"PCG64"')
    state = node("DictNode", "builtins.dict", content={"bit_generator": names}, key_types=listed())
    strings = listed(node("TypeNode", "builtins.str"))
    seed = node("DictNode", "builtins.dict", content={name: node("JsonNode", content=value)}, key_types=strings)
    return node(
        "RandomGeneratorNode", "numpy.random._generator.Generator", content={"bit_generator": state, "seed_seq": seed}
    )


def _of_odd_schema(data: bytes, rng: Rng) -> bytes:
    """A schema that is no tree of nodes."""
    texts = (
        b"{}",
        b"[]",
        b"",
        b"[" * 100_000,
        b'{"protocol": 0}',
        b'{"protocol": 1e400, "__loader__": "ListNode"}',
        b'{"protocol": true}',
        b'{"protocol": 2, "__loader__": "ListNode", "__module__": "builtins", "__class__": "list", "content": []}',
        b'{"protocol": 2, "__loader__": ["ListNode"], "__module__": 1, "__class__": 2, "content": [[]]}',
        b'{"protocol": 2, "__loader__": "ListNode", "__id__": [1], "__module__": "a", "__class__": "b"}',
        b'{"protocol": 2, "x": [' + b"[],[]," * 2_000_000 + b"[]]}",
    )
    return with_archive(data, lambda members: members.update({"schema.json": texts[rng.integers(len(texts))]}))


def _another_file(data: bytes, rng: Rng) -> bytes:
    """Files of other programs, and nothing."""
    import pickle

    contents = (
        b"",
        b"\x00" * 8,
        b"\xff" * 1000,
        zipped({"sosbands.json": b'{"format": 3, "sosbands": "0.2.0"}'}),
        pickle.dumps({"format": 4}),
        data[8:],
        data * 2,
        rng.bytes(5000),
    )
    return contents[rng.integers(len(contents))]


FORGERS: tuple[Callable[[bytes, Rng], bytes], ...] = (
    _dropped,
    _retyped,
    _misdirected,
    _reshaped,
    _renamed,
    _malformed,
    _of_other_format,
    _of_odd_header,
    _of_odd_members,
    _of_odd_arrays,
    _with_code,
    _with_traps,
    _of_odd_schema,
    _another_file,
)
