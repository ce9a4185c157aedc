"""The asymmetric problem (symmetry penalty 0): two independent one-sided problems."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sosbands._types import Array
from sosbands.problems.certificate import Certificate, Sides, certify
from sosbands.problems.dual_point import DualPoint
from sosbands.problems.side import SideState, SideTerm


class OneSidedProblem:
    """``min_A weight ((b/n) sum f_A(X_i) + Omega(A))`` subject to ``f_A(X_i) >= target_i``, A PSD.

    Dual, maximised over ``z = gamma >= 0``:
    ``weight (gamma'target - Omega*(V Diag(gamma - b/n) V'))``, gradient ``weight (target - f_A(X))``.
    """

    def __init__(self, term: SideTerm, target: Array, weight: float = 1.0) -> None:
        self.term = term
        self.target = target
        self.weight = weight
        self.n_variables = term.n
        self.lower_bounds = np.zeros(term.n)
        self.decompositions = 0
        self._cached: tuple[Array, SideState] | None = None

    def state(self, z: Array) -> SideState:
        """Eigenpairs at z, remembered for the next call at the same z."""
        if self._cached is None or not np.array_equal(self._cached[0], z):
            self.decompositions += 1
            self._cached = (z.copy(), self.term.evaluate(z))
        return self._cached[1]

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        state = self.state(z)
        return self.weight * (float(z @ self.target) - state.value), self.weight * (self.target - state.f)

    def hessian_product(self, z: Array) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, which is positive semidefinite."""
        state = self.state(z)
        return lambda d: self.weight * state.derivative(d)[0]

    def certificate(self, z: Array) -> Certificate:
        """Certificate of z."""
        z = np.maximum(z, 0.0)
        value, _ = self.value_and_grad(z)
        sides = (self.state(z).primal,)
        return certify((self.term,), (self.target,), sides, value, self.objective)

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self.weight * self.term.objective(sides[0])

    def parts(self) -> tuple[OneSidedProblem, ...]:
        """Independent problems whose values add up to this one."""
        return (self,)


class AsymmetricProblem:
    """Both sides without any coupling: ``z = (gamma_lo, gamma_up)``.

    Parameters
    ----------
    lower, upper : SideTerm
        Each with its own features.
    r : ndarray of shape (n,)
        Residuals; the targets are -r below and r above.
    """

    def __init__(self, lower: SideTerm, upper: SideTerm, r: Array) -> None:
        self._parts = (OneSidedProblem(lower, -r), OneSidedProblem(upper, r))
        self.n = len(r)
        self.n_variables = 2 * self.n
        self.lower_bounds = np.zeros(2 * self.n)

    @property
    def decompositions(self) -> int:
        """Eigendecompositions made so far."""
        return sum(part.decompositions for part in self._parts)

    def parts(self) -> tuple[OneSidedProblem, ...]:
        """The lower and the upper problem."""
        return self._parts

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        halves = [part.value_and_grad(g) for part, g in zip(self._parts, np.split(z, 2), strict=True)]
        return sum(value for value, _ in halves), np.concatenate([grad for _, grad in halves])

    def hessian_product(self, z: Array) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian."""
        products = [part.hessian_product(g) for part, g in zip(self._parts, np.split(z, 2), strict=True)]
        return lambda d: np.concatenate([h(half) for h, half in zip(products, np.split(d, 2), strict=True)])

    def certificate(self, z: Array) -> Certificate:
        """Certificate of z, each side repaired by itself."""
        z = np.maximum(z, 0.0)
        value, _ = self.value_and_grad(z)
        sides = tuple(part.state(g).primal for part, g in zip(self._parts, np.split(z, 2), strict=True))
        terms = [part.term for part in self._parts]
        return certify(terms, [part.target for part in self._parts], sides, value, self.objective)

    def objective(self, sides: Sides) -> float:
        """Primal value of both sides."""
        return sum(part.term.objective(side) for part, side in zip(self._parts, sides, strict=True))

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n :])

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        return np.maximum(np.concatenate(point.weights), 0.0)
