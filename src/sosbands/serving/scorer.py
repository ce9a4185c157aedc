"""Intervals from a file of `export_numpy`, with NumPy alone: this module imports nothing else and may be copied."""

from __future__ import annotations

import io
import json
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FORMAT = 1
PROGRAM = "program"  # the member of the file that holds the steps
BLOCK_ROWS = 1024  # scored at a time, so that memory does not grow with rows times landmarks
MICROSECONDS = 86_400_000_000  # of a day
SINGLE = float(np.finfo(np.float32).max)
KINDS: dict[str, Any] = {"numbers": np.float64, "integers": np.int64, "texts": object}
OPTIONS: dict[str, dict[str, type]] = {  # of operations that have some
    "columns": {"start": int, "end": int},
    "trees": {"depth": int, "each": bool},
}
DAMAGES = (  # what zipfile, NumPy and json raise for bytes that are not as they were written
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError),
    *(KeyError, ValueError, OverflowError, MemoryError, RecursionError, tokenize.TokenError),
)
Values = np.ndarray[Any, Any]


def _single(x: Values) -> Values:
    """Rounded to the single precision in which trees compare, and within its range."""
    return x.clip(-SINGLE, SINGLE).astype(np.float32).astype(np.float64)


def _distances(x: Values, landmarks: Values) -> Values:
    """Squared distances between rows and landmarks, from differences, one coordinate at a time."""
    found = np.zeros((len(x), len(landmarks)))
    for j in range(x.shape[1]):
        found += np.square(x[:, j, None] - landmarks[None, :, j])
    return found


def _trees(x: Values, nodes: Values, splits: Values, roots: Values, depth: int, each: bool) -> Values:
    """What the leaf of each row says, of each tree or in all; a leaf leads to itself."""
    feature, left, right = nodes
    threshold, value = splits
    rows, at = np.arange(len(x))[:, None], np.broadcast_to(roots.reshape(1, -1), (len(x), roots.size))
    for _ in range(min(depth, len(feature))):
        at = np.where(x[rows, feature[at]] <= threshold[at], left[at], right[at])
    found = value[at]
    return np.asarray(found if each else found.sum(axis=1, keepdims=True))


def _lookup(x: Values, keys: Values, table: Values) -> Values:
    """The row of the table that belongs to each key; the last one for keys that are not there."""
    given = x.reshape(-1)
    if keys.dtype.kind == "U":
        given = np.array([_text(cell) for cell in given.tolist()])
    place = np.searchsorted(keys, given).clip(max=len(keys) - 1)
    return np.asarray(table[np.where(keys[place] == given, place, len(keys))])


def _label_lookup(x: Values, keys: Values, table: Values) -> Values:
    """As `_lookup`, for labels: these are compared as they are, with the blanks around them."""
    places = {key: place for place, key in enumerate(keys.tolist())}
    return np.asarray(table[[places.get(label, len(keys)) for label in x.reshape(-1).tolist()]])


def _text(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell).strip()


OPERATIONS: dict[str, Callable[..., Values]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "product": np.matmul,
    "sum": lambda x: x.sum(axis=1, keepdims=True),
    "mean": lambda x: x.mean(axis=1, keepdims=True),
    "join": lambda *parts: np.concatenate(parts, axis=1),
    "columns": lambda x, start, end: x[:, start:end],
    "fill": lambda x, other: np.asarray(np.where(np.isnan(x), other, x)),
    "missing": lambda x: np.isnan(x).astype(np.float64),
    "if_greater": lambda a, b, then, otherwise: np.asarray(np.where(a > b, then, otherwise)),
    "single": _single,
    "distances": _distances,
    "trees": _trees,
    "lookup": _lookup,
    "label_lookup": _label_lookup,
}


