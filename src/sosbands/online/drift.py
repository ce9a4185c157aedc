"""A test of whether rows are still like the calibration rows, that may be looked at after every row.

If calibration rows and stream are exchangeable, the smoothed p-values

    p_n = (#{i < n: S_i > S_n} + u_n (1 + #{i < n: S_i = S_n})) / n,   u_n uniform,

of the n-th score among all before it are independent and uniform (Vovk, Gammerman, Shafer 2005). Who bets against that
at fair odds has an expected capital of 1 at any time, and by Ville's inequality it ever reaches 1/level with a
probability of at most level.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from sosbands._arguments import check, is_fraction
from sosbands._types import Array
from sosbands._words import many
from sosbands.conformal import Band, symmetric_scores
from sosbands.conformal.arguments import read_target
from sosbands.online.ranked import RankedScores, followed_calibration

STAKES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # a bet on p multiplies the capital by 1 + stake (p - 1/2)
JUMPS = np.array([1e-4, 1e-3, 1e-2, 1e-1, 1.0])  # share of the capital that is spread anew over all stakes at a row


class Jumper:
    """A capital that bets on p-values, averaged over jump rates: the simple jumper martingale of Vovk et al. (2021).

    For each jump rate J the capital starts as 1, in equal parts on the stakes; at each row the part J of it is spread
    anew, and each part is multiplied by ``1 + stake (p - 1/2)``, whose mean over uniform p is 1.
    """

    def __init__(self) -> None:
        self._shares = np.full((len(JUMPS), len(STAKES)), 1 / len(STAKES))
        self._logs = np.zeros(len(JUMPS))

    @property
    def log_capital(self) -> float:
        """Natural logarithm of the mean over the jump rates."""
        top = self._logs.max()
        return float(top + np.log(np.mean(np.exp(self._logs - top))))

    def bet(self, p: float) -> None:
        """One p-value."""
        spread = (1 - JUMPS[:, None]) * self._shares + JUMPS[:, None] / len(STAKES)
        won = spread * (1 + STAKES * (p - 0.5))
        growth = won.sum(axis=1)
        self._shares = won / growth[:, None]
        self._logs = self._logs + np.log(growth)


class DriftTest:
    """A test of whether a stream of rows is exchangeable with the calibration rows of a model, valid at any time.

    It looks at the scores of the rows, of both sides together: at how far targets lie outside of their band. So it
    notices what changes the coverage of intervals, in either direction, and is blind to changes of the features alone
    that leave the scores alike.

    Parameters
    ----------
    model : interval regressor
        Fitted and calibrated, as for `AdaptiveIntervals`, on rows that are none of the stream. It is not changed.
    level : float in (0, 1)
        If there is no drift, the probability of ever raising an alarm, however long the stream, is at most this.
    random_state : int, RandomState or None
        Of the numbers that break ties of scores.

    Attributes
    ----------
    p_values_, log_martingale_ : ndarray of shape (n_rows,)
        Of each row seen; natural logarithms. The alarm is at ``-log(level)``.
    alarm_ : int or None
        Position in the stream, from 0 on, of the row at which the martingale first reached 1/level.
    began_ : int or None
        About when the drift set in: the row k from which on the p-values up to the alarm, at a, are farthest from
        uniform, by ``|sum_{k..a} (p - 1/2)| / sqrt(a - k + 1)``.
    """

    def __init__(self, model: Any, *, level: float = 0.01, random_state: Any = None) -> None:
        calibration = followed_calibration(model, type(self).__name__)
        check("level", level, is_fraction(level), "a number in (0, 1)")
        self.model, self.level, self.random_state = model, float(level), random_state
        self._rng = check_random_state(random_state)
        self._scores = RankedScores(calibration.scores("symmetric").tolist())
        self._jumper = Jumper()
        self._p: list[float] = []
        self._logs: list[float] = []
        self.alarm_: int | None = None

    @property
    def p_values_(self) -> Array:
        """One for each row seen."""
        return np.array(self._p)

    @property
    def log_martingale_(self) -> Array:
        """Natural logarithm after each row seen."""
        return np.array(self._logs)

    @property
    def began_(self) -> int | None:
        """The row from which on the p-values up to the alarm are farthest from uniform."""
        if self.alarm_ is None:
            return None
        last_first = np.array(self._p[: self.alarm_ + 1])[::-1] - 0.5
        sizes = np.abs(np.cumsum(last_first)) / np.sqrt(np.arange(1, len(last_first) + 1))
        return int(self.alarm_ - np.argmax(sizes))

    def update(self, X: Any, y: Any) -> Self:
        """Look at rows whose targets are known, in their order.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows, one or many.
        y : array of shape (n,)
            Their targets.
        """
        band = self.model._band(X)
        return self.update_band(band, read_target(y, len(band)))

    def update_band(self, band: Band, y: Array) -> Self:
        """The same for rows whose band is known."""
        values = symmetric_scores(band, y).tolist()
        for score, u in zip(values, self._rng.uniform(size=len(values)).tolist(), strict=True):
            n = len(self._scores)
            up_to = self._scores.up_to(score)
            ties = up_to - self._scores.below(score)
            self._p.append((n - up_to + u * (1 + ties)) / (n + 1))
            self._scores.add(score)
            self._jumper.bet(self._p[-1])
            self._logs.append(self._jumper.log_capital)
            if self.alarm_ is None and self._logs[-1] >= -np.log(self.level):
                self.alarm_ = len(self._logs) - 1
        return self

    def words(self) -> str:
        """What was found, and what follows from it."""
        seen, odds = many(len(self._logs), "row"), f"{1 / self.level:.4g}"
        if self.alarm_ is None or self.began_ is None:
            most = np.exp(max(self._logs, default=0.0))
            return f"No drift found in {seen}: the martingale reached {max(most, 1.0):.3g}, the alarm is at {odds}."
        return (
            f"Drift found at row {self.alarm_ + 1} of {seen}: the martingale passed {odds}, which without drift "
            f"happens in at most {100 * self.level:.3g} % of all streams. It set in at about row {self.began_ + 1}: "
            "refit with rows from there on."
        )
