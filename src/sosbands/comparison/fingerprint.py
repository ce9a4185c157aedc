"""What a configuration is, as JSON that two runs can compare: settings, methods and data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from sosbands._types import AnyArray
from sosbands.comparison.axes import canonical

NO_EFFECT = ("n_jobs", "verbose")  # parameters that change how a result is computed and shown, not the result


def fingerprint(settings: Any) -> str:
    """SHA-256 of the description of the settings."""
    return _sha256(canonical(describe(settings)).encode("ascii"))


def describe(value: Any, _above: frozenset[int] = frozenset()) -> Any:
    """JSON that is equal for equal settings, in any process, and holds no machine path.

    Estimators and kernels are their class and parameters (but `n_jobs` and `verbose`), arrays their shape and a hash,
    functions their name (those without a module-level name also a hash of their code and what they capture), texts
    with a slash a hash; other objects, frozen estimators among them, a hash of their state. The code of a named
    function is not looked at.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return {"text": _sha256(value.encode())} if "/" in value or "\\" in value else value
    if id(value) in _above:
        return "..."  # a cycle
    return _describe_object(value, _above | {id(value)})


def _describe_object(value: Any, above: frozenset[int]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"array": list(value.shape), "dtype": str(value.dtype), "sha256": _array_hash(value)}
    if isinstance(value, Mapping):
        return {str(key): describe(entry, above) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [describe(entry, above) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted((describe(entry, above) for entry in value), key=canonical)
    if isinstance(value, FunctionType):
        return _describe_function(value, above)
    if isinstance(value, type):
        return {"class": value.__qualname__}
    name = type(value).__qualname__
    if hasattr(value, "get_params") and not isinstance(value, FrozenEstimator):
        parameters = {key: entry for key, entry in value.get_params(deep=False).items() if key not in NO_EFFECT}
        return {"class": name, "parameters": {key: describe(entry, above) for key, entry in parameters.items()}}
    return {"class": name, "state": joblib.hash(value)}


def _describe_function(function: FunctionType, above: frozenset[int]) -> Any:
    """A named function by its name; one made in another function, or a lambda, has nothing better than its code."""
    if "<" not in function.__qualname__:
        return {"function": function.__qualname__}
    captured = [describe(cell.cell_contents, above) for cell in function.__closure__ or ()]
    defaults = describe(function.__defaults__, above)
    return {
        "function": function.__qualname__,
        "code": code_hash(function.__code__),
        "captured": captured,
        "defaults": defaults,
    }


def data_hash(data: Any) -> str:
    """Hash of the values, names and types of an array, data frame, list or sparse matrix."""
    if hasattr(data, "tocoo"):
        entries = data.tocsr()
        return _sha256("".join(_array_hash(part) for part in (entries.data, entries.indices, entries.indptr)).encode())
    if not hasattr(data, "columns"):
        return _array_hash(np.asarray(data))
    columns = table_columns(data)
    names = [str(name) for name in data.columns]
    types = [str(column.dtype) for column in columns]
    return _sha256(canonical([names, types, [_array_hash(np.asarray(column)) for column in columns]]).encode("ascii"))


def table_columns(frame: Any) -> list[Any]:
    """Columns of a data frame by position, because names may repeat."""
    return [_safe_indexing(frame, i, axis=1) for i in range(len(frame.columns))]


def _array_hash(values: AnyArray) -> str:
    if values.dtype.kind in "OTU":  # texts, categories and mixtures: by what they print
        content = canonical([str(entry) for entry in values.ravel().tolist()]).encode("ascii")
        return _sha256(f"text {values.shape}".encode() + content)
    return _sha256(f"{values.dtype.str} {values.shape}".encode() + np.ascontiguousarray(values).tobytes())


def code_hash(code: CodeType) -> str:
    """Hash of what code does, without the lines it stands on."""
    constants = [_constant(entry) for entry in code.co_consts]
    return _sha256(code.co_code + canonical([constants, code.co_names]).encode("ascii"))


def _constant(value: Any) -> str:
    """A constant in words that every process finds alike: sets of texts have another order in each."""
    if isinstance(value, CodeType):
        return code_hash(value)
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
