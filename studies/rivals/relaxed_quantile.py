"""Relaxed quantile regression (Pouplin, Jeffares, Seedat, van der Schaar 2024) with kernel features, conformalized."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from sosbands._arguments import is_number
from sosbands._progress import say
from sosbands._types import Array
from sosbands.conformal import Band, Told
from sosbands.kernels import KernelFeatures
from sosbands.regressors import SplitRegressor
from sosbands.regressors.checks import count, rule
from sosbands.regressors.split import fit_alike
from sosbands.tables.rows import LearningData, Rows
from studies.rivals.relaxed_loss import Axes, Target, minimise
from studies.rivals.relaxed_tuning import (
    CENTER_RIDGES,
    WIDTH_RIDGES,
    Start,
    feature_matrix,
    least_squares,
    tune_ridges,
)


def _is_auto_or_positive(value: Any) -> bool:
    return value == "auto" if isinstance(value, str) else is_number(value) and 0 < value < np.inf


class RelaxedQuantileCQR(SplitRegressor):
    """Both ends of an interval learnt at once by the loss of relaxed quantile regression, calibrated like CQR.

    The loss of an interval ``[l, u]`` is ``rho(kappa) + width_penalty (u - l)^2/2`` with ``kappa = (y - l)(y - u)`` and
    ``rho(kappa) = kappa (level + 2 width_penalty - 1{kappa < 0})`` (RQR-W). Its minimiser covers with probability
    `confidence_level`; its ends are no quantiles given beforehand. Centre ``(l + u)/2`` and squared half width
    are linear in the features, which are the standardised ones and those of a Matern-5/2 kernel, with a ridge for each;
    in these two functions the loss is convex if ``2 width_penalty >= 1 - confidence_level``.

    Parameters
    ----------
    width_penalty : float
        At least 0. Where the interval lies among those that cover: with 0, plain RQR, the mean inside is the mean of
        all, which for skewed noise makes it *wider* than the interval of equal tails; as it grows the centre tends to
        the conditional mean. Near 1 the interval is close to the shortest one for many skewed laws.
    lengthscale : "auto" or float
        Of the kernel, on standardised features. "auto" is a quarter, half, one or two times the median distance: the
        one whose ridge regression has the smallest squared error at rows left out.
    center_ridge, width_ridge : "auto" or float
        Penalties of the centre's and of the squared half width's coefficients, for targets divided by a typical
        residual. "auto" is chosen by the cross-validated interval score.
    max_rank : int
        Largest number of kernel features.
    max_iter : int
        Iterations of L-BFGS.
    cv : int
        Folds of the search for ridges, for which at least twice as many rows are needed; with fewer the centre has the
        ridge of ridge regression, the widths the strongest.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `SplitCP`; the folds are random too. The band before calibration is that of the constructor's level,
        whichever is asked of `predict_interval`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (1 + n_features + kernel features, 2)
        Intercept and coefficients of the centre and of the squared half width, for targets less `target_mean_` and
        divided by `unit_`.
    features_ : KernelFeatures
    preprocessor_ : StandardScaler
    target_mean_, unit_ : float
        Mean of the targets, and a typical residual.
    lengthscale_, center_ridge_, width_ridge_ : float
        In use.
    tuning_ : dict or None
        All ridges tried and their interval scores, in units of `unit_`.
    n_iter_, converged_ : int, bool
        Iterations of the last search, and whether it met its tolerance.
    """

    preprocessor_: Any
    features_: KernelFeatures
    coefficients_: Array
    target_mean_: float
    unit_: float
    tuning_: dict[str, Any] | None
    fit: Any = fit_alike  # what is learnt knows no weights, as scikit-learn reads from the signature
    _checks = {
        "width_penalty": rule("width_penalty", lambda v: is_number(v) and 0 <= v < np.inf, "a finite number >= 0"),
        **{
            name: rule(name, _is_auto_or_positive, "'auto' or a finite number > 0")
            for name in ("lengthscale", "center_ridge", "width_ridge")
        },
        "max_rank": count("max_rank"),
        "cv": count("cv", 2),
    }
    lengthscale_: float
    center_ridge_: float
    width_ridge_: float
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        *,
        width_penalty: float = 1.0,
        lengthscale: Any = "auto",
        center_ridge: Any = "auto",
        width_ridge: Any = "auto",
        max_rank: int = 200,
        max_iter: int = 500,
        cv: int = 5,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.width_penalty = width_penalty
        self.lengthscale = lengthscale
        self.center_ridge = center_ridge
        self.width_ridge = width_ridge
        self.max_rank = max_rank
        self.max_iter = max_iter
        self.cv = cv
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Gaps are filled."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        y, level = data.y, float(self.confidence_level)
        self.reader_, _ = self.reader_.as_numbers(data)
        numbers = self.reader_.points(data.rows)
        self.preprocessor_ = StandardScaler().fit(numbers)
        points = self.preprocessor_.transform(numbers)
        self.target_mean_ = float(y.mean())
        deviation = float(y.std())
        deviation = deviation if deviation > 1e-12 * abs(self.target_mean_) else 1.0  # a constant target
        z = (y - self.target_mean_) / deviation
        start = least_squares(points, z, level, self.lengthscale, self.center_ridge, self.max_rank)
        self.unit_ = deviation * start.unit
        target = Target(z / start.unit, level, float(self.width_penalty), start.center_ridge, WIDTH_RIDGES[0])
        target = self._with_ridges(target, start, rng)
        axes = Axes.of(start.matrix)
        found = minimise(axes, target, max_iter=self.max_iter)
        self.coefficients_ = axes.coefficients(found.linear)
        self.features_ = replace(start.features, V=start.features.V[:, :0].copy())  # prediction needs no learning rows
        self.lengthscale_ = start.lengthscale
        self.center_ridge_, self.width_ridge_ = target.center_ridge, target.width_ridge
        self.n_iter_, self.converged_ = max(1, found.iterations), found.converged
        say(f"ends learnt from {len(y)} rows and {start.features.rank} kernel features in {self.n_iter_} steps")

    def _with_ridges(self, target: Target, start: Start, rng: np.random.RandomState) -> Target:
        """The ridges given, or the best of some in cross-validation."""
        fixed = not isinstance(self.center_ridge, str), not isinstance(self.width_ridge, str)
        center = [start.center_ridge] if fixed[0] else list(CENTER_RIDGES)
        width = [float(self.width_ridge)] if fixed[1] else list(WIDTH_RIDGES)
        self.tuning_ = None
        if all(fixed) or len(target.y) < 2 * self.cv:
            return replace(target, width_ridge=width[0])  # and the centre's is that of ridge regression
        folds = KFold(self.cv, shuffle=True, random_state=rng)
        self.tuning_ = tune_ridges(start, target, folds, center_ridges=center, width_ridges=width)
        chosen = {name: self.tuning_[name] for name in ("center_ridge", "width_ridge")}
        say(f"ridges {chosen['center_ridge']:.3g} of the centre and {chosen['width_ridge']:.3g} of the widths")
        return replace(target, **chosen)

    def _functions(self, rows: Rows) -> tuple[Array, Array]:
        """Centre and half width."""
        matrix = feature_matrix(self.preprocessor_.transform(self.reader_.points(rows)), self.features_)
        center, squared = (self.coefficients_[0] + matrix @ self.coefficients_[1:]).T
        return self.target_mean_ + self.unit_ * center, self.unit_ * np.sqrt(np.maximum(squared, 0.0))

    def _tell_block(self, rows: Rows) -> Told:
        center, half = self._functions(rows)
        return Told(Band(center - half, center + half), center)
