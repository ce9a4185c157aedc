"""BandSolution: what learn_bands returns, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass

from sosbands._types import Array, IntArray
from sosbands.bands.functions import SoSFunction
from sosbands.problems import DualPoint
from sosbands.solvers import HistoryRow, Status


@dataclass(frozen=True, eq=False)
class BandSolution:
    """Two band functions and the proof of their quality.

    Attributes
    ----------
    lower, upper : SoSFunction
        ``f_lo`` and ``f_up``; call them with points. At the learning points they cover every residual, except those of
        `outside_lower` and `outside_upper` if ``learning_coverage < 1``.
    dual_value, primal_value : float
        Lower and upper bound of the optimal value; `primal_value` is attained by `lower` and `upper`.
    gap : float
        ``(primal_value - dual_value) / primal_value``.
    violation : float
        How far the farthest residual lies outside, relative to the RMS of the residuals: rounding only, unless
        ``learning_coverage < 1`` or the gap is infinite.
    status : Status
    iterations, decompositions : int
    seconds : float
    rank : tuple of int
        Numbers of squares in `lower` and `upper`.
    active_lower, active_upper : ndarray of int
        Learning rows with a positive multiplier that lie on the band: those that shape it.
    outside_lower, outside_upper : ndarray of int
        Learning rows whose multiplier is as large as the price of a row outside: they pull at the band from outside,
        however far they are. None if ``learning_coverage`` is 1.
    values_lower, values_upper : ndarray of shape (n,)
        Band functions at the learning points.
    dual : DualPoint
        Multipliers.
    history : tuple of HistoryRow
        Values, gap, decompositions and seconds per certified point. For penalty 0 the rows of the lower problem come
        first and those of the upper one after them, each with its own values; a solve on subspaces certifies its
        last points only.
    """

    lower: SoSFunction
    upper: SoSFunction
    dual_value: float
    primal_value: float
    gap: float
    violation: float
    status: Status
    iterations: int
    decompositions: int
    seconds: float
    rank: tuple[int, int]
    active_lower: IntArray
    active_upper: IntArray
    outside_lower: IntArray
    outside_upper: IntArray
    values_lower: Array
    values_upper: Array
    dual: DualPoint
    history: tuple[HistoryRow, ...]

    def __repr__(self) -> str:
        """Readable, one fact per line."""
        features = self.lower.features
        below, above = len(self.outside_lower), len(self.outside_upper)
        outside = f"  outside        {below} points below, {above} above, by {self.violation:.2g} RMS at most\n"
        return (
            f"BandSolution({self.status.value}: certified relative gap {self.gap:.2g})\n"
            f"  optimal value  between {self.dual_value:.8g} and {self.primal_value:.8g}\n"
            f"  mean width     lower {self.values_lower.mean():.4g}, upper {self.values_upper.mean():.4g}"
            f" at {len(self.values_lower)} learning points\n"
            f"  squares        lower {self.rank[0]}, upper {self.rank[1]}, in {features.rank} features"
            f" (trace left out {features.trace_left_out:.1g})\n"
            f"  shaped by      {len(self.active_lower)} points below, {len(self.active_upper)} above\n"
            f"{outside if below + above else ''}"
            f"  work           {self.iterations} iterations, {self.decompositions} decompositions,"
            f" {self.seconds:.3g} s"
        )

    @property
    def certificate(self) -> dict[str, float | int | str]:
        """How well the problem was solved, as plain numbers and words."""
        features = (self.lower.features, self.upper.features)
        return {
            "status": self.status.value,
            "dual_value": self.dual_value,
            "primal_value": self.primal_value,
            "gap": self.gap,
            "violation": self.violation,
            "n_outside": len(self.outside_lower) + len(self.outside_upper),
            "iterations": self.iterations,
            "decompositions": self.decompositions,
            "seconds": self.seconds,
            "n_features": max(each.rank for each in features),
            "trace_left_out": max(each.trace_left_out for each in features),
        }
