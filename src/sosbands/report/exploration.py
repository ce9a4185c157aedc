"""explore: hold out test rows, fit, and compute everything that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sosbands._progress import say
from sosbands._types import IntArray
from sosbands.kernels import median_lengthscale
from sosbands.plotting.rows import target_name as name_of
from sosbands.point_models.outputs import model_name
from sosbands.report.criterion import criterion_of_steps
from sosbands.report.data import BandPath, Exploration
from sosbands.report.places import Line, Places, make_lines, rows_on
from sosbands.report.recorded import RecordedBands, recorded
from sosbands.report.steps import coverages_shown, few_of, penalties_shown, solve_coverages, solve_steps, with_model
from sosbands.report.table import Table, drawn_count, drawn_rows, read_table, split_test
from sosbands.report.why import explained
from sosbands.tuning.automatic import START_FACTOR
from sosbands.tuning.views import NO_SCALE

NO_WIDTH = 1e-3  # of the mean size of residuals: bands that reach less far in the mean are none


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
    """Fit bands and compute what the page shows: a path over symmetry penalties, scores, test rows, curves.

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
    lines = make_lines(table, model, fit_rows)
    places = Places(table, model, fit_rows, test_rows, lines)
    paths = _paths(model, places)
    coverages = _coverages(model, places, paths[0])
    learning, calibration = fit_rows[model.learning_rows_], fit_rows[model.calibration_rows_]
    rng = check_random_state(0)
    shown = (
        drawn_rows(learning, _shaping((*paths, *coverages)), rng),
        drawn_rows(calibration, calibration[:0], rng),
        test_rows,
    )
    rows = [rows_on(lines, table, model, numbers) for numbers in shown]
    target = name_of(y) if target_name is None else str(target_name)
    return Exploration(
        title=f"Prediction intervals for {target}" if title is None else str(title),
        target_name=target,
        confidence_level=float(model.confidence_level),
        calibration=model.calibration,
        score=model._score,
        sentence=_decision(model),
        reasons=() if model.tuning_ is None else tuple(model.tuning_.reasons),
        settings=_settings(model),
        base_scale=model.view_.base_scale,
        is_tuned=isinstance(model.symmetry_penalty, str),
        criterion=model.criterion_asked,
        model_name=model_name(model.estimator_),
        n_given=len(table),
        n_learning=len(learning),
        n_calibration=len(calibration),
        n_test_drawn=drawn_count(test_rows),
        axes=tuple(line.axis for line in lines),
        learning=rows[0],
        calibration_rows=rows[1],
        test=rows[2],
        test_unit=places.test_unit,
        curve_units=places.curve_units,
        paths=paths,
        coverages=coverages,
        why=explained(model, table, fit_rows, test_rows),
        notes=_notes(table, lines, (learning, calibration, test_rows), shown),
        support_limit=model.support_limit,
    )


def _paths(model: RecordedBands, places: Places) -> tuple[BandPath, ...]:
    """The path of the lengthscale in use, and that of another one if the data chose an infinite one."""
    asked = model.problem_.wanted["lengthscale"]
    penalties = penalties_shown(model, asked)
    solved, chosen = with_model(model, solve_steps(model, asked, penalties))
    criteria = criterion_of_steps(model, asked, penalties)
    _say(model, f"{len(penalties)} symmetry penalties solved, criterion evaluated")
    paths = [places.path(_words(model), _coverage(model), chosen, solved, criteria)]
    other = _other_lengthscale(model)
    if other is not None:
        solved, criteria = solve_steps(model, other, penalties), criterion_of_steps(model, other, penalties)
        _say(model, f"the same with the lengthscale {other:.3g}, for comparison")
        varies = "varying width" if model.view_.base_scale == NO_SCALE else "a varying multiple"
        name = f"{varies}, lengthscale {other:.3g}"
        paths.append(places.path(name, _coverage(model), None, solved, criteria))
    return tuple(paths)


