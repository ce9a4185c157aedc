"""Predicates of arguments, and the error that names one: its value and what was expected."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_number(value: Any) -> bool:
    """A real number that is no bool."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_count(value: Any) -> bool:
    """An integer that is no bool."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_fraction(value: Any) -> bool:
    """A number in (0, 1)."""
    return is_number(value) and bool(0 < value < 1)


def check(name: str, value: Any, fine: bool, expected: str) -> None:
    """Raise the error that names the argument unless it is fine."""
    if not fine:
        raise ValueError(f"{name}={value!r}: expected {expected}")


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """One of a few words, or None where that is among them."""
    check(name, value, isinstance(value, (str, type(None))) and value in allowed, f"one of {list(allowed)}")


def read_level(confidence_level: Any) -> float:
    """One confidence level in (0, 1), as a number or an array without dimensions; the text of a number is none."""
    value = confidence_level
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    check("confidence_level", confidence_level, is_fraction(value), "a number in (0, 1)")
    return float(value)


def read_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Weights of rows: finite numbers >= 0, not all of them 0; one number stands for all rows."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}: expected ({n_rows},), one weight per row")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight has entries that are NaN, infinite or negative: expected finite numbers >= 0")
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: expected a weight above zero in some")
    return weights
