"""What calibration gives at every level, for one step and score, as the script of the page reads it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.report.calibrated import Calibrated, calibrated, levels_offered
from sosbands.report.data import Exploration, Step
from sosbands.report.packing import Pool, coded, significant

QUANTILE_DIGITS = 7  # they are added to bands
COUNTS = ("both", "lower", "upper", "empty")
MEANS = ("width", "error", "below", "above")
FROM = ("inside_from", "lower_from", "upper_from")


def results_of(step: Step, data: Exploration, pool: Pool, groups: list[list[IntArray]]) -> dict[str, Any]:
    """Quantiles, counts of test rows and mean widths by level, and from which level on rows are inside.

    Means are entries of the pool, up to the first level at which intervals are infinite.
    """
    found = calibrated(step, data, levels_offered(data), groups)
    sides = found.quantiles.T[:1] if data.calibration == "symmetric" else found.quantiles.T
    finite = int(np.isfinite(found.width).sum())
    return {
        "q": [[significant(value, QUANTILE_DIGITS) for value in side.tolist()] for side in sides],
        **{name: coded(getattr(found, name)) for name in COUNTS},
        **{name: pool.add(getattr(found, name)[:finite]) for name in MEANS},
        "inside_from": coded(found.inside_from[: data.n_test_drawn]),
        **{name: coded(getattr(found, name)) for name in FROM[1:]},
        "besides": _besides(found, groups),
    }


def _besides(found: Calibrated, groups: list[list[IntArray]]) -> list[list[int]]:
    """[axis, group, end, level, n]: rows of a group beyond those that are inside from some level on.

    Where ends cross, their midpoint stands for the interval, and a row may be inside at single levels.
    """
    levels = np.arange(len(found.both))
    told: list[list[int]] = []
    for axis, (counts, members) in enumerate(zip(found.groups, groups, strict=True)):
        for g, rows in enumerate(members):
            for end, first in enumerate((found.lower_from, found.upper_from)):
                rest: Array = counts[g, end] - (first[rows][:, None] <= levels).sum(axis=0)
                told += [[axis, g, end, int(k), int(rest[k])] for k in np.flatnonzero(rest)]
    return told
