"""Which rows a search is made on, and the folds it holds out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from sosbands._arguments import check_cv, is_splitter
from sosbands._types import AnyArray, Array, IntArray
from sosbands.bands import PenaltyScale
from sosbands.conformal import SCORES, Score
from sosbands.tuning.criterion import TuningData

MIN_ROWS = 4  # of fewer no test can say anything
MOST_BLOCKS = 10  # that a splitter of many folds makes
SEARCH_ROWS = 1000  # of more rows a random sample is tested and searched on


def searched_rows(n: int, rng: np.random.RandomState) -> IntArray:
    """Positions of the rows to search on, increasing: all, or a random sample of very many."""
    if n <= SEARCH_ROWS:
        return np.arange(n)
    return np.sort(rng.choice(n, SEARCH_ROWS, replace=False))


def held_out_folds(n: int, cv: Any, rng: np.random.RandomState) -> tuple[IntArray, ...]:
    """Positions that each of `cv` shuffled folds of n rows holds out; one fold of all if there are too few.

    A splitter made the residuals, of rows that may be in order: what is held out then are blocks of consecutive rows,
    as many as it has folds, from 2 to 10.
    """
    check_cv(cv)
    if n < MIN_ROWS:
        return (np.arange(n),)
    if is_splitter(cv):
        blocks = int(np.clip(cv.get_n_splits(np.zeros((n, 1))), 2, min(MOST_BLOCKS, n)))
        return tuple(held for _, held in KFold(blocks).split(np.zeros(n)))
    return tuple(held for _, held in KFold(min(cv, n), shuffle=True, random_state=rng).split(np.zeros(n)))


def searched_data(
    points: AnyArray,
    r: Array,
    rows: IntArray,
    folds: tuple[IntArray, ...],
    options: dict[str, Any],
    score: Score = SCORES["added"],
) -> TuningData:
    """What a search sees: the data of some rows, and penalties in units that weigh these as much as all.

    Parameters
    ----------
    points, r : ndarray of shape (n, d) and (n,)
        What the kernel sees (the kernel matrix if it is precomputed) and residuals, of all rows.
    rows : ndarray of int
        As `searched_rows` or a report gives them.
    folds : tuple of ndarray of int
        Positions among `rows`.
    options : dict
        Arguments of `learn_band_grid` that are not tuned.
    score : Score
        What calibration will make of the bands.
    """
    units = options["normalize"]
    if isinstance(units, PenaltyScale):
        options = {**options, "normalize": replace(units, n=len(rows))}  # the penalty is a sum over rows
    if len(rows) < len(r):
        precomputed = isinstance(options["kernel"], str) and options["kernel"] == "precomputed"
        points, r = points[np.ix_(rows, rows)] if precomputed else points[rows], r[rows]
    return TuningData(points, r, folds, options, score)
