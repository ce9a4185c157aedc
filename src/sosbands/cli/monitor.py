"""``sosbands monitor``: whether rows that came one after another are still like the calibration rows of a model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands._files import written
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally
from sosbands.cli.evaluate import read_rows
from sosbands.cli.intervals import BOTH, Asked
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, percent, short, wrapped
from sosbands.cli.progress import stages
from sosbands.cli.table_files import check_output, open_table, table_suffix, write_rows
from sosbands.comparison.text_table import TextTable
from sosbands.online import Monitoring
from sosbands.online import monitor as follow

PICTURES = (".png", ".pdf", ".svg")
BLOCKS = 10  # rows of the table that is printed
SIZE = (8.4, 7.6)


def monitor(  # noqa: PLR0913
    model: options.ModelPath,
    data: options.DataPath,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="PICTURE", help="Picture to write: .png, .pdf or .svg.")
    ],
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Column of the truth; by default the one the model predicts."),
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="OUT", help="CSV or Parquet file with numbers of each row.")
    ] = None,
    alarm_level: Annotated[
        Any,
        typer.Option(
            "--alarm-level",
            metavar="LEVEL",
            parser=options.read_level,
            help="Probability of ever raising an alarm without drift, at most.",
        ),
    ] = 0.01,
    span: Annotated[
        Any,
        typer.Option(
            "--span",
            metavar="N",
            parser=options.whole_number(1),
            help="Rows that rolling numbers are over; by default a twentieth, from 50 to 1000.",
        ),
    ] = None,
    seed: options.Seed = 0,
    drop_missing_target: options.DropMissingTarget = False,
    trust: options.Trust = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Follow a model along rows in the order of time: coverage, widths, a test for drift, and what to do.

    The rows must be others than those of `fit`, in their order. The test may be repeated with every new row.

    \b
    Example:
      sosbands monitor price.model since-may.csv --target price -o monitor.png
    """  # noqa: D301
    says = Output(json)
    if output.suffix.lower() not in PICTURES:
        raise ValueError(f"output {output}: expected a name that ends in {', '.join(PICTURES)}")
    check_output(output, apart_from=[model, data])
    if table is not None:
        table_suffix(table, "table")
        check_output(table, apart_from=[model, data, output])
    file = open_table(data)
    fitted = load_model(model, trust)
    columns, asked = Columns.of_model(fitted, model), Asked.of_model(fitted)
    if asked.side != BOTH:
        raise ValueError(f"{model} was made for {asked.side} ends alone: expected a model of both ends")
    target = target or columns.target
    if target is None:
        raise ValueError(f"{model} does not say what it predicts: give --target")
    columns.check(file, says, also_used=[target])
    with says.listening(), stages("monitoring", shown=not json) as step:
        step(f"reading {data}")
        frame, y, _ = read_rows(columns, Asked(), file, target, says if drop_missing_target else None)
        step(f"following {many(len(y), 'row')}")
        found = follow(fitted, frame, y, level=alarm_level, span=span, random_state=seed)
        _draw(found, output)
    tally = Tally(columns)
    tally.count(frame)
    tally.report(says)
    if table is not None:
        write_rows(table, _rows(found))
    more = [*(["--target", target] if target != columns.target else []), *(f"--trust={name}" for name in trust)]
    more += ["--drop-missing-target"] if drop_missing_target else []
    head = (
        f"{percent(found.confidence_level)} intervals of {model} on {many(len(found), 'row')} of {data}, in their order"
    )
    text = (
        f"{head}\n\n{_table(found)!r}\n\n{wrapped(found.words())}{_next(found, model, data, more)}\nPicture: {output}"
    )
    says.result(text, _data(found, output, table))


def _draw(found: Monitoring, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib: pip install matplotlib ({error})") from error
    from sosbands.plotting import plot_monitoring

    figure = Figure(figsize=SIZE, layout="constrained")
    plot_monitoring(found, list(figure.subplots(3, 1, height_ratios=(1.2, 1, 1.2))))
    with written(path) as partial:
        figure.savefig(partial, dpi=150)


def _table(found: Monitoring) -> TextTable:
    rows, endless = [], np.isinf(found.adaptive_width).any()
    for block in found.blocks(BLOCKS):
        drifted = found.alarm is not None and block["last"] > found.alarm
        rows.append(
            {
                "rows": f"{block['first']:.0f}-{block['last']:.0f}",
                "coverage": percent(round(block["coverage"], 3)),
                "median width": short(block["median_width"]),
                "adaptive": percent(round(block["adaptive_coverage"], 3)),
                "its width": short(block["adaptive_median_width"]),
                **({"infinite": block["adaptive_infinite"]} if endless else {}),
                "martingale": f"{block['martingale']:.3g}",
                "": "drift" if drifted else "",
            }
        )
    return TextTable(rows)


def _next(found: Monitoring, model: Path, data: Path, more: list[str]) -> str:
    """The command that calibrates again with the rows since the drift, after an alarm.

    That row is chosen by looking at the scores: rows from there on are not exactly exchangeable with new ones.
    """
    if found.began is None:
        return ""
    rows, new = len(found) - found.began, model.with_stem(f"{model.stem}-recalibrated")
    words = ["sosbands", "recalibrate", str(model), str(data), "-o", str(new), "--window", str(rows), *more]
    return f"\n  {shlex.join(words)}"


def _rows(found: Monitoring) -> list[dict[str, Any]]:
    columns = {
        "row": list(range(1, len(found) + 1)),
        "inside": found.inside.tolist(),
        "width": found.width.tolist(),
        "adaptive_inside": found.adaptive_inside.tolist(),
        "adaptive_width": found.adaptive_width.tolist(),
        "log10_martingale": found.log10_martingale.tolist(),
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _data(found: Monitoring, output: Path, table: Path | None) -> dict[str, Any]:
    return {
        "output": str(output),
        "table": None if table is None else str(table),
        "rows": len(found),
        "confidence_level": found.confidence_level,
        "alarm_level": found.alarm_level,
        "coverage": float(found.inside.mean()),
        "adaptive_coverage": float(found.adaptive_inside.mean()),
        "alarm_row": None if found.alarm is None else found.alarm + 1,
        "began_row": None if found.began is None else found.began + 1,
        "coverage_since": found.since,
        "largest_log10_martingale": float(found.log10_martingale.max()),
        "span": found.span,
        "blocks": found.blocks(BLOCKS),
        "words": found.words(),
    }
