"""The operator penalty ``lam_pen1 ||A_lo - A_up||_* + lam_pen2 ||A_lo - A_up||_F^2``."""

from __future__ import annotations

import numpy as np

from sosbands._types import Array
from sosbands.problems.certificate import Certificate, Sides, certify
from sosbands.problems.conjugates import NuclearFrobenius
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.operators import difference_eigenvalues
from sosbands.problems.side import SideState, SideTerm


class OperatorPenaltyProblem:
    """Both sides with the same features, pulled together as operators.

    Dual, maximised over ``gamma_lo, gamma_up >= 0`` and a symmetric W:

        (gamma_up - gamma_lo)'r - Omega_pen*(W)
        - Omega*(V Diag(gamma_lo - b/n) V' - W) - Omega*(V Diag(gamma_up - b/n) V' + W)

    The variables are ``z = (gamma_lo, gamma_up, w / scale)``: w is the upper triangle of W with off-diagonal
    entries times sqrt 2, so that ``w'w = ||W||_F^2`` and gradients need no special case.

    Parameters
    ----------
    term : SideTerm
        Features and penalties of both sides.
    r : ndarray of shape (n,)
        Residuals.
    lam_pen1, lam_pen2 : float
        Nuclear (>= 0) and squared Frobenius (> 0) penalties, finite.
    """

    def __init__(self, term: SideTerm, r: Array, lam_pen1: float, lam_pen2: float) -> None:
        self.term = term
        self.r = r
        self.penalty = NuclearFrobenius(lam_pen1, lam_pen2)
        self.scale = min(1.0, float(np.sqrt(2 * lam_pen2)))
        self.n = len(r)
        self._triangle = np.triu_indices(term.p)
        self._stretch = np.where(self._triangle[0] == self._triangle[1], 1.0, np.sqrt(2.0))
        self.n_variables = 2 * self.n + len(self._stretch)
        self.lower_bounds = np.concatenate([np.zeros(2 * self.n), np.full(len(self._stretch), -np.inf)])
        self.decompositions = 0
        self._cached: tuple[Array, tuple[SideState, SideState, float, Array]] | None = None

    def _vector(self, W: Array) -> Array:
        return W[self._triangle] * self._stretch

    def _matrix(self, w: Array) -> Array:
        W = np.zeros((self.term.p, self.term.p))
        W[self._triangle] = w / self._stretch
        return W + np.triu(W, 1).T

    def _split(self, z: Array) -> tuple[Array, Array, Array]:
        n = self.n
        return z[:n], z[n : 2 * n], self.scale * z[2 * n :]

    def states(self, z: Array) -> tuple[SideState, SideState, float, Array]:
        """Eigenpairs of both sides, value and gradient of Omega_pen*, remembered for the same z."""
        if self._cached is None or not np.array_equal(self._cached[0], z):
            gamma_lo, gamma_up, w = self._split(z)
            W = self._matrix(w)
            self.decompositions += 3
            lo, up = self.term.evaluate(gamma_lo, -W), self.term.evaluate(gamma_up, W)
            self._cached = (z.copy(), (lo, up, *self.penalty.conjugate(W)))
        return self._cached[1]

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        gamma_lo, gamma_up, _ = self._split(z)
        lo, up, pen, D = self.states(z)
        value = float((gamma_up - gamma_lo) @ self.r) - pen - lo.value - up.value
        grad_W = lo.B @ lo.B.T - up.B @ up.B.T - D
        return value, np.concatenate([-self.r - lo.f, self.r - up.f, self.scale * self._vector(grad_W)])

    def certificate(self, z: Array) -> Certificate:
        """Certificate of z."""
        z = np.maximum(z, self.lower_bounds)
        value, _ = self.value_and_grad(z)
        lo, up, _, _ = self.states(z)
        terms = (self.term, self.term)
        return certify(terms, (-self.r, self.r), (lo.primal, up.primal), value, self.objective)

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        separate = self.term.objective(sides[0]) + self.term.objective(sides[1])
        return separate + self.penalty.of_eigenvalues(difference_eigenvalues(*sides))

    def parts(self) -> tuple[OperatorPenaltyProblem, ...]:
        """Return the problem itself: the penalty couples the sides."""
        return (self,)

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        gamma_lo, gamma_up, w = self._split(z)
        return DualPoint(gamma_lo, gamma_up, W=self._matrix(w))

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        if point.W is not None and point.W.shape == (self.term.p, self.term.p):
            W = point.W
        else:
            # W that gives both operators the arguments they have at `point`: see DualPoint.weights
            W = self.term.weighted_gram(-point.mean_alpha_0)
        return np.concatenate([point.gamma_lo, point.gamma_up, self._vector(W) / self.scale])
