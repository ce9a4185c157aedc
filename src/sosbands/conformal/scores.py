"""Conformal scores by name: what calibration makes of a prediction and of two functions that reach below and above it.

A score is the band that it makes: the ends before calibration and the unit of each. `lower_scores`, `upper_scores` and
their inverse `interval` follow from the band, so that no formula of a score is written anywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from sosbands._types import Array
from sosbands.conformal.band import Band, Knots, sides_of

SHIFTED = "shifted"
LEAST_UNIT = 0.05  # of the mean of a function over the learning rows: a tiny value must not make a huge score


class Score:
    """What a score offers.

    Attributes
    ----------
    name : str
        In `SCORES`.
    outwards, inwards : str
        What a quantile of at least 0 does, and a negative one: words with the places ``{q}``, its size, and ``{ends}``.
    """

    name: str
    outwards: str
    inwards: str

    def fitted(self, mean_below: float, mean_above: float) -> Score:  # noqa: ARG002
        """The score for functions with these means over the learning rows, all that it may know of any rows."""
        return self

    def band(
        self, center: Array, below: Array, above: Array, support: Array | None = None, unit: Array | float = 1.0
    ) -> Band:
        """The band around `center` of functions that are `below` and `above` there, each of shape (n,).

        `unit` is the base scale in which the functions are told, in units of the target.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class AddedScore(Score):
    """Distance outside ``[m - s f_lo, m + s f_up]``: calibration adds one number to both functions, everywhere.

    ``max((m - y)/s - f_lo, (y - m)/s - f_up)``, and so the interval ``[m - s (f_lo + q), m + s (f_up + q)]``; without
    a base scale s is 1.
    """

    name: str = "added"
    outwards: str = "{q} added to {ends}"
    inwards: str = "{q} taken off {ends}"

    def band(
        self, center: Array, below: Array, above: Array, support: Array | None = None, unit: Array | float = 1.0
    ) -> Band:
        """Ends at the reach of both functions, the base scale as unit."""
        s_lo, s_up = sides_of(unit)
        return Band(center - np.multiply(s_lo, below), center + np.multiply(s_up, above), s_lo, s_up, support)


@dataclass(frozen=True)
class ShiftedScore(AddedScore):
    """The same without a unit: calibration moves both ends by one number, ``[m - s f_lo - q, m + s f_up + q]``.

    Of bands of constant width in a scale that a quantile model tells it is conformalised quantile regression.
    """

    name: str = SHIFTED

    def band(
        self, center: Array, below: Array, above: Array, support: Array | None = None, unit: Array | float = 1.0
    ) -> Band:
        """Ends at the reach of both functions, the target's own unit."""
        return replace(super().band(center, below, above, support, unit), lower_unit=1.0, upper_unit=1.0)


@dataclass(frozen=True)
class ScaledScore(Score):
    """Distance from the prediction in multiples of the functions: calibration multiplies the reach, everywhere.

    ``max(m - y, 0)/f_lo`` below and ``max(y - m, 0)/f_up`` above, the larger of which is
    ``max((m - y)/f_lo, (y - m)/f_up)``, and so the interval ``[m - q f_lo, m + q f_up]``; with a base scale s that of
    ``s f``. In place of f stands ``max(f, floor)``; `fitted` sets the floors.

    Attributes
    ----------
    floors : pair of float
        Least units below and above: 5 % of the mean of each function over the learning rows. A function that is zero
        there has that of the other one. If both are, there is no shape to multiply: the units are 1, every interval
        is ``[m - q, m + q]``, and the words are those of a number that is added.

    Notes
    -----
    Why the ends never cross, whatever the calibration: a quantile is one of the scores, or infinite, and no score is
    negative, so that ``m - q_lo f_lo <= m <= m + q_up f_up``. Why the scores of one side may stop at 0: they are a
    function of the observation all the same, so that exchangeable rows have exchangeable scores; and for ``q >= 0`` the
    observations with ``max(m - y, 0)/f_lo <= q`` are exactly those with ``y >= m - q f_lo``, the end that is given.
    Without the 0 a side that fewer than its share of the rows reach would have a negative quantile, and its end could
    lie beyond the other one.
    """

    name: str = "scaled"
    outwards: str = "the reach of {ends} multiplied by {q}"
    inwards: str = "the reach of {ends} multiplied by -{q}"
    floors: tuple[float, float] = (0.0, 0.0)

    def fitted(self, mean_below: float, mean_above: float) -> ScaledScore:
        """The score with the floors of these means."""
        below, above = LEAST_UNIT * mean_below, LEAST_UNIT * mean_above
        if not below and not above:
            return replace(self, floors=(1.0, 1.0), outwards=AddedScore.outwards, inwards=AddedScore.inwards)
        return replace(self, floors=(below or above, above or below))

    def band(
        self, center: Array, below: Array, above: Array, support: Array | None = None, unit: Array | float = 1.0
    ) -> Band:
        """Both ends at the prediction, the functions as units."""
        s_lo, s_up = sides_of(unit)
        lower_unit, upper_unit = s_lo * np.maximum(below, self.floors[0]), s_up * np.maximum(above, self.floors[1])
        return Band(center, center, lower_unit, upper_unit, support, least_score=0.0)


