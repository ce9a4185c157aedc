"""The models that bands are put around, and which of their residuals to trust."""

from sosbands.point_models.defaults import (
    MAX_GAUSSIAN_PROCESS_ROWS,
    CallableRegressor,
    default_regressor,
    model_name,
    point_model,
)
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.residuals import (
    LearntResiduals,
    chosen_rule,
    learn_residuals,
    leave_one_out_process,
    one_per_row,
    residual_rule,
    row_blocks,
    row_folds,
)
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor

__all__ = [
    "MAX_GAUSSIAN_PROCESS_ROWS",
    "CallableRegressor",
    "GaussianProcess",
    "LearntResiduals",
    "SmoothingSplineRegressor",
    "chosen_rule",
    "default_regressor",
    "learn_residuals",
    "leave_one_out_process",
    "model_name",
    "one_per_row",
    "point_model",
    "residual_rule",
    "row_blocks",
    "row_folds",
]
