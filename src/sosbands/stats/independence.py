"""Permutation tests of independence between band width and residual, over one or many candidate bands.

The statistic is HSIC with the energy kernel on a grid. As ``|s - t| = integral (1[s <= u] - 1[t <= u])^2 du``, the
squared distance covariance is ``4 integral integral cov(1[x <= u], 1[y <= v])^2 du dv``; the integrals are taken over
at most `GRID` intervals between order statistics, which makes a permutation a product of small matrices. With as many
intervals as points it is the V-statistic itself. A permutation test is exact for any statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from sosbands._arguments import read_numbers
from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.stats.arguments import check_finite, check_lengthscales, check_resamples, generator, read_points
from sosbands.stats.hsic import _is_constant as is_constant

GRID = 24
MAX_ROWS = 1500  # of more residuals a random sample is tested against the features, all pairs of them
COSINES = 8  # terms of the energy kernel on ranks: those left out weigh 7 % of it
PERMUTATION_BATCH = 50


@dataclass(frozen=True)
class TestResult:
    """Outcome of a permutation test.

    Attributes
    ----------
    statistic : float
    p_value : float
        ``(1 + #{permuted >= observed}) / (1 + n_permutations)``.
    n_permutations : int
    name : str
    """

    __test__ = False  # not a test of pytest

    statistic: float
    p_value: float
    n_permutations: int
    name: str


@ONE_THREAD
def independence_test(
    widths: Sequence[ArrayLike],
    residuals: Sequence[ArrayLike],
    *,
    selected: int | None = None,
    scale_free: bool = False,
    n_permutations: int = 199,
    random_state: int | np.random.Generator | None = None,
) -> TestResult:
    """Test whether residuals depend on the widths of the candidate bands learnt for them.

    Parameters
    ----------
    widths, residuals : sequences of arrays of shape (n,)
        One pair per candidate, all over the same n points in the same order.
    selected : int, optional
        None compares the largest statistic over all candidates with its permutations, one permutation applied to
        every candidate at once, so that the choice of the best candidate is part of the null. A number tests that
        candidate alone, as if it had been fixed beforehand.
    scale_free : bool
        Divide each candidate's statistic by the root of those of its width and of its residual with themselves, which
        makes it a squared distance correlation.
    n_permutations : int
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        p = 1 if all widths, or all residuals, are constant.
    """
    pairs = _read_pairs(widths, residuals)
    check_resamples("n_permutations", n_permutations)
    if selected is not None and not 0 <= selected < len(pairs):
        raise ValueError(f"selected={selected!r}: expected the position of one of {len(pairs)} candidates")
    chosen = pairs if selected is None else [pairs[selected]]
    halves = [(indicators(W), indicators(R)) for W, R in chosen]
    units = [_unit(x, y) if scale_free else 1.0 for x, y in halves]
    observed = max(_statistic(x, y) / unit for (x, y), unit in zip(halves, units, strict=True))
    rng = generator(random_state)
    n = len(pairs[0][0])
    exceed = 0
    for _ in range(n_permutations):
        order: IntArray = rng.permutation(n)
        largest = max(_statistic(x, y[order]) / unit for (x, y), unit in zip(halves, units, strict=True))
        exceed += largest >= observed * (1 - 1e-12)
    name = "max-statistic permutation" if selected is None else "permutation"
    p_value = 1.0 if observed == 0 else (1 + exceed) / (1 + n_permutations)
    return TestResult(float(observed), p_value, n_permutations, name)


@ONE_THREAD
def feature_independence_test(
    X: ArrayLike,
    residuals: ArrayLike,
    lengthscales: Sequence[float],
    *,
    n_permutations: int = 199,
    random_state: int | np.random.Generator | None = None,
) -> TestResult:
    """Test whether the sizes of residuals depend on where they are, without any band.

    HSIC between places (Gaussian kernel, centred, of unit norm) and the ranks of the sizes (energy kernel, by the eight
    largest terms of its cosine series), the largest over several lengthscales. The sizes are permuted and nothing was
    learnt from them, so that the test is exact where residuals are exchangeable: ``independence_test`` of
    cross-validated widths is not, as each residual has a part in the widths of the others.

    Parameters
    ----------
    X : array-like of shape (n, d)
    residuals : array-like of shape (n,)
        Of more than 1500 a random sample is tested.
    lengthscales : sequence of float
        Of the Gaussian kernel.
    n_permutations : int
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        p = 1 if all sizes, or all places, are equal.
    """
    points, r = read_points(X, residuals)
    size = np.abs(r)
    check_lengthscales("lengthscales", lengthscales)
    check_resamples("n_permutations", n_permutations)
    rng = generator(random_state)
    if len(size) > MAX_ROWS:
        rows = rng.choice(len(size), MAX_ROWS, replace=False)
        points, size = points[rows], size[rows]
    sizes = _cosines(rankdata(size) if size.any() else size)
    distances = cdist(points, points)
    with np.errstate(over="ignore"):  # of places that are infinitely far apart in a lengthscale
        kernels = [_centred_unit(np.exp(-0.5 * np.square(distances / ell))) for ell in lengthscales]

    def statistics(batch: Array) -> Array:
        """``max over kernels of sum_k u_k' K u_k / n`` for each of a batch of shape (n, count, terms)."""
        flat = batch.reshape(len(size), -1)
        forms = [np.einsum("ij,ij->j", flat, K @ flat).reshape(batch.shape[1:]).sum(axis=1) for K in kernels]
        return np.asarray(np.max(forms, axis=0) / len(size))

    observed = float(statistics(sizes[:, None, :])[0])
    null: list[float] = []
    for start in range(0, n_permutations, PERMUTATION_BATCH):
        orders = [rng.permutation(len(size)) for _ in range(min(PERMUTATION_BATCH, n_permutations - start))]
        null += statistics(np.stack([sizes[order] for order in orders], axis=1)).tolist()
    exceed = int(np.count_nonzero(np.array(null) >= observed - 1e-12 * abs(observed)))
    p_value = 1.0 if not observed > 0 else (1 + exceed) / (1 + n_permutations)
    return TestResult(observed, p_value, n_permutations, "feature permutation")


def _cosines(ranks: Array) -> Array:
    """Terms ``cos(pi k u)/k`` of the energy kernel on ranks ``u`` in (0, 1), centred; zero if all are equal."""
    u = (ranks - 0.5) / len(ranks)
    terms = np.cos(np.pi * np.outer(u, np.arange(1, COSINES + 1))) / np.arange(1, COSINES + 1)
    return np.asarray(terms - terms.mean(axis=0)) if np.ptp(ranks) > 0 else np.zeros_like(terms)


def _centred_unit(K: Array) -> Array:
    """``HKH`` divided by its Frobenius norm; zero if all places are equal."""
    mean = K.mean(axis=0)
    centred = K - mean[:, None] - mean[None, :] + mean.mean()
    norm = float(np.linalg.norm(centred))
    return np.asarray(centred / norm) if norm > 1e-12 * len(K) else np.zeros_like(K)


def _read_pairs(widths: Sequence[ArrayLike], residuals: Sequence[ArrayLike]) -> list[tuple[Array, Array]]:
    """One pair of arrays per candidate, all of one length and finite."""
    if len(widths) != len(residuals) or not len(widths):
        raise ValueError(f"widths and residuals have {len(widths)} and {len(residuals)} candidates: expected as many")
    named = enumerate(zip(widths, residuals, strict=True))
    pairs = [(read_numbers(f"widths[{k}]", W), read_numbers(f"residuals[{k}]", R)) for k, (W, R) in named]
    shape = (pairs[0][0].size,)
    for candidate, pair in enumerate(pairs):
        for name, values in zip(("widths", "residuals"), pair, strict=True):
            if values.shape != shape or not shape[0]:
                raise ValueError(f"{name}[{candidate}] has shape {values.shape}: expected (n,), the same n for all")
            check_finite(f"{name}[{candidate}]", values)
    return pairs


def indicators(values: ArrayLike, grid: int = GRID) -> Array:
    """Centred indicators ``1[x_i <= u_k]`` times the root of the k-th interval's length, shape (n, at most `grid`)."""
    x = np.asarray(values, dtype=float)
    ordered = np.sort(x)
    if len(x) < 2 or is_constant(x):
        return np.zeros((len(x), 1))  # a constant, up to rounding
    edges = np.unique(np.linspace(0, len(x) - 1, min(grid, len(x) - 1) + 1).round().astype(int))
    # the middle order statistic of an interval of several stands for all of it
    cuts = ordered[(edges[:-1] + edges[1:] - 1) // 2]
    lengths = np.diff(ordered[edges])
    below = (x[:, None] <= cuts[None, :]).astype(float)
    return np.asarray((below - below.mean(axis=0)) * np.sqrt(lengths))


def _statistic(x: Array, y: Array) -> float:
    return float(4 * np.square(x.T @ y / len(x)).sum())


def _unit(x: Array, y: Array) -> float:
    return float(np.sqrt(_statistic(x, x) * _statistic(y, y))) or 1.0
