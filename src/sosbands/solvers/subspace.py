"""Growing subspaces: the exact problem in p features, solved through problems in a few hundred at most.

Restricting the operators to ``Q A Q'`` gives a problem of the same kind with features ``Q'V``. Its feasible points
are feasible in the full problem, so its value bounds the optimum from above; its multipliers, inserted in the full
dual, bound it from below. The two meet once Q contains the few positive eigenvectors of the full dual matrices, so
these are added to Q until they do. A (p, p) matrix is decomposed only where subspaces give no dual bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from sosbands._types import Array
from sosbands.solvers.monitor import Monitor
from sosbands.solvers.newton import SecondOrderProblem, solve_newton
from sosbands.solvers.protocol import Bases, CertificateLike, SolverResult, Status

START, MOST_START, SHARE = 25, 60, 25  # dimension of the first subspace: one in 25 features, within these limits
ROUNDS = 25
BOUNDED = 100  # features from which a bound from subspaces is worth trying before all eigenvalues,
TRIES = 2  # so often: with a few more directions it mostly succeeds, and all eigenvalues cost as much as several rounds
# With short lengthscales most points are far from all pivots: their features nearly vanish in the first subspace, where
# only operators out of all proportion would cover them, and its dual problem has no solution in practice.
REACH = 1e3  # how much larger operators may have to be than those for the point that asks for most
INNER = 1000  # iterations of a restricted problem


class RestrictableProblem(SecondOrderProblem, Protocol):
    """A problem whose primal point is made of operators that can be restricted to subspaces.

    Subspaces are given by one matrix of orthonormal columns for each space of operators.
    """

    @property
    def dimensions(self) -> Sequence[int]:
        """Of the spaces that operators live in."""

    @property
    def is_hard(self) -> bool:
        """Every learning point has to be covered, in every subspace."""

    @property
    def sizes(self) -> Array:
        """How much each learning point asks for."""

    @property
    def identity_values(self) -> Sequence[Array]:
        """Values of the operator I at the learning points, for each space."""

    def leading_bases(self, count: int) -> Bases:
        """Subspaces of at most this dimension that are likely to hold most of the operators."""

    def certificate(self, z: Array, also: Any = None) -> CertificateLike:
        """Certificate of any z; `also` is a known feasible point."""

    def bounded_certificate(self, z: Array, bases: Bases, sides: Any, room: float) -> CertificateLike:
        """Certificate of z and a known primal point from subspaces alone; its dual value may be -inf.

        Its dual value may lie below that of z by about `room`.
        """

    def restricted(self, bases: Bases) -> RestrictableProblem:
        """The same problem with operators ``Q A Q'``."""

    def lift(self, z: Array, bases: Bases) -> Array:
        """Variables of this problem from those of a restricted one."""

    def project(self, z: Array, bases: Bases) -> Array:
        """Variables of a restricted problem from those of this one."""

    def lift_sides(self, sides: Any, bases: Bases) -> Any:
        """A primal point of this problem from one of a restricted one."""

    def positive_vectors(self, z: Array) -> list[Array]:
        """Eigenvectors that span the operators recovered at z, one matrix for each space."""

    def images(self, small: Any, z: Array, bases: Bases) -> list[Array]:
        """Directions that `small`, the restriction to `bases`, lacks at z, one matrix for each space."""


