"""What the script of the page reads: the exploration as rounded numbers and words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.bands.views import NO_SCALE
from sosbands.conformal import SCORES, Score
from sosbands.conformal.scores import offered
from sosbands.explanation import Explanation
from sosbands.metrics.local import share_range
from sosbands.report.calibrated import Calibrated, Promise, calibrated, groups_along, levels_offered, promise
from sosbands.report.data import BandPath, Exploration, Rows, Step

SHARE_DIGITS = 5
PENALTY_DIGITS = 9
QUANTILE_DIGITS = 7  # they are added to bands
COUNTS = ("both", "lower", "upper", "empty")
MEANS = ("width", "error", "below", "above", "narrow", "wide")
MOST_FEATURES = 6  # of one row; what the others make together is one factor
FACTOR_DIGITS = 3
NOT_WORTH = 0.005  # logarithm of what is told as 1
DIGITS = 5  # significant ones; of targets and bands in units of the size of the residuals


def payload(data: Exploration) -> dict[str, Any]:
    """Lists, numbers and words; infinity is None."""
    levels = levels_offered(data)
    groups = [groups_along(x) for x in data.test.positions]
    unit = _unit(data)
    pool = Pool(unit)
    sizes = {len(data.test), *(len(rows) for axis in groups for rows in axis)}  # of what shares are told of
    steps = [_resolution(*(rows.positions[k] for rows in _kinds(data))) for k in range(len(data.axes))]
    is_curve = len(data.axes[0].grid) > 0
    return {
        "target": data.target_name,
        "levels": levels,
        "level": levels.index(data.confidence_level),
        "promises": [_promise(promise(level, data)) for level in levels],
        "calibration": data.calibration,
        "scores": list(offered(data.score.name)),
        "score": list(offered(data.score.name)).index(data.score.name),
        "moves": [_moves(score, data) for score in _scores(data)],
        "little_support": data.support_limit,
        "sentence": data.sentence,
        "reasons": data.reasons,
        "settings": data.settings,
        "tuned": data.is_tuned,
        "model": data.model_name,
        "counts": [data.n_given, *(len(rows) for rows in _kinds(data))],
        "is_curve": is_curve,
        "notes": data.notes,
        "axes": [
            {
                "name": axis.name,
                "x": rounded(axis.grid, step),
                "center": rounded(axis.prediction, unit),
            }
            for axis, step in zip(data.axes, steps, strict=True)
        ],
        "learning": _rows(data.learning, unit, steps) if is_curve else None,  # drawn where a curve is about them
        "calibration_rows": _rows(data.calibration_rows, unit, steps) if is_curve else None,
        "test": _rows(data.test, unit, steps, data.n_test_drawn),
        "groups": [_groups(*each) for each in zip(groups, data.test.positions, steps, strict=True)],
        "share_ranges": {n: share_range(np.arange(n + 1), n).round(SHARE_DIGITS).tolist() for n in sorted(sizes)},
        "coverages": [_path(path, data, pool, groups) for path in data.coverages],
        "coverage": data.coverages.index(data.path),
        "why": None if data.why is None else why(data.why, levels),
        "pool": pool.lists(),  # last: what stands above fills it
    }


def _in_order(step: Step) -> list[Step]:
    """The step with each score, in the order of `SCORES`."""
    names = list(offered(step.score.name))
    return sorted((step, *step.others), key=lambda each: names.index(each.score.name))


def _scores(data: Exploration) -> list[Score]:
    """Each score of the step in use, with its words."""
    scores = {each.score.name: each.score for each in _in_order(data.path.steps[data.path.chosen or 0])}
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


def _rows(rows: Rows, unit: float, steps: list[float], n: int | None = None) -> dict[str, Any]:
    """The first n rows, by default all of them."""
    return {
        "number": rows.numbers[:n].tolist(),
        "y": rounded(rows.y[:n], unit),
        "center": rounded(rows.prediction[:n], unit),
        "x": [rounded(x[:n], step) for x, step in zip(rows.positions, steps, strict=True)],
    }


def _promise(found: Promise) -> dict[str, Any]:
    chance = None if found.chance is None else [round(end, SHARE_DIGITS) for end in found.chance]
    return {"end": round(found.end_level, 9), "rank": found.rank, "needed": found.needed, "chance": chance}


def _groups(groups: list[IntArray], x: Array, step: float) -> dict[str, Any]:
    """From where to where the groups of test rows reach, how many rows they have, and which group each row is in."""
    member = np.zeros(len(x), dtype=np.intp)
    for k, rows in enumerate(groups):
        member[rows] = k
    ends = (rounded(np.array([end(x[rows]) for rows in groups]), step) for end in (np.min, np.max))
    return {"ends": list(ends), "n": [len(rows) for rows in groups], "member": member.tolist()}


def _path(path: BandPath, data: Exploration, pool: Pool, groups: list[list[IntArray]]) -> dict[str, Any]:
    return {
        "coverage": significant(path.learning_coverage, PENALTY_DIGITS),
        "chosen": path.chosen,
        "steps": [_step(step, data, pool, groups) for step in path.steps],
        "far": int(np.count_nonzero(path.test_support < data.support_limit)),
        "test_support": rounded(path.test_support[: data.n_test_drawn], 1e-3),
        "curve_support": rounded(path.curve_support, 1e-3),
    }


def _step(step: Step, data: Exploration, pool: Pool, groups: list[list[IntArray]]) -> dict[str, Any]:
    """What is known of the bands, and for each score what calibration makes of them."""
    position = {number: k for k, number in enumerate(data.learning.numbers.tolist())}
    active = (step.active_lower.tolist(), step.active_upper.tolist())
    return {
        "penalty": significant(step.symmetry_penalty, PENALTY_DIGITS),
        "certificate": {
            key: significant(value) if isinstance(value, float) else value for key, value in step.certificate.items()
        },
        "squares": step.squares,
        "shaping": [len(rows) for rows in active],
        "active": [[position[k] for k in rows] for rows in active] if step.curve[0].size else None,
        "difference": significant(step.difference),
        "scores": [_scored(each, data, pool, groups) for each in _in_order(step)],
    }


def _scored(step: Step, data: Exploration, pool: Pool, groups: list[list[IntArray]]) -> dict[str, Any]:
    """Bands with one score; quantiles, counts of test rows and mean widths by level, from which level rows are inside.

    Means are lists of the pool, up to the first level at which intervals are infinite.
    """
    found = calibrated(step, data, levels_offered(data), groups)
    sides = found.quantiles.T[:1] if data.calibration == "symmetric" else found.quantiles.T
    finite = int(np.isfinite(found.width).sum())
    return {
        "test": _bands(step.test, data.test_unit, step.score, pool, data.n_test_drawn),
        "curve": _bands(step.curve, data.curve_unit, step.score, pool),
        "q": [[significant(value, QUANTILE_DIGITS) for value in side.tolist()] for side in sides],
        **{name: getattr(found, name).tolist() for name in COUNTS},
        **{name: pool.add(getattr(found, name)[:finite]) for name in MEANS},
        "inside_from": found.inside_from.tolist(),
        "besides": _besides(found, groups),
    }


def _bands(pair: tuple[Array, Array], scale: Array, score: Score, pool: Pool, n: int | None = None) -> dict[str, Any]:
    """How far the band reaches below and above the prediction, and the units in which calibration moves its ends.

    Lists are told by their numbers in the pool; a unit that is the same everywhere is a list of this one number.
    """
    below, above = (values[:n] for values in pair)
    band = score.band(np.zeros(len(below)), below, above, unit=scale[:n])
    each_row = [np.broadcast_to(each, band.lower.shape) for each in band.units]
    units = [[float(each[0])] if each.size and (each == each[0]).all() else pool.add(each) for each in each_row]
    return {"reach": [pool.add(-band.lower), pool.add(band.upper)], "units": units}


def _besides(found: Calibrated, groups: list[list[IntArray]]) -> list[list[int]]:
    """[axis, group, level, n]: rows of a group inside beyond those that are inside from some level on.

    Where ends cross, their midpoint stands for the interval, and a row may be inside at single levels.
    """
    levels = np.arange(len(found.both))
    told: list[list[int]] = []
    for axis, (counts, members) in enumerate(zip(found.groups, groups, strict=True)):
        for g, rows in enumerate(members):
            rest: Array = counts[g] - (found.inside_from[rows][:, None] <= levels).sum(axis=0)
            told += [[axis, g, int(k), int(rest[k])] for k in np.flatnonzero(rest)]
    return told


def why(found: Explanation, levels: list[float]) -> dict[str, Any]:
    """For each row its width, words, and factors: positions in `names`, each with its value.

    The first names are those of base scale and band, which multiply to the width over the typical one; the
    others multiply to the band.
    """
    names = [f"typical error here ({found.scale_name})", "shape of the band", *found.feature_names, "all else"]
    return {
        "level": levels.index(found.confidence_level),
        "typical": significant(found.typical_width),
        "typical_row": found.typical_row,
        "names": names,
        "rows": [
            {
                "width": significant(float(found.width[i])),
                "times": significant(float(found.times_typical[i]), FACTOR_DIGITS),
                "words": found.words(i),
                "factors": _factors(found, i),
            }
            for i in range(len(found))
        ],
    }


def _factors(found: Explanation, i: int) -> list[tuple[int, float | int | None]]:
    """Base scale if there is one, the band, and of the band the features that change it most."""
    logs = [] if found.scale_name == NO_SCALE else [(0, float(found.base_scale[i]))]
    logs.append((1, float(found.band[i])))
    shares: Array = found.features[i]
    most = np.argsort(-np.abs(shares), kind="stable")[:MOST_FEATURES]
    kept = [(2 + int(k), float(shares[k])) for k in most if abs(shares[k]) >= NOT_WORTH]
    rest = float(found.band[i]) - sum(share for _, share in kept)
    if kept and abs(rest) >= NOT_WORTH:
        kept.append((2 + len(shares), rest))
    return [(name, significant(float(np.exp(log)), FACTOR_DIGITS)) for name, log in logs + kept]


def rounded(values: Array, unit: float) -> list[float]:
    """Rounded to a power of ten that is at most the unit."""
    found: list[float] = np.round(values, math.ceil(-math.log10(unit))).tolist()
    return [int(value) if value.is_integer() else value for value in found]  # "12", not "12.0"


def significant(value: float, digits: int = DIGITS) -> float | int | None:
    """The number with a few digits; None for infinity, which JSON does not know."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 10**digits else short


class Pool:
    """Lists of numbers, rounded to a unit, each stored once and told by its number."""

    def __init__(self, unit: float) -> None:
        self.unit = unit
        self._known: dict[tuple[float, ...], int] = {}

    def add(self, values: Array) -> int:
        """The number of the list."""
        return self._known.setdefault(tuple(rounded(values, self.unit)), len(self._known))

    def lists(self) -> list[list[float]]:
        """All lists by their numbers."""
        return [list(each) for each in self._known]
