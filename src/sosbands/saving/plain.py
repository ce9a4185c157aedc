"""A model as plain data: JSON values, arrays of numbers, and positions in a list of objects of other packages.

A value that is no number, text, truth value, None or list is a JSON object with the key ``$``, which says what it is.
Objects of this package stand in a list, each after those that it consists of, so that no file can hold a loop.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from sosbands._types import AnyArray
from sosbands.exceptions import ModelFileError
from sosbands.saving.consistency import check_together
from sosbands.saving.fields import check_fields
from sosbands.saving.own_types import name_of

KIND = "$"
NUMBERS = "?bBhHiIlLqQfd"  # dtype characters of arrays that the file holds as they are
NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class Writer:
    """Takes a model apart: `objects` of this package, `arrays` by name, and `foreign` objects."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, AnyArray] = {}
        self.foreign: list[Any] = []
        self._seen: dict[int, tuple[Any, Any]] = {}

    def written(self, value: Any) -> Any:
        """The value as JSON."""
        if isinstance(value, (np.bool_, np.number)) and value.dtype.char in NUMBERS:
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {KIND: "float", "is": str(value)}
        if type(value) is list:
            return [self.written(item) for item in value]
        if type(value) is tuple:
            return {KIND: "tuple", "items": [self.written(item) for item in value]}
        if type(value) is dict:
            return {KIND: "dict", "items": [[self.written(k), self.written(v)] for k, v in value.items()]}
        if id(value) not in self._seen:
            # kept, so that no later value has its identity: some states are made for saving
            self._seen[id(value)] = value, self._array(value) if type(value) is np.ndarray else self._object(value)
        return self._seen[id(value)][1]

    def _array(self, value: AnyArray) -> Any:
        if value.dtype == object:
            items = [self.written(item) for item in value.ravel().tolist()]
            return {KIND: "items", "shape": list(value.shape), "items": items}
        if value.dtype.kind == "U" and value.dtype.itemsize and value.dtype.isnative:
            letters = np.ascontiguousarray(value)[..., None].view(np.uint32)
            return {KIND: "texts", "of": self._array(letters)}
        if value.dtype.kind in "mM" and value.dtype.isnative:
            return {KIND: "times", "dtype": value.dtype.str, "of": self._array(value.view(np.int64))}
        if value.dtype.char not in NUMBERS:
            return self._foreign(value)
        name = str(len(self.arrays))
        # The order in memory is kept: sums of matrix products depend on it in the last digit.
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if fortran else value)
        self.arrays[name] = stored.astype(stored.dtype.newbyteorder("="), copy=False).reshape(stored.shape)
        return {KIND: "array", "name": name, **({"transposed": True} if fortran else {})}

    def _object(self, value: Any) -> Any:
        name = name_of(type(value))
        if name is None:
            return self._foreign(value)
        if is_dataclass(value):
            state = {field.name: getattr(value, field.name) for field in fields(value)}
        else:
            state = dict(value.__getstate__())
        written = {field: self.written(part) for field, part in state.items()}
        self.objects.append({"type": name, "fields": written})
        return {KIND: "object", "at": len(self.objects) - 1}

    def _foreign(self, value: Any) -> Any:
        self.foreign.append(value)
        return {KIND: "foreign", "at": len(self.foreign) - 1}


