"""Predicates of arguments, numbers of arrays, and the errors that name one: its value and what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, time, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e150  # of numbers whose squares, and sums of these, must be finite
DATES = (date, time, np.datetime64)
SPANS = (timedelta, np.timedelta64)
ODD = (str, bytes, complex, *DATES, *SPANS)  # NumPy would convert such objects, which are no numbers: the text "1"
IN_DAYS = "such as (values - values.min()) / np.timedelta64(1, 'D') for days"


def is_number(value: Any) -> bool:
    """A real number that is no bool."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_count(value: Any) -> bool:
    """An integer that is no bool."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_fraction(value: Any) -> bool:
    """A number in (0, 1)."""
    return is_number(value) and bool(0 < value < 1)


def is_splitter(value: Any) -> bool:
    """An object that splits rows, as those of sklearn.model_selection do."""
    methods = [getattr(value, name, None) for name in ("split", "get_n_splits")]
    return not isinstance(value, type) and all(map(callable, methods))


def check_cv(cv: Any) -> None:
    """A number of folds, or what makes them."""
    fine = (is_count(cv) and cv >= 2) or is_splitter(cv)
    check("cv", cv, fine, "an int >= 2, or a splitter such as TimeSeriesSplit() (sklearn.model_selection)")


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
    weights = read_numbers("sample_weight", sample_weight)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}: expected ({n_rows},), one weight per row")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight has entries that are NaN, infinite or negative: expected finite numbers >= 0")
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: expected a weight above zero in some")
    check_size("sample_weight", weights, "only ratios of weights matter, so divide them by the largest")
    return weights


def read_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Real numbers of any shape as floats; NaN and infinity are left to the caller.

    NumPy makes numbers of dates, spans of time, texts, complex numbers (their real part) and what lies below masks,
    all without a word: here they are errors.
    """
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} is sparse: expected a dense array (toarray())")
    if values is None:
        raise ValueError(f"{name} is None: expected real numbers")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: expected numbers, so fill them in or leave those rows out")
    try:
        raw = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} is no array ({error}): expected real numbers") from None
    kinds = set(map(type, raw.ravel().tolist())) if raw.dtype == object else set()
    if raw.dtype.kind in "biufO" and not any(issubclass(kind, ODD) for kind in kinds):
        # errstate: of longer floats, which become infinite, of which the caller complains
        with suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
            return raw.astype(np.float64)
    held = f" with entries of type {', '.join(sorted(kind.__name__ for kind in kinds))}" if kinds else ""
    wrong = f"has dtype {raw.dtype}{held}: expected real numbers"
    if raw.dtype.kind == "M" or any(issubclass(kind, DATES) for kind in kinds):
        wrong = f"holds dates (dtype {raw.dtype}): expected real numbers, so count from some date in a unit, {IN_DAYS}"
    elif raw.dtype.kind == "m" or any(issubclass(kind, SPANS) for kind in kinds):
        advice = "so divide by a unit, such as values / np.timedelta64(1, 'h') for hours"
        wrong = f"holds spans of time (dtype {raw.dtype}): expected real numbers, {advice}"
    elif raw.dtype.kind == "c" or complex in kinds:
        wrong = f"has dtype {raw.dtype}: expected real numbers (Complex data not supported)"
    raise ValueError(f"{name} {wrong}")


def check_size(
    name: str, values: NDArray[np.float64], advice: str = "give it in another unit", largest_of_all: float = LARGEST
) -> None:
    """Raise the error that names numbers too large to be squared; infinite ones are left to the caller."""
    largest = np.abs(values, where=np.isfinite(values), out=np.zeros(values.shape)).max(initial=0.0)
    if largest > largest_of_all:
        raise ValueError(
            f"{name} has entries as large as {largest:.3g}: expected at most {largest_of_all:g}, because their squares "
            f"must be finite; {advice}"
        )


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the argument first in errors of other libraries that read it and do not say which it is."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError) or re.search(rf"\b{name}\b", str(error)):
            raise
        raise type(error)(f"{name}: {error}") from error


def finite_numbers(X: Any) -> NDArray[np.float64] | None:
    """A table as an array if all of its entries are finite numbers, otherwise None."""
    values = np.asarray(X)
    usable = values.ndim == 2 and values.dtype.kind in "biuf" and np.isfinite(values).all()
    return values.astype(np.float64) if usable else None
