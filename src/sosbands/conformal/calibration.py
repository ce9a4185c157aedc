"""What calibration remembers, and the quantiles that it gives to each row of a prediction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sosbands._types import AnyArray, Array, IntArray
from sosbands._words import listed
from sosbands.conformal.asked import Asked, Intervals, Kind, check_added, read_common_use, read_groups, read_ratio
from sosbands.conformal.band import Band, Told, interval, lower_scores, upper_scores
from sosbands.conformal.distribution import Places, inner_places
from sosbands.conformal.quantile import conformal_quantile, points_needed, weighted_conformal_quantile

SHOWN = 10  # labels in a message


def side_levels(level: float, kind: Kind, lower_share: float = 0.5) -> tuple[float, float]:
    """Levels of the lower and of the upper quantile.

    Symmetric: `level` for the one quantile of both sides. Asymmetric: ``1 - alpha_low`` and ``1 - alpha_up`` with
    ``alpha_low = lower_share (1 - level)`` and ``alpha_low + alpha_up = 1 - level``.
    """
    if kind == "symmetric":
        return level, level
    return 1 - (1 - level) * lower_share, 1 - (1 - level) * (1 - lower_share)


class Placed(NamedTuple):
    """Rows of a prediction that share their calibration places."""

    rows: IntArray
    band: Band
    places: Places
    weights: Array | None


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of the calibration points on both sides, with their groups and likelihood ratios if there are any.

    Attributes
    ----------
    lower_scores, upper_scores : arrays of shape (m,)
        Distances below the lower and above the upper end of the band, in the unit of each end.
    groups : array of shape (m,) or None
        Labels; each group has its own quantiles (Mondrian calibration).
    weights : array of shape (m,) or None
        Likelihood ratios of test over calibration density, up to a constant.
    inner_places : array of shape (m,) or None
        Share of the band below each observation, infinite outside (`sosbands.conformal.inner_places`): all that scores
        need not say of observations inside. None where copies have scored the rows.
    decay : float in (0, 1) or None
        With one, rows are in the order of time, and the last but k counts as ``decay^(k + 1)`` of a new row; with
        groups k counts rows of the same group.
    n_learnt : int
        How many of these rows the model had learnt from: above 0 nothing is promised.
    out_of_fold : bool
        Whether the rows were learnt from, but scored by what had not seen their fold: the level is what is seen, and
        not proven.
    hashes : array of shape (m,) or None
        By which the rows are known again, where the model has them.
    """

    copies: ClassVar[Sequence[Any]] = ()  # that have scored the rows, of a `CrossCalibration`
    by_row: ClassVar[bool] = False  # whether each row has quantiles of its own, of a `ConditionalCalibration`

    lower_scores: Array
    upper_scores: Array
    groups: AnyArray | None = None
    weights: Array | None = None
    inner_places: Array | None = None
    decay: float | None = None
    n_learnt: int = 0
    out_of_fold: bool = False
    hashes: AnyArray | None = None

    @classmethod
    def of(cls, band: Band, y: Array, groups: Any = None, likelihood_ratio: Any = None, **origin: Any) -> Calibration:
        """Score the observations `y` against their band; `origin` is `n_learnt`, `out_of_fold`, `hashes`."""
        if not len(band):
            raise ValueError("X has no rows: expected at least one calibration point")
        labels = None if groups is None else read_groups(groups, len(band))
        weights = None if likelihood_ratio is None else read_ratio(likelihood_ratio, len(band))
        scores = lower_scores(band, y), upper_scores(band, y)
        calibration = cls(*scores, labels, weights, inner_places(band, y), **origin)
        for label, part in calibration.parts():
            if part.weights is not None and not part.weights.any():
                where = "" if label is None else f" in group {label!r}"
                raise ValueError(f"likelihood_ratio is zero in every row{where}: expected a positive entry")
        return calibration

    def __len__(self) -> int:
        return len(self.lower_scores)

    def scores(self, kind: Kind) -> Array:
        """Calibration scores: the larger of both sides (m,), or both (m, 2)."""
        if kind == "symmetric":
            return np.maximum(self.lower_scores, self.upper_scores)
        return np.stack([self.lower_scores, self.upper_scores], axis=1)

    def parts(self) -> Iterator[tuple[Any, Calibration]]:
        """Each group's label and its own calibration; without groups one part with the label None."""
        if self.groups is None:
            yield None, self
            return
        for label, rows in rows_by_label(self.groups):
            yield label, replace(self._taken(rows), groups=None)

    def extended(self, new: Calibration, *, window: int | None = None, decay: float | None = None) -> Calibration:
        """These rows, then the new ones; of each group the last `window`, with weights that fall by `decay`."""
        check_added("groups", self.groups, new.groups)
        check_added("likelihood_ratio", self.weights, new.weights)
        joined = Calibration(
            np.concatenate([self.lower_scores, new.lower_scores]),
            np.concatenate([self.upper_scores, new.upper_scores]),
            _joined(self.groups, new.groups),
            _joined(self.weights, new.weights),
            _joined(self.inner_places, new.inner_places),
            hashes=_joined(self.hashes, new.hashes),
        ).faded(window=window, decay=decay)
        kept = len(joined) if window is None or new.groups is not None else max(0, window - len(new))
        learnt = min(len(joined), min(kept, self.n_learnt) + new.n_learnt)
        return replace(joined, n_learnt=learnt, out_of_fold=self.out_of_fold and kept > 0)

    def faded(self, *, window: int | None = None, decay: float | None = None) -> Calibration:
        """Of each group the last `window` rows, in the order of time, with weights that fall by `decay`."""
        if window is None:
            return replace(self, decay=decay)
        parts = [np.arange(len(self))] if self.groups is None else [rows for _, rows in rows_by_label(self.groups)]
        rows = np.sort(np.concatenate([rows[-window:] for rows in parts]))
        return replace(self._taken(rows), decay=decay, n_learnt=min(self.n_learnt, len(rows)))

    def _taken(self, rows: IntArray) -> Calibration:
        """Some of the rows, in this order."""
        names = ("lower_scores", "upper_scores", "groups", "weights", "inner_places", "hashes")
        some = {name: each[rows] for name in names if (each := getattr(self, name)) is not None}
        return Calibration(**some, decay=self.decay, out_of_fold=self.out_of_fold)

    def age_weights(self) -> Array:
        """What each row counts beside a new row, ``decay^(m - i)`` for row i of 0 to m - 1; ones without a decay."""
        return np.ones(len(self)) if self.decay is None else self.decay ** np.arange(len(self), 0.0, -1.0)

    def read_rows(
        self, n_rows: int, groups: Any = None, likelihood_ratio: Any = None
    ) -> tuple[AnyArray | None, Array | None]:
        """Labels and likelihood ratios of the rows to predict, given if and only if calibration got them."""
        read_common_use("groups", self.groups is not None, groups is not None)
        read_common_use("likelihood_ratio", self.weights is not None, likelihood_ratio is not None)
        labels = None if groups is None else read_groups(groups, n_rows)
        weights = None if likelihood_ratio is None else read_ratio(likelihood_ratio, n_rows)
        if labels is not None and self.groups is not None:
            seen = dict.fromkeys(np.unique(self.groups).tolist())
            unseen = [label for label in np.unique(labels).tolist() if label not in seen]
            if unseen:
                raise ValueError(
                    f"groups has labels that conformalize has not seen, {listed(unseen, SHOWN)}: "
                    f"expected {listed(seen, SHOWN)}"
                )
        return labels, weights

    def quantiles(
        self,
        level: float,
        kind: Kind,
        lower_share: float = 0.5,
        *,
        groups: AnyArray | None = None,
        weights: Array | None = None,
    ) -> Array:
        """Lower and upper quantile of each row that is to be predicted, at the levels that `side_levels` gives.

        Groups and weights, of shape (n,), are as `read_rows` returns them. The quantiles have the shape (n, 2), or
        (1, 2) where all rows have the same.
        """
        levels = side_levels(level, kind, lower_share)
        if groups is None:
            return self._pooled(levels, kind, weights)
        q, parts = np.empty((len(groups), 2)), dict(self.parts())
        for label, rows in rows_by_label(groups):
            q[rows] = parts[label]._pooled(levels, kind, None if weights is None else weights[rows])
        return q

    def intervals(self, told: Told, asked: Asked) -> Intervals:
        """The intervals asked for, of rows that a model has told of."""
        labels, weights = self.read_rows(len(told), asked.groups, asked.likelihood_ratio)
        made = []
        for level in asked.levels:
            q = self.quantiles(level, asked.kind, asked.lower_share, groups=labels, weights=weights)
            short = self.shortage(q, level, asked.kind, asked.lower_share, labels)
            made.append((*interval(told.band, *q.T), short))
        return Intervals.of(told, asked, made)

    def places(self) -> dict[Any, Places]:
        """Places of the calibration points in their bands, by group; without groups with the label None."""
        found = {}
        for label, part in self.parts():
            if part.inner_places is None:
                raise ValueError("calibration without inner_places: expected them for quantiles and distributions")
            weights = part.weights if part.decay is None else part.age_weights()
            found[label] = Places.of(part.inner_places, part.lower_scores, part.upper_scores, weights)
        return found

    def distribution(self, told: Told, asked: Asked) -> list[Placed]:
        """The rows that a model has told of with the places of the calibration points, group by group."""
        labels, weights = self.read_rows(len(told), asked.groups, asked.likelihood_ratio)
        if self.decay is not None:
            weights = np.ones(len(told))  # beside which calibration rows count by their age
        places = self.places()
        if labels is None:
            return [Placed(np.arange(len(told)), told.band, places[None], weights)]
        return [
            Placed(rows, told.band.take(rows), places[label], None if weights is None else weights[rows])
            for label, rows in rows_by_label(labels)
        ]

    def check_offers(self, wanted: str) -> None:
        """Raise the error that names what this kind of calibration does not offer: nothing."""

    def shortage(self, q: Array, level: float, kind: Kind, lower_share: float, groups: AnyArray | None) -> str | None:
        """Why some of the quantiles `q` of `quantiles` are infinite, unless their side was given a zero share."""
        levels = np.array(side_levels(level, kind, lower_share))
        infinite = np.isposinf(q[:, levels < 1]).any(axis=1)
        if not infinite.any():
            return None
        needed = max(points_needed(side) for side in levels[levels < 1].tolist())
        given = self.described({None} if groups is None else set(np.unique(groups[infinite]).tolist()))
        rows = "every interval" if infinite.all() else f"{np.sum(infinite)} of {len(q)} intervals"
        return f"confidence level {level:g} needs at least {needed:.0f} calibration points, {given}; {rows} infinite"

    def described(self, labels: Collection[Any] | None = None) -> str:
        """How many points there are, by group (of some labels), and what makes them count for less."""
        found = []
        for label, part in self.parts():
            if labels is not None and label not in labels:
                continue
            words = f"{len(part)}" if label is None else f"{len(part)} in group {label!r}"
            if part.decay is not None:
                words += f" (of the weight of {part.age_weights().sum():.1f} by decay={part.decay:g})"
            if part.weights is not None:
                w = part.weights / part.weights.max()
                words += f" (worth {w.sum() ** 2 / (w**2).sum():.1f} by their likelihood ratios)"
            lost = np.sum(np.isposinf(part.scores("symmetric")))
            found.append(f"{words} ({lost} with an infinite score: zero scale)" if lost else words)
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        return f"given: {', '.join(found[:SHOWN])}{more}"

    def _pooled(self, levels: tuple[float, float], kind: Kind, test_weights: Array | None) -> Array:
        """The quantiles of rows without groups."""
        found = []
        for scores, level in zip(np.atleast_2d(self.scores(kind).T), levels, strict=False):
            if self.decay is not None:
                found.append(weighted_conformal_quantile(scores, self.age_weights(), np.ones(1), level))
            elif self.weights is None or test_weights is None:
                found.append(np.array([conformal_quantile(scores, level)]))
            else:
                found.append(weighted_conformal_quantile(scores, self.weights, test_weights, level))
        return np.stack([found[0], found[-1]], axis=1)


def rows_by_label(labels: AnyArray) -> Iterator[tuple[Any, IntArray]]:
    """Each distinct label and the rows that carry it."""
    distinct, first = np.unique(np.sort(labels), return_index=True)
    rows = np.split(np.argsort(labels, kind="stable"), first[1:])
    yield from zip(distinct.tolist(), rows, strict=True)


def _joined(old: AnyArray | None, new: AnyArray | None) -> AnyArray | None:
    return None if old is None or new is None else np.concatenate([old, new])
