"""What a fit keeps to compare new rows with: widths of learning rows, one typical row, and which rows landmarks are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sosbands._types import AnyArray, Array, IntArray
from sosbands.bands import SoSFunction

MOST_ROWS = 1000  # whose median stands for that of all learning rows: its error is then some 2 % of their spread


@dataclass(frozen=True, eq=False)
class TypicalRows:
    """Bands at learning rows, before any calibration, and names for the landmarks.

    Attributes
    ----------
    unit, lower, upper : ndarray of shape (n,)
        Base scale and band functions at learning rows, at most 1000 of them, drawn at random.
    point : ndarray of shape (d,)
        Noise features of the typical row: of all learning rows the one nearest to the medians of noise features and
        band, in standard deviations.
    row : int
        Its position in what was given to `fit`.
    landmark_rows : pair of ndarray of int
        Positions in what was given to `fit` of the landmarks below and above.
    """

    unit: Array
    lower: Array
    upper: Array
    point: Array
    row: int
    landmark_rows: tuple[IntArray, IntArray]

    @classmethod
    def of(
        cls,
        points: Array,
        unit: Array,
        values: tuple[Array, Array],
        rows: IntArray,
        functions: tuple[SoSFunction, SoSFunction],
    ) -> TypicalRows:
        """From what the kernel sees of learning rows, base scale, both bands there, and positions in `fit`."""
        middle = _most_typical(np.column_stack([points, values[0] + values[1]]))
        some = np.arange(len(rows))
        if len(rows) > MOST_ROWS:
            some = np.sort(np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False))
        below, above = (rows[positions_of(each.features.landmarks, points)] for each in functions)
        lower, upper = values[0][some], values[1][some]
        return cls(unit[some], lower, upper, points[middle].copy(), int(rows[middle]), (below, above))


def positions_of(landmarks: AnyArray, points: AnyArray) -> IntArray:
    """Where each landmark stands among the points that it was taken from; of equal points the first."""
    known: dict[bytes, int] = {}
    for position, point in enumerate(points):
        known.setdefault(point.tobytes(), position)
    return np.array([known[point.tobytes()] for point in landmarks], dtype=np.intp)


def _most_typical(table: Array) -> int:
    spread = table.std(axis=0)
    distances = (table - np.median(table, axis=0)) / np.where(spread > 0, spread, 1.0)
    return int(np.argmin(np.square(distances).sum(axis=1)))
