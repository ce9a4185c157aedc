"""BandProblem: what bands are learnt from, between the point model's residuals and the tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sosbands._types import Array, IntArray
from sosbands.bands import penalty_scale
from sosbands.regressors.rows import without_outliers

AS_GIVEN = (
    "kernel",
    "symmetry_kind",
    "width_penalty",
    "trace_penalty",
    "frobenius_penalty",
    "learning_coverage",
    "constant",
)


@dataclass(frozen=True, eq=False)
class BandProblem:
    """The data of the bands, without outliers, and what is fixed before anything is tuned.

    Attributes
    ----------
    points, r : ndarray of shape (n, d) and (n,)
        What the kernel sees, and residuals.
    rows : ndarray of int
        Positions of these learning rows in what was given to `fit`.
    options : dict
        Kernel, penalties and their units, as arguments of `learn_bands` and of `tune`.
    """

    points: Array
    r: Array
    rows: IntArray
    options: dict[str, Any]


def band_problem(model: Any, points: Array, r: Array) -> BandProblem:
    """The problem that the settings of a `SoSBandRegressor` state for its learning rows."""
    keep = without_outliers(r, model.outlier_fraction)
    points, r = points[keep], r[keep]
    options: dict[str, Any] = {name: getattr(model, name) for name in AS_GIVEN}
    options["normalize"] = bool(model.normalize)
    if model.normalize and r.any():
        options["normalize"] = penalty_scale(points, r, model.kernel, model.rank, model.tol, model.solver)
    return BandProblem(points, r, model.learning_rows_[keep], options)
