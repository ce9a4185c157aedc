"""``sosbands export``: a model as a file that scores rows elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sosbands.cli import options
from sosbands.cli.intervals import LOWER_SHARE, Asked
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, percent
from sosbands.cli.table_files import check_output
from sosbands.serving import export_numpy, export_onnx

WRITERS = {".onnx": export_onnx, ".npz": export_numpy}


def export(
    model: options.ModelPath,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="OUT", help="File to write: .onnx, or .npz for NumPy alone."),
    ],
    levels: Annotated[
        list[str],
        typer.Option(
            "--levels",
            "--confidence-level",
            metavar="LEVEL",
            callback=options.read_levels,
            help="Levels of the intervals in the file, with commas or by repeating the option; by default that of the "
            "model.",
        ),
    ] = [],  # noqa: B006
    bands_only: Annotated[
        bool,
        typer.Option(
            "--bands-only", help="Leave the point model out: its prediction becomes an input, its spread where needed."
        ),
    ] = False,
    trust: options.Trust = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Write a model as an ONNX graph, or as a file for NumPy alone, that gives prediction, lower and upper ends.

    The file is checked against the model on random rows first; one that differs is not written.

    \b
    Example:
      sosbands export price.model -o price.onnx --levels 0.8,0.95
    """  # noqa: D301
    says = Output(json)
    writer = WRITERS.get(output.suffix.lower())
    if writer is None:
        raise ValueError(f"output {output}: expected a name that ends in {' or '.join(WRITERS)}")
    check_output(output, apart_from=[model])
    fitted = load_model(model, trust)
    asked = Asked.of_model(fitted)
    if asked.side != "both":
        fitted.set_params(calibration="asymmetric")  # which both kinds of calibration have the scores for
    share = LOWER_SHARE[asked.side]
    chosen = [float(level) for level in levels] or [float(fitted.confidence_level)]
    with says.listening():
        writer(fitted, output, chosen, lower_share=share, bands_only=bands_only)
    size = output.stat().st_size
    named = " and ".join(percent(level) for level in chosen)
    says.result(
        f"{named} intervals exported to {output} ({size / 1e6:.2f} MB)",
        {"output": str(output), "confidence_level": chosen, "bytes": size},
    )
