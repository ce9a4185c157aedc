"""TargetScale: on which scale a target is learnt, and the range that it cannot leave. Bands carry it to their ends.

Scores and quantiles are those of the scale; an increasing function carries intervals back, and they hold the same
observations. What lies outside of the range is cut off, because no observation is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from sosbands._arguments import check, is_number
from sosbands._types import Array

LOG, SQRT = NAMED = ("log", "sqrt")
LEAST = {LOG: "greater than 0", SQRT: "of at least 0"}
ROUNDING = 1e-12  # relative: what going there and back may lose; ends are moved outwards by it
PROBES = 200  # values of the target at which a transformer of the user's is tried


@dataclass(frozen=True, eq=False)
class TargetScale:
    """An increasing function of the target, and its range.

    Attributes
    ----------
    transform : str or transformer or None
        "log", "sqrt", or a fitted transformer of scikit-learn's kind, with `transform` and `inverse_transform`.
    low, high : float
        No observation lies below or above, and no end is given there.
    seen : pair of float
        Least and largest learning target: what cannot be carried back is told by them.
    """

    transform: Any = None
    low: float = -np.inf
    high: float = np.inf
    seen: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def learn(cls, transform: Any, target_range: Any, y: Array) -> TargetScale | None:
        """The scale for these learning targets; None if there is nothing to do."""
        low, high = (-np.inf, np.inf) if target_range is None else read_range(target_range)
        outside = y[(y < low) | (y > high)]
        if len(outside):
            raise ValueError(
                f"target_range={target_range!r}: expected a range of all targets, but y has {outside[0]:g}"
            )
        seen = float(y.min()), float(y.max())
        if transform is None:
            return None if target_range is None else cls(None, low, high, seen)
        if isinstance(transform, str):
            fine = y.min() > 0 if transform == LOG else y.min() >= 0
            check("target_transform", transform, bool(fine), f"targets {LEAST[transform]}, but y has {y.min():g}")
            return cls(transform, low, high, seen)
        made = cls(clone(transform).fit(y[:, None]), low, high, seen)
        values = np.unique(y)[:: max(1, len(np.unique(y)) // PROBES)]
        z = made.forward(values)
        fine = np.isfinite(z).all() and bool((np.diff(z) > 0).all())
        expected = "an increasing transform, of which inverse_transform gives the targets back"
        check("target_transform", type(transform).__name__, bool(fine), expected)
        return made

    @property
    def words(self) -> str:
        """The scale by name; nothing of the target's own."""
        if self.transform is None or isinstance(self.transform, str):
            return self.transform or ""
        return type(self.transform).__name__

    def forward(self, y: Array) -> Array:
        """On the scale; infinite what lies outside of the range, or what the scale cannot hold."""
        if isinstance(self.transform, str):
            with np.errstate(divide="ignore"):
                z = np.log(np.maximum(y, 0.0)) if self.transform == LOG else np.sqrt(np.maximum(y, 0.0))
            z = np.where(y < 0, -np.inf, z)
        elif self.transform is not None:
            z, finite = np.where(y > 0, np.inf, -np.inf), np.isfinite(y)
            with np.errstate(all="ignore"):
                z[finite] = np.asarray(self.transform.transform(y[finite][:, None]), dtype=float)[:, 0]
                z = np.where(np.isnan(z), np.where(y < self.seen[0], -np.inf, np.inf), z)
                back, lost = self._inverse(z), 1e-6 * max(self.seen[1] - self.seen[0], ROUNDING)
            z = np.where(y > back + lost, np.inf, np.where(y < back - lost, -np.inf, z))
        else:
            z = y
        return np.where(y < self.low, -np.inf, np.where(y > self.high, np.inf, z))

    def backward(self, z: Array, side: int = 0) -> Array:
        """In units of the target, within its range; of ends the lower (-1) or upper (1) ones outwards.

        What is too large to be carried back becomes the largest learning target, where it would not be an open end.
        """
        y = self._inverse(z)
        if self.transform is not None:
            finite = np.isfinite(y)
            size = np.where(finite, np.abs(y), 0.0) * (1 + np.abs(np.where(np.isfinite(z), z, 0.0)))
            y = y + side * ROUNDING * size
            y = np.where((y == np.inf) & (side <= 0) & (z < np.inf), self.seen[1], y)
            y = np.where((y == -np.inf) & (side >= 0) & (z > -np.inf), self.seen[0], y)
        return np.clip(y, self.low, self.high)

    def _inverse(self, z: Array) -> Array:
        z = np.asarray(z, dtype=float)
        if self.transform is None:
            return z
        with np.errstate(over="ignore"):
            if isinstance(self.transform, str):
                return np.asarray(np.exp(z) if self.transform == LOG else np.square(np.maximum(z, 0.0)))
        y = np.where(z > 0, np.inf, -np.inf)
        finite = np.isfinite(z)
        if finite.any():
            with np.errstate(all="ignore"):
                y[finite] = np.asarray(self.transform.inverse_transform(z[finite][:, None]), dtype=float)[:, 0]
        return np.where(np.isnan(y), np.where(z > 0, np.inf, -np.inf), y)


def read_range(target_range: Any) -> tuple[float, float]:
    """Least and largest value of a target; None leaves a side open."""
    pair = isinstance(target_range, (tuple, list)) and len(target_range) == 2
    numbers = pair and all(each is None or is_number(each) for each in target_range)
    low, high = (
        open_end if each is None else float(each)
        for each, open_end in zip(target_range if numbers else (None, None), (-np.inf, np.inf), strict=True)
    )
    expected = "None, or a pair such as (0, None): least and largest value, the first below the second"
    check("target_range", target_range, bool(numbers) and low < high, expected)
    return low, high


def is_transformer(value: Any) -> bool:
    """Whether a value is a transformer that can be inverted."""
    named = ("fit", "transform", "inverse_transform")
    return not isinstance(value, (str, type)) and all(hasattr(value, name) for name in named)
