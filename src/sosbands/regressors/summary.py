"""A fitted SoSBandRegressor in words: a paragraph for whoever decides, and the rest by subject."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands._words import many
from sosbands.bands import views
from sosbands.bands.settings import is_auto
from sosbands.bands.views import INPUTS, NO_SCALE, NoiseView
from sosbands.conformal import Calibration, interval, move_in_words, points_needed, side_levels
from sosbands.conformal.asked import SIDES
from sosbands.conformal.band import sides_of
from sosbands.conformal.cross import proven_coverage
from sosbands.conformal.scores import normal_places
from sosbands.metrics.local import long_run_coverage
from sosbands.point_models.blend import model_words
from sosbands.point_models.user_model import keeps_order
from sosbands.tables import TableEncoder
from sosbands.tables.rows import NUMBERS
from sosbands.tuning import Rules
from sosbands.tuning.search import is_symmetric

BOTH = "both"
FALL = {  # what new rows do that are covered
    "lower": "lie at or above their lower end",
    "upper": "lie at or below their upper end",
    BOTH: "fall into their interval",
}
NEXT_TO_NOTHING = 1e-2  # of the calibrated width: bands below it leave the width to calibration
HARDLY = 1.15  # times as wide at most are nine of ten intervals as the narrowest tenth: no difference worth a reason
ALIKE = 0.02  # of the larger: numbers that differ by less are told as the same
NO_REACH = 1e-4  # of a width: an end as near to the prediction is told as lying on it
SCALES = {
    views.MODEL: "its own standard deviation",
    views.FOREST: "the size of its errors, told by a forest",
    views.BOTH: "its own standard deviation and the size of its errors, told by a forest",
}
DRIFTING = " If rows drift, the less the later ones do so the nearer it comes, and nothing exact is promised."
LATER = " The rows are in the order of time: of later ones it holds only as far as things stay as they are."
NOT_PROMISED = "promised for every single region of the features, nor for rows of another kind"


def describe(model: Any, side: str = BOTH, *, detail: bool = False) -> str:
    """What is promised, how wide that is, what shapes it, what to watch; with `detail` all else, a line by subject."""
    lead = " ".join(
        filter(None, (_promised(model, side), width_words(model, side), _shaped(model), _watch(model, side)))
    )
    said = paragraphs(model, side)
    return "\n".join([lead, *(said[subject] for subject in said if subject != "promise")]) if detail else lead


def paragraphs(model: Any, side: str = BOTH) -> dict[str, str]:
    """What there is to say by subject; of one end what holds of it alone."""
    sections = (_learnt, _columns, _rows, _reasons, _asymmetry, _shape, _certificate, _nested)
    said = {section.__name__.removeprefix("_"): section(model) for section in sections}
    caveat = f" This is not {NOT_PROMISED}." if _is_promised(model) else ""
    said |= {"calibration": _calibration(model, side), "promise": _promised(model, side) + caveat}
    return {subject: words for subject, words in said.items() if words}


# The paragraph


def width_words(model: Any, side: str) -> str:
    """How far intervals reach at learning rows; nothing where one calibration does not tell it, or it is infinite."""
    ends = _typical_ends(model, side)
    if ends is None:
        return ""
    below, above = ends
    if side != BOTH:
        up = above if side == "upper" else -below
        where, reach = ("below", -up) if np.median(up) < 0 else ("above", up)
        return f"{side.capitalize()} ends lie {_spread(reach, ' in the middle')} {where} the prediction."
    width = below + above
    if not width.any():
        return "Intervals have no width: they are the prediction."
    low, high = -np.median(below), np.median(above)
    first, last = (f"{abs(end):.3g} {'below' if end < 0 else 'above'}" for end in (low, high))
    ends_at = f"from {first} to {last} the prediction"
    if abs(high) < NO_REACH * (high - low):
        ends_at = f"from {first} the prediction up to it"
    elif abs(low) < NO_REACH * (high - low):
        ends_at = f"from the prediction to {last} it"
    return f"Intervals are {_spread(width, ' wide in the middle', ' wide')}, {ends_at}."


def _spread(values: Array, varying: str, constant: str = "") -> str:
    """Such as "17 wide in the middle (9.8 to 44 for eight of ten learning rows)"."""
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    if high - low < ALIKE * abs(high):
        return f"{middle:.3g}{constant}"
    return f"{middle:.3g}{varying} ({low:.3g} to {high:.3g} for eight of ten learning rows)"


def _typical_ends(model: Any, side: str) -> tuple[Array, Array] | None:
    """How far the intervals of learning rows reach below and above, by the calibration of all rows together."""
    noise = model.noise_
    made = vars(model).get("calibration_")
    if made is None or made.by_row or made.weights is not None or noise.nested is not None:
        return None
    typical, (kind, share) = noise.typical, _kind_and_share(model, side)
    together = Calibration(made.lower_scores, made.upper_scores, decay=made.decay if made.groups is None else None)
    quantiles = together.quantiles(model.confidence_level, kind, share)[0].tolist()
    asked = quantiles if side == BOTH else quantiles[:1] if side == "lower" else quantiles[1:]
    if not np.isfinite(asked).all():
        return None
    center, target = typical.prediction, noise.target
    if target is None:
        center = np.zeros(len(typical.unit))
    band = noise.score.band(center, typical.lower, typical.upper, unit=typical.unit)
    ends, _ = interval(replace(band, target=target), *quantiles)
    center = center if target is None else target.backward(center)
    return center - ends[:, 0], ends[:, 1] - center


def _shaped(model: Any) -> str:
    """The point model, and what makes one interval wider than another."""
    noise, view = model.noise_, model.noise_.view
    looks = [SCALES[view.base_scale]] if view.base_scale != NO_SCALE else []
    if looks and noise.typical.unit.ndim == 2:
        looks = [looks[0].replace(SCALES[views.MODEL], "its own quantiles")]
    bands = "Bands"
    if noise.nested is not None:
        bands = f"Nested bands (for {', '.join(map(_percent, noise.nested.coverages))})"
    scale = "" if noise.target is None else noise.target.words
    on = f" on the {scale} scale" if scale else ""
    start = (
        f"{bands} around {model_words(model.estimator_)}, learnt from {many(len(model.learning_rows_), 'row')}{on}: "
    )
    if model.residual_rms_ == 0:
        return f"{start}they have no width, because all residuals learnt from are zero."
    if _is_left_to_calibration(model):
        follows = f", which follows {looks[0]}" if looks else ", the same everywhere"
        return f"{start}they have next to no width of their own, calibration makes it{follows}."
    if not _is_constant(noise.lengthscale):
        looks.append(f"bands that vary with {_seen(view)}")
    width = f"the width follows {', times '.join(looks)}" if looks else "the width is the same everywhere"
    ends = _typical_ends(model, BOTH)
    if looks and ends is not None:
        narrow, wide = np.quantile(ends[0] + ends[1], [0.1, 0.9])
        if wide - narrow < ALIKE * wide:
            width = "the width is as good as the same everywhere"
        elif wide < HARDLY * narrow:
            width = f"the width hardly differs from row to row; what little does follows {', times '.join(looks)}"
    return f"{start}{width}; {_sides(model)}."


def _sides(model: Any) -> str:
    """Whether both sides have the same band, and what the test of skew had to say."""
    noise, report = model.noise_, model.tuning_
    lower, upper, shared = noise.typical.lower, noise.typical.upper, is_symmetric(noise.settings.symmetry_penalty)
    words = "both sides share one band" if shared else "each side has its own band"
    if not shared and np.abs(lower - upper).max(initial=0.0) <= ALIKE * max(lower.mean(), upper.mean()):
        words = "the bands of both sides are as good as the same"
    if report is None or report.symmetry is None:
        return words
    test = f"test of skew: p = {report.symmetry.p_value:.2g}"
    if shared and report.symmetry.p_value <= (model.rules or Rules()).level:
        tried = any(not is_symmetric(row["symmetry_penalty"]) for row in report.evaluations)
        test += ", but two bands were no better" if tried else ", but two bands were not tried"
    return f"{words} ({test})"


def _is_constant(lengthscale: Any) -> bool:
    sides = lengthscale.values() if isinstance(lengthscale, dict) else (lengthscale,)
    return all(each is not None and bool(np.isinf(each).all()) for each in sides)


def _seen(view: NoiseView) -> str:
    """What the kernel looks at, in words."""
    known = {"inputs": "the features", "lengthscales": "the features", "scale": "that scale"}
    return " and ".join(known.get(part, f"the {part}") for part in view.noise_features.split("+"))


def _is_left_to_calibration(model: Any) -> bool:
    """Whether bands that a number is added to are next to nothing beside it."""
    ends, typical = _typical_ends(model, BOTH), model.noise_.typical
    if ends is None or (model.noise_.score.name != "added" and model.noise_.mean_lower + model.noise_.mean_upper > 0):
        return False
    s_lo, s_up = sides_of(typical.unit)
    learnt, made = np.mean(s_lo * typical.lower + s_up * typical.upper), np.mean(ends[0] + ends[1])
    return bool(0 <= learnt < NEXT_TO_NOTHING * made)


def _watch(model: Any, side: str) -> str:
    """What whoever relies on the intervals should know: the promise's limits last."""
    noise, tuning, found = model.noise_, model.tuning_, []
    if noise.certificate["status"] != "converged":
        found.append(f"the bands are NOT certified to the tolerance asked for (gap {noise.certificate['gap']:.1e})")
    if tuning is not None and (tuning.timed_out or tuning.interrupted):
        found.append("the choice ended before everything had been tried")
    varies = not _is_constant(noise.lengthscale) and not _is_left_to_calibration(model)
    if varies and {INPUTS, views.LENGTHSCALES} & set(noise.view.parts):
        found.append(f"far from the learning rows (`support` below {model.support_limit:g}) the bands know little")
    if is_auto(model.target_range) and noise.target is None and side != "upper" and noise.typical.least >= 0:
        ends = _typical_ends(model, side)
        below = 0.0 if ends is None else float(np.mean(noise.typical.prediction - ends[0] < 0))
        if below > 0:
            found.append(
                f"{100 * below:.0f}% of lower ends lie below 0, as no target does: target_range=(0, None) cuts them"
            )
    if _is_promised(model):
        chance = _chance(model, side)
        found += [chance] if chance else []
        found.append(f"the coverage is not {NOT_PROMISED}")
    return f"Watch: {'; '.join(found)}." if found else ""


