"""``sosbands recalibrate``: new rows for the calibration of a model, which is otherwise left as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands._types import Array
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally
from sosbands.cli.evaluate import read_rows
from sosbands.cli.fit import words_of
from sosbands.cli.intervals import BOTH, Asked, Quantiles
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, percent, short, wrapped
from sosbands.cli.progress import stages
from sosbands.cli.split_width import update_split
from sosbands.cli.table_files import check_output, open_table
from sosbands.regressors.summary import paragraphs


def recalibrate(  # noqa: PLR0913
    model: options.ModelPath,
    data: options.DataPath,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="MODEL2", help="Model file to write.")],
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Column of the truth; by default the one the model predicts."),
    ] = None,
    window: Annotated[
        Any,
        typer.Option(
            "--window",
            metavar="N",
            parser=options.whole_number(1),
            help="Keep the last so many calibration rows, of each group.",
        ),
    ] = None,
    decay: Annotated[
        Any,
        typer.Option(
            "--decay",
            metavar="NUMBER",
            parser=options.read_level,
            help="Each row counts as so much of the next one; it must exceed the confidence level C, with asymmetric "
            "calibration (1 + C)/2.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Calibrate on the rows of DATA alone; by default they are added.")
    ] = False,
    groups: options.NewGroups = None,
    drop_missing_target: options.DropMissingTarget = False,
    trust: options.Trust = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Add rows with a known target, in the order of time, to the calibration of a model, and write it anew.

    Point model and bands stay as they are. The rows must be others than those of `fit`.

    \b
    Example:
      sosbands recalibrate price.model since-may.csv --target price -o price-june.model --window 500
    """  # noqa: D301
    says = Output(json)
    check_output(output, apart_from=[data])
    file = open_table(data)
    fitted = load_model(model, trust)
    columns, asked = Columns.of_model(fitted, model), Asked.of_model(fitted, None, groups)
    kind = fitted.calibration
    asked.prepare(fitted, model)
    target = target or columns.target
    if target is None:
        raise ValueError(f"{model} does not say what it predicts: give --target")
    columns.check(file, says, also_used=[target, *([asked.groups] if asked.groups else [])])
    asked.check(file)
    with says.listening(), stages("calibrating", shown=not json) as step:
        step(f"reading {data}")
        frame, y, labels = read_rows(columns, asked, file, target, says if drop_missing_target else None)
        step(f"{many(len(y), 'row')}")
        known = Quantiles(fitted, asked, [fitted.confidence_level]).known(labels, f"column {asked.groups!r}")
        before = _seen(fitted, asked, frame, y, labels)
        _calibrate(fitted, frame, y, known, window=window, decay=decay, replace=replace)
        after = _seen(fitted, asked, frame, y, labels)
    tally = Tally(columns)
    tally.count(frame)
    tally.report(says)
    words = words_of(fitted)
    fitted.set_params(calibration=kind).save(output)
    says.result(
        _text(fitted, asked.side, before, after, output),
        {**_data(before, after), "model": str(output), "summary": words},
    )


def _calibrate(
    fitted: Any, frame: Any, y: Array, labels: Any, *, window: int | None, decay: float | None, replace: bool
) -> None:
    if replace:
        del fitted.calibration_
        fitted.n_learnt_calibration_rows_ = 0
    fitted.update(frame, y, window=window, decay=decay, groups=labels)
    update_split(fitted, frame, y, labels, window=window, decay=decay, replace=replace)


def _seen(fitted: Any, asked: Asked, frame: Any, y: Array, labels: Any) -> dict[str, float]:
    """Calibration rows, and what the intervals do on the new rows."""
    center, (ends,), _ = Quantiles(fitted, asked, [fitted.confidence_level]).at(frame, labels)
    inside = np.ones(len(y), dtype=bool)
    if "lower" in asked.ends:
        inside &= ends[:, 0] <= y
    if "upper" in asked.ends:
        inside &= y <= ends[:, 1]
    width = float(np.median(asked.width(center, ends)))
    return {"n_calibration": len(fitted.calibration_), "coverage": float(inside.mean()), "median_width": width}


def _text(fitted: Any, side: str, before: dict[str, float], after: dict[str, float], path: Path) -> str:
    rows = f"Calibration rows: {before['n_calibration']} before, {after['n_calibration']} now."
    where, distance = ("in their interval", "width") if side == BOTH else (f"within their {side} end", "reach")
    inside = f"{percent(round(before['coverage'], 3))} of the new rows were {where} before"
    width = f"{short(before['median_width'])} before, {short(after['median_width'])} now"
    promise = paragraphs(fitted, side)["promise"]
    seen = f"{rows} {inside}. Median {distance} on the new rows: {width}."
    return f"{wrapped(seen)}\n{wrapped(promise)}\nSaved to {path}."


def _data(before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    return {
        "n_calibration": after["n_calibration"],
        "n_calibration_before": before["n_calibration"],
        "coverage_before": before["coverage"],
        "median_width": after["median_width"],
        "median_width_before": before["median_width"],
    }
