"""A band in units of its own: how far an observation lies outside it, and the interval that a distance makes.

Nested bands have knots instead of a unit. A family of nested intervals has the score "the least index whose interval
holds y" (nested conformal prediction); here it runs in straight lines from the centre through the bands that were
learnt and on beyond the last one, so that one calibration serves all levels, and intervals are nested in the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._threads import cached_property
from sosbands._types import Array, BoolArray, IntArray
from sosbands.conformal.target import TargetScale

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 3 * np.finfo(np.float64).eps  # relative; above what a difference, a quotient and two products lose


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
        lower, upper = (np.vstack([getattr(each, side) for each in parts]) for side in ("lower", "upper"))
        return cls(parts[0].values, lower, upper)

    @cached_property
    def _pieces(self) -> tuple[Array, Array, Array]:
        """Where each piece begins: its score, and its reach on each side."""
        zero = np.zeros((len(self.lower), 1))
        return np.append(0.0, self.values), np.hstack([zero, self.lower]), np.hstack([zero, self.upper])

    def scores(self, distance: Array, side: int) -> Array:
        """Index of the band that just reaches `distance` below (side 0) or above (1) the centre; 0 on the other side.

        Straight between the knots, and beyond the last one in proportion to it: infinite where that is 0.
        """
        starts, reaches, d = self._pieces[0], self._pieces[1 + side], np.maximum(distance, 0.0)
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
        starts, reaches = self._pieces[0], self._pieces[1 + side]
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


@dataclass(frozen=True, eq=False)
class Band:
    """Both ends before calibration, and the unit in which calibration moves each.

    Parameters
    ----------
    lower, upper : arrays of shape (n,)
        Ends of the uncalibrated intervals; a lower end may lie above its upper end.
    lower_unit, upper_unit : arrays of shape (n,) or floats
        Units of the scores, at least 0: 1 to add the same quantile everywhere, a standard deviation for normalised
        scores. The upper unit is by default that of the lower end.
    support : array of shape (n,), optional
        How much the learning data say about each row, where the model knows.
    least_score : float
        Scores of either side are at least this large. With 0 no quantile moves an end inwards, so that a band whose
        ends do not cross has no interval whose ends do.
    knots : Knots, optional
        Nested bands around `lower`, which is then `upper` too: scores grow from knot to knot instead of in one unit,
        and `least_score` is 0. The units are those beyond the last knot.
    target : TargetScale, optional
        All of this is on its scale, observations and the ends of intervals are not.
    """

    lower: Array
    upper: Array
    lower_unit: Array | float = 1.0
    upper_unit: Array | float | None = None
    support: Array | None = None
    least_score: float = -np.inf
    knots: Knots | None = None
    target: TargetScale | None = None

    def __post_init__(self) -> None:
        if self.upper_unit is None:
            object.__setattr__(self, "upper_unit", self.lower_unit)
        for name in ("lower", "upper", "lower_unit", "upper_unit"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        lower, upper, units = self.lower, self.upper, self.units
        if lower.ndim != 1 or lower.shape != upper.shape or not {units[0].shape, units[1].shape} <= {(), lower.shape}:
            raise ValueError(
                f"band with ends of shapes {lower.shape} and {upper.shape}, units {units[0].shape} and "
                f"{units[1].shape}: expected two vectors of one length, and units of that length or numbers"
            )
        for name in ("lower", "upper", "lower_unit", "upper_unit"):
            values = getattr(self, name)
            if not np.isfinite(values).all():
                raise ValueError(f"band.{name} has {np.sum(~np.isfinite(values))} entries that are not finite")
            if name.endswith("unit") and (values < 0).any():
                raise ValueError(f"band.{name} has the entry {values.min()}: expected numbers >= 0")
        if self.knots is not None and not (len(self.knots) == len(lower) and np.array_equal(lower, upper)):
            raise ValueError(f"band with {len(self.knots)} rows of knots: expected {len(lower)}, around one centre")

    def __len__(self) -> int:
        return len(self.lower)

    def take(self, rows: IntArray) -> Band:
        """Some of the rows."""
        below, above = (unit if unit.ndim == 0 else unit[rows] for unit in self.units)
        support = None if self.support is None else self.support[rows]
        knots = None if self.knots is None else self.knots.take(rows)
        return Band(self.lower[rows], self.upper[rows], below, above, support, self.least_score, knots, self.target)

    def seen(self, y: Array) -> Array:
        """Observations on the scale of the band."""
        return y if self.target is None else self.target.forward(y)

    def given(self, values: Array, side: int = 0) -> Array:
        """Values on the scale of the band in units of the target; as lower (-1) or upper (1) ends outwards."""
        return values if self.target is None else self.target.backward(values, side)

    @property
    def units(self) -> tuple[Array, Array]:
        """Unit of the lower and of the upper end, as arrays of shape (n,) or ()."""
        return np.asarray(self.lower_unit), np.asarray(self.upper_unit)


@dataclass(frozen=True, eq=False)
class Told:
    """What a model says of n rows before calibration.

    Attributes
    ----------
    band : Band
    prediction : array of shape (n,) or None
        None of a model that predicts intervals alone.
    rows : any
        The rows as the model read them, for those who ask it again about them; None where it keeps none.
    """

    band: Band
    prediction: Array | None = None
    rows: Any = None

    def __len__(self) -> int:
        return len(self.band)

    def take(self, rows: IntArray) -> Told:
        """Some of the rows, as they were not read."""
        return Told(self.band.take(rows), None if self.prediction is None else self.prediction[rows])

    @classmethod
    def joined(cls, parts: Sequence[Told], rows: Any = None) -> Told:
        """That of consecutive blocks of rows."""
        if len(parts) == 1:
            return cls(parts[0].band, parts[0].prediction, rows)
        bands, predictions = [part.band for part in parts], [part.prediction for part in parts]
        below, above = (np.concatenate([np.broadcast_to(b.units[k], len(b)) for b in bands]) for k in (0, 1))
        knots = [band.knots for band in bands if band.knots is not None]
        band = Band(
            np.concatenate([band.lower for band in bands]),
            np.concatenate([band.upper for band in bands]),
            below,
            above,
            _joined([band.support for band in bands]),
            bands[0].least_score,
            Knots.joined(knots) if knots else None,
            bands[0].target,
        )
        return cls(band, _joined(predictions), rows)


def _joined(parts: Sequence[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def sides_of(unit: Array | float) -> tuple[Any, Any]:
    """Base scale below and above the prediction: the same, unless there are two columns."""
    return (unit[:, 0], unit[:, 1]) if isinstance(unit, np.ndarray) and unit.ndim == 2 else (unit, unit)


def in_units(r: Array, unit: Array) -> Array:
    """Residuals in base scales, of their own side."""
    below, above = sides_of(unit)
    return np.asarray(r / (unit if below is above else np.where(r < 0, below, above)))


def lower_scores(band: Band, y: Array) -> Array:
    """Distance of each observation below the lower end, ``(lower - y)/lower_unit``; negative inside.

    Where the unit is 0: infinite below the end, 0 at it, minus infinity above it. Never below the band's `least_score`.
    """
    distance = band.lower - band.seen(y)
    if band.knots is not None:
        return band.knots.scores(distance, 0)
    return np.maximum(_in_units(distance, band.units[0]), band.least_score)


def upper_scores(band: Band, y: Array) -> Array:
    """Distance of each observation above the upper end, ``(y - upper)/upper_unit``; as `lower_scores`."""
    distance = band.seen(y) - band.upper
    if band.knots is not None:
        return band.knots.scores(distance, 1)
    return np.maximum(_in_units(distance, band.units[1]), band.least_score)


def symmetric_scores(band: Band, y: Array) -> Array:
    """Distance outside the band on the worse side, the larger of `lower_scores` and `upper_scores`."""
    return np.maximum(lower_scores(band, y), upper_scores(band, y))


def interval(band: Band, q_lo: Array | float, q_up: Array | float) -> tuple[Array, BoolArray]:
    """All observations whose lower score is at most `q_lo` and upper score at most `q_up`.

    ``[lower - q_lo lower_unit, upper + q_up upper_unit]``. Negative quantiles may make the ends cross: the set is empty
    then, and its midpoint is returned twice (one point contains the empty set, so that coverage is kept).

    Parameters
    ----------
    band : Band
    q_lo, q_up : floats or arrays of shape (n,)
        Quantiles of the lower and of the upper scores, at least the band's `least_score` and possibly infinite.

    Returns
    -------
    ends, crossed : array of shape (n, 2), bool array of shape (n,)
        The latter for the rows whose interval is empty.

    Notes
    -----
    Where a unit is 0 a finite quantile moves nothing and an infinite one makes the end infinite. For a negative
    quantile the scores then describe the open interval; its closure is returned. With ``q_lo == q_up`` the intervals
    are nested in the quantile, with equal units the empty ones included.

    ``lower - (lower - y)`` need not be y in floating point, so an observation whose score equals the quantile, as ties
    do, could be lost. Each end is therefore moved outwards by ``3 eps |q unit|``, more than the score and its inverse
    lose by rounding: every observation with scores up to the quantiles is inside, and no other farther out than that
    and one rounding of the end.
    """
    if band.knots is not None:  # which reach from one centre, so that nothing crosses
        lower, upper = band.lower - band.knots.reach(q_lo, 0), band.upper + band.knots.reach(q_up, 1)
        return np.stack([band.given(lower, -1), band.given(upper, 1)], axis=1), np.zeros(len(band), dtype=bool)
    lower_unit, upper_unit = band.units
    with np.errstate(over="ignore"):
        lower, upper = band.lower - reach(q_lo, lower_unit), band.upper + reach(q_up, upper_unit)
    crossed = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    middle, centred = _middle(band, q_lo, q_up)
    # rounding must not push an end of a barely open interval past its midpoint
    lower = np.where(centred, np.minimum(lower, middle), lower)
    upper = np.where(centred, np.maximum(upper, middle), upper)
    lower, upper = (np.where(crossed, middle, end) for end in (lower, upper))
    return np.stack([band.given(lower, -1), band.given(upper, 1)], axis=1), crossed


def side_reach(band: Band, q: Array | float, side: int, *, outwards: bool) -> Array:
    """How far a score of at least 0 reaches from the lower (0) or upper (1) end, rounded outwards or inwards."""
    if band.knots is not None:
        return band.knots.reach(q, side, outwards=outwards)
    return _stretch(q, band.units[side]) * (1 + ROUNDING if outwards else 1 - ROUNDING)


def reach(q: Array | float, unit: Array) -> Array:
    """How far a quantile moves an end outwards: ``q unit`` and a little more, increasing in q, to the last digit."""
    distance = _stretch(q, unit)
    return distance * np.where(distance > 0, 1 + ROUNDING, 1 - ROUNDING)


def _middle(band: Band, q_lo: Array | float, q_up: Array | float) -> tuple[Array, BoolArray]:
    """Midpoints of the moved ends, and where they are finite; elsewhere those of the band."""
    middle = band.lower / 2 + band.upper / 2
    lower_unit, upper_unit = band.units
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(np.equal(q_lo, q_up), 0.0, np.subtract(q_up, q_lo))  # also for two infinities
        apart = _stretch(q_up, upper_unit) / 2 - _stretch(q_lo, lower_unit) / 2
    # equal units: one product of the difference, so that equal quantiles leave the midpoint where it is
    shift = np.where(lower_unit == upper_unit, _stretch(difference / 2, lower_unit), apart)
    finite = np.broadcast_to(np.isfinite(difference) & np.isfinite(shift), middle.shape)
    return middle + np.where(finite, shift, 0.0), finite


def _stretch(q: Array | float, unit: Array) -> Array:
    """``q unit``, where 0 times a finite or a negative number is 0, and 0 times infinity infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.multiply(q, unit)
    return np.where(unit == 0, np.where(np.equal(q, np.inf), np.inf, 0.0), product)


def _in_units(distance: Array, unit: Array) -> Array:
    """``distance / unit``, where the unit is 0 the limit: 0 or an infinity with the sign of the distance."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(distance == 0, 0.0, distance / unit)
