"""The columns that a model was learnt from: their names and kinds, and how new tables are brought into their form."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sosbands._extras import need
from sosbands._types import Array
from sosbands._words import listed, many
from sosbands.cli.output import Output
from sosbands.cli.table_files import TableFile
from sosbands.tables import TableEncoder
from sosbands.tables.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, Place, column_of_file, truth
from sosbands.tables.rows import NUMBERS

DATES_AS_NUMBERS = "count dates in a unit from some date, such as days since the first, and give spans of time in one"
RECORD = "columns_"  # attribute of a model that the command line has fitted


@dataclass(frozen=True)
class Columns:
    """Names and kinds of the features, in the order that the model wants."""

    kinds: dict[str, str]
    target: str | None = None  # of a model that the command line has fitted
    levels: dict[str, list[str]] = field(default_factory=dict)  # texts among the learning rows, but of identifiers

    @classmethod
    def of_model(cls, model: Any, path: Any) -> Columns:
        """Those recorded in a model; the names and numbers that a model from Python has learnt from."""
        record, reader = getattr(model, RECORD, None), getattr(model, "reader_", None)
        encoder = None
        if reader is not None and (record is not None or reader.model_sees_points):
            encoder = reader.preprocessor if isinstance(reader.preprocessor, TableEncoder) else None
        known = {} if encoder is None else encoder.levels_
        levels = {name: texts for name, texts in known.items() if encoder and name not in encoder.identifiers_}
        if record is not None:
            return cls(record["kinds"], record["target"], levels)
        names = getattr(model, "feature_names_in_", None)
        if names is not None and encoder is not None:
            return cls(encoder.kinds_, None, levels)
        if names is None or model.reader_.kind != NUMBERS:
            raise ValueError(
                f"{path} was not written by `sosbands fit` and does not say which columns it needs: fit it from a data "
                "frame and with the default point model, or use it in Python"
            )
        return cls(dict.fromkeys(map(str, names), NUMBER))

    def of_kind(self, *kinds: str) -> list[str]:
        """Names of the features of some kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def frame(self, table: Any, file: TableFile, first_row: int = 1) -> Any:
        """The features as a pandas data frame of floats and texts; one error for all columns that do not fit."""
        read = each_of(self.kinds, lambda name: self._values(name, table, file, first_row), file)
        return need("pandas").DataFrame(read)

    def _values(self, name: str, table: Any, file: TableFile, first_row: int) -> Any:
        pd = need("pandas")
        kind = self.kinds[name]
        column = cells_of(table, name, file, kind, first_row)
        if kind == NUMBER:
            return column.numbers(NUMBER)
        if kind == DATE:
            since_1970 = column.numbers(DATE)
            from_python = self.target is None  # a model that has learnt from dates, not from days
            return pd.to_datetime(since_1970, unit="D") if from_python else since_1970
        levels, codes = column.texts()
        if kind == BOOLEAN:
            wrong = [text for text in levels if text and truth(text) is None]
            if wrong:
                position, text = column.first(wrong)
                raise column.error(f"{text!r} is neither true nor false", position)
            levels = [text.lower() for text in levels]
        return pd.Series(np.array(levels, dtype=object)[codes], dtype=object)

    def with_target(self, table: Any, file: TableFile, y: Array) -> tuple[Any, Array]:
        """The rows of a table that have a target: features as a data frame, and the target."""
        frame, known = self.frame(table, file), ~np.isnan(y)
        return (frame, y) if known.all() else (frame[known].reset_index(drop=True), y[known])


def learn_columns(
    file: TableFile,
    target: str,
    drop: Sequence[str] = (),
    as_category: Sequence[str] = (),
    dropping: Output | None = None,
) -> tuple[Columns, Any, Array]:
    """Kinds of all columns but the target and those left out; the features as a data frame; the target.

    Rows without a target are an error, or dropped if `dropping` says where to tell how many.
    """
    for name in (target, *drop, *as_category):
        check_column(file, name)
    if target in drop or target in as_category:
        raise ValueError(f"column {target!r} is the target: expected other names for --drop and --category")
    features = [name for name in file.names if name != target and name not in drop]
    if not features:
        raise ValueError(f"{file.path} has no column left to learn from besides the target {target!r}")
    table = file.read([*features, target])
    y = read_target(table, target, file, dropping)
    kinds = each_of(
        features, lambda name: CATEGORY if name in as_category else kind_of(cells_of(table, name, file)), file
    )
    columns = Columns(kinds, target)
    return columns, *columns.with_target(table, file, y)


