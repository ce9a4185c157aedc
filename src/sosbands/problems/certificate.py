"""Primal points, and from any dual point to a feasible one with the gap between the two values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sosbands._threads import cached_property
from sosbands._types import Array

if TYPE_CHECKING:
    from sosbands.problems.side import SideTerm

TINY = 1e-300
NEARLY = 1e-2  # of the largest target


@dataclass(frozen=True, eq=False)
class PrimalSide:
    """One side's operator ``A = B B' + ridge I``, B (p, rank), and its values ``f_i = (V' A V)_ii``."""

    B: Array
    ridge: float
    f: Array

    @cached_property
    def trace(self) -> float:
        """Trace of A, which is also its nuclear norm."""
        return float(np.vdot(self.B, self.B) + self.ridge * len(self.B))

    @cached_property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of A."""
        gram = self.B.T @ self.B
        p = len(self.B)
        return float(np.vdot(gram, gram) + 2 * self.ridge * np.trace(gram) + np.square(self.ridge) * p)

    def _with_norms(self, trace: float, squared_norm: float) -> PrimalSide:
        """Itself, with norms that are known from those of another: a certificate compares many candidates."""
        self.__dict__.update(trace=trace, squared_norm=squared_norm)
        return self

    def lifted(self, Q: Array) -> PrimalSide:
        """``Q A Q'`` for orthonormal columns Q: the same values, in the space that Q maps to."""
        B = self.B if self.ridge == 0 else np.column_stack([self.B, np.sqrt(self.ridge) * np.eye(len(self.B))])
        return PrimalSide(Q @ B, 0.0, self.f)

    def scaled(self, t: float) -> PrimalSide:
        """``t A``."""
        scaled = PrimalSide(np.sqrt(t) * self.B, t * self.ridge, t * self.f)
        return scaled._with_norms(t * self.trace, t * t * self.squared_norm)

    def average(self, other: PrimalSide) -> PrimalSide:
        """``(A + A_other) / 2``."""
        B = np.column_stack([self.B, other.B]) / np.sqrt(2.0)
        return PrimalSide(B, 0.5 * (self.ridge + other.ridge), 0.5 * (self.f + other.f))

    def plus_identity(self, s: float, values: Array) -> PrimalSide:
        """``A + s I``, `values` being those of I at the learning points."""
        p = len(self.B)
        shifted = PrimalSide(self.B, self.ridge + s, self.f + s * values)
        return shifted._with_norms(self.trace + s * p, self.squared_norm + 2 * s * self.trace + s * s * p)

    def plus_square(self, s: float, c: Array, values: Array) -> PrimalSide:
        """``A + s cc'``, `values` being those of cc' at the learning points."""
        shifted = PrimalSide(np.column_stack([self.B, np.sqrt(s) * c]), self.ridge, self.f + s * values)
        size, image = float(c @ c), self.B.T @ c
        inner = float(image @ image) + self.ridge * size  # of A and cc'
        return shifted._with_norms(self.trace + s * size, self.squared_norm + 2 * s * inner + s * s * size * size)


Sides = tuple[PrimalSide, ...]
Bases = tuple[Array, ...]  # orthonormal columns, one matrix per term


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof of quality: ``dual_value <= optimum <= primal_value``, both of the whole objective (both sides added).

    The `gap` is ``(primal_value - dual_value) / primal_value``; 0 if both are 0, +inf if no feasible point was found.
    The `violation` is the largest ``r_i - f(X_i)`` of `sides`, at least 0, relative to the root mean square of the
    residuals: rounding where every row has to be covered, and how far the farthest row lies outside where rows may.
    """

    dual_value: float
    primal_value: float
    gap: float
    violation: float
    sides: Sides  # that attain the primal value, and cover every row that has to be (if none does, the recovered ones)


def certify(
    terms: Sequence[SideTerm],
    targets: Sequence[Array],
    sides: Sides,
    dual_value: float,
    objective: Callable[[Sides], float],
    also: Sides | None = None,
) -> Certificate:
    """Best of the feasible points near the recovered `sides`, and of `also`, with its gap to `dual_value`.

    Where rows may lie outside, the recovered ones as they are, or repaired if hardly any row does. Otherwise scalings
    and shifts ``A + s C``, C the identity or cc', nearly constant, by the smallest feasible number, common or per side.
    """
    best, best_value = sides, np.inf
    with np.errstate(over="ignore", invalid="ignore"):  # a hopeless scaling may overflow, and is not taken
        for candidate in [*([also] if also else []), *_feasible(terms, targets, sides)]:
            value = objective(candidate)
            if value < best_value:
                best, best_value = candidate, value
    return measured(targets, best, dual_value, best_value)


def measured(targets: Sequence[Array], sides: Sides, dual_value: float, primal_value: float) -> Certificate:
    """The certificate of these values and of the operators that attain the second."""
    rms = float(np.sqrt(sum(r @ r for r in targets) / sum(len(r) for r in targets))) or 1.0
    violation = max(float(np.max(r - side.f, initial=0.0)) for r, side in zip(targets, sides, strict=True)) / rms
    return Certificate(dual_value, primal_value, _relative_gap(primal_value, dual_value), violation, sides)


def add_certificates(certificates: Sequence[Certificate]) -> Certificate:
    """Certificate of a sum of independent problems."""
    dual_value = sum(each.dual_value for each in certificates)
    primal_value = sum(each.primal_value for each in certificates)
    violation = max(each.violation for each in certificates)
    sides = tuple(side for each in certificates for side in each.sides)
    return Certificate(dual_value, primal_value, _relative_gap(primal_value, dual_value), violation, sides)


def _relative_gap(primal_value: float, dual_value: float) -> float:
    if not np.isfinite(primal_value):
        return np.inf
    return 0.0 if primal_value == dual_value else (primal_value - dual_value) / max(primal_value, TINY)


def _feasible(terms: Sequence[SideTerm], targets: Sequence[Array], sides: Sides) -> Iterator[Sides]:
    """Candidates, each feasible by construction."""
    choices = [sides]
    if len(sides) == 2 and len(sides[0].B) == len(sides[1].B) and terms[0] is terms[-1]:
        # the average on both sides costs no symmetry penalty, which matters where that penalty is large
        choices.append((sides[0].average(sides[1]),) * 2)
    hard = any(term.cost.is_hard for term in terms)
    for chosen in choices:
        missing = [np.maximum(r - side.f, 0.0) for r, side in zip(targets, chosen, strict=True)]
        if not hard:
            yield chosen
            # where rows lie outside by little and the price is high, covering them all may be cheaper
            largest = max(float(np.max(target, initial=0.0)) for target in targets)
            if not max(float(np.max(m, initial=0.0)) for m in missing) <= NEARLY * largest:
                continue
        scales = [smallest_factor(r, side.f) for r, side in zip(targets, chosen, strict=True)]
        for each in _common_and_own(scales):
            yield tuple(side.scaled(t) for side, t in zip(chosen, each, strict=True))
        identities = [term.space.identity_values for term in terms]
        for each in _common_and_own(list(map(smallest_factor, missing, identities))):
            yield tuple(side.plus_identity(s, v) for side, s, v in zip(chosen, each, identities, strict=True))
        constants = [c for c in (term.space.constant for term in terms) if c is not None]
        if len(constants) == len(terms):
            shifts = [smallest_factor(m, values) for m, (_, values) in zip(missing, constants, strict=True)]
            for each in _common_and_own(shifts):
                yield tuple(side.plus_square(s, *c) for side, c, s in zip(chosen, constants, each, strict=True))


def _common_and_own(factors: list[float]) -> list[list[float]]:
    """The largest factor for all sides, and each side's own; only finite ones."""
    if not np.all(np.isfinite(factors)):
        return []
    common = [max(factors)] * len(factors)
    return [common] if common == factors else [common, factors]


def smallest_factor(r: Array, values: Array) -> float:
    """Smallest ``t >= 0`` with ``t values_i >= r_i`` for all i; +inf if there is none."""
    positive = r > 0
    if not positive.any():
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.max(r[positive] / values[positive]))
