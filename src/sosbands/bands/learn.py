"""learn_bands: from points and residuals to two certified non-negative functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands._words import warn
from sosbands.bands.prepare import BandData, PreparedBands, root_mean_square
from sosbands.bands.settings import BandSettings, PenaltyScale
from sosbands.bands.solution import BandSolution
from sosbands.exceptions import NotCertifiedWarning, ZeroResidualsWarning
from sosbands.problems import DualPoint, TwoSidedProblem
from sosbands.solvers import Status, solve, solve_path

LITERAL = BandSettings("median", 10.0, 1.0, 1.0, constant=False, normalize=False, max_iterations=10_000)


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
    constant: bool = False,
    solver: str = "auto",
    tol: float = 1e-4,
    normalize: bool | str | PenaltyScale = False,
    X_kernel: Any = None,
    sample_weight: Any = None,
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
        other penalties let them: at most about ``(1 - c)/2`` of the points lie outside on each side. Within 2e-9
        of 1 it counts as 1.
    symmetry_penalty : float or pair
        0 gives two independent bands, inf one shared function; a pair (nuclear, squared Frobenius) is for the
        operator kind, where a single number is the second of the pair.
    symmetry_kind : {"training", "operator"}
        Penalise the difference of the functions at the learning points, or of their operators.
    rank : "auto", "exact", int or float in (0, 1)
        Number of kernel features, or the relative trace of the kernel matrix that they may leave out. "auto" is
        exact up to 500 points, above that it leaves out 1e-6 and takes at most 2000 features.
    constant : bool
        Add the constant function to the squares: off the data the bands tend to a constant instead of 0, and noise that
        is the same everywhere needs no kernel function.
    solver : {"auto", "newton", "subspace", "lbfgs"}
        "auto" is "newton" for few features (in small dense matrices where that is possible) and "subspace" for many.
    tol : float
        Relative duality gap at which a solve counts as converged.
    normalize : bool, "residuals" or PenaltyScale
        True takes the penalties relative to an initial symmetric model and the residuals relative to their root mean
        square, "residuals" the residuals relative to their mean size and the penalties as they are; the bands are then
        equivariant in the residuals. A PenaltyScale reuses one made before. False solves the problem literally, in the
        units given.
    X_kernel : array-like, optional
        What the kernel sees instead of `X` (which may then be None): transformed points, or the kernel matrix.
    sample_weight : array-like of shape (n,), optional
        How much each point counts, above 0; only ratios matter. A point of weight 2 is one that is there twice.
    """
    settings = LITERAL.replace(
        lengthscale=lengthscale,
        width_penalty=width_penalty,
        learning_coverage=learning_coverage,
        symmetry_penalty=symmetry_penalty,
        kernel=kernel,
        symmetry_kind=symmetry_kind,
        trace_penalty=trace_penalty,
        frobenius_penalty=frobenius_penalty,
        rank=rank,
        constant=constant,
        normalize=normalize,
        solver=solver,
        tol=tol,
    )
    if X_kernel is not None and X is not None and np.shape(X_kernel)[:1] not in ((), np.shape(X)[:1]):
        raise ValueError(f"X_kernel has {len(X_kernel)} rows: expected {len(X)}, as X")
    (setup,) = _prepared(X if X_kernel is None else X_kernel, residuals, [settings], sample_weight)
    if not setup.r.any():
        return setup.zero_solution()
    problem = setup.problem()
    result = solve(problem, tol=settings.tol, solver=settings.solver, max_iterations=settings.max_iterations)
    return certified(setup.solution(problem.dual_point(result.variables), result), settings.tol)


