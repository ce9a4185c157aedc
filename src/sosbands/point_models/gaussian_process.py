"""Gaussian process regression with one lengthscale per feature and one noise variance, divided by weights of rows.

scikit-learn's `GaussianProcessRegressor` can do the same; its gradient builds an ``(n, n, d)`` array. Here the gradient
of the marginal likelihood in all lengthscales costs one matrix product, which is several times faster for 8 features.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._arguments import check, is_count, read_weights
from sosbands._threads import ONE_THREAD, cached_property
from sosbands._types import Array
from sosbands.kernels.features import LandmarkKernel
from sosbands.kernels.kernels import StationaryKernel, matern52

# Bounds in standardised units. Variance over noise is at most 1e9, so that Cholesky never fails.
VARIANCE_BOUNDS = (1e-3, 1e3)
NOISE_BOUNDS = (1e-6, 1e2)
LENGTHSCALE_BOUNDS = (1e-2, 1e3)
WEIGHT_BOUNDS = (1e-6, 1e3)  # of rows, relative to their mean
START_LENGTHSCALES = (0.1, 0.3, 1.0, 3.0)  # times sqrt(d)
START_NOISES = (1e-3, 0.1, 0.5)
LIKELIHOOD_ROWS = 500  # its cost grows with their cube, what they say about a few numbers hardly; 250 say less
# Where there are many lengthscales, iterations that only follow single rows are spared, and a few on more rows follow.
MANY_FEATURES, ENOUGH_ITERATIONS, MORE_ROWS, MORE_ITERATIONS = 100, 40, 1000, 8
LIKELIHOOD_TOL = 1e-4  # relative: what is gained below it is not gained on new rows
SMALL_SHARE = 1e-4  # of the noise variance, which errors of the covariances may reach
BLOCK_COLUMNS = 64  # of covariances computed at a time: they stay in the cache
BLOCK_ENTRIES = 500_000  # of the kernel matrix between new and learning rows


class MarginalLikelihood:
    """Log marginal likelihood of a Matern-5/2 process with noise, and its gradient, as a function of `theta`.

    ``theta`` holds the logarithms of the variance, the noise variance and the d lengthscales; `ratio` is the noise
    variance of each row over that of `theta`. Of the two n x n matrices only the lower halves are filled.
    """

    def __init__(self, Z: Array, z: Array, ratio: Array | float = 1.0) -> None:
        self.Z, self.z, self.ratio = Z, z, ratio * np.ones(len(z))
        self.C, self.S = np.empty((2, len(z), len(z))).transpose(0, 2, 1)  # columns are contiguous
        self.blocks = [slice(j, min(j + BLOCK_COLUMNS, len(z))) for j in range(0, len(z), BLOCK_COLUMNS)]

    def value(self, theta: Array) -> float:
        """The log likelihood alone."""
        return self._factorised(theta)[0]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient."""
        value, L, a, U = self._factorised(theta)
        n, noise, gradient = len(self.z), np.exp(theta[1]), np.empty_like(theta)
        # d value/d C = (a a' - C^-1)/2, and variance dC/d variance = C - noise Diag(ratio)
        inverse, _ = dpotri(L, lower=1, overwrite_c=1)  # below the diagonal
        fits, left = float(a @ (self.ratio * a)), float(self.ratio @ inverse.diagonal())
        gradient[0] = 0.5 * (float(a @ self.z) - noise * fits - n + noise * left)
        gradient[1] = 0.5 * noise * (fits - left)
        # dC_ij/d log ell_k = 5/3 S_ij (u_ik - u_jk)^2: sums over pairs, each once
        U2, sums = np.square(U), np.zeros(U.shape[1])
        for cols in self.blocks:
            W = np.multiply.outer(a[cols], a[cols.start :])
            W -= inverse[cols.start :, cols].T
            W *= self.S[cols.start :, cols].T
            size = cols.stop - cols.start
            W[:, :size] = np.triu(W[:, :size], 1)
            sums += W.sum(axis=1) @ U2[cols] + W.sum(axis=0) @ U2[cols.start :]
            sums -= 2 * np.einsum("ik,ik->k", U[cols], W @ U[cols.start :])
        gradient[2:] = (5.0 / 3.0) * sums
        return value, gradient

    def _factorised(self, theta: Array) -> tuple[float, Array, Array, Array]:
        """The value, the Cholesky factor of the covariance, ``C^-1 z`` and the rows in lengthscales."""
        (variance, noise), U = np.exp(theta[:2]), self.Z * np.exp(-theta[2:])
        # C and S below the diagonal: v (1 + t + t^2/3) exp(-t) with noise, and v (1 + t) exp(-t)
        squares, ones = np.square(U).sum(axis=1), np.ones(len(U))
        left, right = np.column_stack([-2 * U, squares, ones]), np.column_stack([U, ones, squares])
        # products cancel near the diagonal: what that leaves must be far below the noise
        by_differences = variance * np.finfo(float).eps * float(squares.max()) > SMALL_SHARE * noise
        for cols in self.blocks:
            if by_differences:
                t = cdist(U[cols], U[cols.start :])
            else:
                t = right[cols] @ left[cols.start :].T
                np.sqrt(np.maximum(t, 0.0, out=t), out=t)
            t *= np.sqrt(5.0)
            decay = np.exp(-t)
            decay *= variance
            slope = t + 1.0
            k = np.square(t, out=t)
            k /= 3.0
            k += slope
            self.C[cols.start :, cols] = np.multiply(k, decay, out=k).T
            self.S[cols.start :, cols] = np.multiply(slope, decay, out=slope).T
        self.C.flat[:: len(U) + 1] = variance + noise * self.ratio
        L, failed = dpotrf(self.C, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError(f"the covariance at theta={theta} is not positive definite")
        a, _ = dpotrs(L, self.z, lower=1)
        n = len(a)
        value = -0.5 * float(self.z @ a) - float(np.log(L.diagonal()).sum()) - 0.5 * n * np.log(2 * np.pi)
        return value, L, a, U


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process with an anisotropic Matern-5/2 kernel and noise, fitted by maximum marginal likelihood.

    Features and targets are standardised inside. The likelihood is looked at on a small grid of common lengthscales and
    noise levels and then maximised by L-BFGS-B from the best points of it; of more than 500 rows it is that of 500 of
    them, always the same (and, with more than 100 features, for some last iterations that of 1000), while the process
    itself is conditioned on all. There is no randomness.

    Parameters
    ----------
    n_starts : int
        From how many points of the grid the likelihood is maximised.
    max_iter : int
        Iterations of L-BFGS-B from each start; with more than 100 features at most 40.
    start : ndarray of shape (2 + n_features,) or (k, 2 + n_features), optional
        Where L-BFGS-B may start, instead of the grid: `theta_` of processes of similar rows. The best `n_starts` of
        them are tried.
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
        for name, value in (("n_starts", self.n_starts), ("max_iter", self.max_iter)):
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
        # over that of a row of the mean weight, within what a factorisation can take
        self.noise_ratio_ = np.asarray(1 / np.clip(weights / (weights.mean() or 1.0), *WEIGHT_BOUNDS))
        theta = self.theta_ = self._maximise(Z, z, self.noise_ratio_)
        variance, noise = np.exp(theta[:2])
        self.lengthscale_ = np.exp(theta[2:]) * X_scale
        self.variance_, self.noise_variance_ = float(variance) * self.y_scale_**2, float(noise) * self.y_scale_**2
        self.X_train_ = rows / self.lengthscale_
        self.__dict__.pop("cholesky_", None)  # of an earlier fit
        self.dual_coef_ = cho_solve((self.cholesky_, True), z, check_finite=False)
        return self

    @cached_property
    @ONE_THREAD
    def cholesky_(self) -> Array:
        """Lower Cholesky factor of the covariance of the learning rows, in standardised units; not kept in files."""
        variance, noise = np.exp(self.theta_[:2])
        C = variance * matern52(cdist(self.X_train_, self.X_train_)) + np.diag(noise * self.noise_ratio_)
        return np.asarray(cholesky(C, lower=True, check_finite=False))

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and saving: without the factor, whose size is the square of the number of rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "cholesky_"}

    @ONE_THREAD
    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Mean of the process at rows X, shape (n,), and with `return_std` the standard deviation of an observation.

        It includes the noise.
        """
        check_is_fitted(self)
        U = validate_data(self, X, dtype=np.float64, reset=False) / self.lengthscale_
        k = LandmarkKernel(StationaryKernel("matern52", (1.0,)), self.X_train_)
        variance, noise = self.variance_ / self.y_scale_**2, self.noise_variance_ / self.y_scale_**2
        means, stds = [], []
        for K in k.blocks(U, max(1, BLOCK_ENTRIES // len(self.X_train_))):
            means.append(self.y_mean_ + self.y_scale_ * variance * (K @ self.dual_coef_))
            if return_std:
                half = solve_triangular(self.cholesky_, K.T, lower=True, check_finite=False)
                left = variance - variance**2 * np.einsum("ij,ij->j", half, half)
                stds.append(self.y_scale_ * np.sqrt(np.maximum(left, 0.0) + noise))
        return (np.concatenate(means), np.concatenate(stds)) if return_std else np.concatenate(means)

    def leave_one_out_residuals(self) -> Array:
        """Error at every learning row of the process that is conditioned on all the others: target minus prediction.

        Each row is left out of the conditioning only: the lengthscales, the two variances and the mean of the process,
        which is the mean of all targets, stay those of the whole fit and have seen the row. Rows with an equal twin
        keep it. A residual has the sign of the in-sample one and is at least as large. With one row it is zero. They
        have the order of the rows given to `fit`, shape (n,), and the unit of y.
        """
        check_is_fitted(self)
        # Row i of C^-1 is [C^-1]_ii (1, -c_i' C_(-i)^-1), with c_i the covariances of row i with the others and C_(-i)
        # that of these, so that (C^-1 z)_i = [C^-1]_ii (z_i - c_i' C_(-i)^-1 z_(-i)).
        return np.asarray(self.y_scale_ * self.dual_coef_ / self._precisions())

    def leave_one_out_std(self) -> Array:
        """Standard deviation that this process, conditioned on all the others, gives to every observation.

        ``y_scale_ / sqrt([C^-1]_ii)``, shape (n,). It includes the noise (that of weight 1), as that of `predict`; what
        is left out and what stays is told in `leave_one_out_residuals`.
        """
        check_is_fitted(self)
        # 1/[C^-1]_ii is the Schur complement C_ii - c_i' C_(-i)^-1 c_i: the variance of z_i given the others.
        variances = 1 / self._precisions() + (1 - self.noise_ratio_) * self.noise_variance_ / self.y_scale_**2
        return np.asarray(self.y_scale_ * np.sqrt(variances))

    @ONE_THREAD
    def _precisions(self) -> Array:
        """``[C^-1]_ii`` of the learning rows, in standardised units."""
        return np.asarray(dpotri(self.cholesky_, lower=1)[0].diagonal())

    def _maximise(self, Z: Array, z: Array, ratio: Array) -> Array:
        def likelihood(rows: int) -> MarginalLikelihood:
            some = _sample(len(z), rows)
            return MarginalLikelihood(Z[some], z[some], ratio[some])

        wide, first = Z.shape[1] > MANY_FEATURES, likelihood(LIKELIHOOD_ROWS)
        iterations = min(self.max_iter, ENOUGH_ITERATIONS) if wide else self.max_iter
        d = Z.shape[1]
        if self.start is None:
            grid = product(START_LENGTHSCALES, START_NOISES)
            starts = [np.log([1.0, noise, *[ell * np.sqrt(d)] * d]) for ell, noise in grid]
        else:
            starts = list(np.atleast_2d(np.asarray(self.start, dtype=float)))
            fine = bool(starts) and all(each.shape == (2 + d,) for each in starts)
            check("start", self.start, fine, f"{2 + d} numbers, as theta_ of a process of such rows, or rows of them")
        if len(starts) > 1:
            starts.sort(key=lambda theta: -first.value(theta))
        results = [_ascended(first, theta, iterations) for theta in starts[: self.n_starts]]
        best = min(results, key=lambda result: float(result.fun))
        self.n_iter_, self.converged_ = max(1, int(best.nit)), bool(best.success)
        if wide and len(z) > LIKELIHOOD_ROWS:
            best = _ascended(likelihood(MORE_ROWS), best.x, min(MORE_ITERATIONS, self.max_iter))
            self.n_iter_ += int(best.nit)
        self.log_marginal_likelihood_ = -float(best.fun)
        return np.asarray(best.x, dtype=float)


def _ascended(likelihood: MarginalLikelihood, theta: Array, iterations: int) -> Any:
    """What L-BFGS-B makes of a start, within bounds."""

    def cost(theta: Array) -> tuple[float, Array]:
        value, gradient = likelihood(theta)
        return -value, -gradient

    bounds = np.log([VARIANCE_BOUNDS, NOISE_BOUNDS, *[LENGTHSCALE_BOUNDS] * (len(theta) - 2)])
    options = {"maxiter": iterations, "ftol": LIKELIHOOD_TOL}
    return minimize(cost, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def _sample(n: int, most: int) -> slice | Array:
    """All of n rows, or so many of them, always the same."""
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _location_and_scale(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation along the rows; a constant is divided by 1."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    rounding = 1e-12 * np.abs(mean)
    return mean, np.where(scale > rounding, scale, 1.0)
