"""``sosbands predict`` and ``export``: intervals for the rows of a table, read and written in pieces, or elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sosbands._extras import need
from sosbands._files import check_place
from sosbands._types import Array
from sosbands._words import listed, many, share_of
from sosbands.cli import options
from sosbands.cli.columns import Tally, check_column
from sosbands.cli.opened import BOTH, LOWER, Opened
from sosbands.cli.options import flag, option
from sosbands.cli.output import Output, counted, decimals_for, percent
from sosbands.cli.table_files import check_suffix, table_writer
from sosbands.conformal.asked import SIDES
from sosbands.conformal.asked import Asked as Wanted
from sosbands.conformal.distribution import HALF
from sosbands.conformal.mixin import interval_names, quantile_names
from sosbands.exceptions import LITTLE_SUPPORT

PREDICTION, SUPPORT = "prediction", "support"
SUPPORT_DECIMALS = 4
DOWN, UP = -1.0, 1.0  # how an end is rounded


def predict(
    model: Path = options.MODEL_PATH,
    data: Path = options.DATA_PATH,
    output: Path = option(..., "OUT", "CSV or Parquet file to write.", "-o", "--output"),
    confidence_level: list[str] = options.LEVELS,
    side: str | None = options.NEW_SIDE,
    quantiles: list[str] = option(
        options.SEVERAL,
        "Q",
        "Quantiles instead of intervals, such as 0.05,0.5,0.95: columns quantile_5, quantile_50, quantile_95.",
        callback=options.read_levels,
    ),
    groups: str | None = options.NEW_GROUPS,
    ids: list[str] = option(options.SEVERAL, "COLUMN", "Column of DATA to write first. May be repeated.", "--id"),
    keep_columns: bool = flag("--keep-columns", "Write the columns of DATA, too."),
    digits: int = option(
        6,
        "N",
        "Digits of the typical error in CSV files, by which all numbers are rounded; "
        f"{options.MOST_DIGITS}: no rounding. Parquet files hold numbers as they are.",
        parser=options.whole_number(1, options.MOST_DIGITS),
    ),
    trust: list[str] = options.TRUST,
    json: bool = options.JSON,
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
    check_suffix(output, "output")
    check_place(output, "output", apart_from=[data, model])
    opened = Opened.of(says, model, trust, data, side=side, groups=groups)
    for name in ids:
        check_column(opened.file, name)
    kept = list(dict.fromkeys([*ids, *(opened.file.names if keep_columns else [])]))
    opened.check(kept=kept, needs_target=False)
    clock = time.perf_counter()
    with says.listening():
        levels = sorted(map(float, quantiles)) or list(map(float, confidence_level or [opened.fitted.confidence_level]))
        found = Prediction(opened, levels, quantiles=bool(quantiles))
        found.write(output, kept, digits)
    found.report()
    seconds = time.perf_counter() - clock
    named, data_of = found.told()
    words = f"{many(found.rows, 'row')} with {named} written to {output} in {seconds:.1f} s"
    says.result(words, {"output": str(output), "rows": found.rows, **data_of, "seconds": seconds})


class Prediction:
    """Intervals of the rows of a table at some levels, or quantiles, and what was seen in all batches."""

    def __init__(self, opened: Opened, levels: list[float], *, quantiles: bool) -> None:
        self.opened, self.levels, self.asked, self.quantiles = opened, levels, opened.asked, quantiles
        if quantiles:
            opened.fitted.calibration_.check_offers("--quantiles")
            names, self.outwards = quantile_names(levels), [DOWN if level <= HALF else UP for level in levels]
        else:
            names = interval_names(levels, len(levels) > 1, self.asked.ends)
            self.outwards = [DOWN if end == LOWER else UP for _ in levels for end in self.asked.ends]
        self.names = [PREDICTION, *names, SUPPORT]
        self.limit = getattr(opened.fitted, "support_limit", LITTLE_SUPPORT)
        self.tally = Tally(opened.columns)
        self.rows = self.far = 0
        self.width = np.zeros(len(levels))
        self.empty, self.infinite = (np.zeros(len(levels), dtype=int) for _ in range(2))

    def write(self, output: Path, kept: list[str], digits: int) -> None:
        """Go through the file once."""
        pa, file = need("pyarrow"), self.opened.file
        clash = [name for name in kept if name in self.names]
        if clash:
            raise ValueError(f"{file.path} has columns {listed(clash)} already: rename them, or do not keep them")
        numbers = [(name, pa.float64()) for name in self.names]
        schema = pa.schema([*(file.schema.field(name) for name in kept), *numbers])
        groups = [] if self.asked.groups is None else [self.asked.groups]
        used = list(dict.fromkeys([*kept, *self.opened.columns.kinds, *groups]))
        error = float(getattr(self.opened.fitted, "residual_rms_", 0.0))
        rounding = Rounding(digits if output.suffix.lower() == ".csv" else options.MOST_DIGITS, error, self.outwards)
        label, shown = f"predicting {file.path}", not self.opened.says.as_json
        with table_writer(output, schema) as write, counted(label, file.n_rows, shown=shown) as advance:
            for batch in file.batches(used):
                frame = self.opened.columns.frame(batch, file, self.rows + 1)
                center, ends, support = self.of(frame, self.opened.labels(batch, self.rows + 1))
                support = np.full(len(frame), np.nan) if support is None else support
                self.tally.count(frame)
                self.far += int(np.count_nonzero(support < self.limit))
                self.rows += len(frame)
                found = rounding.rounded(center, ends, support)
                arrays = [batch.column(name) for name in kept] + [pa.array(values) for values in found]
                write(pa.record_batch(arrays, schema=schema))
                advance(len(frame))

    def of(self, frame: Any, labels: Any) -> tuple[Any, list[Array], Array | None]:
        """Prediction, the ends level by level or the quantiles, and support."""
        if self.quantiles:
            told = self.opened.fitted.told(frame)
            columns = np.empty((len(self.levels), len(told)))
            for part in self.opened.fitted.calibration_.distribution(told, Wanted(groups=labels)):
                columns[:, part.rows] = [part.places.quantiles(part.band, level, part.weights) for level in self.levels]
            self.infinite += np.count_nonzero(np.isinf(columns), axis=1)
            return told.prediction, list(columns), told.band.support
        found = self.opened.intervals(frame, labels, self.levels)
        widths = self.asked.width(found)
        self.width += np.ascontiguousarray(widths.T).sum(axis=1)  # the same sum however many levels
        self.empty += np.count_nonzero(widths == 0, axis=0) if self.asked.side == BOTH else 0
        self.infinite += np.count_nonzero(np.isinf(widths), axis=0)
        ends = [getattr(found, end)[:, k] for k in range(len(self.levels)) for end in self.asked.ends]
        return found.prediction, ends, found.support

    def told(self) -> tuple[str, dict[str, Any]]:
        """What was written, in words and for programs: numbers for one level, lists for several."""
        empty, infinite = self.empty.tolist(), self.infinite.tolist()
        if self.quantiles:
            words = f"quantiles {', '.join(f'{level:g}' for level in self.levels)}"
            return words, {"quantiles": self.levels, "n_infinite": infinite, "n_off_data": self.far}
        mean = self.width / self.rows if self.rows else np.full(len(self.levels), np.nan)
        each = {
            "confidence_level": self.levels,
            "mean_width" if self.asked.side == BOTH else "mean_reach": mean.tolist(),
            "n_empty": empty,
            "n_infinite": infinite,
        }
        found = {name: values[0] if len(self.levels) == 1 else values for name, values in each.items()}
        ends = "intervals" if self.asked.side == BOTH else f"{self.asked.side} ends"
        words = f"{' and '.join(percent(level) for level in self.levels)} {ends}"
        return words, {"side": self.asked.side, **found, "n_off_data": self.far}

    def report(self) -> None:
        """Say what users should know of: gaps, rows off the data, infinite and empty intervals."""
        note, few = self.opened.says.note, "there are too few calibration rows"
        self.tally.report(self.opened.says)
        if not self.rows:
            note("the file has no rows: only the names of the columns were written")
        if self.far:
            note(
                f"{share_of(self.far, self.rows, 'row')} far from the learning rows (support below {self.limit:g}): "
                "there the learning rows say nothing about the noise"
            )
        for level, empty, infinite in zip(self.levels, self.empty.tolist(), self.infinite.tolist(), strict=True):
            if infinite and self.quantiles:
                note(f"{share_of(infinite, self.rows, 'quantile')} infinite at {level:g}: {few}")
            elif infinite and self.asked.groups is not None:
                note(f"{share_of(infinite, self.rows, 'interval')} infinite at {percent(level)}: {few} in the group")
            if empty:
                note(
                    f"{share_of(empty, self.rows, 'interval')} empty at {percent(level)}: both ends are their midpoint"
                )


@dataclass
class Rounding:
    """Numbers of one file, all to the same decimals: by the error of the point model, or by the first intervals.

    Ends are rounded outwards, so that an observation at an end stays inside.
    """

    digits: int
    error: float
    outwards: list[float]  # DOWN or UP, of each end
    decimals: int | None = None

    def rounded(self, center: Array, ends: list[Array], support: Array) -> list[Array]:
        """Prediction, ends and support."""
        if self.digits >= options.MOST_DIGITS:
            return [center, *ends, support]
        if self.decimals is None:
            distances = self.error if self.error > 0 else np.abs(np.array(ends) - center)
            self.decimals = decimals_for(distances, self.digits, otherwise=np.abs(center))
        moved = []
        for values, way in zip(ends, self.outwards, strict=True):
            near = np.round(values, self.decimals)
            outer = np.round(near + way * 10.0**-self.decimals, self.decimals)
            moved.append(np.where(way * near < way * values, outer, near))
        return [np.round(center, self.decimals), *moved, np.round(support, SUPPORT_DECIMALS)]


def export(
    model: Path = options.MODEL_PATH,
    output: Path = option(..., "OUT", "File to write: .onnx, or .npz for NumPy alone.", "-o", "--output"),
    levels: list[str] = option(
        options.SEVERAL,
        "LEVEL",
        "Levels of the intervals in the file, with commas or by repeating the option; by default that of the model.",
        "--levels",
        "--confidence-level",
        callback=options.read_levels,
    ),
    bands_only: bool = flag(
        "--bands-only", "Leave the point model out: its prediction becomes an input, its spread where needed."
    ),
    trust: list[str] = options.TRUST,
    json: bool = options.JSON,
) -> None:
    """Write a model as an ONNX graph, or as a file for NumPy alone, that gives prediction, lower and upper ends.

    The file is checked against the model on random rows first; one that differs is not written.

    \b
    Example:
      sosbands export price.model -o price.onnx --levels 0.8,0.95
    """  # noqa: D301
    from sosbands.serving import export_numpy, export_onnx  # here, because `predict` needs no graphs

    says = Output(json)
    writers = {".onnx": export_onnx, ".npz": export_numpy}
    writer = writers[check_suffix(output, "output", list(writers))]
    check_place(output, "output", apart_from=[model])
    opened = Opened.of(says, model, trust)
    fitted = opened.one_sided()
    chosen = [float(level) for level in levels] or [float(fitted.confidence_level)]
    with says.listening():
        writer(fitted, output, chosen, lower_share=SIDES[opened.asked.side], bands_only=bands_only)
    size = output.stat().st_size
    named = " and ".join(percent(level) for level in chosen)
    says.result(
        f"{named} intervals exported to {output} ({size / 1e6:.2f} MB)",
        {"output": str(output), "confidence_level": chosen, "bytes": size},
    )
