"""Bounds of the dual variables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sosbands._types import Array


class Box(NamedTuple):
    """``lower <= z <= upper``, entry by entry; entries may be infinite."""

    lower: Array
    upper: Array

    @classmethod
    def joined(cls, *boxes: Box) -> Box:
        """The box of the variables one after another."""
        return cls(np.concatenate([box.lower for box in boxes]), np.concatenate([box.upper for box in boxes]))

    @classmethod
    def unbounded(cls, count: int) -> Box:
        """No bounds at all."""
        return cls(np.full(count, -np.inf), np.full(count, np.inf))

    def clip(self, z: Array) -> Array:
        """The nearest point inside, as a new array."""
        return np.asarray(np.clip(z, self.lower, self.upper))
