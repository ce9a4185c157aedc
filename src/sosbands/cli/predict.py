"""``sosbands predict``: intervals for the rows of a table, read and written in pieces."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sosbands._types import Array
from sosbands._words import many, share_of
from sosbands.cli import options
from sosbands.cli.columns import Columns, Tally, check_column
from sosbands.cli.extras import need
from sosbands.cli.intervals import BOTH, LOWER, UPPER, Asked, Quantiles
from sosbands.cli.model_files import load_model
from sosbands.cli.output import Output, decimals_for, listed, percent
from sosbands.cli.progress import counted
from sosbands.cli.table_files import TableFile, check_output, open_table, table_suffix, table_writer
from sosbands.conformal.distribution import HALF
from sosbands.conformal.frames import interval_names, quantile_names
from sosbands.conformal.predictive import placed
from sosbands.exceptions import LITTLE_SUPPORT
from sosbands.regressors.cross import refuse

PREDICTION, SUPPORT = "prediction", "support"
SUPPORT_DECIMALS = 4
DOWN, UP = -1.0, 1.0  # how an end is rounded


def predict(  # noqa: PLR0913
    model: options.ModelPath,
    data: options.DataPath,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="CSV or Parquet file to write.")],
    confidence_level: options.Levels = [],  # noqa: B006
    side: options.NewSide = None,
    quantiles: Annotated[
        list[str],
        typer.Option(
            "--quantiles",
            metavar="Q",
            callback=options.read_levels,
            help="Quantiles instead of intervals, such as 0.05,0.5,0.95: columns quantile_5, quantile_50, quantile_95.",
        ),
    ] = [],  # noqa: B006
    groups: options.NewGroups = None,
    ids: Annotated[
        list[str], typer.Option("--id", metavar="COLUMN", help="Column of DATA to write first. May be repeated.")
    ] = [],  # noqa: B006
    keep_columns: Annotated[bool, typer.Option("--keep-columns", help="Write the columns of DATA, too.")] = False,
    digits: Annotated[
        int,
        typer.Option(
            "--digits",
            metavar="N",
            parser=options.whole_number(1, options.MOST_DIGITS),
            help="Digits of the typical error in CSV files, by which all numbers are rounded; "
            f"{options.MOST_DIGITS}: no rounding. Parquet files hold numbers as they are.",
        ),
    ] = 6,
    trust: options.Trust = [],  # noqa: B006
    json: options.Json = False,
) -> None:
    """Write prediction, lower and upper end and support for each row of DATA, or quantiles in place of the ends.

    Support is 1 at the learning rows and near 0 where they say nothing. Files of any length need little memory.

    \b
    Example:
      sosbands predict price.model new.csv -o intervals.csv --id house --confidence-level 0.8,0.95
      sosbands predict price.model new.csv -o quantiles.csv --quantiles 0.05,0.5,0.95
    """  # noqa: D301
    says = Output(json)
    if quantiles and (confidence_level or side):
        raise ValueError("--quantiles beside --confidence-level or --side: expected quantiles or intervals, not both")
    table_suffix(output, "output")
    check_output(output, apart_from=[data, model])
    file = open_table(data)
    fitted = load_model(model, trust)
    columns, asked = Columns.of_model(fitted, model), Asked.of_model(fitted, side, groups)
    asked.prepare(fitted, model)
    asked.check(file)
    for name in ids:
        check_column(file, name)
    kept = list(dict.fromkeys([*ids, *(file.names if keep_columns else [])]))
    columns.check(file, says, also_used=[*kept, *([asked.groups] if asked.groups else [])])
    levels = confidence_level or [fitted.confidence_level]
    clock = time.perf_counter()
    with says.listening():
        prediction = (
            QuantilePrediction(fitted, columns, asked, sorted(map(float, quantiles)))
            if quantiles
            else Prediction(fitted, columns, asked, levels)  # type: ignore[arg-type]
        )
        totals = prediction.write(file, output, kept, digits, says)
    totals.report(says)
    seconds = time.perf_counter() - clock
    words = f"{many(totals.rows, 'row')} with {totals.named()} written to {output} in {seconds:.1f} s"
    says.result(words, {"output": str(output), "rows": totals.rows, **totals.data(), "seconds": seconds})


@dataclass
class Totals:
    """What was seen in all batches; one number per level where levels differ."""

    tally: Tally
    levels: list[float]
    asked: Asked
    limit: float  # of the support
    rows: int = 0
    far: int = 0
    width: Array = field(init=False)
    empty: Array = field(init=False)
    infinite: Array = field(init=False)

    def __post_init__(self) -> None:
        self.width = np.zeros(len(self.levels))
        self.empty, self.infinite = (np.zeros(len(self.levels), dtype=int) for _ in range(2))

    def count(self, frame: Any, center: Array, ends: list[Array], support: Array) -> None:
        """Add one batch."""
        self.rows += len(frame)
        with np.errstate(invalid="ignore"):  # between two infinite quantiles
            widths = np.array([self.asked.width(center, each) for each in ends])
        self.width += widths.sum(axis=1)
        self.empty += np.count_nonzero(widths == 0, axis=1) if self.asked.side == BOTH else 0
        self.infinite += np.count_nonzero(np.isinf(widths), axis=1)
        self.far += int(np.count_nonzero(support < self.limit))
        self.tally.count(frame)

    def named(self) -> str:
        """What was written."""
        ends = "intervals" if len(self.asked.ends) == 2 else f"{self.asked.side} ends"
        return f"{' and '.join(percent(level) for level in self.levels)} {ends}"

    def data(self) -> dict[str, Any]:
        """For programs: numbers for one level, lists for several."""
        mean = self.width / self.rows if self.rows else np.full(len(self.levels), np.nan)
        each = {
            "confidence_level": self.levels,
            "mean_width" if self.asked.side == BOTH else "mean_reach": mean.tolist(),
            "n_empty": self.empty.tolist(),
            "n_infinite": self.infinite.tolist(),
        }
        one = len(self.levels) == 1
        found = {name: values[0] if one else values for name, values in each.items()}
        return {"side": self.asked.side, **found, "n_off_data": self.far}

    def report(self, says: Output) -> None:
        """Say what users should know of."""
        self.tally.report(says)
        if not self.rows:
            says.note("the file has no rows: only the names of the columns were written")
        if self.far:
            says.note(
                f"{share_of(self.far, self.rows, 'row')} far from the learning rows (support below {self.limit:g}): "
                "there the learning rows say nothing about the noise"
            )
        self.report_infinite(says)

    def report_infinite(self, says: Output) -> None:
        """Say which intervals are, or are empty."""
        for level, empty, infinite in zip(self.levels, self.empty.tolist(), self.infinite.tolist(), strict=True):
            if infinite and self.asked.groups is not None:
                says.note(
                    f"{share_of(infinite, self.rows, 'interval')} infinite at {percent(level)}: there are too few "
                    "calibration rows in the group"
                )
            if empty:
                says.note(
                    f"{share_of(empty, self.rows, 'interval')} empty at {percent(level)}: both ends are their midpoint"
                )


class Prediction:
    """What `predict`, `predict_interval` and `support` give, with everything about a row computed once."""

    totals: type[Totals] = Totals

    def __init__(self, fitted: Any, columns: Columns, asked: Asked, levels: list[float]) -> None:
        self.fitted, self.columns, self.asked, self.levels = fitted, columns, asked, levels
        self.quantiles = Quantiles(fitted, asked, levels)
        self.names = [PREDICTION, *interval_names(levels, len(levels) > 1, asked.ends), SUPPORT]
        self.outwards = [DOWN if end == LOWER else UP for _ in levels for end in asked.ends]

    def write(self, file: TableFile, output: Path, kept: list[str], digits: int, says: Output) -> Totals:
        """Go through the file once."""
        pa = need("pyarrow")
        clash = [name for name in kept if name in self.names]
        if clash:
            raise ValueError(f"{file.path} has columns {listed(clash)} already: rename them, or do not keep them")
        schema = pa.schema(
            [*(file.schema.field(name) for name in kept), *((name, pa.float64()) for name in self.names)]
        )
        limit = getattr(self.fitted, "support_limit", LITTLE_SUPPORT)
        totals = self.totals(Tally(self.columns), self.levels, self.asked, limit)
        groups = [] if self.asked.groups is None else [self.asked.groups]
        used = list(dict.fromkeys([*kept, *self.columns.features, *groups]))
        error = float(getattr(self.fitted, "residual_rms_", 0.0))
        rounding = Rounding(digits if output.suffix.lower() == ".csv" else options.MOST_DIGITS, error, self.outwards)
        with (
            table_writer(output, schema) as write,
            counted(f"predicting {file.path}", file.n_rows, shown=not says.as_json) as advance,
        ):
            for batch in file.batches(used):
                frame = self.columns.frame(batch, file, totals.rows + 1)
                center, ends, support = self._of(frame, self.asked.labels(batch, file, totals.rows + 1), file)
                totals.count(frame, center, ends, support)
                found = rounding.rounded(center, ends, support, self.asked)
                arrays = [batch.column(name) for name in kept] + [pa.array(values) for values in found]
                write(pa.record_batch(arrays, schema=schema))
                advance(len(frame))
        return totals

    def _of(self, frame: Any, labels: Any, file: TableFile) -> tuple[Array, list[Array], Array]:
        center, ends, band = self.quantiles.at(frame, labels, f"{file.path}: column {self.asked.groups!r}")
        return center, ends, np.full(len(frame), np.nan) if band.support is None else band.support


@dataclass
class Rounding:
    """Numbers of one file, all to the same decimals: by the error of the point model, or by the first intervals.

    Ends are rounded outwards, so that an observation at an end stays inside.
    """

    digits: int
    error: float
    outwards: list[float]  # DOWN or UP, of each end
    decimals: int | None = None

    def rounded(self, center: Array, ends: list[Array], support: Array, asked: Asked) -> list[Array]:
        """Prediction, the ends that were asked for, and support."""
        wanted = [k for k, end in enumerate((LOWER, UPPER)) if end in asked.ends]
        numbers = [center, *(each[:, k] for each in ends for k in wanted)]
        if self.digits >= options.MOST_DIGITS:
            return [*numbers, support]
        if self.decimals is None:
            distances = self.error if self.error > 0 else np.abs(np.array(numbers[1:]) - center)
            self.decimals = decimals_for(distances, self.digits, otherwise=np.abs(center))
        moved = [_rounded(each, self.decimals, way) for each, way in zip(numbers[1:], self.outwards, strict=True)]
        return [np.round(center, self.decimals), *moved, np.round(support, SUPPORT_DECIMALS)]


def _rounded(values: Array, decimals: int, way: float) -> Array:
    """To so many decimals, downwards or upwards."""
    nearest = np.round(values, decimals)
    return np.where(way * nearest < way * values, np.round(nearest + way * 10.0**-decimals, decimals), nearest)


class QuantileTotals(Totals):
    """What was seen of quantiles, which `levels` are the probabilities of."""

    def named(self) -> str:
        """What was written."""
        return f"quantiles {', '.join(f'{level:g}' for level in self.levels)}"

    def data(self) -> dict[str, Any]:
        """For programs: a list of each."""
        return {"quantiles": self.levels, "n_infinite": self.infinite.tolist(), "n_off_data": self.far}

    def report_infinite(self, says: Output) -> None:
        """Say which quantiles are."""
        for level, count in zip(self.levels, self.infinite.tolist(), strict=True):
            if count:
                words = share_of(count, self.rows, "quantile")
                says.note(f"{words} infinite at {level:g}: there are too few calibration rows")


class QuantilePrediction(Prediction):
    """The same for quantiles, each of which stands in place of the upper end of an interval."""

    totals = QuantileTotals

    def __init__(self, fitted: Any, columns: Columns, asked: Asked, levels: list[float]) -> None:
        refuse("--quantiles", hasattr(fitted, "copies_"), "places in the bands of several copies are not comparable")
        super().__init__(fitted, columns, Asked(BOTH, asked.groups), [])
        self.asked = Asked(UPPER, asked.groups)
        self.levels = levels
        self.names = [PREDICTION, *quantile_names(levels), SUPPORT]
        self.outwards = [DOWN if level <= HALF else UP for level in levels]

    def _of(self, frame: Any, labels: Any, file: TableFile) -> tuple[Array, list[Array], Array]:
        center, band = self.fitted._prediction_and_band(frame)
        known = self.quantiles.known(labels, f"{file.path}: column {self.asked.groups!r}")
        found = np.empty((len(self.levels), len(band)))
        for part in placed(self.fitted.calibration_, band, known, None):
            found[:, part.rows] = [part.places.quantiles(part.band, level, part.weights) for level in self.levels]
        ends = [np.stack([each, each], axis=1) for each in found]
        return center, ends, np.full(len(frame), np.nan) if band.support is None else band.support
