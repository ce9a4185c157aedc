"""How far the two band functions may differ anywhere: the paper's error bounds, and sharper ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sosbands import BandSolution
from sosbands.kernels import StationaryKernel


@dataclass(frozen=True)
class SymmetryBound:
    """Upper bounds of the largest difference between the lower and the upper band function.

    Attributes
    ----------
    operator : float
        ``s ||A_lo - A_up||_op``, ours, for kernels with k(x, x) = 1; holds everywhere. ``s = ||Phi||^2`` is 1, and
        ``1 + constant^2`` with a constant among the features.
    training : float or None
        ``max_i |f_lo - f_up|(X_i) + 2 sqrt(5/3 s)/theta ||A_lo - A_up||_op rho``, ours, on the domain; only for
        the isotropic Matern 5/2 kernel.
    paper_operator : float or None
        ``M ||A_lo - A_up||_*`` (Prop. "Error bounds"), Matern 5/2 without a constant.
    paper_training : float or None
        ``2 d D M ||A_lo - A_up||_* rho + ||f_lo - f_up||_2``, with the constant that the proof gives.
    """

    operator: float
    training: float | None
    paper_operator: float | None
    paper_training: float | None


def symmetry_bound(solution: BandSolution, fill_distance: float | None = None) -> SymmetryBound:
    """Bounds of ``sup_x |f_lo(x) - f_up(x)|`` over the whole space or a domain.

    `fill_distance` is the largest distance of a point of the domain to its nearest learning point; the bounds that
    start from the learning points need it and are None without it.
    """
    lower, upper, rho = solution.lower, solution.upper, fill_distance
    kernel = lower.features.kernel
    if lower.features is not upper.features or not isinstance(kernel, StationaryKernel):
        raise ValueError("symmetry_bound needs one named kernel with the same lengthscale on both sides")
    if rho is not None and not (np.isfinite(rho) and rho >= 0):
        raise ValueError(f"fill_distance={rho!r}: expected a finite number >= 0")
    eigenvalues = np.linalg.eigvalsh(lower.operator - upper.operator)
    largest, nuclear = float(np.abs(eigenvalues).max(initial=0.0)), float(np.abs(eigenvalues).sum())
    size = 1.0 + lower.features.constant**2  # of ||Phi(x)||^2, at most
    if kernel.name != "matern52" or len(kernel.lengthscale) != 1:
        return SymmetryBound(size * largest, None, None, None)
    (theta,) = kernel.lengthscale
    d = lower.features.landmarks.shape[1]
    M = 2 ** (3 + d / 2) * (2 * np.pi) ** (d / 2)
    slope = np.sqrt(5 / 3) / theta  # of Phi; a constant among the features has none
    difference = solution.values_lower - solution.values_upper
    training = paper_training = None
    if rho is not None:
        training = float(np.abs(difference).max() + 2 * slope * np.sqrt(size) * largest * rho)
        if size == 1:
            paper_training = float(2 * d * max(1.0, slope) * M * nuclear * rho + np.linalg.norm(difference))
    return SymmetryBound(size * largest, training, float(M * nuclear) if size == 1 else None, paper_training)
