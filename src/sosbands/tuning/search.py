"""The search for what the data choose: bands of candidates on folds, and what they are worth at rows held out.

A policy (`Automatic`, or `Rules` by way of `RuleSearch`) says which candidates are tried, when to stop and what is
decided; `choose` runs it. A candidate is learnt on the rows outside a fold, coarsely, because its value is a noisy
statistic of the bands, and valued by what it says of all rows that the folds have held out.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.model_selection import KFold

from sosbands._arguments import check_cv, is_splitter
from sosbands._progress import say, speaking
from sosbands._threads import ONE_THREAD
from sosbands._types import AnyArray, Array, IntArray
from sosbands.bands import DualPoint, PenaltyScale, learn_band_sequence
from sosbands.bands.functions import evaluate_pair
from sosbands.bands.views import NoiseView, RowFacts
from sosbands.conformal import SCORES, Score, TargetScale, conformal_quantile, interval, symmetric_scores
from sosbands.conformal.band import in_units, sides_of
from sosbands.conformal.scores import ALL_SCORES
from sosbands.exceptions import (
    InfeasibleProblemError,
    LowRankWarning,
    NotCertifiedWarning,
    ScaleError,
    ZeroResidualsWarning,
)
from sosbands.kernels import median_lengthscale
from sosbands.metrics import interval_score
from sosbands.stats import distance_correlation, hsic
from sosbands.tuning.report import TuningReport

MIN_ROWS = 4  # of fewer there are no folds
MOST_BLOCKS = 10  # that a splitter of many folds makes
SCORE_LEVELS = (0.7, 0.8, 0.9)  # one level alone is too noisy to choose by; the numbers are in docs/guide/choice.md
View = tuple[str, str]  # base scale and noise features


@dataclass(frozen=True, eq=False)
class Given:
    """A lengthscale of the user's, in whatever form `learn_bands` takes; equal to itself only."""

    value: Any


class Candidate(NamedTuple):
    """What is chosen, the score aside; `lengthscale` may be infinite, for bands of constant width."""

    base_scale: str
    noise_features: str
    lengthscale: Any
    width_penalty: float
    learning_coverage: float
    symmetry_penalty: Any

    @property
    def view(self) -> View:
        """Base scale and noise features."""
        return self.base_scale, self.noise_features

    @property
    def is_constant(self) -> bool:
        """Bands of constant width, in units of the base scale."""
        return isinstance(self.lengthscale, float) and bool(np.isinf(self.lengthscale))

    @property
    def is_symmetric(self) -> bool:
        """One shared function for both sides."""
        return is_symmetric(self.symmetry_penalty)

    def settings(self) -> dict[str, Any]:
        """All but the view, as `learn_band_sequence` takes it."""
        ell = self.lengthscale.value if isinstance(self.lengthscale, Given) else self.lengthscale
        return {**dict(zip(self._fields[3:], self[3:], strict=True)), "lengthscale": ell}


def is_symmetric(penalty: Any) -> bool:
    """One shared function: the penalty, or a part of the pair, is infinite."""
    return bool(np.isinf(penalty).any())


