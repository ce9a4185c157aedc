"""How points are compared: kernel profiles, lengthscales, and from what a user calls a kernel to one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist

from sosbands._arguments import check, naming, read_numbers
from sosbands._types import AnyArray, Array

FARTHEST = 1e3  # here every profile is zero in double precision already; farther away its polynomial could overflow
LARGE = 1e300  # in lengthscales


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


PROFILES: dict[str, Callable[[Array], Array]] = {
    "matern52": matern52,
    "matern32": _matern32,
    "matern12": lambda s: np.exp(-s),
    "gaussian": lambda s: np.exp(-0.5 * s**2),
}


@dataclass(frozen=True)
class StationaryKernel:
    """A unit-variance kernel ``k(x, y) = profile(||(x - y) / lengthscale||)``.

    `lengthscale` has one entry (isotropic) or one per feature; inf ignores the feature, and everywhere gives the
    constant kernel.
    """

    name: str
    lengthscale: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.name not in PROFILES:
            raise ValueError(f"kernel={self.name!r} is not known: expected one of {sorted(PROFILES)}")
        ell = np.asarray(self.lengthscale, dtype=float)
        check("lengthscale", self.lengthscale, ell.ndim == 1 and ell.size > 0 and bool(np.all(ell > 0)), "numbers > 0")

    def __call__(self, X: Array, Y: Array) -> Array:
        """Kernel matrix of shape ``(len(X), len(Y))``."""
        ell = np.asarray(self.lengthscale)
        if ell.size not in (1, X.shape[1]):
            raise ValueError(f"lengthscale has {ell.size} entries: expected 1 or {X.shape[1]} (the features of X)")
        with np.errstate(over="ignore"):
            # finite, so that no distance is the difference of two infinities
            scaled_X, scaled_Y = (np.clip(points / ell, -LARGE, LARGE) for points in (X, Y))
            s = cdist(scaled_X, scaled_Y)
        return PROFILES[self.name](np.minimum(s, FARTHEST))

    def diag(self, X: Array) -> Array:
        """Return ``k(x, x) = 1`` for every row."""
        return np.ones(len(X))


def median_lengthscale(X: Array, *, max_rows: int = 2000, random_state: int = 0) -> float:  # 2e6 pairs (16 MB)
    """Median Euclidean distance between two different rows of `X` (n, d).

    Distances of zero (repeated rows) are left out if they make the median zero. Without two different rows every
    lengthscale gives the same kernel matrix and 1 is returned. Of more than `max_rows` rows a random sample is taken.
    """
    if len(X) > max_rows:
        X = X[np.random.default_rng(random_state).choice(len(X), max_rows, replace=False)]
    distances = pdist(X)
    if np.all(np.isfinite(distances)) and distances.any():
        return float(np.median(distances)) or float(np.median(distances[distances > 0]))
    # overflow or underflow of squares, or no two different rows; halves, because differences may overflow too
    centred = X / 2 - X[:1] / 2
    unit = float(np.abs(centred).max(initial=0.0))
    return 2 * unit * median_lengthscale(centred / unit) if unit > 0 else 1.0


class Kernel(Protocol):
    """What features need of a kernel."""

    def __call__(self, X: Any, Y: Any) -> Array:
        """Kernel matrix of shape ``(len(X), len(Y))``."""

    def diag(self, X: Any) -> Array:
        """Return ``k(x, x)`` for every row."""


@dataclass(frozen=True)
class CallableKernel:
    """A user's function ``func(X, Y) -> (len(X), len(Y))`` as a kernel."""

    func: Callable[[Any, Any], AnyArray]

    def __call__(self, X: Any, Y: Any) -> Array:
        """Kernel matrix of shape ``(len(X), len(Y))``."""
        with naming("kernel"):
            K = read_numbers("kernel: its values", self.func(X, Y))
        if K.shape != (len(X), len(Y)):
            raise ValueError(f"the kernel callable returned shape {K.shape}: expected {(len(X), len(Y))}")
        if not np.all(np.isfinite(K)):
            raise ValueError("the kernel callable returned NaN or inf for some rows of X: expected finite values")
        return K

    def diag(self, X: Any) -> Array:
        """Diagonal by small blocks, so that no full matrix is built."""
        blocks = [X[i : i + 32] for i in range(0, len(X), 32)]
        return np.concatenate([np.diag(self(block, block)) for block in blocks])


@dataclass(frozen=True)
class PrecomputedKernel:
    """Points are rows of kernel values against all learning points: ``X[i, j] = k(x_i, X_j)``."""

    def __call__(self, X: AnyArray, Y: Any) -> Array:
        """Columns `Y` (integer positions of learning points) of the rows `X`."""
        return np.asarray(X[:, Y], dtype=float)

    def diag(self, X: AnyArray) -> Array:
        """Diagonal of the square learning matrix."""
        return np.asarray(np.diag(X), dtype=float)


def resolve_kernel(kernel: Any, lengthscale: Any, X: Array) -> Kernel:
    """The kernel object for a name, a scikit-learn kernel, a callable or ``"precomputed"``.

    Kernel objects, callables and precomputed matrices carry their own lengthscale: `lengthscale`
    must then be left at ``"median"``.
    """
    if isinstance(kernel, str) and kernel != "precomputed":
        if kernel not in PROFILES:
            names = sorted([*PROFILES, "precomputed"])
            raise ValueError(f"kernel={kernel!r} is not known: expected one of {names}, a kernel object or a callable")
        expected = "expected 'median', a number > 0 or one per feature"
        if isinstance(lengthscale, str):
            if lengthscale != "median":
                raise ValueError(f"lengthscale={lengthscale!r}: {expected}")
            return StationaryKernel(kernel, (median_lengthscale(X),))
        try:
            ell = np.atleast_1d(np.asarray(lengthscale, dtype=float))
        except (TypeError, ValueError) as error:
            raise ValueError(f"lengthscale={lengthscale!r}: {expected}") from error
        if ell.ndim != 1 or ell.size not in (1, X.shape[1]):
            whole = f"expected one number or {X.shape[1]} (one per feature)"
            raise ValueError(f"lengthscale has shape {ell.shape}: {whole}")
        return StationaryKernel(kernel, tuple(float(v) for v in ell))
    if not (isinstance(lengthscale, str) and lengthscale == "median"):
        raise ValueError(
            f"lengthscale={lengthscale!r} has no effect on kernel={kernel!r}, which carries its own: leave it out"
        )
    if isinstance(kernel, str):
        return PrecomputedKernel()
    check("kernel", kernel, callable(kernel), "a name, a scikit-learn kernel, a callable or 'precomputed'")
    if hasattr(kernel, "diag"):
        return kernel  # type: ignore[no-any-return]
    return CallableKernel(kernel)
