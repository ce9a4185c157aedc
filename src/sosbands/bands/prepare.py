"""From points, residuals and penalties to problems in the solver's units, and back. Called by `bands` only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from sosbands._types import AnyArray, Array
from sosbands.bands.scaling import Penalties, PenaltyScale, SolverUnits, read_number, root_mean_square, solver_units
from sosbands.bands.solution import BandSolution, band_solution
from sosbands.exceptions import InfeasibleProblemError, NotCertifiedWarning, SymmetricLimitError
from sosbands.kernels import KernelFeatures, learn_features, resolve_kernel
from sosbands.problems import (
    AsymmetricProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.solvers import SolverResult, Status, solve

TwoSidedProblem = AsymmetricProblem | TrainingPenaltyProblem | OperatorPenaltyProblem | SymmetricProblem


@dataclass(frozen=True, eq=False)
class PreparedBands:
    """What every problem on the same points, residuals and kernels shares."""

    r: Array
    lower: KernelFeatures
    upper: KernelFeatures
    penalties: Penalties
    scale: PenaltyScale | None

    @property
    def is_zero(self) -> bool:
        """All residuals are zero, so that there is nothing to solve."""
        return not self.r.any()

    def units(self, penalties: Penalties) -> SolverUnits:
        """Units of the solver for these penalties."""
        if self.scale is not None:
            penalties = self.scale.apply(penalties)
        return solver_units(self.r, self._variance, penalties)

    @cached_property
    def _variance(self) -> float:
        return float(np.square(self.lower.V).sum(axis=0).max())

    @cached_property
    def _terms(self) -> tuple[SideTerm, SideTerm]:
        """Both sides in the solver's units, which do not depend on the symmetry penalty."""
        _check_reachable(self.lower, self.r < 0)
        _check_reachable(self.upper, self.r > 0)
        pen = self.units(self.penalties).penalties
        root = np.sqrt(self._variance)
        lower = SideTerm(self.lower.V / root, b=pen.b, lam1=pen.lam1, lam2=pen.lam2)
        if self.upper is self.lower:
            return lower, lower
        return lower, SideTerm(self.upper.V / root, b=pen.b, lam1=pen.lam1, lam2=pen.lam2)

    def problem(self, penalties: Penalties) -> TwoSidedProblem:
        """The two-sided problem in the solver's units."""
        coupled = not penalties.is_asymmetric and penalties.kind == "operator"
        if self.lower is not self.upper and (penalties.is_symmetric or coupled):
            raise SymmetricLimitError(
                "lengthscale differs below and above: expected the same for both sides with "
                + ("symmetry_kind='operator'" if penalties.kind == "operator" else "symmetry_penalty=inf")
            )
        units = self.units(penalties)
        pen, scaled = units.penalties, self.r / units.rms
        lower, upper = self._terms
        if pen.is_asymmetric:
            return AsymmetricProblem(lower, upper, scaled)
        if pen.is_symmetric:
            return SymmetricProblem(lower, scaled)
        if pen.kind == "operator":
            return OperatorPenaltyProblem(lower, scaled, pen.lam_pen1, pen.lam_pen2)
        return TrainingPenaltyProblem(lower, upper, scaled, pen.lam_pen2)

    def solution(self, problem: TwoSidedProblem, result: SolverResult) -> BandSolution:
        """The solver's result in the user's units."""
        point = problem.dual_point(result.variables)
        return band_solution(self.lower, self.upper, point, result, self.units(self.penalties))


def prepare(
    X: Any,
    residuals: Any,
    *,
    kernel: Any,
    lengthscale: Any,
    penalties: Penalties,
    rank: Any,
    tol: float,
    normalize: bool | PenaltyScale,
) -> PreparedBands:
    """Check the arguments and factorise the kernels."""
    points = _check_points(X, kernel)
    r = _check_residuals(residuals, len(points))
    if not 0 < read_number("tol", tol) < 1:
        raise ValueError(f"tol={tol!r}: expected a number in (0, 1)")
    if not isinstance(normalize, (bool, PenaltyScale)):
        raise ValueError(f"normalize={normalize!r}: expected True, False or a PenaltyScale")
    lower, upper = _features(points, kernel, lengthscale, rank)
    scale = normalize if isinstance(normalize, PenaltyScale) else None
    if normalize is True and r.any():
        scale = penalty_scale(points, r, kernel, rank, tol)
    return PreparedBands(r, lower, upper, penalties, scale)


