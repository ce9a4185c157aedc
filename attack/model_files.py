"""Flipped bits and forged model files: a named error or the same predictions; no file, little memory, little time.

Most attempts flip bits of a file anywhere. `FORGED` of them forge one with a right checksum: its first line, its
archive, or the nodes and arrays in it. Each is read in a process of its own, which may take no more than `MEMORY` and
`SECONDS` and may write nothing. What was `CHANGED` under a right checksum is another model, which may predict anything
or fail.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import multiprocessing
import os
import resource
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
from sosbands.bands import BandSettings
from sosbands.baselines import HomoscedasticGP
from sosbands.exceptions import ModelFileError, UntrustedTypesError
from sosbands.point_models import ModelBlend
from sosbands.regressors import PAPER_SETTINGS
from sosbands.saving import archive
from sosbands.tables import TableEncoder

FULL = 2200
QUICK = 56
MEMORY = 500 * 2**20  # bytes, beyond what the process had before
SECONDS = 2.0  # of the processor
FORGED = 200  # the first attempts with an even number

SCHEMA = "schema.json"
Rng = np.random.Generator
Ask = Callable[[Any], bool]


def attempt(number: int) -> str:
    """One file, spoilt in a way that the number decides, and what reading it came to."""
    rng = np.random.default_rng([18, number])
    original, ask = _base(number)
    forger = FORGERS[(number // 2) % len(FORGERS)] if number % 2 == 0 and number < 2 * FORGED else _flipped
    return judged(forger(original, rng), ask, forger.__name__.strip("_"), may_differ=forger in CHANGED)


def prepare(number: int) -> None:
    """Fit the model whose file is spoilt."""
    _base(number)


def _base(number: int) -> Base:
    return BASES[(number // 2) % len(BASES)]()


def judged(data: bytes, ask: Ask, name: str = "file", *, may_differ: bool = False) -> str:
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
    fine = ("refused", "identical", *(("other intervals", "no intervals") if may_differ else ()))
    assert found.partition(" (")[0] in fine, f"{name}: {found}"
    assert left == ["model"], f"{name}: {left} in the folder"
    return f"{name}: {found.partition(' (')[0]}"


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
    if seconds > SECONDS or memory > MEMORY:
        found = f"{memory / 2**20:.0f} MB and {seconds:.1f} s until it was {found}"
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
    except Exception as error:
        return f"no intervals ({type(error).__name__}: {error})"
    except BaseException as error:
        return f"predict_interval raised {type(error).__name__}: {error}"
    return "identical" if same else "other intervals"


# ---------------------------------------------------------------- the files that are spoilt

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X[:, 0] + (1.2 + X[:, 1]) * RNG.exponential(size=60)
FAST = {
    **PAPER_SETTINGS,
    "lengthscale": "median",
    "symmetry_penalty": 1.0,
    "bands": BandSettings(tol=1e-2),
    "random_state": 0,
}
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
    header = data.index(b"\n") + 1
    for _ in range(rng.integers(1, 5)):
        place = rng.integers(header if rng.random() < 0.3 else len(spoilt))
        spoilt[place] ^= 1 << int(rng.integers(8))
    return bytes(spoilt[: rng.integers(len(spoilt))] if rng.random() < 0.05 else spoilt)


def opened(data: bytes) -> dict[str, bytes]:
    """Members of the archive of a file."""
    with zipfile.ZipFile(io.BytesIO(data.partition(b"\n")[2])) as held:
        return {name: held.read(name) for name in held.namelist()}


def closed(held: bytes | dict[str, bytes], **facts: Any) -> bytes:
    """A file of this archive, or of these members, with a right checksum; `facts` say something else."""
    data = held if isinstance(held, bytes) else zipped(held)
    facts = {"kind": archive.KIND, "format": archive.FORMAT, "sosbands": "9.1", "size": len(data), **facts}
    return json.dumps({"sha256": archive.digest(facts, data), **facts}).encode() + b"\n" + data


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as held:
        for name, content in members.items():
            held.writestr(name, content)
    return file.getvalue()


def with_schema(data: bytes, change: Callable[[Any], Any], members: dict[str, bytes] | None = None) -> bytes:
    """A file with other nodes, and further members."""
    held = opened(data)
    schema = json.loads(held[SCHEMA])
    found = change(schema)
    text = found if isinstance(found, bytes) else json.dumps(schema).encode()
    return closed({**held, **(members or {}), SCHEMA: text})


def objects_of(schema: Any, kind: str = "sosbands.") -> list[dict[str, Any]]:
    """The nodes of objects whose types begin with this."""
    found, waiting = [], [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            full = f"{each.get('__module__')}.{each.get('__class__')}"
            found += [each] if full.startswith(kind) and "content" in each else []
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return found


def with_planted(data: bytes, planted: Any, members: dict[str, bytes] | None = None) -> bytes:
    """A file whose model has one more attribute."""

    def change(schema: Any) -> None:
        schema["content"]["content"]["planted_"] = planted
        schema["content"]["key_types"]["content"].append(node("TypeNode"))

    return with_schema(data, change, members)


def node(loader: str, kind: str = "builtins.str", **fields: Any) -> dict[str, Any]:
    """A node of an archive."""
    module, _, name = kind.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": name, **fields}


def listed(*nodes: Any, **fields: Any) -> dict[str, Any]:
    """A node that is a list of others."""
    return node("ListNode", "builtins.list", content=list(nodes), **fields)


def _some_fields(schema: Any, rng: Rng) -> tuple[dict[str, Any], str]:
    """The attributes of an object of this package, and the name of one."""
    fields = [each["content"]["content"] for each in objects_of(schema) if each["content"]["content"]]
    found = fields[rng.integers(len(fields))]
    return found, str(rng.choice(sorted(found)))


def _dropped(data: bytes, rng: Rng) -> bytes:
    """A field that is missing."""

    def change(schema: Any) -> None:
        fields, name = _some_fields(schema, rng)
        del fields[name]

    return with_schema(data, change)


def _retyped(data: bytes, rng: Rng) -> bytes:
    """A field of another type, or that is another part of the model."""

    def change(schema: Any) -> None:
        fields, name = _some_fields(schema, rng)
        others, other = _some_fields(schema, rng)
        wrong = (
            *(node("JsonNode", content=text) for text in WRONG),
            listed(node("JsonNode", content="1")),
            node("TupleNode", "builtins.tuple", content=[]),
            node("NdArrayNode", "numpy.ndarray", type="numpy", file="few.npy", __id__=1),
            node("FunctionNode", "numpy.sin"),
            others[other],
        )
        fields[name] = wrong[rng.integers(len(wrong))]

    return with_schema(data, change, {"few.npy": npy((2,), "<f8", bytes(16))})


WRONG = ('"text"', str(-(10**30)), "[]", "[[[]]]", "true", "NaN", "null", "1e999", '{"a": 1}', "3")


def _misdirected(data: bytes, rng: Rng) -> bytes:
    """A value of no kind, or a part that is not there or somewhere else."""
    odd: tuple[Any, ...] = (
        {"__id__": 10**9},
        {"__id__": [1]},
        {"__id__": True, **node("JsonNode", content="1")},
        {"__loader__": "ObjectNode"},
        {"no": "kind"},
        node("JsonNode", content="{"),
        node("JsonNode", content="[" * 100_000),
        node("JsonNode", content=3),
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="nowhere.npy", __id__=1),
        node("NdArrayNode", "numpy.ndarray", type="numpy", file=SCHEMA, __id__=1),
        node("ObjectNode", "sosbands.bands.functions.SoSFunction"),
        "text",
        None,
        [],
    )

    def change(schema: Any) -> None:
        fields, name = _some_fields(schema, rng)
        identity = fields[name].get("__id__")
        way = rng.integers(len(odd) + 1)
        fields[name] = odd[way] if way < len(odd) else {"__id__": identity, **node("JsonNode", content="1")}

    return with_schema(data, change)


RESHAPED: tuple[Callable[[Any], Any], ...] = (
    lambda a: a[:-1],
    lambda a: a[..., None],
    lambda a: a.reshape(-1),
    lambda a: np.concatenate([a, a]),
    lambda a: a[:0],
    lambda a: a.view(np.uint8),
    lambda a: a.sum().reshape(()),
    lambda a: a[::-1],
    lambda a: -a,
    lambda a: np.full(a.shape, 10**9),
    lambda a: a.astype(np.float16),
    lambda a: a.astype(str),
)


def _reshaped(data: bytes, rng: Rng) -> bytes:
    """An array of another shape or type, those of the nodes of trees among them."""
    held = opened(data)
    name = str(rng.choice([name for name in held if name.endswith(".npy")]))  # in the order of the model
    with contextlib.suppress(ValueError, IndexError, TypeError):  # arrays that cannot be spoilt in that way
        array = np.load(io.BytesIO(held[name]))
        file = io.BytesIO()
        np.save(file, RESHAPED[rng.integers(len(RESHAPED))](array), allow_pickle=False)
        held[name] = file.getvalue()
    return closed(held)


def _renamed(data: bytes, rng: Rng) -> bytes:
    """An object of another type."""
    kinds = ("os.system", "sosbands.cli.app.main", "builtins.eval", "sosbands._files.written", "posix.system")
    kinds += ("sosbands.conformal.calibration.Calibration", "sosbands.baselines.split.SplitCP", "numpy.ndarray", ".")
    kinds += ("sosbands.comparison.store.LineFile", "sosbands.saving.trees.PackedTrees", "sklearn.tree._tree.Tree")

    def change(schema: Any) -> None:
        objects = objects_of(schema)
        chosen = objects[rng.integers(len(objects))]
        chosen["__module__"], _, chosen["__class__"] = kinds[rng.integers(len(kinds))].rpartition(".")

    return with_schema(data, change)


def _malformed(data: bytes, rng: Rng) -> bytes:
    """A schema that is no tree of nodes, is very deep, or holds very much."""
    texts = (
        b"",
        b"[]",
        b"{}",
        b"[null]",
        b"[NaN]",
        b'"\\ud800"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"[" + b"[],[]," * 2_000_000 + b"[]]",
        b'{"protocol": 2, "x": [' + b"[],[]," * 2_000_000 + b"[]]}",
        b'{"protocol": 2, "__loader__": "ListNode", "x": [' + b'{"":{}},' * 150_000 + b"1]}",
        b"[" + b"9" * 100_000 + b"]",
        b'{"protocol": 0}',
        b'{"protocol": 1e400, "__loader__": "ListNode"}',
        b'{"protocol": true}',
        b'{"protocol": 2, "__loader__": "ListNode", "__module__": "builtins", "__class__": "list", "content": []}',
        b'{"protocol": 2, "__loader__": ["ListNode"], "__module__": 1, "__class__": 2, "content": [[]]}',
        b'{"protocol": 2, "__loader__": "ListNode", "__id__": [1], "__module__": "a", "__class__": "b"}',
    )
    return with_schema(data, lambda _: texts[rng.integers(len(texts))])


def _of_odd_header(data: bytes, rng: Rng) -> bytes:
    """A first line of another format, that lies about sizes, or is none."""
    formats = (0, -1, 4.0, True, "1", [], None, 10**300, math.inf, math.nan, 2, {"a": 1})
    changes: tuple[dict[str, Any], ...] = (
        *({"format": number} for number in formats),
        {"size": 10**18},
        {"size": -1},
        {"size": "1"},
        {"kind": "another"},
        {"sosbands": [[]]},
        {"sosbands": "x" * 5000},
        {"begins": 1},
    )
    held = data.partition(b"\n")[2]
    way = rng.integers(len(changes) + 2)
    if way < len(changes):
        return closed(held, **changes[way])
    return (b"[" * 400 if way == len(changes) else b"{" * 10**6) + b"\n" + held


def _of_odd_members(data: bytes, rng: Rng) -> bytes:
    """An archive that unpacks to much, is encrypted, full of members, overlapping or none."""
    way, members = rng.integers(9), opened(data)
    if way == 0:
        return closed({**members, "zeros.npy": bytes(300 * 2**20)})
    if way == 1:
        return closed(zipped(members, zipfile.ZIP_LZMA))
    if way == 2:
        return closed(_patched(zipped(members), b"PK\x01\x02", 8, b"\x01"))  # encrypted, says the list at the end
    if way == 3:
        return closed(_patched(zipped(members), b"PK\x01\x02", 10, b"\x00"))  # not compressed, it says
    if way == 4:
        return closed(_patched(zipped(members), b"PK\x01\x02", 24, b"\xff\xff\xff\x7f"))  # large, it says
    if way == 5:
        return closed({str(k): b"" for k in range(250_000)} if rng.random() < 0.2 else {SCHEMA: b""})
    if way == 6:
        return closed(b"PK\x03\x04" + bytes(1000))
    if way == 7:
        return closed(zipped(members) + bytes(10))
    return closed(_patched(zipped(members), b"PK\x05\x06", 16, b"\xff\xff\xff\xff"))


def _patched(data: bytes, mark: bytes, offset: int, value: bytes) -> bytes:
    place = data.rindex(mark) + offset
    return data[:place] + value + data[place + len(value) :]


def npy(shape: tuple[int, ...], dtype: str = "<f8", content: bytes = b"") -> bytes:
    """An array in numpy's format that may lie about its shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def _of_odd_arrays(data: bytes, rng: Rng) -> bytes:
    """Arrays and sparse matrices that lie about their size."""
    huge = io.BytesIO()
    np.savez_compressed(huge, data=np.zeros(30_000_000))
    contents = (
        ("x.npy", npy((2**33,))),
        ("x.npy", npy((2**62, 2**62))),
        ("x.npy", npy((3,), "|O", b"cos\nsystem\n")),
        ("x.npy", npy((3,), "|V1000000000")),
        ("x.npy", b"\x93NUMPY\x09\x09" + bytes(100)),
        ("x.npy", b""),
        ("x.npz", huge.getvalue()),
        ("x.npz", b"not an archive"),
        ("x.npy", npy((0, 2**62))),
    )
    name, content = contents[rng.integers(len(contents))]
    loader, of = ("SparseMatrixNode", "scipy") if name.endswith("z") else ("NdArrayNode", "numpy")
    kind = "scipy.sparse._csr.csr_matrix" if name.endswith("z") else "numpy.ndarray"
    return with_planted(data, node(loader, kind, type=of, file=name, __id__=1), {name: content})


