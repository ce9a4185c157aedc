"""A model along a stream of rows with known targets: coverage, widths, the test for drift, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._arguments import check, is_count
from sosbands._types import Array, BoolArray, IntArray
from sosbands._words import many, share_of
from sosbands.conformal import interval, points_needed, side_levels
from sosbands.conformal.asked import Kind, read_target
from sosbands.online.adaptive import AdaptiveIntervals, followed_calibration
from sosbands.online.drift import DriftTest

SPANS = 20  # in a stream, of rows that rolling means are over
LEAST_SPAN, MOST_SPAN = 50, 1000


@dataclass(frozen=True, eq=False)
class Monitoring:
    """What was seen of n rows in their order.

    Attributes
    ----------
    confidence_level, alarm_level : float
        Of the intervals and of the test.
    inside, width : ndarray of shape (n,)
        Of the intervals of the model as it is.
    adaptive_inside, adaptive_width : ndarray of shape (n,)
        Of those that `AdaptiveIntervals` would have given.
    log10_martingale : ndarray of shape (n,)
        That of `DriftTest` after each row; the alarm is at ``-log10(alarm_level)``.
    alarm, began : int or None
        Positions of rows, from 0 on: of the alarm, and about where the drift set in. `words` advises to calibrate with
        the rows from `began` on. As it is chosen by looking at the scores, these are not exactly exchangeable with new
        ones, and their calibration has no exact promise.
    span : int
        Rows that rolling means and medians are over.
    n_calibration : int
        Calibration rows of the model.
    calibration : {"symmetric", "asymmetric"}
        Of the model.
    """

    confidence_level: float
    alarm_level: float
    inside: BoolArray
    width: Array
    adaptive_inside: BoolArray
    adaptive_width: Array
    log10_martingale: Array
    alarm: int | None
    began: int | None
    span: int
    n_calibration: int
    calibration: Kind

    def __len__(self) -> int:
        return len(self.inside)

    def rolling(self, values: Any, places: IntArray, of: Callable[..., Any] = np.mean) -> Array:
        """Mean, or another statistic, of the last `span` rows up to each place; of fewer at the start."""
        numbers = np.asarray(values, dtype=float)
        return np.array([of(numbers[max(0, place + 1 - self.span) : place + 1]) for place in places.tolist()])

    def blocks(self, count: int = 10) -> list[dict[str, float]]:
        """A row of numbers for each of so many stretches of the stream.

        Keys: first, last (rows, from 1 on), coverage, median_width, adaptive_coverage, adaptive_median_width,
        adaptive_infinite (how many of them are) and martingale, its value after the last row.
        """
        edges = np.unique(np.linspace(0, len(self), min(count, len(self)) + 1).round().astype(int)).tolist()
        return [
            {
                "first": first + 1,
                "last": last,
                "coverage": float(self.inside[first:last].mean()),
                "median_width": float(np.median(self.width[first:last])),
                "adaptive_coverage": float(self.adaptive_inside[first:last].mean()),
                "adaptive_median_width": float(np.median(self.adaptive_width[first:last])),
                "adaptive_infinite": int(np.isinf(self.adaptive_width[first:last]).sum()),
                "martingale": float(10 ** min(self.log10_martingale[last - 1], 300.0)),
            }
            for first, last in zip(edges, edges[1:], strict=False)
        ]

    @property
    def since(self) -> float | None:
        """Coverage of the rows from where the drift began on; None without an alarm."""
        return None if self.began is None else float(self.inside[self.began :].mean())

    def words(self) -> str:
        """Whether and when the rows drifted, and what to do."""
        level, inside = _percent(self.confidence_level), _percent(float(self.inside.mean()))
        start = f"{inside} of {many(len(self), 'row')} are in their {level} interval"
        endless = int(np.isinf(self.adaptive_width).sum())
        adaptive = f"of adaptive intervals it would have been {_percent(float(self.adaptive_inside.mean()))}"
        adaptive += f", but {share_of(endless, len(self), 'interval')} infinite." if endless else "."
        if self.alarm is None or self.began is None:
            most = 10 ** max(0.0, float(self.log10_martingale.max()))
            return (
                f"{start}; {adaptive}\nNo drift found: the martingale reached {most:.3g}, and the alarm is at "
                f"{1 / self.alarm_level:.4g}. Nothing has to be done; calibration rows may be added."
            )
        later = len(self) - self.began
        needed = max(LEAST_SPAN, *map(points_needed, side_levels(self.confidence_level, self.calibration)))
        again = (
            f"recalibrate with the {many(later, 'row')} since then"
            if later >= needed
            else f"recalibrate once there are {needed:.0f} rows since then ({later} so far)"
        )
        return (
            f"{start}; {adaptive}\nDrift found at row {self.alarm + 1}, which without drift would happen in at most "
            f"{_percent(self.alarm_level)} of all streams. It set in at about row {self.began + 1}, and from there on "
            f"{_percent(self.since or 0.0)} are inside.\nWhat to do: {again}, fit again when they are enough to learn "
            "from, and use adaptive intervals in the meantime, or for good if rows go on drifting."
        )


def monitor(
    model: Any,
    X: Any,
    y: Any,
    confidence_level: float | None = None,
    *,
    level: float = 0.01,
    span: int | None = None,
    rate: float | str = "auto",
    window: int | None = 1000,
    random_state: Any = 0,
) -> Monitoring:
    """Follow a model along rows in their order.

    Parameters
    ----------
    model : interval regressor
        Fitted and calibrated, as for `AdaptiveIntervals`, on other rows. It is not changed.
    X, y : array or data frame of shape (n, n_features), array of shape (n,)
        Rows in their order, and their targets.
    confidence_level : float, optional
        By default that of the model.
    level : float in (0, 1)
        Of `DriftTest`.
    span : int, optional
        Rows that rolling means are over; by default a twentieth of them, from 50 to 1000; of less than 150 a
        third.
    rate, window
        Of `AdaptiveIntervals`.
    random_state : int, RandomState or None
        Of `DriftTest`.
    """
    calibration = followed_calibration(model, "monitor")
    adaptive = AdaptiveIntervals(model, confidence_level, rate=rate, window=window)
    check("span", span, span is None or (is_count(span) and span >= 1), "None or a number of rows >= 1")
    test = DriftTest(model, level=level, random_state=random_state)
    band = model.told(X).band
    observed = read_target(y, len(band))
    n, wanted, kind = len(observed), adaptive.confidence_level, model.calibration
    check("span", span, span is None or span <= n, f"at most the number of rows, {n}")
    ends, _ = interval(band, *calibration.quantiles(wanted, kind)[0].tolist())
    followed = adaptive.follow_band(band, observed)
    test.update_band(band, observed)
    usual = int(np.clip(n // SPANS, min(LEAST_SPAN, max(1, n // 3)), MOST_SPAN))
    return Monitoring(
        confidence_level=wanted,
        alarm_level=test.level,
        inside=(ends[:, 0] <= observed) & (observed <= ends[:, 1]),
        width=ends[:, 1] - ends[:, 0],
        adaptive_inside=followed.inside,
        adaptive_width=followed.ends[:, 1] - followed.ends[:, 0],
        log10_martingale=test.log_martingale_ / np.log(10),
        alarm=test.alarm_,
        began=test.began_,
        span=usual if span is None else int(span),
        n_calibration=len(calibration),
        calibration=kind,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
