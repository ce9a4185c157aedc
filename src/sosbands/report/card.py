"""write_card: one printable page about a fitted model, for those who decide whether to rely on it."""

from __future__ import annotations

import hashlib
import os
import warnings
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sosbands._arguments import check, read_level
from sosbands._files import check_place, written
from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands._words import many
from sosbands.comparison import environment
from sosbands.conformal import side_levels
from sosbands.conformal.asked import calibration_of, read_groups
from sosbands.conformal.calibration import rows_by_label
from sosbands.exceptions import CrossedIntervalsWarning, OffDataWarning, TooFewCalibrationPointsWarning
from sosbands.metrics.intervals import read_vector
from sosbands.metrics.local import coverage_range, share_range
from sosbands.plotting.axes import column, column_names, shape_of
from sosbands.regressors import SoSBandRegressor
from sosbands.regressors.summary import width_words
from sosbands.report.calibrated import groups_along
from sosbands.report.card_sections import (
    BOTH,
    MOST_GROUPS,
    Bar,
    Section,
    Table,
    calibration,
    certificate,
    column_kinds,
    columns,
    learnt,
    level_words,
    number,
    percent,
    promised,
    settings,
    start_of,
    text_html,
)
from sosbands.report.page import filled_in, page_file, policy_of
from sosbands.saving.archive import read_facts
from sosbands.tables.columns import DATE

SIDES = {BOTH: 0.5, "lower": 1.0, "upper": 0.0}  # part of the miscoverage that rows below the interval may have
VERSIONS = ("sosbands", "python", "numpy", "scipy", "scikit-learn")
MOST_ALONG = 6  # columns along which regions are shown
TOLD = (OffDataWarning, CrossedIntervalsWarning, TooFewCalibrationPointsWarning)  # by the card itself
HEADER = ("rows", "inside", "", "95 % range")


def write_card(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    groups: Any = None,
    groups_name: str = "groups",
    likelihood_ratio: Any = None,
    confidence_level: float | None = None,
    side: str = "both",
    target_name: str | None = None,
    title: str | None = None,
    model_file: str | os.PathLike[str] | None = None,
) -> Path:
    """Write a page about a fitted `SoSBandRegressor`; the file appears whole or not at all.

    It says what is promised, how wide intervals are and what not to expect of them; then what was learnt and from what,
    which settings are in use and why, the certificate, the calibration and what chance makes of its promise, and
    versions. With `X` and `y` it also says how many rows are inside their interval, in all, by group and by region,
    with sampling errors. It holds no row of any table, but column names and group labels, and asks nothing of the
    network.

    Parameters
    ----------
    model : SoSBandRegressor
    path : path
        HTML file to write, in a directory that exists.
    X, y : table of shape (n, n_features) and array of shape (n,), optional
        Rows that the model has not seen, and their targets.
    groups : array of shape (n,), optional
        Labels of these rows: needed if the model was calibrated by groups; else coverage is told apart by them.
    groups_name : str
        What the groups are called.
    likelihood_ratio : array of shape (n,), optional
        Given if and only if `conformalize` got it.
    confidence_level : float, optional
        By default that of the model.
    side : {"both", "lower", "upper"}
        The ends that intervals have; one alone takes asymmetric calibration, and all of the miscoverage.
    target_name, title : str, optional
        What is predicted, and the heading.
    model_file : path, optional
        The file that the model was read from or saved to: the card has its SHA-256.

    Returns
    -------
    Path
        The file.
    """
    check_place(path, apart_from=[] if model_file is None else [model_file])
    check("model", type(model).__name__, isinstance(model, SoSBandRegressor), "a SoSBandRegressor")
    check_is_fitted(model)
    check("side", side, side in SIDES, f"one of {list(SIDES)}")
    fine = side == BOTH or model.calibration == "asymmetric"
    check("side", side, fine, "'both' for a model with calibration='symmetric'")
    if (X is None) != (y is None):
        raise ValueError(f"{'y' if y is None else 'X'}=None: expected both X and y, or neither")
    asked_in_fit = model.confidence_level
    level = asked_in_fit if confidence_level is None else read_level(confidence_level)
    model = copy(model)  # its words are those of its level
    model.confidence_level = level
    tested, labels = None, None
    if X is not None:
        by_group = calibration_of(model).groups is not None
        used = {"groups": groups} if by_group else {}
        used |= {} if likelihood_ratio is None else {"likelihood_ratio": likelihood_ratio}
        tested = Tested.of(model, X, y, level, side, SIDES[side], used)
        labels = None if groups is None else read_groups(groups, len(tested))
    target = target_name or (getattr(model, "columns_", None) or {}).get("target")
    share = SIDES[side]
    sections = [inside_section(model, side, share, tested), width_section(model, side, tested)]
    if tested is not None:
        sections.append(where_section(model, tested, X, labels, groups_name, calibrated=by_group))
    sections += [limits(model, asked_in_fit, tested), learnt(model), columns(model, target), settings(model)]
    sections += [certificate(model), calibration(model, level, share, side), _made_with(model_file)]
    heading = title or (f"Prediction intervals for {target}" if target else "Prediction intervals")
    with written(path) as partial:
        partial.write_text(_rendered(heading, _lead(model, level, tested), sections), encoding="utf-8")
    return Path(path)