def _with_code(data: bytes, rng: Rng) -> bytes:
    """Nodes that would run code or write a file, if they were made."""
    text = node("JsonNode", content='"touch broken"')
    path = node("JsonNode", content='"broken"')
    written = node("TupleNode", "builtins.tuple", content=[path, path])
    nothing = node("DictNode", "builtins.dict", content={}, key_types=listed())
    planted = (
        node("FunctionNode", "os.system"),
        node("TypeNode", "os.system"),
        node("PartialNode", "functools.partial", content={"func": node("TypeNode", "os.system"), "args": written}),
        node("ConstructorFromReduceNode", "os.system", content=node("TupleNode", "builtins.tuple", content=[text])),
        node("ConstructorFromReduceNode", "sosbands.comparison.store.LineFile", content=written),
        node("OperatorFuncNode", "operator.methodcaller", attrs=written),
        node("MethodNode", "numpy.ndarray", content={"func": "tofile", "obj": node("NdArrayNode", "numpy.ndarray")}),
        node("MethodNode", "sosbands.tables.encoder.TableEncoder", content={"func": "fit", "obj": text}),
        node("ObjectNode", "subprocess.Popen", content=nothing),
        node("ObjectNode", "sosbands.cli.output.Output", content=nothing),
        node("ListNode", "numpy.savetxt", content=[path, path]),
        node("ListNode", "sosbands._files.written", content=[path]),
        node("ListNode", "sosbands.tuning.rules.Rules", content=[path]),
        node("LossNode", "os.system", content=listed(), __reduce__={"args": written}),
        node("SetNode", "builtins.exec", content=[text]),
        node("DefaultDictNode", "collections.defaultdict", content={"main": text, "default_factory": text}),
        node("EvilNode", "os.system"),
    )
    return with_planted(data, planted[rng.integers(len(planted))])


