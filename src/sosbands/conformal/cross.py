"""Cross-conformal intervals (CV+): every row is scored by a copy that has not learnt from its fold.

With K copies, k(i) that of row i, and R_i the score of row i by it, the ends at a new x are order statistics of the n
ends that the copies would give with these scores (Barber, Candes, Ramdas, Tibshirani 2021, there for ``|y - m(x)|``):

    upper end: the r-th smallest of  upper_k(i)(x) + R_i upper_unit_k(i)(x),   r = ceil((1 - alpha)(n + 1)),
    lower end: the r-th largest of   lower_k(i)(x) - R_i lower_unit_k(i)(x),

infinite if ``r > n``. The r-th largest of n is the ``floor(alpha (n + 1))``-th smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, Self

import numpy as np

from sosbands._types import AnyArray, Array, BoolArray, IntArray
from sosbands.conformal.asked import Asked, Intervals, Kind
from sosbands.conformal.band import Band, Told, lower_scores, reach, upper_scores
from sosbands.conformal.calibration import Calibration, rows_by_label, side_levels
from sosbands.conformal.quantile import conformal_rank

CELLS = 2**20  # numbers that a block of rows needs at a time
REFUSED = {
    **dict.fromkeys(("conformalize", "update"), "all rows of fit are calibrated on, each by its own copy"),
    "likelihood_ratio": "the rows of a fold weigh alike",
    "quantile": "each copy has bands of its own, which no one number moves",
}
PLACES = "each copy has bands of its own, in which places are not comparable"


@dataclass(frozen=True, eq=False)
class CrossCalibration(Calibration):
    """Scores of all rows of `fit`, each by the copy that has not seen it, and the copies, whose bands intervals need.

    Attributes
    ----------
    copies : sequence of K models
        Fitted; each gives what it tells of rows by ``told(rows)``.
    folds : array of int of shape (m,)
        The copy that each row was kept from.
    """

    copies: Sequence[Any] = field(kw_only=True)  # type: ignore[misc]
    folds: IntArray = field(kw_only=True)

    @classmethod
    def of_folds(cls, copies: Sequence[Any], folds: IntArray, bands: Sequence[Band], y: Array, groups: Any) -> Self:
        """From the band of each copy at the rows of its fold."""
        scores = np.empty((2, len(y)))
        for k, band in enumerate(bands):
            held = folds == k
            scores[:, held] = lower_scores(band, y[held]), upper_scores(band, y[held])
        return cls(scores[0], scores[1], groups, copies=copies, folds=folds)

    def intervals(self, told: Told, asked: Asked) -> Intervals:
        """The intervals asked for; `told` is by the model of all rows, whose middle stands in where none is finite."""
        if asked.likelihood_ratio is not None:
            self.check_offers("likelihood_ratio")
        labels, _ = self.read_rows(len(told), asked.groups)
        bands = [copy.told(told.rows).band for copy in self.copies]
        made = []
        for level in asked.levels:
            ends = cross_intervals(bands, self, self.folds, level, asked.kind, asked.lower_share, labels)
            short = self.shortage(ends * (-1.0, 1.0), level, asked.kind, asked.lower_share, labels)
            ends, crossed = without_crossing(ends, told.band)
            made.append(
                (np.stack([told.band.given(ends[:, 0], -1), told.band.given(ends[:, 1], 1)], axis=1), crossed, short)
            )
        return Intervals.of(told, asked, made)

    def check_offers(self, wanted: str) -> None:
        """Raise the error that names what no cross-calibration offers."""
        raise ValueError(
            f"{wanted} of a model fitted with calibration_size='cross': not offered, because "
            f"{REFUSED.get(wanted, PLACES)}; fit with another calibration_size"
        )


def proven_coverage(level: float, n_rows: int, n_folds: int, *, alike: bool = True) -> float:
    """The share of new rows that CV+ intervals, or one end of them, are proven to hold, at least 0.

    ``1 - 2 alpha - 2 (K - 1)/(n + K)``, or ``1 - 2 alpha - (1 - K/n)/(K + 1)`` if that is more, the folds are of equal
    size and the copies `alike` but for the fold that they have not seen (Barber et al. 2021, theorem 4, where the
    first term reads ``2 (1 - 1/K)/(n/K + 1)``). Within a group they are not, as they differ in rows of other groups.

    Notes
    -----
    The first holds for folds of any sizes n_k, and whatever the copies do with the rows of the other folds: the p-value
    of a new row among those of fold k is valid, so that twice the mean of the K of them, weighed by ``n_k + 1``, is
    (Vovk, Wang 2020), and a row outside its interval has a mean of at most
    ``(alpha (n + 1) + K - 1)/(n + K)``. The second asks for learning that does not depend on the order of the rows.
    """
    lost = 2 * (n_folds - 1) / (n_rows + n_folds)
    if alike and n_rows % n_folds == 0:
        lost = min(lost, (1 - n_folds / n_rows) / (n_folds + 1))
    return max(0.0, 1 - 2 * (1 - level) - lost)


def cross_intervals(
    bands: Sequence[Band],
    calibration: Calibration,
    folds: IntArray,
    level: float,
    kind: Kind,
    lower_share: float = 0.5,
    groups: AnyArray | None = None,
) -> Array:
    """Both ends of each new row, shape (n_new, 2); the lower one may lie above the upper one.

    `bands` are those of the K copies at the new rows, `folds` of shape (n,) says from which copy each calibration row
    was kept, and a new row is compared with the calibration rows of its label in `groups` alone.
    """
    levels = side_levels(level, kind, lower_share)
    n_new = len(bands[0])
    parts = [(np.arange(n_new), np.arange(len(folds)))]
    if groups is not None and calibration.groups is not None:
        own = dict(rows_by_label(calibration.groups))
        parts = [(rows, own[label]) for label, rows in rows_by_label(groups)]
    ends = np.empty((n_new, 2))
    for side, sign in enumerate((-1.0, 1.0)):
        scores = calibration.scores(kind)
        scores = scores if kind == "symmetric" else scores[:, side]
        for new, known in parts:
            lists = [np.sort(scores[known][folds[known] == k]) for k in range(len(bands))]
            offsets = np.stack([sign * (band.upper if side else band.lower)[new] for band in bands], axis=1)
            units = np.stack([np.broadcast_to(band.units[side], n_new)[new] for band in bands], axis=1)
            rank = conformal_rank(sum(map(len, lists)), levels[side])
            ends[new, side] = sign * ranked_reach(offsets, units, lists, rank)
    return ends


def without_crossing(ends: Array, band: Band) -> tuple[Array, BoolArray]:
    """The ends, with their midpoint where they cross (that of `band` if it is not finite), and where they do."""
    lower, upper = ends.T
    crossed = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    with np.errstate(invalid="ignore"):
        middle = lower / 2 + upper / 2
    middle = np.where(np.isfinite(middle), middle, band.lower / 2 + band.upper / 2)
    return np.where(crossed[:, None], middle[:, None], ends), crossed


def ranked_reach(offsets: Array, units: Array, lists: Sequence[Array], rank: int) -> Array:
    """For each row the `rank`-th smallest of ``offset_k + reach(s, unit_k)``, s in list k; infinite if there is none.

    Offsets and units, which are at least 0, have the shape (n, K); the K lists of scores are sorted, which may be
    infinite, and a list may be empty. A row needs of the order of ``sqrt(K N)`` of the N ends: those of every t-th
    score bracket the one wanted, and only what lies between is looked at. All of it rests on reaches that increase with
    the score, so that the result is exactly that of sorting all ends.
    """
    if rank > sum(map(len, lists)):
        return np.full(len(offsets), np.inf)
    sorted_lists = _SortedLists(lists)
    most = max(1, CELLS // sorted_lists.cells)
    blocks = (slice(start, start + most) for start in range(0, len(offsets), most))
    found = [sorted_lists.ranked(offsets[rows], units[rows], rank) for rows in blocks]
    return np.concatenate(found) if found else np.zeros(0)


class _SortedLists:
    """K sorted lists of scores, one after another, and every t-th score of each.

    A value v has, of list k, c of the chosen scores below it and at least ``t c``, at most ``t c + t - 1`` of all.
    """

    def __init__(self, lists: Sequence[Array]) -> None:
        self.scores = np.concatenate(lists)
        self.sizes = np.array([len(each) for each in lists], dtype=np.intp)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.step = max(1, isqrt(int(self.sizes.sum()) // (2 * len(lists))))
        counts = self.sizes // self.step
        chosen = [start + self.step * np.arange(1, c + 1) - 1 for start, c in zip(self.starts, counts, strict=True)]
        self.chosen = np.concatenate(chosen).astype(np.intp)  # positions in `scores`
        self.chosen_list = np.repeat(np.arange(len(lists)), counts)  # the list of each, increasing
        self.cells = len(self.chosen) + 2 * self.step * len(lists) + 1  # numbers that one row needs

    def ranked(self, offsets: Array, units: Array, rank: int) -> Array:
        """The rank-th smallest end of each row, between two of the chosen ones whose ranks leave no doubt."""
        low, high = (rank - 1 - len(self.sizes) * (self.step - 1)) // self.step + 1, -(-rank // self.step)
        ends = _end(offsets[:, self.chosen_list], self.scores[self.chosen], units[:, self.chosen_list])
        if self.step == 1:
            return np.asarray(np.partition(ends, rank - 1, axis=1)[:, rank - 1])
        wanted = [k - 1 for k in (low, high) if 1 <= k <= len(self.chosen)]
        parted = np.partition(ends, wanted, axis=1) if wanted else ends
        least = parted[:, low - 1] if low >= 1 else np.full(len(ends), -np.inf)
        most = parted[:, high - 1] if high <= len(self.chosen) else np.full(len(ends), np.inf)
        # what is not looked at is at most `least` or at least `most`, ties included, so the last step is a clip
        first = self.step * self._counts(ends <= least[:, None])
        last = np.minimum(self.sizes, self.step * (self._counts(ends < most[:, None]) + 1))
        return np.clip(self._within(offsets, units, first, np.maximum(first, last), rank), least, most)

    def _counts(self, flags: BoolArray) -> IntArray:
        """How many of the chosen ends of each list, shape (n, K)."""
        edges = np.searchsorted(self.chosen_list, np.arange(len(self.sizes) + 1))
        sums = np.concatenate([np.zeros((len(flags), 1), dtype=np.intp), np.cumsum(flags, axis=1)], axis=1)
        return np.diff(sums[:, edges], axis=1)

    def _within(self, offsets: Array, units: Array, first: IntArray, last: IntArray, rank: int) -> Array:
        """The end of this rank, if those before `first` (n, K) of each list are -inf and those from `last` on inf."""
        lengths = last - first
        edges = np.cumsum(lengths, axis=1)
        places = np.arange(int(edges[:, -1].max(initial=0)) + 1)
        which = sum((places >= edge[:, None] for edge in edges.T[:-1]), np.zeros((len(edges), len(places)), np.intp))
        shift = self.starts + first - (edges - lengths)
        position = np.minimum(places + np.take_along_axis(shift, which, axis=1), len(self.scores) - 1)
        offset, unit = (np.take_along_axis(each, which, axis=1) for each in (offsets, units))
        ends = np.where(places < edges[:, -1:], _end(offset, self.scores[position], unit), np.inf)
        left = rank - first.sum(axis=1)
        ordered = np.sort(ends, axis=1)
        found = np.take_along_axis(ordered, np.clip(left - 1, 0, len(places) - 1)[:, None], axis=1)[:, 0]
        return np.where(left < 1, -np.inf, found)


def _end(offset: Array, score: Array, unit: Array) -> Array:
    """How far a score reaches from its offset."""
    with np.errstate(over="ignore"):
        return offset + reach(score, unit)
