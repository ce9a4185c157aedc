"""The conformal predictive distribution: places of calibration rows in their bands, carried over to the band of a row.

The place of an observation is increasing in it: below the band by its distance in the unit of the lower end, inside by
its share of the band, above by its distance in the unit of the upper end. Calibration rows and a new row are
exchangeable, and so are their places; ranks among them are quantiles and probabilities that hold for any distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.conformal.band import ROUNDING, Band, lower_scores, side_reach, upper_scores
from sosbands.conformal.quantile import conformal_quantile, weighted_conformal_quantile

HALF = 0.5


def inner_places(band: Band, y: Array) -> Array:
    """Share of the band below each observation, in [0, 1]; minus infinity below the band, infinity above it.

    Where the ends cross, their midpoint is the whole band.
    """
    (low, high), y = core(band), band.seen(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(np.where(high > low, (y - low) / (high - low), HALF), 0.0, 1.0)
    return np.where(y < low, -np.inf, np.where(y > high, np.inf, share))


def core(band: Band) -> tuple[Array, Array]:
    """Ends of the band, both at their midpoint where they cross."""
    middle = band.lower / 2 + band.upper / 2
    crossed = band.lower > band.upper
    return np.where(crossed, middle, band.lower), np.where(crossed, middle, band.upper)


@dataclass(frozen=True, eq=False)
class Places:
    """Places of m calibration rows, in increasing order.

    Attributes
    ----------
    inner : array of shape (m,)
        As `inner_places` gives them.
    distance : array of shape (m,)
        Outside of the band: minus the lower score below it, the upper score above it; 0 inside.
    weights : array of shape (m,) or None
        Likelihood ratios.
    """

    inner: Array
    distance: Array
    weights: Array | None = None

    @classmethod
    def of(cls, inner: Array, lower: Array, upper: Array, weights: Array | None = None) -> Places:
        """From inner places and the scores of both sides, in any order."""
        distance = np.where(inner == -np.inf, -lower, np.where(inner == np.inf, upper, 0.0))
        order = np.lexsort((distance, inner))
        if weights is not None:
            order = order[weights[order] > 0]
        return cls(inner[order], distance[order], None if weights is None else weights[order])

    def quantiles(self, band: Band, q: float, test_weights: Array | None = None) -> Array:
        """The q-quantile at each row of the band.

        Up to 1/2 the end of the one-sided interval above it with miscoverage q: the place of rank
        ``floor(q (m + 1))``, minus infinity if that is 0. Above 1/2 the end of the interval below it with coverage q:
        the place of rank ``ceil(q (m + 1))``, infinite if that exceeds m.
        """
        position = np.broadcast_to(self._position(q, test_weights), (len(band),))
        finite = np.isfinite(position)
        at = np.where(finite, position, 0).astype(np.intp)
        return band.given(np.where(finite, self._carried(band, at, upwards=q > HALF), position), 1 if q > HALF else -1)

    def probabilities(self, band: Band, y: Array, test_weights: Array | None = None) -> Array:
        """Of a new observation up to y, at each row: ``(#{below y} + (#{at y} + 1)/2) / (m + 1)``.

        The new row counts as one more place that y itself takes, half below and half above; with likelihood ratios
        rows count by these.
        """
        before, upto = self._ranks(band, y)
        if self.weights is None or test_weights is None:
            return (before + upto + 1) / (2 * (len(self.inner) + 1))
        unit = self.weights.max()
        mass = np.concatenate([[0.0], np.cumsum(self.weights / unit)])
        own = test_weights / unit
        return np.asarray((mass[before] + mass[upto] + own) / (2 * (mass[-1] + own)))

    def ensemble(self, band: Band, size: int) -> Array:
        """Values that are equally likely by the calibration rows alone, shape (n, size), increasing along a row."""
        levels = (np.arange(size) + HALF) / size
        mass = np.arange(1.0, len(self.inner) + 1) if self.weights is None else np.cumsum(self.weights)
        at = np.searchsorted(mass, levels * mass[-1])
        columns = [
            self._carried(band, np.full(len(band), k), upwards=u > HALF) for k, u in zip(at, levels, strict=True)
        ]
        return np.stack([band.given(each) for each in columns], axis=1)

    def _position(self, q: float, test_weights: Array | None) -> Array:
        """Among the places, from 0 on; infinite where none of them is the quantile."""
        last = len(self.inner) - 1
        if q <= HALF:
            return last - self._rank_of(1 - q, test_weights, from_above=True)
        # rounding of weights must not bring a quantile above 1/2 below that of 1/2
        return np.maximum(self._rank_of(q, test_weights), last - self._rank_of(HALF, test_weights, from_above=True))

    def _rank_of(self, level: float, test_weights: Array | None, *, from_above: bool = False) -> Array:
        """The conformal quantile of the positions themselves, counted from the lowest or from the highest place."""
        positions = np.arange(len(self.inner), dtype=np.float64)
        if self.weights is None or test_weights is None:
            return np.array([conformal_quantile(positions, level)])
        weights = self.weights[::-1] if from_above else self.weights
        return weighted_conformal_quantile(positions, weights, test_weights, level)

    def _carried(self, band: Band, at: IntArray, *, upwards: bool) -> Array:
        """The observation whose place is that of a calibration row, at each row of the band; rounded up or down.

        Increasing in the place, to the last digit: each part is, and they are cut where the next one begins.
        """
        inner, distance = self.inner[at], self.distance[at]
        low, high = core(band)
        nudge = 1 + 2 * ROUNDING if upwards else 1 - 2 * ROUNDING
        share = np.where(np.isfinite(inner), inner, HALF)
        inside = np.clip(low + share * nudge * (high - low), low, high)
        with np.errstate(over="ignore"):
            below = band.lower - side_reach(band, np.maximum(-distance, 0.0), 0, outwards=not upwards)
            above = band.upper + side_reach(band, np.maximum(distance, 0.0), 1, outwards=upwards)
        outside = np.where(inner < 0, np.minimum(below, low), np.maximum(above, high))
        return np.where(np.isfinite(inner), inside, outside)

    def _ranks(self, band: Band, y: Array) -> tuple[IntArray, IntArray]:
        """How many places are below that of each observation, and how many are not above it."""
        inner = inner_places(band, y)
        distance = np.where(inner < 0, -lower_scores(band, y), np.where(inner > 1, upper_scores(band, y), inner))
        before, upto = np.empty(len(y), dtype=np.intp), np.empty(len(y), dtype=np.intp)
        first = 0
        for known, rows in zip(_regions(self.inner), _regions(inner), strict=True):
            values = (self.distance if np.isinf(self.inner[known]).any() else self.inner)[known]
            before[rows] = first + np.searchsorted(values, distance[rows], side="left")
            upto[rows] = first + np.searchsorted(values, distance[rows], side="right")
            first += len(values)
        return before, upto


def _regions(inner: Array) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Rows below, inside and above their band."""
    return inner == -np.inf, np.isfinite(inner), inner == np.inf
