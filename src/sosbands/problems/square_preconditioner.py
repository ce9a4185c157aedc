"""A preconditioner for Newton's equations of the training-set penalty from the squared kernel, for very many rows.

The Hessian of one side acts on weights d through ``V Diag(d) V'`` and returns values of functions
``x -> Phi(x)' E Phi(x)``. Both live in the feature space of the squared kernel ``k(x, y)^2``, so with its features
R (q, n) the Hessian is ``R' Hq R``, and Hq (q, q) follows from the Hessian at the q pivots of R alone. Newton's
equations then reduce to equations of order q and the number of free multipliers, and what depends on the number of rows
is computed once per space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from sosbands._cached import cached_property
from sosbands._types import Array, BoolArray, IntArray
from sosbands.kernels.pivoted_cholesky import greedy_pivoted_cholesky
from sosbands.problems.side import FeatureSpace, SideState

RANK = 250  # features at most
BLOCK = 8192  # rows
TINY = 1e-300
TRACE_LEFT = 1e-3  # a few more iterations cost less than a few more features


@dataclass(frozen=True, eq=False)
class SquareFeatures:
    """Features R (q, n) of the squared kernel: ``R'R ~ (V'V)^2`` entry by entry, exact at the pivots.

    `left_out` is the relative trace that they leave out, `missing` the same for each point.
    """

    R: Array
    pivots: IntArray
    left_out: float
    missing: Array

    @cached_property
    def root(self) -> Array:
        """F with ``F F' = R R'``."""
        return _root(self.R)

    @cached_property
    def triangle(self) -> Array:
        """L with ``R_P = L'`` at the pivots P."""
        return np.asfortranarray(self.R[:, self.pivots].T)


def _root(R: Array) -> Array:
    """The triangle of R', block by block, which stays in the cache; ``R R'`` would lose half of the digits."""
    blocks = [np.linalg.qr(R[:, k : k + BLOCK].T, mode="r") for k in range(0, R.shape[1], BLOCK)]
    return np.asarray(np.linalg.qr(np.vstack(blocks), mode="r")).T


def square_features(space: FeatureSpace) -> SquareFeatures:
    """Features of the squared kernel of a space, computed once."""
    if "square_features" not in space.derived:
        space.derived["square_features"] = _learn(space.V)
    features: SquareFeatures = space.derived["square_features"]
    return features


def _learn(V: Array) -> SquareFeatures:
    """Pivoted Cholesky of the squared kernel."""
    diag = np.square(np.einsum("ij,ij->j", V, V))

    def entries(rows: IntArray, columns: IntArray | None) -> Array:
        return np.square(V[:, rows].T @ (V if columns is None else V[:, columns]))

    R, pivots = greedy_pivoted_cholesky(
        entries,
        diag,
        floor=len(diag) * float(np.finfo(float).eps * diag.max()),
        trace_left=TRACE_LEFT * float(diag.sum()),
        max_rank=RANK,
        block=32,
    )
    kept = np.einsum("ij,ij->j", R, R)
    missing = np.clip(1.0 - kept / np.maximum(diag, TINY), 0.0, 1.0)
    return SquareFeatures(R, pivots, 1.0 - float(kept.sum() / diag.sum()), missing)


def _compressed_hessian(square: SquareFeatures, state: SideState) -> Array:
    """Hq with Hessian ``R' Hq R``, exact at the pivots."""
    L = square.triangle
    half = dtrtrs(L, state.hessian_block(square.pivots), lower=1)[0]
    return np.asarray(dtrtrs(L, half.T, lower=1)[0])


class SquareNewtonMatrix:
    """Newton's matrix ``Y' Hq Y + Diag(shift on gamma, delta on alpha_0)`` and its inverse, by matrices of order q.

    ``Y_a = scale [R_lo; -R_up]`` belongs to alpha_0, and Y_g has the free columns of R_lo and R_up.

    Parameters
    ----------
    spaces : pair of FeatureSpace
        Lower and upper.
    states : pair of SideState
    scale : float
        Of alpha_0.
    own : float
        Curvature of alpha_0 by itself, positive.
    shift : float
        Added to every curvature, positive.
    """

    def __init__(
        self,
        spaces: tuple[FeatureSpace, FeatureSpace],
        states: tuple[SideState, ...],
        *,
        scale: float,
        own: float,
        shift: float,
    ) -> None:
        self.states, self.scale, self.delta, self.shift = states, scale, own + shift, shift
        self.squares = (square_features(spaces[0]), square_features(spaces[1]))
        self.E = self._compressed_inverse()

    def _compressed_inverse(self) -> Array | None:
        """``E = (delta I + Hq G)^-1 Hq`` with ``G = Y_a Y_a'``; None if rounding leaves none.

        With ``G = F F'`` it is ``(Hq - Hq F (delta I + F'Hq F)^-1 F'Hq) / delta``: a matrix of the order of one side
        only, if the sides share their features.
        """
        (lo, up), q, delta = self.squares, len(self.squares[0].R), self.delta
        F = self.scale * (np.vstack([lo.root, -lo.root]) if lo is up else _root(np.vstack([lo.R, -up.R])))
        H_lo, H_up = _compressed_hessian(lo, self.states[0]), _compressed_hessian(up, self.states[1])
        X = np.hstack([F[:q].T @ H_lo, F[q:].T @ H_up])
        C, failed = dpotrf(X @ F + delta * np.eye(len(X)), lower=1, overwrite_a=1)
        if failed:
            return None
        X = dtrtrs(C, X, lower=1, overwrite_b=1)[0]
        E = -(X.T @ X)
        E[:q, :q] += H_lo
        E[q:, q:] += H_up
        return np.asarray((E + E.T) / (2 * delta))

    def inverse(self, free_lo: BoolArray, free_up: BoolArray) -> Callable[[Array], Array] | None:
        """Of the rows and columns of the free multipliers and of all alpha_0; None if rounding leaves none.

        Block elimination gives the matrix ``Diag(shift) + delta Y_g' E Y_g`` for the multipliers.
        """
        (lo, up), E, scale, delta = self.squares, self.E, self.scale, self.delta
        if E is None:
            return None
        k, m = len(lo.R), np.count_nonzero(free_lo)
        Y_g = np.zeros((len(E), m + np.count_nonzero(free_up)))
        Y_g[:k, :m], Y_g[k:, m:] = lo.R[:, free_lo], up.R[:, free_up]
        EY = E @ Y_g
        S = delta * (Y_g.T @ EY)
        # what the features leave out of the curvature counts as a diagonal: without it many multipliers in few features
        # would have none at all
        sides = zip(self.squares, self.states, (free_lo, free_up), strict=True)
        left = [square.missing[rows] * state.hessian_diagonal(rows) for square, state, rows in sides]
        S.flat[:: len(S) + 1] += self.shift + np.concatenate(left)
        S, failed = dpotrf(S, lower=1, overwrite_a=1)
        if failed:
            return None

        def to_q(a: Array) -> Array:
            return scale * np.concatenate([lo.R @ a, -(up.R @ a)])

        def to_n(y: Array) -> Array:
            return np.asarray(scale * (y[:k] @ lo.R - y[k:] @ up.R))

        def apply(rhs: Array) -> Array:
            rhs_g, rhs_a = rhs[: Y_g.shape[1]], rhs[Y_g.shape[1] :]
            y = E @ to_q(rhs_a)
            x_g = dpotrs(S, rhs_g - Y_g.T @ y, lower=1)[0] if len(rhs_g) else rhs_g
            return np.concatenate([x_g, (rhs_a - to_n(y)) / delta - to_n(EY @ x_g)])

        return apply
