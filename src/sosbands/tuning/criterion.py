"""The tuning criterion: dependence of held-out residuals on held-out band widths, by cross-validation."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import AnyArray, Array
from sosbands.bands import PenaltyScale, learn_band_grid, penalty_scale
from sosbands.conformal import SCORES, conformal_quantile, interval, symmetric_scores
from sosbands.exceptions import InfeasibleProblemError, LowRankWarning, NotCertifiedWarning, ZeroResidualsWarning
from sosbands.metrics import interval_score
from sosbands.stats import distance_correlation, hsic

SCORE_LEVELS = (0.7, 0.8, 0.9)  # one level alone is too noisy to choose by; the numbers are in docs/tuning.md


def interval_score_at(widths: Array, residuals: Array, level: float) -> float:
    """Interval score of the held-out bands, moved by their own conformal quantile.

    The residuals ``R`` are distances from the middle of their band, which reaches ``W/2`` to either side of it; the
    conformal score makes intervals of these bands, as it does in deployment.
    """
    half = widths / 2
    band = SCORES["added"].band(np.zeros_like(half), half, half)
    S = symmetric_scores(band, residuals)
    q = conformal_quantile(S, level)
    if not np.isfinite(q):
        q = float(S.max())  # a handful of points: the widest finite band stands in
    ends, _ = interval(band, q, q)
    return interval_score(residuals, ends[:, 0], ends[:, 1], level)


def minus_log_interval_score(widths: Array, residuals: Array) -> float:
    """Minus the mean logarithm of the interval score over a few levels.

    The interval score is smallest in the mean for the true conditional quantiles, so that it looks for the bands
    themselves, where HSIC looks for dependence and also rewards wide bands. Logarithms give each level the same say.
    """
    scores = [interval_score_at(widths, residuals, level) for level in SCORE_LEVELS]
    return -float(np.mean(np.log(np.maximum(scores, np.finfo(float).tiny))))


CRITERIA: dict[str, Callable[[Array, Array], float]] = {
    "interval-score": minus_log_interval_score,
    "hsic": hsic,
    "dcor": distance_correlation,
}
# While searching, features and gap are coarse: the criterion is a noisy statistic of the bands.
SEARCH_RANK = (160, 1e-3)  # most features, and the relative trace that fewer may leave out
SEARCH_TOL = 1e-3


class _Quiet:
    """Hides the warnings of coarse solves; may be entered by many threads at once, which `catch_warnings` may not.

    The first to come in sets the filters, the last to leave restores them.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.filters = warnings.catch_warnings()
                self.filters.__enter__()
                # counted in the report; coarse on purpose; bands of no width are a result like any other
                for category in (NotCertifiedWarning, LowRankWarning, ZeroResidualsWarning):
                    warnings.simplefilter("ignore", category)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.filters.__exit__(None, None, None)


QUIET = _Quiet()


@dataclass(frozen=True, eq=False)
class TuningData:
    """What every candidate is evaluated on.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        What the kernel sees; the kernel matrix (n, n) if it is precomputed.
    r : ndarray of shape (n,)
        Residuals.
    folds : tuple of ndarray of int
        Held-out rows of each fold, the same for every candidate.
    options : dict
        Arguments of `learn_band_grid` that are not tuned.
    """

    points: Array
    r: Array
    folds: tuple[AnyArray, ...]
    options: dict[str, Any]

    def rows(self, rows: AnyArray, against: AnyArray) -> AnyArray:
        """What learning and prediction see of some rows, if the learning rows are those of `against`."""
        if isinstance(self.options["kernel"], str) and self.options["kernel"] == "precomputed":
            return np.asarray(self.points[np.ix_(rows, against)])
        return np.asarray(self.points[rows])


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A candidate and what it does on held-out points.

    Attributes
    ----------
    lengthscale : float, array or dict
    symmetry_penalty : float or pair
    widths : ndarray of shape (m,)
        ``W = f_lo + f_up`` at each point that a fold has held out; m = n unless the search was interrupted.
    residuals : ndarray of shape (m,)
        ``R = |r - (f_up - f_lo)/2|``.
    uncertified : int
        Folds whose solve missed its tolerance.
    failed : int
        Folds whose solve says nothing about its optimum (a relative gap of 1 or more): short lengthscales whose few
        features leave points out. Their widths may be anything, so such a candidate is never the best.
    """

    lengthscale: Any
    symmetry_penalty: Any
    widths: Array
    residuals: Array
    uncertified: int
    failed: int = 0

    def value(self, criterion: str) -> float:
        """``criterion(W, R)``, minus infinity if a fold failed."""
        return -np.inf if self.failed else CRITERIA[criterion](self.widths, self.residuals)


def fold_bands(
    data: TuningData, fold: int, lengthscales: Sequence[Any], penalties: Sequence[Any]
) -> tuple[Array, Array, AnyArray]:
    """Bands at one fold's rows, learnt from the others, for every lengthscale and penalty.

    Each solve is started from its neighbour, along penalties and along lengthscales.

    Returns
    -------
    lower, upper : ndarray of shape (n_lengthscales, n_penalties, n_held_out)
    gaps : ndarray of shape (n_lengthscales, n_penalties)
        Certified relative gaps.
    """
    held = data.folds[fold]
    others = np.setdiff1d(np.arange(len(data.r)), held)
    points, r, new = data.rows(others, others), data.r[others], data.rows(held, others)

    def learn(rank: Any) -> tuple[Array, Array, AnyArray]:
        shape = (len(lengthscales), len(penalties))
        lower, upper, gaps = np.zeros((*shape, len(held))), np.zeros((*shape, len(held))), np.zeros(shape)
        # from long to short lengthscales: the one cold start then has few features
        grid = learn_band_grid(points, r, lengthscales[::-1], penalties, rank=rank, tol=SEARCH_TOL, **data.options)
        for k, j, bands in grid:
            i = len(lengthscales) - 1 - k
            lower[i, j], upper[i, j], gaps[i, j] = bands.lower(new), bands.upper(new), bands.gap
        return lower, upper, gaps

    with QUIET:
        try:
            return learn(SEARCH_RANK)
        except InfeasibleProblemError:  # coarse features may vanish at a far point
            return learn("auto")


def pool(
    data: TuningData,
    lengthscales: Sequence[Any],
    penalties: Sequence[Any],
    parts: dict[int, tuple[Array, Array, AnyArray]],
) -> list[Evaluation]:
    """One evaluation per candidate from the bands of the folds that have been learnt, by fold."""
    r = np.concatenate([data.r[data.folds[fold]] for fold in parts])
    lower = np.concatenate([part[0] for part in parts.values()], axis=2)
    upper = np.concatenate([part[1] for part in parts.values()], axis=2)
    gaps = np.array([part[2] for part in parts.values()])
    missed, failed = np.sum(~(gaps <= SEARCH_TOL), axis=0), np.sum(~(gaps < 1), axis=0)
    return [
        Evaluation(ell, penalty, lo + up, np.abs(r - (up - lo) / 2), int(missed[i, j]), int(failed[i, j]))
        for i, ell in enumerate(lengthscales)
        for j, penalty in enumerate(penalties)
        for lo, up in [(lower[i, j], upper[i, j])]
    ]


def penalty_units(points: Array, r: Array, kernel: Any, normalize: bool | PenaltyScale) -> bool | PenaltyScale:
    """The `normalize` argument of every solve: one scale for all folds and candidates."""
    return penalty_scale(points, r, kernel) if normalize is True else normalize
