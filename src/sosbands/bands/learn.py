"""learn_bands: from points and residuals to two certified non-negative functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sosbands.bands.prepare import PreparedBands, TwoSidedProblem, prepare
from sosbands.bands.scaling import Penalties, PenaltyScale, read_penalties
from sosbands.bands.solution import BandSolution, zero_solution
from sosbands.exceptions import NotCertifiedWarning, ZeroResidualsWarning
from sosbands.solvers import Status, check_solver, solve, solve_path


def learn_bands(
    X: Any,
    residuals: Any,
    *,
    kernel: Any = "matern52",
    lengthscale: Any = "median",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    symmetry_penalty: Any = 1.0,
    symmetry_kind: str = "training",
    rank: Any = "auto",
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | PenaltyScale = False,
    X_kernel: Any = None,
) -> BandSolution:
    """Learn the lower and the upper band function around a point model from its residuals.

    Both functions are kernel sums of squares that cover every residual (``f_lo >= -r``, ``f_up >= r``) at the
    least cost ``sum over sides of (b/n) sum_i f(X_i) + lam1 tr A + lam2 ||A||_F^2`` plus a penalty on their
    difference. The problem is convex and the solution comes with a certificate.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Learning points; with ``kernel="precomputed"`` the kernel matrix (n, n).
    residuals : array-like of shape (n,)
        ``y - prediction``.
    kernel : str, kernel object or callable
        "matern52", "matern32", "matern12", "gaussian", any scikit-learn kernel, a function ``k(X, Y)`` that
        returns a matrix, or "precomputed".
    lengthscale : "median", float, array of shape (d,) or dict
        Of a named kernel; a dict ``{"lower": ..., "upper": ...}`` gives each side its own.
    width_penalty, trace_penalty, frobenius_penalty : float
        b, lam1 and lam2.
    symmetry_penalty : float or pair
        0 gives two independent bands, inf one shared function; a pair (nuclear, squared Frobenius) is for the
        operator kind, where a single number is the second of the pair.
    symmetry_kind : {"training", "operator"}
        Penalise the difference of the functions at the learning points, or of their operators.
    rank : "auto", "exact", int or float in (0, 1)
        Number of kernel features, or the relative trace of the kernel matrix that they may leave out. "auto" is
        exact up to 500 points, above that it leaves out 1e-6 and takes at most 2000 features.
    solver : {"auto", "newton", "subspace", "lbfgs"}
        "auto" is "newton" for few features and "subspace" for many.
    tol : float
        Relative duality gap at which a solve counts as converged.
    normalize : bool or PenaltyScale
        Take the penalties relative to an initial symmetric model and the residuals relative to their root mean
        square, so that the bands are equivariant in the residuals; a PenaltyScale reuses one made before. False
        solves the problem literally, in the units given.
    X_kernel : array-like, optional
        What the kernel sees instead of `X` (which may then be None): transformed points, or the kernel matrix.

    Returns
    -------
    BandSolution
    """
    prepared = prepare(
        X if X_kernel is None else X_kernel,
        residuals,
        kernel=kernel,
        lengthscale=lengthscale,
        penalties=read_penalties(width_penalty, trace_penalty, frobenius_penalty, symmetry_penalty, symmetry_kind),
        rank=rank,
        tol=tol,
        normalize=normalize,
    )
    check_solver(solver)
    if X_kernel is not None and X is not None and len(X) != len(prepared.r):
        raise ValueError(f"X_kernel has {len(prepared.r)} rows: expected {len(X)}, as X")
    if prepared.is_zero:
        warnings.warn("all residuals are zero: the bands have no width", ZeroResidualsWarning, stacklevel=2)
        return zero_solution(prepared.lower, prepared.upper)
    problem = prepared.problem(prepared.penalties)
    return _certified(prepared.solution(problem, solve(problem, tol=tol, solver=solver)), tol)


def learn_band_path(
    X: Any,
    residuals: Any,
    symmetry_penalties: Iterable[Any],
    *,
    kernel: Any = "matern52",
    lengthscale: Any = "median",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    symmetry_kind: str = "training",
    rank: Any = "auto",
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | PenaltyScale = False,
) -> Iterator[BandSolution]:
    """Learn the bands for many symmetry penalties, each solve started from the last.

    The kernel is factorised once. Penalties may include 0 and inf and come in any order; an increasing one is best.
    See :func:`learn_bands` for the parameters. Solutions are yielded as they are found.
    """
    penalties = list(symmetry_penalties)
    grid = learn_band_grid(
        X,
        residuals,
        [lengthscale],
        penalties,
        kernel=kernel,
        width_penalty=width_penalty,
        trace_penalty=trace_penalty,
        frobenius_penalty=frobenius_penalty,
        symmetry_kind=symmetry_kind,
        rank=rank,
        solver=solver,
        tol=tol,
        normalize=normalize,
    )
    return (solution for _, _, solution in grid)


def learn_band_grid(
    X: Any,
    residuals: Any,
    lengthscales: Sequence[Any],
    symmetry_penalties: Sequence[Any],
    *,
    kernel: Any = "matern52",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    symmetry_kind: str = "training",
    rank: Any = "auto",
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | PenaltyScale = False,
) -> Iterator[tuple[int, int, BandSolution]]:
    """Learn the bands for every pair of a lengthscale and a symmetry penalty, each solve started from the last.

    Penalties are run through upwards and downwards in turn, so that neighbours follow one another. Yields the positions
    of lengthscale and penalty with each solution. See :func:`learn_bands` for the parameters.
    """
    check_solver(solver)
    wanted = [
        read_penalties(width_penalty, trace_penalty, frobenius_penalty, penalty, symmetry_kind)
        for penalty in symmetry_penalties
    ]
    if not wanted:
        return iter(())
    options = {"kernel": kernel, "rank": rank, "tol": tol, "normalize": normalize}
    setups = [prepare(X, residuals, lengthscale=ell, penalties=wanted[0], **options) for ell in lengthscales]
    columns = range(len(wanted))
    order = [(i, j) for i in range(len(setups)) for j in (columns if i % 2 == 0 else reversed(columns))]
    if setups and setups[0].is_zero:
        warnings.warn("all residuals are zero: the bands have no width", ZeroResidualsWarning, stacklevel=3)
        return ((i, j, zero_solution(setups[i].lower, setups[i].upper)) for i, j in order)
    for i, j in order:
        setups[i].problem(wanted[j])  # whatever is wrong with one of them is said before the first is solved
    return _solved(setups, wanted, order, solver, tol)


def _solved(
    setups: list[PreparedBands], wanted: list[Penalties], order: list[tuple[int, int]], solver: str, tol: float
) -> Iterator[tuple[int, int, BandSolution]]:
    """Solve in this order; one problem, with the decompositions it remembers, lives at a time."""
    current: list[TwoSidedProblem] = []

    def problems() -> Iterator[TwoSidedProblem]:
        for i, j in order:
            current[:] = [setups[i].problem(wanted[j])]
            yield current[0]

    for (i, j), result in zip(order, solve_path(problems(), tol=tol, solver=solver), strict=True):
        yield i, j, _certified(setups[i].solution(current[0], result), tol)


def _certified(solution: BandSolution, tol: float) -> BandSolution:
    """Pass a solution on, with a warning if it misses the tolerance."""
    if solution.status != Status.CONVERGED:
        warnings.warn(
            f"the certified relative gap is {solution.gap:.2g}, above tol={tol:.2g} ({solution.status.value} "
            f"after {solution.iterations} iterations)",
            NotCertifiedWarning,
            stacklevel=3,
        )
    return solution
