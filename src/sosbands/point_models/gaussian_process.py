"""Gaussian process regression with one lengthscale per feature and one noise variance, divided by weights of rows.

scikit-learn's `GaussianProcessRegressor` can do the same; its gradient builds an ``(n, n, d)`` array. Here the gradient
of the marginal likelihood in all lengthscales costs one matrix product, which is several times faster for 8 features.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, get_lapack_funcs, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._arguments import check, is_count, read_weights
from sosbands._threads import ONE_THREAD
from sosbands._types import Array
from sosbands.kernels.landmark_kernel import LandmarkKernel
from sosbands.kernels.stationary import StationaryKernel, matern52

# Bounds in standardised units. Variance over noise is at most 1e9, so that Cholesky never fails.
VARIANCE_BOUNDS = (1e-3, 1e3)
NOISE_BOUNDS = (1e-6, 1e2)
LENGTHSCALE_BOUNDS = (1e-2, 1e3)
WEIGHT_BOUNDS = (1e-6, 1e3)  # of rows, relative to their mean
START_LENGTHSCALES = (0.1, 0.3, 1.0, 3.0)  # times sqrt(d)
START_NOISES = (1e-3, 0.1, 0.5)
START_ROWS = 500  # at most so many rows, evenly spaced, rank the starts
LIKELIHOOD_ROWS = 1000  # its cost grows with their cube, what they say about a few numbers hardly
LIKELIHOOD_TOL = 1e-7  # relative; what is left of the likelihood then is far below what the data say of it
BLOCK_ENTRIES = 500_000  # of the kernel matrix between new and learning rows


def log_marginal_likelihood(theta: Array, Z: Array, z: Array, ratio: Array | float = 1.0) -> tuple[float, Array]:
    """Log marginal likelihood of a Matern-5/2 process with noise, and its gradient.

    Parameters
    ----------
    theta : ndarray of shape (2 + d,)
        Logarithms of the variance, the noise variance and the d lengthscales.
    Z : ndarray of shape (n, d)
        Rows.
    z : ndarray of shape (n,)
        Targets, of mean zero under the process.
    ratio : ndarray of shape (n,) or float
        Noise variance of each row over that of `theta`.
    """
    n = len(z)
    variance, noise = np.exp(theta[:2])
    U = Z / np.exp(theta[2:])
    t = np.sqrt(5.0) * pdist(U)  # each pair once
    decay = np.exp(-t)
    K = squareform(variance * (1.0 + t + t**2 / 3.0) * decay)
    S = squareform((5.0 / 3.0) * variance * (1.0 + t) * decay)  # dK_ij/d log ell_k = S_ij (u_ik - u_jk)^2
    K[np.diag_indices(n)] = variance
    C = K + np.diag(noise * ratio * np.ones(n))
    L = cholesky(C, lower=True, overwrite_a=True, check_finite=False)
    a = cho_solve((L, True), z, check_finite=False)
    value = -0.5 * float(z @ a) - float(np.log(np.diag(L)).sum()) - 0.5 * n * np.log(2 * np.pi)
    # d value/d C = (a a' - C^-1)/2; of the inverse the half below the diagonal is enough, as K and S are symmetric
    half = _half_of_inverse(L)
    gradient = np.empty_like(theta)
    gradient[0] = 0.5 * float(a @ K @ a) - float(np.vdot(half, K)) + 0.5 * variance * float(np.trace(half))
    gradient[1] = 0.5 * noise * (float(a @ (ratio * a)) - float((ratio * np.diag(half)).sum()))
    half *= S
    aU = a[:, None] * U
    gradient[2:] = (a * (S @ a)) @ U**2 - np.einsum("ik,ik->k", aU, S @ aU)
    gradient[2:] -= (half.sum(axis=0) + half.sum(axis=1)) @ U**2 - 2 * np.einsum("ik,ik->k", U, half @ U)
    return value, gradient


def _half_of_inverse(L: Array) -> Array:
    """The inverse of ``L L'`` on and below the diagonal, zeros above."""
    (potri,) = get_lapack_funcs(("potri",), (L,))
    half: Array = potri(L, lower=True)[0]
    return half


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process with an anisotropic Matern-5/2 kernel and noise, fitted by maximum marginal likelihood.

    Features and targets are standardised inside. The likelihood is looked at on a small grid of common lengthscales and
    noise levels and then maximised by L-BFGS-B from the best points of it; of more than 1000 rows it is that of 1000 of
    them, always the same, while the process itself is conditioned on all. There is no randomness.

    Parameters
    ----------
    n_starts : int
        From how many points of the grid the likelihood is maximised.
    max_iter : int
        Iterations of L-BFGS-B from each start.
    start : ndarray of shape (2 + n_features,), optional
        Where L-BFGS-B starts, instead of the grid: `theta_` of a process of similar rows.
    max_rows : int, optional
        Of more rows, so many, always the same, make the process; None takes all. Such a process has no leave-one-out
        residuals of all rows.

    Attributes
    ----------
    theta_ : ndarray of shape (2 + n_features,)
        Logarithms of variance, noise variance and lengthscales in standardised units.
    lengthscale_ : ndarray of shape (n_features,)
        In the units of X.
    variance_, noise_variance_ : float
        In the squared unit of y.
    log_marginal_likelihood_ : float
        At the optimum, of the standardised targets.
    n_iter_ : int
        Iterations from the best start.
    converged_ : bool
        Whether L-BFGS-B met its tolerance from the best start.
    """

    X_train_: Array
    cholesky_: Array
    dual_coef_: Array
    noise_ratio_: Array
    theta_: Array
    lengthscale_: Array
    variance_: float
    noise_variance_: float
    y_mean_: float
    y_scale_: float
    log_marginal_likelihood_: float
    n_features_in_: int
    n_iter_: int
    converged_: bool

    def __init__(
        self, n_starts: int = 1, max_iter: int = 200, start: Array | None = None, max_rows: int | None = None
    ) -> None:
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.start = start
        self.max_rows = max_rows

    @ONE_THREAD
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the kernel's parameters and the process.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Learning rows.
        y : array-like of shape (n,)
            Targets.
        sample_weight : array-like of shape (n,), optional
            A row of weight w has the noise variance over w, as the mean of w observations would; the mean weight is 1.
        """
        for name in ("n_starts", "max_iter"):
            value = getattr(self, name)
            check(name, value, is_count(value) and value >= 1, "an integer >= 1")
        fine = self.max_rows is None or (is_count(self.max_rows) and self.max_rows >= 1)
        check("max_rows", self.max_rows, fine, "None or an integer >= 1")
        rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weights = np.ones(len(targets)) if sample_weight is None else read_weights(sample_weight, len(targets))
        if self.max_rows is not None:
            some = _sample(len(targets), self.max_rows)
            rows, targets, weights = rows[some], targets[some], weights[some]
        X_mean, X_scale = _location_and_scale(rows)
        y_mean, y_scale = _location_and_scale(np.asarray(targets, dtype=float))
        self.y_mean_, self.y_scale_ = float(y_mean), float(y_scale)
        Z, z = (rows - X_mean) / X_scale, (targets - self.y_mean_) / self.y_scale_
        self.noise_ratio_ = _noise_ratio(weights)
        some = _sample(len(z), LIKELIHOOD_ROWS)
        theta = self.theta_ = self._maximise(Z[some], z[some], self.noise_ratio_[some])
        variance, noise = np.exp(theta[:2])
        self.lengthscale_ = np.exp(theta[2:]) * X_scale
        self.variance_, self.noise_variance_ = float(variance) * self.y_scale_**2, float(noise) * self.y_scale_**2
        self.X_train_ = rows / self.lengthscale_
        C = variance * matern52(cdist(self.X_train_, self.X_train_)) + np.diag(noise * self.noise_ratio_)
        self.cholesky_ = cholesky(C, lower=True, check_finite=False)
        self.dual_coef_ = cho_solve((self.cholesky_, True), z, check_finite=False)
        return self

    @ONE_THREAD
    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Mean of the process, and on demand the standard deviation of a new observation.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows.
        return_std : bool
            Whether to return the standard deviation too; it includes the noise.

        Returns
        -------
        ndarray of shape (n,), or a pair of them
        """
        check_is_fitted(self)
        U = validate_data(self, X, dtype=np.float64, reset=False) / self.lengthscale_
        k = LandmarkKernel(StationaryKernel("matern52", (1.0,)), self.X_train_)
        blocks = k.blocks(U, max(1, BLOCK_ENTRIES // len(self.X_train_)))
        mean, std = (np.concatenate(part) for part in zip(*(self._moments(K, return_std) for K in blocks), strict=True))
        return (mean, std) if return_std else mean

    def leave_one_out_residuals(self) -> Array:
        """Error at every learning row of the process that is conditioned on all the others, in the unit of y.

        Each row is left out of the conditioning only: the lengthscales, the two variances and the mean of the process,
        which is the mean of all targets, stay those of the whole fit and have seen the row. Rows with an equal twin
        keep it. A residual has the sign of the in-sample one and is at least as large. With one row it is zero.

        Returns
        -------
        ndarray of shape (n,)
            Target minus prediction, in the order of the rows given to `fit`.
        """
        check_is_fitted(self)
        # Row i of C^-1 is [C^-1]_ii (1, -c_i' C_(-i)^-1), with c_i the covariances of row i with the others and C_(-i)
        # that of these, so that (C^-1 z)_i = [C^-1]_ii (z_i - c_i' C_(-i)^-1 z_(-i)).
        return np.asarray(self.y_scale_ * self.dual_coef_ / self._precisions())

    def leave_one_out_std(self) -> Array:
        """Standard deviation that this process, conditioned on all the others, gives to every observation.

        It includes the noise, as that of `predict`, and is in the unit of y; what is left out and what stays is told in
        `leave_one_out_residuals`.

        Returns
        -------
        ndarray of shape (n,)
            ``y_scale_ / sqrt([C^-1]_ii)``, in the order of the rows given to `fit`; the noise is that of weight 1.
        """
        check_is_fitted(self)
        # 1/[C^-1]_ii is the Schur complement C_ii - c_i' C_(-i)^-1 c_i: the variance of z_i given the others.
        variances = 1 / self._precisions() + (1 - self.noise_ratio_) * self.noise_variance_ / self.y_scale_**2
        return np.asarray(self.y_scale_ * np.sqrt(variances))

    @ONE_THREAD
    def _precisions(self) -> Array:
        """``[C^-1]_ii`` of the learning rows, in standardised units."""
        return np.diag(_half_of_inverse(self.cholesky_))

    def _moments(self, K: Array, return_std: bool) -> tuple[Array, Array]:
        """Mean and standard deviation, from correlations of new rows with the learning rows."""
        variance, noise = self.variance_ / self.y_scale_**2, self.noise_variance_ / self.y_scale_**2
        mean = self.y_mean_ + self.y_scale_ * variance * (K @ self.dual_coef_)
        if not return_std:
            return mean, mean
        half = solve_triangular(self.cholesky_, K.T, lower=True, check_finite=False)
        left = variance - variance**2 * np.einsum("ij,ij->j", half, half)
        return mean, self.y_scale_ * np.sqrt(np.maximum(left, 0.0) + noise)

    def _maximise(self, Z: Array, z: Array, ratio: Array) -> Array:
        def cost(theta: Array) -> tuple[float, Array]:
            value, gradient = log_marginal_likelihood(theta, Z, z, ratio)
            return -value, -gradient

        bounds = np.log([VARIANCE_BOUNDS, NOISE_BOUNDS, *[LENGTHSCALE_BOUNDS] * Z.shape[1]])
        if self.start is None:
            some = slice(None, None, -(-len(z) // START_ROWS))
            few = Z[some], z[some], ratio[some]
            ranked = sorted(_starts(Z.shape[1]), key=lambda theta: -log_marginal_likelihood(theta, *few)[0])
        else:
            fine = np.shape(self.start) == (2 + Z.shape[1],)
            check("start", self.start, fine, f"{2 + Z.shape[1]} numbers, as theta_ of a process of such rows")
            ranked = [np.asarray(self.start, dtype=float)]
        options = {"maxiter": self.max_iter, "ftol": LIKELIHOOD_TOL}
        results = [
            minimize(cost, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            for theta in ranked[: self.n_starts]
        ]
        best = min(results, key=lambda result: float(result.fun))
        self.log_marginal_likelihood_ = -float(best.fun)
        self.n_iter_ = max(1, int(best.nit))
        self.converged_ = bool(best.success)
        return np.asarray(best.x, dtype=float)


def _noise_ratio(weights: Array) -> Array:
    """Noise variance of each row over that of a row of the mean weight, within what a factorisation can take."""
    return np.asarray(1 / np.clip(weights / (weights.mean() or 1.0), *WEIGHT_BOUNDS))


def _sample(n: int, most: int) -> slice | Array:
    """All of n rows, or so many of them, always the same."""
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _starts(n_features: int) -> list[Array]:
    """Common lengthscales and noise levels, with unit variance."""
    return [
        np.log([1.0, noise, *[ell * np.sqrt(n_features)] * n_features])
        for ell in START_LENGTHSCALES
        for noise in START_NOISES
    ]


def _location_and_scale(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation along the rows; a constant is divided by 1."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    rounding = 1e-12 * np.abs(mean)
    return mean, np.where(scale > rounding, scale, 1.0)
