"""``sosbands card``: one printable page about a model, for those who decide whether to rely on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally
from sosbands.cli.evaluate import read_rows
from sosbands.cli.intervals import Asked, Quantiles
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output, open_table
from sosbands.report import write_card


def card(
    model: options.ModelPath,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAGE", help="HTML file to write.")],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DATA", help="CSV or Parquet file of rows that `fit` has not seen.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Column of the truth; by default the one the model predicts."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="COLUMN", help="Tell coverage apart by this column of DATA."),
    ] = None,
    drop_missing_target: options.DropMissingTarget = False,
    trust: options.Trust = [],  # noqa: B006
) -> None:
    """Write what a model was learnt from, its settings and why, its promise and its limits on one HTML page to print.

    With --data it also has the coverage of these rows, in all, by group and by region, with sampling errors.

    \b
    Example:
      sosbands card price.model --data test.csv -o card.html
    """  # noqa: D301
    says = Output()
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"output {output}: expected a name that ends in .html")
    check_output(output, apart_from=[model, *([] if data is None else [data])])
    if data is None and (target is not None or groups is not None):
        raise ValueError(f"--{'target' if target is not None else 'groups'} without --data: expected a table")
    file = None if data is None else open_table(data)
    fitted = load_model(model, trust)
    asked = Asked.of_model(fitted)
    with says.listening(), stages("writing", shown=True) as step:
        given: dict[str, Any] = {}
        if file is not None:
            step(f"reading {data}")
            given = _rows(fitted, model, file, target, groups, says, drop=drop_missing_target)
            step(f"{many(len(given['y']), 'row')}")
        if asked.side != "both":
            fitted.set_params(calibration="asymmetric")
        write_card(fitted, output, side=asked.side, model_file=model, **given)
    says.result(f"Card written to {output}", {"output": str(output)})


def _rows(
    fitted: Any, path: Path, file: Any, target: str | None, groups: str | None, says: Output, *, drop: bool
) -> dict[str, Any]:
    """Features, target and labels, as `write_card` takes them."""
    columns, asked = Columns.of_model(fitted, path), Asked.of_model(fitted)
    by_group = fitted._calibrated("card").groups is not None
    if by_group:
        asked = Asked(asked.side, groups or asked.groups)
        asked.prepare(fitted, path)
    elif groups is not None:
        asked = Asked(asked.side, groups)
    target = target or columns.target
    if target is None:
        raise ValueError(f"{path} does not say what it predicts: give --target")
    columns.check(file, says, also_used=[target, *([asked.groups] if asked.groups else [])])
    asked.check(file)
    frame, y, labels = read_rows(columns, asked, file, target, says if drop else None)
    tally = Tally(columns)
    tally.count(frame)
    tally.report(says)
    if by_group:
        labels = Quantiles(fitted, asked, [fitted.confidence_level]).known(labels, f"column {asked.groups!r}")
    named = {} if labels is None else {"groups": labels, "groups_name": asked.groups}
    return {"X": frame, "y": y, "target_name": target, **named}