def penalty_scale(
    X: Any, residuals: Any, kernel: Any = "matern52", rank: Any = "auto", tol: float = 1e-4
) -> PenaltyScale:
    """Units of the penalties, from the symmetric problem with the median lengthscale and all penalties 1."""
    initial = Penalties(1.0, 1.0, 1.0, 0.0, np.inf, "training")
    rms = root_mean_square(_check_residuals(residuals, len(X)))
    if rms == 0:
        raise ValueError("residuals are all zero: they define no scale")
    options = {"kernel": kernel, "lengthscale": "median", "rank": rank, "tol": tol, "normalize": False}
    setup = prepare(X, np.asarray(residuals) / rms, penalties=initial, **options)
    problem = setup.problem(initial)
    bands = setup.solution(problem, solve(problem, tol=tol))
    if bands.status != Status.CONVERGED:
        warnings.warn(
            f"the initial model, which sets the units of the penalties, has a certified gap of {bands.gap:.2g}, above "
            f"tol={tol:.2g}",
            NotCertifiedWarning,
            stacklevel=2,
        )
    A = bands.lower.operator
    width = float(bands.values_lower.mean())
    return PenaltyScale(rms, width, float(np.trace(A)), float(np.square(A).sum()), len(setup.r))


def _features(points: AnyArray, kernel: Any, lengthscale: Any, rank: Any) -> tuple[KernelFeatures, KernelFeatures]:
    """Features of each side, one object if both sides have the same lengthscale."""
    if not isinstance(lengthscale, dict):
        shared = learn_features(points, resolve_kernel(kernel, lengthscale, points), rank)
        return shared, shared
    if set(lengthscale) != {"lower", "upper"}:
        raise ValueError(f"lengthscale={lengthscale!r}: expected the keys 'lower' and 'upper'")
    kernels = [resolve_kernel(kernel, lengthscale[side], points) for side in ("lower", "upper")]
    lower = learn_features(points, kernels[0], rank)
    return lower, lower if kernels[0] == kernels[1] else learn_features(points, kernels[1], rank)


def _check_reachable(features: KernelFeatures, needed: AnyArray) -> None:
    (unreachable,) = np.nonzero(needed & ~features.V.any(axis=0))
    if unreachable.size:
        raise InfeasibleProblemError(
            f"the features are zero at row {unreachable[0]} (and {unreachable.size - 1} more), whose residual is not: "
            "raise `rank` or use another kernel"
        )


def _check_points(X: Any, kernel: Any) -> AnyArray:
    """Learning points as an array; numbers unless the kernel is a callable of its own."""
    if callable(kernel) and not hasattr(kernel, "diag"):
        points: AnyArray = np.asarray(X)
        if points.ndim == 0 or len(points) == 0:
            raise ValueError(f"X has shape {points.shape}: expected at least one learning point")
        return points
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    dtype = [np.float64, np.float32] if precomputed else np.float64
    points = check_array(X, dtype=dtype, input_name="X")
    if precomputed:
        if points.shape[0] != points.shape[1]:
            raise ValueError(f"X has shape {points.shape}: a precomputed kernel matrix must be square")
        if not np.allclose(points, points.T, rtol=1e-6, atol=1e-8 * float(np.abs(points).max())):
            raise ValueError("X: a precomputed kernel matrix must be symmetric")
    return points


def _check_residuals(residuals: Any, n: int) -> Array:
    if np.ndim(residuals) != 1:
        raise ValueError(f"residuals have shape {np.shape(residuals)}: expected ({n},), one per row of X")
    r: Array = check_array(residuals, dtype=np.float64, ensure_2d=False, input_name="residuals")
    if len(r) != n:
        raise ValueError(f"residuals have shape {r.shape}: expected ({n},), one per row of X")
    return r
