"""``sosbands evaluate``: how good the intervals of a model are on rows with a known target."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import typer

from sosbands._types import Array
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally
from sosbands.cli.intervals import BOTH, LOWER_SHARE, UPPER, Asked, Quantiles, labels_of
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, percent, short
from sosbands.cli.progress import stages
from sosbands.cli.split_width import split_widths
from sosbands.cli.table_files import open_table
from sosbands.comparison.text_table import TextTable
from sosbands.conformal import conformal_rank
from sosbands.tables.kinds import CATEGORY

UNLIKELY = 1e-3
COUNTS = ("n", "n_infinite", "n_empty")
NOT_SHOWN = ("hsic",)  # has the squared unit of the target, and no meaning of its own
OF_BOTH_ENDS = ("coverage_lower", "coverage_upper", "median_width", "interval_score", "distance_correlation", "n_empty")
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
    "crps": "score of the whole distribution, on average, in units of the target; lower is better",
    "pit_distance": "largest difference between a probability and the share of rows that it holds; 0 is best",
    "n": "rows",
    "n_infinite": "rows whose interval has no end on some side",
    "n_empty": "rows whose interval is one point",
}


def evaluate(
    model: options.ModelPath,
    data: options.DataPath,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Column of the truth; by default the one the model predicts."),
    ] = None,
    confidence_level: options.Levels = [],  # noqa: B006
    side: options.NewSide = None,
    groups: options.NewGroups = None,
    drop_missing_target: options.DropMissingTarget = False,
    trust: options.Trust = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Compare the intervals of a model with the truth, on rows that it has not seen.

    \b
    Example:
      sosbands evaluate price.model test.csv --target price
    """  # noqa: D301
    says = Output(json)
    file = open_table(data)
    fitted = load_model(model, trust)
    columns, asked = Columns.of_model(fitted, model), Asked.of_model(fitted, side, groups)
    asked.prepare(fitted, model)
    target = target or columns.target
    if target is None:
        raise ValueError(f"{model} does not say what it predicts: give --target")
    columns.check(file, says, also_used=[target, *([asked.groups] if asked.groups else [])])
    asked.check(file)
    levels = [float(level) for level in confidence_level or [fitted.confidence_level]]
    with says.listening(), stages("evaluating", shown=not json) as step:
        step(f"reading {data}")
        frame, y, labels = read_rows(columns, asked, file, target, says if drop_missing_target else None)
        step(f"evaluating {many(len(y), 'row')}")
        found = [_metrics(fitted, asked, frame, y, labels, level) for level in levels]
    tally = Tally(columns)
    tally.count(frame)
    tally.report(says)
    for level, metrics in zip(levels, found, strict=True):
        _doubt(says, fitted, asked, metrics, level)
    named = " and ".join(percent(level) for level in levels)
    ends = "intervals" if asked.side == BOTH else f"{asked.side} ends"
    says.result(
        f"{named} {ends} of {model} on {data}\n\n{_table(found, levels, hasattr(fitted, 'copies_'))!r}",
        _data(found, levels, asked),
    )


def read_rows(
    columns: Columns, asked: Asked, file: Any, target: str, dropping: Output | None = None
) -> tuple[Any, Array, Any]:
    """Features, target and groups, all of the same rows."""
    if asked.groups is None or asked.groups in columns.kinds:
        frame, y = columns.read(file, target, dropping)
        return frame, y, None if asked.groups is None else labels_of(frame[asked.groups])
    with_labels = replace(columns, kinds={**columns.kinds, asked.groups: CATEGORY})
    frame, y = with_labels.read(file, target, dropping)
    return frame.drop(columns=asked.groups), y, labels_of(frame[asked.groups])


