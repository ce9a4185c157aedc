"""What the dual problems share, and multipliers in the form that every one of them can read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, TypeVar

import numpy as np

from sosbands._types import Array, BoolArray, IntArray
from sosbands.problems.certificate import TINY, Bases, Certificate, Sides, certify, measured
from sosbands.problems.side import Box, FeatureSpace, SideState, SideTerm

T = TypeVar("T")
Argument = tuple[Array, Array | None]  # weights c and matrix W of ``M = V Diag(c - b/n) V' + W``


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Multipliers of a two-sided problem, the currency of warm starts.

    Attributes
    ----------
    gamma_lo, gamma_up : ndarray of shape (n,)
        Of the coverage constraints, between 0 and `ceiling`.
    alpha_0 : ndarray of shape (n,) or None
        Of the training-set penalty.
    W : ndarray of shape (p, p) or None
        Of the operator penalty.
    shared : bool
        The point of a symmetric problem, whose one operator serves both sides.
    """

    gamma_lo: Array
    gamma_up: Array
    alpha_0: Array | None = None
    W: Array | None = None
    shared: bool = False
    ceiling: float = np.inf

    @property
    def weights(self) -> tuple[Array, Array]:
        """``gamma_lo + alpha_0`` and ``gamma_up - alpha_0``, as if W were absent; for a shared operator the mean."""
        if self.shared:
            half = 0.5 * (self.gamma_lo + self.gamma_up)
            return half, half
        if self.alpha_0 is None:
            return self.gamma_lo, self.gamma_up
        return self.gamma_lo + self.alpha_0, self.gamma_up - self.alpha_0

    @property
    def mean_alpha_0(self) -> Array:
        """alpha_0, or the one that gives a shared operator: ``(gamma_up - gamma_lo) / 2``."""
        if self.alpha_0 is not None:
            return self.alpha_0
        return 0.5 * (self.gamma_up - self.gamma_lo) if self.shared else np.zeros_like(self.gamma_lo)

    def take(self, rows: IntArray) -> DualPoint:
        """The multipliers of some of the points, without what couples the sides."""
        return replace(self, gamma_lo=self.gamma_lo[rows], gamma_up=self.gamma_up[rows], alpha_0=None, W=None)

    def below(self, ceiling: float) -> DualPoint:
        """The multipliers for another ceiling: points outside stay outside."""
        if not (np.isfinite(ceiling) and np.isfinite(self.ceiling) and self.ceiling > 0) or ceiling == self.ceiling:
            return self
        factor = ceiling / self.ceiling
        return replace(self, gamma_lo=factor * self.gamma_lo, gamma_up=factor * self.gamma_up, ceiling=ceiling)


class DualState(NamedTuple):
    """Everything that one point needs: the sides, and the conjugate of what couples them with its gradient."""

    sides: tuple[SideState, ...]
    coupling: float
    slope: Array