def _chance(model: Any, side: str) -> str:
    """What the draw of the calibration rows leaves open, where that has a law."""
    made = model.calibration_
    if made.copies or made.by_row or made.weights is not None or made.decay is not None:
        return ""
    smallest = min(len(part) for _, part in made.parts())
    low, high = long_run_coverage(model.confidence_level, smallest)
    if low == 1 or (model.calibration == "asymmetric" and side == BOTH):
        return ""
    where = "" if made.groups is None else " in the smallest group"
    between = f"{100 * low:.3g}% and {100 * high:.3g}%"
    return f"with {smallest} calibration rows{where} chance moves the coverage between {between}"


# The rest, by subject


def _learnt(model: Any) -> str:
    rows = f"{many(len(model.learning_rows_), 'learning row')} and {many(model.n_features_in_, 'feature')}"
    noise, ell = model.noise_, model.noise_.lengthscale
    if isinstance(ell, dict):
        scales = f"lengthscale {_number(ell['lower'])} below and {_number(ell['upper'])} above"
    else:
        scales = "the kernel's own lengthscale" if ell is None else f"lengthscale {_number(ell)}"
    numbers = f"{scales}, symmetry penalty {_number(noise.settings.symmetry_penalty)}"
    chosen = f"Set: {numbers}." if model.tuning_ is None else f"{model.tuning_.sentence} Chosen: {numbers}."
    if noise.view.base_scale != NO_SCALE or noise.view.noise_features != INPUTS:
        constant = isinstance(ell, float) and np.isinf(ell)
        looks = "" if constant else f", over {noise.view.noise_features.replace('+', ', ')}"
        chosen += f" Bands in units of the base scale {noise.view.base_scale!r}{looks}."
    scale = "" if noise.target is None else noise.target.words
    on = f" on the {scale} scale" if scale else ""
    residuals = f"from {rows}, by {model.residual_rule_} residuals (RMS {model.residual_rms_:.4g}{on})"
    return f"Learnt {residuals}. {chosen}"


