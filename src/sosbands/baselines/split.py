"""Split conformal prediction around any regressor, with constant width or with a learnt scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sosbands._arguments import finite_numbers, is_number
from sosbands._progress import say
from sosbands._types import Array
from sosbands._words import many
from sosbands.conformal import Band, Told
from sosbands.point_models import learn_residuals
from sosbands.point_models.blend import model_words, point_model
from sosbands.point_models.user_model import fit_model, learns_nothing, predict_rows
from sosbands.regressors.checks import is_model, rule
from sosbands.regressors.split import SplitRegressor
from sosbands.tables.rows import DENSE, TABLE, LearningData, Rows


class SplitCP(SplitRegressor):
    """Split conformal prediction: ``m(x) -+ q`` around any regressor.

    With ``calibration="asymmetric"`` it is signed-error conformal prediction, ``[m(x) - q_lo, m(x) + q_up]`` with one
    quantile of the errors for each side.

    Parameters
    ----------
    estimator : regressor, pipeline, FrozenEstimator or callable, optional
        The point model, cloned and fitted on the learning rows, which it gets as they were given: it may take data
        frames with categories or missing values. None is the default of `SoSBandRegressor`.
    confidence_level, calibration, calibration_size, random_state, verbose
        As in `SoSBandRegressor`; ``calibration_size="cross"`` and ``"out-of-fold"`` have 5 folds, or `cv` where that is
        a parameter, and take as many fits and one more.

    Attributes
    ----------
    estimator_ : regressor
        The fitted point model.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.verbose = verbose

    def _wanted_rows(self) -> str:
        return TABLE if self.estimator is None else DENSE

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:  # noqa: ARG002
        model = point_model(self.estimator, len(data), self.random_state)
        self.reader_, X = self.reader_.as_numbers(data)
        self.estimator_ = fit_model(model, X, data.y, data.weights)
        say(f"point model {type(self.estimator_).__name__} fitted to {len(data)} rows")

    def _center(self, rows: Rows) -> Array:
        return predict_rows(self.estimator_, self.reader_.for_model(rows))

    def _tell_block(self, rows: Rows) -> Told:
        center = self._center(rows)
        return Told(Band(center, center), center)


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
    confidence_level, calibration, calibration_size, verbose
        As in `SplitCP`.
    residuals, cv
        Which residuals sigma is learnt from, and their folds, as in `SoSBandRegressor`.
    min_scale : float
        Smallest sigma, as a part of the mean absolute residual: a regression may come close to zero or below.
    n_jobs : int, optional
        Processes for the out-of-fold residuals and the default forest.
    random_state : int, RandomState or None
        Of the split, the folds and the default forest.

    Attributes
    ----------
    estimator_, scale_estimator_ : regressor
        The fitted models.
    smallest_scale_ : float
        Sigma is at least this. Where all residuals are zero sigma is 1, and the method is `SplitCP`.
    residual_rule_ : {"in-sample", "leave-one-out", "out-of-fold"}
        The residuals that sigma was learnt from.
    """

    _checks = {
        "min_scale": rule("min_scale", lambda scale: is_number(scale) and 0 < scale <= 1, "a number in (0, 1]"),
        "scale_estimator": rule(
            "scale_estimator", lambda m: m is None or is_model(m), "None or a regressor with fit and predict"
        ),
    }

    def __init__(
        self,
        estimator: Any = None,
        scale_estimator: Any = None,
        *,
        confidence_level: float = 0.9,
        calibration: str = "symmetric",
        calibration_size: float | int | str | None = "auto",
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

    def _learn(self, data: LearningData, rng: np.random.RandomState) -> None:
        self.reader_, X = self.reader_.as_numbers(data)
        found = learn_residuals(
            point_model(self.estimator, len(data), self.random_state, self.n_jobs),
            X,
            data.y,
            residuals=self.residuals,
            cv=self.cv,
            random_state=rng,
            n_jobs=self.n_jobs,
            sample_weight=data.weights,
        )
        self.estimator_, self.residual_rule_ = found.model, found.rule
        seen = "used as it is for" if learns_nothing(self.estimator_) else "fitted to"
        say(f"point model {model_words(self.estimator_)} {seen} {many(len(data), 'row')}")
        sizes, weights = np.abs(found.residual), data.weights
        if len(found.rows) < len(data):  # a splitter predicts some of the rows
            X, weights = _safe_indexing(X, found.rows), None if weights is None else weights[found.rows]
        self.smallest_scale_ = self.min_scale * float(np.average(sizes, weights=weights)) or 1.0
        if self.scale_estimator is not None:
            scale = clone(self.scale_estimator)
        else:
            seed = int(rng.randint(2**31 - 1))
            scale = RandomForestRegressor(min_samples_leaf=10, n_jobs=self.n_jobs, random_state=seed)
            if isinstance(self.estimator, Pipeline) and len(self.estimator) > 1:
                scale = Pipeline([*clone(self.estimator[:-1]).steps, ("forest", scale)])
            elif finite_numbers(X) is None:
                scale = HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=10, random_state=seed)
        self.scale_estimator_ = fit_model(scale, X, sizes, weights, "scale_estimator")
        say(f"scale {type(self.scale_estimator_).__name__} fitted to {self.residual_rule_} residuals")

    def _tell_block(self, rows: Rows) -> Told:
        center = self._center(rows)
        scale = predict_rows(self.scale_estimator_, self.reader_.for_model(rows), "scale_estimator")
        return Told(Band(center, center, np.maximum(scale, self.smallest_scale_)), center)
