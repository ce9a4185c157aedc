"""What identifies a task, and the seed that follows from it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Axis = str | int | float


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values: sorted keys, no spaces, ASCII, numbers as Python writes them."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def read_axes(axes: Mapping[str, Any]) -> dict[str, Axis]:
    """Axes with plain Python values; 1 and 1.0 stay different.

    Parameters
    ----------
    axes : mapping of str to str, int or float
        Infinite numbers are allowed (a penalty may be one), NaN is not, because it is not equal to itself.
    """
    if not isinstance(axes, Mapping) or not axes:
        raise ValueError(f"axes={axes!r}: expected a non-empty mapping of names to strings or numbers")
    return {_read_name(name): _read_value(name, value) for name, value in axes.items()}


def seed_of(axes: Mapping[str, Any], random_state: int = 0, names: Sequence[str] | None = None) -> int:
    """Seed in [0, 2^32) of a task.

    The first four bytes, most significant first, of the SHA-256 of ``{"axes":{...},"random_state":...}`` as
    `canonical` JSON. Equal on every machine, and independent of the order of the axes and of the other tasks.

    Parameters
    ----------
    axes : mapping
        Axes of the task.
    random_state : int
        Another one gives other seeds to all tasks.
    names : sequence of str, optional
        The axes that count, all by default. Tasks that differ only in the others share their seed: leave out the
        method, and methods are paired.
    """
    values = read_axes(axes)
    names = list(values) if names is None else list(names)
    missing = [name for name in names if name not in values]
    if missing:
        raise ValueError(f"seed_axes has {missing[0]!r}, which the task {values} lacks: expected names of its axes")
    text = canonical({"axes": {name: values[name] for name in names}, "random_state": random_state})
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:4], "big")


def _read_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"axis name {name!r}: expected a non-empty string")
    return name


def _read_value(name: str, value: Any) -> Axis:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, str | int | float):
        raise ValueError(f"axis {name}={value!r}: expected a string, an integer or a float")
    if isinstance(plain, float):
        if math.isnan(plain):
            raise ValueError(f"axis {name}={value!r}: expected a number that is not NaN")
        return plain + 0.0  # no negative zero
    return plain
