"""From a fitted `SoSBandRegressor` to the program of its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._extras import __version__
from sosbands._types import AnyArray
from sosbands.bands.views import BOTH, FOREST, INPUTS, MODEL, NO_SCALE, PREDICTION, NoiseView
from sosbands.conformal import AddedScore, ScaledScore, TargetScale
from sosbands.conformal.asked import calibration_of, read_kind
from sosbands.conformal.band import ROUNDING
from sosbands.conformal.scores import SHIFTED
from sosbands.conformal.target import LOG, SQRT
from sosbands.exceptions import ExportError
from sosbands.point_models.user_model import LARGEST_SINGLE
from sosbands.regressors import SoSBandRegressor
from sosbands.serving.kernels import add_bands
from sosbands.serving.models import (
    TABLE,
    Nodes,
    add_check,
    add_model,
    add_model_with_spread,
    add_table,
    add_table_inputs,
    add_transformer,
    add_trees,
)
from sosbands.serving.program import INTEGERS, NUMBERS, TEXTS, Program
from sosbands.tables import TableEncoder

X, GROUPS, STD = "X", "groups", "std"
OUTPUTS = ("prediction", "lower", "upper", "support")


def program_of(model: Any, levels: list[float], *, lower_share: float = 0.5, bands_only: bool = False) -> Program:
    """The steps from raw features to prediction, ends at each level, and support.

    Parameters
    ----------
    model : SoSBandRegressor
        Fitted and calibrated.
    levels : list of float
        Confidence levels.
    lower_share : float
        As in `predict_interval`.
    bands_only : bool
        Make the prediction, and its standard deviation if the bands look at it, inputs.
    """
    check_model(model)
    other_scale = model.noise_.target is not None and model.noise_.target.transform is not None
    if bands_only and (other_scale or model.noise_.typical.unit.ndim == 2):
        raise ExportError(
            "bands_only=True of a model with a target_transform, or around a quantile model: not offered, because one "
            "prediction in units of the target is not all that the bands are put around"
        )
    program = Program()
    seen, columns, points, checked = _add_points(program, model)
    prediction, scales = _add_prediction(program, model, (seen, columns), bands_only=bands_only)
    if FOREST in model.noise_.view.scales:
        scales[FOREST] = _add_sizes(program, model.noise_.size_forest, points, prediction)
    view: NoiseView = model.noise_.view
    below, above, support = add_bands(
        program, _add_view(program, view, points, prediction, scales), model.noise_.lower, model.noise_.upper
    )
    unit = _add_unit(program, view, scales)
    band = _add_band(program, model.noise_.score, (prediction, below, above), unit)
    lower, upper = _add_ends(program, band, _add_quantiles(program, model, levels, lower_share))
    prediction, lower, upper = (_given(program, model.noise_.target, each) for each in (prediction, lower, upper))
    made = dict(zip(OUTPUTS, (prediction, lower, upper, support), strict=True))
    if bands_only:
        del made[PREDICTION]
    program.outputs = {
        name: value if checked is None else program.add("add", value, checked) for name, value in made.items()
    }
    program.facts = {"confidence_level": levels, "sosbands": __version__}
    if X in program.inputs and hasattr(model, "feature_names_in_"):
        program.facts["feature_names"] = [str(name) for name in model.feature_names_in_]
    odd = sorted(set(program.inputs) & set(program.outputs) | {name for name in program.inputs if name[:1] == "/"})
    if odd:
        raise ExportError(f"X has columns {odd}, names that the file needs for itself: expected other names")
    return program.pruned()


def check_model(model: Any) -> None:
    """Complain about models that have no one program of their intervals."""
    if not isinstance(model, SoSBandRegressor):
        raise ExportError(f"model is a {type(model).__name__}: expected a fitted SoSBandRegressor")
    calibration = calibration_of(model)
    if calibration.copies:
        raise ExportError(
            "model has calibration_size='cross', whose intervals are made of several copies and all their scores: "
            "expected rows held back (a number), or calibration by conformalize"
        )
    if model.noise_.nested is not None:
        raise ExportError(
            f"model has nested_coverages={model.nested_coverages!r}, whose intervals are made of several pairs of "
            "bands: expected one pair, fit with nested_coverages=None"
        )
    target = model.noise_.target
    if target is not None and not (target.transform is None or isinstance(target.transform, str)):
        raise ExportError(f"target_transform: a {target.words} cannot be exported: expected 'log', 'sqrt' or None")
    if calibration.weights is not None:
        raise ExportError(
            "model was calibrated with likelihood_ratio, so that each row has quantiles of its own: expected a "
            "calibration without weights"
        )


def _add_points(program: Program, model: SoSBandRegressor) -> tuple[str, int, str, str | None]:
    """What the point model sees and how many columns this has, what the preprocessor gives, and a check of the row."""
    fitted, columns = model.reader_.preprocessor, int(model.n_features_in_)
    if isinstance(fitted, TableEncoder):
        add_table_inputs(program, fitted)
        points, checked = add_table(program, fitted)
        return (points if model.reader_.model_sees_points else TABLE), len(model.reader_.mean), points, checked
    x = program.input(X, NUMBERS, columns)
    try:
        points, width = add_transformer(program, fitted, x, columns)
    except (TypeError, ValueError) as error:
        raise ExportError(
            f"preprocessor: a {type(fitted).__name__} of rows that are no numbers cannot be exported ({error})"
        ) from error
    seen = (points, width) if model.reader_.model_sees_points else (x, columns)
    return *seen, points, add_check(program, x)


def _add_prediction(
    program: Program, model: SoSBandRegressor, seen: tuple[str, int], *, bands_only: bool
) -> tuple[str, dict[str, str]]:
    with_spread = MODEL in model.noise_.view.scales
    if bands_only:
        prediction = program.input(PREDICTION, NUMBERS, 1)
        return prediction, ({MODEL: program.input(STD, NUMBERS, 1)} if with_spread else {})
    if not with_spread:
        return add_model(program, model.estimator_, *seen), {}
    prediction, spread = add_model_with_spread(program, model.estimator_, *seen)
    return prediction, {MODEL: spread}


def _add_sizes(program: Program, forest: Any, points: str, prediction: str) -> str:
    """The forest of residual sizes, which sees inputs and prediction in single precision."""
    table = program.joined([points, prediction])
    within = program.add("maximum", program.add("minimum", table, LARGEST_SINGLE), -LARGEST_SINGLE)
    nodes = [Nodes.of_tree(tree.tree_) for tree in forest.estimators_]
    return add_trees(program, program.add("single", within), nodes, factor=1 / len(nodes))


def _add_view(program: Program, view: NoiseView, points: str, prediction: str, scales: dict[str, str]) -> str:
    """What the kernel sees, as `NoiseView.points` makes it."""
    blocks = []
    if view.lengthscales is not None:
        blocks.append(program.add("divide", points, view.lengthscales))
    if INPUTS in view.parts:
        blocks.append(points)
    tiny = float(np.finfo(float).tiny)
    found = [prediction] if PREDICTION in view.parts else []
    found += [program.add("log", program.add("maximum", scales[name], tiny)) for name in view.logged]
    if found:
        blocks.append(program.standardised(program.joined(found), view.center, view.spread))
    return program.joined(blocks)


def _add_unit(program: Program, view: NoiseView, scales: dict[str, str]) -> str | None:
    """The base scale, as `NoiseView.unit` makes it; None for 1."""
    if view.base_scale == NO_SCALE:
        return None
    if view.base_scale == BOTH:
        roots = [program.add("sqrt", scales[name]) for name in (MODEL, FOREST)]
        return program.add("maximum", program.add("multiply", *roots), view.least)
    return program.add("maximum", scales[view.base_scale], view.least)


Band = tuple[str, str, str | None, str | None]


def _add_band(program: Program, score: Any, parts: tuple[str, str, str], unit: str | None) -> Band:
    """Both ends before calibration and the unit of each, None for 1, as the scores make them."""
    center, below, above = parts

    def reach(value: str) -> str:
        return value if unit is None else program.add("multiply", value, unit)

    if isinstance(score, AddedScore):
        moved = None if score.name == SHIFTED else unit
        return program.add("subtract", center, reach(below)), program.add("add", center, reach(above)), moved, moved
    if isinstance(score, ScaledScore):
        units = [program.add("maximum", f, floor) for f, floor in zip((below, above), score.floors, strict=True)]
        return center, center, reach(units[0]), reach(units[1])
    raise ExportError(f"conformal_score: a {type(score).__name__} cannot be exported")


def _add_quantiles(program: Program, model: Any, levels: list[float], lower_share: float) -> tuple[str, str]:
    """Quantiles of the lower and of the upper scores at each level: constants, or looked up by the group."""
    groups = model.calibration_.groups
    labels = None if groups is None else np.unique(groups)
    n = 1 if labels is None else len(labels)
    calibration, kind = model.calibration_, read_kind(model.calibration)
    each = [calibration.quantiles(level, kind, lower_share, groups=labels) for level in levels]
    q = np.stack(each, axis=2)  # (n, 2, k)
    if np.isneginf(q).any():
        raise ExportError("the calibration has a quantile of minus infinity, from a scale of zero: nothing to export")
    outwards = q * np.where(q > 0, 1 + ROUNDING, 1 - ROUNDING)
    if labels is None:
        return program.constant(outwards[0, 0]), program.constant(outwards[0, 1])
    table = np.vstack([outwards.reshape(n, -1), np.full((1, 2 * len(levels)), np.nan)])
    keys, labelled = _keys(labels)
    found = program.add("label_lookup", program.input(GROUPS, labelled, 1), keys, table)
    return program.part(found, 0, len(levels)), program.part(found, len(levels), 2 * len(levels))


def _keys(labels: AnyArray) -> tuple[AnyArray, str]:
    if labels.dtype.kind in "iu" and int(labels.max()) <= np.iinfo(np.int64).max:
        return labels.astype(np.int64), INTEGERS
    if labels.dtype.kind in "UO" and all(isinstance(label, str) for label in labels.tolist()):
        return labels.astype(str), TEXTS
    raise ExportError(f"groups: labels of type {labels.dtype} cannot be exported; expected texts or integers")


def _add_ends(program: Program, band: Band, q: tuple[str, str]) -> tuple[str, str]:
    """Both ends at each level; the midpoint twice where they cross."""
    lower, upper, lower_unit, upper_unit = band

    def moved(operation: str, end: str, quantile: str, unit: str | None) -> str:
        return program.add(operation, end, quantile if unit is None else program.add("multiply", quantile, unit))

    a, b = moved("subtract", lower, q[0], lower_unit), moved("add", upper, q[1], upper_unit)
    middle = program.add("multiply", program.add("add", a, b), 0.5)
    return program.add("if_greater", a, b, middle, a), program.add("if_greater", a, b, middle, b)


def _given(program: Program, target: TargetScale | None, value: str) -> str:
    """A value on the scale of learning in units of the target, within its range, as `TargetScale.backward` has it."""
    if target is None:
        return value
    if target.transform == LOG:
        value = program.add("exp", value)
    elif target.transform == SQRT:
        value = program.add("maximum", value, 0.0)
        value = program.add("multiply", value, value)
    value = value if target.low == -np.inf else program.add("maximum", value, target.low)
    return value if target.high == np.inf else program.add("minimum", value, target.high)
