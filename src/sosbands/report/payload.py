"""What the script of the page reads: the exploration as rounded numbers and words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.report.data import BandPath, Exploration, Rows, Step

DIGITS = 5  # significant ones; of targets and bands in units of the size of the residuals
LEVELS = tuple(k / 100 for k in range(50, 100))


def payload(data: Exploration) -> dict[str, Any]:
    """Lists, numbers and words; infinity is None."""
    levels = sorted({*LEVELS, data.confidence_level})
    unit = _unit(data)
    steps = [_resolution(*(rows.positions[k] for rows in _kinds(data))) for k in range(len(data.axes))]
    return {
        "target": data.target_name,
        "levels": levels,
        "level": levels.index(data.confidence_level),
        "calibration": data.calibration,
        "sentence": data.sentence,
        "tuned": data.is_tuned,
        "criterion": data.criterion,
        "model": data.model_name,
        "counts": [data.n_given, data.n_learning, data.n_calibration, len(data.test)],
        "drawn_test": data.n_test_drawn,
        "notes": data.notes,
        "axes": [
            {
                "name": axis.name,
                "prediction": axis.is_prediction,
                "x": _rounded(axis.grid, step),
                "center": _rounded(axis.prediction, unit),
            }
            for axis, step in zip(data.axes, steps, strict=True)
        ],
        "learning": _rows(data.learning, unit, steps),
        "calibration_rows": _rows(data.calibration_rows, unit, steps),
        "test": _rows(data.test, unit, steps),
        "paths": [_path(path, data, unit) for path in data.paths],
    }


def _kinds(data: Exploration) -> tuple[Rows, Rows, Rows]:
    return data.learning, data.calibration_rows, data.test


def _unit(data: Exploration) -> float:
    """Resolution of targets and bands: a few digits of the size of the residuals, however large the targets are."""
    errors = np.concatenate([rows.y - rows.prediction for rows in _kinds(data)])
    size = float(np.sqrt(np.mean(np.square(errors))))
    return 10.0**-DIGITS * size if size > 0 else _resolution(data.test.y)


def _resolution(*values: Array) -> float:
    """The same for numbers that spread over a range."""
    return 10.0**-DIGITS * (float(np.ptp(np.concatenate(values))) or 1.0)


def _rows(rows: Rows, unit: float, steps: list[float]) -> dict[str, Any]:
    return {
        "number": rows.numbers.tolist(),
        "y": _rounded(rows.y, unit),
        "center": _rounded(rows.prediction, unit),
        "x": [_rounded(x, step) for x, step in zip(rows.positions, steps, strict=True)],
    }


def _path(path: BandPath, data: Exploration, unit: float) -> dict[str, Any]:
    return {
        "name": path.name,
        "chosen": path.chosen,
        "steps": [_step(step, data, unit) for step in path.steps],
        "test_support": _rounded(path.test_support, 1e-3),
        "curve_support": [_rounded(support, 1e-3) for support in path.curve_support],
    }


def _step(step: Step, data: Exploration, unit: float) -> dict[str, Any]:
    scores = [step.lower_scores, step.upper_scores]
    if data.calibration == "symmetric":
        scores = [np.maximum(*scores)]
    position = {number: k for k, number in enumerate(data.learning.numbers.tolist())}
    return {
        "penalty": None if math.isinf(step.symmetry_penalty) else step.symmetry_penalty,
        "criterion": None if step.criterion is None else _significant(step.criterion),
        "certificate": {
            key: _significant(value) if isinstance(value, float) else value for key, value in step.certificate.items()
        },
        "squares": step.squares,
        "active": [[position[k] for k in rows.tolist()] for rows in (step.active_lower, step.active_upper)],
        "difference": _significant(step.difference),
        "scores": [_rounded(np.sort(side), unit) for side in scores],
        "test": [_rounded(side, unit) for side in step.test],
        "curves": [[_rounded(side, unit) for side in curve] for curve in step.curves],
    }


def _rounded(values: Array, unit: float) -> list[float]:
    """Rounded to a power of ten that is at most the unit."""
    rounded: list[float] = np.round(values, math.ceil(-math.log10(unit))).tolist()
    return [int(value) if value.is_integer() else value for value in rounded]  # "12", not "12.0"


def _significant(value: float) -> float | None:
    """The number with five digits; None for infinity, which JSON does not know."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
