"""Tests of independence, equality and symmetry by permuted places, labels and signs.

`independence_test` has HSIC with the energy kernel on a grid. As ``|s - t| = integral (1[s <= u] - 1[t <= u])^2 du``,
the squared distance covariance is ``4 integral integral cov(1[x <= u], 1[y <= v])^2 du dv``; the integrals are taken
over at most `GRID` intervals between order statistics, which makes a permutation a product of small matrices. With as
many intervals as points it is the V-statistic itself. A permutation test is exact for any statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.stats import kruskal, permutation_test, rankdata

from sosbands._arguments import check, is_count, is_number, read_numbers
from sosbands._threads import ONE_THREAD
from sosbands._types import AnyArray, Array, IntArray
from sosbands.stats.dependence import check_finite, is_constant

GRID = 24
MAX_ROWS = 1500  # of more residuals a random sample is tested: the statistics compare all pairs of them
COSINES = 8  # terms of the energy kernel on ranks: those left out weigh 7 % of it
PERMUTATION_BATCH = 50
LABELS_AT_A_TIME = 2000  # permutations at a time
FLIPS_AT_A_TIME = 1000  # flips at a time


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

    p = 1 if all widths, or all residuals, are constant.

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
    """
    if len(widths) != len(residuals) or not len(widths):
        raise ValueError(f"widths and residuals have {len(widths)} and {len(residuals)} candidates: expected as many")
    named = enumerate(zip(widths, residuals, strict=True))
    pairs = [(read_numbers(f"widths[{k}]", W), read_numbers(f"residuals[{k}]", R)) for k, (W, R) in named]
    n = pairs[0][0].size
    for candidate, pair in enumerate(pairs):
        for name, values in zip(("widths", "residuals"), pair, strict=True):
            if values.shape != (n,) or not n:
                raise ValueError(f"{name}[{candidate}] has shape {values.shape}: expected (n,), the same n for all")
            check_finite(f"{name}[{candidate}]", values)
    rng = random_numbers(random_state, "n_permutations", n_permutations)
    known = selected is None or 0 <= selected < len(pairs)
    check("selected", selected, known, f"the position of one of {len(pairs)} candidates")
    chosen = pairs if selected is None else [pairs[selected]]
    halves = [(indicators(W), indicators(R)) for W, R in chosen]
    units = [1.0] * len(halves)
    if scale_free:
        units = [float(np.sqrt(_statistic(x, x) * _statistic(y, y))) or 1.0 for x, y in halves]
    observed = max(_statistic(x, y) / unit for (x, y), unit in zip(halves, units, strict=True))
    exceed = 0
    for _ in range(n_permutations):
        order: IntArray = rng.permutation(n)
        largest = max(_statistic(x, y[order]) / unit for (x, y), unit in zip(halves, units, strict=True))
        exceed += largest >= observed * (1 - 1e-12)
    test = "max-statistic permutation" if selected is None else "permutation"
    p_value = 1.0 if observed == 0 else (1 + exceed) / (1 + n_permutations)
    return TestResult(float(observed), p_value, n_permutations, test)


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
    cross-validated widths is not, as each residual has a part in the widths of the others. p = 1 if all sizes, or all
    places, are equal.

    Parameters
    ----------
    X : array-like of shape (n, d)
    residuals : array-like of shape (n,)
        Of more than 1500 a random sample is tested.
    lengthscales : sequence of float
        Of the Gaussian kernel.
    n_permutations : int
    random_state : int, Generator or None
    """
    given = lengthscales[0] if len(lengthscales) == 1 else lengthscales
    check("lengthscales", given, all(is_number(ell) and ell > 0 for ell in lengthscales), "a number > 0")
    rng = random_numbers(random_state, "n_permutations", n_permutations)
    points, r = _read_points(X, residuals, rng)
    size = np.abs(r)
    # terms cos(pi k u)/k of the energy kernel on ranks u in (0, 1), centred; zero if all are equal
    ranks, orders_of_cosines = rankdata(size), np.arange(1, COSINES + 1)
    sizes = np.cos(np.pi * np.outer((ranks - 0.5) / len(ranks), orders_of_cosines)) / orders_of_cosines
    sizes = sizes - sizes.mean(axis=0) if np.ptp(ranks) > 0 else np.zeros_like(sizes)
    distances, kernels = cdist(points, points), []
    for ell in lengthscales:
        with np.errstate(over="ignore"):  # of places that are infinitely far apart in a lengthscale
            K = np.exp(-0.5 * np.square(distances / ell))
        mean = K.mean(axis=0)  # HKH divided by its Frobenius norm; zero if all places are equal
        centred = K - mean[:, None] - mean[None, :] + mean.mean()
        norm = float(np.linalg.norm(centred))
        kernels.append(centred / norm if norm > 1e-12 * len(K) else np.zeros_like(K))

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


def kruskal_wallis_test(
    groups: ArrayLike, *, n_permutations: int = 2000, random_state: int | np.random.Generator | None = None
) -> TestResult:
    """Test whether replicates of equally many values per group come from one distribution, by H, ties corrected.

    p = 1 if all values are equal. Where there are fewer arrangements of the labels than permutations, p is the share of
    those as extreme.

    Parameters
    ----------
    groups : array-like of shape (n_groups, n_replicates)
        The paper's groups are the symmetry penalties, the values replicates of the criterion. Replicates that share
        data are not exchangeable between groups: the level then is not what it says.
    n_permutations : int
    random_state : int, Generator or None
    """
    values = read_numbers("groups", groups)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(f"groups has shape {values.shape}: expected at least two groups of two or more replicates")
    check_finite("groups", values)
    rng = random_numbers(random_state, "n_permutations", n_permutations)
    if np.ptp(values) == 0:
        return TestResult(0.0, 1.0, n_permutations, "kruskal-wallis")
    ranks = rankdata(values).reshape(values.shape)
    found = permutation_test(  # for groups of one size H grows with the squared sums of their ranks
        tuple(ranks),
        lambda *groups, axis: np.square([group.sum(axis=axis) for group in groups]).sum(axis=0),
        vectorized=True,
        n_resamples=n_permutations,
        batch=LABELS_AT_A_TIME,
        alternative="greater",
        random_state=rng,
    )
    return TestResult(float(kruskal(*values).statistic), float(found.pvalue), n_permutations, "kruskal-wallis")


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
    sizes, so that random signs give the exact null. A bias of the point model counts as asymmetry too. p = 1 if no two
    residuals can be compared: all but one are zero, or there is only one.

    Parameters
    ----------
    X : array-like of shape (n, d)
        What the kernel sees.
    residuals : array-like of shape (n,)
    lengthscale : float
        Of the Gaussian kernel k that compares places; inf takes all places as one.
    n_flips : int
    random_state : int, Generator or None
    """
    check("lengthscale", lengthscale, is_number(lengthscale) and lengthscale > 0, "a number > 0")
    rng = random_numbers(random_state, "n_flips", n_flips)
    points, r = _read_points(X, residuals, rng)
    size = np.abs(r)
    unit = np.median(size[size > 0]) if size.any() else 1.0
    a = size / unit
    M = np.abs(np.subtract.outer(a, a))  # in place: of 1500 rows a matrix has 18 MB
    np.exp(np.negative(M, out=M), out=M)
    other = np.add.outer(a, a)
    M -= np.exp(np.negative(other, out=other), out=other)
    with np.errstate(over="ignore"):  # of places that are infinitely far apart in lengthscales
        places = cdist(points, points, out=other)
        places /= lengthscale
        np.square(places, out=places)
    places *= -0.5
    M *= np.exp(places, out=places)
    del other, places
    np.fill_diagonal(M, 0.0)  # the diagonal does not depend on the signs
    signs = np.sign(r)
    observed = float(signs @ M @ signs)
    tie = 1e-12 * np.abs(M).sum()  # of the same signs summed in another order, also where T itself nearly cancels
    exceed = 0
    for start in range(0, n_flips, FLIPS_AT_A_TIME):
        flips = rng.choice([-1.0, 1.0], size=(min(FLIPS_AT_A_TIME, n_flips - start), len(r)))
        null = np.einsum("bi,bi->b", flips @ M, flips)
        exceed += int(np.count_nonzero(null >= observed - tie))
    p_value = 1.0 if not M.any() else (1 + exceed) / (1 + n_flips)
    return TestResult(observed, p_value, n_flips, "sign-flip")


