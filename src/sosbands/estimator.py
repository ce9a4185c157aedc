"""SoSBandRegressor: calibrated, adaptive, possibly asymmetric intervals around any regressor."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sosbands._types import AnyArray, Array
from sosbands.bands import learn_bands
from sosbands.conformal import Band, IntervalMixin
from sosbands.exceptions import LearningRowsWarning, OffDataWarning
from sosbands.kernels import StationaryKernel
from sosbands.learning_data import (
    dense_points,
    learning_residuals,
    make_preprocessor,
    point_model,
    predict_in_blocks,
    read_target,
    row_hashes,
    split_rows,
    take_rows,
    without_outliers,
)
from sosbands.parameters import check_parameters
from sosbands.sos import evaluate_pair
from sosbands.summary import describe

SUPPORT_WARNING = 0.5


class SoSBandRegressor(IntervalMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Prediction intervals from kernel sum-of-squares bands, with split-conformal calibration.

    Two non-negative functions are learnt around a point model, one below and one above, by a convex problem whose
    solution is certified; a penalty pulls them towards each other, and calibration on held-back rows makes the
    coverage of the intervals hold for any distribution.

    Parameters
    ----------
    estimator : regressor, pipeline, FrozenEstimator or callable, optional
        The point model; it is cloned and fitted on the learning rows. None is a Gaussian process up to 2000 learning
        rows and histogram gradient boosting above.
    confidence_level : float
        Default level of `predict_interval`, which takes any other.
    calibration : {"symmetric", "asymmetric"}
        One quantile that moves both ends, or one for each end.
    calibration_size : float, int or None
        Part or number of the rows given to `fit` that are held back for calibration; None keeps all for learning, and
        `conformalize` must be called with other rows.
    symmetry_penalty : "auto", float or pair
        0 gives independent bands, inf a symmetric one; a pair (nuclear, squared Frobenius) for the operator kind.
        "auto" is 1.
    symmetry_kind : {"training", "operator"}
        Where the difference of the bands is penalised: at the learning points, or as operators.
    lengthscale : "auto", "median", float, array of shape (n_features,) or dict
        Of the kernel, in units of what it sees; {"lower": ..., "upper": ...} gives each side its own. "auto" is the
        median distance.
    kernel : str or kernel object
        "matern52", "matern32", "matern12", "gaussian", or a scikit-learn kernel, which carries its own lengthscale.
    preprocessor : "standardize", None or transformer
        Makes what the kernel sees. A transformer of your own may take categories and missing values.
    width_penalty, trace_penalty, frobenius_penalty : float
        Cost of the mean width, of the trace and of the squared norm of the operators.
    rank : "auto", "exact", int or float in (0, 1)
        Number of kernel features, or the relative trace of the kernel matrix that they may leave out.
    residuals : {"auto", "in-sample", "out-of-fold"}
        Which residuals the bands are learnt from. "auto" takes in-sample ones for the default Gaussian process, the
        smoothing spline, frozen models and callables, and out-of-fold ones for everything else, because models that
        interpolate have in-sample residuals near zero.
    normalize : bool
        Take the residuals relative to their root mean square and the penalties relative to an initial model.
    outlier_fraction : float in [0, 1)
        Part of the learning rows, those with the largest residuals, that the bands need not cover.
    criterion, symmetry_test, test_level
        Reserved for the tuning of lengthscale and symmetry penalty.
    cv : int
        Folds of the out-of-fold residuals.
    solver : {"auto", "newton", "subspace", "lbfgs"}
    tol : float
        Relative duality gap at which the bands count as solved.
    n_jobs : int, optional
        Processes for the out-of-fold residuals.
    random_state : int, RandomState or None
        Of the split and of the folds.
    verbose : int
        Progress lines.

    Attributes
    ----------
    estimator_ : regressor
        The fitted point model.
    preprocessor_ : transformer or None
    lower_, upper_ : SoSFunction
        Band functions of what the preprocessor gives.
    symmetry_penalty_, lengthscale_ : float or pair, float or array or dict
        In use.
    certificate_ : dict
        dual_value, primal_value, gap, violation, status, iterations, decompositions, seconds, n_features,
        trace_left_out.
    active_lower_, active_upper_ : ndarray of int
        Rows given to `fit` that shape each band.
    learning_rows_, calibration_rows_ : ndarray of int
        Rows given to `fit` that were learnt from and held back.
    scores_ : ndarray
        Calibration scores.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | None = 0.5,
        symmetry_penalty: Any = "auto",
        symmetry_kind: str = "training",
        lengthscale: Any = "auto",
        kernel: Any = "matern52",
        preprocessor: Any = "standardize",
        width_penalty: float = 10.0,
        trace_penalty: float = 1.0,
        frobenius_penalty: float = 1.0,
        rank: Any = "auto",
        residuals: str = "auto",
        normalize: bool = True,
        outlier_fraction: float = 0.0,
        criterion: str = "hsic",
        symmetry_test: str | None = "auto",
        test_level: float = 0.05,
        cv: int = 5,
        solver: str = "auto",
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.symmetry_penalty = symmetry_penalty
        self.symmetry_kind = symmetry_kind
        self.lengthscale = lengthscale
        self.kernel = kernel
        self.preprocessor = preprocessor
        self.width_penalty = width_penalty
        self.trace_penalty = trace_penalty
        self.frobenius_penalty = frobenius_penalty
        self.rank = rank
        self.residuals = residuals
        self.normalize = normalize
        self.outlier_fraction = outlier_fraction
        self.criterion = criterion
        self.symmetry_test = symmetry_test
        self.test_level = test_level
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Self:
        """Learn the point model and the bands, and calibrate on the rows held back.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        y : array of shape (n,)
        groups : array of shape (n,), optional
            Labels of the rows: calibration is done within each group.
        """
        check_parameters(self)
        X = self._check_X(X, reset=True)
        y = read_target(y, len(X))
        if groups is not None and len(groups) != len(X):
            raise ValueError(f"groups has {len(groups)} entries: expected {len(X)}, one per row of X")
        rng = check_random_state(self.random_state)
        learn, held = split_rows(len(X), self.calibration_size, rng)
        self.learning_rows_, self.calibration_rows_ = learn, held
        if hasattr(self, "calibration_"):
            del self.calibration_
        self._learn(take_rows(X, learn), y[learn], learn, rng)
        if self.calibration_size is not None:
            held_groups = None if groups is None else np.asarray(groups)[held]
            super().conformalize(take_rows(X, held), y[held], groups=held_groups)
        return self

    def _learn(self, X: Any, y: Array, rows: AnyArray, rng: np.random.RandomState) -> None:
        """Point model, residuals, preprocessor and bands on the learning rows."""
        self.estimator_ = point_model(self.estimator, len(y), self.random_state).fit(X, y)
        cv = KFold(min(self.cv, len(y)), shuffle=True, random_state=rng)
        r = learning_residuals(self.estimator_, X, y, rule=self.residuals, cv=cv, n_jobs=self.n_jobs)
        self.preprocessor_ = make_preprocessor(self.preprocessor, X)
        points = dense_points(self.preprocessor_, X)
        keep = without_outliers(r, self.outlier_fraction)
        self.lengthscale_ = "median" if isinstance(self.lengthscale, str) else self.lengthscale
        self.symmetry_penalty_ = 1.0 if isinstance(self.symmetry_penalty, str) else self.symmetry_penalty
        bands = learn_bands(
            points[keep],
            r[keep],
            kernel=self.kernel,
            lengthscale=self.lengthscale_,
            width_penalty=self.width_penalty,
            trace_penalty=self.trace_penalty,
            frobenius_penalty=self.frobenius_penalty,
            symmetry_penalty=self.symmetry_penalty_,
            symmetry_kind=self.symmetry_kind,
            rank=self.rank,
            solver=self.solver,
            tol=self.tol,
            normalize=self.normalize,
        )
        self.lower_, self.upper_ = bands.lower.deployed(), bands.upper.deployed()
        if isinstance(self.lengthscale_, str) and isinstance(self.lower_.features.kernel, StationaryKernel):
            (self.lengthscale_,) = self.lower_.features.kernel.lengthscale
        self.active_lower_, self.active_upper_ = rows[keep][bands.active_lower], rows[keep][bands.active_upper]
        self.mean_lower_, self.mean_upper_ = float(bands.values_lower.mean()), float(bands.values_upper.mean())
        self.residual_rms_ = float(np.sqrt(np.mean(np.square(r))))
        self.certificate_ = bands.certificate
        self.learning_hashes_ = np.unique(row_hashes(points, y))

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """Numbers for the built-in preprocessors; a transformer of the user's sees what was given."""
        if self.preprocessor is None or isinstance(self.preprocessor, str):
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=2 if reset else 1)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def conformalize(self, X: Any, y: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Self:
        """Calibrate on rows that `fit` has not seen; a second call replaces the first.

        Parameters
        ----------
        X : array or data frame of shape (m, n_features)
        y : array of shape (m,)
        groups : array of shape (m,), optional
            Labels: each group gets its own quantiles, and so its own coverage guarantee.
        likelihood_ratio : array of shape (m,), optional
            Density of the test points over that of the calibration points, up to a constant (covariate shift).
        """
        check_is_fitted(self, "lower_")
        check_parameters(self)
        checked = self._check_X(X, reset=False)
        target = read_target(y, len(checked))
        hashes = row_hashes(dense_points(self.preprocessor_, checked), target)
        seen = int(np.isin(hashes, self.learning_hashes_).sum())
        if 2 * seen > len(hashes):
            warnings.warn(
                f"{seen} of the {len(hashes)} rows given to conformalize were learnt from in fit: the coverage "
                "guarantee needs rows that fit has not seen",
                LearningRowsWarning,
                stacklevel=2,
            )
        return super().conformalize(X, target, groups=groups, likelihood_ratio=likelihood_ratio)

    def predict(self, X: Any) -> Array:
        """Prediction of the point model, shape (n,)."""
        check_is_fitted(self, "lower_")
        return predict_in_blocks(self.estimator_, self._check_X(X, reset=False))

    def predict_interval(
        self,
        X: Any,
        confidence_level: Any = None,
        *,
        lower_share: Any = 0.5,
        groups: Any = None,
        likelihood_ratio: Any = None,
    ) -> Array:
        """Calibrated prediction intervals; see :meth:`IntervalMixin.predict_interval` for the parameters.

        Warns also of rows on which the learning data say nothing (see `support`): there the band functions tend to
        zero, and the interval to the prediction plus and minus the quantile.
        """
        check_is_fitted(self, "lower_")
        return super().predict_interval(
            X, confidence_level, lower_share=lower_share, groups=groups, likelihood_ratio=likelihood_ratio
        )

    def _check_band(self, band: Band) -> None:
        far = 0 if band.support is None else int(np.count_nonzero(band.support < SUPPORT_WARNING))
        if far:
            warnings.warn(
                f"{far} of {len(band)} rows are far from the learning data (support below {SUPPORT_WARNING}): the "
                "bands say nothing there",
                OffDataWarning,
                stacklevel=4,
            )

    def support(self, X: Any) -> Array:
        """How much the learning points say about each row: ``||Phi(x)||^2 / k(x, x)`` in [0, 1], 1 at the points."""
        check_is_fitted(self, "lower_")
        points = dense_points(self.preprocessor_, self._check_X(X, reset=False))
        return evaluate_pair(self.lower_, self.upper_, points)[2]

    def summary(self) -> str:
        """What was learnt, in words."""
        check_is_fitted(self, "lower_")
        return describe(self)

    def save(self, path: Any) -> None:
        """Write the model to a file that :func:`sosbands.load` reads without running any code in it."""
        from sosbands.persistence import save  # here, because saving is rare and skops slow to import

        check_is_fitted(self, "lower_")
        save(self, path)

    def _band(self, X: Any) -> Band:
        check_is_fitted(self, "lower_")
        checked = self._check_X(X, reset=False)
        center = predict_in_blocks(self.estimator_, checked)
        below, above, support = evaluate_pair(self.lower_, self.upper_, dense_points(self.preprocessor_, checked))
        return Band(center - below, center + above, support=support)

    def _metric_points(self, X: Any) -> dict[str, Array]:
        """What the kernel sees: already in units of the learning set if standardised."""
        points = dense_points(self.preprocessor_, self._check_X(X, reset=False))
        if not isinstance(self.preprocessor, str):
            return {"X": points}
        unit = np.ones((1, points.shape[1]))
        return {"X": points, "X_learn": np.vstack([-unit, unit])}  # mean 0, standard deviation 1
