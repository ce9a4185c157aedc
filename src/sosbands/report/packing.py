"""Numbers in few letters: rounded ones, whole ones as text, and lists that are stored once."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from sosbands._types import Array, IntArray

DIGITS = 5  # significant ones; of targets and bands in units of the size of the residuals
CODE = string.digits + string.ascii_letters + "-_"  # digits of whole numbers in base 64
FEW_CHANGES = 0.2  # of a list: up to here it is stored by what differs from another one


def coded(values: IntArray) -> str:
    """Whole numbers >= 0 as one text, with as many characters for each as the largest needs."""
    base, most, size = len(CODE), int(values.max(initial=0)), 1
    while base**size <= most:
        size += 1
    places = base ** np.arange(size)[::-1]
    return "".join(CODE[digit] for digit in (values[:, None] // places % base).ravel().tolist())


def rounded(values: Array, unit: float) -> list[float]:
    """Rounded to a power of ten that is at most the unit."""
    found: list[float] = np.round(values, decimals_of(unit)).tolist()
    return [int(value) if value.is_integer() else value for value in found]  # "12", not "12.0"


def significant(value: float, digits: int = DIGITS) -> float | int | None:
    """The number with a few digits; None for infinity, which JSON does not know."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 10**digits else short


def decimals_of(unit: float) -> int:
    """Of numbers that are rounded to a power of ten that is at most the unit."""
    return math.ceil(-math.log10(unit))


class Pool:
    """Lists of numbers, rounded to a unit, each stored once.

    An entry is ``[n, low, text]``: n whole numbers of the unit, `low` taken off, in base 64. With a fourth part,
    true, they are differences to the number before, the first to 0. Or it is ``[k, places, values]``: the list k with
    other values at these places.

    Parameters
    ----------
    unit : float
    """

    def __init__(self, unit: float) -> None:
        self.decimals = decimals_of(unit)
        self.entries: list[list[Any]] = []
        self._lists: list[IntArray] = []
        self._known: dict[bytes, int] = {}

    def add(self, values: Array, like: int | None = None) -> int:
        """The number of the entry; `like` is that of a list which may differ in a few places only."""
        whole = np.round(values * 10.0**self.decimals).astype(np.int64)
        key = whole.tobytes()
        if key not in self._known:
            self._known[key] = len(self.entries)
            self.entries.append(self._entry(whole, like))
            self._lists.append(whole)
        return self._known[key]

    def _entry(self, whole: IntArray, like: int | None) -> list[Any]:
        if like is not None and len(self._lists[like]) == len(whole):
            places = np.flatnonzero(whole != self._lists[like])
            if len(places) <= FEW_CHANGES * len(whole):
                return [like, places.tolist(), whole[places].tolist()]
        steps = np.diff(whole, prepend=0)
        plain, differences = _packed(whole), [*_packed(steps), True]
        return min(plain, differences, key=lambda entry: len(str(entry)))


def _packed(whole: IntArray) -> list[Any]:
    low = int(whole.min()) if len(whole) else 0
    return [len(whole), low, coded(whole - low)]