def _columns(model: Any) -> str:
    """How a table became numbers; nothing for numbers, and for a transformer of the user's."""
    made = model.reader_.preprocessor
    if isinstance(made, TableEncoder):
        return made.describe()
    reused = isinstance(model.preprocessor, str) and model.reader_.kind != NUMBERS
    return "The kernel sees what the transformers of the point model make, standardised." if reused else ""


def _rows(model: Any) -> str:
    """Where some of the rows were enough: what was learnt from how many."""
    n, noise, bands = len(model.learning_rows_), model.n_noise_rows_, model.noise_.n_rows
    parts = []
    if 0 < bands < n * (1 - model.noise_.settings.outlier_fraction) - 1:
        parts.append(f"The noise was learnt from the residuals of {noise} of these rows, the bands from {bands}.")
    if model.n_unused_rows_:
        parts.append(f"{model.n_unused_rows_} of the rows given, drawn at random, were not used: there are enough.")
    return " ".join(parts)


def _reasons(model: Any) -> str:
    """One line for each setting that was chosen: by how much the best other value scored worse on held-out rows."""
    reasons = () if model.tuning_ is None else model.tuning_.reasons
    return "\n".join(f"Chosen {reason}." for reason in reasons)


def _asymmetry(model: Any) -> str:
    below, above = model.noise_.mean_lower, model.noise_.mean_upper
    if below == above == 0:
        why = "All residuals learnt from are zero: the bands have no width."
        return why if model.residual_rms_ == 0 else "The bands have no width of their own: calibration makes it."
    short, far = sorted((below, above))
    side = "above" if above > below else "below"
    if far < 1.02 * short:
        words = "the bands are as good as symmetric"
    else:
        times = f"{far / short:.2f} times" if far < 100 * short else "over 100 times"
        words = f"the bands reach {times} as far {side} the prediction as on the other side"
    unit = "" if model.noise_.view.base_scale == NO_SCALE else " (in base scales)"
    scale = "" if model.noise_.target is None else model.noise_.target.words
    on = f" (on the {scale} scale)" if scale else ""
    reach = f"{below:.4g} below and {above:.4g} above the prediction before calibration{unit}{on}"
    return f"On average they reach {reach}: {words}."