# Bands at held-out rows, and what the criteria make of them


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a candidate does on held-out rows."""

    below: Array  # f_lo and f_up at each row, learnt from other rows
    above: Array
    residuals: Array  # r, in units of the target, positive above the prediction
    score: Score = SCORES["added"]  # of calibration, fitted to the rows that the functions were learnt from
    unit: Array | float = 1.0  # the base scale in which the functions are told
    weight: Array | None = None  # how much each row counts in the interval score
    center: Array | None = None  # the prediction, where the target is on another scale, on which all this is,
    target: TargetScale | None = None  # while intervals are scored as they are given

    def __len__(self) -> int:
        return len(self.residuals)

    def take(self, rows: AnyArray) -> HeldOut:
        """Some of the rows, possibly again and again."""
        unit = self.unit[rows] if isinstance(self.unit, np.ndarray) else self.unit
        weight, center = (None if each is None else each[rows] for each in (self.weight, self.center))
        parts = (self.below[rows], self.above[rows], self.residuals[rows])
        return HeldOut(*parts, self.score, unit, weight, center, self.target)

    @property
    def widths(self) -> Array:
        """``W = s (f_lo + f_up)``."""
        below, above = sides_of(self.unit)
        return np.asarray(below * self.below + above * self.above)

    @property
    def distances(self) -> Array:
        """``R = |r - s (f_up - f_lo)/2|``, from the middle of the band."""
        below, above = sides_of(self.unit)
        return np.asarray(np.abs(self.residuals - (above * self.above - below * self.below) / 2))


def interval_score_at(held: HeldOut, level: float) -> float:
    """Interval score of the intervals that calibration on the held-out rows themselves makes of their bands."""
    band = held.score.band(np.zeros(len(held)), held.below, held.above, unit=held.unit)
    # seen from the middle of each band, which moves no score, but loses the least digits where it is far from zero
    r, half = held.residuals - (band.upper + band.lower) / 2, (band.upper - band.lower) / 2
    band = replace(band, lower=-half, upper=half)
    S = symmetric_scores(band, r)
    q = conformal_quantile(S, level)
    if not np.isfinite(q):
        q = float(S.max())  # a handful of points: the widest finite band stands in
    if held.center is not None and held.target is not None:
        away = held.center + held.residuals - r
        band = replace(band, lower=away - half, upper=away + half, target=held.target)
        r = held.target.backward(held.center + held.residuals)
    ends, _ = interval(band, q, q)
    return interval_score(r, ends[:, 0], ends[:, 1], level, sample_weight=held.weight)


def minus_log_interval_score(held: HeldOut, levels: Sequence[float] = SCORE_LEVELS) -> float:
    """Minus the mean logarithm of the interval score over a few levels, so that each has the same say.

    The score is smallest in the mean for the true conditional quantiles; HSIC also rewards wide bands.
    """
    scores = [interval_score_at(held, level) for level in levels]
    return -float(np.mean(np.log(np.maximum(scores, np.finfo(float).tiny))))


CRITERIA: dict[str, Callable[[HeldOut], float]] = {
    "interval-score": minus_log_interval_score,
    "hsic": lambda held: hsic(held.widths, held.distances),
    "dcor": lambda held: distance_correlation(held.widths, held.distances),
}


# Learning the bands of candidates on folds


class Coarse(NamedTuple):
    """How exactly bands are learnt while searching."""

    ranks: tuple[Any, ...]  # tried in turn where features do not reach every row
    tol: float
    options: dict[str, Any] = {}  # of `learn_band_sequence` too


class Part(NamedTuple):
    """Bands of one candidate at the rows that one fold has held out, with their means over the rows learnt from."""

    lower: Array
    upper: Array
    mean_lower: float
    mean_upper: float
    gap: float
    point: DualPoint | None  # multipliers of all rows, from which other folds start


class _Quiet:
    """Hides the warnings of coarse solves, from the first thread in to the last out; `catch_warnings` takes but one."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.filters = warnings.catch_warnings()
                self.filters.__enter__()
                # counted in the report; coarse on purpose; bands of no width are a result like any other
                for category in (NotCertifiedWarning, LowRankWarning, ZeroResidualsWarning):
                    warnings.simplefilter("ignore", category)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.filters.__exit__(None, None, None)


QUIET = _Quiet()


