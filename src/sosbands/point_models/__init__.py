"""The models that bands are put around, and which of their residuals to trust."""

from sosbands.point_models.blend import ModelBlend, default_regressor
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.quantile_model import QuantileModel
from sosbands.point_models.residuals import LearntResiduals, learn_residuals
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor
from sosbands.point_models.user_model import TableColumns

__all__ = [
    "GaussianProcess",
    "LearntResiduals",
    "ModelBlend",
    "QuantileModel",
    "SmoothingSplineRegressor",
    "TableColumns",
    "default_regressor",
    "learn_residuals",
]
