"""The search for lengthscales and symmetry penalty: tests first, a grid with warm starts, a local refinement."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.optimize import Bounds, minimize
from sklearn.utils import check_random_state

from sosbands._arguments import check_choice
from sosbands._progress import say
from sosbands._threads import ONE_THREAD
from sosbands._types import AnyArray, Array
from sosbands.bands import PenaltyScale
from sosbands.conformal import SCORES
from sosbands.tuning import candidates
from sosbands.tuning.candidates import candidate_lengthscales, candidate_penalties, is_auto, is_symmetric
from sosbands.tuning.criterion import Evaluation, TuningData, fold_bands, penalty_units, pool
from sosbands.tuning.decision import (
    Decision,
    Question,
    best_without_tests,
    constant_bands,
    decide,
    early_independence,
    early_symmetry,
)
from sosbands.tuning.report import TuningReport
from sosbands.tuning.rules import Rules
from sosbands.tuning.split import MIN_ROWS, held_out_folds, searched_data, searched_rows


@ONE_THREAD
def tune(
    points: Any,
    residuals: Any,
    *,
    kernel: Any = "matern52",
    lengthscale: Any = "auto",
    symmetry_penalty: Any = "auto",
    symmetry_kind: str = "training",
    normalize: bool | PenaltyScale = True,
    conformal_score: str = "added",
    rules: Rules | None = None,
    cv: int = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
    **penalties: float,
) -> TuningReport:
    """Choose lengthscale and symmetry penalty from the data.

    Tests that need no search come first, and leave less to search: symmetric bands only if residuals show no skew, and
    nothing if besides their sizes do not depend on the features.

    Parameters
    ----------
    points : array-like of shape (n, d)
        What the kernel sees; the kernel matrix (n, n) if it is precomputed.
    residuals : array-like of shape (n,)
        Of the point model on the learning rows. Of more than 1000 rows a random sample is tested and
        searched on.
    kernel : str or kernel object
        A kernel object, a function and "precomputed" have no lengthscale to search for.
    lengthscale, symmetry_penalty
        "auto", or fixed while the other is searched for: as in `learn_bands`.
    symmetry_kind : {"training", "operator"}
        The operator kind has one lengthscale for both sides in every mode.
    normalize : bool or PenaltyScale
        As in `learn_bands`.
    conformal_score : {"added", "scaled"}
        What calibration will make of the bands, which the interval score makes of them too.
    rules : Rules, optional
        Criterion, tests, level, and how far the search goes.
    cv : int
        Folds, the same for every candidate.
    n_jobs : int, optional
        Processes over folds and lengthscales, through joblib.
    random_state : int or RandomState, optional
        Of the folds and of the sample.
    verbose : int
        1 prints a line per stage.
    **penalties
        width_penalty, trace_penalty, frobenius_penalty.

    Returns
    -------
    TuningReport
        An interruption (Ctrl-C) ends the search: the decision then rests on what it had seen, unless it had seen
        nothing yet.
    """
    clock = perf_counter()
    check_choice("conformal_score", conformal_score, tuple(SCORES))
    rules = rules or Rules()
    rng = check_random_state(random_state)
    points, r = _read_data(points, residuals)
    units = penalty_units(points, r, kernel, normalize) if r.any() else False
    options = {"kernel": kernel, "symmetry_kind": symmetry_kind, "normalize": units, **penalties}
    rows = searched_rows(len(r), rng)
    data = searched_data(points, r, rows, held_out_folds(len(rows), cv, rng), options, SCORES[conformal_score])
    named = isinstance(kernel, str) and kernel != "precomputed"
    searched = is_auto("lengthscale", lengthscale, also="median") and named
    grid = candidate_penalties(symmetry_penalty, lengthscale)
    lengthscales = candidate_lengthscales(data.points, kernel, lengthscale, data.folds[0])
    question = Question(data, rules, searched, grid, None if searched else lengthscales[0])
    search = _Search(data, rules.criterion, n_jobs, verbose, rules.seed)
    if not data.r.any() or len(rows) < MIN_ROWS:
        decision, interrupted = constant_bands(question, None, None), False
    else:
        decision, interrupted = _run(question, search, lengthscales)
    search.say(decision.sentence)
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
        rows=rows,
        folds=data.folds,
        seconds=perf_counter() - clock,
    )


def _run(question: Question, search: _Search, lengthscales: Sequence[Any]) -> tuple[Decision, bool]:
    """Early tests, search, late tests; and whether it was interrupted."""
    complete = question.rules.complete
    independence = symmetry = None
    try:
        independence, symmetry = early_independence(question), early_symmetry(question)
        constant = question.is_constant(independence, symmetry)
        if constant and not complete:
            return constant_bands(question, independence, symmetry), False
        if independence is not None and not question.significant(independence):
            lengthscales = [*lengthscales, np.inf]  # skewed noise may still be the same everywhere
        symmetric_only = symmetry is not None and not question.significant(symmetry)
        open_penalties = question.penalties
        if symmetric_only and not complete:
            open_penalties = tuple(penalty for penalty in question.penalties if is_symmetric(penalty))
        if question.is_lean:
            search.lean_grid(lengthscales, open_penalties)
        else:
            search.grid(lengthscales, open_penalties)
        if question.lengthscale and not constant:
            search.refine(question.rules, symmetric_only=symmetric_only, also_limit=symmetry is None)
        return decide(question, search.evaluations, independence, symmetry, search.again), False
    except KeyboardInterrupt:
        if not search.evaluations:
            raise
        print("tuning interrupted: going on with the best found so far", file=sys.stderr, flush=True)
        return best_without_tests(question, search.evaluations, independence, symmetry), True


def _read_data(points: Any, residuals: Any) -> tuple[AnyArray, Array]:
    """Points as an array (a kernel function may compare anything) and finite residuals, one for each."""
    places, r = np.asarray(points), np.asarray(residuals, dtype=float)
    if places.ndim == 0 or r.shape != (len(places),) or len(r) < 1:
        raise ValueError(f"points and residuals have shapes {places.shape} and {r.shape}: expected n >= 1 rows of each")
    if not np.isfinite(r).all():
        raise ValueError("residuals hold NaN or infinite entries: expected finite numbers")
    return places, r


class _Search:
    """Evaluates candidates and remembers them."""

    def __init__(
        self, data: TuningData, criterion: str, n_jobs: int | None = None, verbose: int = 0, seed: int = 0
    ) -> None:
        self.data, self.criterion, self.verbose, self.seed = data, criterion, verbose, seed
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

    def say(self, message: str) -> None:
        """A line of progress."""
        say("tuning", message, self.verbose)

    def best(self, evaluations: Sequence[Evaluation]) -> Evaluation:
        """The first of those with the largest criterion."""
        return max(evaluations, key=lambda each: each.value(self.criterion))

    def evaluate(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> list[Evaluation]:
        """All pairs of a lengthscale and a penalty; whatever happens, what is finished is remembered."""
        jobs = effective_n_jobs(self.n_jobs)
        # two tasks a fold, whatever the number of workers: chains of warm starts, and so the numbers, are the same
        half = -(-len(lengthscales) // 2)
        chunks = [lengthscales[k : k + half] for k in range(0, len(lengthscales), half)]
        tasks = [(chunk, fold) for chunk in range(len(chunks)) for fold in range(len(self.data.folds))]
        parts: list[dict[int, Any]] = [{} for _ in chunks]
        found: list[Evaluation] = []
        try:
            for start in range(0, len(tasks), jobs):
                wave = tasks[start : start + jobs]
                made = self.parallel(delayed(fold_bands)(self.data, f, chunks[c], penalties) for c, f in wave)
                for (chunk, fold), part in zip(wave, made, strict=True):
                    parts[chunk][fold] = part
        finally:
            found = self._finished(chunks, penalties, parts)
            self.evaluations += found
        return found

    def _finished(
        self, chunks: Sequence[Sequence[Any]], penalties: Sequence[Any], parts: Sequence[dict[int, Any]]
    ) -> list[Evaluation]:
        """Candidates that all folds have seen; of an early interruption, what some folds have."""
        whole = [(c, p) for c, p in zip(chunks, parts, strict=True) if len(p) == len(self.data.folds)]
        if not whole and not self.evaluations:
            whole = [(c, p) for c, p in zip(chunks[:1], parts[:1], strict=True) if p]
        return [each for chunk, part in whole for each in pool(self.data, chunk, penalties, part)]

    def grid(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> None:
        """Every lengthscale with every penalty."""
        count = f"{len(lengthscales)} lengthscales x {len(penalties)} symmetry penalties"
        self.say(f"{count} on {len(self.data.folds)} folds of {len(self.data.r)} rows")
        best = self.best(self.evaluate(lengthscales, penalties))
        self.say(f"best of the grid: {self._words(best)}")

    def lean_grid(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> None:
        """The smallest and the largest penalty with every lengthscale, those between with the best two of these.

        Penalties between the ends couple the sides, which makes them the costly ones, and their best lengthscales lie
        near those of the ends.
        """
        ends, between = penalties[:: max(1, len(penalties) - 1)], penalties[1:-1]
        self.grid(lengthscales, ends)
        if between:
            at_ends = [[each for each in self.evaluations if each.symmetry_penalty == end] for end in ends]
            best = [self.best(here).lengthscale for here in at_ends]
            self.grid([ell for k, ell in enumerate(best) if k == 0 or ell is not best[0]], between)

    def refine(self, rules: Rules, *, symmetric_only: bool, also_limit: bool) -> None:
        """Local search at the best penalty, and at the symmetric limit where a test may yet choose it instead."""
        mode, restarts = rules.mode, rules.n_climbs
        if not restarts:
            return
        limit = [each for each in self.evaluations if is_symmetric(each.symmetry_penalty)]
        best = self.best(limit if symmetric_only else self.evaluations)
        self._climbs(best.symmetry_penalty, mode, restarts)
        if also_limit and limit and not is_symmetric(best.symmetry_penalty):
            self._climbs(limit[0].symmetry_penalty, mode, restarts)

    def again(self, chosen: Sequence[Evaluation], seed: int) -> list[Evaluation]:
        """The same candidates on another split."""
        rng = np.random.RandomState(np.random.default_rng([self.seed, 2, seed]).integers(2**31))
        other = replace(self.data, folds=held_out_folds(len(self.data.r), len(self.data.folds), rng))
        search = _Search(other, self.criterion, self.n_jobs, 0, self.seed)
        return [search.evaluate([each.lengthscale], [each.symmetry_penalty])[0] for each in chosen]

    def _climbs(self, penalty: Any, mode: str, restarts: int) -> None:
        """Local searches at one penalty from its best lengthscales on the grid."""
        here = [each for each in self.evaluations if each.symmetry_penalty == penalty]
        here = [each for each in here if isinstance(each.lengthscale, float) and np.isfinite(each.lengthscale)]
        here.sort(key=lambda each: -each.value(self.criterion))
        for start in here[:restarts]:
            self._climb(start, mode)
        again = [each for each in self.evaluations if each.symmetry_penalty == penalty]
        self.say(f"after the local search: {self._words(self.best(again))}")

    def _words(self, each: Evaluation) -> str:
        value = f"{self.criterion} {each.value(self.criterion):.4g}"
        return f"{value} at lengthscale {_words(each.lengthscale)}, symmetry penalty {each.symmetry_penalty}"

    def _climb(self, best: Evaluation, mode: str) -> None:
        """Derivative-free ascent in log lengthscales from a candidate with one lengthscale, at its penalty."""
        shared = is_symmetric(best.symmetry_penalty) or self.data.options["symmetry_kind"] == "operator"
        sides = 1 if mode == "common" or shared else 2
        per_side = self.data.points.shape[1] if mode == "per-side-and-feature" else 1
        unpack = _unpacker(sides, per_side)
        start = np.full(sides * per_side, np.log(best.lengthscale))
        reach = np.log(candidates.FACTORS[1] / candidates.FACTORS[0])

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
            # its first model takes 2 size + 1 evaluations, the first of which is known
            options={"maxfev": 3 * start.size + 1, "initial_tr_radius": 0.5 * reach, "scale": False},
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
