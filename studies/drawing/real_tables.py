"""What the tables of the real data sets share: their order, cells such as "21.4 ± 1.6", and paired differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sosbands._types import Array
from sosbands.comparison import MeanInterval, TextTable, corrected_interval
from sosbands.comparison.text_table import MISSING
from studies.data import real_names
from studies.data.catalogue import PAPER_SETS
from studies.drawing.caption_words import failure_words, joined, number_words
from studies.drawing.figures import column, grouped, succeeded
from studies.runs.config import Rows
from studies.runs.methods import SHOWN
from studies.runs.paper_numbers import METHODS, Printed, printed
from studies.runs.real_runs import LEVEL

ALL = "All datasets"  # the paper's name of a line
PAPER_REPETITIONS = 10
METHOD_ORDER = (*METHODS, *(name for name in SHOWN if name not in METHODS))  # the paper's columns first
NOMINAL = (1 + LEVEL) / 2  # coverage of each end
# Rows after the paper's steps, as the entry real-data counts them.
N_ROWS = {
    "Concrete": 1030,
    "Bike": 10886,
    "Diabetes": 442,
    "Housing": 19648,
    "Housing log": 19648,
    "MPG": 392,
    "Boston": 490,
    "Energy": 768,
    "Miami": 13932,
    "Sulfur": 10081,
    "Power": 9568,
    "Yacht": 308,
}
WORST_SETS = ("worst_set_coverage_lower", "worst_set_coverage_upper")


class Spread(NamedTuple):
    """A mean, median or other value with its uncertainty, NaN where there is none."""

    value: float
    sd: float

    def __str__(self) -> str:
        return spread_cell(self.value, self.sd)


# ---------------------------------------------------------------- order and groups


def in_order(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Different names in a known order, unknown ones behind."""
    places = {name: place for place, name in enumerate(known)}
    return sorted(dict.fromkeys(names), key=lambda name: places.get(name, len(places)))


def sets_of(rows: Rows) -> list[str]:
    """Data sets of the rows, in the order of the paper."""
    return in_order((row["dataset"] for row in rows), real_names())


def methods_of(rows: Rows) -> list[str]:
    """Methods of the rows, those of the paper first and in its order."""
    return in_order((row["method"] for row in rows), METHOD_ORDER)


def ordered_groups(rows: Rows) -> dict[tuple[str, str], Rows]:
    """Rows by data set and method, in order; groups without rows are left out."""
    groups = grouped(rows, "dataset", "method")
    keys = [(name, method) for name in sets_of(rows) for method in methods_of(rows)]
    return {key: groups[key] for key in keys if key in groups}


def counts(rows: Rows) -> dict[str, int]:
    """Repetitions that succeeded and that failed."""
    fine = len(succeeded(rows))
    return {"n": fine, "n_failed": len(rows) - fine}


# ---------------------------------------------------------------- statistics


def summary(rows: Rows, name: str, statistic: Callable[[Array], Any] = np.mean) -> Spread:
    """Statistic and standard deviation of a column over the rows that succeeded.

    NaN for the statistic of nothing and for the deviation of less than two or of infinite values.
    """
    return summary_of(column(succeeded(rows), name), statistic)


def summary_of(values: Array, statistic: Callable[[Array], Any] = np.mean) -> Spread:
    """The same for values at hand."""
    if not len(values):
        return Spread(math.nan, math.nan)
    sd = float(values.std(ddof=1)) if len(values) > 1 and np.isfinite(values).all() else math.nan
    return Spread(float(statistic(values)), sd)


def worst_set_values(rows: Rows) -> Array:
    """Worst-set coverage of the lower and of the upper ends, pooled."""
    fine = succeeded(rows)
    return np.concatenate([column(fine, name) for name in WORST_SETS])


