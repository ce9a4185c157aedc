"""Which intervals are asked of a model: levels, one end or both, and groups that are calibrated apart."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands._words import many
from sosbands.cli.columns import Columns, check_column
from sosbands.cli.output import Output, listed, percent
from sosbands.cli.table_files import TableFile
from sosbands.conformal import interval, points_needed, side_levels
from sosbands.exceptions import TooFewCalibrationPointsWarning
from sosbands.regressors.cross import is_cross
from sosbands.regressors.rows import held_back
from sosbands.regressors.summary import LOWER_SHARE as LOWER_SHARE  # of each side
from sosbands.tables.kinds import CATEGORY

BOTH, LOWER, UPPER = SIDES = ("both", "lower", "upper")
RECORD = "asked_"  # attribute of a model that the command line has fitted
NO_LABEL = "(missing)"
FEW = 20  # learning rows, from which hardly anything can be learnt


@dataclass(frozen=True)
class Asked:
    """What `fit` was told about intervals, and later commands go by.

    Attributes
    ----------
    side : {"both", "lower", "upper"}
        The ends that intervals have.
    groups : str or None
        Column of the groups.
    """

    side: str = BOTH
    groups: str | None = None

    @classmethod
    def of_model(cls, model: Any, side: str | None = None, groups: str | None = None) -> Asked:
        """What a model has recorded, unless said otherwise now."""
        record = cls(**getattr(model, RECORD, {}))
        return cls(side or record.side, groups or record.groups)

    def record(self, model: Any) -> None:
        """Keep it in a fitted model."""
        setattr(model, RECORD, asdict(self))

    @property
    def ends(self) -> tuple[str, ...]:
        """Names of the ends."""
        return (LOWER, UPPER) if self.side == BOTH else (self.side,)

    def width(self, center: Array, ends: Array) -> Array:
        """Width of each interval; of one end its distance from the prediction."""
        if self.side == BOTH:
            return np.asarray(ends[:, 1] - ends[:, 0])
        return np.asarray(ends[:, 1] - center if self.side == UPPER else center - ends[:, 0])

    def prepare(self, model: Any, path: Any) -> None:
        """Check a fitted model against it; with one end the calibration is that of the end alone."""
        needs = model.calibration_.groups is not None
        if needs and self.groups is None:
            raise ValueError(
                f"{path} was calibrated by groups and does not say in which column they are: give --groups"
            )
        if self.groups is not None and not needs:
            raise ValueError(f"--groups {self.groups}: {path} was calibrated without groups; fit it with --groups")
        if self.side != BOTH:
            model.set_params(calibration="asymmetric")  # which both kinds of calibration have the scores for

    def check(self, file: TableFile) -> None:
        """Complain about a missing column."""
        if self.groups is not None:
            check_column(file, self.groups)

    def labels(self, table: Any, file: TableFile, first_row: int = 1) -> Any:
        """Group of each row of a table, None without groups."""
        if self.groups is None:
            return None
        return labels_of(Columns({self.groups: CATEGORY}).frame(table, file, first_row)[self.groups])


def with_groups(category: Sequence[str], groups: str | None, target: str, drop: Sequence[str]) -> list[str]:
    """The columns to read as categories, that of the groups among them."""
    if groups is None:
        return list(category)
    if groups == target or groups in drop:
        raise ValueError(f"--groups {groups}: expected another column than the target and those of --drop")
    return list(dict.fromkeys([*category, groups]))


def apart(columns: Columns, frame: Any, groups: str | None, *, as_feature: bool) -> tuple[Columns, Any, Any]:
    """Features and labels of a table that was read with the column of the groups, which is left among them or not."""
    if groups is None:
        if as_feature:
            raise ValueError("--groups-as-feature without --groups: expected the column of the groups")
        return columns, frame, None
    labels = labels_of(frame[groups])
    if as_feature:
        return columns, frame, labels
    kinds = {name: kind for name, kind in columns.kinds.items() if name != groups}
    if not kinds:
        raise ValueError(f"--groups {groups} leaves no column to learn from; add --groups-as-feature")
    return replace(columns, kinds=kinds), frame.drop(columns=groups), labels


def labels_of(column: Any) -> Any:
    """Texts of a column of a data frame, a word where there is none."""
    missing = column.isna().to_numpy()
    texts = [NO_LABEL if gap else str(value) for value, gap in zip(column.to_numpy(), missing, strict=True)]
    return np.array([text or NO_LABEL for text in texts])


class Quantiles:
    """Quantiles of every level and group, computed once."""

    def __init__(self, model: Any, asked: Asked, levels: Sequence[float]) -> None:
        groups = model.calibration_.groups
        self._labels = None if groups is None else np.unique(groups)
        n = 1 if self._labels is None else len(self._labels)
        self._model, self._levels, self._share = model, list(levels), LOWER_SHARE[asked.side]
        self._is_cross = hasattr(model, "copies_")  # whose copies have bands of their own, which no one number moves
        with warnings.catch_warnings():
            if self._labels is not None:  # it would count groups; what counts are the rows that fall into them
                warnings.simplefilter("ignore", TooFewCalibrationPointsWarning)
            wanted = (n, self._levels, self._share, self._labels, None)
            self._q = [] if self._is_cross else model._conformal_quantiles(*wanted)
        known = [] if self._labels is None else self._labels.tolist()
        self._place = {_text(label): k for k, label in enumerate(known)}

    def at(self, frame: Any, labels: Any, what: str = "groups") -> tuple[Array, list[Array], Any]:
        """Predictions, both ends at each level, (n, 2), and the band; `labels` if and only if there are groups."""
        if self._is_cross:
            center, band, made = self._model._intervals(frame, self._levels, self._share, self.known(labels, what))
            return center, [ends for ends, _ in made], band
        center, band = self._model._prediction_and_band(frame)
        return center, self._ends(band, labels, what), band

    def _ends(self, band: Any, labels: Any, what: str) -> list[Array]:
        if labels is None:
            return [interval(band, *np.broadcast_to(q[0], 2))[0] for q in self._q]
        rows = self._places(labels, what)
        return [interval(band, *q[rows].T)[0] for q in self._q]

    def known(self, labels: Any, what: str) -> Any:
        """Labels in the form in which the model knows them."""
        if labels is None or self._labels is None:
            return None
        return self._labels[self._places(labels, what)]

    def _places(self, labels: Any, what: str) -> Any:
        unknown = sorted({label for label in labels.tolist() if label not in self._place})
        if unknown:
            raise ValueError(
                f"{what} holds {listed(unknown)}, of which no calibration row is: expected {listed(list(self._place))}"
            )
        return np.array([self._place[label] for label in labels.tolist()], dtype=int)


def _text(label: Any) -> str:
    """A label as it is read from a table: whole numbers without decimals."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label).lower() if isinstance(label, bool) else str(label)


def note_few_rows(says: Output, n: int, size: float | int | str, level: float, kind: Any, side: str) -> None:
    """Say before the work begins that a calibration size leaves too few rows to calibrate on, or to learn from."""
    if is_cross(size):
        return
    held = held_back(n, size)  # type: ignore[arg-type]
    needed = max(map(points_needed, side_levels(level, "symmetric" if side != BOTH else kind)))
    if held < needed:
        says.note(
            f"--calibration-size {size} holds {held} of {many(n, 'row')} back, but {percent(level)} intervals take "
            f"{needed:.0f}: they will be infinite; hold back {needed:.0f} or more, or ask for a smaller "
            "--confidence-level"
        )
    if n - held < min(FEW, held):
        says.note(
            f"--calibration-size {size} leaves {n - held} of {many(n, 'row')} to learn from, which tell hardly "
            f"anything: expected {FEW} or more, or half of the rows"
        )