@dataclass(frozen=True)
class NestedScore(Score):
    """Which of the nested bands just holds an observation: calibration finds a place on a scale that all levels share.

    On the scale a band of coverage c lies at the normal quantile of ``(1 + c)/2``: for normal noise, whose bands are
    multiples of the standard deviation, the score is the number of standard deviations. Between the bands and beyond
    them see `sosbands.conformal.Knots`. `below` and `above` of `band` are of shape (n, k), one column per coverage.

    Attributes
    ----------
    coverages : tuple of k floats
        In (0, 1), increasing.
    floors : pair of tuples of k floats
        Least steps from band to band below and above: 5 % of the mean step over the learning rows. A side without steps
        has those of the other one; if neither has any, the scale is that of the target.
    """

    coverages: tuple[float, ...]
    floors: tuple[tuple[float, ...], tuple[float, ...]]
    name: str = "nested"
    outwards: str = "{ends} at {q} on the scale of the nested bands"
    inwards: str = "{ends} at -{q} on the scale of the nested bands"

    @classmethod
    def of_steps(cls, coverages: tuple[float, ...], mean_steps: Array) -> NestedScore:
        """The score for steps with these means over the learning rows, shape (2, k), below and above."""
        below, above = (LEAST_UNIT * np.asarray(side, dtype=np.float64) for side in mean_steps)
        if not below.any() and not above.any():
            below = above = np.diff(normal_places(coverages), prepend=0.0)
        sides = (below if below.any() else above, above if above.any() else below)
        return cls(coverages, (tuple(sides[0].tolist()), tuple(sides[1].tolist())))

    def band(
        self, center: Array, below: Array, above: Array, support: Array | None = None, unit: Array | float = 1.0
    ) -> Band:
        """Both ends at the prediction, the nested bands as knots."""
        values = normal_places(self.coverages)
        scales = (np.broadcast_to(np.asarray(s, dtype=np.float64), center.shape)[:, None] for s in sides_of(unit))
        lower, upper = (
            scale * np.cumsum(np.maximum(np.diff(each, axis=1, prepend=0.0), floor), axis=1)
            for each, floor, scale in zip((below, above), self.floors, scales, strict=True)
        )
        units = lower[:, -1] / values[-1], upper[:, -1] / values[-1]
        return Band(center, center, *units, support, least_score=0.0, knots=Knots(values, lower, upper))


def normal_places(coverages: Sequence[float]) -> Array:
    """How many standard deviations central intervals of normal noise reach."""
    return np.asarray(ndtri((1 + np.asarray(coverages, dtype=np.float64)) / 2))


SCORES: dict[str, Score] = {"added": AddedScore(), "scaled": ScaledScore()}
ALL_SCORES = SCORES | {SHIFTED: ShiftedScore()}  # the last one for models with ends of their own: else it is "added"


def offered(name: str) -> dict[str, Score]:
    """The scores to compare with this one."""
    return SCORES if name in SCORES else ALL_SCORES


def move_in_words(score: Score, q: float, ends: str) -> str:
    """What the quantile `q` does to `ends`."""
    return (score.outwards if q >= 0 else score.inwards).format(q=f"{abs(q):.4g}", ends=ends)
