"""Candidates on held-out folds: bands learnt from the other folds, and their value by a criterion."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands._types import AnyArray, Array
from sosbands.bands import PenaltyScale, learn_band_grid, penalty_scale
from sosbands.conformal import SCORES, Score
from sosbands.exceptions import InfeasibleProblemError, LowRankWarning, NotCertifiedWarning, ZeroResidualsWarning
from sosbands.tuning.held_out import CRITERIA, HeldOut

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
    score : Score
        What calibration will make of the bands.
    """

    points: Array
    r: Array
    folds: tuple[AnyArray, ...]
    options: dict[str, Any]
    score: Score = SCORES["added"]

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
    held : HeldOut
        Its bands at each point that a fold has held out: all of them unless the search was interrupted.
    uncertified : int
        Folds whose solve missed its tolerance.
    failed : int
        Folds whose solve says nothing about its optimum (a relative gap of 1 or more): short lengthscales whose few
        features leave points out. Their widths may be anything, so such a candidate is never the best.
    """

    lengthscale: Any
    symmetry_penalty: Any
    held: HeldOut
    uncertified: int
    failed: int = 0

    def value(self, criterion: str) -> float:
        """The criterion of the held-out bands, minus infinity if a fold failed."""
        return -np.inf if self.failed else CRITERIA[criterion](self.held)


class FoldBands(NamedTuple):
    """Bands that one fold has held out, for every lengthscale and penalty.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_lengthscales, n_penalties, n_held_out)
    gaps : ndarray of shape (n_lengthscales, n_penalties)
        Certified relative gaps.
    means : ndarray of shape (2, n_lengthscales, n_penalties)
        Of the lower and of the upper function over the rows that they were learnt from.
    """

    lower: Array
    upper: Array
    gaps: AnyArray
    means: Array


@ONE_THREAD
def fold_bands(data: TuningData, fold: int, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> FoldBands:
    """Bands at one fold's rows, learnt from the others, for every lengthscale and penalty.

    Each solve is started from its neighbour, along penalties and along lengthscales.
    """
    held = data.folds[fold]
    others = np.setdiff1d(np.arange(len(data.r)), held)
    points, r, new = data.rows(others, others), data.r[others], data.rows(held, others)

    def learn(rank: Any) -> FoldBands:
        shape = (len(lengthscales), len(penalties))
        lower, upper, gaps = np.zeros((*shape, len(held))), np.zeros((*shape, len(held))), np.zeros(shape)
        means = np.zeros((2, *shape))
        # from long to short lengthscales: the one cold start then has few features
        grid = learn_band_grid(points, r, lengthscales[::-1], penalties, rank=rank, tol=SEARCH_TOL, **data.options)
        for k, j, bands in grid:
            i = len(lengthscales) - 1 - k
            lower[i, j], upper[i, j], gaps[i, j] = bands.lower(new), bands.upper(new), bands.gap
            means[:, i, j] = bands.values_lower.mean(), bands.values_upper.mean()
        return FoldBands(lower, upper, gaps, means)

    with QUIET:
        try:
            return learn(SEARCH_RANK)
        except InfeasibleProblemError:  # coarse features may vanish at a far point
            return learn("auto")


def pool(
    data: TuningData,
    lengthscales: Sequence[Any],
    penalties: Sequence[Any],
    parts: dict[int, FoldBands],
) -> list[Evaluation]:
    """One evaluation per candidate from the bands of the folds that have been learnt, by fold."""
    r = np.concatenate([data.r[data.folds[fold]] for fold in parts])
    lower = np.concatenate([part.lower for part in parts.values()], axis=2)
    upper = np.concatenate([part.upper for part in parts.values()], axis=2)
    gaps = np.array([part.gaps for part in parts.values()])
    means = np.mean([part.means for part in parts.values()], axis=0)
    missed, failed = np.sum(~(gaps <= SEARCH_TOL), axis=0), np.sum(~(gaps < 1), axis=0)
    return [
        Evaluation(ell, penalty, HeldOut(lo, up, r, score), int(missed[i, j]), int(failed[i, j]))
        for i, ell in enumerate(lengthscales)
        for j, penalty in enumerate(penalties)
        for lo, up, score in [(lower[i, j], upper[i, j], data.score.fitted(*means[:, i, j].tolist()))]
    ]


def penalty_units(points: Array, r: Array, kernel: Any, normalize: bool | PenaltyScale) -> bool | PenaltyScale:
    """The `normalize` argument of every solve: one scale for all folds and candidates."""
    return penalty_scale(points, r, kernel) if normalize is True else normalize
