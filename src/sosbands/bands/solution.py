"""BandSolution: what learn_bands returns, in the user's units. Built by `prepare` from the solver's result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.bands.sos import SoSFunction
from sosbands.bands.units import SolverUnits, root_mean_square
from sosbands.kernels import KernelFeatures, StationaryKernel
from sosbands.problems import DualPoint, PrimalSide
from sosbands.solvers import HistoryRow, SolverResult, Status

ACTIVE = 1e-6  # multipliers above this fraction of the largest are positive, within it of their ceiling at it


@dataclass(frozen=True, eq=False)
class BandSolution:
    """Two band functions and the proof of their quality.

    Attributes
    ----------
    lower, upper : SoSFunction
        ``f_lo`` and ``f_up``; call them with points. At the learning points they cover every residual, except those of
        `outside_lower` and `outside_upper` if ``learning_coverage < 1``.
    dual_value, primal_value : float
        Lower and upper bound of the optimal value; `primal_value` is attained by `lower` and `upper`.
    gap : float
        ``(primal_value - dual_value) / primal_value``.
    violation : float
        How far the farthest residual lies outside, relative to the RMS of the residuals: rounding only, unless
        ``learning_coverage < 1`` or the gap is infinite.
    status : Status
    iterations, decompositions : int
    seconds : float
    rank : tuple of int
        Numbers of squares in `lower` and `upper`.
    active_lower, active_upper : ndarray of int
        Learning rows with a positive multiplier that lie on the band: those that shape it.
    outside_lower, outside_upper : ndarray of int
        Learning rows whose multiplier is as large as the price of a row outside: they pull at the band from outside,
        however far they are. None if ``learning_coverage`` is 1.
    values_lower, values_upper : ndarray of shape (n,)
        Band functions at the learning points.
    dual : DualPoint
        Multipliers.
    history : tuple of HistoryRow
        Values, gap, decompositions and seconds per certified point. For penalty 0 the rows of the lower problem come
        first and those of the upper one after them, each with its own values; a solve on subspaces certifies its
        last points only.
    """

    lower: SoSFunction
    upper: SoSFunction
    dual_value: float
    primal_value: float
    gap: float
    violation: float
    status: Status
    iterations: int
    decompositions: int
    seconds: float
    rank: tuple[int, int]
    active_lower: IntArray
    active_upper: IntArray
    outside_lower: IntArray
    outside_upper: IntArray
    values_lower: Array
    values_upper: Array
    dual: DualPoint
    history: tuple[HistoryRow, ...]

    def __repr__(self) -> str:
        """Readable, one fact per line."""
        features = self.lower.features
        below, above = len(self.outside_lower), len(self.outside_upper)
        outside = f"  outside        {below} points below, {above} above, by {self.violation:.2g} RMS at most\n"
        return (
            f"BandSolution({self.status.value}: certified relative gap {self.gap:.2g})\n"
            f"  optimal value  between {self.dual_value:.8g} and {self.primal_value:.8g}\n"
            f"  mean width     lower {self.values_lower.mean():.4g}, upper {self.values_upper.mean():.4g}"
            f" at {len(self.values_lower)} learning points\n"
            f"  squares        lower {self.rank[0]}, upper {self.rank[1]}, in {features.rank} features"
            f" (trace left out {features.trace_left_out:.1g})\n"
            f"  shaped by      {len(self.active_lower)} points below, {len(self.active_upper)} above\n"
            f"{outside if below + above else ''}"
            f"  work           {self.iterations} iterations, {self.decompositions} decompositions,"
            f" {self.seconds:.3g} s"
        )

    @property
    def certificate(self) -> dict[str, float | int | str]:
        """How well the problem was solved, as plain numbers and words."""
        features = (self.lower.features, self.upper.features)
        return {
            "status": self.status.value,
            "dual_value": self.dual_value,
            "primal_value": self.primal_value,
            "gap": self.gap,
            "violation": self.violation,
            "n_outside": len(self.outside_lower) + len(self.outside_upper),
            "iterations": self.iterations,
            "decompositions": self.decompositions,
            "seconds": self.seconds,
            "n_features": max(each.rank for each in features),
            "trace_left_out": max(each.trace_left_out for each in features),
        }

    def symmetry_bound(self, fill_distance: float | None = None) -> SymmetryBound:
        """Bounds of ``sup_x |f_lo(x) - f_up(x)|`` over the whole space or a domain.

        Parameters
        ----------
        fill_distance : float, optional
            Largest distance of a point of the domain to its nearest learning point; the bounds that start from
            the learning points need it and are None without it.
        """
        return symmetry_bound(self, fill_distance)


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


def symmetry_bound(solution: BandSolution, rho: float | None) -> SymmetryBound:
    """See :meth:`BandSolution.symmetry_bound`."""
    lower, upper = solution.lower, solution.upper
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
    training = paper_operator = paper_training = None
    if rho is not None:
        training = float(np.abs(difference).max() + 2 * slope * np.sqrt(size) * largest * rho)
    if size == 1:
        paper_operator = float(M * nuclear)
        if rho is not None:
            paper_training = float(2 * d * max(1.0, slope) * M * nuclear * rho + np.linalg.norm(difference))
    return SymmetryBound(size * largest, training, paper_operator, paper_training)


def band_solution(
    lower: KernelFeatures, upper: KernelFeatures, point: DualPoint, result: SolverResult, units: SolverUnits
) -> BandSolution:
    """The solver's result in the user's units."""
    certificate = result.certificate
    side_lo, side_up = certificate.sides if len(certificate.sides) == 2 else certificate.sides * 2
    ceiling = units.cost.ceiling(len(point.gamma_lo))
    below, above = _shaping(point.gamma_lo, ceiling), _shaping(point.gamma_up, ceiling)
    dual = point.scaled(units.multiplier)
    if dual.W is not None:
        dual = replace(dual, W=dual.W * units.variance)
    history = tuple(
        HistoryRow(
            row.iteration,
            units.value * row.dual_value,
            units.value * row.primal_value,
            row.gap,
            row.decompositions,
            row.seconds,
        )
        for row in result.history
    )
    return BandSolution(
        lower=_function(lower, side_lo, units),
        upper=_function(upper, side_up, units),
        dual_value=units.value * certificate.dual_value,
        primal_value=units.value * certificate.primal_value,
        gap=certificate.gap,
        violation=certificate.violation,
        status=result.status,
        iterations=result.iterations,
        decompositions=result.decompositions,
        seconds=result.seconds,
        rank=(side_lo.B.shape[1], side_up.B.shape[1]),
        active_lower=below[0],
        active_upper=above[0],
        outside_lower=below[1],
        outside_upper=above[1],
        values_lower=units.rms * side_lo.f,
        values_upper=units.rms * side_up.f,
        dual=dual,
        history=history,
    )


def unweighted(solution: BandSolution, r: Array, weights: Array) -> BandSolution:
    """The solution of a weighted problem, whose rows the solver knew by ``w_i f(X_i)`` and ``w_i r_i``."""
    lower, upper = solution.values_lower / weights, solution.values_upper / weights
    outside = max(float(np.max(-r - lower)), float(np.max(r - upper)), 0.0)
    dual = solution.dual
    alpha_0 = None if dual.alpha_0 is None else weights * dual.alpha_0
    return replace(
        solution,
        values_lower=lower,
        values_upper=upper,
        violation=outside / (root_mean_square(r) or 1.0),
        dual=replace(dual, gamma_lo=weights * dual.gamma_lo, gamma_up=weights * dual.gamma_up, alpha_0=alpha_0),
    )


def zero_solution(lower: KernelFeatures, upper: KernelFeatures) -> BandSolution:
    """The exact solution for residuals that are all zero."""
    zeros = np.zeros(lower.V.shape[1])
    nothing = np.zeros(0, dtype=np.intp)
    return BandSolution(
        lower=SoSFunction(lower, np.zeros((lower.rank, 0))),
        upper=SoSFunction(upper, np.zeros((upper.rank, 0))),
        dual_value=0.0,
        primal_value=0.0,
        gap=0.0,
        violation=0.0,
        status=Status.CONVERGED,
        iterations=0,
        decompositions=0,
        seconds=0.0,
        rank=(0, 0),
        active_lower=nothing,
        active_upper=nothing,
        outside_lower=nothing,
        outside_upper=nothing,
        values_lower=zeros,
        values_upper=zeros,
        dual=DualPoint(zeros, zeros),
        history=(),
    )


def _function(features: KernelFeatures, side: PrimalSide, units: SolverUnits) -> SoSFunction:
    unit = units.rms / units.variance
    return SoSFunction(features, np.sqrt(unit) * side.B, unit * side.ridge)


def _shaping(gamma: Array, ceiling: float) -> tuple[IntArray, IntArray]:
    """Rows on the band and rows outside it, by their multipliers."""
    outside = gamma >= (1 - ACTIVE) * ceiling
    positive = gamma > ACTIVE * gamma.max(initial=0.0)
    return np.flatnonzero(positive & ~outside), np.flatnonzero(positive & outside)
