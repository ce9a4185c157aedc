"""Folds of learning rows by a splitter of the user's: which rows are predicted by a copy that has not seen them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import TimeSeriesSplit

from sosbands._arguments import is_splitter, naming
from sosbands._types import Array, IntArray

Split = tuple[IntArray, IntArray]  # rows to learn from, rows to predict


def keeps_order(cv: Any) -> bool:
    """Whether folds predict later rows from earlier ones, so that rows are in the order of time."""
    return isinstance(cv, TimeSeriesSplit)


def own_splits(cv: Any, y: Array) -> list[Split] | None:
    """The splits that a splitter makes of the rows with targets `y`; None for a number of folds.

    Rows may be in no fold, as the first ones of `TimeSeriesSplit`, but in none twice: a row has one residual.
    """
    if not is_splitter(cv):
        return None
    with naming("cv"):
        splits = [(np.asarray(learn), np.asarray(held)) for learn, held in cv.split(np.zeros((len(y), 1)), y)]
    held = np.concatenate([each for _, each in splits]) if splits else np.zeros(0, dtype=np.intp)
    if not len(held) or any(len(learn) == 0 for learn, _ in splits):
        raise ValueError(f"cv={cv!r} leaves nothing to predict, or nothing to learn from: expected folds with rows")
    twice = int(len(held) - len(np.unique(held)))
    if twice:
        raise ValueError(f"cv={cv!r} predicts {twice} of the rows more than once: expected folds that share no row")
    if any(len(np.intersect1d(learn, each)) for learn, each in splits):
        raise ValueError(f"cv={cv!r} learns from rows that it predicts: expected folds that hold them out")
    return splits
