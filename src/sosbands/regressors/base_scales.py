"""Base scales of an interval regressor: what its point model says of its own error, and a forest of residual sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import StandardScaler

from sosbands._types import Array
from sosbands.point_models import GaussianProcess, ModelBlend

TREES, LEAF, SMALL_LEAF, SMALL_ROWS = 100, 10, 5, 200
TREE_ROWS = 2000  # each tree sees at most so many: more rows make the forest slow, not better
LARGEST_SINGLE = float(np.finfo(np.float32).max)
LARGEST_SHARE = 0.98  # quantile at which sizes are cut: single ones say little about a scale


def fit_size_forest(
    points: Array, prediction: Array, r: Array, seed: int, sample_weight: Array | None = None
) -> tuple[RandomForestRegressor, Array]:
    """A forest of the sizes of residuals, given inputs and prediction, and its out-of-bag sizes at these rows."""
    sizes = np.abs(r)
    forest = RandomForestRegressor(
        TREES,
        min_samples_leaf=LEAF if len(r) > SMALL_ROWS else SMALL_LEAF,
        max_features=0.5,
        max_samples=TREE_ROWS if len(r) > TREE_ROWS else None,
        oob_score=True,
        random_state=seed,
    )
    cut = np.minimum(sizes, np.quantile(sizes, LARGEST_SHARE))
    with np.errstate(invalid="ignore"):  # scikit-learn looks whether the sizes are integers of 64 bits
        forest.fit(_seen(points, prediction), cut, sample_weight)
    return forest, np.asarray(forest.oob_prediction_, dtype=float)


def forest_sizes(forest: RandomForestRegressor, points: Array, prediction: Array) -> Array:
    """Sizes of residuals at new rows."""
    return np.asarray(forest.predict(_seen(points, prediction)), dtype=float)


def _seen(points: Array, prediction: Array) -> Array:
    """What the forest sees, within the range of the single precision in which trees compare."""
    table: Array = np.column_stack([points, prediction])
    return table.clip(-LARGEST_SINGLE, LARGEST_SINGLE)


def model_lengthscales(estimator: Any, preprocessor: Any, *, sees_points: bool) -> Array | None:
    """Lengthscales of the Gaussian process in a point model, in units of what the preprocessor gives.

    None without a process, or if it sees other columns than the kernel of the bands.
    """
    members = estimator.members_ if isinstance(estimator, ModelBlend) else [estimator]
    process = next((each for each in members if isinstance(each, GaussianProcess)), None)
    if process is None:
        return None
    if sees_points or preprocessor is None:
        return np.asarray(process.lengthscale_)
    scales = isinstance(preprocessor, StandardScaler) and preprocessor.scale_ is not None
    return np.asarray(process.lengthscale_ / preprocessor.scale_) if scales else None
