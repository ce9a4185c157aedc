"""Whether what a file gives is what the model gives, in parts of the width of its intervals."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.exceptions import ExportError, SosbandsWarning
from sosbands.point_models.spread import predict_with_spread
from sosbands.regressors import SoSBandRegressor
from sosbands.serving.build import GROUPS, STD, X
from sosbands.serving.program import Program
from sosbands.serving.table_steps import table_inputs
from sosbands.tables import TableEncoder
from sosbands.tuning.views import PREDICTION


def inputs_of(program: Program, model: SoSBandRegressor, rows: Any) -> dict[str, AnyArray]:
    """The inputs of a program for rows as the model takes them; these are repeated until each group has one."""
    with quietly():
        read = model._read(rows, reset=False)
        found: dict[str, AnyArray] = {}
        if isinstance(model.preprocessor_, TableEncoder):
            found |= table_inputs(model.preprocessor_, read.for_kernel)
        else:
            found[X] = np.ascontiguousarray(read.for_kernel, dtype=np.float64)
        if PREDICTION in program.inputs:
            seen = model._numbers(read) if model.model_sees_points_ else read.for_model
            mean, spread = predict_with_spread(model.estimator_, seen)
            found[PREDICTION] = mean[:, None]
            found |= {STD: spread[:, None]} if STD in program.inputs else {}
    if GROUPS in program.inputs:
        labels = np.unique(np.asarray(model.calibration_.groups))
        rounds = -(-len(labels) // len(read))
        found = {name: np.tile(values, (rounds, 1)) for name, values in found.items()}
        given = labels[np.arange(rounds * len(read)) % len(labels)][:, None]
        found[GROUPS] = given.astype(object) if labels.dtype.kind in "UO" else given.astype(np.int64)
    return found


def expected(
    program: Program, model: SoSBandRegressor, rows: Any, given: Mapping[str, AnyArray], lower_share: float
) -> tuple[Array, Array]:
    """Predictions (n,) and intervals (n, 2, k) of the model itself, for the rows as often as `given` has them."""
    levels = program.facts["confidence_level"]
    with quietly():
        if GROUPS not in given:
            rounds: list[dict[str, AnyArray]] = [{}]
        else:
            n = len(model._read(rows, reset=False))
            rounds = [{GROUPS: labels} for labels in given[GROUPS].reshape(-1, n)]
        found = [model._intervals(rows, levels, lower_share, **groups) for groups in rounds]
    ends = [np.stack([each for each, _ in made], axis=2) for _, _, made in found]
    return np.concatenate([mean for mean, _, _ in found]), np.concatenate(ends)


def disagreement(
    program: Program, model: SoSBandRegressor, rows: Any, scored: Mapping[str, Array], lower_share: float = 0.5
) -> float:
    """The largest difference of a prediction or of an end, in parts of the width of its interval.

    Infinite where one end is infinite and the other is not, or where something is no number. In place of a width that
    is zero or infinite stands the root mean square of the residuals.
    """
    mean, ends = expected(program, model, rows, inputs_of(program, model, rows), lower_share)
    given = np.stack([scored["lower"], scored["upper"]], axis=1)
    width = ends[:, 1:] - ends[:, :1]
    unit = np.where(np.isfinite(width) & (width > 0), width, model.residual_rms_ or 1.0)
    off = [_apart(given, ends) / unit]
    if PREDICTION in scored:
        off.append(_apart(scored[PREDICTION], mean[:, None]) / unit.min(axis=2))
    return float(max(each.max(initial=0.0) for each in off))


def check_agreement(found: float, tolerance: float, name: str) -> None:
    """Refuse a file that gives other intervals."""
    if not found <= tolerance:
        raise ExportError(
            f"{name}: its intervals differ from those of predict_interval by {found:.1e} of their width on rows that "
            f"it was checked with; expected at most {tolerance:.0e}. Nothing was written"
        )


def _apart(given: Array, wanted: Array) -> Array:
    with np.errstate(invalid="ignore"):
        found = np.where(given == wanted, 0.0, np.abs(given - wanted))
    return np.where(np.isnan(found), np.inf, found)


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of a prediction, which concern rows that are made up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SosbandsWarning)
        warnings.filterwarnings("ignore", message="X (does not have|has) .*feature names")
        yield
