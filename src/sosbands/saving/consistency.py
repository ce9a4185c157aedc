"""Whether the parts of an object that was read from a file go together: sizes, names, and what other packages gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sosbands.conformal import SCORES
from sosbands.conformal.arguments import read_fading, read_kind, read_level
from sosbands.regressors.base import LEARNT, SplitRegressor
from sosbands.tuning.views import BOTH, FOREST, INPUTS, LENGTHSCALES, MODEL, NO_SCALE, PREDICTION, read_noise_features

# Sizes of arrays and lists: fields with the same letter agree, within an object; * stands for any size.
SIZES = {
    "Calibration": {"lower_scores": "m", "upper_scores": "m", "groups": "m", "weights": "m", "inner_places": "m"},
    "GaussianProcess": {
        "X_train_": "nd",
        "cholesky_": "nn",
        "dual_coef_": "n",
        "noise_ratio_": "n",
        "lengthscale_": "d",
        "n_features_in_": "d",
    },
    "KernelFeatures": {"L": "pp", "V": "**"},
    "ModelBlend": {"members_": "k", "weights_": "k", "least_spreads_": "k", "spread_factors_": "k"},
    "NoiseView": {"center": "c", "spread": "c", "lengthscales": "d"},
    "NoisyProcess": {
        "points": "nd",
        "lengthscale": "d",
        "noise_lengthscale": "d",
        "factor": "nn",
        "weights": "n",
        "ones": "n",
        "noise_weights": "n",
    },
    "HeteroscedasticGP": {"x_min_": "d", "x_range_": "d"},
    "SmoothingSplineRegressor": {"knots_": "k", "coefficients_": "*"},
    "RelaxedQuantileCQR": {"coefficients_": "*2"},
    "SoSBandRegressor": {"active_lower_": "*", "active_upper_": "*", "nested_steps_": "2*"},
    "TypicalRows": {"unit": "n", "lower": "n", "upper": "n", "point": "d"},
}
REGRESSOR = {  # those of every interval regressor
    "learning_rows_": "n",
    "learning_hashes_": "n",
    "learning_mean_": "d",
    "learning_scale_": "d",
    "calibration_rows_": "*",
    "folds_": "m",
    "calibration_": "m",
    "levels_": "3",
    "models_": "3",
}
PREDICT = ("estimator_", "scale_estimator_", "size_forest_", "forest_")
TRANSFORM = ("preprocessor_", "filler_", "scaler_", "columns_encoder_", "targets_", "target_scaler_")


def check_together(made: Any) -> None:
    """Raise a ValueError, TypeError, LookupError or AttributeError if parts of an object contradict each other."""
    name = type(made).__name__
    is_regressor = isinstance(made, SplitRegressor)
    _check_sizes(made, {**(REGRESSOR if is_regressor else {}), **SIZES.get(name, {})})
    for part, method in [*((part, "predict") for part in PREDICT), *((part, "transform") for part in TRANSFORM)]:
        _demand_method(part, getattr(made, part, None), method)
    if is_regressor:
        _check_regressor(made)
    if name in CHECKS and (not is_regressor or hasattr(made, LEARNT)):
        CHECKS[name](made)


def _check_sizes(made: Any, sizes: dict[str, str]) -> None:
    known: dict[str, int] = {}
    for field, letters in sizes.items():
        value = getattr(made, field, None)
        if value is None:
            continue
        shape = (
            (value,) if isinstance(value, int) else np.shape(value) if isinstance(value, np.ndarray) else (len(value),)
        )
        fine = len(shape) == len(letters)
        for letter, size in zip(letters, shape, strict=False):
            fine = fine and (
                letter == "*" or int(letter if letter.isdigit() else known.setdefault(letter, size)) == size
            )
        if not fine:
            raise ValueError(f"{field} has shape {shape}")


def _demand_method(part: str, value: Any, method: str) -> None:
    if value is not None and not (callable(getattr(value, method, None)) and not isinstance(value, type)):
        raise TypeError(f"{part} is a {type(value).__name__}, which cannot {method}")


def _check_regressor(model: Any) -> None:
    model._check_parameters()
    read_kind(model.calibration)
    read_level(model.confidence_level)
    if not hasattr(model, LEARNT):
        return
    _demand_all("models_", getattr(model, "models_", ()), "predict")
    if hasattr(model, "copies_"):
        folds = model.folds_
        if not all(type(copy) is type(model) and hasattr(copy, LEARNT) for copy in model.copies_):
            raise TypeError("copies_ that are none")
        if not np.array_equal(np.unique(folds), np.arange(len(model.copies_))):
            raise ValueError("folds_ of other copies")


def _check_bands(model: Any) -> None:
    if model.conformal_score_ not in SCORES:
        raise ValueError(f"conformal_score_ is {model.conformal_score_!r}")
    columns = _columns(model.view_, len(model.learning_mean_))
    nested, steps = model.nested_, model.nested_steps_
    if nested is not None and (steps is None or steps.shape[1] != len(nested.coverages) or nested.coverages[-1] >= 1):
        raise ValueError("nested_ of other steps")
    for f in (model.lower_, model.upper_, *(() if nested is None else (*nested.lower_steps, *nested.upper_steps))):
        if f.features.point_shape != (columns,):
            raise ValueError(f"bands of {f.features.point_shape} columns, expected {columns}")
    if FOREST in model.view_.scales and model.size_forest_ is None:
        raise ValueError("no forest of residual sizes")
    if hasattr(model, "typical_"):
        named = [len(rows) for rows in model.typical_.landmark_rows]
        if named != [len(f.features.L) for f in (model.lower_, model.upper_)]:
            raise ValueError("typical_ of other landmarks")
        if len(model.typical_.point) != columns:
            raise ValueError("typical_ of other noise features")


def _columns(view: Any, n_inputs: int) -> int:
    """How many columns the kernel sees."""
    if view.lengthscales is not None and len(view.lengthscales) != n_inputs:
        raise ValueError("lengthscales of other inputs")
    own = (PREDICTION in view.parts) + len(view.logged)
    if own and len(view.center) != own:
        raise ValueError("units of other columns")
    return own + n_inputs * ((INPUTS in view.parts) + (view.lengthscales is not None))


def _check_view(view: Any) -> None:
    read_noise_features(view.noise_features)
    if view.base_scale not in (NO_SCALE, BOTH, MODEL, FOREST) or not set(view.logged) <= {MODEL, FOREST}:
        raise ValueError(f"base_scale is {view.base_scale!r}")
    if (LENGTHSCALES in view.parts) != (view.lengthscales is not None):
        raise ValueError("lengthscales that are not among the features")


def _check_features(features: Any) -> None:
    pivots = len(features.L)
    if len(features.landmarks) != pivots or len(features.V) != pivots + (features.constant != 0):
        raise ValueError("features of other landmarks")
    if not 0 <= features.support_rank <= pivots:
        raise ValueError(f"support_rank is {features.support_rank}")
    if features.landmarks.ndim == 2:
        features.kernel(features.landmarks[:1], features.landmarks[:1])  # complains about other columns


def _check_blend(blend: Any) -> None:
    _demand_all("members_", getattr(blend, "members_", ()), "predict")


def _check_spline(spline: Any) -> None:
    from scipy.interpolate import BSpline

    if hasattr(spline, "knots_"):
        BSpline(spline.knots_, spline.coefficients_, spline.degree_)


def _check_encoder(encoder: Any) -> None:
    if not hasattr(encoder, "kinds_"):
        return
    coded = [*encoder.one_hot_, *encoder.by_target_]
    lacking = [name for name in (*coded, *encoder.gaps_) if name not in encoder.kinds_]
    lacking += [name for name in coded if name not in encoder.levels_]
    if lacking or len(encoder.kinds_) != encoder.n_features_in_:
        raise ValueError(f"columns {lacking} that are not there")


def _check_relaxed(model: Any) -> None:
    if not len(model.coefficients_) - 1 >= model.features_.rank:
        raise ValueError("coefficients_ of other features")


def _check_calibration(made: Any) -> None:
    read_fading(None, made.decay, with_ratio=made.weights is not None)
    for name in ("lower_scores", "upper_scores", "weights", "inner_places"):
        values = getattr(made, name, None)
        if values is not None and np.isnan(values).any():
            raise ValueError(f"{name} with NaN")


def _demand_all(part: str, values: Iterable[Any], method: str) -> None:
    for value in values:
        _demand_method(part, value if value is not None else 0, method)


CHECKS: dict[str, Callable[[Any], None]] = {
    "Calibration": _check_calibration,
    "KernelFeatures": _check_features,
    "ModelBlend": _check_blend,
    "NoiseView": _check_view,
    "RelaxedQuantileCQR": _check_relaxed,
    "SmoothingSplineRegressor": _check_spline,
    "SoSBandRegressor": _check_bands,
    "TableEncoder": _check_encoder,
}
