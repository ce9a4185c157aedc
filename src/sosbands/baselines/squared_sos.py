"""The predecessor (Allain, Da Veiga, Staber 2025): one kernel sum of squares above the squared residuals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.model_selection import KFold

from sosbands._arguments import check, is_fraction
from sosbands._types import Array, IntArray
from sosbands._words import share_of
from sosbands.bands import learn_bands, penalty_scale
from sosbands.bands.sos import SoSFunction, evaluate_pair
from sosbands.baselines.base import Baseline
from sosbands.baselines.squared_tuning import tune_lengthscale
from sosbands.conformal import Band
from sosbands.exceptions import LITTLE_SUPPORT, OffDataWarning
from sosbands.point_models.outputs import predict_rows
from sosbands.point_models.residuals import row_folds
from sosbands.regressors.base import SplitRegressor
from sosbands.regressors.parameters import check_kernel, check_penalties, check_preprocessor, check_rank, is_word
from sosbands.regressors.rows import Rows, dense_points, learn_preprocessor
from sosbands.tuning.rules import check_test_level


class SquaredSoS(Baseline):
    """Symmetric intervals from one kernel sum of squares above the squared residuals.

    With the point model fixed, a non-negative function f is learnt by ::

        min_A  (b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2     s.t.  f(X_i) >= r_i^2,  A PSD

    The score is ``r^2/f(x)`` and the interval ``m(x) -+ sqrt(q f(x))``. Here calibration works with the root of that
    score, ``|r|/sqrt(f(x))``, which orders rows alike and gives the same intervals; with asymmetric calibration each
    side has its quantile of the signed ``r/sqrt(f(x))``.

    Parameters
    ----------
    estimator : regressor, pipeline, FrozenEstimator or callable, optional
        The point model, as in `SoSBandRegressor`.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `SplitCP`; the folds are random too.
    lengthscale : "auto", "median", float or array of shape (n_features,)
        Of the kernel. "auto" is that of a grid around the median distance whose ``HSIC(sqrt(f), |r|)``, by
        cross-validation, is largest.
    kernel : str or kernel object
        As in `SoSBandRegressor`; a kernel object has its own lengthscale, and nothing is tuned.
    preprocessor : "auto", "standardize", None or transformer
        Makes what the kernel sees, as in `SoSBandRegressor`.
    width_penalty, trace_penalty, frobenius_penalty : float
        b, lam1 and lam2.
    normalize : bool
        Take the residuals relative to their root mean square and the penalties relative to an initial model.
    rank : "auto", "exact", int or float in (0, 1)
        Number of kernel features, as in `SoSBandRegressor`.
    residuals : {"auto", "in-sample", "leave-one-out", "out-of-fold"}
        Which residuals f is learnt from, as in `SoSBandRegressor`.
    cv : int
        Folds of the out-of-fold residuals and of the criterion.
    test_level : float or None
        With ``lengthscale="auto"``: unless a permutation test finds held-out widths and residuals dependent at this
        level, f is constant, and the method plain split conformal prediction. None does not test.
    tol : float
        Relative duality gap at which f counts as solved.
    n_jobs : int, optional
        Processes for the folds.

    Attributes
    ----------
    estimator_, preprocessor_
        The fitted point model and transformer.
    function_ : SoSFunction
        f, of residuals divided by `unit_`.
    unit_ : float
        Root mean square of the residuals, 1 without normalisation.
    lengthscale_ : float, array or None
        In use; None for a kernel object and for a constant f.
    tuning_ : dict or None
        Lengthscales tried, their criterion, and the p-value of the test.
    certificate_ : dict
        How well the problem was solved, as in `SoSBandRegressor`.
    active_ : ndarray of int
        Rows given to `fit` that shape f.
    residual_rule_ : {"in-sample", "leave-one-out", "out-of-fold"}
        The residuals that f was learnt from.
    """

    symmetry_penalty: Any = np.inf  # one function for both sides, whatever the kind
    symmetry_kind: Any = "training"

    estimator_: Any
    preprocessor_: Any
    model_sees_points_: bool
    residual_rule_: str
    unit_: float
    tuning_: dict[str, Any] | None
    function_: SoSFunction
    lengthscale_: Any
    active_: IntArray
    certificate_: dict[str, Any]

    def __init__(  # noqa: PLR0913, the whole public list of settings
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
        lengthscale: Any = "auto",
        kernel: Any = "matern52",
        preprocessor: Any = "auto",
        width_penalty: float = 10.0,
        trace_penalty: float = 1.0,
        frobenius_penalty: float = 1.0,
        normalize: bool = True,
        rank: Any = "auto",
        residuals: str = "auto",
        cv: int = 5,
        test_level: float | None = 0.05,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.lengthscale = lengthscale
        self.kernel = kernel
        self.preprocessor = preprocessor
        self.width_penalty = width_penalty
        self.trace_penalty = trace_penalty
        self.frobenius_penalty = frobenius_penalty
        self.normalize = normalize
        self.rank = rank
        self.residuals = residuals
        self.cv = cv
        self.test_level = test_level
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalties(self)
        check_rank(self.rank)
        check_preprocessor(self.preprocessor)
        check("tol", self.tol, is_fraction(self.tol), "a number in (0, 1)")
        check("normalize", self.normalize, isinstance(self.normalize, (bool, np.bool_)), "True or False")
        if self.test_level is not None:
            check_test_level(self.test_level, "None or a number in (0, 1)")
        fine = not isinstance(self.lengthscale, dict)
        check("lengthscale", self.lengthscale, fine, "'auto', 'median', a number > 0 or one per feature")

    def _wants_numbers(self) -> bool:
        return self.preprocessor is None or isinstance(self.preprocessor, str)

    def _encodes_tables(self) -> bool:
        return is_word(self.preprocessor, "auto")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.allow_nan and self._encodes_tables()
        return tags

    def _read(self, X: Any, *, reset: bool) -> Rows:
        return SplitRegressor._read(self, X, reset=reset)  # whose complaints name the preprocessor

    def _numbers(self, rows: Rows) -> Array:
        return dense_points(self.preprocessor_, rows.for_kernel, *self.function_.features.point_shape)

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState) -> None:
        self.preprocessor_, points = learn_preprocessor(
            self.preprocessor, rows.for_kernel, y, numbers=self.reads_numbers_, estimator=self.estimator
        )
        self.model_sees_points_ = self.estimator is None and not self.reads_numbers_
        check_kernel(self.kernel, self.lengthscale, points.shape[1])
        X = points if self.model_sees_points_ else rows.for_model
        seed = int(rng.randint(2**31 - 1))  # the same folds for the residuals and for the lengthscale
        r = self._fit_point_model(X, y, seed).residual
        self.unit_ = (float(np.sqrt(np.mean(np.square(r)))) or 1.0) if self.normalize else 1.0
        self._learn_function(points, r / self.unit_, row_folds(len(y), self.cv, seed), rng)

    def _learn_function(self, points: Array, r: Array, folds: KFold | None, rng: np.random.RandomState) -> None:
        """The lengthscale, and f above the squares of r."""
        options = {
            "kernel": self.kernel,
            "width_penalty": self.width_penalty,
            "trace_penalty": self.trace_penalty,
            "frobenius_penalty": self.frobenius_penalty,
            "normalize": penalty_scale(points, r**2, self.kernel) if self.normalize and r.any() else False,
        }
        is_auto = isinstance(self.lengthscale, str) and self.lengthscale == "auto"
        chosen, self.tuning_ = "median" if is_auto else self.lengthscale, None
        if is_auto and isinstance(self.kernel, str) and folds is not None and r.any():
            seed = int(rng.randint(2**31 - 1))
            how: dict[str, Any] = {"n_jobs": self.n_jobs, "seed": seed, "level": self.test_level}
            self.tuning_ = tune_lengthscale(points, r, folds, options, **how)
            chosen = self.tuning_["lengthscale"]
            if self.test_level is not None and self.tuning_["p_value"] > self.test_level:
                options["kernel"], chosen = ConstantKernel(1.0, "fixed"), "median"
                self._say(f"no dependence of widths and residuals (p = {self.tuning_['p_value']:.3g}): constant width")
        bands = learn_bands(
            points,
            r**2,
            lengthscale=chosen,
            symmetry_penalty=self.symmetry_penalty,
            rank=self.rank,
            tol=self.tol,
            **options,
        )
        self.function_ = bands.upper.deployed()
        own = getattr(self.function_.features.kernel, "lengthscale", None)
        self.lengthscale_ = None if own is None else (own[0] if len(own) == 1 else np.array(own))
        self.active_ = self.learning_rows_[np.union1d(bands.active_lower, bands.active_upper)]
        self.certificate_ = bands.certificate
        self._say(f"f {bands.status.value} with a relative gap of {bands.gap:.1e} in {bands.seconds:.2g} s")

    def _center(self, rows: Rows) -> Array:
        X = self._numbers(rows) if self.model_sees_points_ else rows.for_model
        return predict_rows(self.estimator_, X)

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        f, _, support = evaluate_pair(self.function_, self.function_, self._numbers(rows))
        center = self._center(rows)
        return center, Band(center, center, self.unit_ * np.sqrt(f), support=support)

    def _check_band(self, band: Band) -> None:
        """Warn of rows on which the learning data say nothing: there f tends to zero, and so does the width."""
        far = 0 if band.support is None else int(np.count_nonzero(band.support < LITTLE_SUPPORT))
        if far:
            warnings.warn(
                f"{share_of(far, len(band), 'row')} far from the learning data (support below {LITTLE_SUPPORT}): the "
                "intervals shrink to the prediction there",
                OffDataWarning,
                stacklevel=4,  # the caller of predict_interval, predict_quantile or evaluate
            )
