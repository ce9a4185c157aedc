"""What the script of the page reads: the exploration as rounded numbers and words."""

from __future__ import annotations

import math
import string
from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.conformal import SCORES, Score
from sosbands.metrics.sampling import share_range
from sosbands.report.calibrated import Promise, calibrated, groups_along, levels_offered, promise
from sosbands.report.data import BandPath, Exploration, Rows, Step
from sosbands.tuning.views import NO_SCALE

DIGITS = 5  # significant ones; of targets and bands in units of the size of the residuals
MEAN_DIGITS = 7  # of quantiles, which are added to bands, and of widths, which are rounded once more to be shown
SHARE_DIGITS = 5
PENALTY_DIGITS = 9
CODE = string.digits + string.ascii_letters + "-_"  # digits of whole numbers in base 64


def payload(data: Exploration) -> dict[str, Any]:
    """Lists, numbers and words; infinity is None."""
    levels = levels_offered(data)
    groups = [groups_along(x) for x in data.test.positions]
    unit = _unit(data)
    steps = [_resolution(*(rows.positions[k] for rows in _kinds(data))) for k in range(len(data.axes))]
    return {
        "target": data.target_name,
        "levels": levels,
        "level": levels.index(data.confidence_level),
        "promises": [_promise(promise(level, data)) for level in levels],
        "calibration": data.calibration,
        "moves": _moves(data),
        "little_support": data.support_limit,
        "code": CODE,
        "sentence": data.sentence,
        "reasons": data.reasons,
        "settings": data.settings,
        "tuned": data.is_tuned,
        "criterion": data.criterion,
        "model": data.model_name,
        "counts": [data.n_given, data.n_learning, data.n_calibration, len(data.test)],
        "drawn_test": data.n_test_drawn,
        "notes": data.notes,
        "axes": [
            {
                "name": axis.name,
                "prediction": axis.is_prediction,
                "x": _rounded(axis.grid, step),
                "center": _rounded(axis.prediction, unit),
            }
            for axis, step in zip(data.axes, steps, strict=True)
        ],
        "learning": _rows(data.learning, unit, steps),
        "calibration_rows": _rows(data.calibration_rows, unit, steps),
        "test": _rows(data.test, unit, steps),
        "groups": [_groups(*each) for each in zip(groups, data.test.positions, steps, strict=True)],
        "share_ranges": {n: _share_ranges(n) for n in _sizes(data, groups)},
        "paths": [_path(path, data, unit, groups) for path in data.paths],
    }


def _moves(data: Exploration) -> list[str]:
    """What a quantile does outwards and inwards; one that is added is told in units of the base scale."""
    added = SCORES["added"]
    if data.base_scale == NO_SCALE or data.score.outwards != added.outwards:
        return [data.score.outwards, data.score.inwards]
    return [words.replace("{q}", "{q} times the base scale") for words in (added.outwards, added.inwards)]


def _kinds(data: Exploration) -> tuple[Rows, Rows, Rows]:
    return data.learning, data.calibration_rows, data.test


def _unit(data: Exploration) -> float:
    """Resolution of targets and bands: a few digits of the size of the residuals, however large the targets are."""
    errors = np.concatenate([rows.y - rows.prediction for rows in _kinds(data)])
    size = float(np.sqrt(np.mean(np.square(errors))))
    return 10.0**-DIGITS * size if size > 0 else _resolution(data.test.y)


def _resolution(*values: Array) -> float:
    """The same for numbers that spread over a range."""
    return 10.0**-DIGITS * (float(np.ptp(np.concatenate(values))) or 1.0)


def _rows(rows: Rows, unit: float, steps: list[float]) -> dict[str, Any]:
    return {
        "number": rows.numbers.tolist(),
        "y": _rounded(rows.y, unit),
        "center": _rounded(rows.prediction, unit),
        "x": [_rounded(x, step) for x, step in zip(rows.positions, steps, strict=True)],
    }


def _promise(found: Promise) -> dict[str, Any]:
    chance = None if found.chance is None else [round(end, SHARE_DIGITS) for end in found.chance]
    return {"end": round(found.end_level, 9), "rank": found.rank, "needed": found.needed, "chance": chance}