class Scorer:
    """Intervals of one exported model at its levels.

    Parameters
    ----------
    program : mapping
        Inputs, steps, outputs and facts, as the file has them.
    constants : mapping from str to array

    Attributes
    ----------
    confidence_level : list of float
    inputs : list of dict
        Name, kind ("numbers", "texts" or "integers") and number of columns of what a row consists of.
    feature_names : list of str or None
        Columns of `X`, if the model was fitted with names; a data frame must have these, in this order.
    """

    def __init__(self, program: Mapping[str, Any], constants: Mapping[str, Values]) -> None:
        _check_program(program, constants)
        self._steps, self._outputs, self._constants = program["steps"], program["outputs"], dict(constants)
        self.inputs: list[dict[str, Any]] = program["inputs"]
        self.confidence_level: list[float] = program["facts"]["confidence_level"]
        self.levels_are_a_list: bool = program["facts"]["levels_are_a_list"]
        self.feature_names: list[str] | None = program["facts"].get("feature_names")

    def __call__(self, X: Any, **further: Any) -> dict[str, Values]:
        """Score rows.

        Parameters
        ----------
        X : array of shape (n, n_features), or mapping from column to n values
            Rows: an array for a model of numbers, a data frame or a dictionary for a model of a table.
        **further : arrays of shape (n,)
            `groups`, `prediction` or `std`, where the file asks for them.

        Returns
        -------
        dict of str to ndarray
            "prediction" (n, 1), "lower" and "upper" (n, number of levels), "support" (n, 1). A row of numbers with an
            entry that is missing, infinite or too large to be squared has NaN everywhere.
        """
        given = self._read(X, further)
        n = len(next(iter(given.values())))
        starts = range(0, max(n, 1), BLOCK_ROWS)
        parts = [self._block({name: x[s : s + BLOCK_ROWS] for name, x in given.items()}) for s in starts]
        return {name: np.concatenate([part[name] for part in parts]) for name in self._outputs}

    def predict(self, X: Any, **further: Any) -> Values:
        """Point predictions, (n,)."""
        found = self(X, **further)
        if "prediction" not in found:
            raise ValueError("the file holds bands only: the prediction is an input of it")
        return found["prediction"][:, 0]

    def predict_interval(self, X: Any, **further: Any) -> Values:
        """Intervals as those of the model: (n, 2), or (n, 2, k) if a list of levels was exported."""
        found = self(X, **further)
        ends = np.stack([found["lower"], found["upper"]], axis=1)
        return ends if self.levels_are_a_list else ends[:, :, 0]

    def _read(self, X: Any, further: Mapping[str, Any]) -> dict[str, Values]:
        names = [each["name"] for each in self.inputs]
        if "X" in names and self.feature_names is not None:
            _check_names(X, self.feature_names)
        rows = {"X": X} if "X" in names else _columns(X, [name for name in names if name not in further])
        rows |= further
        odd = sorted(set(rows) ^ set(names))
        if odd:
            raise ValueError(f"inputs {odd} are given or lacking: expected {names}")
        found = {each["name"]: _array(rows[each["name"]], each) for each in self.inputs}
        lengths = {name: len(values) for name, values in found.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"inputs have different numbers of rows: {lengths}")
        return found

    def _block(self, given: dict[str, Values]) -> dict[str, Values]:
        values = {**self._constants, **given}
        with np.errstate(all="ignore"):
            for operation, output, arguments, options in self._steps:
                try:
                    values[output] = OPERATIONS[operation](*(values[name] for name in arguments), **options)
                except (TypeError, ValueError, IndexError) as error:
                    raise ValueError(f"the file is damaged: its step {output} ({operation}) fails, {error}") from error
        return {name: values[value] for name, value in self._outputs.items()}


def _columns(X: Any, names: list[str]) -> dict[str, Any]:
    """Columns of a data frame or of a dictionary, by name."""
    if not (hasattr(X, "columns") or isinstance(X, Mapping)):
        raise ValueError(f"X is a {type(X).__name__}: expected a data frame or a dictionary with the columns {names}")
    lacking = [name for name in names if name not in X]
    if lacking:
        raise ValueError(f"X has no column {lacking[0]!r}: expected {names}")
    return {name: X[name] for name in names}


def load_scorer(path: Any) -> Scorer:
    """Read a file of `export_numpy`; nothing in it is run.

    Parameters
    ----------
    path : path or binary file
        What `export_numpy` has written.

    Returns
    -------
    Scorer
    """
    if hasattr(path, "read"):
        content = path.read()
    else:
        with open(path, "rb") as file:
            content = file.read()
    try:
        arrays = _members(content)
        program = json.loads(arrays.pop(PROGRAM).tobytes())
        return Scorer(program, {f"/{name}": values for name, values in arrays.items()})
    except DAMAGES as error:
        said = f"no member {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ValueError(f"path={str(path)!r}: expected a file of export_numpy ({said})") from error


