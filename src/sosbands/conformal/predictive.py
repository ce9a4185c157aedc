"""Quantiles, probabilities and ensembles of interval regressors: the conformal predictive distribution of each row."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from sosbands._arguments import check, is_count, read_numbers
from sosbands._types import Array, IntArray
from sosbands._words import share_of
from sosbands.conformal.arguments import read_probabilities
from sosbands.conformal.band import Band
from sosbands.conformal.calibration import Calibration, rows_by_label
from sosbands.conformal.distribution import Places
from sosbands.conformal.frames import NUMPY, named_columns, quantile_names
from sosbands.conformal.quantile import points_needed
from sosbands.exceptions import TooFewCalibrationPointsWarning


class Placed(NamedTuple):
    """Rows of a prediction that share their calibration places."""

    rows: IntArray
    band: Band
    places: Places
    weights: Array | None


class DistributionMixin:
    """The distribution of each row, by the places of the calibration points in their bands.

    What it gives depends on the bands and the calibration points, not on `confidence_level` and `calibration`.
    """

    def predict_quantile(self, X: Any, q: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Any:
        """Calibrated quantiles, increasing in q to the last digit.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Points.
        q : float or list of k floats
            In (0, 1).
        groups, likelihood_ratio : arrays of shape (n,), optional
            Given if and only if `conformalize` got them.

        Returns
        -------
        quantiles : array of shape (n,), or (n, k) for a list; or a data frame (see `set_output`)

        Notes
        -----
        Up to 1/2 at most a share q of new rows lies below its quantile, above 1/2 at least a share q lies at it or
        below it, on average over calibration sets; without ties the shares are within ``1/(m + 1)`` of q, with m
        calibration points that count alike (with those that fade, within the share of a new row in all weights).
        These are the ends of one-sided intervals with all of the miscoverage on their side.

        Warns
        -----
        TooFewCalibrationPointsWarning
            If there are too few calibration points for a q, so that its quantiles are infinite.
        """
        levels, many = read_probabilities(q)
        band, parts = self._placed("predict_quantile", X, groups, likelihood_ratio)
        found = np.empty((len(band), len(levels)))
        for part in parts:
            for k, level in enumerate(levels):
                found[part.rows, k] = part.places.quantiles(part.band, level, part.weights)
        self._warn_of_quantiles(found, levels, band)
        kind = getattr(self, "_sklearn_output_config", {}).get("intervals", NUMPY)
        if kind != NUMPY:
            return named_columns(found, quantile_names(levels, many), kind, getattr(X, "index", None))
        return found if many else found[:, 0]

    def predict_cdf(self, X: Any, y: Any, *, groups: Any = None, likelihood_ratio: Any = None) -> Array:
        """Probability of an observation up to y, by the calibrated distribution of each row.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Points.
        y : float, or array of shape (n,) or (n, k)
            Thresholds; or the observations themselves, of which these are the probability integral transforms.
        groups, likelihood_ratio : arrays of shape (n,), optional
            Given if and only if `conformalize` got them.

        Returns
        -------
        probabilities : array of shape (n,), or (n, k)
            In (0, 1): ``(#{places below y} + (#{places at y} + 1)/2) / (m + 1)`` over the m calibration points.
        """
        band, parts = self._placed("predict_cdf", X, groups, likelihood_ratio)
        thresholds = _read_thresholds(y, len(band))
        table = thresholds.reshape(len(band), -1)
        found = np.empty(table.shape)
        for part in parts:
            for k in range(table.shape[1]):
                found[part.rows, k] = part.places.probabilities(part.band, table[part.rows, k], part.weights)
        return found.reshape(thresholds.shape)

    def predict_ensemble(self, X: Any, size: int = 100, *, groups: Any = None, likelihood_ratio: Any = None) -> Array:
        """Equally likely values for each row, in increasing order: the calibration points, as many as are asked for.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Points.
        size : int
            How many; m of them are all that m calibration points say.
        groups, likelihood_ratio : arrays of shape (n,), optional
            Given if and only if `conformalize` got them.

        Returns
        -------
        values : array of shape (n, size)
            Finite, unless a calibration point had an infinite score: the share ``1/(m + 1)`` of new rows that may lie
            beyond all calibration points is left out.
        """
        check("size", size, is_count(size) and size >= 1, "an int >= 1")
        band, parts = self._placed("predict_ensemble", X, groups, likelihood_ratio)
        found = np.empty((len(band), size))
        for part in parts:
            found[part.rows] = part.places.ensemble(part.band, size)
        return found

    def _placed(self, wanted: str, X: Any, groups: Any, likelihood_ratio: Any) -> tuple[Band, list[Placed]]:
        """The band of all rows, and the parts of it with their calibration places."""
        calibration: Calibration = self._calibrated(wanted)  # type: ignore[attr-defined]
        band: Band = self._band(X)  # type: ignore[attr-defined]
        return band, placed(calibration, band, groups, likelihood_ratio)

    def _warn_of_quantiles(self, found: Array, levels: list[float], band: Band) -> None:
        """Of infinite ones, and of those at doubtful rows."""
        reasons = []
        for level, values in zip(levels, found.T, strict=True):
            infinite = int(np.count_nonzero(np.isinf(values)))
            if infinite:
                needed = points_needed(max(level, 1 - level))
                words = f"{share_of(infinite, len(values), 'quantile')} infinite"
                given = self._calibrated("predict_quantile").described()  # type: ignore[attr-defined]
                reasons.append(f"quantile {level:g} needs at least {needed:.0f} calibration points, {given}; {words}")
        if reasons:
            warnings.warn("; ".join(reasons), TooFewCalibrationPointsWarning, stacklevel=3)
        self._check_band(band)  # type: ignore[attr-defined]


def placed(calibration: Calibration, band: Band, groups: Any, likelihood_ratio: Any) -> list[Placed]:
    """The rows of a band with their calibration places, group by group."""
    places = calibration.places()
    labels, weights = calibration.read_rows(len(band), groups, likelihood_ratio)
    if calibration.decay is not None:
        weights = np.ones(len(band))  # beside which calibration rows count by their age
    if labels is None:
        return [Placed(np.arange(len(band)), band, places[None], weights)]
    return [
        Placed(rows, band.take(rows), places[label], None if weights is None else weights[rows])
        for label, rows in rows_by_label(labels)
    ]


def _read_thresholds(y: Any, n_rows: int) -> Array:
    """One number for all rows, one per row, or several per row."""
    values = read_numbers("y", y)
    if values.ndim == 0:
        values = np.full(n_rows, float(values))
    if values.ndim > 2 or len(values) != n_rows:
        raise ValueError(f"y has shape {values.shape}: expected a number, or ({n_rows},) or ({n_rows}, k)")
    if np.isnan(values).any():
        raise ValueError(f"y has {int(np.isnan(values).sum())} entries that are NaN: expected numbers")
    return values
