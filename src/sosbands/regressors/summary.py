"""A fitted SoSBandRegressor in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._words import many
from sosbands.conformal import move_in_words, points_needed, side_levels
from sosbands.conformal.cross import proven_coverage
from sosbands.conformal.scores import normal_places
from sosbands.point_models.defaults import model_words
from sosbands.point_models.folds import keeps_order
from sosbands.tables import TableEncoder
from sosbands.tuning.views import INPUTS, NO_SCALE

BOTH = "both"
LOWER_SHARE = {BOTH: 0.5, "lower": 1.0, "upper": 0.0}  # part of the miscoverage that rows below the interval may have


LATER = " The rows are in the order of time: of later ones it holds only as far as things stay as they are."


def describe(model: Any, side: str = BOTH) -> str:
    """What was learnt, how asymmetric it is, what shapes it, how certain the solver is, what calibration did."""
    return "\n".join(paragraphs(model, side).values())


def paragraphs(model: Any, side: str = BOTH) -> dict[str, str]:
    """The same by subject, without those that there is nothing to say about; of one end, what holds of it alone."""
    sections = (_learnt, _columns, _rows, _reasons, _asymmetry, _shape, _certificate, _nested)
    said = {section.__name__.removeprefix("_"): section(model) for section in sections}
    said |= {"calibration": _calibration(model, side), "promise": _promise(model, side)}
    return {subject: words for subject, words in said.items() if words}


def _learnt(model: Any) -> str:
    name = model_words(model.estimator_)
    rows = f"{many(len(model.learning_rows_), 'learning row')} and {many(model.n_features_in_, 'feature')}"
    scales = "the kernel's own lengthscale" if model.lengthscale_ is None else f"lengthscale {_scale(model)}"
    numbers = f"{scales}, symmetry penalty {_number(model.symmetry_penalty_)}"
    chosen = f"Set: {numbers}." if model.tuning_ is None else f"{model.tuning_.sentence} Chosen: {numbers}."
    if model.view_.base_scale != NO_SCALE or model.view_.noise_features != INPUTS:
        constant = isinstance(model.lengthscale_, float) and np.isinf(model.lengthscale_)
        looks = "" if constant else f", over {model.view_.noise_features.replace('+', ', ')}"
        chosen += f" Bands in units of the base scale {model.view_.base_scale!r}{looks}."
    residuals = f"from {rows}, by {model.residual_rule_} residuals (RMS {model.residual_rms_:.4g})"
    return f"Bands around {name}, learnt {residuals}. {chosen}"


def _columns(model: Any) -> str:
    """How a table became numbers; nothing for numbers, and for a transformer of the user's."""
    made = model.preprocessor_
    if isinstance(made, TableEncoder):
        return made.describe()
    reused = isinstance(model.preprocessor, str) and not model.reads_numbers_
    return "The kernel sees what the transformers of the point model make, standardised." if reused else ""


def _rows(model: Any) -> str:
    """Where some of the rows were enough: what was learnt from how many."""
    n, noise, bands = len(model.learning_rows_), getattr(model, "n_noise_rows_", 0), getattr(model, "n_band_rows_", 0)
    parts = []
    if 0 < bands < n * (1 - model.outlier_fraction) - 1:
        parts.append(f"The noise was learnt from the residuals of {noise} of these rows, the bands from {bands}.")
    if getattr(model, "n_unused_rows_", 0):
        parts.append(f"{model.n_unused_rows_} of the rows given, drawn at random, were not used: there are enough.")
    return " ".join(parts)


def _reasons(model: Any) -> str:
    """One line for each setting that was chosen: by how much the best other value scored worse on held-out rows."""
    reasons = () if model.tuning_ is None else model.tuning_.reasons
    return "\n".join(f"Chosen {reason}." for reason in reasons)


def _scale(model: Any) -> str:
    value = model.lengthscale_
    if isinstance(value, dict):
        return f"{_number(value['lower'])} below and {_number(value['upper'])} above"
    return _number(value)


