"""learn_bands: from points and residuals to two certified non-negative functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sosbands.bands.initial import penalty_scale
from sosbands.bands.penalties import BandSettings, PenaltyScale, SymmetryPenalty, read_settings
from sosbands.bands.prepare import PreparedBands, TwoSidedProblem, read_data
from sosbands.bands.solution import BandSolution, zero_solution
from sosbands.exceptions import NotCertifiedWarning, ZeroResidualsWarning
from sosbands.solvers import Status, solve_path


def learn_bands(
    X: Any,
    residuals: Any,
    *,
    kernel: Any = "matern52",
    lengthscale: Any = "median",
    width_penalty: float = 10.0,
    trace_penalty: float = 1.0,
    frobenius_penalty: float = 1.0,
    learning_coverage: float = 1.0,
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
    learning_coverage : float in (0, 1]
        Share c of the learning points that the bands should cover. 1 covers every point. Below 1 points may lie outside
        at the price ``2 b / (n (1 - c))`` for each unit, which makes the bands quantiles of the residuals as far as the
        other penalties let them: at most about ``(1 - c)/2`` of the points lie outside on each side.
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
    settings = read_settings(
        kernel=kernel,
        width_penalty=width_penalty,
        trace_penalty=trace_penalty,
        frobenius_penalty=frobenius_penalty,
        learning_coverage=learning_coverage,
        symmetry_kind=symmetry_kind,
        rank=rank,
        solver=solver,
        tol=tol,
        normalize=normalize,
    )
    if X_kernel is not None and X is not None and len(X_kernel) != len(X):
        raise ValueError(f"X_kernel has {len(X_kernel)} rows: expected {len(X)}, as X")
    points = X if X_kernel is None else X_kernel
    ((_, _, solution),) = _grid(points, residuals, [lengthscale], [symmetry_penalty], settings)
    return solution


def learn_band_path(
    X: Any, residuals: Any, symmetry_penalties: Iterable[Any], *, lengthscale: Any = "median", **settings: Any
) -> Iterator[BandSolution]:
    """Learn the bands for many symmetry penalties, each solve started from the last.

    The kernel is factorised once. Penalties may include 0 and inf and come in any order; an increasing one is best.
    Solutions are yielded as they are found.

    Parameters
    ----------
    X, residuals
        As in :func:`learn_bands`.
    symmetry_penalties : iterable
        One solution each.
    lengthscale
        As in :func:`learn_bands`.
    **settings
        kernel, width_penalty, trace_penalty, frobenius_penalty, symmetry_kind, rank, solver, tol and normalize of
        :func:`learn_bands`.
    """
    grid = _grid(X, residuals, [lengthscale], list(symmetry_penalties), read_settings(**settings))
    return (solution for _, _, solution in grid)


def learn_band_grid(
    X: Any, residuals: Any, lengthscales: Sequence[Any], symmetry_penalties: Sequence[Any], **settings: Any
) -> Iterator[tuple[int, int, BandSolution]]:
    """Learn the bands for every pair of a lengthscale and a symmetry penalty, each solve started from the last.

    Penalties are run through upwards and downwards in turn, so that neighbours follow one another. Yields the positions
    of lengthscale and penalty with each solution.

    Parameters
    ----------
    X, residuals
        As in :func:`learn_bands`.
    lengthscales, symmetry_penalties : sequences
        What :func:`learn_bands` takes one of.
    **settings
        As in :func:`learn_band_path`.
    """
    return _grid(X, residuals, lengthscales, symmetry_penalties, read_settings(**settings))


def _grid(
    X: Any, residuals: Any, lengthscales: Sequence[Any], symmetry_penalties: Sequence[Any], settings: BandSettings
) -> Iterator[tuple[int, int, BandSolution]]:
    """Whatever is wrong is said at once, before the first solve; solutions come as they are asked for."""
    wanted = [settings.symmetry(penalty) for penalty in symmetry_penalties]
    if not wanted:
        return iter(())
    data = read_data(X, residuals, settings.kernel, settings.rank)
    scale = settings.normalize if isinstance(settings.normalize, PenaltyScale) else None
    if settings.normalize is True and data.r.any():
        scale = penalty_scale(data.points, data.r, settings.kernel, settings.rank, settings.tol, settings.solver)
    setups = [data.prepare(ell, settings.cost, scale) for ell in lengthscales]
    columns = range(len(wanted))
    order = [(i, j) for i in range(len(setups)) for j in (columns if i % 2 == 0 else reversed(columns))]
    if setups and setups[0].is_zero:
        warnings.warn("all residuals are zero: the bands have no width", ZeroResidualsWarning, stacklevel=3)
        return ((i, j, zero_solution(setups[i].lower, setups[i].upper)) for i, j in order)
    for i, j in order:
        setups[i].problem(wanted[j])
    return _solved(setups, wanted, order, settings)


def _solved(
    setups: list[PreparedBands], wanted: list[SymmetryPenalty], order: list[tuple[int, int]], settings: BandSettings
) -> Iterator[tuple[int, int, BandSolution]]:
    """Solve in this order; one problem, with the decompositions it remembers, lives at a time."""
    current: list[TwoSidedProblem] = []

    def problems() -> Iterator[TwoSidedProblem]:
        for i, j in order:
            current[:] = [setups[i].problem(wanted[j])]
            yield current[0]

    results = solve_path(problems(), tol=settings.tol, solver=settings.solver)
    for (i, j), result in zip(order, results, strict=True):
        yield i, j, _certified(setups[i].solution(current[0], result), settings.tol)


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
