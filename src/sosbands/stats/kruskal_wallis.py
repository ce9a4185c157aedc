"""The Kruskal-Wallis test with a null made by permuting the labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from sosbands._arguments import read_numbers
from sosbands._types import Array
from sosbands.stats.arguments import check_finite, check_resamples, generator
from sosbands.stats.independence import TestResult

BATCH = 2000  # permutations at a time


def kruskal_wallis_test(
    groups: ArrayLike, *, n_permutations: int = 2000, random_state: int | np.random.Generator | None = None
) -> TestResult:
    """Test whether replicates of equally many values per group come from one distribution.

    Parameters
    ----------
    groups : array-like of shape (n_groups, n_replicates)
        The paper's groups are the symmetry penalties, the values replicates of the criterion. Replicates that share
        data are not exchangeable between groups: the level then is not what it says.
    n_permutations : int
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        With the H statistic, ties corrected; p = 1 if all values are equal.
    """
    values = read_numbers("groups", groups)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 1:
        raise ValueError(f"groups has shape {values.shape}: expected at least two groups of replicates")
    check_finite("groups", values)
    check_resamples("n_permutations", n_permutations)
    n_groups, n_replicates = values.shape
    ranks = rankdata(values.ravel())
    n = ranks.size
    if np.ptp(values) == 0:
        return TestResult(0.0, 1.0, n_permutations, "kruskal-wallis")
    _, ties = np.unique(ranks, return_counts=True)
    correction = 1 - float((ties**3 - ties).sum()) / (n**3 - n)

    def statistic(arranged: Array) -> Array:
        sums = arranged.reshape(*arranged.shape[:-1], n_groups, n_replicates).sum(axis=-1)
        H = 12 / (n * (n + 1)) * (np.square(sums) / n_replicates).sum(axis=-1) - 3 * (n + 1)
        return np.asarray(H / correction)

    observed = float(statistic(ranks))
    rng = generator(random_state)
    exceed = 0
    for start in range(0, n_permutations, BATCH):
        count = min(BATCH, n_permutations - start)
        null = statistic(rng.permuted(np.tile(ranks, (count, 1)), axis=1))
        exceed += int(np.count_nonzero(null >= observed - 1e-9))
    return TestResult(observed, (1 + exceed) / (1 + n_permutations), n_permutations, "kruskal-wallis")