@dataclass(eq=False)
class Search:
    """Evaluates candidates on folds and remembers them."""

    facts: RowFacts  # of the rows searched on
    r: Array  # their residuals in units of the target
    folds: tuple[IntArray, ...]  # held-out rows, the same for every candidate
    options: dict[str, Any]  # of `learn_band_sequence` that are not chosen
    coarse: Coarse
    deadline: float = np.inf  # of the clock `perf_counter`, after which nothing new is begun
    n_jobs: int | None = None
    weights: Array | None = None
    target: TargetScale | None = None  # on whose scale the residuals are
    parts: dict[tuple[Candidate, int], Part] = field(default_factory=dict)
    timed_out: bool = False

    def __post_init__(self) -> None:
        self.parallel = Parallel(n_jobs=self.n_jobs)
        self.views: dict[View, tuple[Array, Array]] = {}
        self.medians: dict[View, float] = {}

    def view(self, name: View) -> tuple[Array, Array]:
        """Points and base scale of the rows."""
        if name not in self.views:
            view = NoiseView.of(*name, self.facts)
            self.views[name] = view.points(self.facts), view.unit(self.facts)
        return self.views[name]

    def median(self, name: View) -> float:
        """Median distance of the points of a view."""
        if name not in self.medians:
            self.medians[name] = median_lengthscale(self.view(name)[0])
        return self.medians[name]

    def evaluate(
        self, candidates: Sequence[Candidate], folds: Sequence[int] | None = None, *, always: bool = False
    ) -> None:
        """Learn and keep what is not known yet, in chains of one view and fold; after the deadline only if `always`."""
        wanted = range(len(self.folds)) if folds is None else folds
        jobs, settings = effective_n_jobs(self.n_jobs), {**self.options, "sample_weight": self.weights}
        groups: dict[View, list[Candidate]] = {}
        for each in candidates:
            groups.setdefault(each.view, []).append(each)
        if all(isinstance(each.lengthscale, float) for each in candidates):
            for group in groups.values():  # of warm starts: long lengthscales, which have few features, and free sides
                group.sort(key=lambda c: (-c.lengthscale, *c[3:5], float(np.max(c.symmetry_penalty))))
        for part in (wanted[:1], wanted[1:]):  # solves of the others start from those of the first
            tasks = [
                (view, fold, missing)
                for fold in part
                for view, group in groups.items()
                if (missing := [each for each in group if (each, fold) not in self.parts])
            ]
            for start in range(0, len(tasks), jobs):  # a few at a time: a late one is not begun
                if not always and perf_counter() > self.deadline:
                    self.timed_out = True
                    return
                now = tasks[start : start + jobs]
                learnt = self.parallel(
                    delayed(fold_parts)(points, z, self.folds[fold], missing, settings, self.coarse, starts)
                    for view, fold, missing in now
                    for points, z in [(self.view(view)[0], in_units(self.r, self.view(view)[1]))]
                    for starts in [[self.start_of(each) for each in missing]]
                )
                for (_, fold, missing), parts in zip(now, learnt, strict=True):
                    self.parts.update({(each, fold): part for each, part in zip(missing, parts, strict=True)})

    def start_of(self, candidate: Candidate) -> DualPoint | None:
        """Multipliers of all rows from the first fold that knows the candidate."""
        parts = (self.parts.get((candidate, fold)) for fold in range(len(self.folds)))
        return next((part.point for part in parts if part is not None and part.point is not None), None)

    def knows(self, candidate: Candidate, n_folds: int | None = None) -> bool:
        """Whether the first folds, by default all, have seen a candidate."""
        return all((candidate, fold) in self.parts for fold in range(len(self.folds))[:n_folds])

    def of(self, candidate: Candidate, n_folds: int | None = None) -> list[Part]:
        """What the first folds, by default all, know of a candidate."""
        return [self.parts[candidate, fold] for fold in range(len(self.folds))[:n_folds]]

    def held_out(self, candidate: Candidate, score: str, n_folds: int | None = None) -> HeldOut:
        """The bands of a candidate at all rows that these folds hold out, with a score fitted to the rows outside."""
        parts = self.of(candidate, n_folds)
        rows = np.concatenate(self.folds[:n_folds])
        lower, upper = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        means = np.mean([part[2:4] for part in parts], axis=0).tolist()
        weight = None if self.weights is None else self.weights[rows]
        unit = self.view(candidate.view)[1][rows]
        center = None if self.target is None else self.facts.prediction[rows]
        fitted = ALL_SCORES[score].fitted(*means)
        return HeldOut(lower, upper, self.r[rows], fitted, unit, weight, center, self.target)

    def uncertified(self, candidate: Candidate, n_folds: int | None = None) -> int:
        """Folds whose coarse solve missed its tolerance."""
        return sum(not part.gap <= self.coarse.tol for part in self.of(candidate, n_folds))

    def failed(self, candidate: Candidate, n_folds: int | None = None) -> bool:
        """Whether some solve says nothing about its optimum, a relative gap of 1 or more: its bands may be anything."""
        return any(not part.gap < 1 for part in self.of(candidate, n_folds))


@ONE_THREAD
def fold_parts(
    points: AnyArray,
    z: Array,
    held: IntArray,
    candidates: Sequence[Candidate],
    options: dict[str, Any],
    coarse: Coarse,
    starts: Sequence[DualPoint | None] | None = None,
) -> list[Part]:
    """Bands of candidates of one view at the rows of one fold, learnt from the others, from `starts` of all rows.

    Of a problem that cannot be stated (rows out of reach, units beyond double precision) the gap is infinite.
    """
    others = np.setdiff1d(np.arange(len(z)), held)
    precomputed = isinstance(options["kernel"], str) and options["kernel"] == "precomputed"
    known, new = (points[np.ix_(rows, others)] if precomputed else points[rows] for rows in (others, held))
    weights = options["sample_weight"]
    counts = None if weights is None else weights[others]
    scale = replace(PenaltyScale.of_residuals(z, weights), n=len(z)) if "normalize" not in options else None
    settings = {"normalize": scale, **options, **coarse.options, "sample_weight": counts, "tol": coarse.tol}
    wanted = [each.settings() for each in candidates]
    begun = [None if point is None else point.take(others) for point in starts or [None] * len(wanted)]
    each = np.ones(len(others)) if counts is None else counts / counts.mean()
    with QUIET:
        for rank in coarse.ranks:
            try:
                solutions = list(learn_band_sequence(known, z[others], wanted, starts=begun, rank=rank, **settings))
            except (InfeasibleProblemError, ScaleError):
                continue
            parts = []
            for bands in solutions:
                below, above, _ = evaluate_pair(bands.lower, bands.upper, new)
                dual, point = bands.dual, None
                # sides that are coupled start from one another instead
                if dual.alpha_0 is None and dual.W is None and bands.gap < 1 and 0 < dual.ceiling < np.inf:
                    lo, up = np.zeros((2, len(z)))
                    # of one row each, whatever it counts; held-out rows that lie outside would be at their ceiling
                    lo[others], up[others] = dual.gamma_lo / each, dual.gamma_up / each
                    lo[held] = np.where(-z[held] > below, dual.ceiling, 0.0)
                    up[held] = np.where(z[held] > above, dual.ceiling, 0.0)
                    point = replace(dual, gamma_lo=lo, gamma_up=up)
                means = float(bands.values_lower.mean()), float(bands.values_upper.mean())
                parts.append(Part(below, above, *means, bands.gap, point))
            return parts
    if len(candidates) > 1:
        return [part for one in candidates for part in fold_parts(points, z, held, [one], options, coarse)]
    nothing = np.zeros(len(held))
    return [Part(nothing, nothing, 0.0, 0.0, np.inf, None)]


