"""explain_width: every part of an explanation, from intervals and what their bands are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.bands import SoSFunction
from sosbands.bands.sos import evaluate_pair
from sosbands.conformal import Score, interval
from sosbands.exceptions import NoTypicalWidthError
from sosbands.explanation.parts import feature_parts, landmark_parts
from sosbands.explanation.result import Explanation
from sosbands.explanation.typical import TypicalRows

LEAST_BAND = 1e-12  # of the typical one: no band is taken for less, so that logarithms are finite


@dataclass(frozen=True, eq=False)
class Bands:
    """What makes intervals of noise features: both functions, the score, and the quantiles of all calibration rows."""

    lower: SoSFunction
    upper: SoSFunction
    score: Score
    quantiles: tuple[float, float]

    def widths(self, below: Array, above: Array, unit: Array | float) -> Array:
        """Of intervals with these bands and base scales; around 0, which loses no digits."""
        band = self.score.band(np.zeros(len(below)), below, above, unit=unit)
        ends, _ = interval(band, *self.quantiles)
        return np.asarray(ends[:, 1] - ends[:, 0])

    def at(self, points: Array) -> Array:
        """Widths in base scales."""
        below, above, _ = evaluate_pair(self.lower, self.upper, points)
        return self.widths(below, above, 1.0)


def explain_width(
    width: Array,
    points: Array,
    unit: Array,
    bands: Bands,
    typical: TypicalRows,
    groups: Mapping[str, IntArray],
    *,
    confidence_level: float,
    support_limit: float,
    scale_name: str,
    calibrated_by: str,
) -> Explanation:
    """Take the widths of intervals apart.

    Parameters
    ----------
    width : ndarray of shape (n,)
        Of the intervals, as they are given to users.
    points : ndarray of shape (n, d)
        Noise features.
    unit : ndarray of shape (n,)
        Base scale.
    bands : Bands
    typical : TypicalRows
    groups : mapping from str to ndarray of int
        Columns of the noise features by the name of what they are made of.
    confidence_level, support_limit, scale_name, calibrated_by
        As in `Explanation`.
    """
    typical_width = float(np.median(bands.widths(typical.lower, typical.upper, typical.unit)))
    if not 0 < typical_width < np.inf:
        raise NoTypicalWidthError(
            f"the typical interval at confidence_level={confidence_level:g} has the width {typical_width:g}, which "
            "nothing can be compared with: expected a finite width above 0"
        )
    typical_unit = float(np.median(typical.unit))
    typical_band = typical_width / typical_unit

    def log_band(at: Array) -> Array:
        return np.asarray(np.log(np.maximum(bands.at(at) / typical_band, LEAST_BAND)))

    base_scale, band = np.log(unit / typical_unit), log_band(points)
    with np.errstate(divide="ignore"):
        calibration = np.log(width / typical_width) - base_scale - band
    below, above, support = evaluate_pair(bands.lower, bands.upper, points)
    landmarks, landmark_rows = _landmarks(bands, typical, points)
    landmarks *= unit[:, None]
    off_data = unit * (bands.lower.beyond + bands.upper.beyond) * (1.0 - support)
    reach = unit * (below + above)
    return Explanation(
        width=width,
        typical_width=typical_width,
        confidence_level=confidence_level,
        base_scale=base_scale,
        band=band,
        calibration=calibration,
        features=feature_parts(log_band, points, typical.point, list(groups.values())),
        feature_names=tuple(groups),
        typical_band=float(log_band(typical.point[None])[0]),
        typical_row=typical.row,
        landmarks=landmarks,
        landmark_rows=landmark_rows,
        constant=reach - off_data - landmarks.sum(axis=1),
        off_data=off_data,
        added=width - reach,
        support=support,
        support_limit=support_limit,
        scale_name=scale_name,
        calibrated_by=calibrated_by,
    )


def _landmarks(bands: Bands, typical: TypicalRows, points: Array) -> tuple[Array, IntArray]:
    """Shares of both functions by landmark, those that they have in common together."""
    below = landmark_parts(bands.lower, points)
    above = below if bands.upper is bands.lower else landmark_parts(bands.upper, points)
    if bands.upper.features is bands.lower.features:
        return below + above, typical.landmark_rows[0]
    return np.hstack([below, above]), np.concatenate(typical.landmark_rows)
