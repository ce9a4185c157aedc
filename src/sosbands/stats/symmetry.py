"""Tests of whether residuals are symmetric, and whether a band gains from not being so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from sosbands._threads import ONE_THREAD
from sosbands._types import AnyArray, Array
from sosbands.stats.arguments import check_lengthscales, check_resamples, generator, read_points
from sosbands.stats.independence import TestResult

BATCH = 1000  # flips at a time
MAX_ROWS = 1500  # of more residuals a random sample is tested: the statistic is a quadratic form in all pairs


@ONE_THREAD
def sign_flip_test(
    X: ArrayLike,
    residuals: ArrayLike,
    lengthscale: float,
    *,
    n_flips: int = 999,
    random_state: int | np.random.Generator | None = None,
) -> TestResult:
    """Test the symmetry of residuals around zero, at every place.

    With signs s and sizes a of the residuals, ``T = s'Ms`` with
    ``M_ij = k(x_i, x_j) (exp(-|a_i - a_j|) - exp(-(a_i + a_j)))`` is large where residuals of like size at like places
    share their sign. Under symmetric noise around the true location the signs are independent fair coins given the
    sizes, so that random signs give the exact null. A bias of the point model counts as asymmetry too.

    Parameters
    ----------
    X : array-like of shape (n, d)
        What the kernel sees.
    residuals : array-like of shape (n,)
    lengthscale : float
        Of the Gaussian kernel k that compares places; inf takes all places as one.
    n_flips : int
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        p = 1 if no two residuals can be compared: all but one are zero, or there is only one.
    """
    rng = generator(random_state)
    points, r = read_points(X, residuals)
    check_lengthscales("lengthscale", [lengthscale])
    check_resamples("n_flips", n_flips)
    if len(r) > MAX_ROWS:
        rows = rng.choice(len(r), MAX_ROWS, replace=False)
        points, r = points[rows], r[rows]
    size = np.abs(r)
    unit = np.median(size[size > 0]) if size.any() else 1.0
    a = size / unit
    with np.errstate(over="ignore"):  # of places that are infinitely far apart in lengthscales
        places = np.exp(-0.5 * np.square(cdist(points, points) / lengthscale))
    M = places * (np.exp(-np.abs(a[:, None] - a[None, :])) - np.exp(-(a[:, None] + a[None, :])))
    np.fill_diagonal(M, 0.0)  # the diagonal does not depend on the signs
    signs = np.sign(r)
    observed = float(signs @ M @ signs)
    tie = 1e-12 * np.abs(M).sum()  # of the same signs summed in another order, also where T itself nearly cancels
    exceed = 0
    for start in range(0, n_flips, BATCH):
        flips = rng.choice([-1.0, 1.0], size=(min(BATCH, n_flips - start), len(r)))
        null = np.einsum("bi,bi->b", flips @ M, flips)
        exceed += int(np.count_nonzero(null >= observed - tie))
    p_value = 1.0 if not M.any() else (1 + exceed) / (1 + n_flips)
    return TestResult(observed, p_value, n_flips, "sign-flip")


def bootstrap_test(
    criterion: Callable[[Array, Array], float],
    pairs: Sequence[tuple[Array, Array]],
    reference: int,
    *,
    n_bootstraps: int = 199,
    random_state: int | np.random.Generator | None = None,
) -> TestResult:
    """Paired bootstrap of the best candidate's criterion over that of a reference candidate.

    All candidates are evaluated on the same resampled points. Resampled differences are centred at the observed ones
    before the best is taken, so that the choice of the best is part of the null.

    Parameters
    ----------
    criterion : callable
        ``criterion(widths, residuals) -> float``.
    pairs : sequence of pairs of ndarray of shape (n,)
        Pooled widths and residuals of each candidate.
    reference : int
        Position of the candidate to be improved on.
    n_bootstraps : int
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        With the largest gain over the reference as statistic; p = 1 if the reference itself is the best.
    """
    values = [lambda rows, W=W, R=R: criterion(W[rows], R[rows]) for W, R in pairs]
    n = len(pairs[0][0])
    return resampled_gain_test(values, n, reference, n_bootstraps=n_bootstraps, random_state=random_state)


def resampled_gain_test(
    criteria: Sequence[Callable[[AnyArray], float]],
    n: int,
    reference: int,
    *,
    n_bootstraps: int = 199,
    random_state: int | np.random.Generator | None = None,
) -> TestResult:
    """`bootstrap_test` for the criterion of each candidate as a function of the rows, positions below n."""
    if not 0 <= reference < len(criteria):
        raise ValueError(f"reference={reference!r}: expected the position of one of {len(criteria)} candidates")
    check_resamples("n_bootstraps", n_bootstraps)
    rng = generator(random_state)

    def differences(rows: AnyArray) -> Array:
        values = np.array([criterion(rows) for criterion in criteria])
        return np.asarray(values - values[reference])

    observed = differences(np.arange(n))
    best = float(observed.max())
    null = [float((differences(rng.integers(0, n, n)) - observed).max()) for _ in range(n_bootstraps)]
    exceed = int(np.count_nonzero(np.asarray(null) >= best))
    p_value = 1.0 if best <= 0 else (1 + exceed) / (1 + n_bootstraps)
    return TestResult(best, p_value, n_bootstraps, "bootstrap")
