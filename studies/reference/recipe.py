"""The dual recipe of the paper, as printed, to measure against.

SciPy's L-BFGS-B from zero multipliers, one full eigendecomposition per side and evaluation, ``tol`` handed to
``scipy.optimize.minimize`` (which sets ``ftol = gtol = tol``). Nothing is scaled, warm started or truncated. Where
points may lie outside at a price, that price bounds the multipliers from above; everything else stays the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]
Bounds = list[tuple[float | None, float | None]]
Callback = Callable[[Array, Array, Array | None, float], bool | None]


@dataclass(frozen=True)
class RecipeResult:
    """Where the recipe stopped.

    Attributes
    ----------
    value : float
        Dual value of the two-sided objective: a lower bound of the optimum.
    lower, upper : ndarray of shape (p, p)
        Operators recovered from the multipliers; in general only nearly feasible.
    V_lo, V_up : ndarray of shape (p, n)
        Features, ``K = V'V``.
    gamma_lower, gamma_upper : ndarray of shape (n,)
        Multipliers of the coverage constraints. In the symmetric limit both are the multipliers of
        ``f >= |r|`` in the one-sided problem.
    alpha_0 : ndarray of shape (n,) or None
        Multipliers of the training-set penalty; None in both limits and for the operator penalty.
    iterations, decompositions : int
        L-BFGS iterations and full eigendecompositions, those that recover the operators included.
    seconds : float
        Time from the kernel matrix to the operators, without the time spent inside the callback.
    message : str
        SciPy's reason for stopping.
    W : ndarray of shape (p, p) or None
        Multiplier of the operator penalty.
    """

    value: float
    lower: Array
    upper: Array
    V_lo: Array
    V_up: Array
    gamma_lower: Array
    gamma_upper: Array
    alpha_0: Array | None
    iterations: int
    decompositions: int
    seconds: float
    message: str
    W: Array | None = None


def _features(K: Array) -> Array:
    """Return ``V`` with ``K = V'V``: upper Cholesky factor, or the symmetric square root."""
    try:
        return np.ascontiguousarray(np.linalg.cholesky(K).T)
    except np.linalg.LinAlgError:
        # K is numerically singular. Jitter on the diagonal would make Cholesky succeed, but on another
        # kernel: another problem. The square root keeps K up to rounding.
        w, Q = np.linalg.eigh(K)
        return np.asarray((Q * np.sqrt(np.maximum(w, 0.0))) @ Q.T)


@dataclass(frozen=True)
class _Side:
    """Conjugate of one side, ``Omega*(M) = ||[M - lam1 I]_+||_F^2 / (4 lam2)``, and the box of its multipliers."""

    V: Array
    b: float
    lam1: float
    lam2: float
    tau: float = 0.0

    @property
    def bounds(self) -> Bounds:
        """``0 <= gamma_i``, and ``gamma_i <= b/(n tau)`` where a unit outside has that price."""
        n = self.V.shape[1]
        return [(0.0, self.b / (n * self.tau) if self.tau > 0 else None)] * n

    def positive_part(self, c: Array, W: Array | None = None) -> tuple[Array, Array]:
        """Decompose ``V Diag(c - b/n) V' + W - lam1 I`` in full and return its positive eigenpairs."""
        p, n = self.V.shape
        M = (self.V * (c - self.b / n)) @ self.V.T - self.lam1 * np.eye(p)
        w, U = np.linalg.eigh(M if W is None else M + W)
        return w[w > 0], U[:, w > 0]

    def value(self, w: Array) -> float:
        """Return ``Omega*`` from the positive eigenvalues."""
        return float(w @ w) / (4 * self.lam2)

    def operator(self, w: Array, U: Array) -> Array:
        """Return ``A = grad Omega*``, the positive part over ``2 lam2``."""
        return np.asarray((U * (w / (2 * self.lam2))) @ U.T)

    def f(self, w: Array, U: Array) -> Array:
        """Return ``f_A(X_i) = (V' A V)_ii``."""
        return np.asarray((w / (2 * self.lam2)) @ (U.T @ self.V) ** 2)


