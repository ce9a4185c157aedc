"""A preconditioner for Newton's equations of the training-set penalty, whose variable alpha_0 has n entries.

The Hessian of one side acts on weights d through ``V Diag(d) V'`` and returns values of functions
``x -> Phi(x)' E Phi(x)``. Both live in the feature space of the squared kernel ``k(x, y)^2``, so with its features
R (q, n) the Hessian is ``R' Hq R``, and Hq (q, q) follows from the Hessian at the q pivots of R alone. Newton's
equations then reduce to equations of order q and the number of free multipliers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve, solve_triangular

from sosbands._types import Array, BoolArray, IntArray
from sosbands.kernels.pivoted_cholesky import greedy_pivoted_cholesky
from sosbands.problems.side import FeatureSpace, SideState

MANY_ROWS = 3200  # above this plain conjugate gradients take too many iterations with any kernel
RANK, MANY_RANK = 150, 250  # features at most, up to so many rows and above
ROUGH = 0.02  # with more of the trace left out the preconditioner saves fewer iterations than it costs
HOPELESS = 0.2  # left out by a third of the features: all of them leave out too much
TRACE_LEFT = 1e-6


@dataclass(frozen=True, eq=False)
class SquareFeatures:
    """Features R (q, n) of the squared kernel: ``R'R ~ (V'V)^2`` entry by entry, exact at the pivots.

    `left_out` is the relative trace that they leave out.
    """

    R: Array
    pivots: IntArray
    gram: Array
    left_out: float

    @property
    def are_worth_it(self) -> bool:
        """Whether a preconditioner from these features saves more than it costs."""
        return self.left_out <= ROUGH or self.R.shape[1] > MANY_ROWS


def square_features(space: FeatureSpace) -> SquareFeatures:
    """Features of the squared kernel of a space, computed once."""
    if "square_features" not in space.derived:
        space.derived["square_features"] = _learn(space.V)
    features: SquareFeatures = space.derived["square_features"]
    return features


def _learn(V: Array) -> SquareFeatures:
    """Pivoted Cholesky of the squared kernel; a third of the features show whether all of them would be enough."""
    diag = np.square(np.einsum("ij,ij->j", V, V))
    most = RANK if len(diag) <= MANY_ROWS else MANY_RANK
    first = _factorised(V, diag, most // 3)
    if first.left_out <= TRACE_LEFT or (first.left_out > HOPELESS and len(diag) <= MANY_ROWS):
        return first
    return _factorised(V, diag, most)


def _factorised(V: Array, diag: Array, max_rank: int) -> SquareFeatures:
    def entries(rows: IntArray, columns: IntArray | None) -> Array:
        return np.square(V[:, rows].T @ (V if columns is None else V[:, columns]))

    R, pivots = greedy_pivoted_cholesky(
        entries,
        diag,
        floor=len(diag) * float(np.finfo(float).eps * diag.max()),
        trace_left=TRACE_LEFT * float(diag.sum()),
        max_rank=max_rank,
        block=32,
    )
    left_out = 1.0 - float(np.square(R).sum() / diag.sum())
    return SquareFeatures(R, pivots, R @ R.T, left_out)


def _compressed_hessian(square: SquareFeatures, state: SideState) -> Array:
    """Hq with Hessian ``R' Hq R``, exact at the pivots."""
    L = square.R[:, square.pivots].T
    half = solve_triangular(L, state.hessian_block(square.pivots), lower=True)
    return np.asarray(solve_triangular(L, half.T, lower=True))


def newton_preconditioner(
    squares: tuple[SquareFeatures, SquareFeatures],
    states: tuple[SideState, SideState],
    free: tuple[BoolArray, BoolArray],
    *,
    scale: float,
    delta: float,
    shift: float,
) -> Callable[[Array], Array]:
    """Approximate inverse of ``H + Diag(shift on gamma, delta on alpha_0)`` on the free multipliers and all alpha_0.

    With ``Y_a = scale [R_lo; -R_up]``, ``Y_g`` the free columns of R_lo and R_up, and
    ``E = (delta I + Hq Y_a Y_a')^-1 Hq``, block elimination gives the matrix ``shift I + delta Y_g' E Y_g`` for the
    multipliers.
    """
    (lo, up), n_lo, n_up = squares, len(squares[0].R), len(squares[1].R)
    H = np.zeros((n_lo + n_up, n_lo + n_up))
    H[:n_lo, :n_lo], H[n_lo:, n_lo:] = _compressed_hessian(lo, states[0]), _compressed_hessian(up, states[1])
    cross = lo.gram if lo is up else lo.R @ up.R.T
    G = scale**2 * np.block([[lo.gram, -cross], [-cross.T, up.gram]])
    E = lu_solve(lu_factor(delta * np.eye(len(H)) + H @ G), H)
    E = 0.5 * (E + E.T)
    f_lo, f_up = np.flatnonzero(free[0]), np.flatnonzero(free[1])
    m = len(f_lo)
    Y_g = np.zeros((n_lo + n_up, m + len(f_up)))
    Y_g[:n_lo, :m], Y_g[n_lo:, m:] = lo.R[:, f_lo], up.R[:, f_up]
    EY = E @ Y_g
    S = cho_factor(shift * np.eye(Y_g.shape[1]) + delta * (Y_g.T @ EY), lower=True)

    def to_q(a: Array) -> Array:
        return scale * np.concatenate([lo.R @ a, -(up.R @ a)])

    def to_n(y: Array) -> Array:
        return np.asarray(scale * (y[:n_lo] @ lo.R - y[n_lo:] @ up.R))

    def apply(rhs: Array) -> Array:
        rhs_g, rhs_a = rhs[: Y_g.shape[1]], rhs[Y_g.shape[1] :]
        y = E @ to_q(rhs_a)
        x_g = cho_solve(S, rhs_g - Y_g.T @ y)
        return np.concatenate([x_g, (rhs_a - to_n(y)) / delta - to_n(EY @ x_g)])

    return apply
