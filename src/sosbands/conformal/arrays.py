"""ArrayIntervals: calibration of what any model has said, given as arrays alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sosbands._arguments import check, check_choice, check_size, read_numbers
from sosbands._types import Array
from sosbands.conformal.asked import read_kind, read_level
from sosbands.conformal.band import Band, Told
from sosbands.conformal.calibration import Calibration
from sosbands.conformal.mixin import IntervalMixin

COLUMNS = ("prediction", "lower", "upper", "scale")


class ArrayIntervals(IntervalMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrated intervals from predictions, without their model.

    Rows are what was predicted of them: a mapping, or a data frame, with some of the columns "prediction", "lower" and
    "upper" (ends that the model gives) and "scale" (its standard deviation, or any other size of its errors). All else
    is as for the other interval regressors: `conformalize`, `update`, `intervals`, `predict_interval`, `evaluate`,
    quantiles and distributions, with levels, groups and likelihood ratios.

    Parameters
    ----------
    confidence_level : float
        Default level.
    calibration : {"symmetric", "asymmetric", "conditional"}
        One quantile that moves both ends, one for each end, or one for each row: right on average over groups, which
        may overlap, and over neighbourhoods of what was predicted.
    conformal_score : {"added", "scaled"}
        What calibration does to the ends: it adds one number, in units of the scale if there is one (conformalised
        quantile regression), or it multiplies by how much they are away from the prediction. Without ends both are
        the same: split conformal prediction, with a scale the normalised one.

    Examples
    --------
    >>> import numpy as np
    >>> from sosbands.conformal import ArrayIntervals
    >>> y = np.arange(1.0, 20.0)
    >>> model = ArrayIntervals(confidence_level=0.9).conformalize({"prediction": np.zeros(19)}, y)
    >>> model.predict_interval({"prediction": [100.0]})
    array([[ 82., 118.]])
    """

    def __init__(
        self, *, confidence_level: float = 0.9, calibration: str = "symmetric", conformal_score: str = "added"
    ) -> None:
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.conformal_score = conformal_score

    def told(self, X: Any) -> Told:
        """The band that these columns are."""
        read_level(self.confidence_level)
        read_kind(self.calibration, conditional=True)
        check_choice("conformal_score", self.conformal_score, ("added", "scaled"))
        known = _columns(X)
        pair = ("lower" in known) == ("upper" in known) and ("lower" in known or "prediction" in known)
        check("X", list(known), pair, "the column 'prediction', or 'lower' and 'upper', or all three; 'scale' or not")
        seen = vars(self).get("columns_", list(known))
        check("X", list(known), list(known) == seen, f"the columns {seen}, as calibrated")
        lengths = [len(each) for each in known.values()]
        check("X", dict(zip(known, lengths, strict=True)), len(set(lengths)) == 1, "columns of one length")
        scale = known.get("scale", np.ones(lengths[0]))
        check("scale", float(scale.min(initial=0.0)), bool((scale >= 0).all()), "numbers >= 0")
        if "lower" not in known:
            center = known["prediction"]
            return Told(Band(center, center, scale), center, known)
        lower, upper = known["lower"], known["upper"]
        center = known.get("prediction", lower / 2 + upper / 2)
        if self.conformal_score == "added":
            return Told(Band(lower, upper, scale), center, known)
        below, above = np.maximum(center - lower, 0.0), np.maximum(upper - center, 0.0)
        return Told(Band(center, center, below, above, least_score=0.0), center, known)

    def _scored(self, caller: str, X: Any, *given: Any) -> Calibration:
        before = self.__dict__.pop("columns_", None) if caller == "conformalize" else None
        try:
            made = super()._scored(caller, X, *given)
            before = list(_columns(X))
        finally:  # what failed leaves the calibration as it was
            if before is not None:
                self.columns_: list[str] = before
        return made

    def _metric_points(self, rows: Any) -> dict[str, Any]:
        """Neighbours are rows of which the same was predicted."""
        return {"X": np.column_stack(list(_columns(rows).values()))}


def _columns(X: Any) -> dict[str, Array]:
    """The columns that there are, in one order."""
    names = X.columns if hasattr(X, "columns") else X.keys() if hasattr(X, "keys") else None
    fine = names is not None
    check("X", type(X).__name__, fine, f"a mapping or a data frame with some of {list(COLUMNS)}")
    return {name: _vector(name, X[name]) for name in COLUMNS if names is not None and name in names}


def _vector(name: str, values: Any) -> Array:
    numbers = read_numbers(name, values)
    check(name, numbers.shape, numbers.ndim == 1, "one number for each row")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise ValueError(f"{name} has {len(bad)} entries that are NaN or infinite, the first in row {bad[0]}")
    check_size(name, numbers)
    return numbers
