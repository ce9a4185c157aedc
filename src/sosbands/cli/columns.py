"""The columns that a model was learnt from: their names and kinds, and how new tables are brought into their form."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands._words import many
from sosbands.cli.cells import Place, booleans, categories, days, kind_of, numbers
from sosbands.cli.extras import need
from sosbands.cli.output import Output, listed
from sosbands.cli.table_files import TableFile
from sosbands.tables import TableEncoder
from sosbands.tables.kinds import BOOLEAN, CATEGORY, DATE, KINDS, NUMBER

DATES_AS_NUMBERS = "count dates in a unit from some date, such as days since the first, and give spans of time in one"
RECORD = "columns_"  # attribute of a model that the command line has fitted


@dataclass(frozen=True)
class Columns:
    """Names and kinds of the features, in the order that the model wants.

    Attributes
    ----------
    kinds : dict of str to str
        "number", "category", "boolean" or "date" for each feature.
    target : str or None
        None for a model that was not fitted by the command line.
    levels : dict of str to list of str
        Texts of each category among the learning rows, but for columns of identifiers.
    """

    kinds: dict[str, str]
    target: str | None = None
    levels: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of_model(cls, model: Any, path: Any) -> Columns:
        """Those recorded in a model; the names and numbers that a model from Python has learnt from."""
        record, encoder = getattr(model, RECORD, None), _encoder_of(model)
        if record is not None:
            return cls(record["kinds"], record["target"], _levels(encoder))
        names = getattr(model, "feature_names_in_", None)
        if names is not None and encoder is not None:
            return cls(encoder.kinds_, None, _levels(encoder))
        if names is None or not getattr(model, "reads_numbers_", False):
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
        place, kind, column = Place(file.path, name, first_row), self.kinds[name], table.column(name)
        if kind == NUMBER:
            return numbers(column, place)
        if kind == DATE:
            since_1970 = days(column, place)
            from_python = self.target is None  # a model that has learnt from dates, not from days
            return pd.to_datetime(since_1970, unit="D") if from_python else since_1970
        return pd.Series(booleans(column, place) if kind == BOOLEAN else categories(column), dtype=object)

    def read(self, file: TableFile, target: str | None = None, dropping: Output | None = None) -> tuple[Any, Array]:
        """All rows: features as a data frame, and the target as finite numbers; `dropping` as in `learn_columns`."""
        target = target or self.target
        assert target is not None
        check_column(file, target)
        table = file.read([*self.features, *([] if target in self.kinds else [target])])
        y = read_target(table.column(target), Place(file.path, target), dropping)
        return with_target(self.frame(table, file), y)


def _encoder_of(model: Any) -> TableEncoder | None:
    """What makes numbers of the columns of a model, if that is known."""
    kept = hasattr(model, RECORD) or getattr(model, "model_sees_points_", False)
    found = getattr(model, "preprocessor_", None) if kept else None
    found = getattr(model, "table_encoder_", None) if found is None else found
    return found if isinstance(found, TableEncoder) else None


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
    y = read_target(table.column(target), Place(file.path, target), dropping)
    kinds: dict[str, str] = {}
    problems = []
    for name in features:
        try:
            kinds[name] = CATEGORY if name in as_category else kind_of(table.column(name), Place(file.path, name))
        except ValueError as error:
            problems.append(error)
    raise_all(problems, file)
    columns = Columns(kinds, target)
    return columns, *with_target(columns.frame(table, file), y)


def raise_all(problems: Sequence[ValueError], file: TableFile) -> None:
    """One error for several columns, a line for each."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        told = "\n".join(f"  {str(error).removeprefix(f'{file.path}: ')}" for error in problems)
        raise ValueError(f"{file.path}: {len(problems)} columns cannot be read\n{told}")


def with_target(frame: Any, y: Array) -> tuple[Any, Array]:
    """The rows that have a target."""
    known = ~np.isnan(y)
    return (frame, y) if known.all() else (frame[known].reset_index(drop=True), y[known])


def read_target(column: Any, place: Place, dropping: Output | None = None) -> Array:
    """The target: a finite number in every row, or NaN in those to be dropped."""
    try:
        values = numbers(column, place)
    except ValueError as error:
        advice = f"; {DATES_AS_NUMBERS}" if _holds_times(column, place) else ""
        raise ValueError(f"{error} (the target must be numbers{advice})") from error
    missing = np.flatnonzero(np.isnan(values))
    if len(missing) == len(values):
        raise place.error("the target is missing in every row")
    if len(missing) and dropping is None:
        number = f"{len(missing)} of {many(len(values), 'row')}"
        raise place.error(
            f"the target is missing, in {number} in all; correct them, or leave them out with --drop-missing-target",
            int(missing[0]),
        )
    if len(missing) and dropping is not None:
        dropping.note(
            f"{len(missing)} of {many(len(values), 'row')} left out, as their target {place.column!r} is missing"
        )
    return values


def _holds_times(column: Any, place: Place) -> bool:
    """Whether a column is one of dates or spans of time, also as texts."""
    try:
        return bool(need("pyarrow.types").is_temporal(column.type)) or kind_of(column, place) == DATE
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