def bootstrap_test(
    criteria: Sequence[Callable[[AnyArray], float]],
    n: int,
    reference: int,
    *,
    n_bootstraps: int = 199,
    random_state: int | np.random.Generator | None = None,
) -> TestResult:
    """Paired bootstrap of the best candidate's criterion over that of a reference candidate.

    All candidates are evaluated on the same resampled points. Resampled differences are centred at the observed ones
    before the best is taken, so that the choice of the best is part of the null. The statistic is the largest gain. If
    the reference itself is the best, p = 1.

    Parameters
    ----------
    criteria : sequence of callables
        ``criterion(rows) -> float`` of each candidate, with positions of points, below n.
    n : int
        Points.
    reference : int
        Position of the candidate to be improved on.
    n_bootstraps : int
    random_state : int, Generator or None
    """
    known = 0 <= reference < len(criteria)
    check("reference", reference, known, f"the position of one of {len(criteria)} candidates")
    rng = random_numbers(random_state, "n_bootstraps", n_bootstraps)

    def differences(rows: AnyArray) -> Array:
        values = np.array([criterion(rows) for criterion in criteria])
        return np.asarray(values - values[reference])

    observed = differences(np.arange(n))
    best = float(observed.max())
    null = [float((differences(rng.integers(0, n, n)) - observed).max()) for _ in range(n_bootstraps)]
    exceed = int(np.count_nonzero(np.asarray(null) >= best))
    p_value = 1.0 if best <= 0 else (1 + exceed) / (1 + n_bootstraps)
    return TestResult(best, p_value, n_bootstraps, "bootstrap")


def _read_points(X: ArrayLike, residuals: ArrayLike, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points of shape (n, d) and as many residuals, a sample of them if there are many."""
    points, r = read_numbers("X", X), read_numbers("residuals", residuals)
    if points.ndim != 2 or r.shape != (len(points),) or not len(r):
        raise ValueError(f"X and residuals have shapes {points.shape} and {r.shape}: expected (n, d) and (n,), n >= 1")
    check_finite("X", points)
    check_finite("residuals", r)
    if len(r) <= MAX_ROWS:
        return points, r
    rows = rng.choice(len(r), MAX_ROWS, replace=False)
    return points[rows], r[rows]


def random_numbers(random_state: Any, name: str, count: Any) -> np.random.Generator:
    """A generator for so many permutations, flips or samples, called `name`; one that is given is used and goes on."""
    check(name, count, is_count(count) and count >= 1, "an int >= 1")
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(f"random_state={random_state!r}: expected an int >= 0, a Generator or None") from None
