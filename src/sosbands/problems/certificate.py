"""From any dual point to a feasible primal point, and the gap between the two values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sosbands._types import Array
from sosbands.problems.operators import PrimalSide
from sosbands.problems.side import SideTerm

Sides = tuple[PrimalSide, ...]
Bases = tuple[Array, ...]  # orthonormal columns, one matrix per term
TINY = 1e-300
SOLVED, FAR = 1e-7, 0.1  # gaps between which better operators than those of the multipliers are worth their price,
CLOSE = 1e-2  # and below which no other candidate is looked at
NEARLY = 1e-2  # of the largest target


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof of quality: ``dual_value <= optimum <= primal_value``.

    Attributes
    ----------
    dual_value, primal_value : float
        Both of the whole objective (both sides added).
    gap : float
        ``(primal_value - dual_value) / primal_value``; +inf if no feasible point was found.
    violation : float
        Largest ``r_i - f(X_i)`` of `sides`, at least 0, relative to the root mean square of the residuals: rounding
        where every row has to be covered, and how far the farthest row lies outside where rows may.
    sides : tuple of PrimalSide
        The operators that attain `primal_value`; where every row has to be covered they do (the recovered ones if none
        is known that does).
    """

    dual_value: float
    primal_value: float
    gap: float
    violation: float
    sides: Sides


def certify(
    terms: Sequence[SideTerm],
    targets: Sequence[Array],
    sides: Sides,
    dual_value: float,
    objective: Callable[[Sides], float],
    also: Sides | None = None,
    better: Callable[[], Sides | None] | None = None,
) -> Certificate:
    """Best of the feasible points near the recovered `sides`, with its gap to `dual_value`.

    Where rows may lie outside every operator is feasible, and the recovered ones are taken as they are, or repaired if
    hardly any row lies outside. Otherwise side s must satisfy ``f_s(X_i) >= targets[s][i]``; the candidates are then
    scalings (the smallest feasible factor, common or per side) and shifts ``A + s C`` with C the identity or cc', cc'
    nearly constant (the smallest feasible s, common or per side). `also` is a point already known to be feasible,
    `better` makes operators that are nearly feasible and better than `sides`: these are scaled, and if they come close
    enough nothing else is tried.
    """
    best, best_value = sides, np.inf

    def improve(candidates: Iterable[Sides]) -> float:
        nonlocal best, best_value
        for candidate in candidates:
            value = objective(candidate)
            if value < best_value:
                best, best_value = candidate, value
        return relative_gap(best_value, dual_value)

    with np.errstate(over="ignore", invalid="ignore"):  # a hopeless scaling may overflow, and is not taken
        improve([also] if also else [])
        if better is not None and SOLVED < improve(_scaled(targets, sides)) < FAR:
            found = better()
            if found is not None and improve(_scaled(targets, found)) <= CLOSE:
                return measured(targets, best, dual_value, best_value)
        improve(_feasible(terms, targets, sides))
    return measured(targets, best, dual_value, best_value)


def measured(targets: Sequence[Array], sides: Sides, dual_value: float, primal_value: float) -> Certificate:
    """The certificate of these values and of the operators that attain the second."""
    rms = float(np.sqrt(sum(r @ r for r in targets) / sum(len(r) for r in targets))) or 1.0
    violation = max(float(np.max(r - side.f, initial=0.0)) for r, side in zip(targets, sides, strict=True)) / rms
    return Certificate(dual_value, primal_value, relative_gap(primal_value, dual_value), violation, sides)


def add_certificates(certificates: Sequence[Certificate]) -> Certificate:
    """Certificate of a sum of independent problems."""
    dual_value = sum(certificate.dual_value for certificate in certificates)
    primal_value = sum(certificate.primal_value for certificate in certificates)
    return Certificate(
        dual_value,
        primal_value,
        relative_gap(primal_value, dual_value),
        max(certificate.violation for certificate in certificates),
        tuple(side for certificate in certificates for side in certificate.sides),
    )


def relative_gap(primal_value: float, dual_value: float) -> float:
    """``(P - D) / P``, 0 if both are 0, +inf if P is not finite."""
    if not np.isfinite(primal_value):
        return np.inf
    return 0.0 if primal_value == dual_value else (primal_value - dual_value) / max(primal_value, TINY)


def _feasible(terms: Sequence[SideTerm], targets: Sequence[Array], sides: Sides) -> Iterator[Sides]:
    """Candidates, each feasible by construction."""
    choices = [sides]
    if len(sides) == 2 and len(sides[0].B) == len(sides[1].B) and terms[0] is terms[-1]:
        # the average on both sides costs no symmetry penalty, which matters where that penalty is large
        average = sides[0].average(sides[1])
        choices.append((average, average))
    hard = any(term.cost.is_hard for term in terms)
    for chosen in choices:
        if not hard:
            yield chosen
        if hard or _nearly_covers(targets, chosen):
            yield from _repaired(terms, targets, chosen)


def _nearly_covers(targets: Sequence[Array], sides: Sides) -> bool:
    """Whether rows lie outside by little: where the price is high, covering them all may be cheaper."""
    pairs = list(zip(targets, sides, strict=True))
    missing = max(float(np.max(target - side.f, initial=0.0)) for target, side in pairs)
    return missing <= NEARLY * max(float(np.max(target, initial=0.0)) for target, _ in pairs)


def _scaled(targets: Sequence[Array], sides: Sides) -> Iterator[Sides]:
    """`sides` scaled until feasible."""
    scales = [smallest_factor(r, side.f) for r, side in zip(targets, sides, strict=True)]
    for chosen in _common_and_own(scales):
        yield tuple(side.scaled(t) for side, t in zip(sides, chosen, strict=True))


def _repaired(terms: Sequence[SideTerm], targets: Sequence[Array], sides: Sides) -> Iterator[Sides]:
    """`sides` scaled or shifted until feasible."""
    yield from _scaled(targets, sides)
    missing = [np.maximum(r - side.f, 0.0) for r, side in zip(targets, sides, strict=True)]
    shifts = [smallest_factor(r, term.space.identity_values) for r, term in zip(missing, terms, strict=True)]
    for chosen in _common_and_own(shifts):
        yield tuple(
            side.plus_identity(s, term.space.identity_values)
            for side, term, s in zip(sides, terms, chosen, strict=True)
        )
    constants = [term.space.constant for term in terms]
    known = [c for c in constants if c is not None]
    if len(known) == len(constants):
        shifts = [smallest_factor(r, values) for r, (_, values) in zip(missing, known, strict=True)]
        for chosen in _common_and_own(shifts):
            yield tuple(side.plus_square(s, *c) for side, c, s in zip(sides, known, chosen, strict=True))


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
