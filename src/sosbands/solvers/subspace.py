"""Growing subspaces: the exact problem in p features, solved through problems in a few hundred at most.

Restricting the operators to ``Q A Q'`` gives a problem of the same kind with features ``Q'V``. Its feasible points
are feasible in the full problem, so its value bounds the optimum from above; its multipliers, inserted in the full
dual, bound it from below. The two meet once Q contains the few positive eigenvectors of the full dual matrices, so
these are added to Q until they do. A (p, p) matrix is decomposed only where subspaces give no dual bound.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sosbands._types import Array
from sosbands.problems.certificate import Bases, Sides
from sosbands.problems.dual import BandDual
from sosbands.solvers.newton import Monitor, solve_newton
from sosbands.solvers.result import SolverResult, Status

START, MOST_START, SHARE = 25, 60, 25  # dimension of the first subspace: one in 25 features, within these limits
ROUNDS = 25
BOUNDED = 100  # features from which a bound from subspaces is worth trying before all eigenvalues,
TRIES = 2  # so often: with a few more directions it mostly succeeds, and all eigenvalues cost as much as several rounds
# With short lengthscales most points are far from all pivots: their features nearly vanish in the first subspace, where
# only operators out of all proportion would cover them, and its dual problem has no solution in practice.
REACH = 1e3  # how much larger operators may have to be than those for the point that asks for most
INNER = 1000  # iterations of a restricted problem


def solve_subspace(
    problem: BandDual, start: Array, tol: float, max_iterations: int, known: Bases = (), also: Sides | None = None
) -> SolverResult:
    """Solve restricted problems by Newton's method, growing the subspaces until the full gap is at most `tol`.

    `known` are the subspaces of a neighbouring problem, if `start` comes from one.
    """
    count = min(MOST_START, max(START, max(problem.dimensions) // SHARE))
    first = _reaching(problem, known or tuple(term.space.leading(count) for term in problem.terms))
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
                # a neighbour needs no more than the first columns and these: subspaces do not grow along a path
                lifted = [Q @ U for Q, U in zip(grown, small.positive_vectors(problem.project(z, grown)), strict=True)]
                needed = _grown(tuple(Q[:, :count] for Q in grown), lifted)
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


def _reaching(problem: BandDual, bases: Bases) -> Bases | None:
    """From `bases` by leading features to subspaces that can cover every point; None if these are too many."""
    asked = np.maximum(np.max(problem.targets, axis=0), 0)
    while problem.is_hard:
        terms = zip(problem.terms, problem.restricted(bases).terms, strict=True)
        sizes = [(whole.space.identity_values, part.space.identity_values) for whole, part in terms]
        if all((asked * whole <= REACH * asked.max() * part).all() for whole, part in sizes):
            break
        if any(2 * Q.shape[1] >= len(Q) for Q in bases):
            return None
        bases = _grown(bases, [np.eye(len(Q), 2 * Q.shape[1]) for Q in bases])
    return bases


def _grown(bases: Bases, vectors: list[Array]) -> Bases:
    """Bases of the sums of the subspaces and the spans of `vectors`, old columns first."""
    grown = []
    for Q, X in zip(bases, vectors, strict=True):
        for _ in range(2):  # twice is enough
            X = X - Q @ (Q.T @ X)
        X = X[:, np.linalg.norm(X, axis=0) > 1e-9]  # of nothing but rounding no decomposition may be found at all
        U, s, _ = np.linalg.svd(X, full_matrices=False)
        new = U[:, s > 1e-8][:, : len(Q) - Q.shape[1]]
        grown.append(np.column_stack([Q, new - Q @ (Q.T @ new)]) if new.size else Q)
    return tuple(grown)


def _counted(result: SolverResult, iterations: int, made: int, bases: Bases) -> SolverResult:
    return replace(result, iterations=iterations, decompositions=result.decompositions + made, bases=(bases,))
