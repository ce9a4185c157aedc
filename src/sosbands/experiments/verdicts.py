"""From rows to verdicts: what a claim of the paper in words becomes, with a figure and its uncertainty."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from sosbands._types import AnyArray, Array
from sosbands.comparison import MeanInterval
from sosbands.experiments.config import Rows
from sosbands.experiments.figures import column, grouped

CONFIRMED, NOT_CONFIRMED, OPEN = "confirmed", "not confirmed", "open"
CONFIDENCE = 0.95


class Verdict(NamedTuple):
    """Whether a claim holds in our rows, and the figure that says so."""

    word: str
    figure: str


def below(interval: MeanInterval, bound: float = 0.0) -> str:
    """The verdict on "it is below the bound": open while the interval holds the bound."""
    if math.isnan(interval.lower):
        return OPEN
    return CONFIRMED if interval.upper < bound else NOT_CONFIRMED if interval.lower >= bound else OPEN


def near(interval: MeanInterval, tolerance: float) -> str:
    """The verdict on "it makes no difference": the whole interval of the difference within the tolerance."""
    if math.isnan(interval.lower):
        return OPEN
    if -tolerance <= interval.lower and interval.upper <= tolerance:
        return CONFIRMED
    return NOT_CONFIRMED if interval.lower > 0 or interval.upper < 0 else OPEN


def all_of(*words: str) -> str:
    """The verdict on several claims at once."""
    return NOT_CONFIRMED if NOT_CONFIRMED in words else OPEN if OPEN in words else CONFIRMED


def share(flags: AnyArray) -> MeanInterval:
    """Share of True with its Wilson interval."""
    interval = stats.binomtest(int(np.sum(flags)), len(flags)).proportion_ci(CONFIDENCE, method="wilson")
    return MeanInterval(float(np.mean(flags)), float(interval.low), float(interval.high))


def share_difference(first: AnyArray, second: AnyArray) -> MeanInterval:
    """Difference of two shares with Newcombe's interval, which joins two Wilson intervals."""
    a, b = share(first), share(second)
    d = a.mean - b.mean
    lower = d - math.hypot(a.mean - a.lower, b.upper - b.mean)
    return MeanInterval(d, lower, d + math.hypot(a.upper - a.mean, b.mean - b.lower))


def paired(rows: Rows, name: str, first: str, second: str, key: str = "repetition") -> Array:
    """Differences first - second of a column between two methods, over the draws that both have."""
    values = {
        method: {row[key]: float(row[name]) for row in rows if row["method"] == method} for method in (first, second)
    }
    both = sorted(values[first].keys() & values[second].keys())
    return np.array([values[first][k] - values[second][k] for k in both])


def means(rows: Rows, name: str) -> dict[str, float]:
    """Mean of a column for each method."""
    return {method: float(column(some, name).mean()) for method, some in grouped(rows, "method").items()}


def shown(interval: MeanInterval, digits: int = 2, unit: str = "") -> str:
    """A number with its 95 % interval."""
    return f"{interval.mean:.{digits}g}{unit} [{interval.lower:.{digits}g}, {interval.upper:.{digits}g}]"
