"""`explain` of a SoSBandRegressor: its rows, bands and columns as the room of explanations knows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._threads import few_threads
from sosbands._types import IntArray
from sosbands.conformal import Calibration
from sosbands.conformal.arguments import read_kind, read_level
from sosbands.explanation import Explanation
from sosbands.explanation.explain import Bands, explain_width
from sosbands.tables import TableEncoder
from sosbands.tuning.views import INPUTS, PREDICTION


def explain(model: Any, X: Any, confidence_level: Any, groups: Any, likelihood_ratio: Any) -> Explanation:
    """Widths of the intervals of a fitted and calibrated model, taken apart."""
    calibration = model._calibrated("explain")
    if "typical_" not in vars(model):
        raise ValueError("this model was saved by a version that kept no typical rows: fit it again to explain it")
    if model.nested_ is not None:
        raise ValueError(
            "explain of a model with nested_coverages: not offered, because its widths are no product of one band and "
            "one number; fit with nested_coverages=None"
        )
    level = read_level(model.confidence_level if confidence_level is None else confidence_level)
    _, _, ((ends, _),) = model._intervals(X, [level], 0.5, groups, likelihood_ratio)
    rows = model._read(X, reset=False)
    with few_threads(blas=model._has_own_model()):
        facts = [model._facts(block) for block in rows.blocks()]
    view = model.view_
    return explain_width(
        ends[:, 1] - ends[:, 0],
        np.vstack([view.points(block) for block in facts]),
        np.concatenate([view.unit(block) for block in facts]),
        Bands(model.lower_, model.upper_, model._score, _common_quantiles(model, calibration, level)),
        model.typical_,
        noise_columns(model),
        confidence_level=level,
        support_limit=model.support_limit,
        scale_name=view.base_scale,
        calibrated_by=_calibrated_by(model, calibration),
    )


def _common_quantiles(model: Any, calibration: Calibration, level: float) -> tuple[float, float]:
    """Those of all calibration rows together, each counted once, or by its age."""
    decay = calibration.decay if calibration.groups is None else None  # ages are counted within groups
    together = Calibration(calibration.lower_scores, calibration.upper_scores, decay=decay)
    below, above = together.quantiles(level, read_kind(model.calibration))[0].tolist()
    return below, above


def _calibrated_by(model: Any, calibration: Calibration) -> str:
    if "copies_" in vars(model):
        return "copies"
    if calibration.groups is not None:
        return "groups"
    return "all" if calibration.weights is None else "weights"


def noise_columns(model: Any) -> dict[str, IntArray]:
    """Columns of the noise features, by the column of the user's table, or by what else they are made of."""
    view = model.view_
    names = input_names(model) if INPUTS in view.parts or view.lengthscales is not None else []
    names += ["(prediction)"] if PREDICTION in view.parts else []
    names += ["(scale)"] * len(view.logged)
    return {name: np.flatnonzero([each == name for each in names]) for name in dict.fromkeys(names)}


def input_names(model: Any) -> list[str]:
    """For each column that the preprocessor gives the column of the table that it is made of, as far as that is known.

    A transformer of the user's is asked for the names of what it gives.
    """
    made, count = model.preprocessor_, len(model.learning_mean_)
    if isinstance(made, TableEncoder):
        return [str(name) for name in made.sources()]
    if count == model.n_features_in_ and model.reads_numbers_:
        given = getattr(model, "feature_names_in_", None)
        return [f"feature {k}" for k in range(count)] if given is None else [str(name) for name in given]
    try:
        names = [str(name) for name in made.get_feature_names_out()]
    except (AttributeError, ValueError, TypeError):  # not every transformer knows
        names = []
    return names if len(names) == count else [f"column {k}" for k in range(count)]
