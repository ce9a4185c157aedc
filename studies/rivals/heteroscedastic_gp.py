"""The band of a heteroscedastic Gaussian process (Binois, Gramacy, Ludkovski 2018), fitted by hetgpy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sosbands._extras import need
from sosbands._progress import say
from sosbands._types import Array
from sosbands._words import warn
from sosbands.baselines.gaussian import NormalBaseline
from sosbands.exceptions import SosbandsWarning
from sosbands.regressors.checks import one_of
from sosbands.regressors.split import fit_alike
from sosbands.tables.rows import LearningData, Rows
from studies.rivals.noisy_process import NoisyProcess, constant_process, process_from

STARTS = ("smoothed", "residuals", "both")


class HeteroscedasticGP(NormalBaseline):
    """Calibrated intervals of a Gaussian process whose noise is a process too.

    hetgpy fits both processes by maximum likelihood, with anisotropic Matern-5/2 kernels (products over the features)
    and its own bounds, to features scaled to [0, 1] and standardised targets. The predictive variance is that of the
    mean plus that of the noise. What prediction needs is kept as arrays, so that fitted models can be saved and used
    without hetgpy. Needs ``sosbands[baselines]``, which has hetgpy below Python 3.13. Cost grows with the cube of the
    rows: 1000 rows of 8 features take a minute.

    Parameters
    ----------
    conformal_score : {"additive", "normalized"}
        As in `HomoscedasticGP`.
    start : {"smoothed", "residuals", "both"}
        Where the search for the noise begins: at the smoothed log squared residuals of a homoscedastic fit, at these
        residuals as they are (the default of hetgpy), or at both, keeping the higher likelihood.
    max_iter : int
        Iterations of each search.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `HomoscedasticGP`.

    Attributes
    ----------
    process_ : NoisyProcess
        The fitted processes, for scaled features and targets.
    homoscedastic_ : bool
        Whether constant noise was more likely, so that hetgpy fell back to it.
    log_likelihood_ : float
        Of the standardised targets; NaN where nothing was fitted.
    start_ : str
        The start in use.
    message_ : str
        What hetgpy's optimiser said.
    n_iter_ : int
        Evaluations of the likelihood by the search in use.
    conformal_score_, band_level_ : str, float
        Score in use, and level of the additive band before calibration.
    """

    fit: Any = fit_alike  # what is learnt knows no weights, as scikit-learn reads from the signature
    _checks = {**NormalBaseline._checks, "start": one_of("start", STARTS)}
    process_: NoisyProcess
    x_min_: Array
    x_range_: Array
    y_mean_: float
    y_scale_: float
    homoscedastic_: bool
    log_likelihood_: float
    start_: str
    message_: str
    n_iter_: int

    def __init__(
        self,
        *,
        conformal_score: str = "additive",
        start: str = "smoothed",
        max_iter: int = 100,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.conformal_score = conformal_score
        self.start = start
        self.max_iter = max_iter
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def _learn_process(self, points: Array, data: LearningData) -> None:
        X, y = points, data.y
        self.x_min_, self.x_range_ = X.min(axis=0), np.ptp(X, axis=0)
        self.y_mean_, self.y_scale_ = float(y.mean()), float(y.std())
        U, self.homoscedastic_ = self._scaled(X), True
        self.log_likelihood_, self.start_, self.message_, self.n_iter_ = np.nan, "none", "nothing to fit", 1
        if self.y_scale_ <= 1e-12 * abs(self.y_mean_) or not U.shape[1]:
            self.process_ = constant_process(U.shape[1], 0.0, 1.0 if self.y_scale_ > 0 else 0.0)
            return
        z = (y - self.y_mean_) / self.y_scale_
        starts = STARTS[:2] if self.start == "both" else (self.start,)
        fits = {start: fit_varying(U, z, start, self.max_iter) for start in starts}
        self.start_ = max(fits, key=lambda start: likelihood(fits[start]))
        best = fits[self.start_]
        if best is None:
            warn(
                f"hetgpy could not fit varying noise to {len(y)} rows: the noise is taken to be constant",
                SosbandsWarning,
            )
            best = fit_constant(U, z, self.max_iter)
        self.process_ = process_from(best)
        self.homoscedastic_ = best.get("Delta") is None
        self.log_likelihood_, self.message_ = likelihood(best), str(best.msg)
        self.n_iter_ = evaluations(best)
        noise = "constant noise is more likely" if self.homoscedastic_ else "the noise varies"
        say(f"processes fitted to {len(y)} rows from start {self.start_!r}: {noise}")

    def _scaled(self, X: Array) -> Array:
        """Features that vary over the learning rows, mapped to [0, 1] there."""
        varying = self.x_range_ > 1e-12 * np.abs(self.x_min_)  # rounding aside
        return np.ascontiguousarray((X[:, varying] - self.x_min_[varying]) / self.x_range_[varying])

    def _center(self, rows: Rows) -> Array:
        return self.y_mean_ + self.y_scale_ * self.process_.mean(self._scaled(self.reader_.points(rows)))

    def _predict_normal(self, points: Array) -> tuple[Array, Array]:
        U = self._scaled(points)
        variance, noise = self.process_.variances(U)
        return self.y_mean_ + self.y_scale_ * self.process_.mean(U), self.y_scale_ * np.sqrt(variance + noise)


def fit_varying(U: Array, z: Array, start: str, max_iter: int) -> Any:
    """A fitted `hetGP`, the `homGP` that it becomes if constant noise is more likely, or None where it breaks down."""
    # a new dict each time, as hetgpy writes into it; trace -1 keeps it from printing
    settings = {"factr": 1e9, "ignore_MLE_divide_invalid": True, "trace": -1, "initStrategy": start}
    try:
        return _fitted(need("hetgpy").hetGP(), U, z, maxit=max_iter, settings=settings)
    except np.linalg.LinAlgError:
        return None


def fit_constant(U: Array, z: Array, max_iter: int) -> Any:
    """A fitted `homGP`."""
    model = _fitted(need("hetgpy").homGP(), U, z, maxit=max_iter, settings={"return_Ki": True})
    if model is None:
        raise ValueError(f"hetgpy found no Gaussian process for {len(z)} rows: expected data with a finite likelihood")
    return model


def _fitted(model: Any, U: Array, z: Array, **options: Any) -> Any:
    """The model fitted, or None if its numbers are not finite."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="hetgpy")  # trial points of its search
        model.mle(U, z, covtype="Matern5_2", **options)
    return model if np.isfinite(likelihood(model)) and np.isfinite(model.nu_hat).all() else None


def likelihood(model: Any) -> float:
    """Log likelihood without the penalty of hetgpy's search, which is the only one of its homoscedastic model."""
    if model is None:
        return -np.inf
    value = float(np.squeeze(model.ll if model.get("Delta") is None else model.ll_non_pen))
    return value if np.isfinite(value) else -np.inf


def evaluations(model: Any) -> int:
    """Evaluations of the likelihood, which hetgpy reports in two forms, or not at all."""
    counts = model.nit_opt
    number = float(counts["nfev"] if isinstance(counts, dict) else counts)
    return max(1, int(number)) if np.isfinite(number) else 1
