"""What the script of the page reads: the exploration as rounded numbers and words."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.conformal import SCORES, Score
from sosbands.metrics.sampling import share_range
from sosbands.report.calibrated import Promise, groups_along, levels_offered, promise
from sosbands.report.data import BandPath, Exploration, Rows, Step
from sosbands.report.packing import CODE, DIGITS, Pool, coded, rounded, significant
from sosbands.report.payload_results import results_of
from sosbands.report.payload_why import why
from sosbands.tuning.views import NO_SCALE

SHARE_DIGITS = 5
PENALTY_DIGITS = 9


def payload(data: Exploration) -> dict[str, Any]:
    """Lists, numbers and words; infinity is None."""
    levels = levels_offered(data)
    groups = [groups_along(x) for x in data.test.positions]
    unit = _unit(data)
    pool = Pool(unit)
    steps = [_resolution(*(rows.positions[k] for rows in _kinds(data))) for k in range(len(data.axes))]
    return {
        "target": data.target_name,
        "levels": levels,
        "level": levels.index(data.confidence_level),
        "promises": [_promise(promise(level, data)) for level in levels],
        "calibration": data.calibration,
        "scores": list(SCORES),
        "score": list(SCORES).index(data.score.name),
        "moves": [_moves(score, data) for score in _scores(data)],
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
                "x": rounded(axis.grid, step),
                "center": rounded(axis.prediction, unit),
            }
            for axis, step in zip(data.axes, steps, strict=True)
        ],
        "learning": _rows(data.learning, unit, steps),
        "calibration_rows": _rows(data.calibration_rows, unit, steps),
        "test": _rows(data.test, unit, steps),
        "groups": [_groups(*each) for each in zip(groups, data.test.positions, steps, strict=True)],
        "share_ranges": {n: _share_ranges(n) for n in _sizes(data, groups)},
        "paths": [_path(path, data, pool, groups) for path in data.paths],
        "coverages": [_path(path, data, pool, groups) for path in _others(data)],
        "why": None if data.why is None else why(data.why, levels),
        "decimals": pool.decimals,
        "pool": pool.entries,  # last: what stands above fills it
    }


def _others(data: Exploration) -> list[BandPath]:
    """The learning coverages that are not in use."""
    return [path for path in data.coverages if path.learning_coverage != data.paths[0].learning_coverage]


def _in_order(step: Step) -> list[Step]:
    """The step with each score, in the order of `SCORES`."""
    names = list(SCORES)
    return sorted((step, *step.others), key=lambda each: names.index(each.score.name))


def _scores(data: Exploration) -> list[Score]:
    """Each score of the step in use, with its words."""
    path = data.paths[0]
    scores = {each.score.name: each.score for each in _in_order(path.steps[path.chosen or 0])}
    return [*(scores | {data.score.name: data.score}).values()]


def _moves(score: Score, data: Exploration) -> list[str]:
    """What a quantile does outwards and inwards; one that is added is told in units of the base scale."""
    added = SCORES["added"]
    if data.base_scale == NO_SCALE or score.outwards != added.outwards:
        return [score.outwards, score.inwards]
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
        "y": rounded(rows.y, unit),
        "center": rounded(rows.prediction, unit),
        "x": [rounded(x, step) for x, step in zip(rows.positions, steps, strict=True)],
    }


def _promise(found: Promise) -> dict[str, Any]:
    chance = None if found.chance is None else [round(end, SHARE_DIGITS) for end in found.chance]
    return {"end": round(found.end_level, 9), "rank": found.rank, "needed": found.needed, "chance": chance}


def _groups(groups: list[IntArray], x: Array, step: float) -> dict[str, Any]:
    """Where the groups of test rows lie along an axis, how many rows they have, and which group each row is in."""
    member = np.zeros(len(x), dtype=np.intp)
    for k, rows in enumerate(groups):
        member[rows] = k
    means = np.array([x[rows].mean() for rows in groups])
    return {"x": rounded(means, step), "n": [len(rows) for rows in groups], "member": coded(member)}


def _share_ranges(n: int) -> list[list[float]]:
    """Sampling errors of ``hits / n`` for hits = 0, ..., n."""
    ranges: list[list[float]] = share_range(np.arange(n + 1), n).round(SHARE_DIGITS).tolist()
    return ranges


def _sizes(data: Exploration, groups: list[list[IntArray]]) -> list[int]:
    return sorted({len(data.test), *(len(rows) for axis in groups for rows in axis)})


def _path(path: BandPath, data: Exploration, pool: Pool, groups: list[list[IntArray]]) -> dict[str, Any]:
    return {
        "name": path.name,
        "coverage": significant(path.learning_coverage, PENALTY_DIGITS),
        "chosen": path.chosen,
        "steps": [_step(step, data, pool, groups) for step in path.steps],
        "test_support": rounded(path.test_support, 1e-3),
        "curve_support": [rounded(support, 1e-3) for support in path.curve_support],
    }


def _step(step: Step, data: Exploration, pool: Pool, groups: list[list[IntArray]]) -> dict[str, Any]:
    """What is known of the bands, and for each score what calibration makes of them."""
    position = {number: k for k, number in enumerate(data.learning.numbers.tolist())}
    return {
        "penalty": significant(step.symmetry_penalty, PENALTY_DIGITS),
        "certificate": {
            key: significant(value) if isinstance(value, float) else value for key, value in step.certificate.items()
        },
        "squares": step.squares,
        "active": [[position[k] for k in rows.tolist()] for rows in (step.active_lower, step.active_upper)],
        "difference": significant(step.difference),
        "scores": [_scored(each, data, pool) | results_of(each, data, pool, groups) for each in _in_order(step)],
    }


def _scored(step: Step, data: Exploration, pool: Pool) -> dict[str, Any]:
    return {
        "criterion": None if step.criterion is None else significant(step.criterion),
        "test": _bands(step.test, data.test_unit, step.score, pool),
        "curves": [_bands(*each, step.score, pool) for each in zip(step.curves, data.curve_units, strict=True)],
    }


def _bands(pair: tuple[Array, Array], scale: Array, score: Score, pool: Pool) -> dict[str, Any]:
    """How far the band reaches below and above the prediction, and the units in which calibration moves its ends.

    Lists are numbers of entries of the pool; a unit that is the same everywhere is a list of this one number.
    """
    band = score.band(np.zeros(len(pair[0])), *pair, unit=scale)
    like = [pool.add(scale * each) if len(each) else None for each in pair]  # where floors do not reach
    units = [
        [float(each[0])] if each.size and (each == each[0]).all() else pool.add(each, alike)
        for each, alike in zip(band.units, like, strict=True)
    ]
    return {"reach": [pool.add(-band.lower), pool.add(band.upper)], "units": units}
