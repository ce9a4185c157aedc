"""Which residuals the bands are learnt from.

A band is learnt from residuals, so these must look like the errors on new data. A model that (nearly) interpolates its
learning rows has residuals near zero there, and a band learnt from them would be far too narrow before calibration;
`residual_rule` says which residuals of which models can be trusted.
"""

from __future__ import annotations

from typing import Any, Literal

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from sosbands.exceptions import LeaveOneOutError
from sosbands.point_models.defaults import MAX_GAUSSIAN_PROCESS_ROWS, CallableRegressor
from sosbands.point_models.gaussian_process import GaussianProcess
from sosbands.point_models.smoothing_spline import SmoothingSplineRegressor


def residual_rule(estimator: Any) -> Literal["in-sample", "leave-one-out", "out-of-fold"]:
    """Which residuals ``residuals="auto"`` takes for this point model.

    Leave-one-out for `GaussianProcess`, which has them in closed form. In-sample for models that do not see the
    learning rows (`FrozenEstimator`, plain functions, `CallableRegressor`) and for `SmoothingSplineRegressor`, which
    chooses its smoothness by a criterion that punishes interpolation. Out-of-fold for everything else: forests,
    boosting, nearest neighbours, networks and pipelines may (nearly) interpolate, and their in-sample residuals are
    then near zero.
    """
    if isinstance(estimator, GaussianProcess):
        return "leave-one-out"
    if isinstance(estimator, SmoothingSplineRegressor | FrozenEstimator | CallableRegressor):
        return "in-sample"
    if hasattr(estimator, "fit"):
        return "out-of-fold"
    if callable(estimator):
        return "in-sample"
    raise ValueError(f"estimator={estimator!r}: expected a regressor or a function of X")


def chosen_rule(residuals: str, estimator: Any) -> str:
    """The rule that the parameter `residuals` means for this point model, fitted or not.

    Raises
    ------
    LeaveOneOutError
        If leave-one-out residuals are asked for and the model cannot give them.
    """
    if residuals == "leave-one-out":
        leave_one_out_process(estimator)
    return residual_rule(estimator) if residuals == "auto" else residuals


def leave_one_out_process(estimator: Any) -> GaussianProcess:
    """The Gaussian process in a point model: the model itself or the last step of a pipeline.

    A frozen process is none: it was fitted to other rows than those whose residuals are wanted.
    """
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, GaussianProcess):
        raise LeaveOneOutError(
            f"residuals='leave-one-out' with the point model {last!r}: expected a GaussianProcess (the default up to "
            f"{MAX_GAUSSIAN_PROCESS_ROWS} learning rows), alone or as the last step of a pipeline"
        )
    return last
