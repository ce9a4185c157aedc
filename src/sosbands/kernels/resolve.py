"""From what a user may call a kernel to one object with ``kernel(X, Y)`` and ``kernel.diag(X)``.

scikit-learn's kernel objects have that shape already and are used as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sosbands._arguments import naming, read_numbers
from sosbands._types import AnyArray, Array
from sosbands.kernels.lengthscale import median_lengthscale
from sosbands.kernels.stationary import PROFILES, StationaryKernel

PRECOMPUTED = "precomputed"


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


Lengthscale = str | float | AnyArray | list[float] | tuple[float, ...]


def resolve_lengthscale(lengthscale: Any, X: Array) -> tuple[float, ...]:
    """``"median"``, a number or one number per feature, as a tuple."""
    if isinstance(lengthscale, str):
        if lengthscale != "median":
            raise ValueError(f"lengthscale={lengthscale!r}: expected 'median', a number > 0 or one per feature")
        return (median_lengthscale(X),)
    try:
        ell = np.atleast_1d(np.asarray(lengthscale, dtype=float))
    except (TypeError, ValueError) as error:
        raise ValueError(f"lengthscale={lengthscale!r}: expected 'median', a number > 0 or one per feature") from error
    if ell.ndim != 1 or ell.size not in (1, X.shape[1]):
        raise ValueError(f"lengthscale has shape {ell.shape}: expected one number or {X.shape[1]} (one per feature)")
    return tuple(float(v) for v in ell)


def resolve_kernel(kernel: Any, lengthscale: Any, X: Array) -> Kernel:
    """The kernel object for a name, a scikit-learn kernel, a callable or ``"precomputed"``.

    Kernel objects, callables and precomputed matrices carry their own lengthscale: `lengthscale`
    must then be left at ``"median"``.
    """
    if isinstance(kernel, str) and kernel != PRECOMPUTED:
        if kernel not in PROFILES:
            names = sorted([*PROFILES, PRECOMPUTED])
            raise ValueError(f"kernel={kernel!r} is not known: expected one of {names}, a kernel object or a callable")
        return StationaryKernel(kernel, resolve_lengthscale(lengthscale, X))
    if not (isinstance(lengthscale, str) and lengthscale == "median"):
        raise ValueError(
            f"lengthscale={lengthscale!r} has no effect on kernel={kernel!r}, which carries its own: leave it out"
        )
    if isinstance(kernel, str):
        return PrecomputedKernel()
    if not callable(kernel):
        raise ValueError(f"kernel={kernel!r}: expected a name, a scikit-learn kernel, a callable or 'precomputed'")
    if hasattr(kernel, "diag"):
        return kernel  # type: ignore[no-any-return]
    return CallableKernel(kernel)
