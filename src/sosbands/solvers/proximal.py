"""The proximal point method, for problems close to a linear semidefinite program.

Where the Frobenius penalty is small against the others, the multipliers hardly determine the operators: the dual value
is right to six digits long before the primal point is. So the operators are held near those of the step before, by a
term whose weight is chosen, not given. A step is a problem with little stiffness, which Newton's method solves quickly;
at the fixed point the term is zero, and what was found solves the problem itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from sosbands._types import Array
from sosbands.solvers.monitor import Monitor
from sosbands.solvers.newton import DAMPING, SecondOrderProblem, Work, first_ascent, newton_step
from sosbands.solvers.protocol import Bases, CertificateLike, SolverResult, Status

FIRST, RELEASE = 0.01, 0.5  # how firmly the first step is held, and what is left of it after a step that was quick
QUICK, LONG = 8, 40  # Newton steps of one that was, and of the longest
SETTLED, EXACT = 0.3, 1e-4  # a step has ended when its residual is this part of its length, and small; never below
MOST_STEPS = 100
PRODUCTS, WORK = 30_000, 3e8  # products with the Hessian in a whole solve, and the same times the squared dimension
SEARCH, WIDER, ENOUGH = 8, 4.0, 1.3  # of the best scaling of the multipliers


class ProximalStepLike(SecondOrderProblem, Protocol):
    """One step, as a dual problem of its own."""

    def start(self) -> Array:
        """Variables at the centre."""

    def next_centre(self, z: Array) -> Any:
        """Primal point and variables of the problem itself at z."""

    def residual(self, z: Array) -> float:
        """How far z is from a maximum."""

    def moved(self, z: Array) -> float:
        """Distance of the primal point at z to the centre."""


class ProximalProblem(SecondOrderProblem, Protocol):
    """A problem that can be held near a primal point."""

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Of the spaces that operators live in."""

    def certificate(self, z: Array, also: Any = None, near: Any = None) -> CertificateLike:
        """Certificate of any z; `also` is a known feasible point, `near` one to be repaired."""

    def principal_bases(self) -> Bases:
        """Bases in which the directions cost each for itself."""

    def restricted(self, bases: Bases) -> Any:
        """The same problem in these bases."""

    def lift(self, z: Array, bases: Bases) -> Array:
        """Variables of this problem from those in the bases."""

    def project(self, z: Array, bases: Bases) -> Array:
        """Variables in the bases from those of this problem."""

    def lift_sides(self, sides: Any, bases: Bases) -> Any:
        """A primal point of this problem from one in the bases."""

    def centre(self, z: Array) -> Any:
        """No primal point yet, and these variables."""

    def step_from(self, centre: Any, firmness: float) -> ProximalStepLike:
        """The problem, held near a centre."""


def solve_proximal(problem: ProximalProblem, start: Array, tol: float, max_iterations: int) -> SolverResult:
    """Steps of the proximal point method, held less and less firmly, until the certified gap is at most `tol`."""
    bases = problem.principal_bases()
    turned = problem.restricted(bases)
    monitor, work = Monitor(problem, tol), Work()
    limit = min(PRODUCTS, WORK / max(problem.dimensions) ** 2)
    centre, firmness, settled, best = turned.centre(problem.project(start, bases)), FIRST, 1.0, None
    iterations, made, shrink = 0, 0, 0.5
    status = Status.ITERATION_LIMIT
    for _ in range(MOST_STEPS):
        step = turned.step_from(centre, firmness)
        z = step.start()
        z, count = _settled(step, z if z.any() else first_ascent(step, z), settled, work)
        centre = step.next_centre(z)
        iterations, made = iterations + count, made + step.decompositions
        scaled, shrink = _scaled(turned, centre.variables, shrink)
        best = turned.certificate(scaled, best, centre.sides).sides
        # what counts is the certificate of the problem as it was given
        lifted = problem.lift(scaled, bases)
        done = monitor.record(problem.certificate(lifted, problem.lift_sides(best, bases)), lifted)
        if done or monitor.has_stalled:
            status = Status.CONVERGED if done else Status.STALLED
            break
        if work.products > limit or iterations >= max_iterations:
            break
        settled = max(EXACT, settled / 2)
        firmness *= RELEASE if count <= QUICK else 1.0
    result = monitor.result(status)
    return replace(result, iterations=iterations, decompositions=result.decompositions + turned.decompositions + made)


def _settled(step: ProximalStepLike, z: Array, most: float, work: Work) -> tuple[Array, int]:
    """Newton's method on one step, until its residual is small against the way that it has gone."""
    damping = DAMPING
    for count in range(LONG):
        if step.residual(z) <= min(most, SETTLED * step.moved(z)):
            return z, count
        found = newton_step(step, z, damping, work)
        if found is None:
            damping *= 10
            if damping > 1e6:
                return z, count
            continue
        z, length = found
        damping = max(1e-12, damping * (0.2 if length == 1 else min(10.0, 1 / length)))
    return z, LONG


def _scaled(problem: SecondOrderProblem, z: Array, guess: float) -> tuple[Array, float]:
    """About the best ``(1 - h) z`` and h: eigenvalues that are positive by too much cost more than a part of the value.

    The dual is concave in h; `guess` is the h of the step before.
    """
    best = (*_along(problem, z, 0.0), 0.0)
    if best[1] <= 0:
        return z, 1e-6
    below, above = 0.0, max(1e-6, guess / 2)
    value: Callable[[float], tuple[float, float]] = lambda h: _along(problem, z, h)  # noqa: E731
    for _ in range(2 * SEARCH):
        now = (*value(above), above)
        best = max(best, now)
        if now[1] <= 0 or above >= 1:
            break
        below, above = above, min(1.0, WIDER * above)
    for _ in range(SEARCH):
        if above <= ENOUGH * max(below, 1e-7):
            break
        middle = float(np.sqrt(max(below, 1e-7) * above))
        now = (*value(middle), middle)
        best = max(best, now)
        below, above = (below, middle) if now[1] <= 0 else (middle, above)
    return (1 - best[2]) * z, max(best[2], 1e-6)


def _along(problem: SecondOrderProblem, z: Array, h: float) -> tuple[float, float]:
    """Value of the dual at ``(1 - h) z`` and its derivative in h."""
    value, grad = problem.value_and_grad((1 - h) * z)
    return value, -float(grad @ z)
