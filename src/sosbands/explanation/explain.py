"""Widths taken apart: exact shares of landmarks and of features, against the typical learning row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.linalg import solve_triangular

from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.bands import SoSFunction
from sosbands.bands.functions import evaluate_pair
from sosbands.conformal import Score, interval
from sosbands.conformal.band import sides_of
from sosbands.exceptions import NoTypicalWidthError
from sosbands.explanation.result import Explanation

LEAST_BAND = 1e-12  # of the typical one: no band is taken for less, so that logarithms are finite
MOST_ROWS = 1000  # whose median stands for that of all learning rows: its error is then some 2 % of their spread
ALL_ORDERS = 4  # groups of features up to which all orders are tried, at most 24; of more a sample
PAIRS = 8  # of sampled orders, each with its reverse


@dataclass(frozen=True, eq=False)
class TypicalRows:
    """Bands at learning rows, before any calibration, and names for the landmarks.

    Attributes
    ----------
    unit, lower, upper, prediction : ndarray of shape (n,)
        Base scale, band functions and prediction at learning rows, at most 1000 of them, drawn at random.
    point, row : ndarray of shape (d,), int
        Noise features of the typical row, and its position in what `fit` was given: of all learning rows the one
        nearest to the medians of noise features and band, in standard deviations.
    landmark_rows : pair of ndarray of int
        Positions in what `fit` was given of the landmarks below and above.
    least : float
        The least target of all learning rows, on the scale of learning.
    """

    unit: Array
    lower: Array
    upper: Array
    prediction: Array
    point: Array
    row: int
    landmark_rows: tuple[IntArray, IntArray]
    least: float

    @classmethod
    def of(
        cls,
        points: Array,
        unit: Array,
        values: tuple[Array, Array],
        prediction: Array,
        rows: IntArray,
        functions: tuple[SoSFunction, SoSFunction],
        least: float,
    ) -> TypicalRows:
        """From what the kernel sees of learning rows, base scale, bands and prediction there, positions in `fit`."""
        table = np.column_stack([points, values[0] + values[1]])
        spread = table.std(axis=0)
        away = (table - np.median(table, axis=0)) / np.where(spread > 0, spread, 1.0)
        middle = int(np.argmin(np.square(away).sum(axis=1)))
        some = np.arange(len(rows))
        if len(rows) > MOST_ROWS:
            some = np.sort(np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False))
        place = {point.tobytes(): k for k, point in reversed(list(enumerate(points)))}  # of equal points the first
        below, above = (rows[[place[each.tobytes()] for each in side.features.landmarks]] for side in functions)
        told = values[0][some], values[1][some], prediction[some]
        return cls(unit[some], *told, points[middle].copy(), int(rows[middle]), (below, above), least)


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
    """Take the widths of intervals apart, as they are given to users, at noise features `points` and base scales.

    `groups` are columns of the noise features by the name of what they are made of; the rest is as in `Explanation`.
    """
    typical_width = float(np.median(bands.widths(typical.lower, typical.upper, typical.unit)))
    if not 0 < typical_width < np.inf:
        raise NoTypicalWidthError(
            f"the typical interval at confidence_level={confidence_level:g} has the width {typical_width:g}, which "
            "nothing can be compared with: expected a finite width above 0"
        )
    s_lo, s_up = sides_of(unit)
    typical_unit = float(np.median(typical.unit))
    typical_band = typical_width / typical_unit

    def log_band(at: Array) -> Array:
        below, above, _ = evaluate_pair(bands.lower, bands.upper, at)
        return np.asarray(np.log(np.maximum(bands.widths(below, above, 1.0) / typical_band, LEAST_BAND)))

    base_scale, band = np.log((s_lo + s_up) / 2 / typical_unit), log_band(points)
    with np.errstate(divide="ignore"):
        calibration = np.log(width / typical_width) - base_scale - band
    below, above, support = evaluate_pair(bands.lower, bands.upper, points)
    left = landmark_parts(bands.lower, points)
    right = left if bands.upper is bands.lower else landmark_parts(bands.upper, points)
    if bands.upper.features is bands.lower.features:  # landmarks in common contribute together
        landmarks, landmark_rows = s_lo[:, None] * left + s_up[:, None] * right, typical.landmark_rows[0]
    else:
        landmarks = np.hstack([s_lo[:, None] * left, s_up[:, None] * right])
        landmark_rows = np.concatenate(typical.landmark_rows)
    off_data = (s_lo * bands.lower.beyond + s_up * bands.upper.beyond) * (1.0 - support)
    reach = s_lo * below + s_up * above
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


@ONE_THREAD
def landmark_parts(function: SoSFunction, points: Array) -> Array:
    """What each landmark contributes to ``Phi(x)' A Phi(x)``, shape (n, landmarks); the rest is that of the constant.

    With ``u = B' Phi`` that is ``u'u``, ``u(x) = sum_j W_j(x) u(p_j) + (1 - sum_j W_j(x)) u_0``, ``W = K_PP^-1 k_P``
    and u_0 what the constant gives. Landmark j contributes ``W_j(x) u(x)'u(p_j)``: all at itself, nothing at others.
    """
    features, B = function.features, function.B
    if function.ridge:
        B = np.hstack([B, np.sqrt(function.ridge) * np.eye(len(B))])
    first = 1 if features.constant else 0
    at_landmarks = features.L @ B[first:] + features.constant * (B[:1] if first else 0.0)
    parts = [np.zeros((0, len(features.L)))]
    for Phi in features.blocks(points):
        W = solve_triangular(features.L, Phi[first:], lower=True, trans="T", check_finite=False)
        parts.append((W * (at_landmarks @ (B.T @ Phi))).T)
    return np.concatenate(parts)


def feature_parts(
    value: Callable[[Array], Array], points: Array, reference: Array, groups: Sequence[IntArray]
) -> Array:
    """Shapley values of groups of columns, shape (n, groups), which sum to ``value(points) - value(reference)``.

    A group gets the mean change over orders in which columns of the reference are replaced by those of a row: all
    orders of up to four groups; of more eight random ones and their reverses, whose shares are estimates.
    """
    known: dict[frozenset[int], Array] = {}

    def at(taken: frozenset[int]) -> Array:
        if taken not in known:
            mixed = np.tile(reference, (len(points), 1))
            for k in taken:
                mixed[:, groups[k]] = points[:, groups[k]]
            known[taken] = value(mixed)
        return known[taken]

    orders: list[tuple[int, ...]]
    if len(groups) <= ALL_ORDERS:
        orders = list(permutations(range(len(groups))))
    else:
        rng = np.random.default_rng(0)
        orders = [tuple(rng.permutation(len(groups)).tolist()) for _ in range(PAIRS)]
        orders += [each[::-1] for each in orders]
    shares = np.zeros((len(points), len(groups)))
    for order in orders:
        for place, k in enumerate(order):
            shares[:, k] += at(frozenset(order[: place + 1])) - at(frozenset(order[:place]))
    return shares / len(orders)
