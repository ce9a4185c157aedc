"""Scores in the order of time and of size, and what a model must be to be followed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from sosbands.conformal import Calibration, IntervalMixin
from sosbands.conformal.arguments import read_kind
from sosbands.conformal.quantile import ROUNDING_GUARD, conformal_rank


class RankedScores:
    """Scores whose ranks are known at any time; of more than `most` the oldest leave.

    Parameters
    ----------
    scores : iterable of float
        In the order of time; infinite ones are fine.
    most : int, optional
        None keeps all.
    """

    def __init__(self, scores: Iterable[float], most: int | None = None) -> None:
        self._order: deque[float] = deque((float(each) for each in scores), maxlen=most)
        self._sorted = sorted(self._order)

    def __len__(self) -> int:
        return len(self._sorted)

    def below(self, score: float) -> int:
        """How many are smaller."""
        return bisect_left(self._sorted, score)

    def up_to(self, score: float) -> int:
        """How many are not larger."""
        return bisect_right(self._sorted, score)

    def add(self, score: float) -> None:
        """The newest score; the oldest leaves if there are too many."""
        if len(self._order) == self._order.maxlen:
            del self._sorted[bisect_left(self._sorted, self._order[0])]
        self._order.append(score)
        insort(self._sorted, score)

    def quantile(self, alpha: float) -> float:
        """The conformal quantile at level ``1 - alpha``: infinite for alpha up to 0, minus infinity from 1 on."""
        if alpha >= 1:
            return -np.inf
        k = conformal_rank(len(self), 1 - alpha)
        return self._sorted[k - 1] if k <= len(self) else np.inf


def is_within(alpha: Any, n_below: int, m: int) -> Any:
    """Whether a score that `n_below` of m others lie below is at most their conformal quantile at ``1 - alpha``.

    The quantile is the k-th smallest, ``k = ceil((1 - alpha)(m + 1))``, and is reached if ``k > n_below``; no score is
    for alpha from 1 on. Takes arrays of alpha.
    """
    reached = np.maximum((1 - np.asarray(alpha)) * (m + 1) - ROUNDING_GUARD, 0.5) > n_below
    return reached & (np.asarray(alpha) < 1)


def followed_calibration(model: Any, who: str) -> Calibration:
    """The calibration of a model that can be followed row by row, or an error that says why it cannot."""
    if not isinstance(model, IntervalMixin):
        raise ValueError(f"model={model!r}: expected a fitted interval regressor, such as SoSBandRegressor")
    calibration = model._calibrated(who)
    read_kind(model.calibration)
    if "copies_" in vars(model):
        raise ValueError(f"{who} of a model fitted with calibration_size='cross': expected one with a band of its own")
    for name, given in (("groups", calibration.groups), ("likelihood_ratio", calibration.weights)):
        if given is not None:
            raise ValueError(f"{who} of a model that was calibrated with {name}: expected one calibrated without")
    return calibration
