"""What a card says of rows with a known target: coverage in all, by group and by region, with sampling errors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands._words import many
from sosbands.conformal import side_levels
from sosbands.conformal.calibration import rows_by_label
from sosbands.exceptions import CrossedIntervalsWarning, OffDataWarning, TooFewCalibrationPointsWarning
from sosbands.metrics.checks import read_vector
from sosbands.metrics.sampling import coverage_range, share_range
from sosbands.plotting.rows import column, column_names, shape_of
from sosbands.report.calibrated import groups_along
from sosbands.report.card_blocks import Bar, Section, Table, level_words, number, percent, start_of
from sosbands.report.card_model import BOTH, MOST_GROUPS, column_kinds
from sosbands.tables.kinds import DATE

MOST_ALONG = 6  # columns along which regions are shown
TOLD = (OffDataWarning, CrossedIntervalsWarning, TooFewCalibrationPointsWarning)  # by the card itself
HEADER = ("rows", "inside", "", "95 % range")


@dataclass(frozen=True, eq=False)
class Tested:
    """Intervals of rows with a known target.

    Attributes
    ----------
    level : float
    side : {"both", "lower", "upper"}
    below, above : bool array of shape (n,)
        Rows below and above their interval.
    width : ndarray of shape (n,)
        Of one end alone its distance from the prediction.
    prediction, support : ndarray of shape (n,)
    """

    level: float
    side: str
    below: BoolArray
    above: BoolArray
    width: Array
    prediction: Array
    support: Array

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, level: float, side: str, lower_share: float, options: dict[str, Any]
    ) -> Tested:
        """Predict and compare; what warnings would say the card says."""
        n = shape_of(X)[0]
        target = read_vector(np.ravel(y) if np.shape(y) == (n, 1) else y, "y", n)
        with warnings.catch_warnings():
            for category in TOLD:
                warnings.simplefilter("ignore", category)
            ends = np.asarray(model.predict_interval(X, level, lower_share=lower_share, **options))
        center = model.predict(X)
        width = ends[:, 1] - ends[:, 0]
        if side != BOTH:
            width = ends[:, 1] - center if side == "upper" else center - ends[:, 0]
        return cls(level, side, target < ends[:, 0], target > ends[:, 1], width, center, model.support(X))

    def __len__(self) -> int:
        return len(self.width)

    @property
    def inside(self) -> BoolArray:
        """Rows inside their interval."""
        return ~(self.below | self.above)

    def row(self, label: str, rows: IntArray, start: float) -> tuple[str | Bar, ...]:
        """Coverage and width of some rows, as a row of a table."""
        share, ends = self.share(rows)
        bar = Bar(share, ends, self.level, start)
        shown = f"{percent(ends[0])} to {percent(ends[1])}"
        return label, str(len(rows)), percent(share), bar, shown, number(float(self.width[rows].mean()))

    def share(self, rows: IntArray) -> tuple[float, tuple[float, float]]:
        """Share of the rows inside, and Wilson's interval of it."""
        hits = int(np.count_nonzero(self.inside[rows]))
        low, high = share_range(hits, len(rows)).tolist()
        return hits / len(rows), (low, high)

    def table(self, caption: str, name: str, parts: list[tuple[str, IntArray]]) -> Table:
        """Coverage and width of several parts of the rows."""
        start = start_of([self.share(rows)[1][0] for _, rows in parts])
        measure = "mean width" if self.side == BOTH else "mean reach"
        header = (name, *HEADER, measure)
        return Table(caption, header, tuple(self.row(label, rows, start) for label, rows in parts))


def tested_section(model: Any, tested: Tested, lower_share: float) -> Section:
    """All rows, and what chance would make of them."""
    every = np.arange(len(tested))
    facts = [
        ("rows", str(len(tested))),
        ("below their interval", percent(float(tested.below.mean()))),
        ("above their interval", percent(float(tested.above.mean()))),
        ("median width" if tested.side == BOTH else "median reach", number(float(np.median(tested.width)))),
        ("far from the learning data", str(np.count_nonzero(tested.support < model.support_limit))),
    ]
    words, doubts = _chance(model, tested, lower_share)
    table = tested.table("", "all", [("all rows", every)])
    return Section("On rows with a known target", tuple(words), tuple(facts), (table,), warnings=tuple(doubts))


def _chance(model: Any, tested: Tested, lower_share: float) -> tuple[list[str], list[str]]:
    """For each end with a quantile of its own where chance puts the share of the test rows, and where it is not."""
    calibration = model.calibration_
    weighted = calibration.weights is not None or calibration.decay is not None
    if "copies_" in vars(model) or calibration.groups is not None or weighted:
        return [], []
    sides = side_levels(tested.level, model.calibration, lower_share)
    held = (
        {"inside": tested.inside}
        if model.calibration == "symmetric"
        else {
            "not below": ~tested.below,
            "not above": ~tested.above,
        }
    )
    words, doubts = [], []
    for (name, flags), side in zip(held.items(), sides, strict=False):
        if side >= 1:
            continue
        (low,), (high,) = coverage_range(np.array([side]), len(tested), len(calibration))
        share = float(flags.mean())
        chance = f"{percent(low)} to {percent(high)}, 19 times of 20"
        words.append(
            f"{percent(share)} of the rows are {name} (promised {level_words(side)}); with {len(calibration)} "
            f"calibration rows and {len(tested)} like them chance gives {chance}."
        )
        if not low <= share <= high:
            doubts.append(f"{percent(share)} {name} is not what chance gives: are these rows of another kind?")
    return words, doubts


