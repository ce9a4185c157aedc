"""The automatic choice: base scale, noise features, lengthscale, penalties, coverage and score, by cross-validation.

Candidates are compared by the interval score of the intervals that calibration makes of their bands at held-out rows.
The search spends little where little is to be had: simple candidates first, many at coarse settings on few folds, then
one setting after another around the best of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from sosbands._threads import ONE_THREAD
from sosbands._types import Array, IntArray
from sosbands.bands import PenaltyScale, learn_band_sequence
from sosbands.conformal import SCORES
from sosbands.exceptions import InfeasibleProblemError, ScaleError
from sosbands.kernels import median_lengthscale
from sosbands.stats import TestResult, sign_flip_test
from sosbands.tuning.candidates import is_symmetric
from sosbands.tuning.criterion import QUIET
from sosbands.tuning.held_out import HeldOut, minus_log_interval_score
from sosbands.tuning.rules import FLIPS, permutations_for
from sosbands.tuning.settings import Candidate, Choice, Choices, Given, is_constant
from sosbands.tuning.views import NoiseView, RowFacts

# While searching, features, gap and iterations are coarse: the criterion is a noisy statistic of the bands.
COARSE: dict[str, Any] = {"rank": (64, 1e-3), "tol": 1e-2, "max_iterations": 200}
START_FACTOR, START_PENALTY, START_COVERAGE = 2.0, 30.0, 0.9  # of the median distance; where searching starts
FACTORS = (0.5, 1.0, 4.0)
PENALTIES = (3.0, 300.0)
STEPS = {"lengthscale": 2.0, "width_penalty": 10.0}  # by which a line is extended at its end,
EXTENSIONS = 2  # at most so often
COVERAGES = (0.8, 0.95)
SKEW_FACTORS = (1.0, 2.0)
COUPLINGS = (0.0, 1.0, 10.0)  # symmetry penalties, in width penalties
# In logarithms of the score: what it is worth to need no varying bands, and to follow a significant test of skew.
SIMPLE_BONUS, SKEW_BONUS = 0.003, 0.01
FIRST_FOLDS = 2  # on which all views are compared
FINALISTS = 2  # views around which the search goes on


class Part(NamedTuple):
    """Bands of one candidate at the rows that one fold has held out."""

    lower: Array
    upper: Array
    mean_lower: float
    mean_upper: float
    gap: float


@dataclass(eq=False)
class AutomaticSearch:
    """Evaluates candidates on folds and remembers them.

    Attributes
    ----------
    facts, r
        What is known of the rows searched on, and their residuals in units of the target.
    folds : tuple of ndarray of int
        Held-out rows, the same for every candidate.
    options : dict
        Arguments of `learn_band_sequence` that are not chosen.
    levels : tuple of float
        At which intervals are scored.
    deadline : float
        Of the clock `perf_counter`, after which nothing new is begun.
    """

    facts: RowFacts
    r: Array
    folds: tuple[IntArray, ...]
    options: dict[str, Any]
    choices: Choices
    levels: tuple[float, ...]
    deadline: float = np.inf
    n_jobs: int | None = None
    seed: int = 0
    weights: Array | None = None
    parts: dict[tuple[Candidate, int], Part] = field(default_factory=dict)
    timed_out: bool = False
    symmetry: TestResult | None = None

    def __post_init__(self) -> None:
        self.parallel = Parallel(n_jobs=self.n_jobs)
        self.views: dict[tuple[str, str], tuple[Array, Array]] = {}
        self.medians: dict[tuple[str, str], float] = {}
        self.given = [Given(value) for value in self.choices.lengthscales or ()]

    def run(self) -> Choice:
        """Search, and give the best."""
        self.evaluate(self._constants() or self._starts()[:1], always=True)
        finalists = self._race(self._starts())
        for start in finalists:
            self._around(start)
        self._coverage_line()
        self._asymmetry()
        return self.best()

    # What is tried

    def _constants(self) -> list[Candidate]:
        """Each base scale alone."""
        if self.choices.lengthscales is not None:
            return []
        features = self.choices.noise_features[0]
        return [self.start(base, features, np.inf) for base in self.choices.base_scales]

    def _starts(self) -> list[Candidate]:
        """Every view, at the settings that the search starts from."""
        views = [(base, name) for base in self.choices.base_scales for name in self.choices.noise_features]
        return [self.start(*view, self._lengthscales(view, (START_FACTOR,))[0]) for view in views]

    def start(self, base: str, features: str, lengthscale: Any) -> Candidate:
        """Where the search of a view starts: what is given, or else the middle of what is tried."""
        given = self.choices
        return Candidate(
            base,
            features,
            lengthscale,
            (given.width_penalties or (START_PENALTY,))[0],
            (given.learning_coverages or (START_COVERAGE,))[0],
            np.inf if given.symmetry_penalties is None else given.symmetry_penalties[0],
        )

    def _lengthscales(self, view: tuple[str, str], factors: Sequence[float]) -> list[Any]:
        if self.choices.lengthscales is not None:
            return self.given
        return [factor * self.median(view) for factor in factors]

    def _race(self, starts: Sequence[Candidate]) -> list[Candidate]:
        """The best views: all on few folds, the better half of them on all."""
        self.evaluate(starts, folds=range(min(FIRST_FOLDS, len(self.folds))))
        ranked = self._ranked([each for each in starts if self._known(each, FIRST_FOLDS)], FIRST_FOLDS)
        kept = ranked[: max(FINALISTS, -(-len(ranked) // 2))]
        self.evaluate(kept)
        return self._ranked([each for each in kept if self._known(each)])[:FINALISTS]

    def _around(self, start: Candidate) -> None:
        """Lengthscales, then width penalties at the best of them; further ones while the best is the last."""
        if self.choices.lengthscales is None:
            ells = self._lengthscales(start.view, FACTORS)
            start = self._line(start, "lengthscale", ells)
        if self.choices.width_penalties is None:
            self._line(start, "width_penalty", PENALTIES)

    def _line(self, start: Candidate, name: str, values: Iterable[float]) -> Candidate:
        """The best candidate along one setting."""
        line = [start, *(_moved(start, name, value) for value in values)]
        self.evaluate(line)
        for _ in range(EXTENSIONS):
            line = [each for each in line if self._known(each)] or [start]
            best = self._ranked(line)[0]
            ends = sorted(getattr(each, name) for each in line)
            here, step = getattr(best, name), STEPS[name]
            beyond = {ends[0]: here / step, ends[-1]: here * step}.get(here)
            if beyond is None:
                break
            line.append(_moved(best, name, beyond))
            self.evaluate(line[-1:])
        return self._ranked([each for each in line if self._known(each)] or [start])[0]

    def is_extended(self, candidate: Candidate, name: str) -> bool:
        """Whether a setting of a candidate lies beyond the values that its line began with."""
        if name == "width_penalty" and self.choices.width_penalties is None:
            return not min(PENALTIES) <= candidate.width_penalty <= max(PENALTIES)
        if name == "lengthscale" and self.choices.lengthscales is None and not is_constant(candidate):
            factor = candidate.lengthscale / self.median(candidate.view)
            return not 0.99 * min(FACTORS) <= factor <= 1.01 * max(FACTORS)
        return False

    def _coverage_line(self) -> None:
        """Other shares of rows that the bands should cover."""
        best = self.best().candidate
        if self.choices.learning_coverages is None and not is_constant(best):
            self.evaluate([best._replace(learning_coverage=value) for value in COVERAGES])

    def _asymmetry(self) -> None:
        """Bands that differ below and above, if residuals are skewed somewhere, in units of the best base scale."""
        if self.choices.symmetry_penalties is not None:
            return
        best = self.best().candidate
        if self.choices.symmetry_test:
            self.symmetry = self._skew(best.base_scale)
            if self.symmetry.p_value > self.choices.test_level:
                return
        # Skew may vary where sizes do not, so that the best symmetric bands say little about where to look for it.
        near = (
            best if not is_constant(best) else self.start(*best.view, self._lengthscales(best.view, (START_FACTOR,))[0])
        )
        places = [near, near._replace(learning_coverage=self.start(*best.view, np.inf).learning_coverage)]
        if self.choices.lengthscales is None:  # each side has half of the rows to learn from
            places += [each._replace(lengthscale=STEPS["lengthscale"] * each.lengthscale) for each in places]
        wanted = [
            each._replace(symmetry_penalty=coupling * each.width_penalty)
            for each in dict.fromkeys(places)
            for coupling in COUPLINGS
        ]
        everywhere = [(base, self.choices.noise_features[0]) for base in self.choices.base_scales]
        starts = [self.start(*view, ell) for view in everywhere for ell in self._lengthscales(view, SKEW_FACTORS)]
        starts += [self.start(*best.view, np.inf)] if self.choices.lengthscales is None else []
        self.evaluate(wanted + [each._replace(symmetry_penalty=0.0) for each in starts])

    def _skew(self, base_scale: str) -> TestResult:
        """The sign-flip test of residuals in units of a base scale, by the first of the noise features."""
        view = base_scale, self.choices.noise_features[0]
        points, unit = self.view(view)
        rng = np.random.default_rng([self.seed, 1])
        flips = permutations_for(self.choices.test_level, FLIPS)
        return sign_flip_test(points, self.r / unit, self.median(view), n_flips=flips, random_state=rng)

    # What it is worth

    def view(self, name: tuple[str, str]) -> tuple[Array, Array]:
        """Points and base scale of the rows."""
        if name not in self.views:
            view = NoiseView.of(*name, self.facts)
            self.views[name] = view.points(self.facts), view.unit(self.facts)
        return self.views[name]

    def median(self, name: tuple[str, str]) -> float:
        """Median distance of the points of a view."""
        if name not in self.medians:
            self.medians[name] = median_lengthscale(self.view(name)[0])
        return self.medians[name]

    def evaluate(
        self, candidates: Sequence[Candidate], folds: Sequence[int] | None = None, *, always: bool = False
    ) -> None:
        """Learn and keep what is not known yet; chains of warm starts are those of one view and fold.

        After the deadline nothing, unless it is wanted `always`.
        """
        wanted = range(len(self.folds)) if folds is None else folds
        tasks = [
            (view, fold, missing)
            for fold in wanted
            for view, group in _by_view(candidates).items()
            if (missing := [each for each in group if (each, fold) not in self.parts])
        ]
        jobs = effective_n_jobs(self.n_jobs)
        for start in range(0, len(tasks), jobs):  # a few at a time: a late one is not begun
            if not always and perf_counter() > self.deadline:
                self.timed_out = True
                return
            wave = tasks[start : start + jobs]
            learnt = self.parallel(
                delayed(fold_parts)(points, self.r / unit, self.folds[fold], missing, self.options, self.weights)
                for view, fold, missing in wave
                for points, unit in [self.view(view)]
            )
            for (_, fold, missing), parts in zip(wave, learnt, strict=True):
                self.parts.update({(each, fold): part for each, part in zip(missing, parts, strict=True)})

    def _known(self, candidate: Candidate, n_folds: int | None = None) -> bool:
        folds = range(len(self.folds) if n_folds is None else min(n_folds, len(self.folds)))
        return all((candidate, fold) in self.parts for fold in folds)

    def choices_of(self, candidate: Candidate, n_folds: int | None = None) -> list[Choice]:
        """The candidate with each score, on the first folds."""
        folds = range(len(self.folds) if n_folds is None else min(n_folds, len(self.folds)))
        parts = [self.parts[candidate, fold] for fold in folds]
        rows = np.concatenate([self.folds[fold] for fold in folds])
        unit = self.view(candidate.view)[1][rows]
        weight = None if self.weights is None else self.weights[rows]
        lower, upper = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        means = np.mean([part[2:4] for part in parts], axis=0).tolist()
        missed = sum(not part.gap <= COARSE["tol"] for part in parts)
        failed = any(not part.gap < 1 for part in parts)
        return [
            Choice(candidate, name, -np.inf if failed else minus_log_interval_score(held, self.levels), missed)
            for name in self.choices.conformal_scores
            for held in [HeldOut(lower, upper, self.r[rows], SCORES[name].fitted(*means), unit, weight)]
        ]

    def _ranked(self, candidates: Sequence[Candidate], n_folds: int | None = None) -> list[Candidate]:
        """From the best to the worst, each with its best score."""
        worth = {each: max(choice.value for choice in self.choices_of(each, n_folds)) for each in candidates}
        return sorted(worth, key=lambda each: -worth[each])

    def found(self) -> list[Choice]:
        """Every candidate that all folds have seen, with each score."""
        known = dict.fromkeys(each for each, _ in self.parts if self._known(each))
        return [choice for each in known for choice in self.choices_of(each)]

    def best(self) -> Choice:
        """The first of those with the largest value, where what is simple or has a reason is worth a little more."""
        skewed = self.symmetry is not None and self.symmetry.p_value <= self.choices.test_level

        def worth(choice: Choice) -> float:
            bonus = SIMPLE_BONUS * is_constant(choice.candidate)
            return choice.value + bonus + SKEW_BONUS * (skewed and not is_symmetric(choice.candidate.symmetry_penalty))

        return max(self.found(), key=worth)


def _moved(candidate: Candidate, name: str, value: Any) -> Candidate:
    """The same with another value of one setting."""
    changed: dict[str, Any] = {name: value}
    return candidate._replace(**changed)


def _by_view(candidates: Iterable[Candidate]) -> dict[tuple[str, str], list[Candidate]]:
    """Candidates in the order of warm starts: long lengthscales first, which have few features."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for each in candidates:
        groups.setdefault(each.view, []).append(each)
    if all(isinstance(each.lengthscale, float) for group in groups.values() for each in group):
        for group in groups.values():
            group.sort(key=lambda each: (-each.lengthscale, each.width_penalty))
    return groups


