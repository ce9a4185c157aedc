"""How far an observation lies outside a band, and the band that a given distance makes: a score and its inverse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sosbands._types import Array, BoolArray

ROUNDING = 3 * np.finfo(np.float64).eps  # relative; above what a difference, a quotient and two products lose


@dataclass(frozen=True, eq=False)
class Band:
    """Both ends before calibration, and the unit in which calibration moves them.

    Parameters
    ----------
    lower, upper : arrays of shape (n,)
        Ends of the uncalibrated intervals; a lower end may lie above its upper end.
    scale : array of shape (n,) or float
        Unit of the scores, at least 0: 1 to add the same quantile everywhere, a standard deviation for normalised
        scores.
    support : array of shape (n,), optional
        How much the learning data say about each row, where the model knows.
    center : array of shape (n,), optional
        Point predictions, where the ends were made from them.
    """

    lower: Array
    upper: Array
    scale: Array | float = 1.0
    support: Array | None = None
    center: Array | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "scale"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        lower, upper, scale = self.lower, self.upper, np.asarray(self.scale)
        if lower.ndim != 1 or lower.shape != upper.shape or scale.shape not in ((), lower.shape):
            raise ValueError(
                f"band with ends of shapes {lower.shape} and {upper.shape}, scale {scale.shape}: "
                "expected two vectors of one length, and a scale of that length or a number"
            )
        for name, values in (("lower", lower), ("upper", upper), ("scale", scale)):
            if not np.isfinite(values).all():
                raise ValueError(f"band.{name} has {np.sum(~np.isfinite(values))} entries that are not finite")
        if (scale < 0).any():
            raise ValueError(f"band.scale has the entry {scale.min()}: expected numbers >= 0")

    def __len__(self) -> int:
        return len(self.lower)


def lower_scores(band: Band, y: Array) -> Array:
    """Distance of each observation below the lower end, ``(lower - y)/scale``; negative inside.

    Where the scale is 0: infinite below the end, 0 at it, minus infinity above it.
    """
    return _in_units(band.lower - y, band.scale)


def upper_scores(band: Band, y: Array) -> Array:
    """Distance of each observation above the upper end, ``(y - upper)/scale``; as `lower_scores`."""
    return _in_units(y - band.upper, band.scale)


def symmetric_scores(band: Band, y: Array) -> Array:
    """Distance outside the band on the worse side, ``max((lower - y)/scale, (y - upper)/scale)``."""
    return np.maximum(lower_scores(band, y), upper_scores(band, y))


def interval(band: Band, q_lo: Array | float, q_up: Array | float) -> tuple[Array, BoolArray]:
    """All observations whose lower score is at most `q_lo` and upper score at most `q_up`.

    ``[lower - q_lo scale, upper + q_up scale]``. Negative quantiles may make the ends cross: the set is empty then, and
    its midpoint is returned twice (one point contains the empty set, so that coverage is kept).

    Parameters
    ----------
    band : Band
        With n rows.
    q_lo, q_up : floats or arrays of shape (n,)
        Quantiles of the lower and of the upper scores, possibly infinite.

    Returns
    -------
    ends : array of shape (n, 2)
    crossed : bool array of shape (n,)
        The rows whose interval is empty.

    Notes
    -----
    Where the scale is 0 a finite quantile moves nothing and an infinite one makes the end infinite. For a negative
    quantile the scores then describe the open interval; its closure is returned. With ``q_lo == q_up`` the intervals
    are nested in the quantile, the empty ones included.

    ``lower - (lower - y)`` need not be y in floating point, so an observation whose score equals the quantile, as ties
    do, could be lost. Each end is therefore moved outwards by ``3 eps |q scale|``, more than the score and its inverse
    lose by rounding: every observation with scores up to the quantiles is inside, and no other farther out than that
    and one rounding of the end.
    """
    with np.errstate(over="ignore"):
        lower = band.lower - _outwards(_stretch(q_lo, band.scale))
        upper = band.upper + _outwards(_stretch(q_up, band.scale))
    crossed = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    middle, centred = _middle(band, q_lo, q_up)
    # rounding must not push an end of a barely open interval past its midpoint
    lower = np.where(centred, np.minimum(lower, middle), lower)
    upper = np.where(centred, np.maximum(upper, middle), upper)
    ends = np.stack([np.where(crossed, middle, lower), np.where(crossed, middle, upper)], axis=1)
    return ends, crossed


def _middle(band: Band, q_lo: Array | float, q_up: Array | float) -> tuple[Array, BoolArray]:
    """Midpoints of the moved ends, and where they are finite; elsewhere those of the band."""
    middle = band.lower / 2 + band.upper / 2
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(np.equal(q_lo, q_up), 0.0, np.subtract(q_up, q_lo))  # also for two infinities
    shift = _stretch(difference / 2, band.scale)
    finite = np.broadcast_to(np.isfinite(difference) & np.isfinite(shift), middle.shape)
    return middle + np.where(finite, shift, 0.0), finite


def _outwards(distance: Array) -> Array:
    """A little more than the distance; increasing in it, which keeps intervals nested to the last digit."""
    return distance * np.where(distance > 0, 1 + ROUNDING, 1 - ROUNDING)


def _stretch(q: Array | float, scale: Array | float) -> Array:
    """``q scale``, where 0 times a finite or a negative number is 0, and 0 times infinity infinity."""
    scale = np.asarray(scale)
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.multiply(q, scale)
    return np.where(scale == 0, np.where(np.equal(q, np.inf), np.inf, 0.0), product)


def _in_units(distance: Array, scale: Array | float) -> Array:
    """``distance / scale``, where the scale is 0 the limit: 0 or an infinity with the sign of the distance."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(distance == 0, 0.0, distance / scale)
