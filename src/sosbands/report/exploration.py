"""explore: hold out test rows, fit, and compute everything that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sosbands._progress import say
from sosbands._types import IntArray
from sosbands.kernels import median_lengthscale
from sosbands.plotting.rows import target_name as name_of
from sosbands.point_models import model_name
from sosbands.report.data import BandPath, Exploration
from sosbands.report.places import Line, Places, make_lines, rows_on
from sosbands.report.recorded import RecordedBands, recorded
from sosbands.report.steps import criterion_of_steps, penalties_shown, solve_steps, with_model
from sosbands.report.table import Table, drawn_count, drawn_rows, read_table, split_test


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
    paths = _paths(model, Places(table, model, fit_rows, test_rows, lines))
    learning, calibration = fit_rows[model.learning_rows_], fit_rows[model.calibration_rows_]
    rng = check_random_state(0)
    shown = (drawn_rows(learning, _shaping(paths), rng), drawn_rows(calibration, calibration[:0], rng), test_rows)
    rows = [rows_on(lines, table, model, numbers) for numbers in shown]
    target = name_of(y) if target_name is None else str(target_name)
    return Exploration(
        title=f"Prediction intervals for {target}" if title is None else str(title),
        target_name=target,
        confidence_level=float(model.confidence_level),
        calibration=model.calibration,
        score=model._score,
        sentence=_decision(model),
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
        paths=paths,
        notes=_notes(table, lines, (learning, calibration, test_rows), shown),
    )


def _paths(model: RecordedBands, places: Places) -> tuple[BandPath, ...]:
    """The path of the lengthscale in use, and that of the median one if bands of constant width were chosen."""
    asked, report = model.lengthscale_asked, model.tuning_
    penalties = penalties_shown(model, asked)
    solved, chosen = with_model(model, solve_steps(model, asked, penalties))
    criteria = criterion_of_steps(model, asked, penalties)
    _say(model, f"{len(penalties)} symmetry penalties solved, criterion evaluated")
    paths = [places.path(_words(model.lengthscale_), chosen, solved, criteria)]
    if report is not None and report.homoscedastic and report.independence is not None:
        median = median_lengthscale(model.problem_.points)
        solved, criteria = solve_steps(model, median, penalties), criterion_of_steps(model, median, penalties)
        _say(model, "the same with the median lengthscale, for comparison")
        paths.append(places.path(f"varying width, lengthscale {median:.3g}", None, solved, criteria))
    return tuple(paths)


def _say(model: RecordedBands, message: str) -> None:
    say("explore", message, model.verbose)


def _words(lengthscale: Any) -> str:
    if lengthscale is None:
        return "the lengthscale of the kernel given"
    if isinstance(lengthscale, dict):
        return "one lengthscale below, another above"
    if np.ndim(lengthscale):
        return "one lengthscale for each feature"
    return "constant width" if np.isinf(lengthscale) else f"lengthscale {lengthscale:.3g}"


def _decision(model: RecordedBands) -> str:
    if model.tuning_ is not None:
        return str(model.tuning_.sentence)
    return "Lengthscale and symmetry penalty were given, not chosen from the data."


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
