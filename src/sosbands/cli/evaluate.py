"""``sosbands evaluate``: how good the intervals of a model are on rows with a known target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import check_column
from sosbands.cli.opened import BOTH, LOWER, UPPER, Asked, Opened, check_groups, split_width
from sosbands.cli.output import Output, percent, short, stages
from sosbands.comparison.text_table import TextTable
from sosbands.conformal import conformal_rank
from sosbands.metrics.intervals import LEAST_FOR_SETS

UNLIKELY = 1e-3
TOO_FEW = "too few rows"
FOUND_PLACES = ("ert_l1", "worst_slab_coverage", "cell_gap")
COUNTS = ("n", "n_infinite", "n_empty")
OF_BOTH_ENDS = (
    *("mean_width", "median_width", "interval_score", "distance_correlation", "n_empty"),
    *(f"{name}_{end}" for name in ("coverage", "worst_set_coverage") for end in (LOWER, UPPER)),
)
# What is shown, in this order; HSIC has the squared unit of the target, and no meaning of its own.
MEANINGS = {
    "coverage": "share of rows inside their interval; {level} is {promised} on average",
    "coverage_lower": "share of rows not below their interval",
    "coverage_upper": "share of rows not above their interval",
    "mean_width": "mean width of the intervals, in units of the target",
    "median_width": "median width; half of the intervals are narrower",
    "relative_width": "mean width over that of split conformal prediction around the same model",
    "mean_reach": "mean distance of the end from the prediction, in units of the target",
    "relative_reach": "that over the same of split conformal prediction around the same model",
    "quantile_loss": "loss of the end as a quantile, on average; lower is better",
    "interval_score": "width plus a fine for rows outside, on average; lower is better",
    "distance_correlation": "how much widths follow the errors; from 0, not at all, to 1",
    "worst_set_coverage": "least coverage among ten sets of 100 neighbours; low values are bad",
    "worst_set_coverage_lower": "the same for the lower ends",
    "worst_set_coverage_upper": "the same for the upper ends",
    "ert_l1": "mean distance of coverage from {level} over places, as far as found; about 0 is best",
    "ert_l1_over": "its part from places that are covered more often",
    "ert_l1_under": "its part from places that are covered less often",
    "ert_l2": "the same of the squared distance",
    "ert_l2_over": "its part from places that are covered more often",
    "ert_l2_under": "its part from places that are covered less often",
    "worst_slab_coverage": "coverage of a slab of a tenth of the rows, the worst one among other rows",
    "cell_gap": "mean distance of coverage from {level} over ten cells of rows that are alike",
    "cell_gap_by_chance": "what it would be by chance if every row were covered with {level}",
    "crps": "score of the whole distribution, on average, in units of the target; lower is better",
    "pit_distance": "largest difference between a probability and the share of rows that it holds; 0 is best",
    "n": "rows",
    "n_infinite": "rows whose interval has no end on some side",
    "n_empty": "rows whose interval is one point",
}


@options.spelled
def evaluate(
    *,
    model: Path = options.MODEL_PATH,
    data: Path = options.DATA_PATH,
    target: str | None = options.NEW_TARGET,
    confidence_level: list[str] = options.LEVELS,
    side: str | None = options.NEW_SIDE,
    groups: str | None = options.NEW_GROUPS,
    places: options.Places,
    drop_missing_target: bool = options.DROP_MISSING_TARGET,
    trust: list[str] = options.TRUST,
    json: bool = options.JSON,
) -> None:
    """Compare the intervals of a model with the truth, on rows that it has not seen.

    \b
    Example:
      sosbands evaluate price.model test.csv --target price --by region
    """  # noqa: D301
    says = Output(json)
    opened = Opened.of(says, model, trust, data, side=side, groups=groups)
    opened.check(target, kept=[places.by] if places.by else [])
    fitted, asked = opened.fitted, opened.asked
    by = places.by or asked.groups
    if by is not None:
        check_column(opened.file, by)
        if by == opened.target:
            raise ValueError(f"--by {by}: expected another column than the target")
    levels = [float(level) for level in confidence_level or [fitted.confidence_level]]
    with says.listening(), stages("evaluating", shown=not json) as step:
        frame, y, labels, texts = opened.rows(step, drop=drop_missing_target, by=by)
        check_groups(by, texts)
        step(f"evaluating {many(len(y), 'row')}")
        made = [_metrics(opened, frame, y, labels, level, by=texts, places=places.places) for level in levels]
    found, tables = [metrics for metrics, _ in made], [table for _, table in made]
    for level, metrics in zip(levels, found, strict=True):
        _doubt(says, fitted, asked, metrics, level)
    named = " and ".join(percent(level) for level in levels)
    ends = "intervals" if asked.side == BOTH else f"{asked.side} ends"
    made = fitted.calibration_
    one, promised = len(levels) == 1, "aimed at" if made.copies or made.out_of_fold else "promised"
    words = {"level": percent(levels[0]) if one else "the level", "promised": promised}
    headings = ["value"] if one else [percent(level) for level in levels]
    few = {"worst_set_coverage"} if len(y) < LEAST_FOR_SETS else set()
    few |= {name for name in FOUND_PLACES if places.places and name not in found[0]}
    rows = []  # a line for each metric, with what it means
    for metric in MEANINGS:
        if metric in found[0]:
            values = {name: short(each[metric]) for name, each in zip(headings, found, strict=True)}
        elif metric in few:
            values = dict.fromkeys(headings, TOO_FEW)
        else:
            continue
        rows.append({"metric": metric, **values, "meaning": MEANINGS[metric].format(**words)})
    text = f"{named} {ends} of {model} on {data}\n\n{TextTable(rows)!r}"
    said: list[dict[str, Any]] = [
        {"confidence_level": level, **metrics} for level, metrics in zip(levels, found, strict=True)
    ]
    if by is not None:
        for of_level, table in zip(said, tables, strict=True):
            of_level["by"] = table
        first = [{} if one else {"level": percent(level)} for level in levels]
        shown = [{**level, **row} for level, table in zip(first, tables, strict=True) for row in table]
        text += f"\n\nby {by}, with the 95 % confidence interval (Wilson) of each coverage\n\n"
        text += repr(TextTable(shown))
    says.result(text, {"side": asked.side, **(said[0] if one else {"levels": said})})


def _metrics(
    opened: Opened, frame: Any, y: Array, labels: Any, level: float, *, by: Any, places: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All that is measured, by name, in the order of the table, and a row for each group; one end has its own."""
    asked = opened.asked
    row = opened.fitted.evaluate(frame, y, level, side=asked.side, groups=labels, by=by, places=places)
    groups = [{"group": label, **numbers, "n": int(numbers["n"])} for label, numbers in row.pop("by", {}).items()]
    split = split_width(opened.fitted, asked.side, level, labels)
    width, relative = "mean_width", "relative_width"
    if asked.side != BOTH:
        width, relative = "mean_reach", "relative_reach"
        row = {name: value for name, value in row.items() if name not in OF_BOTH_ENDS}
        ends, upper = opened.intervals(frame, labels, [level]), asked.side == UPPER
        end = (ends.upper if upper else ends.lower)[:, 0]
        share = level if upper else 1 - level  # of the rows that lie below the end
        with np.errstate(invalid="ignore"):
            loss = np.maximum(share * (y - end), (share - 1) * (y - end))
        infinite = float(np.count_nonzero(np.isinf(end)))
        for group in groups:
            del group["mean_width"], group["interval_score"]
            group["mean_reach"] = float(asked.width(ends)[by == group["group"]].mean())
        row |= {
            "mean_reach": float(asked.width(ends).mean()),
            "quantile_loss": float(loss.mean()),
            "n_infinite": infinite,
        }
    if 0 < split < np.inf:
        row[relative] = row[width] / split
    return {name: int(row[name]) if name in COUNTS else row[name] for name in MEANINGS if name in row}, groups


def _doubt(says: Output, fitted: Any, asked: Asked, metrics: dict[str, Any], level: float) -> None:
    """Mention a coverage that chance would hardly give to rows like the calibration rows.

    With m of these and one quantile, of rank k, the number of covered rows is beta-binomial with k and m + 1 - k.
    This is exact without ties; with ties coverage is larger. Groups have quantiles, and doubts, of their own: none
    is told, nor of cross-calibration and of rows weighed by their age, which have no such law.
    """
    from scipy.stats import betabinom

    if fitted.calibration_.copies or fitted.calibration_.decay is not None:
        return
    m, n = fitted.n_calibration_, metrics["n"]
    k = conformal_rank(m, level)
    covered = round(metrics["coverage"] * n)
    if asked.groups is None and k <= m and betabinom.cdf(covered, n, k, m + 1 - k) < UNLIKELY:
        says.note(
            f"rows like those of fit would give a coverage as low as {percent(metrics['coverage'])} less than once in "
            f"{round(1 / UNLIKELY)} times: are these rows of another kind?"
        )
