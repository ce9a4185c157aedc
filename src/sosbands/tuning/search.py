"""The search for lengthscales and symmetry penalty: a grid with warm-started paths, then a local refinement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.optimize import Bounds, minimize
from sklearn.model_selection import KFold

from sosbands._types import AnyArray, Array
from sosbands.bands import PenaltyScale
from sosbands.kernels import median_lengthscale
from sosbands.tuning.criterion import Evaluation, TuningData, fold_bands, penalty_units, pool
from sosbands.tuning.decision import Decision, Rules, decide, is_symmetric
from sosbands.tuning.report import TuningReport

PENALTIES = (0.0, 1.0, 10.0, 100.0, 1000.0, np.inf)  # of normalised problems
FACTORS = tuple(np.geomspace(0.1, 3.2, 6))  # of the median lengthscale
MODES = ("common", "per-side", "per-side-and-feature")


def tune(
    points: Any,
    residuals: Any,
    *,
    kernel: Any = "matern52",
    lengthscale: Any = "auto",
    symmetry_penalty: Any = "auto",
    symmetry_kind: str = "training",
    mode: str = "common",
    normalize: bool = True,
    scale: PenaltyScale | None = None,
    rules: Rules | None = None,
    cv: int = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
    **penalties: float,
) -> TuningReport:
    """Choose lengthscale and symmetry penalty from the data.

    Parameters
    ----------
    points : array-like of shape (n, d)
        What the kernel sees; the kernel matrix (n, n) if it is precomputed.
    residuals : array-like of shape (n,)
        Of the point model on the learning rows.
    kernel : str or kernel object
        A kernel object, a function and "precomputed" have no lengthscale to search for.
    lengthscale, symmetry_penalty
        "auto", or fixed while the other is searched for: as in `learn_bands`.
    symmetry_kind : {"training", "operator"}
        The operator kind has one lengthscale for both sides in every mode.
    mode : {"common", "per-side", "per-side-and-feature"}
        What the local search moves: one lengthscale, one for each side, or one for each side and feature.
    scale : PenaltyScale, optional
        Units of the penalties if known.
    rules : Rules, optional
        Criterion, tests and level.
    cv : int
        Folds, the same for every candidate.
    n_jobs : int, optional
        Processes over folds and lengthscales, through joblib.
    random_state : int or RandomState, optional
        Of the folds.
    verbose : int
        1 prints a line per lengthscale.
    **penalties
        width_penalty, trace_penalty, frobenius_penalty.

    Returns
    -------
    TuningReport
        An interruption (Ctrl-C) during the search ends it: the decision then rests on what it had seen, unless it had
        seen nothing yet.
    """
    clock = perf_counter()
    rules = rules or Rules()
    points, r = _read_data(points, residuals)
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: expected one of {list(MODES)}")
    named = isinstance(kernel, str) and kernel != "precomputed"
    searched = named and _is_auto("lengthscale", lengthscale, also="median")
    lengthscales = _lengthscales(points, lengthscale, named, searched)
    grid = _penalties(symmetry_penalty, lengthscales[0])
    if not r.any():
        return _no_residuals(rules, grid, perf_counter() - clock)
    folds = KFold(min(cv, len(r)), shuffle=True, random_state=random_state).split(r)
    options = {
        "kernel": kernel,
        "symmetry_kind": symmetry_kind,
        "normalize": penalty_units(points, r, kernel, normalize, scale),
        **penalties,
    }
    data = TuningData(points, r, tuple(held for _, held in folds), options)
    search = _Search(data, rules.criterion, n_jobs, verbose)
    interrupted = False
    try:
        search.grid(lengthscales, grid)
        if searched:
            search.refine(mode)
    except KeyboardInterrupt:
        if not search.evaluations:
            raise
        interrupted = True
        print("tuning interrupted: going on with the best found so far", flush=True)
    decision = decide(data, search.evaluations, rules, test_widths=searched)
    rows = tuple(search.row(each) for each in search.evaluations)
    return _report(decision, rules, rows, interrupted, perf_counter() - clock)


def _report(
    decision: Decision, rules: Rules, rows: tuple[dict[str, Any], ...], interrupted: bool, seconds: float
) -> TuningReport:
    return TuningReport(
        evaluations=rows,
        criterion=rules.criterion,
        independence=decision.independence,
        symmetry=decision.symmetry,
        replicates=decision.replicates,
        lengthscale=decision.lengthscale,
        symmetry_penalty=decision.symmetry_penalty,
        homoscedastic=decision.homoscedastic,
        sentence=decision.sentence,
        interrupted=interrupted,
        seconds=seconds,
    )


def _no_residuals(rules: Rules, grid: Sequence[Any], seconds: float) -> TuningReport:
    penalty = grid[0] if len(grid) == 1 else np.inf
    decision = Decision(np.inf, penalty, True, None, None, None, "All residuals are zero: bands of no width.")
    return _report(decision, rules, (), False, seconds)


def _read_data(points: Any, residuals: Any) -> tuple[AnyArray, Array]:
    """Points as an array (a kernel function may compare anything) and finite residuals, one for each."""
    places, r = np.asarray(points), np.asarray(residuals, dtype=float)
    if places.ndim == 0 or r.shape != (len(places),) or len(r) < 2:
        raise ValueError(f"points and residuals have shapes {places.shape} and {r.shape}: expected n >= 2 rows of each")
    if not np.isfinite(r).all():
        raise ValueError("residuals hold NaN or infinite entries: expected finite numbers")
    return places, r


def _is_auto(name: str, value: Any, also: str = "auto") -> bool:
    if isinstance(value, str) and value not in ("auto", also):
        raise ValueError(f"{name}={value!r}: expected 'auto' or what learn_bands takes")
    return isinstance(value, str) and value == "auto"


def _lengthscales(points: AnyArray, lengthscale: Any, named: bool, searched: bool) -> list[Any]:
    """The grid, or the one given. The median is that of all points, not of each fold's."""
    if isinstance(lengthscale, str):
        if not named:
            return ["median"]  # stands for: as the kernel has it
        median = median_lengthscale(np.asarray(points, dtype=float))
        return [float(median * factor) for factor in FACTORS] if searched else [median]
    return [lengthscale]


