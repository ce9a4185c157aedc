"""Conformal scores by name: what calibration makes of a prediction and of two functions that reach below and above it.

A score is the band that it makes: the ends before calibration and the unit of each. `lower_scores`, `upper_scores` and
their inverse `interval` follow from the band, so that no formula of a score is written anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sosbands._types import Array
from sosbands.conformal.band import Band


class Score(Protocol):
    """What a score offers."""

    @property
    def name(self) -> str:
        """In `SCORES`."""
        ...

    @property
    def outwards(self) -> str:
        """What a quantile of at least 0 does: words with the places ``{q}``, its size, and ``{ends}``."""
        ...

    @property
    def inwards(self) -> str:
        """The same for a negative quantile."""
        ...

    def band(self, center: Array, below: Array, above: Array, support: Array | None = None) -> Band:
        """The band around `center` of functions that are `below` and `above` there, each of shape (n,)."""
        ...


@dataclass(frozen=True)
class AddedScore:
    """Distance outside ``[m - f_lo, m + f_up]``: calibration adds one number to the reach, everywhere.

    ``max(m - f_lo - y, y - m - f_up)``, and so the interval ``[m - f_lo - q, m + f_up + q]``.
    """

    name: str = "added"
    outwards: str = "{q} added to {ends}"
    inwards: str = "{q} taken off {ends}"

    def band(self, center: Array, below: Array, above: Array, support: Array | None = None) -> Band:
        """Ends at the reach of both functions, units 1."""
        return Band(np.subtract(center, below), np.add(center, above), support=support)


SCORES: dict[str, Score] = {"added": AddedScore()}
