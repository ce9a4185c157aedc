"""HSIC with the energy kernel, which is the squared distance covariance, in O(n log n)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sosbands._arguments import LARGEST, check_size, read_numbers
from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray

CONSTANT_RANGE = 1e-6  # a sample whose range is below this part of its mean size is rounding noise around a constant
DISTANCE = 10 * LARGEST  # of samples: they may be widths and distances of the largest numbers


@ONE_THREAD
def hsic(x: ArrayLike, y: ArrayLike) -> float:
    """HSIC with the energy kernel: the squared sample distance covariance of two samples of numbers.

    ``tr(K H L H) / n^2`` (the biased HSIC, a V-statistic) with the energy kernel ``k(s, t) = |s| + |t| - |s - t|`` on
    both sides and ``H`` the centring matrix. With ``a_ij = |x_i - x_j|``, ``b_ij = |y_i - y_j|`` it equals::

        mean_ij(a_ij b_ij) + mean_ij(a_ij) mean_ij(b_ij) - 2 mean_i(mean_j(a_ij) mean_j(b_ij))

    which needs sorting, cumulative sums and one merge count only (Chaudhuri & Hu 2019).

    At least 0, homogeneous of degree one in x and in y. Exactly 0 if x or y is constant: its range is zero, or below
    1e-6 of the mean of its absolute values.

    Parameters
    ----------
    x, y : array-like of shape (n,)
        Finite numbers, n >= 1.
    """
    u, v = _read_pair(x, y)
    if is_constant(u) or is_constant(v):
        return 0.0
    (u, u_exponent), (v, v_exponent) = _in_unit(u), _in_unit(v)
    return float(np.ldexp(_covariance(u, v), u_exponent + v_exponent))


@ONE_THREAD
def distance_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Distance correlation ``sqrt(hsic(x, y) / sqrt(hsic(x, x) hsic(y, y)))``, of samples as in `hsic`.

    In [0, 1], unchanged by shifts and scales of x and y; 1 if y is a linear function of x. Exactly 0 if x or y is
    constant in the sense of `hsic`.
    """
    u, v = _read_pair(x, y)
    if is_constant(u) or is_constant(v):
        return 0.0
    (u, _), (v, _) = _in_unit(u), _in_unit(v)
    ratio = _covariance(u, v) / np.sqrt(_variance(u)) / np.sqrt(_variance(v))
    return float(min(1.0, np.sqrt(ratio)))


def _read_pair(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    u, v = read_numbers("x", x), read_numbers("y", y)
    for name, sample in (("x", u), ("y", v)):
        if sample.ndim != 1 or sample.size == 0:
            raise ValueError(f"{name} has shape {sample.shape}: expected one dimension and at least one entry")
        check_finite(name, sample, DISTANCE)
    if len(u) != len(v):
        raise ValueError(f"y has {len(v)} entries: expected {len(u)}, as many as x")
    return u, v


def is_constant(x: Array) -> bool:
    """Whether a sample is one number, up to rounding."""
    spread = np.ptp(x)
    return bool(spread == 0 or spread < CONSTANT_RANGE * np.mean(np.abs(x)))


def _in_unit(x: Array) -> tuple[Array, int]:
    """The sample in units of a power of two, its largest entry in [1/2, 1), so that no sum of products overflows."""
    exponent = int(np.frexp(np.abs(x).max())[1])
    return np.ldexp(x, -exponent), exponent


def _covariance(x: Array, y: Array) -> float:
    n = len(x)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    x, y = x - x.mean(), y - y.mean()  # distances do not change, the cumulative sums lose fewer digits
    rank = np.empty(n, dtype=np.intp)
    rank[np.argsort(y, kind="stable")] = np.arange(n)
    # sum_{i<j} |x_i - x_j| |y_i - y_j| with |y_i - y_j| = (y_j - y_i) (2 [y_i < y_j] - 1): twice the pairs in the same
    # order less all pairs, over which (x_j - x_i)(y_j - y_i) sums to n x'y; ties contribute zero wherever they count
    products = 2 * (2 * _concordant_products(x, y, rank) - n * float(x @ y))
    return _centred(products, _row_sums(x, np.arange(n)), _row_sums(y, rank))


def _variance(x: Array) -> float:
    x = np.sort(x) - x.mean()
    rows = _row_sums(x, np.arange(len(x)))
    return _centred(2 * len(x) * float(x @ x), rows, rows)


def _centred(products: float, rows_x: Array, rows_y: Array) -> float:
    """From ``sum_ij a_ij b_ij`` and the row sums of the distances to the V-statistic."""
    n = len(rows_x)
    value = products / n**2 + (rows_x.mean() / n) * (rows_y.mean() / n) - 2 * float(rows_x @ rows_y) / n**3
    return max(0.0, float(value))


def _row_sums(x: Array, rank: IntArray) -> Array:
    """``sum_j |x_i - x_j|``, where `rank` puts x in increasing order."""
    n = len(x)
    ordered = np.empty(n)
    ordered[rank] = x
    below = np.cumsum(ordered)  # the sum of the entries up to this one
    sums: Array = (2 * np.arange(1, n + 1) - n) * ordered + below[-1] - 2 * below
    return sums[rank]


def _concordant_products(x: Array, y: Array, rank: IntArray) -> float:
    """``sum (x_j - x_i)(y_j - y_i)`` over i < j with rank_i < rank_j, for increasing x.

    Such a pair is met once, at the highest bit in which the two ranks differ. Level by level rows are grouped by the
    higher bits in their order, from the position `start` on, so that cumulative sums give the rows i of each j.
    """
    n = len(x)
    position = np.arange(n)
    terms = np.stack([np.ones(n), x, y, x * y])
    total = 0.0
    for bit in reversed(range((n - 1).bit_length())):
        start = (rank >> (bit + 1)) << (bit + 1)
        is_low = (rank >> bit) & 1 == 0
        before = np.zeros((4, n + 1))
        np.cumsum(np.where(is_low, terms, 0.0), axis=1, out=before[:, 1:])
        high = np.flatnonzero(~is_low)
        count, sum_x, sum_y, sum_xy = before[:, high] - before[:, start[high]]
        _, xj, yj, xyj = terms[:, high]
        total += float(np.sum(xyj * count - xj * sum_y - yj * sum_x + sum_xy))
        # stable partition of every group by this bit
        low_before = (before[0, :-1] - before[0, start]).astype(np.intp)
        lows = np.minimum(1 << bit, n - start)
        target = start + np.where(is_low, low_before, lows + (position - start - low_before))
        moved, new_rank = np.empty_like(terms), np.empty_like(rank)
        moved[:, target], new_rank[target] = terms, rank
        terms, rank = moved, new_rank
    return total


def check_finite(name: str, values: Array, largest: float = LARGEST) -> None:
    """Raise an error unless all are finite numbers with finite squares."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinite entries: expected finite numbers")
    check_size(name, values, largest_of_all=largest)
