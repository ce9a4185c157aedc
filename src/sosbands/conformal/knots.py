"""Scores of nested bands: which band of a family just holds an observation, and how far a band of it reaches.

Any family of nested intervals has the score "the least index whose interval holds y" (nested conformal prediction).
Here the family runs in straight lines from the centre through the bands that were learnt, one knot each, and on beyond
the last one; one calibration of the index serves all levels, and intervals are nested in the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sosbands._cached import cached_property
from sosbands._types import Array, IntArray

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Knots:
    """Nested bands at n rows.

    Attributes
    ----------
    values : array of shape (k,)
        Scores at the knots, above 0 and increasing.
    lower, upper : arrays of shape (n, k)
        How far each band reaches below and above the centre, at least 0, not decreasing along a row.
    """

    values: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        k = len(self.values)
        if self.lower.shape != self.upper.shape or self.lower.shape[1:] != (k,):
            raise ValueError(
                f"knots of shapes {self.lower.shape} and {self.upper.shape}: expected (n, {k}), one per value and row"
            )
        for name, reaches in (("lower", self.lower), ("upper", self.upper)):
            if not np.isfinite(reaches).all() or (np.diff(reaches, axis=1, prepend=0.0) < 0).any():
                raise ValueError(f"knots.{name}: expected finite numbers >= 0 that do not decrease along a row")
        if not k or (np.diff(self.values, prepend=0.0) <= 0).any():
            raise ValueError(f"knots.values={self.values!r}: expected increasing numbers > 0")

    def __len__(self) -> int:
        return len(self.lower)

    def take(self, rows: IntArray) -> Knots:
        """Some of the rows."""
        return Knots(self.values, self.lower[rows], self.upper[rows])

    @classmethod
    def joined(cls, parts: Sequence[Knots]) -> Knots:
        """Those of consecutive blocks of rows."""
        return cls(
            parts[0].values, np.vstack([each.lower for each in parts]), np.vstack([each.upper for each in parts])
        )

    @cached_property
    def _starts(self) -> Array:
        """Scores where each piece begins."""
        return np.concatenate([[0.0], self.values])

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Reaches where each piece begins, of each side."""
        zero = np.zeros((len(self.lower), 1))
        return np.hstack([zero, self.lower]), np.hstack([zero, self.upper])

    def scores(self, distance: Array, side: int) -> Array:
        """Index of the band that just reaches `distance` below (side 0) or above (1) the centre; 0 on the other side.

        Straight between the knots, and beyond the last one in proportion to it: infinite where that is 0.
        """
        reaches, starts, d = self._ends[side], self._starts, np.maximum(distance, 0.0)
        rows, last = np.arange(len(d)), len(self.values)
        j = np.count_nonzero(reaches[:, 1:] < d[:, None], axis=1)
        nxt = np.minimum(j + 1, last)
        begin = reaches[rows, j]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            part = (d - begin) / (reaches[rows, nxt] - begin)
            between = np.minimum(starts[j] + (starts[nxt] - starts[j]) * part, starts[nxt])
            beyond = np.maximum(d / reaches[:, -1] * starts[-1], starts[-1])
        return np.where(d == 0, 0.0, np.where(j == last, beyond, between))

    def reach(self, q: Array | float, side: int, *, outwards: bool = True) -> Array:
        """How far from the centre the band with index `q` >= 0 reaches, of shape (n,): the inverse of `scores`.

        Notes
        -----
        The score of a distance and the reach of a score lose a few digits, relative to the size of a piece and to the
        reach; both are given back outwards (or inwards), so that an observation whose score equals q stays inside. The
        result does not decrease in q, to the last digit.
        """
        reaches, starts = self._ends[side], self._starts
        rows, last, sign = np.arange(len(reaches)), len(self.values), 1.0 if outwards else -1.0
        q = np.broadcast_to(np.asarray(q, dtype=np.float64), (len(reaches),))
        j = np.searchsorted(self.values, q, side="left")
        nxt = np.minimum(j + 1, last)
        begin, end = reaches[rows, j], reaches[rows, nxt]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rise = starts[nxt] - starts[j]
            part = (q - starts[j]) / rise + sign * 8 * EPS * (1 + starts[nxt] / rise)
            between = np.clip(begin + part * (end - begin), begin, end)
            beyond = np.maximum(q / starts[-1] * reaches[:, -1] * (1 + sign * 4 * EPS), reaches[:, -1])
        beyond = np.where(np.isposinf(q), np.inf, np.where(reaches[:, -1] == 0, 0.0, beyond))
        found = np.where(j == last, beyond, between) * (1 + sign * 4 * EPS)
        return np.where(q <= 0, 0.0, found)
