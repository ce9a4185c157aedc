"""Better operators than those that multipliers give: the best ones with the same range, exact on the active rows.

The dual value at multipliers near the best is wrong to second order, the operators recovered from them to first order,
and to repair rows that they miss costs even more. Their range and the rows that shape them are known much better: on
that range the objective is a quadratic function of a small matrix, and the active rows are linear equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

from sosbands._types import Array, IntArray
from sosbands.problems.operators import PrimalSide
from sosbands.problems.side import SideState, SideTerm

MOST_UNKNOWNS = 250  # entries of the small matrices of all sides
PASSES = 4  # corrections of the guess which rows are active
MET = 1e-6  # of the largest target: a row that is missed by less counts as met


def best_in_range(
    terms: Sequence[SideTerm],
    states: Sequence[SideState],
    targets: Sequence[Array],
    multipliers: Sequence[Array],
    pens: Array | float = 0.0,
) -> tuple[PrimalSide, ...] | None:
    """Operators ``U S U'``, U the positive eigenvectors, of about the least objective; None if that is not quick.

    Every row has to be covered; `pens` is the price of the squared difference of two sides at each. The operators are
    positive semidefinite, and cover the rows up to rounding and what a last correction left.
    """
    ranks = [state.part.rank for state in states]
    if not all(ranks) or sum(r * (r + 1) // 2 for r in ranks) > MOST_UNKNOWNS:
        return None
    J = [_products(state.Zp) for state in states]  # the values of a side are s'J, s the entries of its S
    rows = [Rows(*each) for each in zip(states, targets, multipliers, strict=True)]
    quadratic = Quadratic(terms, J, pens)
    s: Array | None = None
    for _ in range(PASSES):
        found = quadratic.least(rows)
        if found is None:
            break
        s, prices = found
        values = [part @ each for part, each in zip(quadratic.split(s), J, strict=True)]
        wrong = [side.correct(f, price) for side, f, price in zip(rows, values, prices, strict=True)]
        if not any(wrong):
            break
    return None if s is None else tuple(map(_operator, states, quadratic.split(s)))


class Rows:
    """Which rows of a side are met exactly; the others are covered by more."""

    def __init__(self, state: SideState, target: Array, gamma: Array) -> None:
        self.target, self.slack = target, MET * float(np.abs(target).max())
        (self.met,) = np.nonzero((gamma > 0) | (state.f < target))

    def correct(self, f: Array, prices: Array) -> bool:
        """Correct the guess by the values and by the prices of the rows that are met; True if there was a need."""
        (missed,) = np.nonzero(f < self.target - self.slack)
        missed = np.setdiff1d(missed, self.met, assume_unique=True)
        needed = prices > 0
        if needed.all() and not len(missed):
            return False
        self.met = np.concatenate([self.met[needed], missed])
        return True


class Quadratic:
    """The objective in the entries of the small matrices of all sides."""

    def __init__(self, terms: Sequence[SideTerm], J: Sequence[Array], pens: Array | float) -> None:
        self.J, self.cuts = J, np.cumsum([len(each) for each in J])
        H = np.diag(np.repeat([2 * term.cost.lam2 for term in terms], [len(each) for each in J]))
        if len(J) == 2 and np.any(pens):
            X = np.vstack([J[0], -J[1]]) * np.sqrt(2 * pens)
            H += X @ X.T
        self.factor, self.failed = dpotrf(H, lower=1, overwrite_a=1)
        self.slope = np.concatenate([_slope(term, each) for term, each in zip(terms, J, strict=True)])

    def split(self, s: Array) -> list[Array]:
        """Entries of each side."""
        return np.split(s, self.cuts[:-1])

    def least(self, rows: Sequence[Rows]) -> tuple[Array, list[Array]] | None:
        """The least value where rows are met, and their prices; None if these are too many."""
        if self.failed or any(len(side.met) > len(each) for side, each in zip(rows, self.J, strict=True)):
            return None
        ends = np.cumsum([len(side.met) for side in rows])
        E = np.zeros((len(self.slope), ends[-1] + 1), order="F")
        for each, side, cut, end in zip(self.J, rows, self.cuts, ends, strict=True):
            E[cut - len(each) : cut, end - len(side.met) : end] = each[:, side.met]
        E[:, -1] = self.slope
        solved, _ = dpotrs(self.factor, E, lower=1)
        G = E.T @ solved
        G.flat[:: len(G) + 1] *= 1 + 1e-12  # rows that are there twice
        met = np.concatenate([side.target[side.met] for side in rows])
        factor, failed = dpotrf(G[:-1, :-1], lower=1)
        if failed or not len(met):
            return None
        prices, _ = dpotrs(factor, met + G[:-1, -1], lower=1)
        return solved[:, :-1] @ prices - solved[:, -1], np.split(prices, ends[:-1])


def _slope(term: SideTerm, J: Array) -> Array:
    """Linear part of the objective of a side: width and trace."""
    k, j, _ = _triangle((int(np.sqrt(8 * len(J) + 1)) - 1) // 2)
    return np.asarray(J.sum(axis=1) * (term.cost.b / J.shape[1]) + term.cost.lam1 * (k == j))


@lru_cache(maxsize=32)
def _triangle(rank: int) -> tuple[IntArray, IntArray, Array]:
    """Positions of the entries of a symmetric matrix, and factors that make its packed form one of the same norm."""
    k, j = np.triu_indices(rank)
    return k, j, np.where(k == j, 1.0, np.sqrt(2.0))


def _products(Z: Array) -> Array:
    """Products of two rows of Z, such that ``z'Sz`` is their product with the packed S."""
    k, j, factors = _triangle(len(Z))
    return np.asarray(Z[k] * Z[j] * factors[:, None])


def _operator(state: SideState, s: Array) -> PrimalSide:
    """``U [S]_+ U'`` with its values."""
    k, j, factors = _triangle(state.part.rank)
    S = np.zeros((state.part.rank, state.part.rank))
    S[k, j] = S[j, k] = s / factors
    C, failed = dpotrf(S, lower=1, clean=1)
    if failed:
        w, E = eigh(S, check_finite=False)
        C = E * np.sqrt(np.maximum(w, 0.0))
    return PrimalSide(state.positive_vectors @ C, 0.0, np.square(C.T @ state.Zp).sum(axis=0))
