"""Stationary kernels: functions of the distance between points, measured in lengthscales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from sosbands._types import Array

_FAR = 1e3  # here every profile is zero in double precision already; farther away its polynomial could overflow


def matern52(s: Array) -> Array:
    """``(1 + t + t^2/3) exp(-t)`` with ``t = sqrt(5) s``."""
    t: Array = np.sqrt(5.0) * s
    values = 1.0 + t
    # in place: matrices of many points are larger than the cache, and each new one is written and read once more
    values += np.divide(np.square(t), 3.0)
    values *= np.exp(-t)
    return values


def _matern32(s: Array) -> Array:
    t: Array = np.sqrt(3.0) * s
    return np.multiply(1.0 + t, np.exp(-t))


def _matern12(s: Array) -> Array:
    return np.exp(-s)


def _gaussian(s: Array) -> Array:
    return np.exp(-0.5 * s**2)


PROFILES: dict[str, Callable[[Array], Array]] = {
    "matern52": matern52,
    "matern32": _matern32,
    "matern12": _matern12,
    "gaussian": _gaussian,
}

_LARGE = 1e300  # in lengthscales


@dataclass(frozen=True)
class StationaryKernel:
    """A unit-variance kernel ``k(x, y) = profile(||(x - y) / lengthscale||)``.

    Parameters
    ----------
    name : {"matern52", "matern32", "matern12", "gaussian"}
        The profile.
    lengthscale : tuple of float
        One entry (isotropic) or one per feature; inf ignores the feature, and everywhere gives the constant kernel.
    """

    name: str
    lengthscale: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.name not in PROFILES:
            raise ValueError(f"kernel={self.name!r} is not known: expected one of {sorted(PROFILES)}")
        ell = np.asarray(self.lengthscale, dtype=float)
        if ell.ndim != 1 or ell.size == 0 or not np.all(ell > 0):
            raise ValueError(f"lengthscale={self.lengthscale!r}: expected numbers > 0")

    def __call__(self, X: Array, Y: Array) -> Array:
        """Kernel matrix of shape ``(len(X), len(Y))``."""
        ell = np.asarray(self.lengthscale)
        if ell.size not in (1, X.shape[1]):
            raise ValueError(f"lengthscale has {ell.size} entries: expected 1 or {X.shape[1]} (the features of X)")
        with np.errstate(over="ignore"):
            # finite, so that no distance is the difference of two infinities
            scaled_X, scaled_Y = (np.clip(points / ell, -_LARGE, _LARGE) for points in (X, Y))
            s = cdist(scaled_X, scaled_Y)
        return PROFILES[self.name](np.minimum(s, _FAR))

    def diag(self, X: Array) -> Array:
        """Return ``k(x, x) = 1`` for every row."""
        return np.ones(len(X))