def _groups(groups: list[IntArray], x: Array, step: float) -> dict[str, Any]:
    """Where the groups of test rows lie along an axis, and how many rows they have."""
    return {"x": _rounded(np.array([x[rows].mean() for rows in groups]), step), "n": [len(rows) for rows in groups]}


def _share_ranges(n: int) -> list[list[float]]:
    """Sampling errors of ``hits / n`` for hits = 0, ..., n."""
    ranges: list[list[float]] = share_range(np.arange(n + 1), n).round(SHARE_DIGITS).tolist()
    return ranges


def _sizes(data: Exploration, groups: list[list[IntArray]]) -> list[int]:
    return sorted({len(data.test), *(len(rows) for axis in groups for rows in axis)})


def _path(path: BandPath, data: Exploration, unit: float, groups: list[list[IntArray]]) -> dict[str, Any]:
    return {
        "name": path.name,
        "chosen": path.chosen,
        "steps": [_step(step, data, unit) | _results(step, data, groups) for step in path.steps],
        "test_support": _rounded(path.test_support, 1e-3),
        "curve_support": [_rounded(support, 1e-3) for support in path.curve_support],
    }


def _step(step: Step, data: Exploration, unit: float) -> dict[str, Any]:
    position = {number: k for k, number in enumerate(data.learning.numbers.tolist())}
    return {
        "penalty": _significant(step.symmetry_penalty, PENALTY_DIGITS),
        "criterion": None if step.criterion is None else _significant(step.criterion),
        "certificate": {
            key: _significant(value) if isinstance(value, float) else value for key, value in step.certificate.items()
        },
        "squares": step.squares,
        "active": [[position[k] for k in rows.tolist()] for rows in (step.active_lower, step.active_upper)],
        "difference": _significant(step.difference),
        "test": _bands(step.test, data.test_unit, step.score, unit),
        "curves": [_bands(*each, step.score, unit) for each in zip(step.curves, data.curve_units, strict=True)],
    }


def _bands(pair: tuple[Array, Array], scale: Array, score: Score, unit: float) -> dict[str, Any]:
    """How far the band reaches below and above the prediction, and the units in which calibration moves its ends."""
    band = score.band(np.zeros(len(pair[0])), *pair, unit=scale)
    units = [float(each[0]) if each.size and (each == each[0]).all() else _rounded(each, unit) for each in band.units]
    return {"reach": [_rounded(-band.lower, unit), _rounded(band.upper, unit)], "units": units}


def _results(step: Step, data: Exploration, groups: list[list[IntArray]]) -> dict[str, Any]:
    """What calibration gives at every level: a list over the levels of each number."""
    found = calibrated(step, data, levels_offered(data), groups)
    sides = found.quantiles.T[:1] if data.calibration == "symmetric" else found.quantiles.T
    counts = {name: getattr(found, name).tolist() for name in ("both", "lower", "upper", "empty")}
    means = {
        name: [_significant(value, MEAN_DIGITS) for value in getattr(found, name).tolist()]
        for name in ("width", "error", "below", "above")
    }
    return {
        "q": [[_significant(value, MEAN_DIGITS) for value in side.tolist()] for side in sides],
        **counts,
        **means,
        "inside_from": _coded(found.inside_from[: data.n_test_drawn]),
        "groups": [
            [[_coded(len(rows) - end) for end in counts] for counts, rows in zip(along, members, strict=True)]
            for along, members in zip(found.groups, groups, strict=True)
        ],
    }


def _coded(values: IntArray) -> str:
    """Whole numbers >= 0 as one text, with as many characters for each as the largest needs."""
    base, most, size = len(CODE), int(values.max(initial=0)), 1
    while base**size <= most:
        size += 1
    places = base ** np.arange(size)[::-1]
    return "".join(CODE[digit] for digit in (values[:, None] // places % base).ravel().tolist())


def _rounded(values: Array, unit: float) -> list[float]:
    """Rounded to a power of ten that is at most the unit."""
    rounded: list[float] = np.round(values, math.ceil(-math.log10(unit))).tolist()
    return [int(value) if value.is_integer() else value for value in rounded]  # "12", not "12.0"


def _significant(value: float, digits: int = DIGITS) -> float | int | None:
    """The number with a few digits; None for infinity, which JSON does not know."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 10**digits else short