class BandDual(ABC):
    """A concave function of the multipliers of each side, one after another, and of what couples the sides.

    ``weight (sum over sides of [gamma_s'target_s - Omega*(M_s)] - coupling)``; the gradient in ``gamma_s`` is
    ``weight (target_s - f_s(X))``.

    There is one `SideTerm` and one target (n,), what it has to cover, per side, the same term where sides share their
    features, and `n_coupling` unbounded variables behind the multipliers.
    """

    def __init__(
        self, sides: tuple[SideTerm, ...], targets: tuple[Array, ...], n_coupling: int = 0, weight: float = 1.0
    ) -> None:
        self.sides, self.targets, self.weight = sides, targets, weight
        self.terms = sides[:1] if all(side is sides[0] for side in sides) else sides
        self.n = len(targets[0])
        self.bounds = Box.joined(*(side.bounds for side in sides), unbounded=n_coupling)
        self.n_variables = len(self.bounds.lower)
        self.decompositions, self.per_point = 0, len(sides)  # eigendecompositions so far, and at each point
        self._cached: tuple[Array, DualState] | None = None
        costs = [term.cost for term in self.terms]
        self.dimensions = tuple(term.space.p for term in self.terms)  # of the spaces that operators live in
        self.is_hard = any(cost.is_hard for cost in costs)  # every point has to be covered
        self.stiffness = max(cost.stiffness for cost in costs)
        self.curvature = max(0.5 / cost.lam2 for cost in costs)  # unit of the second derivatives, 1 for ``lam2 = 1/2``

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

    def matrix_arguments(self, z: Array) -> tuple[Argument, ...]:
        """The same as `arguments`, for use as whole matrices: what both sides share may be computed once."""
        return self.arguments(z)

    # ------------------------------------------------------------ values

    def multipliers(self, z: Array) -> list[Array]:
        """Those of each side."""
        return [z[k * self.n : (k + 1) * self.n] for k in range(len(self.sides))]

    def state(self, z: Array) -> DualState:
        """Eigenpairs and coupling at z, remembered for the next call at the same z."""
        if self._cached is None or not np.array_equal(self._cached[0], z):
            self.decompositions += self.per_point
            terms = zip(self.sides, self.matrix_arguments(z), strict=True)
            sides = tuple(SideState(side.space.V, side.regulariser.decompose(side.matrix(*at))) for side, at in terms)
            self._cached = (z.copy(), DualState(sides, *self.coupling(z)))
        return self._cached[1]

    def value_and_grad(self, z: Array) -> tuple[float, Array]:
        """Dual value and gradient."""
        state = self.state(z)
        grads = [target - side.f for target, side in zip(self.targets, state.sides, strict=True)]
        value = self._linear(z) - state.coupling - sum(side.part.value for side in state.sides)
        return self.weight * value, self.weight * np.concatenate([*grads, self.coupling_gradient(state)])

    def certificate(self, z: Array, also: Sides | None = None, near: Sides | None = None) -> Certificate:
        """Certificate of any z, from the operators recovered there or `near`; `also` is another feasible point."""
        z = self.bounds.clip(z)
        known = near or tuple(side.primal for side in self.state(z).sides)
        return certify(self.sides, self.targets, known, self.value_and_grad(z)[0], self.objective, also)

    def bounded_certificate(self, z: Array, bases: Bases, sides: Sides, room: float = 0.0) -> Certificate:
        """Certificate of z and operators, by `SideTerm.upper_bound`; the dual value may be less by `room`, or -inf."""
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

    # ------------------------------------------------------------ the same problem in subspaces

    def per_side(self, items: Sequence[T]) -> tuple[T, ...]:
        """One item per side from one per term."""
        return tuple(items) * len(self.sides) if len(items) == 1 else tuple(items)

    def restricted(self, bases: Bases) -> Self:
        """The same problem with operators restricted to ``Q A Q'``."""
        return self.with_terms(tuple(term.projected(Q) for term, Q in zip(self.terms, bases, strict=True)))

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
        """What the matrices make of the positive eigenvectors of `small`, the restriction: what subspaces lack."""
        vectors = [side.positive_vectors for side in small.state(z).sides]
        arguments = self.arguments(self.lift(z, bases))
        columns = [
            (c - term.cost.b / self.n)[:, None] * (part.space.V.T @ U)
            for term, part, (c, _), U in zip(self.sides, small.sides, arguments, vectors, strict=True)
        ]
        if len(self.terms) == len(columns):
            images = [side.space.V @ each for side, each in zip(self.sides, columns, strict=True)]
        else:  # in one go, as that takes no longer than reading the V that they share
            cuts = np.cumsum([each.shape[1] for each in columns])[:-1]
            images = np.split(self.terms[0].space.V @ np.hstack(columns), cuts, axis=1)
        for Y, (_, W), Q, U in zip(images, arguments, self.per_side(bases), vectors, strict=True):
            if W is not None:
                Y += W @ (Q @ U)
            Y /= max(float(np.linalg.norm(Y, axis=0).max(initial=0.0)), TINY)
        return self._per_term(images)

    def _per_term(self, vectors: list[Array]) -> list[Array]:
        return vectors if len(vectors) == len(self.terms) else [np.column_stack(vectors)]

    # ------------------------------------------------------------ the same problem, but easier

    def relaxed(self, factor: float) -> Self:
        """The same problem with lam2 times `factor`: easier, with multipliers on the way to those of this one."""
        costs = [replace(term.cost, lam2=factor * term.cost.lam2) for term in self.terms]
        return self.with_terms(tuple(SideTerm(t.space, cost) for t, cost in zip(self.terms, costs, strict=True)))

    def subsampled(self, rows: IntArray) -> Self:
        """The same problem with some of the learning points only."""
        spaces = [FeatureSpace(np.ascontiguousarray(term.space.V[:, rows])) for term in self.terms]
        return self.with_terms(
            tuple(SideTerm(space, t.cost) for space, t in zip(spaces, self.terms, strict=True)), rows
        )

    def extended(self, z: Array, rows: IntArray, small: Self) -> Array:
        """Variables of this problem from those of `small`, its restriction to `rows`: they give the same operators."""
        full = np.zeros(self.n_variables)
        values = small.values_everywhere(z, self)
        for k, gamma in enumerate(small.multipliers(z)):
            if self.is_hard:
                full[k * self.n + rows] = gamma
            else:  # the others take part: those outside of the bands are at their ceiling
                full[k * self.n : (k + 1) * self.n] = np.where(self.targets[k] > values[k], self.sides[k].ceiling, 0.0)
        return full

    def values_everywhere(self, z: Array, whole: Self) -> list[Array]:
        """Values of the operators recovered at z at all learning points of `whole`, which has the same features."""
        states = zip(self.state(z).sides, whole.sides, strict=True)
        return [np.square(state.B.T @ side.space.V).sum(axis=0) for state, side in states]
