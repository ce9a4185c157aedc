"""Every number that the page shows, for each step and each level offered, by the package's own calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sosbands._types import Array, BoolArray, IntArray
from sosbands.conformal import Band, Calibration, conformal_rank, interval, points_needed, side_levels
from sosbands.conformal.asked import read_kind
from sosbands.metrics.local import coverage_range
from sosbands.report.data import Exploration, Step

LEVELS = tuple(k / 100 for k in range(50, 100))
MOST_GROUPS, GROUP_ROWS = 6, 15  # of test rows along an axis
NORMAL = float(ndtri(0.975))  # 95 % sampling errors


@dataclass(frozen=True, eq=False)
class Promise:
    """What a level promises, whatever the step: the same for both ends.

    Attributes
    ----------
    level, end_level : float
        Of the intervals, and of each end if both miss half of the rest.
    rank, needed : int
        Place of the quantile among the sorted calibration scores, and how many of these the level takes.
    chance : pair of float, or None
        Where the share of test rows below the quantile lies 95 % of the time; None if the quantile is infinite.
    """

    level: float
    end_level: float
    rank: int
    needed: int
    chance: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The intervals of the test rows at one step, for L levels.

    Attributes
    ----------
    quantiles : ndarray of shape (L, 2)
        Below and above.
    both, lower, upper : ndarray of int of shape (L,)
        Test rows inside, above their lower end and below their upper one.
    width, error, below, above : ndarray of shape (L,)
        Mean width with the half width of its 95 % interval, mean distances of the ends from the prediction.
    narrow, wide : ndarray of shape (L,)
        Widths that one of ten rows is below, and above.
    empty : ndarray of int of shape (L,)
        Intervals that are a single point.
    inside_from : ndarray of int of shape (n_test,)
        From which level on each row is inside, L if at none. Intervals that are not empty are nested in the level.
    groups : tuple of ndarray of int of shape (n_groups, L)
        For each axis and group of rows: those inside.
    """

    quantiles: Array
    both: IntArray
    lower: IntArray
    upper: IntArray
    width: Array
    error: Array
    below: Array
    above: Array
    narrow: Array
    wide: Array
    empty: IntArray
    inside_from: IntArray
    groups: tuple[IntArray, ...]


def levels_offered(data: Exploration) -> list[float]:
    """50 to 99 %, and the level asked for."""
    return sorted({*LEVELS, data.confidence_level})


def promise(level: float, data: Exploration) -> Promise:
    """Rank, rows needed and range of the coverage at one level."""
    side, _ = side_levels(level, read_kind(data.calibration))
    rank = conformal_rank(len(data.calibration_rows), side)
    (low,), (high,) = coverage_range(np.array([side]), len(data.test), len(data.calibration_rows))
    chance = (float(low), float(high)) if rank <= len(data.calibration_rows) else None
    return Promise(level, side_levels(level, "asymmetric")[0], rank, int(points_needed(side)), chance)


def calibrated(step: Step, data: Exploration, levels: Sequence[float], groups: list[list[IntArray]]) -> Calibrated:
    """Calibrate the bands of a step at each level and count its test rows, also in the groups along each axis."""
    calibration, kind = Calibration(step.lower_scores, step.upper_scores), read_kind(data.calibration)
    q = np.concatenate([calibration.quantiles(level, kind) for level in levels])
    y, center = data.test.y, data.test.prediction
    band = step.score.band(center, *step.test, unit=data.test_unit)
    lower, upper = _at_each(band, q)
    over, under, width = lower <= y, y <= upper, upper - lower
    inside = over & under
    narrow, wide = np.quantile(width, [0.1, 0.9], axis=1, method="inverted_cdf")  # no mean of infinite ones
    return Calibrated(
        quantiles=q,
        both=inside.sum(axis=1),
        lower=over.sum(axis=1),
        upper=under.sum(axis=1),
        width=width.mean(axis=1),
        error=_errors_of_means(width),
        below=(center - lower).mean(axis=1),
        above=(upper - center).mean(axis=1),
        narrow=narrow,
        wide=wide,
        empty=(lower == upper).sum(axis=1),
        inside_from=_first_of_run(inside),
        groups=tuple(np.array([inside[:, rows].sum(axis=1) for rows in axis]) for axis in groups),
    )


def groups_along(x: Array) -> list[IntArray]:
    """Groups of rows along x, at most 6 with about equally many of them, at least 15; equal places stay together."""
    order, n = np.argsort(x, kind="stable"), len(x)
    count = max(1, min(MOST_GROUPS, n // GROUP_ROWS))
    ordered = x[order]
    edges = [int(np.floor(k * n / count + 0.5)) for k in range(1, count)]
    edges = [int(np.searchsorted(ordered, ordered[edge - 1], side="right")) for edge in edges]
    return [group for group in np.split(order, edges) if len(group)]


def _at_each(band: Band, quantiles: Array) -> tuple[Array, Array]:
    """Lower and upper ends of each row for each pair of quantiles, both of shape (L, n), in one go."""
    many, n = len(quantiles), len(band)
    lower_unit, upper_unit = (np.tile(unit, many) if unit.ndim else unit for unit in band.units)
    tiled = Band(
        np.tile(band.lower, many), np.tile(band.upper, many), lower_unit, upper_unit, least_score=band.least_score
    )
    ends, _ = interval(tiled, *np.repeat(quantiles, n, axis=0).T)
    return ends[:, 0].reshape(many, n), ends[:, 1].reshape(many, n)


def _errors_of_means(values: Array) -> Array:
    """Half widths of the 95 % intervals of the means of rows; 0 if that is infinite."""
    n = values.shape[1]
    if n < 2:
        return np.zeros(len(values))
    finite = np.isfinite(values).all(axis=1, keepdims=True)
    spread: Array = np.where(finite, values, 0.0).std(axis=1, ddof=1)
    return NORMAL * spread / float(np.sqrt(n))


def _first_of_run(flags: BoolArray) -> IntArray:
    """From which row on each column is True to the end; the number of rows if it ends with False."""
    missed = ~flags[::-1]
    return np.where(missed.any(axis=0), len(flags) - np.argmax(missed, axis=0), 0)
