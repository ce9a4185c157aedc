"""The automatic choice: base scale, noise features, lengthscale, penalties, coverage and score, by cross-validation.

Candidates are compared by the interval score of the intervals that calibration makes of their bands at held-out rows.
The search spends little where little is to be had: simple candidates first, many at coarse settings on few folds, then
one setting after another around the best of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sosbands._progress import say
from sosbands.bands.views import INPUTS, NO_SCALE
from sosbands.conformal.band import in_units
from sosbands.stats import TestResult, sign_flip_test
from sosbands.tuning.report import reasons_of
from sosbands.tuning.rules import FLIPS, permutations_for
from sosbands.tuning.search import Candidate, Coarse, Given, Search, View, minus_log_interval_score

# While searching, features, gap and iterations are coarse, and sides are coupled at some rows only.
COARSE = Coarse(((64, 1e-3),), 1e-2, {"max_iterations": 200, "coupled_rows": 120})
SEARCH_ROWS = 1500  # of more rows a random sample is searched on
FEW_ROWS = 20  # of fewer nothing can be told
START_FACTOR, START_PENALTY, START_COVERAGE = 2.0, 30.0, 0.9  # of the median distance; where searching starts
FACTORS = (0.5, 1.0, 4.0)
PENALTIES = (3.0, 300.0)
STEPS = {"lengthscale": 2.0, "width_penalty": 10.0}  # by which a line is extended at its end,
EXTENSIONS = 2  # at most so often, but no width penalty beyond the largest of PENALTIES
COVERAGES = (0.8, 0.95)
SKEW_FACTORS = (1.0, 2.0)
COUPLINGS = (0.0, 1.0, 10.0)  # symmetry penalties, in width penalties
# In logarithms of the score: what it is worth to need no varying bands, and to follow a significant test of skew.
SIMPLE_BONUS, SKEW_BONUS = 0.003, 0.01
# What each step costs that makes bands follow single rows, over the number of rows: of few rows the best of many
# candidates is often one that does, and is not the best on new rows. Numbers are in docs/guide/choice.md.
DOUBTS = {"lengthscale": 5.0, "width_penalty": 40.0}
NO_WIDTH = 1e-2  # of the mean size of residuals, both sides together
FIRST_FOLDS = 2  # on which all views are compared
FINALISTS = 2  # views around which the search goes on
IDLE = ("noise_features", "width_penalty", "learning_coverage")  # that say nothing of bands of constant width


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate with a score, and what it is worth."""

    candidate: Candidate
    conformal_score: str
    value: float  # minus the mean logarithm of held-out interval scores: differences are relative ones
    uncertified: int  # folds whose coarse solve missed its tolerance

    def row(self) -> dict[str, Any]:
        """A line of the report."""
        kept = {"conformal_score": self.conformal_score, "criterion": self.value, "uncertified": self.uncertified}
        return {**self.candidate._asdict(), **self.candidate.settings(), **kept}


