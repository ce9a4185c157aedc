"""A preconditioner for Newton's equations of the training-set penalty from pairs of eigenvectors.

The Hessian of one side is a sum of squares over pairs of eigenvectors, one of them positive: ``H = Y'Y``, the rows of Y
being products of two functions at the learning points. Few pairs carry nearly all of it, and what the others leave is
counted as a diagonal. Newton's equations, whose variable alpha_0 has n entries, then reduce to equations of the order
of the pairs and of the free multipliers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from sosbands._types import Array, BoolArray
from sosbands.problems.side import SideState

MOST_PAIRS = 100  # of a side: more cost more than the iterations that they save,
FEWEST_PAIRS = 20
TELLING = 0.3  # of the other curvature of alpha_0: pairs that add less are hardly felt
ROUNDING = 1e-12  # of the largest curvature: there may be more free multipliers than pairs


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Y (q, n) and a diagonal with ``H ~ Y'Y + Diag(left)``, exact on the diagonal and if no pair is left out."""

    Y: Array
    left: Array


def pair_features(state: SideState, telling: float) -> PairFeatures:
    """The pairs of eigenvectors that carry the Hessian of a side, those of at least `telling` curvature.

    ``H_ij = sum over k <= l of omega_kl Z_ki Z_li Z_kj Z_lj``, k a positive eigenvector.
    """
    Z, omega = state.part.U.T @ state.V, state.part.pair_weights
    squares = np.square(Z)
    energy = (omega * (squares[: len(omega)] @ squares.T)).ravel()
    wanted = int(np.clip(np.count_nonzero(energy >= telling), FEWEST_PAIRS, MOST_PAIRS))
    if np.count_nonzero(energy) <= wanted:
        k, j = np.nonzero(energy.reshape(omega.shape))  # of the others the products are zero
        left = np.zeros(Z.shape[1])
    else:
        k, j = np.divmod(np.argpartition(energy, -wanted)[-wanted:], len(Z))
        rest = omega.copy()
        rest[k, j] = 0.0
        left = np.einsum("ij,ij->j", rest @ squares, squares[: len(omega)])
    return PairFeatures(Z[k] * Z[j] * np.sqrt(omega[k, j])[:, None], left)


class PairNewtonMatrix:
    """``[Y_g'Y_g + Diag(shift), Y_g'Y_a; Y_a'Y_g, Y_a'Y_a + Diag(delta)]`` and its inverse, in the order of the pairs.

    ``Y_a = scale [Y_lo; -Y_up]`` belongs to alpha_0, and Y_g has the free columns of Y_lo and Y_up. What the pairs
    leave out is part of the diagonals.

    Parameters
    ----------
    states : pair of SideState
        Lower and upper.
    scale : float
        Of alpha_0.
    own : ndarray of shape (n,)
        Curvature of alpha_0 by itself, positive.
    shift : float
        Added to every curvature, positive.
    """

    def __init__(self, states: tuple[SideState, ...], *, scale: float, own: Array, shift: float) -> None:
        telling = TELLING * (float(own.min()) + shift) / scale**2
        self.lo, self.up = (pair_features(state, telling) for state in states)
        self.shift = shift
        self.delta = own + shift + scale**2 * (self.lo.left + self.up.left)
        self.Y_a = scale * np.vstack([self.lo.Y, -self.up.Y])
        X = self.Y_a / np.sqrt(self.delta)
        self.factor = _factor(X @ X.T, 1.0)  # of ``E^-1 = I + Y_a Diag(1/delta) Y_a'``

    def inverse(self, free_lo: BoolArray, free_up: BoolArray) -> Callable[[Array], Array] | None:
        """Of the rows and columns of the free multipliers and of all alpha_0; None if rounding leaves none.

        Eliminating alpha_0 leaves ``Diag(shift) + Y_g' E Y_g`` for the multipliers.
        """
        lo, up, Y_a, delta, factor = self.lo, self.up, self.Y_a, self.delta, self.factor
        if factor is None:
            return None
        m, k = np.count_nonzero(free_lo), len(lo.Y)
        Y_g = np.zeros((len(Y_a), m + np.count_nonzero(free_up)), order="F")
        Y_g[:k, :m], Y_g[k:, m:] = lo.Y[:, free_lo], up.Y[:, free_up]
        EY = _solved(factor, Y_g)
        S = _factor(Y_g.T @ EY, self.shift + np.concatenate([lo.left[free_lo], up.left[free_up]]))
        if S is None:
            return None

        def apply(rhs: Array) -> Array:
            rhs_g, rhs_a = rhs[: Y_g.shape[1]], rhs[Y_g.shape[1] :]
            y = _solved(factor, Y_a @ (rhs_a / delta))
            x_g = _solved(S, rhs_g - y @ Y_g)
            return np.concatenate([x_g, (rhs_a - (y + EY @ x_g) @ Y_a) / delta])

        return apply


def _factor(G: Array, diagonal: Array | float) -> Array | None:
    """Cholesky factor of G with something added to its diagonal, if there is one."""
    G.flat[:: len(G) + 1] += diagonal + ROUNDING * float(np.max(G.diagonal(), initial=0.0))
    factor, failed = dpotrf(G, lower=1, overwrite_a=1)
    return None if failed else np.asarray(factor)


def _solved(factor: Array, rhs: Array) -> Array:
    return np.asarray(dpotrs(factor, rhs, lower=1)[0]) if rhs.size else rhs
