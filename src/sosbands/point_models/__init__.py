"""The models that bands are put around, and which of their residuals to trust."""

from sosbands.point_models.blend import ModelBlend
from sosbands.point_models.defaults import (
    MAX_GAUSSIAN_PROCESS_ROWS,
    CallableRegressor,
    default_regressor,
    model_name,
    model_words,
    point_model,
)
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.residuals import (
    LearntResiduals,
    chosen_rule,
    learn_residuals,
    learns_nothing,
    leave_one_out_process,
    one_per_row,
    residual_rule,
    row_blocks,
    row_folds,
)
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor
from sosbands.point_models.spread import knows_spread, predict_with_spread
from sosbands.point_models.table_columns import TableColumns
from sosbands.point_models.weights import fit_model

__all__ = [
    "MAX_GAUSSIAN_PROCESS_ROWS",
    "CallableRegressor",
    "GaussianProcess",
    "LearntResiduals",
    "ModelBlend",
    "SmoothingSplineRegressor",
    "TableColumns",
    "chosen_rule",
    "default_regressor",
    "fit_model",
    "knows_spread",
    "learn_residuals",
    "learns_nothing",
    "leave_one_out_process",
    "model_name",
    "model_words",
    "one_per_row",
    "point_model",
    "predict_with_spread",
    "residual_rule",
    "row_blocks",
    "row_folds",
]
