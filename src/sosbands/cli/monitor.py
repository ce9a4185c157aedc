"""``sosbands monitor`` and ``recalibrate``: a model along rows that came one after another, and what to do then."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._files import check_place
from sosbands._types import Array
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.fit import words_of
from sosbands.cli.opened import BOTH, Asked, Opened, update_split
from sosbands.cli.options import flag, option
from sosbands.cli.output import Output, percent, save_figure, short, stages, wrapped
from sosbands.cli.table_files import check_suffix, write_rows
from sosbands.comparison.text_table import TextTable
from sosbands.online import monitor as follow
from sosbands.plotting import plot_monitoring
from sosbands.regressors.summary import paragraphs

PICTURES = (".png", ".pdf", ".svg")
OF_ROWS = ("inside", "width", "adaptive_inside", "adaptive_width", "log10_martingale")
BLOCKS = 10  # rows of the table that is printed
SIZE, PARTS = (8.4, 7.6), (1.2, 1, 1.2)  # of the picture, and of its parts


def monitor(
    model: Path = options.MODEL_PATH,
    data: Path = options.DATA_PATH,
    output: Path = option(..., "PICTURE", "Picture to write: .png, .pdf or .svg.", "-o", "--output"),
    target: str | None = options.NEW_TARGET,
    table: Path | None = option(None, "OUT", "CSV or Parquet file with numbers of each row."),
    alarm_level: Any = option(
        0.01, "LEVEL", "Probability of ever raising an alarm without drift, at most.", parser=options.read_level
    ),
    span: Any = option(
        None,
        "N",
        "Rows that rolling numbers are over; by default a twentieth, from 50 to 1000.",
        parser=options.whole_number(1),
    ),
    seed: int = options.SEED,
    drop_missing_target: bool = options.DROP_MISSING_TARGET,
    trust: list[str] = options.TRUST,
    json: bool = options.JSON,
) -> None:
    """Follow a model along rows in the order of time: coverage, widths, a test for drift, and what to do.

    The rows must be others than those of `fit`, in their order. The test may be repeated with every new row.

    \b
    Example:
      sosbands monitor price.model since-may.csv --target price -o monitor.png
    """  # noqa: D301
    says = Output(json)
    check_suffix(output, "output", PICTURES)
    check_place(output, "output", apart_from=[model, data])
    if table is not None:
        check_suffix(table, "table")
        check_place(table, "output", apart_from=[model, data, output])
    opened = Opened.of(says, model, trust, data)
    if opened.asked.side != BOTH:
        raise ValueError(f"{model} was made for {opened.asked.side} ends alone: expected a model of both ends")
    opened.asked = Asked()
    opened.check(target, grouped=False)
    with says.listening(), stages("monitoring", shown=not json) as step:
        frame, y, _, _ = opened.rows(step, drop=drop_missing_target)
        step(f"following {many(len(y), 'row')}")
        found = follow(opened.fitted, frame, y, level=alarm_level, span=span, random_state=seed)
        save_figure(output, SIZE, lambda figure: plot_monitoring(found, [*figure.subplots(3, 1, height_ratios=PARTS)]))
    if table is not None:
        columns = {name: getattr(found, name).tolist() for name in OF_ROWS}
        rows = zip(*columns.values(), strict=True)
        write_rows(
            table, [{"row": row, **dict(zip(OF_ROWS, values, strict=True))} for row, values in enumerate(rows, 1)]
        )
    following = ""
    if (
        found.began is not None
    ):  # chosen by looking at the scores: rows from there are not exactly exchangeable with new ones
        new = model.with_stem(f"{model.stem}-recalibrated")
        words = ["sosbands", "recalibrate", str(model), str(data), "-o", str(new), "--window"]
        words.append(str(len(found) - found.began))
        words += ["--target", target] if target is not None and target != opened.columns.target else []
        words += [f"--trust={name}" for name in trust]
        words += ["--drop-missing-target"] if drop_missing_target else []
        following = f"\n  {shlex.join(words)}"
    head = f"{percent(found.confidence_level)} intervals of {model} on {many(len(found), 'row')} of {data}"
    said = {
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
    endless, alarm = np.isinf(found.adaptive_width).any(), np.inf if found.alarm is None else found.alarm
    shown = [
        {
            "rows": f"{block['first']:.0f}-{block['last']:.0f}",
            "coverage": percent(round(block["coverage"], 3)),
            "median width": short(block["median_width"]),
            "adaptive": percent(round(block["adaptive_coverage"], 3)),
            "its width": short(block["adaptive_median_width"]),
            **({"infinite": block["adaptive_infinite"]} if endless else {}),
            "martingale": f"{block['martingale']:.3g}",
            "": "drift" if block["last"] > alarm else "",
        }
        for block in found.blocks(BLOCKS)
    ]
    ending = f"{wrapped(found.words())}{following}\nPicture: {output}"
    says.result(f"{head}, in their order\n\n{TextTable(shown)!r}\n\n{ending}", said)


def recalibrate(
    model: Path = options.MODEL_PATH,
    data: Path = options.DATA_PATH,
    output: Path = option(..., "MODEL2", "Model file to write.", "-o", "--output"),
    target: str | None = options.NEW_TARGET,
    window: Any = option(
        None, "N", "Keep the last so many calibration rows, of each group.", parser=options.whole_number(1)
    ),
    decay: Any = option(
        None,
        "NUMBER",
        "Each row counts as so much of the next one; it must exceed the confidence level C, with asymmetric "
        "calibration (1 + C)/2.",
        parser=options.read_level,
    ),
    replace: bool = flag("--replace", "Calibrate on the rows of DATA alone; by default they are added."),
    groups: str | None = options.NEW_GROUPS,
    drop_missing_target: bool = options.DROP_MISSING_TARGET,
    trust: list[str] = options.TRUST,
    json: bool = options.JSON,
) -> None:
    """Add rows with a known target, in the order of time, to the calibration of a model, and write it anew.

    Point model and bands stay as they are. The rows must be others than those of `fit`.

    \b
    Example:
      sosbands recalibrate price.model since-may.csv --target price -o price-june.model --window 500
    """  # noqa: D301
    says = Output(json)
    check_place(output, "output", apart_from=[data])
    opened = Opened.of(says, model, trust, data, groups=groups)
    opened.check(target)
    fitted, asked = opened.fitted, opened.asked
    with says.listening(), stages("calibrating", shown=not json) as step:
        frame, y, labels, _ = opened.rows(step, drop=drop_missing_target)
        step(many(len(y), "row"))
        before = _seen(opened, frame, y, labels)
        if replace:
            del fitted.calibration_
        fitted.update(frame, y, window=window, decay=decay, groups=labels)
        update_split(fitted, frame, y, labels, window=window, decay=decay, replace=replace)
        after = _seen(opened, frame, y, labels)
    words = words_of(fitted, detail=True)
    fitted.save(output)
    where, distance = (
        ("in their interval", "width") if asked.side == BOTH else (f"within their {asked.side} end", "reach")
    )
    seen = (
        f"Calibration rows: {before['n_calibration']} before, {after['n_calibration']} now. "
        f"{percent(round(before['coverage'], 3))} of the new rows were {where} before. Median {distance} on the new "
        f"rows: {short(before['median_width'])} before, {short(after['median_width'])} now."
    )
    promise = paragraphs(fitted, asked.side)["promise"]
    says.result(
        f"{wrapped(seen)}\n{wrapped(promise)}\nSaved to {output}.",
        {
            "n_calibration": after["n_calibration"],
            "n_calibration_before": before["n_calibration"],
            "coverage_before": before["coverage"],
            "median_width": after["median_width"],
            "median_width_before": before["median_width"],
            "model": str(output),
            "summary": words,
        },
    )


def _seen(opened: Opened, frame: Any, y: Array, labels: Any) -> dict[str, float]:
    """Calibration rows, and what the intervals do on the new rows."""
    found = opened.intervals(frame, labels, [opened.fitted.confidence_level])
    inside = (found.lower[:, 0] <= y) & (y <= found.upper[:, 0])
    width = float(np.median(opened.asked.width(found)))
    calibrated = len(opened.fitted.calibration_)
    return {"n_calibration": calibrated, "coverage": float(inside.mean()), "median_width": width}
