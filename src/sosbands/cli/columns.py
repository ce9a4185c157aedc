"""The columns that a model was learnt from: their names and kinds, and how new tables are brought into their form."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sosbands._extras import need
from sosbands._types import Array
from sosbands._words import listed, many
from sosbands.cli.output import Output
from sosbands.cli.table_files import TableFile
from sosbands.tables import TableEncoder
from sosbands.tables.columns import BOOLEAN, CATEGORY, DATE, KINDS, NUMBER, Column, Place, column_of_file, truth
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
        record, encoder = getattr(model, RECORD, None), _encoder_of(model)
        if record is not None:
            return cls(record["kinds"], record["target"], _levels(encoder))
        names = getattr(model, "feature_names_in_", None)
        if names is not None and encoder is not None:
            return cls(encoder.kinds_, None, _levels(encoder))
        if names is None or model.reader_.kind != NUMBERS:
            raise ValueError(
                f"{path} was not written by `sosbands fit` and does not say which columns it needs: fit it from a data "
                "frame and with the default point model, or use it in Python"
            )
        return cls(dict.fromkeys(map(str, names), NUMBER))

    def keep_in(self, model: Any) -> Columns:
        """Keep names and kinds in a fitted model, which knows its texts."""
        setattr(model, RECORD, {"kinds": self.kinds, "target": self.target})
        return Columns(self.kinds, self.target, _levels(_encoder_of(model)))

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return list(self.kinds)

    def of_kind(self, *kinds: str) -> list[str]:
        """Names of the features of some kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def check(self, file: TableFile, output: Output, also_used: Sequence[str] = ()) -> None:
        """Complain about missing columns, and mention those that are not used, by the model or otherwise."""
        missing = [name for name in self.features if name not in file.names]
        if missing:
            raise ValueError(
                f"{file.path} lacks the columns {listed(missing)} that the model was learnt from (it has "
                f"{listed(file.names)})"
            )
        used = {*self.kinds, *also_used, self.target}
        unused = [name for name in file.names if name not in used]
        if unused:
            output.note(f"columns of {file.path} that the model does not use: {listed(unused)}")

    def frame(self, table: Any, file: TableFile, first_row: int = 1) -> Any:
        """The features as a pandas data frame of floats and texts; one error for all columns that do not fit."""
        pd = need("pandas")
        found, problems = {}, []
        for name in self.features:
            try:
                found[name] = self._values(name, table, file, first_row)
            except ValueError as error:
                problems.append(error)
        raise_all(problems, file)
        return pd.DataFrame(found)

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

    def read(self, file: TableFile, target: str | None = None, dropping: Output | None = None) -> tuple[Any, Array]:
        """All rows: features as a data frame, and the target as finite numbers; `dropping` as in `learn_columns`."""
        target = target or self.target
        assert target is not None
        check_column(file, target)
        table = file.read([*self.features, *([] if target in self.kinds else [target])])
        return self.with_target(table, file, read_target(table, target, file, dropping))

    def with_target(self, table: Any, file: TableFile, y: Array) -> tuple[Any, Array]:
        """The rows of a table that have a target."""
        frame, known = self.frame(table, file), ~np.isnan(y)
        return (frame, y) if known.all() else (frame[known].reset_index(drop=True), y[known])


def _encoder_of(model: Any) -> TableEncoder | None:
    """What makes numbers of the columns of a model, if that is known."""
    reader = getattr(model, "reader_", None)
    if reader is None or not (hasattr(model, RECORD) or reader.model_sees_points):
        return None
    return reader.preprocessor if isinstance(reader.preprocessor, TableEncoder) else None


def _levels(encoder: TableEncoder | None) -> dict[str, list[str]]:
    known = {} if encoder is None else encoder.levels_
    return {name: texts for name, texts in known.items() if encoder and name not in encoder.identifiers_}


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
    kinds: dict[str, str] = {}
    problems = []
    for name in features:
        try:
            kinds[name] = CATEGORY if name in as_category else kind_of(cells_of(table, name, file))
        except ValueError as error:
            problems.append(error)
    raise_all(problems, file)
    columns = Columns(kinds, target)
    return columns, *columns.with_target(table, file, y)


def raise_all(problems: Sequence[ValueError], file: TableFile) -> None:
    """One error for several columns, a line for each."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        told = "\n".join(f"  {str(error).removeprefix(f'{file.path}: ')}" for error in problems)
        raise ValueError(f"{file.path}: {len(problems)} columns cannot be read\n{told}")


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
        advice = f"; {DATES_AS_NUMBERS}" if _holds_times(table, name, file) else ""
        raise ValueError(f"{error} (the target must be numbers{advice})") from error
    missing = np.flatnonzero(np.isnan(values))
    if len(missing) == len(values):
        raise column.error("the target is missing in every row")
    if len(missing) and dropping is None:
        number = f"{len(missing)} of {many(len(values), 'row')}"
        raise column.error(
            f"the target is missing, in {number} in all; correct them, or leave them out with --drop-missing-target",
            int(missing[0]),
        )
    if len(missing) and dropping is not None:
        dropping.note(f"{len(missing)} of {many(len(values), 'row')} left out, as their target {name!r} is missing")
    return values


def _holds_times(table: Any, name: str, file: TableFile) -> bool:
    """Whether a column is one of dates or spans of time, also as texts."""
    try:
        return need("pyarrow.types").is_temporal(table[name].type) or cells_of(table, name, file).decided() == DATE
    except ValueError:
        return False


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

    def __post_init__(self) -> None:
        self._known = {name: set(texts) for name, texts in self.columns.levels.items()}

    def count(self, frame: Any) -> None:
        """Count missing numbers, and texts that the learning rows do not have."""
        for name in self.columns.of_kind(NUMBER, DATE, BOOLEAN):
            cells = frame[name]
            self.missing[name] += int((cells.isna() | (cells == "")).sum())
        for name, known in self._known.items():
            found = frame[name].value_counts()
            new = {text: int(count) for text, count in found.items() if text not in known}
            self.unseen.setdefault(name, Counter()).update(new)

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


def kinds_in_words(columns: Columns) -> str:
    """Such as "8 columns: 6 numbers, 2 categories"."""
    counts = [(kind, len(columns.of_kind(kind))) for kind in KINDS]
    shown = ", ".join(many(count, kind) for kind, count in counts if count).replace("categorys", "categories")
    return f"{many(len(columns.kinds), 'column')}: {shown}"


def report_gaps(columns: Columns, frame: Any, output: Output) -> None:
    """Say what had to be made up for in rows that were read at once."""
    tally = Tally(columns)
    tally.count(frame)
    tally.report(output)
