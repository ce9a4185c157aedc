"""Intervals from a file of `export_numpy`, with NumPy alone: this module imports nothing else and may be copied."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FORMAT = 1
PROGRAM = "program"  # the member of the file that holds the steps
BLOCK_ROWS = 1024  # scored at a time, so that memory does not grow with rows times landmarks
MICROSECONDS = 86_400_000_000  # of a day
SINGLE = float(np.finfo(np.float32).max)
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
    for _ in range(depth):
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
    """

    def __init__(self, program: Mapping[str, Any], constants: Mapping[str, Values]) -> None:
        unknown = sorted({step[0] for step in program["steps"]} - set(OPERATIONS))
        if unknown:
            raise ValueError(f"the file has the operations {unknown}, which this version does not know")
        self._steps, self._outputs, self._constants = program["steps"], program["outputs"], dict(constants)
        self.inputs: list[dict[str, Any]] = program["inputs"]
        self.confidence_level: list[float] = program["facts"]["confidence_level"]
        self.levels_are_a_list: bool = program["facts"]["levels_are_a_list"]

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
        rows = {"X": X} if "X" in names else {name: X[name] for name in names if name not in further}
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
                values[output] = OPERATIONS[operation](*(values[name] for name in arguments), **options)
        return {name: values[value] for name, value in self._outputs.items()}


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
    try:
        with np.load(path, allow_pickle=False) as file:
            program = json.loads(file[PROGRAM].tobytes())
            constants = {name: file[name] for name in file.files if name != PROGRAM}
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise ValueError(f"path={str(path)!r}: expected a file of export_numpy ({error})") from error
    if program.get("format") != FORMAT:
        raise ValueError(f"path={str(path)!r} has format {program.get('format')!r}: expected {FORMAT}")
    return Scorer(program, {f"/{name}": values for name, values in constants.items()})


def _array(values: Any, wanted: Mapping[str, Any]) -> Values:
    """One input as an array (n, columns); moments become days since 1970."""
    kinds = {"numbers": np.float64, "integers": np.int64, "texts": object}
    name, columns = wanted["name"], wanted["columns"]
    array = np.asarray(values)
    if array.dtype.kind == "M":
        array = np.where(np.isnat(array), np.nan, array.astype("datetime64[us]").astype(np.int64) / MICROSECONDS)
    try:
        array = array.astype(kinds[wanted["kind"]])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds what is not {wanted['kind']}: {error}") from error
    if array.ndim == 1 and name != "X":
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != columns:
        raise ValueError(f"{name} has shape {array.shape}: expected {columns} columns")
    return array
