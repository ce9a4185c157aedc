"""Kernel values between many points and a few fixed ones, by one matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.kernels.stationary import PROFILES, StationaryKernel

SMOOTH = frozenset({"matern52", "matern32", "gaussian"})  # in the squared distance, whose rounding is harmless then
LARGEST_RADIUS = 1000.0  # squared, in lengthscales: beyond, rounding of squared lengths might be seen
FARTHEST = 1e3  # in lengthscales: here every profile is zero in double precision already
FAR = 1e6  # in lengthscales from the middle of the landmarks: far enough for any radius


class LandmarkKernel:
    """``k(x, p_j)`` of new points x and landmarks p_j, which are prepared once.

    The squared distances are ``|u|^2 + |v|^2 - 2 u'v`` of points in lengthscales, from the middle of the landmarks.
    They are wrong by some ``1e-15`` times the squared radius, and so are the kernel values, as the profiles in use are
    smooth in them. Where this could matter, and for other kernels, values are those of the kernel itself.

    Parameters
    ----------
    kernel : Kernel
    landmarks : array of shape (p, ...)
    """

    def __init__(self, kernel: Any, landmarks: AnyArray) -> None:
        self._kernel, self._landmarks, self._columns = kernel, landmarks, None
        self.rounding = 1e-15
        if not isinstance(kernel, StationaryKernel) or kernel.name not in SMOOTH:
            return
        scale = np.broadcast_to(np.asarray(kernel.lengthscale, dtype=float), landmarks.shape[1:])
        center = landmarks.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            v = (landmarks - center) / scale
            squares = np.square(v).sum(axis=1)
        if not np.all(squares <= LARGEST_RADIUS):
            return
        if kernel.name == "matern52":  # t in place of distances
            scale, v, squares = scale / np.sqrt(5.0), np.sqrt(5.0) * v, 5.0 * squares
        self._scale, self._center = scale, center
        self._columns = np.vstack([-2.0 * v.T, np.ones(len(v)), squares])
        self.rounding *= 1.0 + float(squares.max(initial=0.0))

    def blocks(self, points: AnyArray, rows: int) -> Iterator[Array]:
        """Kernel values, shape (rows, p), of consecutive blocks of points; each is overwritten by the next one.

        Arrays of this size are made anew by the system every time, which costs more than the arithmetic in them.
        """
        work = np.empty((3, min(rows, len(points)), len(self._landmarks)))
        for start in range(0, len(points), rows):
            block = points[start : start + rows]
            yield self(block, work[:, : len(block)])

    def __call__(self, points: AnyArray, work: Array | None = None) -> Array:
        """Kernel values of shape ``(len(points), p)``, in one of the three arrays of `work` if it is given."""
        if self._columns is None:
            return np.asarray(self._kernel(points, self._landmarks))
        s, decay, values = np.empty((3, len(points), len(self._landmarks))) if work is None else work
        with np.errstate(over="ignore"):
            u = np.clip((points - self._center) / self._scale, -FAR, FAR)
        np.matmul(np.column_stack([u, np.square(u).sum(axis=1), np.ones(len(u))]), self._columns, out=s)
        np.sqrt(np.maximum(s, 0.0, out=s), out=s)
        if self._kernel.name != "matern52":
            return PROFILES[self._kernel.name](np.minimum(s, FARTHEST, out=s))
        # (1 + t + t^2/3) exp(-t), with t = sqrt(5) |u - v|
        np.exp(np.negative(s, out=decay), out=decay)
        np.multiply(s, 1 / 3, out=values)
        values += 1.0
        values *= s
        values += 1.0
        values *= decay
        return np.asarray(values)