@dataclass(eq=False)
class Automatic:
    """What is open, and what is given: each a tuple of the values allowed, None where the search has its own.

    Attributes
    ----------
    base_scales, noise_features, conformal_scores : tuple of str
        In the order in which candidates of equal value are preferred.
    lengthscales : tuple or None
        As `learn_bands` takes them, in place of multiples of the median distance and of infinity.
    width_penalties, learning_coverages, symmetry_penalties : tuple or None
    symmetry_test : bool
        Whether asymmetric bands are an option only if a sign-flip test finds skew,
    test_level : float
        at this level.
    level : float
        Of the intervals: they are scored at it, with a miss rate twice as large, and half as large.
    seed : int
        Of the symmetry test.
    """

    base_scales: tuple[str, ...]
    noise_features: tuple[str, ...]
    conformal_scores: tuple[str, ...]
    lengthscales: tuple[Any, ...] | None = None
    width_penalties: tuple[float, ...] | None = None
    learning_coverages: tuple[float, ...] | None = None
    symmetry_penalties: tuple[Any, ...] | None = None
    symmetry_test: bool = True
    test_level: float = 0.05
    level: float = 0.9
    seed: int = 0
    symmetry: TestResult | None = field(default=None, init=False)
    search: Search = field(init=False)

    criterion = "interval-score"
    coarse, most_rows, least_rows = COARSE, SEARCH_ROWS, FEW_ROWS

    def begin(self, search: Search) -> None:
        """Whatever is asked is evaluated by this search."""
        self.search = search
        self.scored: dict[tuple[Candidate, int], list[Choice]] = {}
        self.given = [Given(value) for value in self.lengthscales or ()]
        miss = 1 - self.level
        self.levels = tuple(sorted({max(self.level - miss, self.level / 2), self.level, 1 - miss / 2}))
        say(f"automatic choice on {len(search.folds)} folds of {len(search.r)} rows")

    def run(self) -> dict[str, Any]:
        """Search, and decide for the best."""
        # 1. Each base scale alone, which costs next to nothing.
        plain = [(base, self.noise_features[0]) for base in self.base_scales]
        constants = [self.start(view, np.inf) for view in plain] if self.lengthscales is None else []
        views = [(base, name) for base in self.base_scales for name in self.noise_features]
        starts = [self.start(view, self._lengthscales(view, (START_FACTOR,))[0]) for view in views]
        self.search.evaluate(constants or starts[:1], always=True)
        # 2. Every view where the search starts: all on few folds, the better half of them on all.
        self.search.evaluate(starts, folds=range(min(FIRST_FOLDS, len(self.search.folds))))
        ranked = self._ranked(starts, FIRST_FOLDS)
        kept = ranked[: max(FINALISTS, -(-len(ranked) // 2))]
        self.search.evaluate(kept)
        # 3. Around the best views: lengthscales, then width penalties at the best of them.
        for start in self._ranked(kept)[:FINALISTS]:
            near = start
            if self.lengthscales is None:
                near = self._line(start, "lengthscale", self._lengthscales(start.view, FACTORS))
            if self.width_penalties is None:
                self._line(near, "width_penalty", PENALTIES)
        # 4. Other shares of rows that the bands should cover.
        best = self.best().candidate
        if self.learning_coverages is None and not best.is_constant:
            self.search.evaluate([best._replace(learning_coverage=value) for value in COVERAGES])
        # 5. Bands that differ below and above, if residuals are skewed somewhere.
        if self.symmetry_penalties is None:
            self._asymmetry(self.best().candidate)
        return self._decided(self.best())

    def start(self, view: View, lengthscale: Any) -> Candidate:
        """Where the search of a view starts: what is given, or else the middle of what is tried."""
        return Candidate(
            *view,
            lengthscale,
            (self.width_penalties or (START_PENALTY,))[0],
            (self.learning_coverages or (START_COVERAGE,))[0],
            np.inf if self.symmetry_penalties is None else self.symmetry_penalties[0],
        )

    def _lengthscales(self, view: View, factors: Sequence[float]) -> list[Any]:
        if self.lengthscales is not None:
            return self.given
        return [factor * self.search.median(view) for factor in factors]

    def _line(self, start: Candidate, name: str, values: Iterable[Any]) -> Candidate:
        """The best candidate along one setting, with further values while the best is the last."""
        line = [start, *(start._replace(**{name: value}) for value in values)]
        self.search.evaluate(line)
        for _ in range(EXTENSIONS):
            line = [each for each in line if self.search.knows(each)] or [start]
            best = self._ranked(line)[0]
            ends = sorted(getattr(each, name) for each in line)
            here, step = getattr(best, name), STEPS[name]
            beyond = {ends[0]: here / step, ends[-1]: here * step}.get(here)
            if beyond is None or (name == "width_penalty" and beyond > max(PENALTIES)):
                break
            line.append(best._replace(**{name: beyond}))
            self.search.evaluate(line[-1:])
        return (self._ranked(line) or [start])[0]

    def _asymmetry(self, best: Candidate) -> None:
        """Independent and coupled sides near the best candidate, and independent ones in every unit."""
        if self.symmetry_test:  # of residuals in units of the base scale, by the first of the noise features
            view = best.base_scale, self.noise_features[0]
            points, unit = self.search.view(view)
            flips, rng = permutations_for(self.test_level, FLIPS), np.random.default_rng([self.seed, 1])
            ell = self.search.median(view)
            self.symmetry = sign_flip_test(points, in_units(self.search.r, unit), ell, n_flips=flips, random_state=rng)
            if self.symmetry.p_value > self.test_level:
                return
        # Skew may vary where sizes do not, so that the best symmetric bands say little about where to look for it.
        near = best
        if best.is_constant:
            near = self.start(best.view, self._lengthscales(best.view, (START_FACTOR,))[0])
        places = [near, near._replace(learning_coverage=self.start(best.view, np.inf).learning_coverage)]
        if self.lengthscales is None:  # each side has half of the rows to learn from
            places += [each._replace(lengthscale=STEPS["lengthscale"] * each.lengthscale) for each in places]
        wanted = [
            each._replace(symmetry_penalty=coupling * each.width_penalty)
            for each in dict.fromkeys(places)
            for coupling in COUPLINGS
        ]
        plain = [(base, self.noise_features[0]) for base in self.base_scales]
        starts = [self.start(view, ell) for view in plain for ell in self._lengthscales(view, SKEW_FACTORS)]
        starts += [self.start(best.view, np.inf)] if self.lengthscales is None else []
        self.search.evaluate(wanted + [each._replace(symmetry_penalty=0.0) for each in starts])

    # What candidates are worth

    def choices_of(self, candidate: Candidate, n_folds: int | None = None) -> list[Choice]:
        """The candidate with each score, on the first folds; remembered."""
        key = candidate, len(self.search.folds[:n_folds])
        if key not in self.scored:
            # functions that are nearly zero leave all to calibration, as those of an infinite lengthscale do openly
            is_free = self.width_penalties is None and self.lengthscales is None
            failed = self.search.failed(candidate, n_folds) or (is_free and self._is_flat(candidate, n_folds))
            missed = self.search.uncertified(candidate, n_folds)
            self.scored[key] = []
            for name in self.conformal_scores:
                value = -np.inf
                if not failed:
                    value = minus_log_interval_score(self.search.held_out(candidate, name, n_folds), self.levels)
                self.scored[key].append(Choice(candidate, name, value, missed))
        return self.scored[key]

    def _is_flat(self, candidate: Candidate, n_folds: int | None = None) -> bool:
        """Whether the functions of some fold are next to nothing beside the residuals."""
        size = float(np.mean(np.abs(in_units(self.search.r, self.search.view(candidate.view)[1]))))
        parts = self.search.of(candidate, n_folds)
        return any(part.mean_lower + part.mean_upper < NO_WIDTH * size for part in parts)

    def _ranked(self, candidates: Sequence[Candidate], n_folds: int | None = None) -> list[Candidate]:
        """Those that are known, from the best to the worst, each with its best score."""
        worth = {
            each: max(choice.value for choice in self.choices_of(each, n_folds)) - self.doubt(each)
            for each in candidates
            if self.search.knows(each, n_folds)
        }
        return sorted(worth, key=lambda each: -worth[each])

    def doubt(self, candidate: Candidate) -> float:
        """What is taken off the value of a candidate whose bands can follow single rows: steps from the start."""
        steps = 0.0
        if self.width_penalties is None:
            step = np.log(STEPS["width_penalty"])
            steps += DOUBTS["width_penalty"] * max(0.0, np.log(candidate.width_penalty / START_PENALTY) / step)
        if self.lengthscales is None and not candidate.is_constant:
            start = START_FACTOR * self.search.median(candidate.view)
            step = np.log(STEPS["lengthscale"])
            steps += DOUBTS["lengthscale"] * max(0.0, np.log(start / candidate.lengthscale) / step)
        return steps / len(self.search.r)

    def found(self) -> list[Choice]:
        """Every candidate that all folds have seen, with each score."""
        known = dict.fromkeys(each for each, _ in self.search.parts if self.search.knows(each))
        return [choice for each in known for choice in self.choices_of(each)]

    def best(self) -> Choice:
        """The first of those with the largest value, where what is simple or has a reason is worth a little more."""
        skewed = self.symmetry is not None and self.symmetry.p_value <= self.test_level

        def worth(choice: Choice) -> float:
            bonus = SIMPLE_BONUS * choice.candidate.is_constant - self.doubt(choice.candidate)
            return choice.value + bonus + SKEW_BONUS * (skewed and not choice.candidate.is_symmetric)

        return max(self.found(), key=worth)

    # What is decided

    def interrupted(self) -> dict[str, Any]:
        """The best that was found so far."""
        return self._decided(self.best(), " Interrupted: the best found so far.")

    def nothing_to_tell(self, n: int) -> dict[str, Any]:
        """Bands of constant width in the plainest unit that is allowed, of n residuals that are not all zero."""
        base = NO_SCALE if NO_SCALE in self.base_scales else self.base_scales[0]
        features = INPUTS if INPUTS in self.noise_features else self.noise_features[0]
        start = self.start((base, features), np.inf if self.lengthscales is None else self.given[0])
        found = self._decided(Choice(start, self.conformal_scores[0], np.nan, 0))
        words = f"Nothing can be told from {n} residuals: the simplest bands."
        return {**found, "sentence": words if n else "All residuals are zero: bands of no width."}

    def rows(self) -> list[dict[str, Any]]:
        """Lines of the report."""
        return [each.row() for each in self.found()]

    def is_extended(self, candidate: Candidate, name: str) -> bool:
        """Whether a setting of a candidate lies beyond the values that its line began with."""
        if name == "width_penalty" and self.width_penalties is None:
            return not min(PENALTIES) <= candidate.width_penalty <= max(PENALTIES)
        if name == "lengthscale" and self.lengthscales is None and not candidate.is_constant:
            factor = candidate.lengthscale / self.search.median(candidate.view)
            return not 0.99 * min(FACTORS) <= factor <= 1.01 * max(FACTORS)
        return False

    def _decided(self, best: Choice, ended: str = "") -> dict[str, Any]:
        """What the report says of a choice, with the reasons: what other values lose, or win too little."""
        c, timed_out = best.candidate, self.search.timed_out
        width = "a multiple of the base scale" if c.is_constant and c.base_scale != NO_SCALE else "constant width"
        features = c.noise_features.replace("+", " and ")
        kind = f"bands of {width}" if c.is_constant else f"bands that vary with {features}"
        sides = "Symmetric" if c.is_symmetric else "Asymmetric"
        if best.conformal_score == "added" and not c.is_constant and self.search.knows(c) and self._is_flat(c):
            sides, kind = "Bands", "of next to no width, which leave it to calibration"
        skew = ""
        if self.symmetry is not None:
            finding = "skew" if self.symmetry.p_value <= self.test_level else "no skew found"
            skew = f" ({finding} in {len(self.search.r)} residuals, p = {self.symmetry.p_value:.2g})"
        ended += " Out of time (max_seconds): the best found so far." if timed_out else ""
        chosen, *others = (
            {**each.row(), "worth": each.value - self.doubt(each.candidate)} for each in (best, *self.found())
        )
        names = [*Candidate._fields, "conformal_score"]
        told = [name for name in names if not (c.is_constant and name in IDLE)]
        beyond = [name for name in told if self.is_extended(c, name)]
        return {
            **{name: chosen[name] for name in names},
            "independence": None,
            "symmetry": self.symmetry,
            "replicates": None,
            "homoscedastic": c.is_constant and c.base_scale == NO_SCALE,
            "sentence": f"{sides} {kind}{skew}.{ended}",
            "reasons": reasons_of(chosen, others, told, beyond),
        }


def score_of(search: Search, candidate: Candidate, conformal_score: str, level: float) -> float:
    """The held-out value of one candidate of a search of one's own, as the automatic choice has it."""
    policy = Automatic((candidate.base_scale,), (candidate.noise_features,), (conformal_score,), level=level)
    policy.begin(search)
    search.evaluate([candidate])
    return policy.choices_of(candidate)[0].value
