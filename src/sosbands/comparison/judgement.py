"""One sentence about which method to take, from the paired differences of a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.comparison.result import ComparisonResult, MeanInterval

METRIC = "interval_score"
AS_GOOD = 0.02  # a method that is worse by less, with its confidence interval, is as good
FASTER = 0.7  # at most this part of the time is worth mentioning
PARTS = {
    "half": 1 / 2,
    "a third": 1 / 3,
    "a quarter": 1 / 4,
    "a fifth": 1 / 5,
    "a tenth": 1 / 10,
    "a hundredth": 1 / 100,
}


def judgement(result: ComparisonResult) -> str:
    """Which method has the lowest interval score, by how much, and whether another is as good and faster.

    Differences are paired, relative to the mean score of the worse method, and have the 95 % confidence intervals of
    `ComparisonResult.differences`. Methods that always failed, or whose score is infinite once, are left out. Empty if
    there are not two others with repetitions in common.
    """
    scores = _scores(result)
    if len(scores) < 2:
        return ""
    best, *others = sorted(scores, key=lambda method: scores[method].mean())
    behind = {name: result.interval_of((scores[name] - scores[best]) / scores[name].mean()) for name in others}
    if np.isnan(behind[others[0]].lower):
        return (
            f"{best} has the lowest interval score here, {_percent(behind[others[0]].mean)} below the next, "
            f"{others[0]}; one repetition does not say whether that is chance."
        )
    alike = [method for method in others if behind[method].lower <= 0]
    sentence = _draw(result, best, alike, behind) if alike else _winner(result, best, others[0], behind[others[0]])
    return sentence + _shortfall(result, best)


def _scores(result: ComparisonResult) -> dict[str, Array]:
    """Scores of the methods over the repetitions that they have in common."""
    found = {method: result._by_repetition(method, METRIC) for method in result.methods}
    found = {method: values for method, values in found.items() if values and np.isfinite(list(values.values())).all()}
    common = set.intersection(*(set(values) for values in found.values())) if found else set()
    scores = {method: np.array([values[k] for k in sorted(common)]) for method, values in found.items()}
    return scores if common and all(each.mean() > 0 for each in scores.values()) else {}


def _winner(result: ComparisonResult, best: str, second: str, d: MeanInterval) -> str:
    """The best is better than each of the others."""
    time = _time(result, second, best)
    range_ = f"[{_short(100 * d.lower)}, {_short(100 * d.upper)}]"
    less = f"{_percent(d.mean)} {range_} lower interval score than the next, {second}"
    return f"{best} is best: {less}{f', which takes {time} of the time' if time else ''}."


def _draw(result: ComparisonResult, best: str, alike: list[str], behind: dict[str, MeanInterval]) -> str:
    """Some others are not shown to be worse: the fastest of those that are as good, or all that are left open."""
    good = [method for method in alike if behind[method].upper < AS_GOOD]
    if good:
        quick = min(good, key=lambda method: _seconds(result, method))
        time = _time(result, quick, best)
        sooner = f" in {time} of the time" if time else ""
        return f"{quick} is as good as {best} (difference {_plus_minus(behind[quick])}){sooner}."
    named = ", ".join(f"{method} by {_plus_minus(behind[method])}" for method in alike)
    return f"No clear winner: {best} has the lowest interval score, ahead of {named}; more repetitions may tell."


def _shortfall(result: ComparisonResult, method: str) -> str:
    """A coverage that is clearly less than was asked for."""
    covered = list(result._by_repetition(method, "coverage").values())
    level = result.confidence_level
    found = result.interval_of([value - level for value in covered])
    if not found.upper < 0:
        return ""
    return f" But {method} covers {100 * (level + found.mean):.3g} % only, where {100 * level:.6g} % were asked for."


def _seconds(result: ComparisonResult, method: str) -> float:
    return float(np.mean(list(result._by_repetition(method, "seconds").values())))


def _time(result: ComparisonResult, method: str, other: str) -> str:
    """The part of the other's time that a method takes, if that is much less: such as "a tenth" and "4 %"."""
    part = _seconds(result, method) / _seconds(result, other)
    if not part <= FASTER:
        return ""
    near = {name: abs(np.log(part / value)) for name, value in PARTS.items()}
    name: Any = min(near, key=lambda each: near[each])
    return str(name) if near[name] < np.log(1.15) else f"{100 * part:.2g} %"


def _percent(share: float) -> str:
    return f"{_short(100 * share)} %"


def _plus_minus(d: MeanInterval) -> str:
    return f"{_percent(d.mean)} ± {_percent((d.upper - d.lower) / 2)}"


def _short(number: float) -> str:
    """Two digits, or all of those before the point."""
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.2g}"