def mean_over_sets(values: Mapping[tuple[str, int], list[float]]) -> Spread:
    """Mean of the data sets' means, with its standard error over random splits of these data sets.

    Parameters
    ----------
    values : mapping
        Numbers by data set and repetition. Those of one repetition, of several methods on one split, are not
        independent: their mean counts once in the standard error.
    """
    sets: dict[str, list[list[float]]] = {}
    for (name, _), numbers in values.items():
        sets.setdefault(name, []).append(numbers)
    if not sets:
        return Spread(math.nan, math.nan)
    means = [np.mean(np.concatenate(splits)) for splits in sets.values()]
    by_split = [summary_of(np.array([np.mean(numbers) for numbers in splits])) for splits in sets.values()]
    variances = [each.sd**2 / len(splits) for each, splits in zip(by_split, sets.values(), strict=True)]
    return Spread(float(np.mean(means)), math.sqrt(sum(variances)) / len(sets))


# ---------------------------------------------------------------- cells and notes


def spread_cell(value: float, sd: float, decimals: int | None = None) -> str:
    """Such as "189 ± 13"; by default with two digits of the deviation and at most four of the value."""
    if not (math.isfinite(value) and math.isfinite(sd)):
        return number_words(value, ".4g" if decimals is None else f".{decimals}f")
    if decimals is None:
        decimals = min(1 - _magnitude(sd), 3 - _magnitude(value)) if sd else 3 - _magnitude(value)
    places = max(0, decimals)
    return f"{round(value, decimals):.{places}f} ± {round(sd, decimals):.{places}f}"


def _magnitude(value: float) -> int:
    """Power of ten of the first digit; that of 0 is set to 0."""
    return math.floor(math.log10(abs(value))) if value else 0


def printed_cell(number: Printed | None, decimals: int | None = None) -> str:
    """What the paper prints, without zeros at the end unless a number of decimals is given."""
    if number is None:
        return MISSING
    parts = [format(each, ".6g" if decimals is None else f".{decimals}f") for each in number if each is not None]
    return " ± ".join(parts)


# ---------------------------------------------------------------- tables


def beside_paper(rows: Rows, name: str, metric: str, statistic: str, decimals: int | None = None) -> TextTable:
    """A line per data set and method: ours, the paper's, and their difference in standard deviations.

    Parameters
    ----------
    rows : list of dict
        Of `real_rows`.
    name : str
        Column of the rows.
    metric : str
        Name of the paper's numbers.
    statistic : {"median", "mean"}
        Of the repetitions.
    decimals : int, optional
        As in `spread_cell`.
    """
    found, shown = [], []
    for (dataset, method), group in ordered_groups(rows).items():
        ours = summary(group, name, np.median if statistic == "median" else np.mean)
        paper = printed(metric, dataset, method)
        difference = in_paper_sd(ours.value, paper)
        found.append(
            {
                "dataset": dataset,
                "method": method,
                f"{name}_{statistic}": ours.value,
                f"{name}_sd": ours.sd,
                f"paper_{statistic}": None if paper is None else paper.value,
                "paper_sd": None if paper is None else paper.sd,
                "difference_in_sd": difference,
                **counts(group),
            }
        )
        shown.append(
            {
                "data set": dataset,
                "method": SHOWN.get(method, method),
                f"ours ({statistic} ± sd)": spread_cell(*ours, decimals),
                f"paper ({statistic} ± sd)": printed_cell(paper, decimals),
                "difference in paper's sd": number_words(difference, "+z.1f"),
                "n": found[-1]["n"],
            }
        )
    return TextTable(found, shown, joined(_difference_note(found, statistic), failure_words(rows)))


def _difference_note(found: Rows, statistic: str) -> str:
    """How many lines agree, and how far equal methods would be apart by chance."""
    known = [row for row in found if math.isfinite(row["difference_in_sd"])]
    if not known:
        return ""
    # the variance of a mean is 1/n, that of a median of normal numbers about pi/(2 n), in squared deviations
    unit = math.pi / 2 if statistic == "median" else 1.0
    chance = {row["n"]: math.sqrt(unit * (1 / PAPER_REPETITIONS + 1 / row["n"])) for row in known}
    near = sum(abs(row["difference_in_sd"]) <= 2 * chance[row["n"]] for row in known)
    most = max(chance)
    return (
        f"n: our repetitions; the paper has {PAPER_REPETITIONS}. Differences in units of the paper's standard "
        f"deviation; those of equal methods would have a standard deviation of about {chance[most]:.2f} at n = {most}: "
        f"{near} of {len(known)} lines are within twice that."
    )