def _coverages(model: RecordedBands, places: Places, own: BandPath) -> tuple[BandPath, ...]:
    """The path in use among those of other learning coverages, which have few steps and no criterion."""
    shown = coverages_shown(model)
    others = [coverage for coverage in shown if coverage != own.learning_coverage]
    penalties = few_of([step.symmetry_penalty for step in own.steps], own.chosen or 0)
    solved = solve_coverages(model, model.problem_.wanted["lengthscale"], others, penalties)
    paths = [places.path(own.name, *each) for each in zip(others, repeat(None), solved)]
    if others:
        _say(model, f"{len(others)} other learning coverages at {len(penalties)} symmetry penalties solved")
    return tuple(sorted([*paths, own], key=lambda path: path.learning_coverage))


def _coverage(model: RecordedBands) -> float:
    return float(model.problem_.wanted["learning_coverage"])


def _other_lengthscale(model: RecordedBands) -> float | None:
    """What to compare bands of constant width with, if the data chose these; where the search for others started."""
    report = model.tuning_
    if report is None:
        return None
    if not model.is_automatic:
        compared = report.homoscedastic and report.independence is not None
        return median_lengthscale(model.problem_.points) if compared else None
    is_chosen = isinstance(model.lengthscale, str) and model.lengthscale == "auto" and len(report.evaluations) > 0
    compared = is_chosen and np.ndim(report.lengthscale) == 0 and np.isinf(report.lengthscale)
    return START_FACTOR * median_lengthscale(model.problem_.points) if compared else None


def _say(model: RecordedBands, message: str) -> None:
    say("explore", message, model.verbose)


def _words(model: RecordedBands) -> str:
    """What the lengthscale makes of the bands."""
    lengthscale = model.lengthscale_
    if lengthscale is None:
        return "the lengthscale of the kernel given"
    if isinstance(lengthscale, dict):
        return "one lengthscale below, another above"
    if np.ndim(lengthscale):
        return "one lengthscale for each feature"
    if np.isinf(lengthscale):
        return "constant width" if model.view_.base_scale == NO_SCALE else "a constant multiple of the base scale"
    return f"lengthscale {lengthscale:.3g}"


def _settings(model: RecordedBands) -> str:
    view = model.view_
    return (
        f"base scale {view.base_scale}, noise features {view.noise_features}, "
        f"width penalty {model.width_penalty_:.4g}, learning coverage {model.learning_coverage_:.4g}, "
        f"{model.conformal_score_} score"
    )


def _decision(model: RecordedBands) -> str:
    if model.tuning_ is not None:
        return f"{model.tuning_.sentence}{_without_width(model)}"
    return f"Lengthscale and symmetry penalty were given, not chosen from the data.{_without_width(model)}"


def _without_width(model: RecordedBands) -> str:
    """Small width penalties may leave bands at zero, where sliding them shows nothing."""
    size, is_added = float(np.abs(model.problem_.z).mean()), model.conformal_score_ == "added"
    if not is_added or size == 0 or model.mean_lower_ + model.mean_upper_ > NO_WIDTH * size:
        return ""
    reach = "the same distance" if model.view_.base_scale == NO_SCALE else "the same multiple of the base scale"
    return f" The bands are as good as zero: calibration makes every interval reach {reach}."


def _shaping(paths: tuple[BandPath, ...]) -> IntArray:
    """Rows of X that shape a band of some step."""
    steps = [step for path in paths for step in path.steps]
    return np.unique(np.concatenate([part for step in steps for part in (step.active_lower, step.active_upper)]))


def _notes(
    table: Table, lines: list[Line], kinds: tuple[IntArray, ...], shown: tuple[IntArray, ...]
) -> tuple[str, ...]:
    """What the page leaves out."""
    notes = []
    used = sum(len(kind) for kind in kinds)
    if used < len(table):
        notes.append(f"Of {len(table)} rows given, a random sample of {used} was used.")
    *samples, test_rows = shown
    drawn = sum(len(rows) for rows in samples) + drawn_count(test_rows)
    if drawn < used:
        notes.append(f"Of {used} rows, a random sample of {drawn} is drawn; every number is of all of them.")
    without = len(table.names) - sum(line.column is not None for line in lines)
    if without:
        notes.append(f"{without} of {len(table.names)} features have no axis: not numbers, with gaps, or too many.")
    return tuple(notes)