def each_of(names: Iterable[str], read: Callable[[str], Any], file: TableFile) -> dict[str, Any]:
    """What is read of each column; one error for all that cannot be, a line for each."""
    found, problems = {}, []
    for name in names:
        try:
            found[name] = read(name)
        except ValueError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        told = "\n".join(f"  {str(error).removeprefix(f'{file.path}: ')}" for error in problems)
        raise ValueError(f"{file.path}: {len(problems)} columns cannot be read\n{told}")
    return found


def cells_of(table: Any, name: str, file: TableFile, kind: str | None = None, first_row: int = 1) -> Column:
    """A column of a table that was read from a file, from some row on; the first one after the header is 1."""
    ending = "" if kind else "; leave it out with --drop"
    place = Place(str(file.path), first_row, remedy="use --category or --drop", ending=ending)
    return column_of_file(table.column(name), name, place, kind)


def kind_of(column: Column) -> str:
    """The kind of a column, decided by all of its cells."""
    if column.is_empty:
        raise column.error("every cell is missing; leave the column out with --drop")
    return column.decided()


def read_target(table: Any, name: str, file: TableFile, dropping: Output | None = None) -> Array:
    """The target: a finite number in every row, or NaN in those to be dropped."""
    try:
        column = cells_of(table, name, file, NUMBER)
        values = column.numbers(NUMBER)
    except ValueError as error:
        try:  # dates or spans of time, also as texts
            times = need("pyarrow.types").is_temporal(table[name].type) or cells_of(table, name, file).decided() == DATE
        except ValueError:
            times = False
        advice = f"; {DATES_AS_NUMBERS}" if times else ""
        raise ValueError(f"{error} (the target must be numbers{advice})") from error
    missing = np.flatnonzero(np.isnan(values))
    if len(missing) == len(values):
        raise column.error("the target is missing in every row")
    if len(missing):
        number = f"{len(missing)} of {many(len(values), 'row')}"
        if dropping is None:
            problem = f"the target is missing, in {number} in all; correct them, or leave them out with"
            raise column.error(f"{problem} --drop-missing-target", int(missing[0]))
        dropping.note(f"{number} left out, as their target {name!r} is missing")
    return values


def check_column(file: TableFile, name: str) -> None:
    """An error with the nearest name if there is no such column."""
    if name not in file.names:
        near = difflib.get_close_matches(name, file.names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {listed(file.names)}"
        raise ValueError(f"{file.path} has no column {name!r}: {hint}")


@dataclass
class Tally:
    """What had to be made up for in the rows read so far."""

    columns: Columns
    missing: Counter[str] = field(default_factory=Counter)
    unseen: dict[str, Counter[str]] = field(default_factory=dict)

    def count(self, frame: Any) -> Tally:
        """Count missing numbers, and texts that the learning rows do not have, in further rows."""
        for name in self.columns.of_kind(NUMBER, DATE, BOOLEAN):
            cells = frame[name]
            self.missing[name] += int((cells.isna() | (cells == "")).sum())
        for name, texts in self.columns.levels.items():
            known, found = set(texts), frame[name].value_counts()
            new = {text: int(count) for text, count in found.items() if text not in known}
            self.unseen.setdefault(name, Counter()).update(new)
        return self

    def report(self, output: Output) -> None:
        """Say it."""
        gaps = {name: count for name, count in self.missing.items() if count}
        if gaps:
            shown = ", ".join(f"{count} in {name!r}" for name, count in gaps.items())
            output.note(f"missing values were filled with the median of the learning rows: {shown}")
        for name, texts in self.unseen.items():
            if texts:
                shown = listed([text or "(missing)" for text in texts], 5)
                output.note(
                    f"texts in {name!r} that no learning row has count as rare or unknown: {shown}, in "
                    f"{many(sum(texts.values()), 'row')}"
                )
