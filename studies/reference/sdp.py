"""The primal learning problems, written out as semidefinite programs for CVXPY.

Features ``V`` have shape ``(p, n)``: column i is the feature vector of point i and
``f_A(X_i) = (V' A V)_ii``. Residuals are ``r = y - m_hat(X)``; the lower function covers ``-r``, the upper
one ``r``. Every value is that of the two-sided objective. Meant for small problems (p up to a hundred or so).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TIGHT: dict[str, dict[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9},
    "SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 200_000},
}


class SDPError(RuntimeError):
    """The conic solver did not return an optimal point."""


@dataclass(frozen=True)
class SDPSolution:
    """Solution of one of the primal problems.

    Attributes
    ----------
    value : float
        Optimal value of the two-sided objective.
    lower, upper : ndarray of shape (p, p)
        The operators ``A_lo`` and ``A_up``.
    status : str
        CVXPY's status: ``"optimal"`` or ``"optimal_inaccurate"``.
    dual_lower, dual_upper : ndarray of shape (n,)
        Multipliers of the coverage constraints, non-negative. In the symmetric problem both are the
        multipliers of ``f >= |r|`` in the one-sided problem.
    """

    value: float
    lower: Array
    upper: Array
    status: str
    dual_lower: Array
    dual_upper: Array


@dataclass(frozen=True)
class _Side:
    """One side of the problem as CVXPY expressions: operator, values at the points, constraint, cost."""

    A: Any
    f: Any
    covers: Any
    cost: Any


def _cvxpy() -> ModuleType:
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError("the SDP reference needs CVXPY: pip install 'sosbands[sdp]'") from error
    module: ModuleType = cvxpy
    return module


def _squared_norm(A: Any) -> Any:
    """``||A||_F^2``, of the entries in a row: of a symmetric variable CVXPY before 1.9.3 squares something else."""
    cp = _cvxpy()
    return cp.sum_squares(cp.vec(A, order="F"))


def _side(V: Array, target: Array, *, b: float, lam1: float, lam2: float, tau: float = 0.0) -> _Side:
    """State ``f_A(X_i) >= target_i`` and ``(b/n) sum_i f_A(X_i) + lam1 tr A + lam2 ||A||_F^2``.

    With ``tau > 0`` the constraint is ``f_A(X_i) >= target_i - slack_i`` and ``(b/(n tau)) sum_i slack_i`` is paid.
    """
    cp = _cvxpy()
    p, n = V.shape
    A = cp.Variable((p, p), PSD=True)
    # f_A(X_i) = <v_i v_i', A>: one constant row per point compiles far faster than diag(V' A V).
    rows = np.einsum("ki,li->ikl", V, V).reshape(n, p * p)
    f = rows @ cp.vec(A, order="F")
    cost = (b / n) * cp.sum(f) + lam1 * cp.trace(A) + lam2 * _squared_norm(A)
    if tau == 0:
        return _Side(A, f, f >= target, cost)
    slack = cp.Variable(n, nonneg=True)
    return _Side(A, f, f + slack >= target, cost + b / (n * tau) * cp.sum(slack))


def _solve(cost: Any, lower: _Side, upper: _Side, *, solver: str, options: dict[str, Any]) -> SDPSolution:
    cp = _cvxpy()
    # In the symmetric problem the two sides are one object, which is stated once.
    constraints = [lower.covers] if lower is upper else [lower.covers, upper.covers]
    problem = cp.Problem(cp.Minimize(cost), constraints)
    with warnings.catch_warnings():
        # CVXPY warns of an inaccurate solution; the returned status carries that information.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        try:
            problem.solve(solver=solver, **{**_TIGHT.get(solver, {}), **options})
        except cp.SolverError as error:
            raise SDPError(f"{solver} failed: {error}") from error
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise SDPError(f"{solver} stopped with status {problem.status!r}")
    return SDPSolution(
        value=float(problem.value),
        lower=np.asarray(lower.A.value),
        upper=np.asarray(upper.A.value),
        status=str(problem.status),
        dual_lower=np.asarray(lower.covers.dual_value),
        dual_upper=np.asarray(upper.covers.dual_value),
    )


def asymmetric_sdp(
    V_lo: Array,
    V_up: Array,
    r: Array,
    *,
    b: float,
    lam1: float,
    lam2: float,
    tau: float = 0.0,
    solver: str = "CLARABEL",
    **options: Any,
) -> SDPSolution:
    """Solve the two uncoupled problems (Theorem 1), values added.

    Per side, ``min (b/n) sum_i f_A(X_i) + lam1 tr A + lam2 ||A||_F^2`` subject to ``f_A(X_i) >= -r_i`` for
    the lower, ``>= r_i`` for the upper function, ``A`` positive semidefinite.

    Parameters
    ----------
    V_lo, V_up : ndarray of shape (p, n)
        Features of the lower and of the upper function; the two p may differ.
    r : ndarray of shape (n,)
        Residuals.
    b, lam1, lam2 : float
        Width, trace and Frobenius penalties.
    tau : float
        0, or points may lie outside at the price ``b/(n tau)`` for each unit.
    solver : str
        A CVXPY solver name.
    **options
        Passed to the solver; by default its tolerances are tight.

    Returns
    -------
    SDPSolution
    """
    lower = _side(V_lo, -r, b=b, lam1=lam1, lam2=lam2, tau=tau)
    upper = _side(V_up, r, b=b, lam1=lam1, lam2=lam2, tau=tau)
    return _solve(lower.cost + upper.cost, lower, upper, solver=solver, options=options)


def training_penalty_sdp(
    V_lo: Array,
    V_up: Array,
    r: Array,
    *,
    b: float,
    lam1: float,
    lam2: float,
    lam_pen: float,
    tau: float = 0.0,
    solver: str = "CLARABEL",
    **options: Any,
) -> SDPSolution:
    """Solve the problem with the training-set penalty ``lam_pen sum_i (f_lo(X_i) - f_up(X_i))^2``.

    Everything else is as in `asymmetric_sdp`. ``lam_pen`` must be finite: the limit is `symmetric_sdp`.
    """
    if not 0 <= lam_pen < math.inf:
        raise ValueError(f"lam_pen must be finite and non-negative, got {lam_pen}; inf is symmetric_sdp")
    cp = _cvxpy()
    lower = _side(V_lo, -r, b=b, lam1=lam1, lam2=lam2, tau=tau)
    upper = _side(V_up, r, b=b, lam1=lam1, lam2=lam2, tau=tau)
    cost = lower.cost + upper.cost + lam_pen * cp.sum_squares(lower.f - upper.f)
    return _solve(cost, lower, upper, solver=solver, options=options)


def operator_penalty_sdp(
    V: Array,
    r: Array,
    *,
    b: float,
    lam1: float,
    lam2: float,
    lam_pen1: float,
    lam_pen2: float,
    tau: float = 0.0,
    solver: str = "CLARABEL",
    **options: Any,
) -> SDPSolution:
    """Solve the problem with ``lam_pen1 ||A_lo - A_up||_* + lam_pen2 ||A_lo - A_up||_F^2``.

    Both functions use the features ``V``; everything else is as in `asymmetric_sdp`. The two penalties must
    be finite: the limit is `symmetric_sdp`.
    """
    if not (0 <= lam_pen1 < math.inf and 0 <= lam_pen2 < math.inf):
        raise ValueError(f"operator penalties must be finite and >= 0, got {lam_pen1} and {lam_pen2}")
    cp = _cvxpy()
    lower = _side(V, -r, b=b, lam1=lam1, lam2=lam2, tau=tau)
    upper = _side(V, r, b=b, lam1=lam1, lam2=lam2, tau=tau)
    difference = lower.A - upper.A
    cost = lower.cost + upper.cost + lam_pen2 * _squared_norm(difference)
    if lam_pen1 > 0:  # a nuclear norm costs a cone of size 2p even with weight zero
        cost += lam_pen1 * cp.normNuc(difference)
    return _solve(cost, lower, upper, solver=solver, options=options)


def symmetric_sdp(
    V: Array,
    r: Array,
    *,
    b: float,
    lam1: float,
    lam2: float,
    tau: float = 0.0,
    solver: str = "CLARABEL",
    **options: Any,
) -> SDPSolution:
    """Solve the symmetric limit: one function ``f >= |r|`` for both sides, its value counted twice.

    With ``tau > 0`` a point outside costs ``b/(n tau)`` for each unit, once as in the two-sided problems, half of it in
    the one-sided problem. The multipliers returned are those of the latter. Everything else is as in `asymmetric_sdp`.
    """
    both = _side(V, np.abs(r), b=b, lam1=lam1, lam2=lam2, tau=2 * tau)
    one = _solve(both.cost, both, both, solver=solver, options=options)
    return SDPSolution(2 * one.value, one.lower, one.upper, one.status, one.dual_lower, one.dual_upper)
