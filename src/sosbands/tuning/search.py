"""The search for lengthscales and symmetry penalty: a grid with warm-started paths, then a local refinement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import Bounds, minimize
from sklearn.model_selection import KFold

from sosbands._types import Array
from sosbands.bands import PenaltyScale
from sosbands.kernels import median_lengthscale
from sosbands.tuning.criterion import Evaluation, TuningData, fold_bands, penalty_units, pool
from sosbands.tuning.decision import Rules, decide
from sosbands.tuning.report import TuningReport

PENALTIES = (0.0, 1.0, 10.0, 100.0, 1000.0, np.inf)  # of normalised problems
FACTORS = tuple(np.geomspace(0.1, 3.2, 6))  # of the median lengthscale
MODES = ("common", "per-side", "per-side-and-feature")
REFINEMENTS = {"common": 6, "per-side": 14, "per-side-and-feature": 30}  # evaluations of the local search


def tune(
    points: Array,
    residuals: Array,
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
    points : ndarray of shape (n, d)
        What the kernel sees.
    residuals : ndarray of shape (n,)
        Of the point model on the learning rows.
    kernel : str or kernel object
        A kernel object has no lengthscale to search for.
    lengthscale, symmetry_penalty
        "auto", or fixed while the other is searched for.
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
    """
    clock = perf_counter()
    rules = rules or Rules()
    folds = KFold(min(cv, len(residuals)), shuffle=True, random_state=random_state).split(points)
    options = {
        "kernel": kernel,
        "symmetry_kind": symmetry_kind,
        "normalize": penalty_units(points, residuals, kernel, normalize, scale),
        **penalties,
    }
    data = TuningData(points, residuals, tuple(held for _, held in folds), options)
    search = _Search(data, rules.criterion, n_jobs, verbose)
    searched = isinstance(lengthscale, str) and lengthscale == "auto" and isinstance(kernel, str)
    grid = PENALTIES if isinstance(symmetry_penalty, str) else (symmetry_penalty,)
    interrupted = False
    try:
        search.grid(_candidates(points, lengthscale, searched), grid)
        if searched:
            search.refine(points, mode)
    except KeyboardInterrupt:
        if not search.evaluations:
            raise
        interrupted = True
        print("tuning interrupted: going on with the best found so far", flush=True)
    decision = decide(data, search.evaluations, rules, test_widths=searched)
    return TuningReport(
        evaluations=tuple(search.row(each) for each in search.evaluations),
        criterion=rules.criterion,
        independence=decision.independence,
        symmetry=decision.symmetry,
        replicates=decision.replicates,
        lengthscale=decision.lengthscale,
        symmetry_penalty=decision.symmetry_penalty,
        homoscedastic=decision.homoscedastic,
        sentence=decision.sentence,
        interrupted=interrupted,
        seconds=perf_counter() - clock,
    )


def _candidates(points: Array, lengthscale: Any, searched: bool) -> list[Any]:
    if searched:
        median = median_lengthscale(points)
        return [float(median * factor) for factor in FACTORS]
    return ["median" if isinstance(lengthscale, str) else lengthscale]


class _Search:
    """Evaluates candidates and remembers them."""

    def __init__(self, data: TuningData, criterion: str, n_jobs: int | None, verbose: int) -> None:
        self.data, self.criterion, self.verbose = data, criterion, verbose
        self.parallel = Parallel(n_jobs=n_jobs)
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
        parts = self.parallel(tasks)
        found: list[Evaluation] = []
        for k, ell in enumerate(lengthscales):
            found += pool(self.data, ell, penalties, parts[k * len(folds) : (k + 1) * len(folds)])
        self.evaluations += found
        return found

    def grid(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> None:
        """Every lengthscale with a warm-started path of penalties."""
        for ell in lengthscales:
            found = self.evaluate([ell], penalties)
            if self.verbose:
                best = max(found, key=lambda each: each.value(self.criterion))
                print(
                    f"lengthscale {ell if isinstance(ell, str) else np.round(ell, 4)}: best {self.criterion} "
                    f"{best.value(self.criterion):.4g} at symmetry penalty {best.symmetry_penalty}",
                    flush=True,
                )

    def refine(self, points: Array, mode: str) -> None:
        """Derivative-free ascent in log lengthscales from the best candidate, at its penalty."""
        best = max(self.evaluations, key=lambda each: each.value(self.criterion))
        sides = 1 if mode == "common" or np.isinf(best.symmetry_penalty) else 2
        per_side = points.shape[1] if mode == "per-side-and-feature" else 1
        unpack = _unpacker(sides, per_side)
        start = np.full(sides * per_side, np.log(best.lengthscale))
        reach = np.log(FACTORS[1] / FACTORS[0])

        def negative(logs: Array) -> float:
            (found,) = self.evaluate([unpack(np.exp(logs))], [best.symmetry_penalty])
            return -found.value(self.criterion)

        minimize(
            negative,
            start,
            method="COBYQA",
            bounds=Bounds(start - reach, start + reach),
            options={"maxfev": REFINEMENTS[mode], "initial_tr_radius": 0.5 * reach, "scale": False},
        )


def _unpacker(sides: int, per_side: int) -> Callable[[Array], Any]:
    """From the numbers of the local search to a lengthscale of `learn_bands`."""

    def one(values: Array) -> Any:
        return float(values[0]) if per_side == 1 else values.copy()

    if sides == 1:
        return one
    return lambda values: {"lower": one(values[:per_side]), "upper": one(values[per_side:])}