def _lead(model: Any, level: float, tested: Tested | None) -> str:
    """The card in two or three sentences."""
    held = "not calibrated" if "calibration_" not in vars(model) else f"calibrated on {len(model.calibration_)}"
    last = f"Learnt from {many(len(model.learning_rows_), 'row')}, {held}."
    if tested is None:
        return f"{level_words(level)} intervals. {last}"
    share, (low, high) = tested.share(np.arange(len(tested)))
    of_rows = f"{percent(share)} of {many(len(tested), 'row')} with a known target"
    reach = f"{number(float(tested.width.mean()))} {'wide' if tested.side == BOTH else 'away from the prediction'}"
    return (
        f"{level_words(level)} intervals: {of_rows} are inside (95 % range {percent(low)} to {percent(high)}). They "
        f"are {reach} on average. {last}"
    )


def _made_with(model_file: str | os.PathLike[str] | None) -> Section:
    """Versions, and the file."""
    found = environment()
    facts = [(name, str(found[name])) for name in VERSIONS if name in found]
    facts.append(("card written", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")))
    if model_file is not None:
        data, facts_of_file = Path(model_file).read_bytes(), read_facts(Path(model_file))
        facts += [
            ("model file", Path(model_file).name),
            ("size", f"{len(data)} bytes"),
            ("written by", f"sosbands {facts_of_file.get('sosbands', '?')}, format {facts_of_file.get('format', '?')}"),
            ("SHA-256 of the file", hashlib.sha256(data).hexdigest()),
        ]
    return Section("Versions and file", facts=tuple(facts))


def _rendered(title: str, lead: str, sections: list[Section]) -> str:
    style = page_file("card.css")
    parts = {
        "title": escape(title),
        "lead": text_html(lead),
        "policy": policy_of(style),
        "style": style,
        "sections": "\n".join(section.html() for section in sections),
    }
    return filled_in("card.html", parts)


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
            found = model.intervals(X, level, lower_share=lower_share, **options)
        center, lower, upper = found.prediction, found.lower[:, 0], found.upper[:, 0]
        width = upper - lower
        if side != BOTH:
            width = upper - center if side == "upper" else center - lower
        return cls(level, side, target < lower, target > upper, width, center, found.support)

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


def inside_section(model: Any, side: str, lower_share: float, tested: Tested | None) -> Section:
    """What is promised, and what came of it on the rows given, beside what chance would make of it."""
    words, warnings = promised(model, side)
    if tested is None:
        words.append("No rows with a known target were given: what came of the promise is not on this card.")
        return Section("How often inside", tuple(words), warnings=tuple(warnings))
    found, doubts = _chance(model, tested, lower_share)
    facts = [
        ("rows", str(len(tested))),
        ("inside", percent(float(tested.inside.mean()))),
        ("below their interval", percent(float(tested.below.mean()))),
        ("above their interval", percent(float(tested.above.mean()))),
    ]
    table = tested.table("", "all", [("all rows", np.arange(len(tested)))])
    return Section("How often inside", (*words, *found), tuple(facts), (table,), warnings=(*warnings, *doubts))


def width_section(model: Any, side: str, tested: Tested | None) -> Section:
    """Typical widths, of the rows given and of learning rows; and how often the wide and the narrow ones hold."""
    words = tuple(filter(None, [width_words(model, side)]))
    if tested is None:
        return Section("How wide", words or ("Not known without rows to look at.",))
    low, middle, high = np.quantile(tested.width, [0.1, 0.5, 0.9], method="inverted_cdf").tolist()
    measure = "width" if side == BOTH else "reach"
    facts = [
        (f"mean {measure}", number(float(tested.width.mean()))),
        (f"median {measure}", number(middle)),
        ("eight of ten", f"{number(low)} to {number(high)}"),
    ]
    parts = [(_range_words(tested.width[rows], False), rows) for rows in groups_along(tested.width)]
    table = tested.table(f"By {measure} of the interval", "from, to", parts)
    return Section("How wide", words, tuple(facts), (table,))


def _chance(model: Any, tested: Tested, lower_share: float) -> tuple[list[str], list[str]]:
    """For each end with a quantile of its own where chance puts the share of the test rows, and where it is not."""
    calibration = model.calibration_
    weighted = calibration.weights is not None or calibration.decay is not None
    if calibration.copies or calibration.groups is not None or weighted:
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


def where_section(
    model: Any, tested: Tested, X: Any, labels: AnyArray | None, groups_name: str, *, calibrated: bool
) -> Section:
    """Coverage in each group, and along prediction and columns of numbers: what falls short first, far rows."""
    words: list[str] = []
    places: list[tuple[str, str, str, list[tuple[str, IntArray]]]] = []  # name, caption and header of a table, its rows
    if labels is not None:
        parts = [(str(label), rows) for label, rows in rows_by_label(np.asarray(labels))]
        most = f" (the first {MOST_GROUPS} of {len(parts)})" if len(parts) > MOST_GROUPS else ""
        places.append((groups_name, f"By group: {groups_name}{most}", "group", parts[:MOST_GROUPS]))
        words = ["Each group was calibrated apart." if calibrated else "Groups were not calibrated apart."]
    columns = _number_columns(model, X)
    if len(columns) > MOST_ALONG:
        words.append(f"Of {len(columns)} columns of numbers the first {MOST_ALONG}.")
    along = {"prediction": (tested.prediction, False), **dict(list(columns.items())[:MOST_ALONG])}
    for name, (values, dates) in along.items():
        if np.isfinite(values).all():
            parts = [(_range_words(values[rows], dates), rows) for rows in groups_along(values)]
            places.append((name, f"Along {name}", "from, to", parts))
    short, more, count = [], 0, 0
    for name, _, _, parts in places:
        for label, rows in parts:
            share, (low, high) = tested.share(rows)
            count, more = count + 1, more + int(low > tested.level)
            if high < tested.level:
                short.append((high, f"{name} {label}: {percent(share)} of {many(len(rows), 'row')} inside."))
    told = (
        f"{len(short)} of {count} groups and ranges hold less than {level_words(tested.level)}, and {more} hold more, "
        "by more than their 95 % range: chance does that to one in twenty. The promise is about all rows together."
    )
    far = str(np.count_nonzero(tested.support < model.support_limit))
    tables = tuple(tested.table(caption, header, parts) for _, caption, header, parts in places)
    points = tuple(sentence for _, sentence in sorted(short))
    return Section("Where less often", (told, *words), (("far from the learning data", far),), tables, points)


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
        "The promise is about rows like those it was calibrated on, on average: not about every single region, nor "
        "about rows of another kind, another place or a later time when things have changed.",
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
    return Section("What not to expect", points=tuple(points))


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
