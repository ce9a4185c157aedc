"""Split conformal prediction around any regressor, with constant width or with a learnt scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from sosbands._arguments import check, check_cv, is_number
from sosbands._types import Array
from sosbands.baselines.base import Baseline
from sosbands.baselines.tables import finite_numbers
from sosbands.conformal import Band
from sosbands.point_models.defaults import point_model
from sosbands.point_models.outputs import predict_rows
from sosbands.point_models.weights import fit_model
from sosbands.regressors.base import TakesWeights
from sosbands.regressors.rows import Rows


class SplitCP(TakesWeights, Baseline):
    """Split conformal prediction: ``m(x) -+ q`` around any regressor.

    With ``calibration="asymmetric"`` it is signed-error conformal prediction, ``[m(x) - q_lo, m(x) + q_up]`` with one
    quantile of the errors for each side.

    Parameters
    ----------
    estimator : regressor, pipeline, FrozenEstimator or callable, optional
        The point model, cloned and fitted on the learning rows, which it gets as they were given: it may take data
        frames with categories or missing values. None is a Gaussian process up to 2000 learning rows and histogram
        gradient boosting above.
    confidence_level : float
        Default level of `predict_interval`, which takes any other.
    calibration : {"symmetric", "asymmetric"}
        One quantile that moves both ends, or one for each end.
    calibration_size : float, int, "cross" or None
        Part or number of the rows given to `fit` that are held back for calibration; None keeps all for learning, and
        `conformalize` must be called with other rows. "cross" learns from all rows and calibrates on all of them (CV+),
        as in `SoSBandRegressor`, with 5 folds, or `cv` where that is a parameter.
    random_state : int, RandomState or None
        Of the split.
    verbose : int
        Above 0: a line for each stage of `fit`.

    Attributes
    ----------
    estimator_ : regressor
        The fitted point model.
    """

    estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Missing values are the point model's affair."""
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "fit"):
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags

    def _wants_numbers(self) -> bool:
        return self.estimator is None

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState, weight: Array | None = None) -> None:  # noqa: ARG002
        model = point_model(self.estimator, len(y), self.random_state)
        self.estimator_ = fit_model(model, rows.for_model, y, weight)
        self._say(f"point model {type(self.estimator_).__name__} fitted to {len(y)} rows")

    def _center(self, rows: Rows) -> Array:
        return predict_rows(self.estimator_, rows.for_model)

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        center = self._center(rows)
        return center, Band(center, center)


class LocallyWeightedCP(SplitCP):
    """Locally weighted conformal prediction: ``m(x) -+ q sigma(x)`` with sigma a regression of ``|y - m(x)|``.

    Parameters
    ----------
    estimator : regressor, pipeline, FrozenEstimator or callable, optional
        The point model, as in `SplitCP`.
    scale_estimator : regressor or pipeline, optional
        Learns the absolute residuals. None is a random forest with leaves of at least 10 rows, after the transformers
        of `estimator` if that is a pipeline; where it is not and the table has gaps or columns of a category type,
        histogram gradient boosting.
    confidence_level, calibration, calibration_size
        As in `SplitCP`.
    residuals : {"auto", "in-sample", "leave-one-out", "out-of-fold"}
        Which residuals sigma is learnt from, as in `SoSBandRegressor`.
    cv : int or splitter
        Folds of the out-of-fold residuals, or a splitter, as in `SoSBandRegressor`.
    min_scale : float
        Smallest sigma, as a part of the mean absolute residual: a regression may come close to zero or below.
    n_jobs : int, optional
        Processes for the out-of-fold residuals and the default forest.
    random_state : int, RandomState or None
        Of the split, the folds and the default forest.
    verbose : int
        Above 0: a line for each stage of `fit`.

    Attributes
    ----------
    estimator_, scale_estimator_ : regressor
        The fitted models.
    smallest_scale_ : float
        Sigma is at least this. Where all residuals are zero sigma is 1, and the method is `SplitCP`.
    residual_rule_ : {"in-sample", "leave-one-out", "out-of-fold"}
        The residuals that sigma was learnt from.
    """

    _checks = {"cv": check_cv}
    residual_rule_: str
    smallest_scale_: float
    scale_estimator_: Any

    def __init__(
        self,
        estimator: Any = None,
        scale_estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = 0.5,
        residuals: str = "auto",
        cv: Any = 5,
        min_scale: float = 0.05,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            confidence_level=confidence_level,
            calibration=calibration,
            calibration_size=calibration_size,
            random_state=random_state,
            verbose=verbose,
        )
        self.scale_estimator = scale_estimator
        self.residuals = residuals
        self.cv = cv
        self.min_scale = min_scale
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        fine = is_number(self.min_scale) and 0 < self.min_scale <= 1
        check("min_scale", self.min_scale, fine, "a number in (0, 1]")
        scale = self.scale_estimator
        fine = scale is None or (not isinstance(scale, type) and hasattr(scale, "fit") and hasattr(scale, "predict"))
        check("scale_estimator", scale, fine, "None or a regressor with fit and predict")

    def _learn_model(self, rows: Rows, y: Array, rng: np.random.RandomState, weight: Array | None = None) -> None:  # noqa: ARG002
        found = self._fit_point_model(rows.for_model, y, rng, weight=weight)
        sizes = np.abs(found.residual)
        if found.rows is not None:  # a splitter predicts some of the rows
            rows, weight = rows.take(found.rows), None if weight is None else weight[found.rows]
        self.smallest_scale_ = self.min_scale * float(np.average(sizes, weights=weight)) or 1.0
        self.scale_estimator_ = fit_model(
            self._scale_model(rows, rng), rows.for_model, sizes, weight, "scale_estimator"
        )
        self._say(f"scale {type(self.scale_estimator_).__name__} fitted to {self.residual_rule_} residuals")

    def _scale_model(self, rows: Rows, rng: np.random.RandomState) -> Any:
        if self.scale_estimator is not None:
            return clone(self.scale_estimator)
        seed = int(rng.randint(2**31 - 1))
        forest = RandomForestRegressor(min_samples_leaf=10, n_jobs=self.n_jobs, random_state=seed)
        if isinstance(self.estimator, Pipeline) and len(self.estimator) > 1:
            return Pipeline([*clone(self.estimator[:-1]).steps, ("forest", forest)])
        if finite_numbers(rows.for_model) is not None:
            return forest
        return HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=10, random_state=seed)

    def _center_and_band(self, rows: Rows) -> tuple[Array, Band]:
        center = self._center(rows)
        scale = predict_rows(self.scale_estimator_, rows.for_model, "scale_estimator")
        return center, Band(center, center, np.maximum(scale, self.smallest_scale_))
