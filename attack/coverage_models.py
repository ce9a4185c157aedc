"""Models whose coverage is tested, all of them cheap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from attack.noise_laws import NoiseLaw
from sosbands import SmoothingSplineRegressor, SoSBandRegressor
from sosbands.bands import BandSettings
from sosbands.baselines import LocallyWeightedCP, SplitCP, make_method
from sosbands.conformal import SCORES, Band, IntervalMixin, Told
from sosbands.regressors import PAPER_SETTINGS

LEARNING = 60  # rows that bands are learnt from
FIXED = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 0.1, "bands": BandSettings(rank=10)}
BASELINES: dict[str, dict[str, Any]] = {
    "cqr-boosting": {"max_iter": 5},
    "gp": {},
    "split": {"estimator": DecisionTreeRegressor(max_depth=3, random_state=0)},
    "local": {"estimator": LinearRegression(), "scale_estimator": DecisionTreeRegressor(max_depth=2, random_state=0)},
}


class FixedFunctions(IntervalMixin, BaseEstimator):
    """Functions that nobody learnt, other ones below and above, zero in places."""

    def __init__(self, calibration: str, conformal_score: str, skew: float = 0.0, shift: float = 0.0) -> None:
        self.confidence_level = 0.9
        self.calibration = str(calibration)
        self.conformal_score = str(conformal_score)
        self.skew = skew
        self.shift = shift

    def told(self, X: np.ndarray) -> Told:
        """The band of these rows, and nothing else."""
        return Told(self.band_at(X))

    def band_at(self, X: np.ndarray) -> Band:
        """Before calibration."""
        x = X[:, 0]
        below, above = np.maximum(x, 0) * np.exp(self.skew), 0.3 + np.square(x)
        return SCORES[self.conformal_score].fitted(0.5, 0.6).band(self.shift + np.sin(3 * x) * 0.9, below, above)


def learnt_bands(rng: np.random.Generator, law: NoiseLaw, calibration: str, score: str) -> SoSBandRegressor:
    """Bands of 60 rows, without calibration."""
    settings = {**FIXED, "calibration": str(calibration), "conformal_score": str(score), "calibration_size": None}
    return SoSBandRegressor(SmoothingSplineRegressor(), random_state=0, **settings).fit(*law.draw(rng, LEARNING))


def learnt_baseline(rng: np.random.Generator, law: NoiseLaw, calibration: str) -> Any:
    """A baseline of 60 rows, without calibration."""
    name = str(rng.choice(list(BASELINES)))
    settings = {"calibration": str(calibration), "calibration_size": None, "random_state": 0, **BASELINES[name]}
    return make_method(name, **settings).fit(*law.draw(rng, LEARNING))


WHOLE: dict[str, Callable[..., Any]] = {
    "bands": lambda **given: SoSBandRegressor(LinearRegression(), **{**FIXED, "conformal_score": "scaled", **given}),
    "split": lambda **given: SplitCP(LinearRegression(), **given),
    "local": lambda **given: LocallyWeightedCP(LinearRegression(), LinearRegression(), **given),
}
