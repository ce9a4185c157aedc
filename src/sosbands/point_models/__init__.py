"""The models that bands are put around, and which of their residuals to trust."""

from sosbands.point_models.defaults import MAX_GAUSSIAN_PROCESS_ROWS, CallableRegressor, default_regressor, point_model
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.residuals import chosen_rule, leave_one_out_process, residual_rule
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor

__all__ = [
    "MAX_GAUSSIAN_PROCESS_ROWS",
    "CallableRegressor",
    "GaussianProcess",
    "SmoothingSplineRegressor",
    "chosen_rule",
    "default_regressor",
    "leave_one_out_process",
    "point_model",
    "residual_rule",
]