def learn_band_path(
    X: Any,
    residuals: Any,
    symmetry_penalties: Iterable[Any] | None = None,
    *,
    width_penalties: Iterable[float] | None = None,
    learning_coverages: Iterable[float] | None = None,
    sample_weight: Any = None,
    **settings: Any,
) -> Iterator[BandSolution]:
    """Learn the bands for many values of one setting, each solve started from the last.

    The kernel is factorised once. Values may come in any order; an increasing one is best. Solutions are yielded as
    they are found.

    Parameters
    ----------
    X, residuals, sample_weight
        As in :func:`learn_bands`.
    symmetry_penalties, width_penalties, learning_coverages : iterable
        One of them: one solution for each value. Symmetry penalties may include 0 and inf.
    **settings
        Fields of :class:`~sosbands.bands.BandSettings`, with the defaults of :func:`learn_bands`.
    """
    paths = {
        "symmetry_penalty": symmetry_penalties,
        "width_penalty": width_penalties,
        "learning_coverage": learning_coverages,
    }
    given = [(name, list(values)) for name, values in paths.items() if values is not None]
    if len(given) != 1:
        raise ValueError(
            f"{len(given)} of symmetry_penalties, width_penalties and learning_coverages were given: expected one"
        )
    ((name, values),) = given
    wanted = [{name: value} for value in values]
    return _sequence("learn_band_path", X, residuals, wanted, settings, sample_weight)


def learn_band_sequence(
    X: Any,
    residuals: Any,
    wanted: Sequence[BandSettings | Mapping[str, Any]],
    *,
    starts: Sequence[DualPoint | None] = (),
    sample_weight: Any = None,
    **settings: Any,
) -> Iterator[BandSolution]:
    """Learn the bands for several settings, each solve started from the last.

    Parameters
    ----------
    X, residuals, sample_weight, **settings
        As in :func:`learn_band_path`.
    wanted : sequence of BandSettings, or of mappings
        One solution for each. Kernels are factorised once where neighbours have the same features; solver, tolerance,
        iterations and units are those of the first. A mapping tells what differs from `settings`.
    starts : sequence of DualPoint or None
        Multipliers that these start from, where there are any, instead of the last solution; with rows outside, so that
        their ceiling tells their unit.
    """
    return _sequence("learn_band_sequence", X, residuals, wanted, settings, sample_weight, starts)


def learn_band_grid(
    X: Any,
    residuals: Any,
    lengthscales: Sequence[Any],
    symmetry_penalties: Sequence[Any],
    *,
    sample_weight: Any = None,
    **settings: Any,
) -> Iterator[tuple[int, int, BandSolution]]:
    """Learn the bands for every pair of a lengthscale and a symmetry penalty, each solve started from the last.

    Penalties are run through upwards and downwards in turn, so that neighbours follow one another. Yields the positions
    of lengthscale and penalty with each solution; all other arguments are those of :func:`learn_band_path`.
    """
    columns = range(len(symmetry_penalties))
    order = [(i, j) for i in range(len(lengthscales)) for j in (columns if i % 2 == 0 else reversed(columns))]
    wanted = [{"lengthscale": lengthscales[i], "symmetry_penalty": symmetry_penalties[j]} for i, j in order]
    solutions = _sequence("learn_band_grid", X, residuals, wanted, settings, sample_weight)
    return ((i, j, solution) for (i, j), solution in zip(order, solutions, strict=True))


def literal(function: str, settings: dict[str, Any]) -> BandSettings:
    """Settings with the defaults of `learn_bands`; a keyword that is none is said of the function."""
    unknown = sorted(set(settings) - set(LITERAL.get_params()))
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}")
    return LITERAL.replace(**settings)


def _sequence(
    function: str,
    X: Any,
    residuals: Any,
    wanted: Sequence[BandSettings | Mapping[str, Any]],
    settings: dict[str, Any],
    sample_weight: Any,
    starts: Sequence[DualPoint | None] = (),
) -> Iterator[BandSolution]:
    """Whatever is wrong is said at once, before the first solve; solutions come as they are asked for."""
    read = literal(function, settings)
    each = [one if isinstance(one, BandSettings) else read.replace(**one) for one in wanted]
    setups = _prepared(X, residuals, each, sample_weight)
    if not setups or not setups[0].r.any():
        return (setup.zero_solution() for setup in setups)
    return _solved(setups, starts)


