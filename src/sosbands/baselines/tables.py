"""Tables with columns of any kind: whether all are finite numbers, and numbers by which rows are known again."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from sosbands._types import AnyArray, Array

GAP = 0.7071  # stands for missing and infinite entries


def finite_numbers(X: Any) -> Array | None:
    """A table as an array if all of its entries are finite numbers, otherwise None."""
    values = np.asarray(X)
    usable = values.ndim == 2 and values.dtype.kind in "biuf" and np.isfinite(values).all()
    return values.astype(float) if usable else None


def table_of_numbers(X: Any) -> Array:
    """Finite numbers, equal where the entries of the table are equal; the same in every process, never to learn from.

    Columns of numbers stay as they are. Of any other column each entry becomes a checksum of its text.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
    """
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else list(np.asarray(X).T)
    numbers = np.column_stack([_column_of_numbers(column) for column in columns]).astype(float)
    return np.where(np.isfinite(numbers), numbers, GAP)


def _column_of_numbers(column: AnyArray) -> Array:
    if column.dtype.kind in "biuf":
        return column.astype(float)
    try:
        return column.astype(float) if column.dtype.kind == "O" else _checksums(column)
    except (TypeError, ValueError):
        return _checksums(column)


def _checksums(column: AnyArray) -> Array:
    distinct, place = np.unique(column.astype(str), return_inverse=True)
    return np.array([crc32(word.encode()) for word in distinct], dtype=float)[place]
