"""Split conformal prediction around the same model, calibrated on the same rows: what widths are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sosbands.cli.intervals import BOTH, LOWER_SHARE, Asked
from sosbands.conformal import Band, Calibration

RECORD = "split_calibration_"  # attribute of a model that the command line has fitted


def record_split(fitted: Any, X: Any, y: Any, labels: Any) -> None:
    """Keep the errors of the point model at the calibration rows, if these were held back, in the fitted model."""
    held = fitted.calibration_rows_
    if not len(held) or np.isin(held, fitted.learning_rows_).any():
        return
    center = fitted.predict(X.iloc[held])
    found = Calibration.of(Band(center, center), y[held], None if labels is None else labels[held])
    setattr(fitted, RECORD, found)


def update_split(
    fitted: Any, X: Any, y: Any, labels: Any, *, window: int | None, decay: float | None, replace: bool
) -> None:
    """Give the record, if there is one, the same new rows as the calibration."""
    if not hasattr(fitted, RECORD):
        return
    center = fitted.predict(X)
    new = Calibration.of(Band(center, center), y, labels)
    old = getattr(fitted, RECORD)
    fading: dict[str, Any] = {"window": window, "decay": decay}
    setattr(fitted, RECORD, new.faded(**fading) if replace else old.extended(new, **fading))


def split_widths(fitted: Any, asked: Asked, levels: Sequence[float], labels: Any) -> list[float] | None:
    """Mean width at each level over rows with these labels; None for a model that has no record."""
    calibration = getattr(fitted, RECORD, None)
    if calibration is None:
        return None
    share = LOWER_SHARE[asked.side]
    sides = slice(0, 2) if asked.side == BOTH else slice(0, 1) if share else slice(1, 2)
    found = [calibration.quantiles(level, fitted.calibration, share, groups=labels) for level in levels]
    return [float(q[:, sides].sum(axis=1).mean()) for q in found]