def _shape(model: Any) -> str:
    below, above = len(model.noise_.active_lower), len(model.noise_.active_upper)
    squares = f"squares: {model.noise_.lower.rank} below, {model.noise_.upper.rank} above"
    dropped = int(np.floor(model.noise_.settings.outlier_fraction * len(model.learning_rows_)))
    free = f" {many(dropped, 'row')} with the largest residuals left out of the bands." if dropped else ""
    return f"Rows that shape them: {below} below, {above} above; {squares}.{free}"


def _certificate(model: Any) -> str:
    c = model.noise_.certificate
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
    if model.noise_.nested is None:
        return ""
    coverages, gaps = model.noise_.nested.coverages, [each["gap"] for each in model.noise_.nested_certificates]
    named, places = ", ".join(map(_percent, coverages)), ", ".join(f"{each:.3g}" for each in normal_places(coverages))
    return (
        f"Nested bands in use, learnt for {named}; on the scale of calibration they lie at {places}. Each is certified "
        f"to {max([*gaps, 1e-16]):.1e} as a step from the last."
    )


def _calibration(model: Any, side: str) -> str:
    """What calibration did to the bands; nothing where it has not been done, or makes them infinite."""
    if "calibration_" not in vars(model):
        return ""
    calibration, score = model.calibration_, model.noise_.score
    at = f"Calibration at {_percent(model.confidence_level)}"
    if calibration.copies:
        return f"{at}: by {len(calibration.copies)} copies, each with bands learnt without one fold of the rows."
    if calibration.by_row or calibration.groups is not None or calibration.weights is not None:
        each = "row" if calibration.by_row or calibration.weights is not None else "group"
        moved = "both ends" if side == BOTH else f"the {side} end"
        return f"{at}: {score.outwards.format(q='a number', ends=moved)}, its own for each {each}."
    q = _quantiles(model, side)
    if not np.isfinite(list(q.values())).all():
        return ""
    scaled = model.noise_.view.base_scale != NO_SCALE and score.name == "added"
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
    return ("asymmetric", SIDES[side]) if side != BOTH else (model.calibration, 0.5)


def _is_promised(model: Any) -> bool:
    return "calibration_" in vars(model) and not model.n_learnt_calibration_rows_