def _prepared(X: Any, residuals: Any, wanted: list[BandSettings], sample_weight: Any) -> list[PreparedBands]:
    """Read points and residuals, factorise kernels, once for neighbours with the same, and state every problem."""
    for each in wanted:
        each.check_closed()
    if not wanted:
        return []
    data = BandData.read(X, residuals, wanted[0].kernel, sample_weight)
    setups: list[PreparedBands] = []
    with ONE_THREAD:
        scale = common_scale(data, wanted[0])
        for each in wanted:
            known = bool(setups) and each.has_features_of(setups[-1].settings)
            setups.append(setups[-1].with_settings(each) if known else data.prepare(each, scale))
            if data.r.any():
                setups[-1].problem()  # so that what is wrong with it is said
    if not data.r.any():
        warn("all residuals are zero: the bands have no width", ZeroResidualsWarning)
    return setups


def _solved(setups: list[PreparedBands], starts: Sequence[DualPoint | None]) -> Iterator[BandSolution]:
    """Solve in this order; one problem, with the decompositions it remembers, lives at a time."""
    current: list[TwoSidedProblem] = []

    def problems() -> Iterator[TwoSidedProblem]:
        for setup in setups:
            current[:] = [setup.problem()]
            yield current[0]

    first = setups[0].settings
    results = solve_path(
        problems(), tol=first.tol, solver=first.solver, max_iterations=first.max_iterations, points=starts
    )
    for setup in setups:
        with ONE_THREAD:  # not while the caller works between two solutions
            result = next(results)
            solution = setup.solution(current[0].dual_point(result.variables), result)
        yield certified(solution, first.tol)


def certified(solution: BandSolution, tol: float) -> BandSolution:
    """Pass a solution on, with a warning if it misses the tolerance."""
    if solution.status != Status.CONVERGED:
        warn(
            f"the certified relative gap is {solution.gap:.2g}, above tol={tol:.2g} ({solution.status.value} "
            f"after {solution.iterations} iterations)",
            NotCertifiedWarning,
        )
    return solution


# ---------------------------------------------------------------- units of the penalties


def penalty_scale(
    X: Any,
    residuals: Any,
    kernel: Any = "matern52",
    rank: Any = "auto",
    tol: float = 1e-4,
    solver: str = "auto",
    sample_weight: Any = None,
) -> PenaltyScale:
    """Units of the penalties, from the symmetric problem with the median lengthscale and all penalties 1."""
    settings = LITERAL.replace(kernel=kernel, rank=rank, tol=tol, solver=solver, normalize=True)
    scale = common_scale(BandData.read(X, residuals, kernel, sample_weight), settings)
    if scale is None:
        raise ValueError("residuals are all zero: they define no scale")
    return scale


def common_scale(data: BandData, settings: BandSettings) -> PenaltyScale | None:
    """Units of the penalties, the same for all problems of a sequence; None if they are taken literally."""
    if isinstance(settings.normalize, PenaltyScale):
        return settings.normalize
    if not settings.normalize or not data.r.any():
        return None
    if isinstance(settings.normalize, str):
        return PenaltyScale.of_residuals(data.r, data.weights)
    rms = root_mean_square(data.r if data.weights is None else np.sqrt(data.weights) * data.r)
    initial = LITERAL.replace(
        width_penalty=1.0, symmetry_penalty=np.inf, kernel=settings.kernel, rank=settings.rank, solver=settings.solver
    )
    with ONE_THREAD:
        setup = replace(data, r=data.r / rms).prepare(initial)
        problem = setup.problem()
        result = solve(problem, tol=settings.tol, solver=settings.solver)
        bands = setup.solution(problem.dual_point(result.variables), result)
    if bands.status != Status.CONVERGED:
        warn(
            f"the initial model, which sets the units of the penalties, has a certified gap of {bands.gap:.2g}, above "
            f"tol={settings.tol:.2g}",
            NotCertifiedWarning,
        )
    A = bands.lower.operator
    width = float(np.average(bands.values_lower, weights=data.weights))
    return PenaltyScale(rms, width, float(np.trace(A)), float(np.square(A).sum()), len(data.r))
