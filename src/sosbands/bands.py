"""learn_bands: from points and residuals to two certified non-negative functions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from sosbands._types import AnyArray, Array
from sosbands.exceptions import (
    InfeasibleProblemError,
    NotCertifiedWarning,
    SymmetricLimitError,
    ZeroResidualsWarning,
)
from sosbands.kernels import KernelFeatures, learn_features, resolve_kernel
from sosbands.problems import (
    AsymmetricProblem,
    OperatorPenaltyProblem,
    SideTerm,
    SymmetricProblem,
    TrainingPenaltyProblem,
)
from sosbands.scaling import PenaltyScale, SolverUnits, read_number, read_penalties, root_mean_square, solver_units
from sosbands.solution import BandSolution, band_solution, zero_solution
from sosbands.solvers import Status, check_solver, solve

TwoSidedProblem = AsymmetricProblem | TrainingPenaltyProblem | OperatorPenaltyProblem | SymmetricProblem


def learn_bands(
    X: Any,
    residuals: Any,
    *,
    kernel: Any = "matern52",
    lengthscale: Any = "median",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    symmetry_penalty: Any = 1.0,
    symmetry_kind: str = "training",
    rank: Any = "auto",
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | PenaltyScale = False,
    X_kernel: Any = None,
) -> BandSolution:
    """Learn the lower and the upper band function around a point model from its residuals.

    Both functions are kernel sums of squares that cover every residual (``f_lo >= -r``, ``f_up >= r``) at the
    least cost ``sum over sides of (b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2`` plus a penalty on their
    difference. The problem is convex and the solution comes with a certificate.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Learning points; with ``kernel="precomputed"`` the kernel matrix (n, n).
    residuals : array-like of shape (n,)
        ``y - prediction``.
    kernel : str, kernel object or callable
        "matern52", "matern32", "matern12", "gaussian", any scikit-learn kernel, a function ``k(X, Y)`` that
        returns a matrix, or "precomputed".
    lengthscale : "median", float, array of shape (d,) or dict
        Of a named kernel; a dict ``{"lower": ..., "upper": ...}`` gives each side its own.
    width_penalty, trace_penalty, frobenius_penalty : float
        b, lam1 and lam2.
    symmetry_penalty : float or pair
        0 gives two independent bands, inf one shared function; a pair (nuclear, squared Frobenius) is for the
        operator kind, where a single number is the second of the pair.
    symmetry_kind : {"training", "operator"}
        Penalise the difference of the functions at the learning points, or of their operators.
    rank : "auto", "exact", int or float in (0, 1)
        Number of kernel features, or the relative trace of the kernel matrix that they may leave out.
    solver : {"auto", "lbfgs"}
    tol : float
        Relative duality gap at which a solve counts as converged.
    normalize : bool or PenaltyScale
        Take the penalties relative to an initial symmetric model and the residuals relative to their root mean
        square, so that the bands are equivariant in the residuals; a PenaltyScale reuses one made before. False
        solves the problem literally, in the units given.
    X_kernel : array-like, optional
        What the kernel sees instead of `X` (which may then be None): transformed points, or the kernel matrix.

    Returns
    -------
    BandSolution
    """
    points = _check_points(X if X_kernel is None else X_kernel, kernel)
    r = _check_residuals(residuals, len(points))
    if X_kernel is not None and X is not None and len(X) != len(points):
        raise ValueError(f"X_kernel has {len(points)} rows: expected {len(X)}, as X")
    if not 0 < read_number("tol", tol) < 1:
        raise ValueError(f"tol={tol!r}: expected a number in (0, 1)")
    if not isinstance(normalize, (bool, PenaltyScale)):
        raise ValueError(f"normalize={normalize!r}: expected True, False or a PenaltyScale")
    check_solver(solver)
    penalties = read_penalties(width_penalty, trace_penalty, frobenius_penalty, symmetry_penalty, symmetry_kind)
    lower, upper = _features(points, kernel, lengthscale, rank)
    if lower is not upper and (penalties.is_symmetric or penalties.kind == "operator"):
        raise SymmetricLimitError(
            f"lengthscale={lengthscale!r} differs below and above: expected the same for both sides with "
            + ("symmetry_kind='operator'" if penalties.kind == "operator" else "symmetry_penalty=inf")
        )
    if not r.any():
        warnings.warn("all residuals are zero: the bands have no width", ZeroResidualsWarning, stacklevel=2)
        return zero_solution(lower, upper)
    if normalize:
        scale = normalize if isinstance(normalize, PenaltyScale) else penalty_scale(points, r, kernel, rank, tol)
        penalties = scale.apply(penalties)
    units = solver_units(r, float(np.square(lower.V).sum(axis=0).max()), penalties)
    problem = _problem(lower, upper, r, units)
    result = solve(problem, tol=tol, solver=solver)
    if result.status != Status.CONVERGED:
        warnings.warn(
            f"the certified relative gap is {result.certificate.gap:.2g}, above tol={tol:.2g} ({result.status.value} "
            f"after {result.iterations} iterations)",
            NotCertifiedWarning,
            stacklevel=2,
        )
    return band_solution(lower, upper, problem.dual_point(result.variables), result, units)


def penalty_scale(
    X: Any, residuals: Any, kernel: Any = "matern52", rank: Any = "auto", tol: float = 1e-4
) -> PenaltyScale:
    """Units of the penalties, from the symmetric problem with the median lengthscale and all penalties 1."""
    points = _check_points(X, kernel)
    r = _check_residuals(residuals, len(points))
    rms = root_mean_square(r)
    if rms == 0:
        raise ValueError("residuals are all zero: they define no scale")
    initial = learn_bands(
        points,
        r / rms,
        kernel=kernel,
        width_penalty=1.0,
        trace_penalty=1.0,
        frobenius_penalty=1.0,
        symmetry_penalty=np.inf,
        rank=rank,
        tol=tol,
    )
    A = initial.lower.operator
    width = float(initial.values_lower.mean())
    return PenaltyScale(rms, width, float(np.trace(A)), float(np.square(A).sum()), len(points))


def _features(points: AnyArray, kernel: Any, lengthscale: Any, rank: Any) -> tuple[KernelFeatures, KernelFeatures]:
    """Features of each side, one object if both sides have the same lengthscale."""
    if not isinstance(lengthscale, dict):
        shared = learn_features(points, resolve_kernel(kernel, lengthscale, points), _rank(rank))
        return shared, shared
    if set(lengthscale) != {"lower", "upper"}:
        raise ValueError(f"lengthscale={lengthscale!r}: expected the keys 'lower' and 'upper'")
    kernels = [resolve_kernel(kernel, lengthscale[side], points) for side in ("lower", "upper")]
    lower = learn_features(points, kernels[0], _rank(rank))
    return lower, lower if kernels[0] == kernels[1] else learn_features(points, kernels[1], _rank(rank))


def _rank(rank: Any) -> Any:
    return "exact" if isinstance(rank, str) and rank == "auto" else rank


def _problem(lower: KernelFeatures, upper: KernelFeatures, r: Array, units: SolverUnits) -> TwoSidedProblem:
    """The two-sided problem in the solver's units."""
    pen = units.penalties
    _check_reachable(lower, r < 0)
    _check_reachable(upper, r > 0)
    terms = {
        id(features): SideTerm(features.V / np.sqrt(units.variance), b=pen.b, lam1=pen.lam1, lam2=pen.lam2)
        for features in (lower, upper)
    }
    lo, up = terms[id(lower)], terms[id(upper)]
    scaled = r / units.rms
    if pen.is_asymmetric:
        return AsymmetricProblem(lo, up, scaled)
    if pen.is_symmetric:
        return SymmetricProblem(lo, scaled)
    if pen.kind == "operator":
        return OperatorPenaltyProblem(lo, scaled, pen.lam_pen1, pen.lam_pen2)
    return TrainingPenaltyProblem(lo, up, scaled, pen.lam_pen2)


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