def _metrics(fitted: Any, asked: Asked, frame: Any, y: Array, labels: Any, level: float) -> dict[str, Any]:
    """All that is measured, by name, in the order of the table."""
    quantiles = Quantiles(fitted, asked, [level])
    known = quantiles.known(labels, f"column {asked.groups!r}")
    row = fitted.evaluate(frame, y, level, lower_share=LOWER_SHARE[asked.side], groups=known)
    row = {name: value for name, value in row.items() if name not in NOT_SHOWN}
    (split,) = split_widths(fitted, asked, [level], known) or [np.nan]
    if asked.side == BOTH:
        relative = {"relative_width": row["mean_width"] / split} if 0 < split < np.inf else {}
        return _ordered(_after(row, "median_width", relative))
    center, (ends,), _ = quantiles.at(frame, labels)
    return _ordered(_of_one_end(asked, y, center, ends, level, row, split))


def _of_one_end(
    asked: Asked, y: Array, center: Array, ends: Array, level: float, row: dict[str, Any], split: float
) -> dict[str, Any]:
    """What can be said of one end: those metrics that need no width, its distance from the prediction, and its loss."""
    end = ends[:, 1] if asked.side == UPPER else ends[:, 0]
    reach = asked.width(center, ends)
    share = level if asked.side == UPPER else 1 - level  # of the rows that lie below the end
    with np.errstate(invalid="ignore"):
        loss = np.maximum(share * (y - end), (share - 1) * (y - end))
    own = {"mean_reach": float(reach.mean())}
    own |= {"relative_reach": own["mean_reach"] / split} if 0 < split < np.inf else {}
    own |= {"quantile_loss": float(loss.mean())}
    sides = [name for name in row if name.endswith(("_lower", "_upper"))]
    left = {name: value for name, value in row.items() if name not in (*OF_BOTH_ENDS, *sides, "mean_width")}
    left["n_infinite"] = float(np.count_nonzero(np.isinf(end)))
    return _after(left, "coverage", own)


def _after(row: dict[str, Any], name: str, more: dict[str, Any]) -> dict[str, Any]:
    """The row with more entries after one of its own."""
    place = list(row).index(name) + 1
    entries = list(row.items())
    return dict([*entries[:place], *more.items(), *entries[place:]])


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    """Counts as whole numbers, and last."""
    counts = {name: int(row[name]) for name in COUNTS if name in row}
    return {**{name: value for name, value in row.items() if name not in COUNTS}, **counts}


def _table(found: list[dict[str, Any]], levels: list[float], cross: bool) -> TextTable:
    names = ["value"] if len(levels) == 1 else [percent(level) for level in levels]
    level = levels[0] if len(levels) == 1 else None
    rows = []
    for metric in found[0]:
        values = {name: short(each[metric]) for name, each in zip(names, found, strict=True)}
        rows.append({"metric": metric, **values, "meaning": _meaning(metric, level, cross)})
    return TextTable(rows)


def _data(found: list[dict[str, Any]], levels: list[float], asked: Asked) -> dict[str, Any]:
    """Numbers for one level, a list of such for several."""
    each = [{"confidence_level": level, **metrics} for level, metrics in zip(levels, found, strict=True)]
    return {"side": asked.side, **(each[0] if len(each) == 1 else {"levels": each})}


def _meaning(name: str, level: float | None, cross: bool) -> str:
    shown = "the level" if level is None else percent(level)
    return MEANINGS.get(name, "").format(level=shown, promised="aimed at" if cross else "promised")


def _doubt(says: Output, fitted: Any, asked: Asked, metrics: dict[str, Any], level: float) -> None:
    """Mention a coverage that chance would hardly give to rows like the calibration rows.

    With m of these and one quantile, of rank k, the number of covered rows is beta-binomial with k and m + 1 - k.
    This is exact without ties; with ties coverage is larger. Groups have quantiles, and doubts, of their own: none
    is told, nor of cross-calibration and of rows weighed by their age, which have no such law.
    """
    from scipy.stats import betabinom

    if hasattr(fitted, "copies_") or fitted.calibration_.decay is not None:
        return
    m, n = fitted.n_calibration_, metrics["n"]
    k = conformal_rank(m, level)
    covered = round(metrics["coverage"] * n)
    if asked.groups is None and k <= m and betabinom.cdf(covered, n, k, m + 1 - k) < UNLIKELY:
        says.note(
            f"rows like those of fit would give a coverage as low as {percent(metrics['coverage'])} less than once in "
            f"{round(1 / UNLIKELY)} times: are these rows of another kind?"
        )
