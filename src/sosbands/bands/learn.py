"""learn_bands: from points and residuals to two certified non-negative functions."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sosbands._threads import ONE_THREAD
from sosbands.bands.initial import penalty_scale
from sosbands.bands.penalties import BandSettings, PenaltyScale, SymmetryPenalty, read_settings
from sosbands.bands.prepare import LearningData, PreparedBands, TwoSidedProblem, read_data
from sosbands.bands.solution import BandSolution, zero_solution
from sosbands.exceptions import NotCertifiedWarning, ZeroResidualsWarning
from sosbands.problems import SideCost
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
        "auto" is "newton" for few features and "subspace" for many.
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
        constant=constant,
        solver=solver,
        tol=tol,
        normalize=normalize,
        sample_weight=sample_weight,
    )
    if X_kernel is not None and X is not None and np.shape(X_kernel)[:1] not in ((), np.shape(X)[:1]):
        raise ValueError(f"X_kernel has {len(X_kernel)} rows: expected {len(X)}, as X")
    points = X if X_kernel is None else X_kernel
    wanted = Wanted(lengthscale, settings.cost, settings.symmetry(symmetry_penalty))
    (solution,) = _sequence(points, residuals, [wanted], settings, depth=4)
    return solution


def learn_band_path(
    X: Any,
    residuals: Any,
    symmetry_penalties: Iterable[Any] | None = None,
    *,
    width_penalties: Iterable[float] | None = None,
    learning_coverages: Iterable[float] | None = None,
    lengthscale: Any = "median",
    symmetry_penalty: Any = 1.0,
    **settings: Any,
) -> Iterator[BandSolution]:
    """Learn the bands for many values of one setting, each solve started from the last.

    The kernel is factorised once. Values may come in any order; an increasing one is best. Solutions are yielded as
    they are found.

    Parameters
    ----------
    X, residuals
        As in :func:`learn_bands`.
    symmetry_penalties, width_penalties, learning_coverages : iterable
        One of them: one solution for each value. Symmetry penalties may include 0 and inf.
    lengthscale, symmetry_penalty
        As in :func:`learn_bands`; the second for a path of something else.
    **settings
        kernel, width_penalty, trace_penalty, frobenius_penalty, learning_coverage, symmetry_kind, rank, constant,
        solver, tol, normalize and sample_weight of :func:`learn_bands`, and max_iterations, after which a solve ends as
        it is.
    """
    paths = {
        "symmetry_penalty": symmetry_penalties,
        "width_penalty": width_penalties,
        "learning_coverage": learning_coverages,
    }
    given = {name: list(values) for name, values in paths.items() if values is not None}
    if len(given) != 1:
        raise ValueError(
            f"{len(given)} of symmetry_penalties, width_penalties and learning_coverages were given: expected one"
        )
    check_names("learn_band_path", settings)
    ((name, values),) = given.items()
    if name == "symmetry_penalty":
        read = read_settings(**settings)
        wanted = [Wanted(lengthscale, read.cost, read.symmetry(value)) for value in values]
    else:
        each = [read_settings(**{**settings, name: value}) for value in values]
        wanted = [Wanted(lengthscale, one.cost, one.symmetry(symmetry_penalty)) for one in each]
        read = each[0] if each else read_settings(**settings)
    return _sequence(X, residuals, wanted, read)


def learn_band_sequence(
    X: Any, residuals: Any, wanted: Sequence[Mapping[str, Any]], **settings: Any
) -> Iterator[BandSolution]:
    """Learn the bands for several settings, each solve started from the last.

    Parameters
    ----------
    X, residuals
        As in :func:`learn_bands`.
    wanted : sequence of mappings
        For each solution what differs: `lengthscale` and `symmetry_penalty`, by default those of
        :func:`learn_bands`, and of the settings `width_penalty` and `learning_coverage`. Kernels are factorised
        once where neighbours have the same lengthscale.
    **settings
        As in :func:`learn_band_path`.
    """
    check_names("learn_band_sequence", settings)
    each = []
    for one in wanted:
        rest = {name: value for name, value in one.items() if name not in ("lengthscale", "symmetry_penalty")}
        read = read_settings(**{**settings, **rest})
        symmetry = read.symmetry(one.get("symmetry_penalty", 1.0))
        each.append(Wanted(one.get("lengthscale", "median"), read.cost, symmetry))
    return _sequence(X, residuals, each, read_settings(**settings))


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
    check_names("learn_band_grid", settings)
    read = read_settings(**settings)
    penalties = [read.symmetry(penalty) for penalty in symmetry_penalties]
    columns = range(len(penalties))
    order = [(i, j) for i in range(len(lengthscales)) for j in (columns if i % 2 == 0 else reversed(columns))]
    wanted = [Wanted(lengthscales[i], read.cost, penalties[j]) for i, j in order]
    solutions = _sequence(X, residuals, wanted, read, depth=4)
    return ((i, j, solution) for (i, j), solution in zip(order, solutions, strict=True))


def check_names(function: str, settings: dict[str, Any]) -> None:
    """Complain about a keyword that is no setting."""
    unknown = sorted(set(settings) - set(inspect.signature(read_settings).parameters))
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {unknown[0]!r}")


class Wanted(NamedTuple):
    """What distinguishes the problems of a sequence."""

    lengthscale: Any
    cost: SideCost
    symmetry: SymmetryPenalty


def _sequence(
    X: Any, residuals: Any, wanted: list[Wanted], settings: BandSettings, depth: int = 3
) -> Iterator[BandSolution]:
    """Whatever is wrong is said at once, before the first solve; solutions come as they are asked for.

    `depth` is how far below the user's line a warning of a solve is given.
    """
    if not wanted:
        return iter(())
    data = read_data(X, residuals, settings.kernel, settings.rank, settings.constant, settings.sample_weight)
    with ONE_THREAD:
        setups = _prepared(data, wanted, settings)
    if not data.r.any():
        warnings.warn("all residuals are zero: the bands have no width", ZeroResidualsWarning, stacklevel=3)
        return (zero_solution(setup.lower, setup.upper) for setup in setups)
    return _solved(setups, wanted, settings, depth)


def _prepared(data: LearningData, wanted: list[Wanted], settings: BandSettings) -> list[PreparedBands]:
    """What each problem needs; each is stated once, so that what is wrong with it is said."""
    scale = common_scale(data, settings)
    setups: list[PreparedBands] = []
    for before, each in zip([None, *wanted], wanted, strict=False):
        if before is not None and _same(each.lengthscale, before.lengthscale):
            setups.append(setups[-1].with_cost(each.cost))
        else:
            setups.append(data.prepare(each.lengthscale, each.cost, scale))
    if data.r.any():
        for setup, each in zip(setups, wanted, strict=True):
            setup.problem(each.symmetry)
    return setups


def common_scale(data: LearningData, settings: BandSettings) -> PenaltyScale | None:
    """Units of the penalties, the same for all problems of a sequence; None if they are taken literally."""
    if isinstance(settings.normalize, PenaltyScale):
        return settings.normalize
    if not settings.normalize or not data.r.any():
        return None
    if isinstance(settings.normalize, str):
        return PenaltyScale.of_residuals(data.r, data.weights)
    numbers = (settings.kernel, settings.rank, settings.tol, settings.solver, data.weights)
    return penalty_scale(data.points, data.r, *numbers)


def _same(one: Any, other: Any) -> bool:
    """Whether two lengthscales are one, without a look into arrays."""
    return one is other or (isinstance(one, (str, float)) and isinstance(other, (str, float)) and one == other)


def _solved(
    setups: list[PreparedBands], wanted: list[Wanted], settings: BandSettings, depth: int
) -> Iterator[BandSolution]:
    """Solve in this order; one problem, with the decompositions it remembers, lives at a time."""
    current: list[TwoSidedProblem] = []

    def problems() -> Iterator[TwoSidedProblem]:
        for setup, each in zip(setups, wanted, strict=True):
            current[:] = [setup.problem(each.symmetry)]
            yield current[0]

    results = solve_path(problems(), tol=settings.tol, solver=settings.solver, max_iterations=settings.max_iterations)
    for setup in setups:
        with ONE_THREAD:  # not while the caller works between two solutions
            result = next(results)
            solution = setup.solution(current[0], result)
        yield certified(solution, settings.tol, depth)


def certified(solution: BandSolution, tol: float, depth: int) -> BandSolution:
    """Pass a solution on, with a warning if it misses the tolerance."""
    if solution.status != Status.CONVERGED:
        warnings.warn(
            f"the certified relative gap is {solution.gap:.2g}, above tol={tol:.2g} ({solution.status.value} "
            f"after {solution.iterations} iterations)",
            NotCertifiedWarning,
            stacklevel=depth,
        )
    return solution
