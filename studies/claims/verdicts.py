"""From rows to verdicts: what a claim of the paper in words becomes, with a figure and its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import stats

from sosbands._types import AnyArray, Array
from sosbands.comparison import MeanInterval
from studies.drawing.figures import column, grouped
from studies.runs.config import Rows

CONFIRMED, NOT_CONFIRMED, OPEN, NO_ROWS = "confirmed", "not confirmed", "open", "no rows"
CONFIDENCE = 0.95
MARGIN = 0.05  # relative differences up to this count as none
NO_GAIN = 0.005  # a smaller step of a coverage towards nominal counts as none
Item = TypeVar("Item")


class MissingRowsError(Exception):
    """A check lacks rows that it needs."""


class Verdict(NamedTuple):
    """Whether a claim holds in our rows, and the figure that says so."""

    word: str
    figure: str


class Claim(NamedTuple):
    """A sentence of the paper, the entry with its rows, and what decides on it."""

    words: str
    entry: str
    check: Callable[[Rows], Verdict]


def below(interval: MeanInterval, bound: float = 0.0) -> str:
    """The verdict on "it is below the bound": open while the interval holds the bound."""
    _need(math.isfinite(interval.lower), "an interval")
    if interval.upper < bound:
        return CONFIRMED
    equal = interval.lower == interval.upper == bound  # the same in every draw, which says nothing of others
    return NOT_CONFIRMED if interval.lower >= bound and not equal else OPEN


def above(interval: MeanInterval, bound: float = 0.0) -> str:
    """The verdict on "it is above the bound"."""
    return below(MeanInterval(-interval.mean, -interval.upper, -interval.lower), -bound)


def near(interval: MeanInterval, tolerance: float) -> str:
    """The verdict on "it makes no difference": the interval of the difference inside or outside the tolerance."""
    _need(math.isfinite(interval.lower), "an interval")
    if -tolerance <= interval.lower and interval.upper <= tolerance:
        return CONFIRMED
    return NOT_CONFIRMED if interval.lower > tolerance or interval.upper < -tolerance else OPEN


def all_of(*words: str) -> str:
    """The verdict on several claims at once."""
    _need(bool(words), "anything to compare")
    return NOT_CONFIRMED if NOT_CONFIRMED in words else OPEN if OPEN in words else CONFIRMED


def share(flags: AnyArray) -> MeanInterval:
    """Share of True with its Wilson interval."""
    _need(len(flags) > 0, "draws")
    interval = stats.binomtest(int(np.sum(flags)), len(flags)).proportion_ci(CONFIDENCE, method="wilson")
    return MeanInterval(float(np.mean(flags)), float(interval.low), float(interval.high))


def share_difference(first: AnyArray, second: AnyArray) -> MeanInterval:
    """Difference of the shares of independent draws, with Newcombe's interval, which joins two Wilson intervals."""
    a, b = share(first), share(second)
    d = a.mean - b.mean
    lower = d - math.hypot(a.mean - a.lower, b.upper - b.mean)
    return MeanInterval(d, lower, d + math.hypot(a.upper - a.mean, b.mean - b.lower))


def paired(rows: Rows, name: str, first: str, second: str) -> Array:
    """Differences first - second of a column between two methods, over the repetitions that both have."""
    values = {
        method: {row["repetition"]: float(row[name]) for row in rows if row["method"] == method}
        for method in (first, second)
    }
    both = sorted(values[first].keys() & values[second].keys())
    _need(len(both) > 1, f"common repetitions of {first} and {second}")
    return np.array([values[first][k] - values[second][k] for k in both])


def means(rows: Rows, name: str) -> dict[str, float]:
    """Mean of a column for each method."""
    return {method: float(column(some, name).mean()) for method, some in grouped(rows, "method").items()}


def needed(rows: list[Item], what: str) -> list[Item]:
    """The rows, of which there must be some."""
    _need(bool(rows), what)
    return rows


def shown(interval: MeanInterval, form: str = ".2g") -> str:
    """A number with its 95 % interval."""
    return f"{interval.mean:{form}} [{interval.lower:{form}}, {interval.upper:{form}}]"


def _need(there: bool, what: str) -> None:
    if not there:
        raise MissingRowsError(f"{what} missing")
