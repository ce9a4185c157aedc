"""Mean targets of categories, such that no learning row knows its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from sosbands._types import Array, IntArray

SMOOTH = 2.0  # rows' worth of the mean of all that a category's mean target is drawn towards
FOLDS = 5


def target_encoder() -> Any:
    """Unfitted: codes of categories in, smoothed mean targets out, the mean of all for codes that it has not seen."""
    return plain_output(TargetEncoder(target_type="continuous", smooth=SMOOTH))


def cross_fitted(codes: IntArray, y: Array) -> Array:
    """Mean targets of the category of each row, over rows of the other folds: none knows its own target.

    As `TargetEncoder.fit_transform`, whose way to give a seed changes from version to version.
    """
    means = np.empty(codes.shape)
    for learn, held in KFold(min(FOLDS, len(y)), shuffle=True, random_state=0).split(codes):
        means[held] = target_encoder().fit(codes[learn], y[learn]).transform(codes[held])
    return means


def plain_output(part: Any) -> Any:
    """A part that gives arrays, whatever scikit-learn is configured to give."""
    return part.set_output(transform="default")