def _asymmetry(model: Any) -> str:
    below, above = model.mean_lower_, model.mean_upper_
    if below == above == 0:
        return "All residuals are zero: the bands have no width."
    ratio = max(below, above) / max(min(below, above), np.finfo(float).tiny)
    side = "above" if above > below else "below"
    if ratio < 1.02:
        words = "the bands are as good as symmetric"
    else:
        words = f"the bands reach {_times(ratio)} as far {side} the prediction as on the other side"
    unit = "" if model.view_.base_scale == NO_SCALE else " (in base scales)"
    reach = f"{below:.4g} below and {above:.4g} above the prediction before calibration{unit}"
    return f"On average they reach {reach}: {words}."


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 100 else "over 100 times"


def _shape(model: Any) -> str:
    below, above = len(model.active_lower_), len(model.active_upper_)
    squares = f"squares: {model.lower_.rank} below, {model.upper_.rank} above"
    dropped = int(np.floor(model.outlier_fraction * len(model.learning_rows_)))
    free = f" {many(dropped, 'row')} with the largest residuals left out of the bands." if dropped else ""
    return f"Rows that shape them: {below} below, {above} above (active_lower_, active_upper_); {squares}.{free}"


def _certificate(model: Any) -> str:
    c = model.certificate_
    if c["status"] == "converged":
        start = f"Certified: the cost of the bands is within {max(c['gap'], 1e-16):.1e} (relative) of the best possible"
    else:
        start = f"NOT certified to the tolerance asked for ({c['status']}): the gap is {c['gap']:.1e}"
    left_out = c["trace_left_out"]
    features = f"{c['n_features']} kernel features" + (
        f" that leave out {left_out:.1e} of the kernel's trace" if left_out > 1e-12 else ""
    )
    return f"{start}, found in {c['seconds']:.2g} s with {features}."


def _nested(model: Any) -> str:
    """The nested bands; nothing of a model without them."""
    if model.nested_ is None:
        return ""
    coverages, gaps = model.nested_.coverages, [each["gap"] for each in model.nested_certificates_ or ()]
    named, places = ", ".join(map(_percent, coverages)), ", ".join(f"{each:.3g}" for each in normal_places(coverages))
    return (
        f"Nested bands in use, learnt for {named}; on the scale of calibration they lie at {places}. Each is certified "
        f"to {max([*gaps, 1e-16]):.1e} as a step from the last."
    )


def _calibration(model: Any, side: str) -> str:
    """What calibration did to the bands; nothing where it has not been done, or makes them infinite."""
    if "calibration_" not in vars(model):
        return ""
    calibration, score, at = model.calibration_, model._score, f"Calibration at {_percent(model.confidence_level)}"
    if "copies_" in vars(model):
        return f"{at}: by {len(model.copies_)} copies, each with bands learnt without one fold of the rows."
    if calibration.groups is not None or calibration.weights is not None:
        each = "row" if calibration.weights is not None else "group"
        moved = "both ends" if side == BOTH else f"the {side} end"
        return f"{at}: {score.outwards.format(q='a number', ends=moved)}, its own for each {each}."
    q = _quantiles(model, side)
    if not np.isfinite(list(q.values())).all():
        return ""
    scaled = model.view_.base_scale != NO_SCALE and score.name == "added"
    unit = ", in base scales" if scaled else ""
    return f"{at}: {', '.join(move_in_words(score, each, ends) for ends, each in q.items())}{unit}."


def _quantiles(model: Any, side: str) -> dict[str, float]:
    """By what each end, or both, are moved: one end alone takes all of the miscoverage."""
    kind, share = _kind_and_share(model, side)
    below, above = model.calibration_.quantiles(model.confidence_level, kind, share)[0].tolist()
    if kind == "symmetric":
        return {"both ends": below}
    each = {"the lower end": below, "the upper end": above}
    return each if side == BOTH else {f"the {side} end": each[f"the {side} end"]}


def _kind_and_share(model: Any, side: str) -> tuple[Any, float]:
    return ("asymmetric", LOWER_SHARE[side]) if side != BOTH else (model.calibration, 0.5)


