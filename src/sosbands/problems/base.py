"""What the dual problems share: their box, the eigenpairs at the last point, and the same problem stated elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self, TypeVar

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import Bases, Certificate, Sides, certify, measured
from sosbands.problems.recovery import best_in_range
from sosbands.problems.side import Box, SideState, SideTerm

T = TypeVar("T")
TINY = 1e-300
Argument = tuple[Array, Array | None]  # weights c and matrix W of ``M = V Diag(c - b/n) V' + W``


class DualState(NamedTuple):
    """Everything that one point needs: the sides, and the conjugate of what couples them with its gradient."""

    sides: tuple[SideState, ...]
    coupling: float
    slope: Array


class BandDual(ABC):
    """A concave function of the multipliers of each side, one after another, and of what couples the sides.

    ``weight (sum over sides of [gamma_s'target_s - Omega*(M_s)] - coupling)``; the gradient in ``gamma_s`` is
    ``weight (target_s - f_s(X))``.

    Parameters
    ----------
    sides : tuple of SideTerm
        One per target; the same object where sides share their features.
    targets : tuple of ndarray of shape (n,)
        What each side has to cover.
    n_coupling : int
        Number of unbounded variables behind the multipliers.
    weight : float
        Of the whole.
    """

    def __init__(
        self, sides: tuple[SideTerm, ...], targets: tuple[Array, ...], n_coupling: int = 0, weight: float = 1.0
    ) -> None:
        self.sides, self.targets, self.weight = sides, targets, weight
        self.terms = sides[:1] if all(side is sides[0] for side in sides) else sides
        self.n = len(targets[0])
        self.bounds = Box.joined(*(side.bounds for side in sides), Box.unbounded(n_coupling))
        self.n_variables = len(self.bounds.lower)
        self.decompositions = 0
        self._cached: tuple[Array, DualState] | None = None

    # ------------------------------------------------------------ what a problem states

    @abstractmethod
    def with_terms(self, terms: tuple[SideTerm, ...], rows: IntArray | None = None) -> Self:
        """The same problem with other terms, of the learning points in `rows` if given."""

    @abstractmethod
    def arguments(self, z: Array) -> tuple[Argument, ...]:
        """Weights and matrix of each side at z."""

    @abstractmethod
    def objective(self, sides: Sides) -> float:
        """Primal value."""

    @abstractmethod
    def hessian_product(self, z: Array, support: BoolArray) -> Callable[[Array], Array]:
        """Product with minus the generalised Hessian, rows and columns in `support`; positive semidefinite."""

    def coupling(self, z: Array) -> tuple[float, Array]:  # noqa: ARG002
        """Conjugate of what couples the sides, and its gradient; empty where nothing does."""
        return 0.0, np.zeros(0)

    def coupling_gradient(self, state: DualState) -> Array:  # noqa: ARG002
        """Gradient of the dual in the variables behind the multipliers."""
        return np.zeros(0)

    def preconditioner(self, z: Array, free: BoolArray, shift: float) -> Callable[[Array], Array] | None:  # noqa: ARG002
        """Approximate inverse of minus the Hessian plus ``shift I`` on the variables in `free`, if one is needed."""
        return None

    # ------------------------------------------------------------ values

    def multipliers(self, z: Array) -> list[Array]:
        """Those of each side."""
        return [z[k * self.n : (k + 1) * self.n] for k in range(len(self.sides))]

    def state(self, z: Array) -> DualState:
        """Eigenpairs and coupling at z, remembered for the next call at the same z."""
        if self._cached is None or not np.array_equal(self._cached[0], z):
            self._cached = (z.copy(), DualState(self.evaluate(z), *self.coupling(z)))
        return self._cached[1]

    def evaluate(self, z: Array) -> tuple[SideState, ...]:
        """Eigenpairs of each side, decomposed anew."""
        self.decompositions += len(self.sides)
        return tuple(side.evaluate(c, W) for side, (c, W) in zip(self.sides, self.matrix_arguments(z), strict=True))

    def matrix_arguments(self, z: Array) -> tuple[Argument, ...]:
        """The same as `arguments`, for use as whole matrices: what both sides share may be computed once."""
        return self.arguments(z)

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        state = self.state(z)
        grads = [target - side.f for target, side in zip(self.targets, state.sides, strict=True)]
        value = self._linear(z) - state.coupling - sum(side.value for side in state.sides)
        return self.weight * value, self.weight * np.concatenate([*grads, self.coupling_gradient(state)])

    def bounded_certificate(self, z: Array, bases: Bases, sides: Sides, room: float = 0.0) -> Certificate:
        """Certificate of z and a known primal point, without any (p, p) matrix.

        Its dual value is a bound from subspaces that hold about all positive eigenvectors, minus infinity if that
        cannot be shown; where it helps it may lie below the value at z by about `room`.
        """
        z = self.bounds.clip(z)
        terms = zip(self.sides, self.arguments(z), self.per_side(bases), strict=True)
        share = room / (self.weight * len(self.sides))
        omega = sum(side.upper_bound(c, W, Q, share) for side, (c, W), Q in terms)
        value = self.weight * (self._linear(z) - self.coupling(z)[0] - omega)
        return measured(self.targets, sides, value, self.objective(sides))

    def _separate(self, sides: Sides) -> float:
        """What the sides pay, each for itself."""
        each = zip(self.sides, sides, self.targets, strict=True)
        return sum(term.objective(side, target) for term, side, target in each)

    def _linear(self, z: Array) -> float:
        return sum(float(g @ target) for g, target in zip(self.multipliers(z), self.targets, strict=True))

    def certificate(self, z: Array, also: Sides | None = None, near: Sides | None = None) -> Certificate:
        """Certificate of z; `also` is a feasible point known from elsewhere.

        The primal point is the one recovered at z, or `near`, if given, made feasible where that is asked for.
        """
        z = self.bounds.clip(z)
        value, _ = self.value_and_grad(z)
        state = self.state(z)
        known = near or tuple(side.primal for side in state.sides)
        better = (lambda: self.better_sides(z, state)) if near is None and self.is_hard else None
        return certify(self.sides, self.targets, known, value, self.objective, also, better)

    def better_sides(self, z: Array, state: DualState) -> Sides | None:
        """The best operators with the range of those recovered at z, if there are few unknowns."""
        return best_in_range(self.sides, state.sides, self.targets, self.multipliers(z))

    # ------------------------------------------------------------ the same problem elsewhere

    @property
    def sizes(self) -> Array:
        """How much each point asks for: the points with the largest are likely to shape the bands."""
        return np.asarray(np.max(self.targets, axis=0))

    @property
    def is_hard(self) -> bool:
        """Every point has to be covered."""
        return any(term.cost.is_hard for term in self.terms)

    @property
    def stiffness(self) -> float:
        """The largest of the sides'."""
        return max(term.cost.stiffness for term in self.terms)

    @property
    def curvature(self) -> float:
        """Unit of the second derivatives, 1 for ``lam2 = 1/2``."""
        return max(0.5 / term.cost.lam2 for term in self.terms)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Of the spaces that operators live in, one per term."""
        return tuple(term.space.p for term in self.terms)

    @property
    def identity_values(self) -> tuple[Array, ...]:
        """Values of the operator I at the learning points, one array per term."""
        return tuple(term.space.identity_values for term in self.terms)

    def leading_bases(self, count: int) -> Bases:
        """Subspaces of at most this dimension that are likely to hold most of the operators."""
        return tuple(term.space.leading(count) for term in self.terms)

    def per_side(self, items: Sequence[T]) -> tuple[T, ...]:
        """One item per side from one per term."""
        return tuple(items) * len(self.sides) if len(items) == 1 else tuple(items)

    def restricted(self, bases: Bases) -> Self:
        """The same problem with operators restricted to subspaces."""
        return self.with_terms(tuple(term.projected(Q) for term, Q in zip(self.terms, bases, strict=True)))

    def relaxed(self, factor: float) -> Self:
        """The same problem with lam2 times `factor`: easier, with multipliers on the way to those of this one."""
        return self.with_terms(tuple(term.relaxed(factor) for term in self.terms))

    def subsampled(self, rows: IntArray) -> Self:
        """The same problem with some of the learning points only."""
        return self.with_terms(tuple(term.subsampled(rows) for term in self.terms), rows)

    def extended(self, z: Array, rows: IntArray, small: Self) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`.

        The same multipliers, and so the same operators. Where points may lie outside, the others take part: those
        outside the bands of these operators are at their ceiling.
        """
        full = np.zeros(self.n_variables)
        values = small.values_everywhere(z, self)
        for k, gamma in enumerate(small.multipliers(z)):
            if self.is_hard:
                full[k * self.n + rows] = gamma
            else:
                full[k * self.n : (k + 1) * self.n] = np.where(self.targets[k] > values[k], self.sides[k].ceiling, 0.0)
        return full

    def values_everywhere(self, z: Array, whole: Self) -> list[Array]:
        """Values of the operators recovered at z at all learning points of `whole`, which has the same features."""
        states = zip(self.state(z).sides, whole.sides, strict=True)
        return [np.square(state.B.T @ side.space.V).sum(axis=0) for state, side in states]

    def lift(self, z: Array, bases: Bases) -> Array:  # noqa: ARG002
        """Variables of this problem from those of a restricted one: the same multipliers."""
        return z

    def project(self, z: Array, bases: Bases) -> Array:  # noqa: ARG002
        """Variables of a restricted problem from those of this one."""
        return z

    def lift_sides(self, sides: Sides, bases: Bases) -> Sides:
        """A primal point of this problem from one of a restricted one."""
        return tuple(side.lifted(Q) for side, Q in zip(sides, self.per_side(bases), strict=True))

    def positive_vectors(self, z: Array) -> list[Array]:
        """Positive eigenvectors of each term at z."""
        return self._per_term([side.positive_vectors for side in self.state(z).sides])

    def images(self, small: Self, z: Array, bases: Bases) -> list[Array]:
        """What the matrices of this problem make of the positive eigenvectors of `small`, its restriction, at z.

        They point to what the subspaces lack; one matrix for each term, its columns of length one at most.
        """
        vectors = [side.positive_vectors for side in small.state(z).sides]
        arguments = self.arguments(self.lift(z, bases))
        images = self._products(
            [
                (c - term.cost.b / self.n)[:, None] * (part.space.V.T @ U)
                for term, part, (c, _), U in zip(self.sides, small.sides, arguments, vectors, strict=True)
            ]
        )
        for Y, (_, W), Q, U in zip(images, arguments, self.per_side(bases), vectors, strict=True):
            if W is not None:
                Y += W @ (Q @ U)
            Y /= max(float(np.linalg.norm(Y, axis=0).max(initial=0.0)), TINY)
        return self._per_term(images)

    def _products(self, columns: list[Array]) -> list[Array]:
        """V times a matrix for each side; in one go if they share V, as that takes no longer than reading it."""
        if len(self.terms) == len(columns):
            return [side.space.V @ each for side, each in zip(self.sides, columns, strict=True)]
        cuts = np.cumsum([each.shape[1] for each in columns])[:-1]
        return np.split(self.terms[0].space.V @ np.hstack(columns), cuts, axis=1)

    def _per_term(self, vectors: list[Array]) -> list[Array]:
        return vectors if len(vectors) == len(self.terms) else [np.column_stack(vectors)]

    # ------------------------------------------------------------ parts

    def parts(self) -> tuple[Self, ...]:
        """Independent problems whose values add up to this one: itself, as its variables are coupled."""
        return (self,)

    def joined_certificate(self, certificates: Sequence[Certificate]) -> Certificate:
        """Certificate from those of the parts."""
        return certificates[0]
