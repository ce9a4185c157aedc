"""The lengthscale of the squared sum of squares: cross-validated dependence of held-out widths and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import KFold

from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.bands import learn_band_grid
from sosbands.kernels import learn_features, median_lengthscale, resolve_kernel
from sosbands.stats import hsic, independence_test
from sosbands.tuning.rules import permutations_for
from sosbands.tuning.search import QUIET

FACTORS = tuple(np.geomspace(0.1, 3.2, 11).tolist())  # of the median distance, half an octave apart
# While searching, features and gap are coarse: the criterion is a noisy statistic of the bands.
SEARCH_RANK = 200
SEARCH_TOL = 1e-3
SMALLEST_SHARE = 0.5  # of the kernel at a learning point that coarse features must keep: below f explodes elsewhere


@ONE_THREAD
def tune_lengthscale(
    points: Array,
    r: Array,
    folds: KFold,
    options: dict[str, Any],
    *,
    n_jobs: int | None,
    seed: int,
    level: float | None = None,
) -> dict[str, Any]:
    """Choose the lengthscale that maximises ``HSIC(sqrt(f), |r|)`` over held-out points.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        What the kernel sees.
    r : ndarray of shape (n,)
        Residuals.
    folds : KFold
    options : dict
        Arguments of `learn_band_grid` but for lengthscales, penalties, rank and tolerance; `kernel` is a name.
    n_jobs : int or None
        Processes, over folds.
    seed : int
        Of the permutations of the test.
    level : float or None
        At which the test is read, if it is: it says how many permutations are made.

    Returns
    -------
    dict
        ``lengthscale``, the best of ``lengthscales``; their criterion ``hsic``; ``p_value`` of the hypothesis that
        held-out widths and residuals are independent for all of them (max-statistic permutation test).
    """
    lengthscales = candidates(points, options["kernel"])
    held_out = [held for _, held in folds.split(points)]
    jobs = (delayed(held_out_widths)(points, r, held, lengthscales, options) for held in held_out)
    widths = np.empty((len(lengthscales), len(r)))
    for held, part in zip(held_out, Parallel(n_jobs=n_jobs)(jobs), strict=True):
        widths[:, held] = part
    sizes = np.abs(r)
    values = np.array([hsic(width, sizes) for width in widths])
    count = permutations_for(level or 1.0)
    test = independence_test(list(widths), [sizes] * len(widths), n_permutations=count, random_state=seed)
    return {
        "lengthscale": float(lengthscales[values.argmax()]),
        "lengthscales": lengthscales,
        "hsic": values,
        "p_value": float(test.p_value),
    }


def candidates(points: Array, kernel: str) -> Array:
    """Lengthscales around the median distance, but for those too short for the coarse features of the search.

    Features that keep a small part of the kernel at a learning point must be stretched to reach its residual, and f
    explodes elsewhere; HSIC rewards that, as it grows with the widths. If all are too short, the longest is left.
    """
    lengthscales = median_lengthscale(points) * np.array(FACTORS)
    shares = []
    with QUIET:
        for lengthscale in lengthscales.tolist():
            features = learn_features(points, resolve_kernel(kernel, lengthscale, points), _coarse_rank(len(points)))
            shares.append(float(np.square(features.V).sum(axis=0).min()))  # k(x, x) = 1
    kept: Array = lengthscales[np.array(shares) >= SMALLEST_SHARE]
    return kept if len(kept) else lengthscales[-1:]


@ONE_THREAD
def held_out_widths(points: Array, r: Array, held: IntArray, lengthscales: Array, options: dict[str, Any]) -> Array:
    """``sqrt(f)`` at one fold's points, learnt from the others, for every lengthscale: shape (lengthscales, held)."""
    others = np.setdiff1d(np.arange(len(r)), held)
    coarse = {**options, "rank": _coarse_rank(len(others)), "tol": SEARCH_TOL}
    with QUIET:
        # each solve starts from that of the neighbouring lengthscale
        grid = learn_band_grid(points[others], np.square(r[others]), lengthscales.tolist(), [np.inf], **coarse)
        return np.stack([np.sqrt(bands.upper(points[held])) for _, _, bands in grid])


def _coarse_rank(n: int) -> int:
    return min(SEARCH_RANK, n)