class Reader:
    """Puts a model together again; every type and every field is checked first.

    Parameters
    ----------
    arrays : dict
        As `Writer` made them.
    foreign : list
        Objects of other packages.
    type_named : callable
        From the name of a type to the class and whether it is a user's; raises a ModelFileError for unknown names.
    """

    def __init__(
        self, arrays: dict[str, AnyArray], foreign: list[Any], type_named: Callable[[str], tuple[type, bool]]
    ) -> None:
        self._arrays, self._foreign, self._type_named = arrays, foreign, type_named
        self._objects: list[Any] = []
        self._made: dict[tuple[str, bool], AnyArray] = {}

    def model(self, objects: Any) -> Any:
        """The last of the objects, which the others are parts of."""
        demand(isinstance(objects, list) and len(objects) > 0, "no list of objects")
        for each in objects:
            demand(isinstance(each, dict) and each.keys() == {"type", "fields"}, "an object without type and fields")
            demand(isinstance(each["type"], str) and isinstance(each["fields"], dict), "an object of no type")
            cls, users = self._type_named(each["type"])
            state = {name: self._read(value) for name, value in each["fields"].items()}
            check_fields(cls, state, users=users)
            self._objects.append(_made(cls, state))
        return self._objects[-1]

    def _read(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._read(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = value.get(KIND)
        reader = getattr(self, f"_read_{kind}", None) if isinstance(kind, str) else None
        demand(reader is not None, f"a value of unknown kind {kind!r:.40}")
        assert reader is not None
        return reader(value)

    def _read_float(self, value: dict[str, Any]) -> float:
        found = value.get("is")
        demand(isinstance(found, str) and found in NOT_FINITE, "a number that is none")
        return NOT_FINITE[str(found)]

    def _read_tuple(self, value: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._listed(value))

    def _read_dict(self, value: dict[str, Any]) -> dict[Any, Any]:
        pairs = self._listed(value)
        demand(all(isinstance(pair, list) and len(pair) == 2 for pair in pairs), "a dictionary without pairs")
        demand(all(isinstance(key, (str, int, float, tuple, type(None))) for key, _ in pairs), "a key that is no value")
        return dict(pairs)

    def _read_items(self, value: dict[str, Any]) -> AnyArray:
        items, shape = self._listed(value), value.get("shape")
        fine = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        demand(fine and math.prod(shape or ()) == len(items), "an array of another size than it says")
        made = np.empty(len(items), dtype=object)
        made[:] = items
        return made.reshape(shape or ())

    def _read_texts(self, value: dict[str, Any]) -> AnyArray:
        letters = self._read(value.get("of"))
        fine = isinstance(letters, np.ndarray) and letters.dtype == np.uint32 and letters.ndim > 0
        demand(fine and letters.shape[-1] > 0 and letters.max(initial=0) <= sys.maxunicode, "texts that are none")
        return np.asarray(np.ascontiguousarray(letters).view(f"=U{letters.shape[-1]}")[..., 0])

    def _read_times(self, value: dict[str, Any]) -> AnyArray:
        counts, dtype = self._read(value.get("of")), np.dtype(str(value.get("dtype")))
        fine = isinstance(counts, np.ndarray) and counts.dtype == np.int64 and dtype.kind in "mM"
        demand(fine, "times that are none")
        return np.asarray(counts.view(dtype))

    def _read_array(self, value: dict[str, Any]) -> AnyArray:
        key = (str(value.get("name")), bool(value.get("transposed")))
        demand(key[0] in self._arrays, f"an array {key[0]!r:.40} that is not there")
        if key not in self._made:
            self._made[key] = self._arrays[key[0]].T if key[1] else self._arrays[key[0]]
        return self._made[key]

    def _read_object(self, value: dict[str, Any]) -> Any:
        return _at(self._objects, value)

    def _read_foreign(self, value: dict[str, Any]) -> Any:
        return _at(self._foreign, value)

    def _listed(self, value: dict[str, Any]) -> list[Any]:
        items = value.get("items")
        demand(isinstance(items, list), "a list without items")
        return [self._read(item) for item in items or ()]


def demand(fine: bool, what: str) -> None:
    """Raise a ModelFileError unless this holds."""
    if not fine:
        raise ModelFileError(what)


def _at(items: list[Any], value: dict[str, Any]) -> Any:
    at = value.get("at")
    demand(type(at) is int and 0 <= at < len(items), "a part that is not there")
    return items[int(at or 0)]


def _made(cls: Any, state: dict[str, Any]) -> Any:
    """An object of these fields, which have been checked; complains if they do not go together."""
    dataclass = is_dataclass(cls)
    try:
        if dataclass:
            made = cls(**state)
        else:
            made = cls.__new__(cls)
            made.__setstate__(state)
        check_together(made)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelFileError(f"a {cls.__name__} whose parts do not go together ({error})") from error
    return made
