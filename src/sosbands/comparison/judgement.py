"""One sentence about which method to take, from the paired differences of a comparison."""

from __future__ import annotations

import numpy as np

from sosbands._types import Array
from sosbands.comparison.result import ComparisonResult, MeanInterval

METRIC = "interval_score"
AS_GOOD = 0.02  # a method that is worse by less, with its confidence interval, is as good
FASTER = 0.7  # at most this part of the time is worth mentioning
PARTS = {"half": 2, "a third": 3, "a quarter": 4, "a fifth": 5, "a tenth": 10, "a hundredth": 100}


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
    second = others[0]
    if np.isnan(behind[second].lower):
        return (
            f"{best} has the lowest interval score here, {_percent(behind[second].mean)} below the next, "
            f"{second}; one repetition does not say whether that is chance."
        )
    seconds = {name: float(np.mean(list(result._by_repetition(name, "seconds").values()))) for name in scores}
    alike = [method for method in others if behind[method].lower <= 0]  # not shown to be worse
    good = [method for method in alike if behind[method].upper < AS_GOOD]
    if not alike:
        mean, lower, upper = behind[second]
        less = f"{_percent(mean)} [{_short(100 * lower)}, {_short(100 * upper)}] lower interval score than the next"
        time = _time(seconds[second] / seconds[best])
        sentence = f"{best} is best: {less}, {second}{f', which takes {time} of the time' if time else ''}."
    elif good:
        quick = min(good, key=lambda method: seconds[method])
        time = _time(seconds[quick] / seconds[best])
        sooner = f" in {time} of the time" if time else ""
        sentence = f"{quick} is as good as {best} (difference {_plus_minus(behind[quick])}){sooner}."
    else:
        lowest = f"{best} has the lowest interval score"
        ahead = ", ".join(f"{method} by {_plus_minus(behind[method])}" for method in alike)
        sentence = f"No clear winner: {lowest}, ahead of {ahead}; more repetitions may tell."
    level = result.confidence_level
    short = result.interval_of([value - level for value in result._by_repetition(best, "coverage").values()])
    if not short.upper < 0:
        return sentence
    covers = f"covers {100 * (level + short.mean):.3g} % only, where {100 * level:.6g} % were asked for"
    return f"{sentence} But {best} {covers}."


def _scores(result: ComparisonResult) -> dict[str, Array]:
    """Scores of the methods over the repetitions that they have in common."""
    found = {method: result._by_repetition(method, METRIC) for method in result.methods}
    found = {method: values for method, values in found.items() if values and np.isfinite(list(values.values())).all()}
    common = set.intersection(*(set(values) for values in found.values())) if found else set()
    scores = {method: np.array([values[k] for k in sorted(common)]) for method, values in found.items()}
    return scores if common and all(each.mean() > 0 for each in scores.values()) else {}


def _time(part: float) -> str:
    """A part of the time that is worth mentioning, such as "a tenth" and "4 %"; otherwise nothing."""
    if not part <= FASTER:
        return ""
    near = min(PARTS, key=lambda name: abs(np.log(part * PARTS[name])))
    return near if abs(np.log(part * PARTS[near])) < np.log(1.15) else f"{100 * part:.2g} %"


def _percent(share: float) -> str:
    return f"{_short(100 * share)} %"


def _plus_minus(d: MeanInterval) -> str:
    return f"{_percent(d.mean)} ± {_percent((d.upper - d.lower) / 2)}"


def _short(number: float) -> str:
    """Two digits, or all of those before the point."""
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.2g}"