# Running a policy


@ONE_THREAD
def choose(
    facts: RowFacts,
    r: Array,
    policy: Any,
    *,
    options: dict[str, Any],
    cv: Any,
    random_state: np.random.RandomState,
    deadline: float = np.inf,
    n_jobs: int | None = None,
    verbose: int = 0,
    weights: Array | None = None,
    target: TargetScale | None = None,
) -> TuningReport:
    """Search as a policy wants, and report what it decides.

    Parameters
    ----------
    facts, r
        What is known of the learning rows, and their residuals.
    policy : Automatic or RuleSearch
        What is open, which candidates are tried, when to stop and what is decided.
    options : dict
        Arguments of `learn_bands` that are not chosen.
    cv, random_state : int or splitter, RandomState
        Folds, and the randomness of these and of the sample of rows, if there are very many.
    deadline : float
        Of the clock `perf_counter`: after it the best found so far is taken.
    n_jobs, verbose
        Processes over folds; whether to print a line per stage, as a verbose model does that asks for this.
    weights : ndarray of shape (n,), optional
        How much each row counts for the bands and for their score.
    target : TargetScale, optional
        On whose scale prediction and residuals are; intervals are scored in units of the target.

    Returns
    -------
    TuningReport
        An interruption (Ctrl-C) ends the search: the decision then rests on what it had seen, unless it had seen
        nothing yet.
    """
    clock = perf_counter()
    rows = searched_rows(len(r), policy.most_rows, random_state)
    folds = held_out_folds(len(rows), cv, random_state)
    some, values, counts = facts, r, weights
    if len(rows) < len(r):
        some, values, counts = facts.take(rows), r[rows], None if weights is None else weights[rows]
        if isinstance(options["kernel"], str) and options["kernel"] == "precomputed":
            some = replace(some, points=some.points[:, rows])
    if isinstance(options.get("normalize"), PenaltyScale):
        options = {**options, "normalize": replace(options["normalize"], n=len(rows))}  # the penalty is a sum over rows
    search = Search(some, values, folds, options, policy.coarse, deadline, n_jobs, counts, target)
    interrupted = False
    with speaking("tuning", verbose or None):
        policy.begin(search)
        try:
            enough = len(rows) >= policy.least_rows and values.any()
            decided = policy.run() if enough else policy.nothing_to_tell(len(r) if r.any() else 0)
        except KeyboardInterrupt:
            if not policy.found():
                raise
            print("tuning interrupted: going on with the best found so far", file=sys.stderr, flush=True)
            decided, interrupted = policy.interrupted(), True
        say(decided["sentence"])
    return TuningReport(
        evaluations=tuple(policy.rows()),
        criterion=policy.criterion,
        rows=rows,
        folds=folds,
        interrupted=interrupted,
        timed_out=search.timed_out,
        seconds=perf_counter() - clock,
        **decided,
    )


def searched_rows(n: int, most: int, rng: np.random.RandomState) -> IntArray:
    """Positions of the rows to search on, increasing: all, or a random sample of very many."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def held_out_folds(n: int, cv: Any, rng: np.random.RandomState) -> tuple[IntArray, ...]:
    """Positions that each of `cv` shuffled folds of n rows holds out; one fold of all if there are too few."""
    check_cv(cv)
    if n < MIN_ROWS:
        return (np.arange(n),)
    if is_splitter(cv):  # which made the residuals, of rows that may be in order: blocks of consecutive rows
        blocks = int(np.clip(cv.get_n_splits(np.zeros((n, 1))), 2, min(MOST_BLOCKS, n)))
        return tuple(held for _, held in KFold(blocks).split(np.zeros(n)))
    return tuple(held for _, held in KFold(min(cv, n), shuffle=True, random_state=rng).split(np.zeros(n)))
