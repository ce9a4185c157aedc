"""A test of whether rows are still like the calibration rows, that may be looked at after every row.

If calibration rows and stream are exchangeable, the smoothed p-values

    p_n = (#{i < n: S_i > S_n} + u_n (1 + #{i < n: S_i = S_n})) / n,   u_n uniform,

of the n-th score among all before it are independent and uniform (Vovk, Gammerman, Shafer 2005). Who bets against that
at fair odds has an expected capital of 1 at any time, and by Ville's inequality it ever reaches 1/level with a
probability of at most level.

Asymmetric calibration has three sequences of scores: below, above, and the larger of both, which alone shows noise that
grows on both sides alike. Each has a gambler, who starts with 1/3 and so reaches 1/level with a probability of at most
level/3: any of them with at most level. The alarm is where one of them does, not where their sum does. Each capital is
a martingale of its own p-values, but not of all sequences, as a p-value of one may depend on earlier ones of several:
the sum need not be a martingale.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from sosbands._arguments import check, is_fraction
from sosbands._types import Array
from sosbands._words import many
from sosbands.conformal import Band, Calibration, lower_scores, upper_scores
from sosbands.conformal.asked import read_kind, read_target
from sosbands.online.adaptive import RankedScores, columns_of, followed_calibration

STAKES = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # a bet on p multiplies the capital by 1 + stake (p - 1/2)
JUMPS = np.array([1e-4, 1e-3, 1e-2, 1e-1, 1.0])  # share of the capital that is spread anew over all stakes at a row


class Jumper:
    """The mean over jump rates of a capital that bets on p-values: the simple jumper martingale of Vovk et al. (2021).

    It starts as 1, in equal parts on the stakes; at each row the part J of it is spread anew, and each part is
    multiplied by ``1 + stake (p - 1/2)``, whose mean over uniform p is 1.
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


class Gambler:
    """One sequence of scores: ranks among all before, p-values, and the capital that bets on them."""

    def __init__(self, scores: Array) -> None:
        self._scores = RankedScores(scores.tolist())
        self._jumper = Jumper()
        self.p_values: list[float] = []

    def step(self, score: float, u: float) -> float:
        """Natural logarithm of the capital, from 1 on, after one more score; u breaks its ties."""
        n = len(self._scores)
        up_to = self._scores.up_to(score)
        ties = up_to - self._scores.below(score)
        self.p_values.append((n - up_to + u * (1 + ties)) / (n + 1))
        self._scores.add(score)
        self._jumper.bet(self.p_values[-1])
        return self._jumper.log_capital

    def began(self, alarm: int) -> int:
        """The row from which on the p-values up to the alarm are farthest from uniform."""
        last_first = np.array(self.p_values[: alarm + 1])[::-1] - 0.5
        sizes = np.abs(np.cumsum(last_first)) / np.sqrt(np.arange(1, len(last_first) + 1))
        return int(alarm - np.argmax(sizes))


class DriftTest:
    """A test of whether a stream of rows is exchangeable with the calibration rows of a model, valid at any time.

    It looks at the scores that the intervals depend on: how far targets lie outside of their band, on the worse side,
    with asymmetric calibration also on each side. So it notices what changes the coverage of intervals, in either
    direction, and is blind to changes of the features alone that leave the scores alike.

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
    p_values_ : ndarray of shape (n_rows,), or (n_rows, 3) for asymmetric calibration
        Of each row seen, or of its lower score, its upper score and the larger of both.
    log_martingale_ : ndarray of shape (n_rows,)
        Natural logarithm after each row seen. The alarm is at ``-log(level)``. For asymmetric calibration the
        largest of three capitals, each of which starts as 1/3.
    alarm_ : int or None
        Position in the stream, from 0 on, of the row at which the martingale first reached 1/level.
    began_ : int or None
        About when the drift set in: the row k from which on the p-values up to the alarm, at a, are farthest from
        uniform, by ``|sum_{k..a} (p - 1/2)| / sqrt(a - k + 1)``, of the scores that raised it. As it is chosen by
        looking at the scores, the rows from there on are not exactly exchangeable with new ones.
    """

    def __init__(self, model: Any, *, level: float = 0.01, random_state: Any = None) -> None:
        calibration = followed_calibration(model, type(self).__name__)
        check("level", level, is_fraction(level), "a number in (0, 1)")
        self.model, self.level, self.random_state = model, float(level), random_state
        self._rng, self._kind = check_random_state(random_state), read_kind(model.calibration)
        self._gamblers = [Gambler(column) for column in self._columns(calibration)]
        self._logs: list[float] = []
        self._alarming = 0  # who raised the alarm
        self.alarm_: int | None = None

    def _columns(self, scored: Calibration) -> list[Array]:
        """Scores that the intervals depend on, and always the larger of both sides, which comes last."""
        sides = columns_of(scored, "asymmetric") if self._kind == "asymmetric" else []
        return [*sides, *columns_of(scored, "symmetric")]

    @property
    def p_values_(self) -> Array:
        """One for each row seen, or three."""
        found = np.array([each.p_values for each in self._gamblers]).T
        return found[:, 0] if len(self._gamblers) == 1 else found

    @property
    def log_martingale_(self) -> Array:
        """Natural logarithm after each row seen."""
        return np.array(self._logs)

    @property
    def began_(self) -> int | None:
        """The row from which on the p-values up to the alarm are farthest from uniform."""
        return None if self.alarm_ is None else self._gamblers[self._alarming].began(self.alarm_)

    def update(self, X: Any, y: Any) -> Self:
        """Look at rows whose targets are known, in their order.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Rows, one or many.
        y : array of shape (n,)
            Their targets.
        """
        band = self.model.told(X).band
        return self.update_band(band, read_target(y, len(band)))

    def update_band(self, band: Band, y: Array) -> Self:
        """The same for rows whose band is known."""
        columns = self._columns(Calibration(lower_scores(band, y), upper_scores(band, y)))
        numbers = self._rng.uniform(size=(len(y), len(columns))).tolist()
        for row, u in zip(np.stack(columns, axis=1).tolist(), numbers, strict=True):
            logs = [who.step(*each) for who, *each in zip(self._gamblers, row, u, strict=True)]
            largest = int(np.argmax(logs))
            self._logs.append(logs[largest] - np.log(len(logs)))
            if self.alarm_ is None and self._logs[-1] >= -np.log(self.level):
                self.alarm_, self._alarming = len(self._logs) - 1, largest
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