def solve_subspace(
    problem: RestrictableProblem, start: Array, tol: float, max_iterations: int, known: Bases = (), also: Any = None
) -> SolverResult:
    """Solve restricted problems by Newton's method, growing the subspaces until the full gap is at most `tol`.

    `known` are the subspaces of a neighbouring problem, if `start` comes from one.
    """
    count = min(MOST_START, max(START, max(problem.dimensions) // SHARE))
    first = _reaching(problem, known or problem.leading_bases(count))
    if first is None:
        return solve_newton(problem, start, tol, max_iterations, also)
    monitor = Monitor(problem, tol)
    bases, z, iterations, made, gap = first, start, 0, 0, 0.1
    tries = TRIES if max(problem.dimensions) >= BOUNDED else 0
    if start.any() and not known:
        bases = _grown(bases, problem.positive_vectors(start))
    small = problem.restricted(bases)
    for _ in range(ROUNDS):
        inner_tol = max(0.25 * tol, min(0.05 * gap, 5e-3))
        inner = solve_newton(small, problem.project(z, bases), inner_tol, min(INNER, max_iterations - iterations))
        iterations, made = iterations + inner.iterations, made + inner.decompositions
        if not inner.certificate.gap < 1:  # diverged: its multipliers are of no use
            break
        z = problem.lift(inner.variables, bases)
        grown = _grown(bases, problem.images(small, inner.variables, bases))
        small = problem.restricted(grown)
        estimate = small.value_and_grad(problem.project(z, grown))[0]
        made += small.decompositions
        primal = inner.certificate.primal_value
        gap = (primal - estimate) / primal if np.isfinite(primal) and primal > 0 else 1.0
        if gap <= 0.9 * tol:
            # the estimate never lies below the dual value, so a certificate can only succeed from here
            sides = problem.lift_sides(inner.certificate.sides, bases)
            room = 0.8 * (tol - gap) * primal
            if tries and monitor.record(problem.bounded_certificate(z, grown, sides, room), z):
                needed = _without_the_past(grown, small.positive_vectors(problem.project(z, grown)), count)
                return _counted(monitor.result(Status.CONVERGED), iterations, made, needed)
            tries = max(0, tries - 1)
            if not tries:
                certificate = problem.certificate(z, sides)
                if monitor.record(certificate, z):
                    return _counted(monitor.result(Status.CONVERGED), iterations, made, bases)
                grown, gap = _grown(bases, problem.positive_vectors(z)), certificate.gap
                small = problem.restricted(grown)
        if iterations >= max_iterations or all(Q.shape == G.shape for Q, G in zip(bases, grown, strict=True)):
            break
        bases = grown
    # no subspace is left to try: the problem itself, from the best multipliers found
    made += problem.decompositions - monitor.decompositions
    result = solve_newton(problem, z, tol, max_iterations - iterations, also)
    if monitor.best is not None and monitor.best.gap < result.certificate.gap:
        result = replace(result, variables=monitor.best_z, certificate=monitor.best)
    return _counted(result, iterations + result.iterations, made, bases)


def _reaching(problem: RestrictableProblem, bases: Bases) -> Bases | None:
    """Subspaces in which every point can be covered, from `bases` and leading features; None if these are too many."""
    while problem.is_hard and not _reaches(problem, problem.restricted(bases)):
        if any(2 * Q.shape[1] >= len(Q) for Q in bases):
            return None
        bases = _grown(bases, [np.eye(len(Q), 2 * Q.shape[1]) for Q in bases])
    return bases


def _reaches(problem: RestrictableProblem, small: RestrictableProblem) -> bool:
    """Whether no point asks for operators that are out of proportion in the subspace."""
    asked = np.maximum(problem.sizes, 0)
    spaces = zip(small.identity_values, problem.identity_values, strict=True)
    return all((asked * whole <= REACH * asked.max() * part).all() for part, whole in spaces)


def _grown(bases: Bases, vectors: list[Array]) -> Bases:
    """Bases of the sums of the subspaces and the spans of `vectors`, old columns first."""
    return tuple(_extended(Q, X) for Q, X in zip(bases, vectors, strict=True))


def _without_the_past(bases: Bases, vectors: list[Array], count: int) -> Bases:
    """The first columns and the span of ``Q U``: a neighbour needs no more, and subspaces do not grow along a path."""
    lifted = [Q @ U for Q, U in zip(bases, vectors, strict=True)]
    return _grown(tuple(Q[:, :count] for Q in bases), lifted)


def _extended(Q: Array, X: Array) -> Array:
    for _ in range(2):  # twice is enough
        X = X - Q @ (Q.T @ X)
    X = X[:, np.linalg.norm(X, axis=0) > 1e-9]  # of nothing but rounding no decomposition may be found at all
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    new = U[:, s > 1e-8][:, : len(Q) - Q.shape[1]]
    return np.column_stack([Q, new - Q @ (Q.T @ new)]) if new.size else Q


def _counted(result: SolverResult, iterations: int, made: int, bases: Bases) -> SolverResult:
    return replace(result, iterations=iterations, decompositions=result.decompositions + made, bases=(bases,))
