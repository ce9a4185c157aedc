"""The asymmetric problem (symmetry penalty 0): two independent one-sided problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Bases, Certificate, Sides, add_certificates, certify
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

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        state = self.state(z).restricted(support)
        return lambda d: self.weight * state.derivative(d)[0]

    def certificate(self, z: Array, also: Sides | None = None) -> Certificate:
        """Certificate of z; `also` is a feasible point known from elsewhere."""
        z = np.maximum(z, 0.0)
        value, _ = self.value_and_grad(z)
        sides = (self.state(z).primal,)
        return certify((self.term,), (self.target,), sides, value, self.objective, also)

    @property
    def terms(self) -> tuple[SideTerm, ...]:
        """The spaces that operators live in."""
        return (self.term,)

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> None:  # noqa: ARG002
        """None is needed: few multipliers are free."""
        return

    @property
    def sizes(self) -> Array:
        """How much each point asks for: the points with the largest are likely to shape the bands."""
        return self.target

    def subsampled(self, rows: IntArray) -> OneSidedProblem:
        """The same problem with some of the learning points only."""
        return OneSidedProblem(self.term.subsampled(rows), self.target[rows], self.weight)

    def extended(self, z: Array, rows: IntArray, small: OneSidedProblem) -> Array:  # noqa: ARG002
        """Variables of this problem from those of `small`, its restriction to `rows`."""
        full = np.zeros(self.n_variables)
        full[rows] = z
        return full

    def relaxed(self, factor: float) -> OneSidedProblem:
        """The same problem with lam2 times `factor`: easier, with multipliers on the way to those of this one."""
        return OneSidedProblem(self.term.relaxed(factor), self.target, self.weight)

    def restricted(self, bases: Bases) -> OneSidedProblem:
        """The same problem with operators restricted to a subspace."""
        return OneSidedProblem(self.term.projected(bases[0]), self.target, self.weight)

    def lift(self, z: Array, bases: Bases) -> Array:  # noqa: ARG002
        """Variables of this problem from those of a restricted one: the same multipliers."""
        return z

    def project(self, z: Array, bases: Bases) -> Array:  # noqa: ARG002
        """Variables of a restricted problem from those of this one."""
        return z

    def lift_sides(self, sides: Sides, bases: Bases) -> Sides:
        """A primal point of this problem from one of a restricted one."""
        return tuple(side.lifted(Q) for side, Q in zip(sides, bases, strict=True))

    def positive_vectors(self, z: Array) -> list[Array]:
        """Positive eigenvectors of each term at z."""
        return [self.state(z).positive_vectors]

    def refine(self, z: Array, vectors: list[Array]) -> tuple[list[Array], float]:
        """Better eigenvectors at z than `vectors`, and an upper estimate of the dual value."""
        better, value = self.term.refine(z, None, vectors[0])
        return [better], self.weight * (float(z @ self.target) - value)

    def objective(self, sides: Sides) -> float:
        """Primal value."""
        return self.weight * self.term.objective(sides[0])

    def parts(self) -> tuple[OneSidedProblem, ...]:
        """Independent problems whose values add up to this one."""
        return (self,)

    def joined_certificate(self, certificates: Sequence[Certificate]) -> Certificate:
        """Certificate from those of the parts."""
        return certificates[0]


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

    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""
        halves = zip(self._parts, np.split(z, 2), np.split(support, 2), strict=True)
        products = [part.hessian_product(g, chosen) for part, g, chosen in halves]
        cut = [int(np.count_nonzero(support[: self.n]))]
        return lambda d: np.concatenate([h(half) for h, half in zip(products, np.split(d, cut), strict=True)])

    def certificate(self, z: Array) -> Certificate:
        """Certificate of z, each side repaired by itself."""
        halves = zip(self._parts, np.split(z, 2), strict=True)
        return self.joined_certificate([part.certificate(g) for part, g in halves])

    def joined_certificate(self, certificates: Sequence[Certificate]) -> Certificate:
        """Certificate of the sum from those of the parts."""
        return add_certificates(certificates)

    def objective(self, sides: Sides) -> float:
        """Primal value of both sides."""
        return sum(part.term.objective(side) for part, side in zip(self._parts, sides, strict=True))

    def dual_point(self, z: Array) -> DualPoint:
        """Read the multipliers."""
        return DualPoint(z[: self.n], z[self.n :])

    def start_from(self, point: DualPoint) -> Array:
        """Start from the solution of a neighbouring problem."""
        weights = np.maximum(np.concatenate(point.weights), 0.0)
        if point.alpha_0 is None and not point.shared:
            return weights
        # a side has nothing to cover where its target is not positive: weight there only lowers the dual
        return np.where(np.concatenate([part.target for part in self._parts]) > 0, weights, 0.0)
