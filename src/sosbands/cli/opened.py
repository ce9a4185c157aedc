"""A model of a file beside a table: what `fit` has recorded in it, and which intervals are asked of which rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sosbands import load
from sosbands._types import Array
from sosbands._words import listed
from sosbands.cli.app import command_with
from sosbands.cli.columns import Columns, Tally, check_column, read_target
from sosbands.cli.estimators import importable_here
from sosbands.cli.output import Output, Step
from sosbands.cli.table_files import open_table
from sosbands.conformal import Band, Calibration
from sosbands.conformal.asked import SIDES, Intervals, calibration_of
from sosbands.conformal.asked import Asked as Wanted
from sosbands.exceptions import (
    CrossedIntervalsWarning,
    OffDataWarning,
    TooFewCalibrationPointsWarning,
    UntrustedTypesError,
)
from sosbands.tables.columns import CATEGORY, text_of

BOTH, LOWER, UPPER = SIDES
ASKED, SPLIT = "asked_", "split_calibration_"  # attributes of a model that the command line has fitted
NO_LABEL = "(missing)"
MOST_GROUPS = 100  # of one table


@dataclass(frozen=True)
class Asked:
    """What `fit` was told about intervals, and later commands go by."""

    side: str = BOTH  # the ends that intervals have
    groups: str | None = None  # column of the groups

    @classmethod
    def of_model(cls, model: Any) -> Asked:
        """What a model has recorded."""
        return cls(**getattr(model, ASKED, {}))

    @property
    def ends(self) -> tuple[str, ...]:
        """Names of the ends."""
        return (LOWER, UPPER) if self.side == BOTH else (self.side,)

    def width(self, found: Intervals) -> Array:
        """Width of each interval, shape (n, k); of one end its distance from the prediction."""
        with np.errstate(invalid="ignore"):  # between two infinite ends
            if self.side == BOTH:
                return found.width
            center = np.asarray(found.prediction)[:, None]
            return np.asarray(found.upper - center if self.side == UPPER else center - found.lower)


@dataclass(eq=False)
class Opened:
    """A model of a file, what is asked of it, and a table."""

    path: Path  # of the model
    fitted: Any
    asked: Asked
    says: Output
    file: Any = None
    target: str | None = None  # column of the truth in the table, once `check` has looked

    @classmethod
    def of(
        cls,
        says: Output,
        path: Path,
        trust: Sequence[str],
        data: Path | None = None,
        *,
        side: str | None = None,
        groups: str | None = None,
    ) -> Opened:
        """Look at the table, then read the model; side and groups are those of `fit`, unless said otherwise now."""
        file = None if data is None else open_table(data)
        if trust:
            importable_here()  # where a regressor of the user's may be defined
        try:
            fitted = load(path, trusted=list(trust))
        except UntrustedTypesError as error:
            command = command_with(" ".join(f"--trust {name}" for name in error.types))
            found = f"{path} holds {', '.join(error.types)}, and reading it could run code"
            raise UntrustedTypesError(
                f"{found}. If you know where the file comes from, type\n  {command}", error.types
            ) from error
        except FileNotFoundError as error:
            raise ValueError(f"model {path}: no such file") from error
        recorded = Asked.of_model(fitted)
        return cls(path, fitted, Asked(side or recorded.side, groups or recorded.groups), says, file)

    @cached_property
    def columns(self) -> Columns:
        """Names and kinds of the features."""
        return Columns.of_model(self.fitted, self.path)

    @cached_property
    def _labels(self) -> dict[str, Any]:
        """Labels of the groups of the calibration, by the texts that tables have."""
        groups = calibration_of(self.fitted).groups
        return {} if groups is None else {text_of(label): label for label in np.unique(groups).tolist()}

    def check(
        self, target: str | None = None, *, kept: Sequence[str] = (), needs_target: bool = True, grouped: bool = True
    ) -> None:
        """Complain about a table that is not for this model, before rows are read; `grouped`: its groups are those.

        Columns of the table that neither the model nor `kept` use are noted.
        """
        groups = self.asked.groups
        if grouped and self._labels and groups is None:
            raise ValueError(
                f"{self.path} was calibrated by groups and does not say in which column they are: give --groups"
            )
        if grouped and groups is not None and not self._labels:
            raise ValueError(f"--groups {groups}: {self.path} was calibrated without groups; fit it with --groups")
        if groups is not None:
            check_column(self.file, groups)
        self.target = target or self.columns.target
        if needs_target and self.target is None:
            raise ValueError(f"{self.path} does not say what it predicts: give --target")
        names, columns = self.file.names, self.columns
        missing = [name for name in columns.kinds if name not in names]
        if missing:
            lacking = f"{self.file.path} lacks the columns {listed(missing)} that the model was learnt from"
            raise ValueError(f"{lacking} (it has {listed(names)})")
        unused = [name for name in names if name not in {*columns.kinds, columns.target, *kept, self.target, groups}]
        if unused:
            self.says.note(f"columns of {self.file.path} that the model does not use: {listed(unused)}")

    def rows(self, step: Step, *, drop: bool, by: str | None = None) -> tuple[Any, Array, Any, Any]:
        """Features, target, labels, and texts of the column `by`, all of the same rows.

        What had to be made up for in the features is noted.
        """
        step(f"reading {self.file.path}")
        groups, dropping = self.asked.groups, self.says if drop else None
        also = {name: CATEGORY for name in (groups, by) if name is not None and name not in self.columns.kinds}
        every = replace(self.columns, kinds={**self.columns.kinds, **also})
        target = str(self.target)  # `check` has seen to it
        check_column(self.file, target)
        table = self.file.read([*every.kinds, *([] if target in every.kinds else [target])])
        frame, y = every.with_target(table, self.file, read_target(table, target, self.file, dropping))
        labels = None if groups is None else self.known(labels_of(frame[groups]))
        texts = None if by is None else labels_of(frame[by])
        frame = frame[list(self.columns.kinds)]
        Tally(self.columns).count(frame).report(self.says)
        return frame, y, labels, texts

    def labels(self, table: Any, first_row: int) -> Any:
        """Labels of the rows of a table that was read, None without groups."""
        groups = self.asked.groups
        if groups is None:
            return None
        return self.known(labels_of(Columns({groups: CATEGORY}).frame(table, self.file, first_row)[groups]))

    def known(self, labels: Any) -> Any:
        """Labels in the form in which the model knows them; those of a model without groups as they are."""
        if not self._labels:
            return labels
        unknown = sorted(set(labels.tolist()) - set(self._labels))
        if unknown:
            raise ValueError(
                f"{self.file.path}: column {self.asked.groups!r} holds {listed(unknown)}, of which no calibration row "
                f"is: expected {listed(list(self._labels))}"
            )
        return np.array([self._labels[label] for label in labels.tolist()])

    def intervals(self, frame: Any, labels: Any, levels: Sequence[float]) -> Intervals:
        """The intervals, with a warning where they are infinite whatever the group; commands tell of the rest."""
        told = [CrossedIntervalsWarning, OffDataWarning, *([] if labels is None else [TooFewCalibrationPointsWarning])]
        with warnings.catch_warnings():
            for each in told:
                warnings.simplefilter("ignore", each)
            found: Intervals = self.fitted.intervals(frame, list(levels), side=self.asked.side, groups=labels)
        return found

    def one_sided(self) -> Any:
        """The model, with the calibration that one end takes if it was made for one."""
        if self.asked.side != BOTH:
            self.fitted.set_params(calibration="asymmetric")  # which both kinds of calibration have the scores for
        return self.fitted


def labels_of(column: Any) -> Any:
    """Texts of a column of a data frame, a word where there is none."""
    return np.array([text_of(cell) or NO_LABEL for cell in column.tolist()])


def check_groups(by: str | None, texts: Any) -> None:
    """Complain about a column, such as one of measurements, that has hardly two rows in a group."""
    different = [] if texts is None else sorted(set(texts.tolist()))
    if len(different) > MOST_GROUPS:
        held = f"{len(different)} different values, {listed(different, 3)}"
        raise ValueError(f"--by {by}: the column holds {held}: expected at most {MOST_GROUPS} groups")


def record_split(fitted: Any, X: Any, y: Any, labels: Any) -> None:
    """Keep the errors of the point model at the calibration rows, if these were held back, in the fitted model."""
    held = fitted.calibration_rows_
    if not len(held) or np.isin(held, fitted.learning_rows_).any():
        return
    setattr(fitted, SPLIT, _errors(fitted, X.iloc[held], y[held], None if labels is None else labels[held]))


def _errors(fitted: Any, X: Any, y: Any, labels: Any) -> Calibration:
    center = fitted.predict(X)
    return Calibration.of(Band(center, center), y, labels)


def update_split(
    fitted: Any, X: Any, y: Any, labels: Any, *, window: int | None, decay: float | None, replace: bool
) -> None:
    """Give the record, if there is one, the same new rows as the calibration."""
    old, fading = getattr(fitted, SPLIT, None), {"window": window, "decay": decay}
    if old is not None:
        new: Any = _errors(fitted, X, y, labels)
        setattr(fitted, SPLIT, new.faded(**fading) if replace else old.extended(new, **fading))


def split_width(fitted: Any, side: str, level: float, labels: Any) -> float:
    """Mean width over rows with these labels; NaN for a model that has no record."""
    calibration = getattr(fitted, SPLIT, None)
    if calibration is None:
        return np.nan
    wanted = Wanted.of(fitted, level, side)
    sides = {BOTH: slice(0, 2), LOWER: slice(0, 1), UPPER: slice(1, 2)}[side]
    q = calibration.quantiles(level, wanted.kind, wanted.lower_share, groups=labels)
    return float(q[:, sides].sum(axis=1).mean())
