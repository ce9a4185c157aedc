"""Exact shares: a band function by landmarks, any function of noise features by groups of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
from scipy.linalg import solve_triangular

from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.bands import SoSFunction

ALL_ORDERS = 4  # groups of features up to which all orders are tried, at most 24; of more a sample
PAIRS = 8  # of sampled orders, each with its reverse


@ONE_THREAD
def landmark_parts(function: SoSFunction, points: Array) -> Array:
    """What each landmark contributes to ``Phi(x)' A Phi(x)``, shape (n, landmarks).

    With ``u(x) = B' Phi(x)`` the function is ``u(x)'u(x)``, and u is interpolated from its values at the landmarks:
    ``u(x) = sum_j W_j(x) u(p_j) + (1 - sum_j W_j(x)) u_0`` with ``W(x) = K_PP^-1 k_P(x)`` and what the constant
    feature gives, u_0, which is 0 without one. Landmark j contributes ``W_j(x) u(x)'u(p_j)``: everything at itself,
    nothing at the others. What is left of the function is that of the constant.
    """
    features, B = function.features, function.B
    if function.ridge:
        B = np.hstack([B, np.sqrt(function.ridge) * np.eye(len(B))])
    first = 1 if features.constant else 0
    at_landmarks = features.L @ B[first:] + features.constant * (B[:1] if first else 0.0)
    parts = [np.zeros((0, len(features.L)))]
    for Phi in features.blocks(points):
        W = solve_triangular(features.L, Phi[first:], lower=True, trans="T", check_finite=False)
        parts.append((W * (at_landmarks @ (B.T @ Phi))).T)
    return np.concatenate(parts)


def feature_parts(
    value: Callable[[Array], Array], points: Array, reference: Array, groups: Sequence[IntArray]
) -> Array:
    """Shapley values of groups of columns, shape (n, groups), which sum to ``value(points) - value(reference)``.

    The columns of the reference are replaced by those of a row, one group after another; a group gets the mean change
    over orders. All orders of up to four groups are tried; of more eight random ones and their reverses: then the
    shares are estimates, and their sum is exact all the same.

    Parameters
    ----------
    value : callable
        From points of shape (n, d) to n numbers.
    points : ndarray of shape (n, d)
    reference : ndarray of shape (d,)
    groups : sequence of ndarray of int
        Columns of each group; every column is in one of them.
    """
    known: dict[frozenset[int], Array] = {}

    def at(taken: frozenset[int]) -> Array:
        if taken not in known:
            mixed = np.tile(reference, (len(points), 1))
            for k in taken:
                mixed[:, groups[k]] = points[:, groups[k]]
            known[taken] = value(mixed)
        return known[taken]

    orders = _orders(len(groups))
    shares = np.zeros((len(points), len(groups)))
    for order in orders:
        for place, k in enumerate(order):
            shares[:, k] += at(frozenset(order[: place + 1])) - at(frozenset(order[:place]))
    return shares / len(orders)


def _orders(n: int) -> list[tuple[int, ...]]:
    if n <= ALL_ORDERS:
        return list(permutations(range(n)))
    rng = np.random.default_rng(0)
    some = [tuple(rng.permutation(n).tolist()) for _ in range(PAIRS)]
    return [*some, *(each[::-1] for each in some)]
