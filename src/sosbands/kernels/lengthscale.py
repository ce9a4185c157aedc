"""Rules of thumb for the lengthscale."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from sosbands._types import Array

# 2000 rows give 2e6 pairs (16 MB): above that a fixed sample of rows is compared instead of all pairs.
MAX_ROWS = 2000


def median_lengthscale(X: Array, *, max_rows: int = MAX_ROWS, random_state: int = 0) -> float:
    """Median Euclidean distance between two different rows of `X`.

    Distances of zero (repeated rows) are left out if they make the median zero. Without two
    different rows every lengthscale gives the same kernel matrix and 1 is returned.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Learning points.
    max_rows : int
        Largest number of rows whose pairs are all compared; of more rows a random sample is taken.
    random_state : int
        Seed of that sample.
    """
    if len(X) > max_rows:
        X = X[np.random.default_rng(random_state).choice(len(X), max_rows, replace=False)]
    distances = pdist(X)
    if np.all(np.isfinite(distances)) and distances.any():
        return float(np.median(distances)) or float(np.median(distances[distances > 0]))
    # overflow or underflow of squares, or no two different rows; halves, because differences may overflow too
    centred = X / 2 - X[:1] / 2
    unit = float(np.abs(centred).max(initial=0.0))
    return 2 * unit * median_lengthscale(centred / unit) if unit > 0 else 1.0