@ONE_THREAD
def fold_parts(
    points: Array,
    z: Array,
    held: IntArray,
    candidates: Sequence[Candidate],
    options: dict[str, Any],
    weights: Array | None = None,
) -> list[Part]:
    """Bands of candidates of one view at the rows of one fold, learnt from the others.

    A candidate whose problem cannot be stated (rows that coarse features do not reach, units beyond double precision)
    gets a gap of infinity.
    """
    others = np.setdiff1d(np.arange(len(z)), held)
    scale = replace(PenaltyScale.of_residuals(z, weights), n=len(z))
    wanted = [each.settings() for each in candidates]
    counts = None if weights is None else weights[others]
    settings = {"normalize": scale, "sample_weight": counts, **options, **COARSE}
    with QUIET:
        try:
            solutions = list(learn_band_sequence(points[others], z[others], wanted, **settings))
        except (InfeasibleProblemError, ScaleError):
            if len(candidates) > 1:
                return [part for each in candidates for part in fold_parts(points, z, held, [each], options, weights)]
            nothing = np.zeros(len(held))
            return [Part(nothing, nothing, 0.0, 0.0, np.inf)]
    new = points[held]
    return [
        Part(bands.lower(new), bands.upper(new), bands.values_lower.mean(), bands.values_upper.mean(), bands.gap)
        for bands in solutions
    ]