def _penalties(penalty: Any, lengthscale: Any) -> tuple[Any, ...]:
    """The grid, or the one given. Sides with lengthscales of their own have no symmetric limit."""
    if not _is_auto("symmetry_penalty", penalty):
        return (tuple(penalty) if isinstance(penalty, list) else penalty,)
    if isinstance(lengthscale, dict) and len({str(side) for side in lengthscale.values()}) > 1:
        return tuple(each for each in PENALTIES if not is_symmetric(each))
    return PENALTIES


class _Search:
    """Evaluates candidates and remembers them."""

    def __init__(self, data: TuningData, criterion: str, n_jobs: int | None, verbose: int) -> None:
        self.data, self.criterion, self.verbose = data, criterion, verbose
        self.n_jobs, self.parallel = n_jobs, Parallel(n_jobs=n_jobs)
        self.evaluations: list[Evaluation] = []

    def row(self, each: Evaluation) -> dict[str, Any]:
        """A line of the report."""
        return {
            "lengthscale": each.lengthscale,
            "symmetry_penalty": each.symmetry_penalty,
            "criterion": each.value(self.criterion),
            "uncertified": each.uncertified,
        }

    def evaluate(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> list[Evaluation]:
        """All penalties at each lengthscale, every fold a task of its own."""
        folds = range(len(self.data.folds))
        tasks = (delayed(fold_bands)(self.data, f, ell, penalties) for ell in lengthscales for f in folds)
        parts = list(self.parallel(tasks))
        found: list[Evaluation] = []
        for k, ell in enumerate(lengthscales):
            here = pool(self.data, ell, penalties, parts[k * len(folds) : (k + 1) * len(folds)])
            self._say(here)
            found += here
        self.evaluations += found
        return found

    def best(self, evaluations: Sequence[Evaluation]) -> Evaluation:
        """The first of those with the largest criterion."""
        return max(evaluations, key=lambda each: each.value(self.criterion))

    def _say(self, found: Sequence[Evaluation]) -> None:
        if self.verbose:
            best = self.best(found)
            print(
                f"lengthscale {_words(best.lengthscale)}: best {self.criterion} {best.value(self.criterion):.4g} "
                f"at symmetry penalty {best.symmetry_penalty}",
                flush=True,
            )

    def grid(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> None:
        """Every lengthscale with a warm-started path of penalties, a few at a time so that all workers have some."""
        jobs = effective_n_jobs(self.n_jobs)
        step = 1 if jobs == 1 else max(2, -(-2 * jobs // len(self.data.folds)))
        for start in range(0, len(lengthscales), step):
            self.evaluate(lengthscales[start : start + step], penalties)

    def refine(self, mode: str) -> None:
        """Local search at the best penalty, and at the symmetric limit, which may be chosen in its place."""
        best = self.best(self.evaluations)
        limit = [each for each in self.evaluations if is_symmetric(each.symmetry_penalty)]
        self._climb(best, mode)
        if limit and not is_symmetric(best.symmetry_penalty):
            self._climb(self.best(limit), mode)

    def _climb(self, best: Evaluation, mode: str) -> None:
        """Derivative-free ascent in log lengthscales from a candidate with one lengthscale, at its penalty."""
        shared = is_symmetric(best.symmetry_penalty) or self.data.options["symmetry_kind"] == "operator"
        sides = 1 if mode == "common" or shared else 2
        per_side = self.data.points.shape[1] if mode == "per-side-and-feature" else 1
        unpack = _unpacker(sides, per_side)
        start = np.full(sides * per_side, np.log(best.lengthscale))
        reach = np.log(FACTORS[1] / FACTORS[0])

        def negative(logs: Array) -> float:
            if np.array_equal(logs, start):
                return -best.value(self.criterion)  # known
            (found,) = self.evaluate([unpack(np.exp(logs))], [best.symmetry_penalty])
            return -found.value(self.criterion)

        minimize(
            negative,
            start,
            method="COBYQA",
            bounds=Bounds(start - reach, start + reach),
            # its first model takes 2 size + 1 evaluations
            options={"maxfev": 4 * start.size + 2, "initial_tr_radius": 0.5 * reach, "scale": False},
        )


def _words(lengthscale: Any) -> str:
    if isinstance(lengthscale, str):
        return "of the kernel"
    if isinstance(lengthscale, dict):
        return ", ".join(f"{_words(value)} {side}" for side, value in lengthscale.items())
    return np.array2string(np.asarray(lengthscale, dtype=float), precision=4)


def _unpacker(sides: int, per_side: int) -> Callable[[Array], Any]:
    """From the numbers of the local search to a lengthscale of `learn_bands`."""

    def one(values: Array) -> Any:
        return float(values[0]) if per_side == 1 else values.copy()

    if sides == 1:
        return one
    return lambda values: {"lower": one(values[:per_side]), "upper": one(values[per_side:])}
