"""Prediction of a Gaussian process with a second one for the logarithm of its noise: arrays only, no hetgpy.

The kernel is the product over the features of Matern-5/2 functions, as in hetGP, where our `GaussianProcess` has the
radial one. With ``C = K + diag(noise/replicates + eps)``, trend ``beta`` and variance ``nu``::

    mean = beta + k' C^-1 (z - beta 1)
    sd2  = nu (1 - k' C^-1 k + (1 - 1'C^-1 k)^2 / 1'C^-1 1)
    nugs = nu exp(noise mean + k_g' w)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from sosbands._types import Array


def product_matern52(U: Array, V: Array, lengthscale: Array) -> Array:
    """``prod_j (1 + t_j + t_j^2/3) exp(-t_j)`` with ``t_j = sqrt(5) |u_j - v_j| / lengthscale_j``, shape (n, m)."""
    polynomial, exponent = np.ones((len(U), len(V))), np.zeros((len(U), len(V)))
    for u, v, ell in zip(U.T, V.T, lengthscale, strict=True):
        t = np.sqrt(5.0) / ell * np.abs(u[:, None] - v[None, :])
        polynomial *= 1.0 + t + t**2 / 3.0
        exponent -= t
    return polynomial * np.exp(exponent)


@dataclass(frozen=True, eq=False)
class NoisyProcess:
    """A fitted process.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        Different learning rows.
    lengthscale, noise_lengthscale : ndarray of shape (d,)
    factor : ndarray of shape (n, n)
        Lower Cholesky factor of C.
    weights, ones : ndarray of shape (n,)
        ``C^-1 (z - beta 1)`` and ``C^-1 1``.
    trend, variance : float
        beta and nu.
    noise_level : float
        ``nu exp(noise mean)``.
    noise_weights : ndarray of shape (n,)
        w; zero where the noise is constant.
    """

    points: Array
    lengthscale: Array
    noise_lengthscale: Array
    factor: Array
    weights: Array
    ones: Array
    trend: float
    variance: float
    noise_level: float
    noise_weights: Array

    def mean(self, U: Array) -> Array:
        """Mean at the rows of U."""
        return self.trend + product_matern52(U, self.points, self.lengthscale) @ self.weights

    def variances(self, U: Array) -> tuple[Array, Array]:
        """Variance of the mean (sd2) and of the noise (nugs) at the rows of U."""
        noise = np.full(len(U), self.noise_level)
        if not len(self.points):
            return np.zeros(len(U)), noise
        k = product_matern52(U, self.points, self.lengthscale)
        explained = np.square(solve_triangular(self.factor, k.T, lower=True, check_finite=False)).sum(axis=0)
        of_trend = np.square(1.0 - k @ self.ones) / self.ones.sum()
        if self.noise_weights.any():
            noise *= np.exp(product_matern52(U, self.points, self.noise_lengthscale) @ self.noise_weights)
        return self.variance * np.maximum(1.0 - explained + of_trend, 0.0), noise


def constant_process(n_features: int, mean: float, variance: float) -> NoisyProcess:
    """A constant with constant noise, for data that say no more."""
    none, unit = np.zeros(0), np.ones(n_features)
    points, factor = np.zeros((0, n_features)), np.zeros((0, 0))
    return NoisyProcess(points, unit, unit, factor, none, none, mean, 0.0, variance, none)


def process_from(model: Any) -> NoisyProcess:
    """The numbers of a fitted `hetgpy.hetGP`, or of the `hetgpy.homGP` that it turns into where noise is constant."""
    points, lengthscale = np.asarray(model.X0), _per_feature(model.theta, model.X0)
    varying = model.get("Delta") is not None
    noise = np.asarray(model.Lambda if varying else np.full(len(points), float(np.squeeze(model.g))))
    C = product_matern52(points, points, lengthscale) + np.diag(noise / model.mult + model.eps)
    factor = cholesky(C, lower=True)
    trend, variance = float(np.squeeze(model.beta0)), float(np.squeeze(model.nu_hat))
    if varying:
        noise_lengthscale = _per_feature(model.theta_g, points)
        Cg = product_matern52(points, points, noise_lengthscale) + np.diag(model.eps + model.g / model.mult)
        noise_mean = float(np.squeeze(model.nmean))
        noise_weights = cho_solve((cholesky(Cg, lower=True), True), model.Delta - noise_mean)
    else:
        noise_lengthscale, noise_mean, noise_weights = lengthscale, float(np.log(noise[0])), np.zeros(len(points))
    return NoisyProcess(
        points=points,
        lengthscale=lengthscale,
        noise_lengthscale=noise_lengthscale,
        factor=factor,
        weights=cho_solve((factor, True), np.ravel(model.Z0) - trend),
        ones=cho_solve((factor, True), np.ones(len(points))),
        trend=trend,
        variance=variance,
        noise_level=variance * float(np.exp(noise_mean)),
        noise_weights=noise_weights,
    )


def _per_feature(lengthscale: Any, points: Array) -> Array:
    return np.broadcast_to(np.ravel(np.asarray(lengthscale, dtype=float)), points.shape[1]).copy()
