"""Where bands are evaluated: along each axis, at the calibration rows and at the test rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.conformal import SCORES, Score, lower_scores, upper_scores
from sosbands.plotting.rows import curve_rows, find_axis, grid_over, number_column
from sosbands.report.data import Axis, BandPath, Rows, Step
from sosbands.report.recorded import RecordedBands
from sosbands.report.steps import SolvedBands, values_at
from sosbands.report.table import Table

MOST_FEATURES = 24  # with an axis of their own
CURVE_POINTS = (241, 121)  # of the only feature, of one of several
BEYOND = 0.1  # of the range of the only feature, on either side, to show where the bands have no data


@dataclass(frozen=True, eq=False)
class Line:
    """An axis, its column of X (None for the prediction), and rows of X along it."""

    axis: Axis
    column: int | None
    rows: Any

    def positions(self, table: Table, rows: IntArray, prediction: Array) -> Array:
        """Where some rows lie along the axis."""
        if self.column is None:
            return prediction
        return number_column(table.X, find_axis(table.X, self.column))[rows]


def make_lines(table: Table, model: RecordedBands, fit_rows: IntArray) -> list[Line]:
    """One line per feature that consists of numbers; first the prediction, unless the only feature has a line."""
    several = len(table.names) > 1
    nothing = np.zeros(0)
    lines: list[Line] = []
    typical = table.take(fit_rows)
    for column, name in enumerate(table.names):
        try:
            x = number_column(table.X, find_axis(table.X, column))
        except ValueError:  # categories, or missing values: no axis
            continue
        margin = BEYOND * (float(np.ptp(x)) or 1.0)
        wide = (float(x.min()) - margin, float(x.max()) + margin)
        grid = grid_over(x, CURVE_POINTS[several], None if several else wide)
        rows = curve_rows(typical, column, grid)
        lines.append(Line(Axis(name, False, grid, model.predict(rows)), column, rows))
        if len(lines) == MOST_FEATURES:
            break
    prediction = [] if lines and not several else [Line(Axis("prediction", True, nothing, nothing), None, None)]
    return prediction + lines


def rows_on(lines: list[Line], table: Table, model: RecordedBands, numbers: IntArray) -> Rows:
    """Rows of X with their targets, predictions and places along the axes."""
    prediction = model.predict(table.take(numbers))
    places = tuple(line.positions(table, numbers, prediction) for line in lines)
    return Rows(numbers, table.y[numbers], prediction, places)


class Places:
    """Calibration rows, test rows and the curves, as one table of what the kernel sees.

    Parameters
    ----------
    table : Table
    model : RecordedBands
        Fitted to `fit_rows`.
    fit_rows, test_rows : ndarray of int
    lines : list of Line
    """

    def __init__(
        self, table: Table, model: RecordedBands, fit_rows: IntArray, test_rows: IntArray, lines: list[Line]
    ) -> None:
        held = fit_rows[model.calibration_rows_]
        calibration = table.take(held)
        tables = [calibration, table.take(test_rows), *(line.rows for line in lines if line.rows is not None)]
        facts = [model.facts(each) for each in tables]
        self.points = np.concatenate([model.view_.points(each) for each in facts])
        self.ends = np.cumsum([len(each) for each in facts])[:-1]
        self.is_curve = [line.rows is not None for line in lines]
        self.held_unit, self.test_unit, *curve_units = self._parts(
            np.concatenate([model.view_.unit(each) for each in facts])
        )
        self.curve_units = tuple(curve_units)
        self.problem, self.fit_rows = model.problem_, fit_rows
        self.score_in_use = model.conformal_score_
        self.held_y, self.held_center = table.y[held], facts[0].prediction

    def path(
        self,
        name: str,
        coverage: float,
        chosen: int | None,
        solved: list[SolvedBands],
        criteria: list[float | None] | None = None,
    ) -> BandPath:
        """The bands with their values at all places."""
        criteria = [None] * len(solved) if criteria is None else criteria
        values, support = values_at(solved, self.points)
        _, test_support, *curve_support = self._parts(support)
        steps = [self._step(*each) for each in zip(solved, criteria, values, strict=True)]
        return BandPath(name, coverage, chosen, tuple(steps), test_support, tuple(curve_support))

    def _step(self, bands: SolvedBands, criterion: float | None, values: tuple[Array, Array]) -> Step:
        low_held, low_test, *low_curves = self._parts(values[0])
        up_held, up_test, *up_curves = self._parts(values[1])
        apart = bands.upper(self.problem.points) - bands.lower(self.problem.points)
        scored = {name: self._scored(score.fitted(*bands.means), low_held, up_held) for name, score in SCORES.items()}
        score, below, above = scored.pop(self.score_in_use)
        step = Step(
            symmetry_penalty=bands.symmetry_penalty,
            criterion=criterion,
            certificate=bands.certificate,
            squares=(bands.lower.rank, bands.upper.rank),
            active_lower=self.fit_rows[bands.active_lower],
            active_upper=self.fit_rows[bands.active_upper],
            score=score,
            difference=float(np.abs(self.problem.unit * apart).mean()),
            lower_scores=below,
            upper_scores=above,
            test=(low_test, up_test),
            curves=tuple(zip(low_curves, up_curves, strict=True)),
        )
        others = (
            replace(step, score=score, lower_scores=below, upper_scores=above, criterion=None)
            for score, below, above in scored.values()
        )
        return replace(step, others=tuple(others))

    def _scored(self, score: Score, below: Array, above: Array) -> tuple[Score, Array, Array]:
        """A score with those of the calibration rows below and above."""
        held = score.band(self.held_center, below, above, unit=self.held_unit)
        return score, lower_scores(held, self.held_y), upper_scores(held, self.held_y)

    def _parts(self, values: Array) -> list[Array]:
        """Values at the calibration rows, at the test rows, and along each axis (none along the prediction)."""
        held, test, *curves = np.split(values, self.ends)
        left = iter(curves)
        return [held, test, *(next(left) if is_curve else np.zeros(0) for is_curve in self.is_curve)]