def _promised(model: Any, side: str) -> str:
    if "calibration_" not in vars(model):
        return "Not calibrated: call conformalize(X, y) with rows that fit has not seen before asking for intervals."
    calibration, level = model.calibration_, model.confidence_level
    sizes = [len(part) for _, part in calibration.parts()]
    if calibration.copies:
        return _cross_promise(model, min(sizes), len(sizes), side)
    if calibration.by_row:
        return _conditional_promise(model, side)
    worth = [float(part.age_weights().sum()) for _, part in calibration.parts()]
    start = f"Calibrated on {many(len(calibration), 'row')}"
    if calibration.out_of_fold:
        start += ", each by what was learnt without its fold"
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
    least = "about" if calibration.out_of_fold else "at least"
    both = f"{within}{least} {_percent(level)} of new rows {FALL[side]}"
    if model.calibration == "asymmetric" and side == BOTH:
        half = _percent((1 - level) / 2)
        most = "about" if calibration.out_of_fold else "at most"
        both += f", {most} {half} below and {most} {half} above it"
    if calibration.weights is not None:
        both += ", if the likelihood ratios are right"
    target = model.noise_.target
    if target is not None and (np.isfinite(target.low) or np.isfinite(target.high)):
        limits = [
            f"{word} {end:g}" for word, end in (("below", target.low), ("above", target.high)) if np.isfinite(end)
        ]
        both += f" (no end is {' or '.join(limits)})"
    short = _shortage(model, min(worth), side)
    drift = DRIFTING if calibration.decay is not None else ""
    late = LATER if keeps_order(getattr(model, "cv", None)) else ""
    holds = "on average over calibration sets and over rows like those, whatever the distribution"
    if calibration.out_of_fold:
        holds = "on average over rows like those: that is seen, not proven"
    return f"{start}: {both}, {holds}.{short}{drift}{late}"


def _conditional_promise(model: Any, side: str) -> str:
    calibration, level = model.calibration_, model.confidence_level
    if model.n_learnt_calibration_rows_:
        return (
            f"Calibrated on {len(calibration)} rows, {model.n_learnt_calibration_rows_} of which were learnt from in "
            "fit: NO coverage is promised. Call conformalize(X, y) with rows that fit has not seen."
        )
    where = "" if calibration.groups is None else ", within each group, however these overlap,"
    near = (
        ""
        if calibration.points is None
        else (
            " Neighbourhoods are near it (coverage_gap says how near), by a kernel as strong as the spread of the"
            " calibration scores says."
        )
    )
    given = calibration.described().removeprefix("given: ")
    return (
        f"Calibrated row by row on {given}: at least {_percent(level)} of new "
        f"rows {FALL[side]}{where} on average over calibration sets and over rows like those, whatever the "
        f"distribution.{near}"
    )


def _cross_promise(model: Any, smallest: int, n_groups: int, side: str) -> str:
    level, grouped = model.confidence_level, model.calibration_.groups is not None
    alone = model.calibration == "symmetric" or side != BOTH
    levels = (level,) if alone else side_levels(level, "asymmetric")
    folds = min(smallest, len(model.calibration_.copies))
    proven = max(0.0, 1 - sum(1 - proven_coverage(each, smallest, folds, alike=not grouped) for each in levels))
    each = f" in {n_groups} groups, the smallest of {smallest}" if grouped else ""
    within = "within each group " if grouped else ""
    return (
        f"Cross-calibrated on all {len(model.calibration_)} rows{each}: {within}about {_percent(level)} of new rows"
        f" {FALL[side]} as a rule, and at least {_percent(round(proven, 3))} is proven, on average over"
        f" rows like those, whatever the distribution.{_shortage(model, smallest, side)}"
    )


def _shortage(model: Any, smallest: float, side: str) -> str:
    """How many rows a finite interval takes, if there are not enough in some group."""
    level, (kind, share) = model.confidence_level, _kind_and_share(model, side)
    parts = [part for _, part in model.calibration_.parts()]
    if not any(part.shortage(part.quantiles(level, kind, share), level, kind, share, None) for part in parts):
        return ""
    levels = side_levels(level, "symmetric" if side != BOTH else model.calibration)
    needed = max(points_needed(each) for each in levels)
    which = "" if model.calibration_.groups is None else " in some groups"
    return f" That takes {many(round(needed), 'row')}: with {smallest:.4g} the intervals{which} are infinite."


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"


def _number(value: Any) -> str:
    if isinstance(value, (int, float, np.number)):
        return f"{value:.3g}"
    return np.array2string(np.asarray(value, dtype=float), precision=3)