def paired_table(rows: Rows, axis: str, kinds: Mapping[str, str], title: str) -> TextTable:
    """Two kinds of one method, line by line, with the paired difference of their interval scores.

    Parameters
    ----------
    rows : list of dict
        Of `real_rows`.
    axis : str
        Column that tells the kinds apart.
    kinds : mapping of str to str
        Two values of it with the words for them; the difference is the second minus the first.
    title : str
        Heading of the kinds.
    """
    found, shown = [], []
    groups = grouped(rows, "dataset", axis)
    first, second = kinds
    for dataset, kind in [(name, kind) for name in sets_of(rows) for kind in kinds if (name, kind) in groups]:
        group = groups[dataset, kind]
        width, score = summary(group, "mean_width", np.median), summary(group, "interval_score")
        coverage, seconds = summary(group, "coverage"), summary(group, "fit_seconds")
        worst = summary_of(worst_set_values(group))
        numbers = {
            "mean_width_median": width.value,
            "mean_width_sd": width.sd,
            "coverage_mean": coverage.value,
            "coverage_sd": coverage.sd,
            "interval_score_mean": score.value,
            "interval_score_sd": score.sd,
            "worst_set_coverage_mean": worst.value,
            "worst_set_coverage_sd": worst.sd,
            "fit_seconds_mean": seconds.value,
        }
        pairs = paired_values(groups.get((dataset, first), []), group, "interval_score") if kind == second else []
        with np.errstate(invalid="ignore"):  # of two infinite scores
            d = corrected_interval([np.subtract(*pair) for pair in pairs], overlap(dataset))
        ends = {"difference": d.mean, "difference_lower": d.lower, "difference_upper": d.upper, "n_pairs": len(pairs)}
        found.append({"dataset": dataset, axis: kind, **numbers, **ends, **counts(group)})
        shown.append(
            {
                "data set": dataset,
                title: kinds[kind],
                "width (median ± sd)": str(width),
                "coverage": number_words(coverage.value, ".3f"),
                "interval score": str(score),
                "worst set": number_words(worst.value, ".3f"),
                "seconds": number_words(seconds.value, ".2g"),
                "score difference [95 %]": interval_cell(d),
                "n": found[-1]["n"],
            }
        )
    note = (
        f"n repetitions on the same splits. Score difference: {kinds[second]} minus {kinds[first]}, below 0 if it is "
        "better, with the corrected resampled t interval. Worst set: mean of the worst-set coverages of the lower and "
        "the upper ends, of which 0.95 is asked for. Seconds: mean time of a fit."
    )
    return TextTable(found, shown, joined(note, failure_words(rows)))


def in_paper_sd(value: float, paper: Printed | None) -> float:
    """Distance from what the paper prints in its standard deviations, NaN if it prints none."""
    return math.nan if paper is None or not paper.sd else (value - paper.value) / paper.sd


def paired_values(first: Rows, second: Rows, name: str) -> list[tuple[float, float]]:
    """A column of the second and of the first rows, in the repetitions in which both succeeded."""
    known = {row["repetition"]: row[name] for row in succeeded(first)}
    return [(row[name], known[row["repetition"]]) for row in succeeded(second) if row["repetition"] in known]


def overlap(dataset: str) -> float:
    """Test rows over all other rows of a data set: what repeated splits of it share, see `corrected_interval`."""
    paper = next(each for each in PAPER_SETS if each.name == dataset)
    return paper.n_test / (N_ROWS[dataset] - paper.n_test)


def worst_set_distance(row: dict[str, Any], prefix: str = "") -> float:
    """Distance of the worst-set coverages of the two ends from nominal, mean of both."""
    return float(np.mean([abs(row[prefix + name] - NOMINAL) for name in WORST_SETS]))


def interval_cell(found: MeanInterval) -> str:
    """Such as "+0.5 [-0.1, +1.1]"; the mean alone where there is no interval."""
    mean, lower, upper = (number_words(each, "+.3g" if each else ".0f") for each in found)
    return mean if lower == MISSING else f"{mean} [{lower}, {upper}]"
