"""The loss of relaxed quantile regression in centre and squared half width, and its minimiser over linear functions.

With ``c = (l + u)/2``, ``t = (u - l)^2/4`` and ``r = y - c`` the product ``kappa = (y - l)(y - u)`` is ``r^2 - t``, and
``rho_level(kappa)`` the pinball loss of the level-quantile of ``r^2``. Its derivative in t is ``1{r^2 < t} - level``,
zero in the mean where ``P(l < y < u) = level``. The width penalty ``lam (u - l)^2/2 = 2 lam t`` alone would change that
to ``level - 2 lam``, so rho is taken at ``level + 2 lam``. The sum of both is ::

    rho_{level + 2 lam}(r^2 - t) + 2 lam t  =  rho_level(r^2 - t) + 2 lam r^2
                                            =  (level + 2 lam) r^2 - level t + max(t - r^2, 0)

with the derivative in t as above. For ``2 lam >= 1 - level`` it is a maximum of two functions that are convex in
``(c, t)``: no local minima where c and t are linear. Its derivative in c says where the interval lies:
``2 lam c = (1 - level) E[y | y outside] + (2 lam - 1 + level) E[y]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from sosbands._types import Array

SMOOTHING = 0.05  # half width of the rounded corner at t = r^2, in the unit in which a typical t is 1


@dataclass(frozen=True)
class Target:
    """What is minimised: observations, level, width penalty and the two ridges.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Observations, in a unit in which squared half widths are of order 1.
    level : float
        Share of them that shall lie inside.
    width_penalty : float
        lam.
    center_ridge, width_ridge : float
        Factors of the squared norms of the coefficients of c and of t.
    """

    y: Array
    level: float
    width_penalty: float
    center_ridge: float
    width_ridge: float

    @property
    def curvature(self) -> float:
        """Factor of ``r^2``."""
        return self.level + 2 * self.width_penalty


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of centred features: in them both ridges are diagonal, and one decomposition serves all ridges.

    Parameters
    ----------
    mean : ndarray of shape (p,)
        Of the features.
    directions : ndarray of shape (p, p)
        One axis per column.
    variances : ndarray of shape (p,)
        Of the features along the axes.
    coordinates : ndarray of shape (n, p)
        Of the learning rows.
    """

    mean: Array
    directions: Array
    variances: Array
    coordinates: Array

    @classmethod
    def of(cls, features: Array) -> Self:
        """Axes of features, shape (n, p)."""
        mean = features.mean(axis=0)
        centred = features - mean
        variances, directions = eigh(centred.T @ centred / len(features), check_finite=False)
        return cls(mean, directions, np.maximum(variances, 0.0), centred @ directions)

    def left_out_residuals(self, y: Array, ridge: float) -> Array:
        """Residuals of ridge regression at each row, learnt from all others."""
        n = len(y)
        shrunk = self.coordinates / (self.variances + ridge)
        centred = y - y.mean()
        fitted = shrunk @ (self.coordinates.T @ centred / n)
        leverage = 1 / n + np.einsum("ij,ij->i", shrunk, self.coordinates) / n
        return np.asarray((centred - fitted) / np.maximum(1 - leverage, 1e-10))

    def coefficients(self, linear: Array) -> Array:
        """Intercepts and coefficients of the original features, shape (1 + p, 2), of functions along the axes."""
        slopes = self.directions @ linear[1:]
        return np.vstack([linear[:1] - self.mean @ slopes, slopes])


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the search ended.

    Parameters
    ----------
    linear : ndarray of shape (1 + p, 2)
        Intercept and coefficients along the axes, of c and of t.
    iterations : int
    converged : bool
        Whether L-BFGS met its tolerance.
    """

    linear: Array
    iterations: int
    converged: bool


def relaxed_loss(y: Array, center: Array, squared: Array, level: float, width_penalty: float) -> Array:
    """Loss of each observation, ``rho_level(r^2 - t) + 2 lam r^2``, not smoothed.

    Parameters
    ----------
    y, center, squared : arrays of shape (n,)
        Observations, centres and squared half widths.
    level, width_penalty : float
        As in `Target`.
    """
    r2 = np.square(y - center)
    return np.asarray((level + 2 * width_penalty) * r2 - level * squared + np.maximum(squared - r2, 0.0))


def objective(linear: Array, coordinates: Array, target: Target) -> tuple[float, Array]:
    """Mean smoothed loss with both ridges, and its gradient.

    Parameters
    ----------
    linear : ndarray of shape (1 + p, 2)
        As in `Minimum`.
    coordinates : ndarray of shape (n, p)
    target : Target
    """
    n = len(target.y)
    slopes = linear[1:]
    center, squared = (linear[0] + coordinates @ slopes).T
    r = target.y - center
    v = squared - r**2
    # max(v, 0) with a parabola between -SMOOTHING and SMOOTHING, too large by SMOOTHING/4 at most; still convex
    inside = np.clip((v + SMOOTHING) / (2 * SMOOTHING), 0.0, 1.0)
    hinge = np.where(v < SMOOTHING, SMOOTHING * inside**2, v)
    ridges = np.array([2 * target.curvature * target.center_ridge, target.width_ridge])
    value = np.mean(target.curvature * r**2 - target.level * squared + hinge) + 0.5 * np.sum(ridges * slopes**2)
    per_row = np.column_stack([-2 * (target.curvature - inside) * r, inside - target.level]) / n
    gradient = np.vstack([per_row.sum(axis=0), coordinates.T @ per_row + ridges * slopes])
    return float(value), gradient


def starting_point(axes: Axes, target: Target) -> Array:
    """Ridge regression with a constant width that covers the share `level` of its residuals."""
    y, n = target.y, len(target.y)
    linear = np.zeros((1 + len(axes.variances), 2))
    linear[0, 0] = y.mean()
    linear[1:, 0] = axes.coordinates.T @ (y - y.mean()) / n / (axes.variances + target.center_ridge)
    r = y - linear[0, 0] - axes.coordinates @ linear[1:, 0]
    linear[0, 1] = np.quantile(r**2, target.level)
    return linear


def minimise(
    axes: Axes, target: Target, start: Array | None = None, *, max_iter: int = 500, tol: float = 1e-9
) -> Minimum:
    """Minimise `objective` by L-BFGS, in coordinates in which ridge regression has the identity as its Hessian.

    Parameters
    ----------
    axes : Axes
    target : Target
    start : ndarray of shape (1 + p, 2), optional
        As in `Minimum`; by default `starting_point`.
    max_iter : int
        Iterations.
    tol : float
        Relative decrease of the objective at which the search ends.
    """
    linear = starting_point(axes, target) if start is None else start
    ridges = np.array([target.center_ridge, target.width_ridge])
    scale = np.vstack([np.ones(2), 1 / np.sqrt(axes.variances[:, None] + ridges)])

    def cost(theta: Array) -> tuple[float, Array]:
        value, gradient = objective(scale * theta.reshape(scale.shape), axes.coordinates, target)
        return value, (scale * gradient).ravel()

    options = {"maxiter": max_iter, "maxcor": 20, "ftol": tol, "gtol": 1e-5}
    result = minimize(cost, (linear / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return Minimum(scale * result.x.reshape(scale.shape), int(result.nit), bool(result.success))


def ends_of(linear: Array, coordinates: Array) -> tuple[Array, Array]:
    """Ends ``c -+ sqrt(max(t, 0))``, shape (n,) each."""
    center, squared = (linear[0] + coordinates @ linear[1:]).T
    half = np.sqrt(np.maximum(squared, 0.0))
    return center - half, center + half
