"""explore: hold out test rows, fit, and compute everything that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from sosbands._progress import say, speaking
from sosbands._types import Array, IntArray
from sosbands.bands.views import NO_SCALE
from sosbands.conformal import Score, lower_scores, upper_scores
from sosbands.conformal.asked import read_kind
from sosbands.conformal.scores import offered
from sosbands.exceptions import NoTypicalWidthError
from sosbands.explanation import Explanation
from sosbands.metrics.intervals import read_vector
from sosbands.plotting.axes import column_names, curve_rows, find_axis, grid_over, number_column, shape_of
from sosbands.plotting.axes import target_name as name_of
from sosbands.point_models.blend import model_words
from sosbands.report.card_sections import plain
from sosbands.report.data import Axis, BandPath, Exploration, Rows, Step
from sosbands.report.steps import (
    RecordedBands,
    SolvedBands,
    coverages_shown,
    few_of,
    penalties_shown,
    recorded,
    solve_coverages,
    solve_steps,
    values_at,
    with_model,
)

NO_WIDTH = 1e-3  # of the mean size of residuals: bands that reach less far in the mean are none
MIN_ROWS = 8
TEST_PART, MOST_TEST_ROWS = 0.25, 1000
MOST_FIT_ROWS = 800  # learning and calibration rows together; a path over penalties is quick up to 400 learning rows
MOST_DRAWN = 200  # test rows that are drawn and explained
MOST_FEATURES = 24  # with an axis of their own
CURVE_POINTS = 241  # along the only feature
BEYOND = 0.1  # of its range, on either side, to show where the bands have no data


def explore(
    X: Any,
    y: Any,
    *,
    feature_names: Sequence[str] | None = None,
    target_name: str | None = None,
    estimator: Any = None,
    confidence_level: float | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    title: str | None = None,
) -> Exploration:
    """Fit bands and compute what the page shows: intervals of test rows at every level, for many settings of the bands.

    A quarter of the rows (at most 1000) are held out for the test; of the others at most 800 are learnt from and
    calibrated on.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
    y : array of shape (n,)
    feature_names : sequence of d str, optional
        By default the names of the columns of a data frame, or numbers.
    target_name : str, optional
        By default the name of a series, or "y".
    estimator : regressor, SoSBandRegressor or None
        The point model, or a whole `SoSBandRegressor` whose settings are used. It is copied and fitted here.
    confidence_level : float, optional
        Shown first; by default that of the estimator, 0.9.
    random_state : int or RandomState
        Of the test rows, and of the estimator if it has none.
    n_jobs : int, optional
        Processes of the tuning.
    verbose : int
        Above 0: a line for each stage.
    title : str, optional
        Of the page.

    Returns
    -------
    Exploration
    """
    table = read_table(X, y, feature_names)
    model = recorded(
        estimator, confidence_level=confidence_level, random_state=random_state, n_jobs=n_jobs, verbose=verbose
    )
    fit_rows, test_rows = split_test(len(table), check_random_state(random_state))
    model.fit(table.take(fit_rows), table.y[fit_rows])
    axes = read_axes(table, model, fit_rows)
    learning, calibration = fit_rows[model.learning_rows_], fit_rows[model.calibration_rows_]
    places = Places(table, model, fit_rows, calibration, test_rows, axes.curve)
    with speaking("explore", model.verbose):
        path = _path(model, places)
        coverages = _coverages(model, places, path)
    rows = [axes.rows(table, model, numbers) for numbers in (learning, calibration, test_rows)]
    drawn = test_rows[:MOST_DRAWN]
    target = name_of(y) if target_name is None else str(target_name)
    return Exploration(
        title=f"Prediction intervals for {target}" if title is None else str(title),
        target_name=target,
        confidence_level=float(model.confidence_level),
        calibration=model.calibration,
        score=model.noise_.score,
        sentence=_decision(model),
        reasons=() if model.tuning_ is None else tuple(model.tuning_.reasons),
        settings=_settings(model),
        base_scale=model.noise_.view.base_scale,
        is_tuned=isinstance(model.symmetry_penalty, str),
        model_name=plain(model_words(model.estimator_)),
        n_given=len(table),
        n_test_drawn=len(drawn),
        axes=axes.all,
        learning=rows[0],
        calibration_rows=rows[1],
        test=rows[2],
        test_unit=places.test_unit,
        curve_unit=places.curve_unit,
        path=path,
        coverages=coverages,
        why=explained(model, table, fit_rows, drawn),
        notes=_notes(table, axes, sum(map(len, rows)), len(test_rows)),
        support_limit=model.support_limit,
    )


def _path(model: RecordedBands, places: Places) -> BandPath:
    """The path of the settings in use."""
    penalties = penalties_shown(model)
    solved, chosen = with_model(model, solve_steps(model, penalties))
    say(f"{len(penalties)} symmetry penalties solved")
    return places.path(float(model.problem_.settings.learning_coverage), chosen, solved)


def _coverages(model: RecordedBands, places: Places, own: BandPath) -> tuple[BandPath, ...]:
    """The path in use among those of other learning coverages, which have few steps."""
    shown = coverages_shown(model)
    others = [coverage for coverage in shown if coverage != own.learning_coverage]
    penalties = few_of([step.symmetry_penalty for step in own.steps], own.chosen or 0)
    solved = solve_coverages(model, others, penalties)
    paths = [places.path(coverage, None, each) for coverage, each in zip(others, solved, strict=True)]
    if others:
        say(f"{len(others)} other learning coverages at {len(penalties)} symmetry penalties solved")
    return tuple(sorted([*paths, own], key=lambda path: path.learning_coverage))


def _words(model: RecordedBands) -> str:
    """What the lengthscale makes of the bands."""
    lengthscale = model.noise_.lengthscale
    if lengthscale is None:
        return "the lengthscale of the kernel given"
    if isinstance(lengthscale, dict):
        return "one lengthscale below, another above"
    if np.ndim(lengthscale):
        return "one lengthscale for each feature"
    if np.isinf(lengthscale):
        return "constant width" if model.noise_.view.base_scale == NO_SCALE else "a constant multiple of the base scale"
    return f"lengthscale {lengthscale:.3g}"


def _settings(model: RecordedBands) -> str:
    view, settings = model.noise_.view, model.noise_.settings
    return (
        f"{_words(model)}, base scale {view.base_scale}, noise features {view.noise_features}, "
        f"width penalty {settings.width_penalty:.4g}, learning coverage {settings.learning_coverage:.4g}, "
        f"{model.noise_.score.name} score"
    )


def _decision(model: RecordedBands) -> str:
    if model.tuning_ is not None:
        return f"{model.tuning_.sentence}{_without_width(model)}"
    return f"Lengthscale and symmetry penalty were given, not chosen from the data.{_without_width(model)}"


def _without_width(model: RecordedBands) -> str:
    """Small width penalties may leave bands at zero, where sliding them shows nothing."""
    size, is_added = float(np.abs(model.problem_.z).mean()), model.noise_.score.name == "added"
    if not is_added or size == 0 or model.noise_.mean_lower + model.noise_.mean_upper > NO_WIDTH * size:
        return ""
    reach = "the same distance" if model.noise_.view.base_scale == NO_SCALE else "the same multiple of the base scale"
    return f" The bands are as good as zero: calibration makes every interval reach {reach}."


def _notes(table: Table, axes: Axes, used: int, n_test: int) -> tuple[str, ...]:
    """What the page leaves out."""
    notes = []
    if used < len(table):
        notes.append(f"Of {len(table)} rows given, a random sample of {used} was used.")
    if n_test > MOST_DRAWN:
        notes.append(
            f"Of {n_test} test rows, a random sample of {MOST_DRAWN} is drawn; every number is of all of them."
        )
    without = len(table.names) - sum(values is not None for values in axes.values)
    if without:
        notes.append(f"{without} of {len(table.names)} features have no axis: not numbers, with gaps, or too many.")
    return tuple(notes)


@dataclass(frozen=True, eq=False)
class Table:
    """The rows given, with the names of the features."""

    X: Any
    y: Array
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: IntArray) -> Any:
        """Some rows of X."""
        return _safe_indexing(self.X, rows)


def read_table(X: Any, y: Any, feature_names: Sequence[str] | None) -> Table:
    """Check shapes and names; what the entries must be is the estimator's business."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    n, d = shape_of(X)
    if n < MIN_ROWS:
        raise ValueError(f"X has {n} rows: expected at least {MIN_ROWS}, to learn, to calibrate and to test")
    target = read_vector(np.ravel(y) if np.shape(y) == (n, 1) else y, "y", n)
    names = column_names(X) if feature_names is None else feature_names
    if names is None:
        names = [find_axis(X, position).label for position in range(d)]
    if isinstance(names, str) or len(names) != d:
        raise ValueError(f"feature_names={names!r}: expected {d} names, one per column of X")
    return Table(X, target, tuple(str(name) for name in names))


