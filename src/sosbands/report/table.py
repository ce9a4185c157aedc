"""The rows given: read, split into rows to fit to and test rows, sampled for drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sosbands._types import Array, IntArray
from sosbands.metrics.checks import read_vector
from sosbands.plotting.rows import column_names, find_axis, shape_of

MIN_ROWS = 8
TEST_PART, MOST_TEST_ROWS = 0.25, 1000
MOST_FIT_ROWS = 800  # learning and calibration rows together; a path over penalties is quick up to 400 learning rows
MOST_DRAWN = 666  # points of each kind on the page


@dataclass(frozen=True, eq=False)
class Table:
    """The rows given, with the names of the features."""

    X: Any
    y: Array
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: IntArray) -> Any:
        """Some rows of X."""
        return _safe_indexing(self.X, rows)


def read_table(X: Any, y: Any, feature_names: Sequence[str] | None) -> Table:
    """Check shapes and names; what the entries must be is the estimator's business."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    n, d = shape_of(X)
    if n < MIN_ROWS:
        raise ValueError(f"X has {n} rows: expected at least {MIN_ROWS}, to learn, to calibrate and to test")
    target = read_vector(np.ravel(y) if np.shape(y) == (n, 1) else y, "y", n)
    names = column_names(X) if feature_names is None else feature_names
    if names is None:
        names = [find_axis(X, position).label for position in range(d)]
    if isinstance(names, str) or len(names) != d:
        raise ValueError(f"feature_names={names!r}: expected {d} names, one per column of X")
    return Table(X, target, tuple(str(name) for name in names))


def split_test(n: int, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
    """Rows to fit to, in their order, and test rows, in random order."""
    order = rng.permutation(n).astype(np.intp)
    count = min(MOST_TEST_ROWS, round(TEST_PART * n))
    return np.sort(order[count : count + MOST_FIT_ROWS]), order[:count]


def drawn_count(rows: IntArray) -> int:
    """How many of the rows are drawn."""
    return min(len(rows), MOST_DRAWN)


def drawn_rows(rows: IntArray, always: IntArray, rng: np.random.RandomState) -> IntArray:
    """The rows, or a random sample of them with those of `always` that are among them."""
    if len(rows) <= MOST_DRAWN:
        return rows
    kept = np.intersect1d(rows, always)
    others = rng.permutation(np.setdiff1d(rows, always))
    return np.sort(np.concatenate([kept, others[: max(0, MOST_DRAWN - len(kept))]]))