class _Dual(Protocol):
    """What the recipe needs of a dual problem over stacked variables ``x``."""

    @property
    def sides(self) -> tuple[_Side, _Side]: ...
    @property
    def counted(self) -> int: ...  # how often the value enters the two-sided objective
    @property
    def decompositions(self) -> tuple[int, int]: ...  # per evaluation, and to recover the operators
    @property
    def bounds(self) -> Bounds: ...
    def split(self, x: Array) -> tuple[Array, Array, Array | None]: ...
    def objective(self, x: Array) -> tuple[float, Array]: ...
    def operators(self, x: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class _TrainingDual:
    """Dual with the training-set penalty, ``x = (g_lo, g_up, a)``; without ``a`` where ``lam_pen = 0``."""

    lower: _Side
    upper: _Side
    r: Array
    lam_pen: float
    counted: int = 1
    decompositions: tuple[int, int] = (2, 2)

    @property
    def sides(self) -> tuple[_Side, _Side]:
        return self.lower, self.upper

    @property
    def bounds(self) -> Bounds:
        free: Bounds = [(None, None)] * (self.r.size if self.lam_pen > 0 else 0)
        return self.lower.bounds + self.upper.bounds + free

    def split(self, x: Array) -> tuple[Array, Array, Array | None]:
        n = self.r.size
        return x[:n], x[n : 2 * n], x[2 * n :] if self.lam_pen > 0 else None

    def _positive_parts(self, x: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        g_lo, g_up, a = self.split(x)
        if a is None:
            return self.lower.positive_part(g_lo), self.upper.positive_part(g_up)
        return self.lower.positive_part(g_lo + a), self.upper.positive_part(g_up - a)

    def objective(self, x: Array) -> tuple[float, Array]:
        """Minus the dual and its gradient."""
        g_lo, g_up, a = self.split(x)
        (w_lo, U_lo), (w_up, U_up) = self._positive_parts(x)
        f_lo, f_up = self.lower.f(w_lo, U_lo), self.upper.f(w_up, U_up)
        # (g_up - g_lo)'r - ||a||²/(4 lam_pen) - Ω*(V_lo Diag(g_lo + a - b/n) V_lo')
        #                                      - Ω*(V_up Diag(g_up - a - b/n) V_up')
        value = float((g_up - g_lo) @ self.r) - self.lower.value(w_lo) - self.upper.value(w_up)
        gradient = [-self.r - f_lo, self.r - f_up]
        if a is not None:
            value -= float(a @ a) / (4 * self.lam_pen)
            gradient.append(f_up - f_lo - a / (2 * self.lam_pen))
        return -value, -np.concatenate(gradient)

    def operators(self, x: Array) -> tuple[Array, Array]:
        lower, upper = self._positive_parts(x)
        return self.lower.operator(*lower), self.upper.operator(*upper)


@dataclass(frozen=True)
class _SymmetricDual:
    """Dual of the symmetric limit, one side with ``f >= |r|``, ``x = g``."""

    side: _Side
    r: Array
    counted: int = 2
    decompositions: tuple[int, int] = (1, 1)

    @property
    def sides(self) -> tuple[_Side, _Side]:
        return self.side, self.side

    @property
    def bounds(self) -> Bounds:
        return self.side.bounds

    def split(self, x: Array) -> tuple[Array, Array, Array | None]:
        return x, x, None

    def objective(self, x: Array) -> tuple[float, Array]:
        """Minus ``g'|r| - Omega*(V Diag(g - b/n) V')`` and its gradient."""
        w, U = self.side.positive_part(x)
        target = np.abs(self.r)
        return self.side.value(w) - float(x @ target), self.side.f(w, U) - target

    def operators(self, x: Array) -> tuple[Array, Array]:
        A = self.side.operator(*self.side.positive_part(x))
        return A, A


@dataclass(frozen=True)
class _OperatorDual:
    """Dual with the operator penalty, ``x = (g_lo, g_up, W)``, ``W`` stored in full and symmetrised."""

    side: _Side
    r: Array
    lam_pen1: float
    lam_pen2: float
    counted: int = 1
    decompositions: tuple[int, int] = (3, 2)

    @property
    def sides(self) -> tuple[_Side, _Side]:
        return self.side, self.side

    @property
    def bounds(self) -> Bounds:
        free: Bounds = [(None, None)] * len(self.side.V) ** 2
        return self.side.bounds + self.side.bounds + free

    def split(self, x: Array) -> tuple[Array, Array, Array]:
        p, n = self.side.V.shape
        square = x[2 * n :].reshape(p, p)
        return x[:n], x[n : 2 * n], (square + square.T) / 2

    def _penalty_conjugate(self, W: Array) -> tuple[float, Array]:
        """Value and gradient of ``sum_i max(0, |eig_i(W)| - lam_pen1)^2 / (4 lam_pen2)``."""
        e, Q = np.linalg.eigh(W)
        excess = np.sign(e) * np.maximum(np.abs(e) - self.lam_pen1, 0.0)
        value = float(excess @ excess) / (4 * self.lam_pen2)
        return value, np.asarray((Q * (excess / (2 * self.lam_pen2))) @ Q.T)

    def objective(self, x: Array) -> tuple[float, Array]:
        """Minus the dual and its gradient."""
        side = self.side
        g_lo, g_up, W = self.split(x)
        (w_lo, U_lo), (w_up, U_up) = side.positive_part(g_lo, -W), side.positive_part(g_up, W)
        penalty, dpenalty = self._penalty_conjugate(W)
        # (g_up - g_lo)'r - Ω_pen*(W) - Ω*(V Diag(g_lo - b/n) V' - W) - Ω*(V Diag(g_up - b/n) V' + W)
        value = float((g_up - g_lo) @ self.r) - penalty - side.value(w_lo) - side.value(w_up)
        dW = side.operator(w_lo, U_lo) - side.operator(w_up, U_up) - dpenalty
        gradient = [-self.r - side.f(w_lo, U_lo), self.r - side.f(w_up, U_up), dW.ravel()]
        return -value, -np.concatenate(gradient)

    def operators(self, x: Array) -> tuple[Array, Array]:
        g_lo, g_up, W = self.split(x)
        lower, upper = self.side.positive_part(g_lo, -W), self.side.positive_part(g_up, W)
        return self.side.operator(*lower), self.side.operator(*upper)


def _maximise(
    dual: _Dual,
    began: float,
    *,
    tol: float,
    max_iterations: int,
    callback: Callback | None,
    start: Array | None = None,
) -> RecipeResult:
    paused = 0.0

    def report(x: Array) -> None:
        nonlocal paused
        entered = time.perf_counter()
        stop = callback is not None and callback(*dual.split(x), entered - began - paused)
        paused += time.perf_counter() - entered
        if stop:
            raise StopIteration

    bounds = dual.bounds
    # SciPy's own limit on evaluations (15000) must not end a run before max_iterations does.
    options = {"maxiter": max_iterations, "maxfun": max(15_000, 2 * max_iterations)}
    found = minimize(
        dual.objective,
        np.zeros(len(bounds)) if start is None else start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        tol=tol,
        callback=None if callback is None else report,
        options=options,
    )
    gamma_lower, gamma_upper, alpha_0 = dual.split(found.x)
    lower, upper = dual.operators(found.x)
    per_evaluation, recovery = dual.decompositions
    return RecipeResult(
        value=-dual.counted * float(found.fun),
        lower=lower,
        upper=upper,
        V_lo=dual.sides[0].V,
        V_up=dual.sides[1].V,
        gamma_lower=gamma_lower,
        gamma_upper=gamma_upper,
        alpha_0=alpha_0,
        iterations=int(found.nit),
        decompositions=per_evaluation * int(found.nfev) + recovery,
        seconds=time.perf_counter() - began - paused,
        message=str(found.message),
    )


def _check_penalties(b: float, lam1: float, lam2: float, tau: float, *symmetry: float) -> None:
    if not 0 <= tau < 0.5:
        raise ValueError(f"tau is the share outside on each side: expected 0 <= tau < 1/2, got {tau}")
    if not (0 <= b < math.inf and 0 <= lam1 < math.inf and 0 < lam2 < math.inf):
        raise ValueError(f"need b >= 0, lam1 >= 0 and lam2 > 0, all finite; got {b}, {lam1}, {lam2}")
    if not all(value >= 0 for value in symmetry):
        raise ValueError(f"symmetry penalties must be non-negative, got {symmetry}")


def paper_recipe(
    K_lo: Array,
    K_up: Array,
    r: Array,
    *,
    b: float,
    lam1: float,
    lam2: float,
    lam_pen: float,
    tau: float = 0.0,
    tol: float = 1e-2,
    max_iterations: int = 10_000,
    callback: Callback | None = None,
    start: RecipeResult | None = None,
) -> RecipeResult:
    """Maximise the dual with the training-set penalty, the way the paper does.

    Parameters
    ----------
    K_lo, K_up : ndarray of shape (n, n)
        Kernel matrices of the lower and of the upper function.
    r : ndarray of shape (n,)
        Residuals ``y - m_hat(X)``.
    b, lam1, lam2 : float
        Width, trace and Frobenius penalties.
    lam_pen : float
        Weight of ``sum_i (f_lo(X_i) - f_up(X_i))^2`` in [0, inf]: 0 drops ``alpha_0``, inf is the symmetric
        problem, which needs equal kernels.
    tau : float
        0, or points may lie outside at the price ``b/(n tau)`` for each unit, which bounds the multipliers. In the
        symmetric problem a point is outside once, not once per side: the bound is ``b/(2 n tau)``.
    tol : float
        Handed to SciPy, ``ftol = gtol = tol``; 0 runs on until the callback or ``max_iterations`` stops it,
        or no step improves the value any more.
    max_iterations : int
        Bound on L-BFGS iterations.
    callback : callable, optional
        Called as ``callback(gamma_lo, gamma_up, alpha_0, seconds)`` after each iteration; True stops the run.
    start : RecipeResult, optional
        Of the same points with another finite, positive penalty: the paper's warm start from its multipliers.

    Returns
    -------
    RecipeResult
    """
    _check_penalties(b, lam1, lam2, tau, lam_pen)
    if start is not None and not (0 < lam_pen < math.inf and start.alpha_0 is not None):
        raise ValueError(f"start was given with lam_pen = {lam_pen}: both runs need a finite, positive lam_pen")
    began = time.perf_counter()
    same = K_lo is K_up or np.array_equal(K_lo, K_up)
    if lam_pen == math.inf and not same:
        raise ValueError("lam_pen = inf needs the same kernel on both sides")
    share = 2 * tau if lam_pen == math.inf else tau
    lower = _Side(_features(K_lo), b, lam1, lam2, share)
    upper = lower if same else _Side(_features(K_up), b, lam1, lam2, share)
    dual: _Dual
    dual = _SymmetricDual(lower, r) if lam_pen == math.inf else _TrainingDual(lower, upper, r, lam_pen)
    first = None
    if start is not None and start.alpha_0 is not None:
        first = np.concatenate([start.gamma_lower, start.gamma_upper, start.alpha_0])
    return _maximise(dual, began, tol=tol, max_iterations=max_iterations, callback=callback, start=first)


def paper_recipe_operator(
    K: Array,
    r: Array,
    *,
    b: float,
    lam1: float,
    lam2: float,
    lam_pen1: float,
    lam_pen2: float,
    tau: float = 0.0,
    tol: float = 1e-2,
    max_iterations: int = 10_000,
    callback: Callback | None = None,
) -> RecipeResult:
    """Maximise the dual with the operator penalty, the way the paper does.

    The penalty is ``lam_pen1 ||A_lo - A_up||_* + lam_pen2 ||A_lo - A_up||_F^2`` with ``lam_pen2`` positive
    and both finite; the limits are those of `paper_recipe`. The other parameters are as there, except that
    the third argument of the callback is the ``(p, p)`` matrix ``W``.
    """
    _check_penalties(b, lam1, lam2, tau, lam_pen1, lam_pen2)
    if not (lam_pen1 < math.inf and 0 < lam_pen2 < math.inf):
        raise ValueError(f"need a finite lam_pen1 and 0 < lam_pen2 < inf, got {lam_pen1} and {lam_pen2}")
    began = time.perf_counter()
    dual = _OperatorDual(_Side(_features(K), b, lam1, lam2, tau), r, lam_pen1, lam_pen2)
    result = _maximise(dual, began, tol=tol, max_iterations=max_iterations, callback=callback)
    return replace(result, alpha_0=None, W=result.alpha_0)