def split_test(n: int, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
    """Rows to fit to, in their order, and test rows, in random order."""
    order = rng.permutation(n).astype(np.intp)
    count = min(MOST_TEST_ROWS, round(TEST_PART * n))
    return np.sort(order[count : count + MOST_FIT_ROWS]), order[:count]


@dataclass(frozen=True, eq=False)
class Axes:
    """The axes, what each orders the rows given by (None for the prediction), and rows along the only feature."""

    all: tuple[Axis, ...]
    values: tuple[Array | None, ...]
    curve: Any = None

    def rows(self, table: Table, model: RecordedBands, numbers: IntArray) -> Rows:
        """Rows of the table with their targets, predictions and places along the axes."""
        prediction = model.predict(table.take(numbers))
        places = tuple(prediction if values is None else values[numbers] for values in self.values)
        return Rows(numbers, table.y[numbers], prediction, places)


def read_axes(table: Table, model: RecordedBands, fit_rows: IntArray) -> Axes:
    """The only feature, if it consists of numbers, with its curve; else the prediction and features of numbers."""
    known = {}
    for column, name in enumerate(table.names):
        with suppress(ValueError):  # categories, or missing values: no axis
            known[name, column] = number_column(table.X, find_axis(table.X, column))
        if len(known) == MOST_FEATURES:
            break
    if known and len(table.names) == 1:
        ((name, column), x) = next(iter(known.items()))
        margin = BEYOND * (float(np.ptp(x)) or 1.0)
        grid = grid_over(x, CURVE_POINTS, (float(x.min()) - margin, float(x.max()) + margin))
        rows = curve_rows(table.take(fit_rows), column, grid)
        return Axes((Axis(name, grid, model.predict(rows)),), (x,), rows)
    nothing = np.zeros(0)
    features = [Axis(name, nothing, nothing) for name, _ in known]
    return Axes((Axis("prediction", nothing, nothing), *features), (None, *known.values()))


class Places:
    """Calibration rows, test rows and the curve, as one table of what the kernel sees."""

    def __init__(
        self, table: Table, model: RecordedBands, fit_rows: IntArray, held: IntArray, test_rows: IntArray, curve: Any
    ) -> None:
        tables = [table.take(held), table.take(test_rows), *([] if curve is None else [curve])]
        facts = [model.facts(each) for each in tables]
        self.points = np.concatenate([model.noise_.view.points(each) for each in facts])
        self.ends = np.cumsum([len(each) for each in facts])[:2]
        self.held_unit, self.test_unit, self.curve_unit = self._parts(
            np.concatenate([model.noise_.view.unit(each) for each in facts])
        )
        self.problem, self.fit_rows = model.problem_, fit_rows
        self.score_in_use = model.noise_.score.name
        self.held_y, self.held_center = table.y[held], facts[0].prediction

    def path(self, coverage: float, chosen: int | None, solved: list[SolvedBands]) -> BandPath:
        """The bands with their values at all places."""
        values, support = values_at(solved, self.points)
        _, test_support, curve_support = self._parts(support)
        steps = tuple(self._step(*each) for each in zip(solved, values, strict=True))
        return BandPath(coverage, chosen, steps, test_support, curve_support)

    def _step(self, bands: SolvedBands, values: tuple[Array, Array]) -> Step:
        low_held, low_test, low_curve = self._parts(values[0])
        up_held, up_test, up_curve = self._parts(values[1])
        apart = bands.upper(self.problem.points) - bands.lower(self.problem.points)
        scores = offered(self.score_in_use).items()
        scored = {name: self._scored(score.fitted(*bands.means), low_held, up_held) for name, score in scores}
        score, below, above = scored.pop(self.score_in_use)
        step = Step(
            symmetry_penalty=bands.symmetry_penalty,
            certificate=bands.certificate,
            squares=(bands.lower.rank, bands.upper.rank),
            active_lower=self.fit_rows[bands.active_lower],
            active_upper=self.fit_rows[bands.active_upper],
            score=score,
            difference=float(np.abs(self.problem.unit.T * apart).mean()),
            lower_scores=below,
            upper_scores=above,
            test=(low_test, up_test),
            curve=(low_curve, up_curve),
        )
        others = (
            replace(step, score=score, lower_scores=below, upper_scores=above)
            for score, below, above in scored.values()
        )
        return replace(step, others=tuple(others))

    def _scored(self, score: Score, below: Array, above: Array) -> tuple[Score, Array, Array]:
        """A score with those of the calibration rows below and above."""
        held = score.band(self.held_center, below, above, unit=self.held_unit)
        return score, lower_scores(held, self.held_y), upper_scores(held, self.held_y)

    def _parts(self, values: Array) -> list[Array]:
        """Values at the calibration rows, at the test rows, and along the curve, if there is one."""
        return np.split(values, self.ends)


def explained(model: RecordedBands, table: Table, fit_rows: IntArray, drawn: IntArray) -> Explanation | None:
    """Explain the rows drawn at the level of the model; None if there is no typical width to compare with.

    The explanation counts rows among those that the model was fitted to; here they are positions in X, whose
    features have the names of the page.
    """
    quantiles = model.calibration_.quantiles(model.confidence_level, read_kind(model.calibration))
    if not np.isfinite(quantiles).all():
        return None
    try:
        found = model.explain(table.take(drawn))
    except NoTypicalWidthError:
        return None
    given = column_names(table.X) or [f"feature {k}" for k in range(len(table.names))]
    names = dict(zip(map(str, given), table.names, strict=True))
    return replace(
        found,
        feature_names=tuple(names.get(name, name) for name in found.feature_names),
        typical_row=int(fit_rows[found.typical_row]),
        landmark_rows=fit_rows[found.landmark_rows],
    )
