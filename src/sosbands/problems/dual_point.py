"""Multipliers in the form that every problem can read: the currency of warm starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sosbands._types import Array


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Multipliers of a two-sided problem.

    Attributes
    ----------
    gamma_lo, gamma_up : ndarray of shape (n,)
        Multipliers of the coverage constraints, non-negative.
    alpha_0 : ndarray of shape (n,) or None
        Multiplier of the training-set penalty.
    W : ndarray of shape (p, p) or None
        Multiplier of the operator penalty.
    shared : bool
        The point of a symmetric problem, whose one operator serves both sides.
    ceiling : float
        Upper bound of the multipliers of each side.
    """

    gamma_lo: Array
    gamma_up: Array
    alpha_0: Array | None = None
    W: Array | None = None
    shared: bool = False
    ceiling: float = np.inf

    @property
    def weights(self) -> tuple[Array, Array]:
        """Weights of the learning points in the lower and upper operator, as if W were absent.

        ``gamma_lo + alpha_0`` and ``gamma_up - alpha_0``; for a shared operator half of the sum on both sides.
        """
        if self.shared:
            half = 0.5 * (self.gamma_lo + self.gamma_up)
            return half, half
        if self.alpha_0 is None:
            return self.gamma_lo, self.gamma_up
        return self.gamma_lo + self.alpha_0, self.gamma_up - self.alpha_0

    @property
    def mean_alpha_0(self) -> Array:
        """alpha_0, or the one that gives a shared operator: ``(gamma_up - gamma_lo) / 2``."""
        if self.alpha_0 is not None:
            return self.alpha_0
        return 0.5 * (self.gamma_up - self.gamma_lo) if self.shared else np.zeros_like(self.gamma_lo)

    def scaled(self, factor: float) -> DualPoint:
        """All multipliers times `factor`."""
        alpha_0 = None if self.alpha_0 is None else factor * self.alpha_0
        W = None if self.W is None else factor * self.W
        ceiling = factor * self.ceiling
        return DualPoint(factor * self.gamma_lo, factor * self.gamma_up, alpha_0, W, self.shared, ceiling)

    def below(self, ceiling: float) -> DualPoint:
        """The multipliers for another ceiling: points outside stay outside."""
        if not (np.isfinite(ceiling) and np.isfinite(self.ceiling) and self.ceiling > 0) or ceiling == self.ceiling:
            return self
        factor = ceiling / self.ceiling
        return replace(self, gamma_lo=factor * self.gamma_lo, gamma_up=factor * self.gamma_up, ceiling=ceiling)
