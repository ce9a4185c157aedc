"""``sosbands predict``: intervals for the rows of a table, read and written in pieces."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands._types import Array
from sosbands._words import many
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally
from sosbands.cli.extras import need
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, listed, percent
from sosbands.cli.progress import counted
from sosbands.cli.table_files import TableFile, check_output, open_table, table_suffix, table_writer
from sosbands.exceptions import LITTLE_SUPPORT

WRITTEN = ("prediction", "lower", "upper", "support")


def predict(
    model: options.ModelPath,
    data: options.DataPath,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="CSV or Parquet file to write.")],
    confidence_level: options.Level = None,
    keep_columns: Annotated[bool, typer.Option("--keep-columns", help="Write the columns of DATA, too.")] = False,
    trust: options.Trust = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Write prediction, lower and upper end and support for each row of DATA.

    Support is 1 at the learning rows and near 0 where they say nothing. Files of any length need little memory.

    \b
    Example:
      sosbands predict price.model new.csv -o intervals.csv --confidence-level 0.8
    """  # noqa: D301
    says = Output(json)
    table_suffix(output, "output")
    check_output(output, apart_from=[data, model])
    file = open_table(data)
    fitted = load_model(model, trust)
    columns = Columns.of_model(fitted, model)
    columns.check(file, says)
    level = fitted.confidence_level if confidence_level is None else confidence_level
    clock = time.perf_counter()
    with says.listening():
        totals = _predict(fitted, columns, file, output, level, kept=file.names if keep_columns else [], says=says)
    totals.report(says, level)
    seconds = time.perf_counter() - clock
    width = totals.width / totals.rows if totals.rows else float("nan")
    words = f"{many(totals.rows, 'row')} with {percent(level)} intervals written to {output} in {seconds:.1f} s"
    data_out = {"output": str(output), "rows": totals.rows, "confidence_level": level, "mean_width": width}
    more = {"n_off_data": totals.far, "n_empty": totals.empty, "n_infinite": totals.infinite, "seconds": seconds}
    says.result(words, {**data_out, **more})


@dataclass
class Totals:
    """What was seen in all batches."""

    tally: Tally
    rows: int = 0
    width: float = 0.0
    far: int = 0
    empty: int = 0
    infinite: int = 0

    def count(self, frame: Any, found: dict[str, Any]) -> None:
        """Add one batch."""
        lower, upper = found["lower"], found["upper"]
        self.rows += len(frame)
        width = upper - lower
        self.width += float(width.sum())
        self.far += int(np.count_nonzero(found["support"] < LITTLE_SUPPORT))
        self.empty += int(np.count_nonzero(width == 0))
        self.infinite += int(np.count_nonzero(np.isinf(width)))
        self.tally.count(frame)

    def report(self, says: Output, level: float) -> None:
        """Say what users should know of."""
        self.tally.report(says)
        if not self.rows:
            says.note("the file has no rows: only the names of the columns were written")
        if self.far:
            says.note(
                f"{self.far} of {self.rows} rows are far from the learning rows (support below {LITTLE_SUPPORT}): "
                "there the learning rows say nothing about the noise"
            )
        if self.empty:
            says.note(
                f"{self.empty} of {self.rows} intervals are empty at {percent(level)}: both ends are their midpoint"
            )


def _predict(
    fitted: Any, columns: Columns, file: TableFile, output: Path, level: float, *, kept: list[str], says: Output
) -> Totals:
    """Go through the file once."""
    pa = need("pyarrow")
    clash = [name for name in kept if name in WRITTEN]
    if clash:
        raise ValueError(f"{file.path} has columns {listed(clash)} already: rename them, or leave --keep-columns out")
    schema = pa.schema([*(file.schema.field(name) for name in kept), *((name, pa.float64()) for name in WRITTEN)])
    fitted._calibrated("predict")  # before anything is written
    totals = Totals(Tally(columns))
    used = list(dict.fromkeys([*kept, *columns.features]))
    with table_writer(output, schema) as write, counted("predicting", file.n_rows, shown=not says.as_json) as advance:
        for batch in file.batches(used):
            frame = columns.frame(batch, file, totals.rows + 1)
            found = _intervals(fitted, frame, level)
            totals.count(frame, found)
            arrays = [batch.column(name) for name in kept] + [pa.array(found[name]) for name in WRITTEN]
            write(pa.record_batch(arrays, schema=schema))
            advance(len(frame))
    return totals


def _intervals(fitted: Any, frame: Any, level: float) -> dict[str, Array]:
    """What `predict`, `predict_interval` and `support` give, with everything about a row computed once."""
    center, band, [(ends, _)] = fitted._intervals(frame, [level])
    support = np.full(len(frame), np.nan) if band.support is None else band.support
    return {"prediction": center, "lower": ends[:, 0], "upper": ends[:, 1], "support": support}
