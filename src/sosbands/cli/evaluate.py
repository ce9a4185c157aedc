"""``sosbands evaluate``: how good the intervals of a model are on rows with a known target."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, percent
from sosbands.cli.table_files import open_table
from sosbands.comparison.text_table import TextTable
from sosbands.conformal import conformal_rank

UNLIKELY = 1e-3
COUNTS = ("n", "n_infinite", "n_empty")
MEANINGS = {
    "coverage": "share of rows inside their interval; {level} is {promised} on average",
    "coverage_lower": "share of rows not below their interval",
    "coverage_upper": "share of rows not above their interval",
    "mean_width": "mean width of the intervals, in units of the target",
    "median_width": "median width; half of the intervals are narrower",
    "interval_score": "width plus a fine for rows outside, on average; lower is better",
    "hsic": "how much widths follow the errors; 0: not at all",
    "distance_correlation": "the same by another measure; from 0 to 1",
    "worst_set_coverage": "least coverage among ten sets of 100 neighbours; low values are bad",
    "worst_set_coverage_lower": "the same for the lower ends",
    "worst_set_coverage_upper": "the same for the upper ends",
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
    confidence_level: options.Level = None,
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
    columns = Columns.of_model(fitted, model)
    target = target or columns.target
    if target is None:
        raise ValueError(f"{model} does not say what it predicts: give --target")
    columns.check(file, says)
    frame, y = columns.read(file, target, says if drop_missing_target else None)
    level = fitted.confidence_level if confidence_level is None else confidence_level
    with says.listening():
        row = fitted.evaluate(frame, y, level)
    tally = Tally(columns)
    tally.count(frame)
    tally.report(says)
    metrics: dict[str, Any] = {name: int(value) if name in COUNTS else value for name, value in row.items()}
    _doubt(says, fitted, metrics, level)
    shown = [name for name in metrics if name not in COUNTS] + [name for name in COUNTS if name in metrics]
    cross = hasattr(fitted, "copies_")
    meanings = {name: _meaning(name, level, cross) for name in shown}
    table = TextTable([{"metric": name, "value": metrics[name], "meaning": meanings[name]} for name in shown])
    says.result(f"{percent(level)} intervals of {model} on {data}\n\n{table}", {"confidence_level": level, **metrics})


def _meaning(name: str, level: float, cross: bool) -> str:
    return MEANINGS.get(name, "").format(level=percent(level), promised="aimed at" if cross else "promised")


def _doubt(says: Output, fitted: Any, metrics: dict[str, Any], level: float) -> None:
    """Mention a coverage that chance would hardly give to rows like the calibration rows.

    With m of these and one quantile, of rank k, the number of covered rows is beta-binomial with k and m + 1 - k.
    This is exact without ties; with ties coverage is larger. Cross-calibration has no such law.
    """
    from scipy.stats import betabinom

    if hasattr(fitted, "copies_"):
        return
    m, n = fitted.n_calibration_, metrics["n"]
    k = conformal_rank(m, level)
    covered = round(metrics["coverage"] * n)
    if k <= m and betabinom.cdf(covered, n, k, m + 1 - k) < UNLIKELY:
        says.note(
            f"rows like those of fit would give a coverage as low as {percent(metrics['coverage'])} less than once in "
            f"{round(1 / UNLIKELY)} times: are these rows of another kind?"
        )
