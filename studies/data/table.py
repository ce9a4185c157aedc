"""A table of numbers as it comes from a source, and a hash of its values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from sosbands._types import Array, BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Table:
    """Features and one target, row by row.

    Attributes
    ----------
    X, y : arrays of shape (n, n_features) and (n,)
        Values; a missing one is NaN.
    features, target : tuple of str, str
        Column names.
    rank : array of shape (n,)
        Place of each row among all rows of the source sorted by value: it names an observation whatever the order of
        the rows in the source, and whatever is done to the table afterwards.
    """

    X: Array
    y: Array
    features: tuple[str, ...]
    target: str
    rank: IntArray

    @classmethod
    def of(cls, values: Array, features: tuple[str, ...], target: str) -> Table:
        """Table of the columns `features`, then `target`, shape (n, n_features + 1)."""
        order = np.lexsort(values.T[::-1])  # the last key of lexsort is the first criterion
        return cls(values[:, :-1], values[:, -1], features, target, np.argsort(order))

    def keep_rows(self, mask: BoolArray) -> Table:
        """The rows where the mask is true."""
        return replace(self, X=self.X[mask], y=self.y[mask], rank=self.rank[mask])

    def keep_features(self, names: tuple[str, ...]) -> Table:
        """The named features, in this order."""
        return replace(self, X=self.X[:, [self.features.index(name) for name in names]], features=names)


def content_hash(values: Array) -> str:
    """SHA-256 of the values, independent of file format, number format and row order.

    Each value is written with 15 significant digits (``format(value, ".15g")``, a missing one as ``nan``, minus zero
    as ``0``), the values of a row are joined by commas, the rows are sorted as text and joined by line feeds. The order
    of the columns counts.
    """
    rows = (",".join(format(value + 0.0, ".15g") for value in row) for row in values.tolist())
    return hashlib.sha256("\n".join(sorted(rows)).encode("ascii")).hexdigest()
