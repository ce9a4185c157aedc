"""Reading the arguments of the metrics: what is wrong is named, with what was expected."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sosbands._arguments import check_size, read_numbers, read_weights
from sosbands._types import Array, BoolArray

NO_END = "give it in another unit, or an infinite end where an interval has none"


def read_vector(values: ArrayLike, name: str, length: int | None = None) -> Array:
    """One-dimensional finite array, of the given length."""
    array = _read_numbers(values, name, length)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds infinite entries: expected finite numbers")
    return array


def read_bounds(
    lower: ArrayLike, upper: ArrayLike, length: int | None = None, *, measured: bool = True
) -> tuple[Array, Array]:
    """Both ends of intervals: -inf <= lower <= upper <= inf, neither a point at infinity.

    What is `measured`, not compared alone, must have finite squares.
    """
    lower = _read_numbers(lower, "lower", length)
    upper = _read_numbers(upper, "upper", len(lower))
    if np.any(lower == np.inf):
        raise ValueError("lower holds +inf: expected finite numbers or -inf")
    if np.any(upper == -np.inf):
        raise ValueError("upper holds -inf: expected finite numbers or +inf")
    crossing = np.flatnonzero(lower > upper)
    if crossing.size:
        raise ValueError(f"lower > upper in {crossing.size} rows, first {crossing[0]}: expected lower <= upper")
    if measured:
        check_size("lower", lower, NO_END)
        check_size("upper", upper, NO_END)
    return lower, upper


def read_intervals(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, measured: bool = True
) -> tuple[Array, Array, Array]:
    """Targets and the two ends of their intervals, all of one length."""
    y = read_vector(y, "y")
    if measured:
        check_size("y", y)
    return y, *read_bounds(lower, upper, len(y), measured=measured)


def mean_over_rows(values: Array | BoolArray, sample_weight: ArrayLike | None) -> float:
    """Mean, weighted if there are weights: finite numbers >= 0, not all of them 0."""
    if sample_weight is None:
        return float(np.mean(values))
    weights = read_weights(sample_weight, len(values))
    counted = weights > 0  # a row of no weight may be infinitely wide
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # in units in which no sum overflows or vanishes
    return float(np.average(values[counted], weights=weights[counted]))


def read_matrix(values: ArrayLike, name: str, n_rows: int | None = None) -> Array:
    """Two-dimensional finite array with at least one row and one column."""
    array = read_numbers(name, values)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: expected two dimensions, rows and columns")
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"{name} has {len(array)} rows: expected {n_rows}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} holds NaN or infinite entries: expected finite numbers")
    check_size(name, array)
    return array


def _read_numbers(values: ArrayLike, name: str, length: int | None) -> Array:
    array = read_numbers(name, values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: expected one dimension and at least one entry")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} entries: expected {length}")
    if np.any(np.isnan(array)):
        raise ValueError(f"{name} holds NaN: expected numbers")
    return array