def _members(content: bytes) -> dict[str, Values]:
    """The arrays of an archive, each read to its end, where its checksum is compared."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for each in archive.infolist():
            if each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or each.flag_bits & 1:
                raise ValueError(f"member {each.filename!r} is packed in another way")
            array = np.lib.format.read_array(io.BytesIO(archive.read(each)), allow_pickle=False)
            if array.dtype.kind not in "iufU":
                raise ValueError(f"member {each.filename!r} holds {array.dtype}, neither numbers nor texts")
            found[each.filename.removesuffix(".npy")] = array
    return found


def _check_program(program: Any, constants: Mapping[str, Values]) -> None:
    """Complain about what is no program of this version, by the part that is wrong."""
    if not isinstance(program, Mapping):
        raise ValueError(f"the program is a {type(program).__name__}: expected a mapping")
    if program.get("format") != FORMAT:
        raise ValueError(f"it has format {program.get('format')!r}: expected {FORMAT}")
    parts: list[Any] = [program.get(name) for name in ("inputs", "steps", "outputs", "facts")]
    inputs, steps, outputs, facts = parts
    _expect("inputs", inputs, isinstance(inputs, list) and bool(inputs) and all(map(_is_input, inputs)))
    _expect("steps", steps, isinstance(steps, list) and all(map(_is_step, steps)))
    unknown = sorted({step[0] for step in steps} - set(OPERATIONS))
    if unknown:
        raise ValueError(f"it has the operations {unknown}, which this version does not know")
    known = {*constants, *(each["name"] for each in inputs)}
    for step in steps:
        fine = known.issuperset(step[2]) and len(step[2]) == getattr(OPERATIONS[step[0]], "nin", len(step[2]))
        _expect("steps", step, fine and _fits(step[3], OPTIONS.get(step[0], {})))
        known.add(step[1])
    fine = isinstance(outputs, dict) and {"lower", "upper"} <= set(outputs)
    _expect("outputs", outputs, fine and all(isinstance(value, str) and value in known for value in outputs.values()))
    _expect("facts", facts, isinstance(facts, dict) and _are_facts(facts))


def _expect(part: str, value: Any, fine: bool) -> None:
    if not fine:
        raise ValueError(f"its {part} are not those of a program: {str(value)[:80]}")


def _is_input(each: Any) -> bool:
    if not (isinstance(each, dict) and isinstance(each.get("kind"), str) and each["kind"] in KINDS):
        return False
    return isinstance(each.get("name"), str) and type(each.get("columns")) is int


def _is_step(step: Any) -> bool:
    if not (isinstance(step, list) and [type(part) for part in step] == [str, str, list, dict]):
        return False
    return all(isinstance(name, str) for name in step[2])


def _fits(options: Mapping[str, Any], wanted: Mapping[str, type]) -> bool:
    return {name: type(value) for name, value in options.items()} == dict(wanted)


def _are_facts(facts: Mapping[str, Any]) -> bool:
    levels, names = facts.get("confidence_level"), facts.get("feature_names")
    fine = isinstance(levels, list) and bool(levels) and all(isinstance(level, float) for level in levels)
    named = names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
    return fine and named and isinstance(facts.get("levels_are_a_list"), bool)


def _check_names(X: Any, wanted: list[str]) -> None:
    """Complain about a data frame, of whatever library, whose columns are not those of the fit, in their order."""
    found = getattr(X, "column_names", None)  # of a table of Arrow, whose `columns` are the values
    found = getattr(X, "columns", None) if found is None else found
    if found is None or not all(isinstance(name, str) for name in found):
        return
    if len(found) != len(wanted):
        odd = sorted(set(found) ^ set(wanted))
        raise ValueError(f"X has {len(found)} columns: expected {len(wanted)}; given or lacking are {odd}")
    for place, (name, right) in enumerate(zip(found, wanted, strict=True)):
        if name != right:
            raise ValueError(f"X has the column {name!r} at place {place}: expected {right!r}, as in fit")


def _array(values: Any, wanted: Mapping[str, Any]) -> Values:
    """One input as an array (n, columns); moments become days since 1970."""
    name, columns = wanted["name"], wanted["columns"]
    array = np.ascontiguousarray(values)  # the same numbers give the same bits, in whatever order a frame holds them
    if array.dtype.kind == "M":
        array = np.where(np.isnat(array), np.nan, array.astype("datetime64[us]").astype(np.int64) / MICROSECONDS)
    try:
        read = _integers(array) if wanted["kind"] == "integers" else array.astype(KINDS[wanted["kind"]])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds what is not {wanted['kind']}: {error}") from error
    if read.ndim == 1 and name != "X":
        read = read[:, None]
    if read.ndim != 2 or read.shape[1] != columns:
        raise ValueError(f"{name} has shape {read.shape}: expected {columns} columns")
    return read


def _integers(array: Values) -> Values:
    """Whole numbers, none of which the cast changes."""
    if array.dtype.kind not in "bi":
        odd = [cell for cell in array.reshape(-1).tolist() if not _is_whole(cell)]
        if odd:
            raise ValueError(repr(odd[0]))
    return array.astype(np.int64)


def _is_whole(cell: Any) -> bool:
    number = isinstance(cell, (int, float, np.integer, np.floating, np.bool_))
    return number and bool(-(2**63) <= cell < 2**63) and int(cell) == cell
