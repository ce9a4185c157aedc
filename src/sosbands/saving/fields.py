"""What the fields of a saved object must be: what the annotations of its class say."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from sosbands.exceptions import ModelFileError

SEQUENCES: dict[Any, tuple[type, ...]] = {list: (list,), tuple: (tuple,), Sequence: (list, tuple)}
PRESENT = "_set_by_some_fits"  # of a class: fitted attributes, or fields with defaults, that files may lack
SAVED_AS = "_saved_as"  # of a class: what attributes are in files, where that is another type


def check_fields(cls: type, state: Mapping[str, Any], *, users: bool = False) -> None:
    """Raise a ModelFileError that names the first field that is missing, too many, or of a wrong type.

    Parameters
    ----------
    cls : type
        A dataclass, or an estimator with annotated parameters and fitted attributes: a model has all of the latter, or
        none before its fit, but for those in ``_set_by_some_fits``.
    state : mapping
        Values by the names of the fields.
    users : bool
        Whether the class is a user's, who need not annotate anything.
    """
    declared, parameters, optional = _declared(cls)
    fitted = declared.keys() - parameters - optional
    wanted = (parameters if not fitted & state.keys() else parameters | fitted) - optional
    for name in sorted(wanted - state.keys()):
        raise ModelFileError(f"{cls.__name__} without {name}")
    for name, value in state.items():
        if name in declared:
            if not matches(value, declared[name]):
                raise ModelFileError(f"{name} of {cls.__name__} is {_shown(value)}, expected {_words(declared[name])}")
        elif is_dataclass(cls) or not name.isidentifier() or (hasattr(cls, name) and not users):
            raise ModelFileError(f"{cls.__name__} has no field {name!r}")


@cache
def _declared(cls: type) -> tuple[dict[str, Any], frozenset[str], frozenset[str]]:
    """Types of all fields; which of them are always there; which of the others need not be."""
    hints = {name: hint for name, hint in get_type_hints(cls).items() if get_origin(hint) is not ClassVar}
    if is_dataclass(cls):
        names = frozenset(field.name for field in fields(cls))
        since = frozenset(vars(cls).get(PRESENT, ()))  # fields with defaults, which older files lack
        return {name: hints[name] for name in names}, names - since, since
    given = get_type_hints(cls.__init__)  # type: ignore[misc]
    names = frozenset(inspect.signature(cls).parameters)
    known = {"_sklearn_output_config": dict[str, Any], "feature_names_in_": np.ndarray}
    saved_as: dict[str, Any] = getattr(cls, SAVED_AS, {})
    declared = {**known, **{n: h for n, h in hints.items() if n.endswith("_")}, **saved_as}
    declared |= {name: given.get(name, Any) for name in names}
    optional = {name for each in cls.__mro__ for name in vars(each).get(PRESENT, ())}
    return declared, names, frozenset(optional | known.keys())


def matches(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; integers are numbers too, truth values are not."""
    hint = _written_out(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(matches(value, part) for part in parts)
    if origin is np.ndarray:
        (scalar,) = get_args(parts[1])
        if not isinstance(value, np.ndarray):
            return False
        kind: type = value.dtype.type
        return scalar is Any or issubclass(kind, scalar)
    if origin in SEQUENCES:
        return isinstance(value, SEQUENCES[origin]) and _items_match(value, parts)
    if origin in (dict, Mapping):
        key, item = parts
        return isinstance(value, dict) and all(matches(k, key) and matches(v, item) for k, v in value.items())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (None, NoneType):
        return value is None
    if getattr(hint, "_is_protocol", False):
        asked = [name for name in vars(hint) if name == "__call__" or not name.startswith("_")]
        return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in asked)
    return isinstance(value, hint)


def _written_out(hint: Any) -> Any:
    """What the name of a type stands for: since Python 3.12 `NDArray` may be such a name, with parts of its own."""
    origin = get_origin(hint)
    return origin.__value__[get_args(hint)] if hasattr(origin, "__value__") else hint


def _items_match(value: Any, parts: tuple[Any, ...]) -> bool:
    if len(parts) == 1 or parts[1:] == (Ellipsis,):
        return all(matches(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(map(matches, value, parts))


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"{type(value).__name__} {value!r:.40}" if isinstance(value, (str, int, float)) else type(value).__name__


def _words(hint: Any) -> str:
    hint = _written_out(hint)
    if get_origin(hint) is np.ndarray:
        (scalar,) = get_args(get_args(hint)[1])
        return "an array" if scalar is Any else f"an array of {scalar.__name__}"
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(part) for part in get_args(hint))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