def _promise(model: Any, side: str) -> str:
    if "calibration_" not in vars(model):
        return "Not calibrated: call conformalize(X, y) with rows that fit has not seen before asking for intervals."
    calibration, level = model.calibration_, model.confidence_level
    sizes = [len(part) for _, part in calibration.parts()]
    if "copies_" in vars(model):
        return _cross_promise(model, min(sizes), len(sizes), side)
    worth = [float(part.age_weights().sum()) for _, part in calibration.parts()]
    start = f"Calibrated on {many(len(calibration), 'row')}"
    if calibration.groups is not None:
        start += f" in {many(len(sizes), 'group')} of {min(sizes)} to {max(sizes)}"
    if model.n_learnt_calibration_rows_:
        return (
            f"{start}, {model.n_learnt_calibration_rows_} of which were learnt from in fit: NO coverage is promised. "
            "Call conformalize(X, y) with rows that fit has not seen."
        )
    if calibration.decay is not None:
        start += f", older ones counting less (each {_percent(calibration.decay)} of the next)"
    within = "within each group " if calibration.groups is not None else ""
    both = f"{within}at least {_percent(level)} of new rows {_fall(side)}"
    if model.calibration == "asymmetric" and side == BOTH:
        half = _percent((1 - level) / 2)
        both += f", at most {half} below and at most {half} above it"
    if calibration.weights is not None:
        both += ", if the likelihood ratios are right"
    short = _shortage(model, min(worth), side)
    late = LATER if keeps_order(getattr(model, "cv", None)) else ""
    return (
        f"{start}: {both}, on average over calibration sets and over rows like those, whatever the distribution."
        f"{short}{_drifting(calibration)}{late} This is not promised for every single region of the features, nor for"
        " rows of another kind."
    )


def _fall(side: str) -> str:
    """What new rows do that are covered."""
    ends = {"lower": "lie at or above their lower end", "upper": "lie at or below their upper end"}
    return ends.get(side, "fall into their interval")


def _cross_promise(model: Any, smallest: int, n_groups: int, side: str) -> str:
    level, grouped = model.confidence_level, model.calibration_.groups is not None
    alone = model.calibration == "symmetric" or side != BOTH
    levels = (level,) if alone else side_levels(level, "asymmetric")
    folds = min(smallest, len(model.copies_))
    proven = max(0.0, 1 - sum(1 - proven_coverage(each, smallest, folds, alike=not grouped) for each in levels))
    each = f" in {n_groups} groups, the smallest of {smallest}" if grouped else ""
    within = "within each group " if grouped else ""
    return (
        f"Cross-calibrated on all {len(model.calibration_)} rows{each}: {within}about {_percent(level)} of new rows"
        f" {_fall(side)} as a rule, and at least {_percent(round(proven, 3))} is proven, on average over"
        f" rows like those, whatever the distribution.{_shortage(model, smallest, side)} This is not promised for every"
        " single region of the features, nor for rows of another kind."
    )


def _is_short(model: Any, side: str) -> bool:
    """Whether some group has too few calibration rows for finite ends."""
    level, (kind, share) = model.confidence_level, _kind_and_share(model, side)
    parts = [part for _, part in model.calibration_.parts()]
    return any(part.shortage(part.quantiles(level, kind, share), level, kind, share, None) for part in parts)


def _shortage(model: Any, smallest: float, side: str) -> str:
    """How many rows a finite interval takes, if there are not enough."""
    if not _is_short(model, side):
        return ""
    levels = side_levels(model.confidence_level, "symmetric" if side != BOTH else model.calibration)
    needed = max(points_needed(each) for each in levels)
    which = "" if model.calibration_.groups is None else " in some groups"
    return f" That takes {many(round(needed), 'row')}: with {smallest:.4g} the intervals{which} are infinite."


def _drifting(calibration: Any) -> str:
    """What is left of the promise where rows were weighed by their age."""
    if calibration.decay is None:
        return ""
    return " If rows drift, the less the later ones do so the nearer it comes, and nothing exact is promised."


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def _number(value: Any) -> str:
    if isinstance(value, (int, float, np.number)):
        return f"{value:.3g}"
    return np.array2string(np.asarray(value, dtype=float), precision=3)