def _with_traps(data: bytes, rng: Rng) -> bytes:
    """Nodes that would take for ever, or much memory, or lead out of an array."""
    one, many = node("JsonNode", content="1"), node("JsonNode", content=str(10**9))
    doubling = listed(one, __id__=1)
    for k in range(2, 60):
        doubling = listed(doubling, ({"__id__": k - 1}, listed(__id__=k - 1), one)[rng.integers(3)], __id__=k)
    deep: Any = one
    for _ in range(200):
        deep = listed(deep)
    classes = node("NdArrayNode", "numpy.ndarray", type="numpy", file="classes.npy", __id__=1)
    arguments = node("TupleNode", "builtins.tuple", content=[one, classes, many])
    again = [node("NdArrayNode", "numpy.ndarray", type="numpy", file="large.npy", __id__=k) for k in (2, *range(3000))]
    packed = {"nodes": classes, "values": classes, "n_features": one, "n_classes": many}
    planted = (
        doubling,
        deep,
        node("TreeNode", TREE, __reduce__={"args": arguments}, content=listed()),
        node("ConstructorFromReduceNode", TREE, content=arguments),
        node("LossNode", TREE, content=listed(), __reduce__={"args": arguments}),
        node("ObjectNode", "sosbands.saving.trees.PackedTrees", content=keyed(packed)),
        node("NdArrayNode", "numpy.void", type="numpy", file="many.npy", __id__=1),
        node("BytearrayNode", "builtins.bytearray", file="large.npy", __id__=1),
        listed(*again),
        listed(*again[:1] * 3000),
        listed(*[one] * 38_000),
        listed(*[node("ObjectNode", "sklearn.linear_model._base.LinearRegression")] * 38_000),
        listed(*[node("NdArrayNode", "numpy.ndarray", type="json", content=[], shape=listed(one))] * 12_500),
        *(_generator(name, value) for name, value in SEEDS),
        _generator("entropy", node("NdArrayNode", "numpy.ndarray", type="numpy", file="large.npy", __id__=1)),
    )
    members = {
        "classes.npy": npy((1,), "<i8", bytes(8)),
        "many.npy": npy((), "<i8", (10**9).to_bytes(8, "little")),
        "large.npy": npy((2**20,), "|u1", bytes(2**20)),
    }
    return with_planted(data, planted[rng.integers(len(planted))], members)