def group_section(tested: Tested, labels: AnyArray, name: str, *, calibrated: bool) -> Section:
    """Coverage in each group."""
    parts = [(str(label), rows) for label, rows in rows_by_label(np.asarray(labels))]
    caption = f"The first {MOST_GROUPS} of {len(parts)} groups" if len(parts) > MOST_GROUPS else ""
    apart = (
        "Each was calibrated apart." if calibrated else "They were not calibrated apart: nothing is promised for one."
    )
    return Section(f"By group: {name}", (apart,), tables=(tested.table(caption, "group", parts[:MOST_GROUPS]),))


def region_section(model: Any, tested: Tested, X: Any) -> Section:
    """Coverage along prediction, width and columns of numbers; nothing is promised for any of them."""
    along = {"prediction": (tested.prediction, False), "width of the interval": (tested.width, False)}
    columns = _number_columns(model, X)
    along |= dict(list(columns.items())[:MOST_ALONG])
    tables, short, more, count = [], 0, 0, 0
    for name, (values, dates) in along.items():
        if not np.isfinite(values).all():
            continue
        parts = [(_range_words(values[rows], dates), rows) for rows in groups_along(values)]
        shares = [tested.share(rows)[1] for _, rows in parts]
        count += len(parts)
        short += sum(high < tested.level for _, high in shares)
        more += sum(low > tested.level for low, _ in shares)
        tables.append(tested.table(f"Along {name}", "from, to", parts))
    words = [
        f"{short} of {count} ranges hold less than {level_words(tested.level)}, and {more} hold more, by more than "
        "their 95 % range: chance does that to about one in twenty. Regions overlap. The promise is about all rows "
        "together."
    ]
    if len(columns) > MOST_ALONG:
        words.append(f"The first {MOST_ALONG} of {len(columns)} columns of numbers.")
    return Section("By region", tuple(words), tables=tuple(tables))


def _number_columns(model: Any, X: Any) -> dict[str, tuple[Array, bool]]:
    """Columns of different finite numbers or dates by name, and whether they are dates (days since 1970)."""
    kinds = column_kinds(model)
    names = column_names(X) or list(kinds)
    found = {}
    for position in range(shape_of(X)[1]):
        values, name = column(X, position), str(names[position])
        dates = kinds.get(name) == DATE
        if values.dtype.kind == "M":
            values, dates = values.astype("datetime64[s]").astype(float) / 86400, True
        if values.dtype.kind in "iuf" and np.isfinite(values.astype(float)).all() and len(np.unique(values)) > 1:
            found[name] = values.astype(float), dates
    return found


def _range_words(values: Array, dates: bool) -> str:
    low, high = float(values.min()), float(values.max())
    if dates:
        first, last = (str(np.datetime64(int(day // 1), "D")) for day in (low, high))
    else:
        first, last = number(low), number(high)
    return first if first == last else f"{first} to {last}"


def limits(model: Any, chosen_for: float, tested: Tested | None) -> Section:
    """What must not be expected of the intervals; `chosen_for` is the level that the settings were chosen for."""
    points = [
        "The promise is about rows like those of fit, on average: not about every single region, nor about rows of "
        "another kind, another place or a later time when things have changed.",
        f"Rows far from the learning data (support below {model.support_limit:g}): the data say nothing about the "
        "noise there. Intervals are given all the same, with a warning.",
    ]
    if "calibration_" in vars(model):
        smallest = min(len(part) for _, part in model.calibration_.parts())
        which = "the smallest group has" if model.calibration_.groups is not None else "there are"
        points.append(
            f"Calibration rows: {which} {smallest}. The fewer, the more the coverage of all rows to come varies from "
            "calibration to calibration."
        )
    if model.calibration == "symmetric":
        points.append(
            "One quantile moves both ends: the promise is about rows inside, not about how many lie below and how many "
            "above."
        )
    if tested is not None:
        points += _seen_limits(model, tested)
    if chosen_for != model.confidence_level:
        points.append(f"The settings were chosen for intervals of {level_words(chosen_for)}.")
    return Section("Limits", points=tuple(points))


def _seen_limits(model: Any, tested: Tested) -> list[str]:
    """The same of the test rows: what of it is there."""
    points = []
    far = int(np.count_nonzero(tested.support < model.support_limit))
    if far:
        points.append(f"{far} of the {many(len(tested), 'row')} with a known target lie far from the learning data.")
    infinite, empty = int(np.isinf(tested.width).sum()), int((tested.width == 0).sum())
    if infinite:
        points.append(f"{many(infinite, 'interval')} of {len(tested)} are infinite: too few calibration rows.")
    if empty:
        points.append(f"{many(empty, 'interval')} of {len(tested)} are single points.")
    below, above = int(tested.below.sum()), int(tested.above.sum())
    if tested.side == BOTH and below + above:
        points.append(f"Skew: {many(below, 'row')} of {len(tested)} lie below their interval and {above} above.")
    return points
