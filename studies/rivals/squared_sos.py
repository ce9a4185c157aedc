"""The predecessor (Allain, Da Veiga, Staber 2025): one kernel sum of squares above the squared residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.model_selection import KFold

from sosbands._arguments import check, is_fraction
from sosbands._progress import say
from sosbands._types import Array, IntArray
from sosbands.bands import BandSettings, learn_bands, penalty_scale
from sosbands.bands.functions import SoSFunction, evaluate_pair
from sosbands.bands.settings import is_auto
from sosbands.conformal import Band, Told
from sosbands.point_models import learn_residuals
from sosbands.point_models.blend import model_words, point_model
from sosbands.point_models.user_model import predict_rows
from sosbands.regressors import SplitRegressor
from sosbands.regressors.checks import check_band_kernel, count
from sosbands.regressors.split import fit_alike
from sosbands.tables.rows import GIVEN, NUMBERS, TABLE, LearningData, Rows
from sosbands.tuning.rules import MOST_PERMUTATIONS, SMALLEST_LEVEL
from studies.rivals.squared_tuning import tune_lengthscale


class SquaredSoS(SplitRegressor):
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
    estimator_
        The fitted point model.
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

    fit: Any = fit_alike  # what is learnt knows no weights, as scikit-learn reads from the signature
    estimator_: Any
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

    @property
    def _checks(self) -> dict[str, Any]:  # type: ignore[override]
        """Numbers of the problem are checked together."""
        return {"cv": count("cv", 2), "test_level": self._check_level, "lengthscale": self._check_problem}

    def _check_level(self, level: Any) -> None:
        if level is None:
            return
        check("test_level", level, is_fraction(level), "None or a number in (0, 1)")
        reason = f"as p-values of the {MOST_PERMUTATIONS} permutations made at most are no smaller"
        check("test_level", level, level >= SMALLEST_LEVEL, f"at least {SMALLEST_LEVEL:g}, {reason}")

    def _check_problem(self, lengthscale: Any) -> None:
        fine = not isinstance(lengthscale, dict)
        check("lengthscale", lengthscale, fine, "'auto', 'median', a number > 0 or one per feature")
        normalize = isinstance(self.normalize, (bool, np.bool_))
        check("normalize", self.normalize, normalize, "True or False")
        names = ("kernel", "lengthscale", "width_penalty", "trace_penalty", "frobenius_penalty", "rank", "tol")
        BandSettings(**{name: getattr(self, name) for name in names})

    def _wanted_rows(self) -> str:
        if self.preprocessor is not None and not isinstance(self.preprocessor, str):
            return GIVEN
        return TABLE if is_auto(self.preprocessor) else NUMBERS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None and is_auto(self.preprocessor)
        return tags

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        self.reader_, points = self.reader_.learning(self.preprocessor, data, self.estimator)
        check_band_kernel(self.kernel, self.lengthscale, "inputs", points.shape[1])
        seed, n = int(rng.randint(2**31 - 1)), len(data)  # the same folds for the residuals and for the lengthscale
        found = learn_residuals(
            point_model(self.estimator, n, self.random_state, self.n_jobs),
            points if self.reader_.model_sees_points else data.rows.given,
            data.y,
            residuals=self.residuals,
            cv=self.cv,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        self.estimator_, self.residual_rule_, r = found.model, found.rule, found.residual
        say(f"point model {model_words(self.estimator_)} fitted to {n} rows")
        self.unit_ = (float(np.sqrt(np.mean(np.square(r)))) or 1.0) if self.normalize else 1.0
        folds = KFold(min(self.cv, n), shuffle=True, random_state=seed) if n > 1 else None
        self._learn_function(points, r / self.unit_, folds, rng)

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
                say(f"no dependence of widths and residuals (p = {self.tuning_['p_value']:.3g}): constant width")
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
        say(f"f {bands.status.value} with a relative gap of {bands.gap:.1e} in {bands.seconds:.2g} s")

    def _center(self, rows: Rows) -> Array:
        return predict_rows(self.estimator_, self.reader_.for_model(rows))

    def _tell_block(self, rows: Rows) -> Told:
        f, _, support = evaluate_pair(self.function_, self.function_, self.reader_.points(rows))
        center = self._center(rows)
        return Told(Band(center, center, self.unit_ * np.sqrt(f), support=support), center)