TREE = "sklearn.tree._tree.Tree"
SEEDS: tuple[tuple[str, Any], ...] = (
    ("entropy", "-1"),
    ("pool_size", str(10**9)),
    ("pool_size", listed(node("JsonNode", content=str(10**9)))),
    ("entropy", "9" * 4000),
    ("spawn_key", "[-1]"),
    ("another", "1"),
)


def keyed(fields: dict[str, Any]) -> dict[str, Any]:
    """A node that is a dictionary of others by text."""
    types = listed(*[node("TypeNode")] * len(fields))
    return node("DictNode", "builtins.dict", content=fields, key_types=types)


def _generator(name: str, value: Any) -> dict[str, Any]:
    """A generator of random numbers with an odd seed."""
    state = keyed({"bit_generator": node("JsonNode", content='"PCG64"')})
    seed = keyed({name: node("JsonNode", content=value) if isinstance(value, str) else value})
    return node(
        "RandomGeneratorNode", "numpy.random._generator.Generator", content={"bit_generator": state, "seed_seq": seed}
    )


def _another_file(data: bytes, rng: Rng) -> bytes:
    """Files of other programs, and nothing."""
    import pickle

    contents = (
        b"",
        b"\x00" * 8,
        b"\xff" * 1000,
        zipped({"schema.json": b'{"protocol": 2}'}),
        pickle.dumps({"format": 4}),
        data[8:],
        data * 2,
        rng.bytes(5000),
    )
    return contents[rng.integers(len(contents))]


# What has a right checksum may be another model, also one that cannot predict, as long as it does no harm.
CHANGED = (_dropped, _retyped, _misdirected, _reshaped, _renamed)
FORGERS: tuple[Callable[[bytes, Rng], bytes], ...] = (
    *CHANGED,
    _malformed,
    _of_odd_header,
    _of_odd_members,
    _of_odd_arrays,
    _with_code,
    _with_traps,
    _another_file,
)
