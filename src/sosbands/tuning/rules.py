"""The paper's rules: lengthscale and symmetry penalty by a criterion and by tests, everything else as given.

Tests that need no search come first and leave less to search; then a grid of candidates, and tests that compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import check_random_state

from sosbands._arguments import check, check_choice, is_count, is_fraction
from sosbands._progress import say
from sosbands._types import AnyArray, Array
from sosbands.bands import PenaltyScale, penalty_scale
from sosbands.bands.views import INPUTS, NO_SCALE, RowFacts
from sosbands.conformal import SCORES
from sosbands.kernels import median_lengthscale, resolve_kernel
from sosbands.stats import (
    TestResult,
    bootstrap_test,
    feature_independence_test,
    independence_test,
    kruskal_wallis_test,
    sign_flip_test,
)
from sosbands.tuning.report import TuningReport
from sosbands.tuning.search import CRITERIA, MIN_ROWS, Candidate, Coarse, Given, HeldOut, Search, choose, is_symmetric

SYMMETRY_TESTS = ("auto", "kruskal-wallis", "sign-flip", "bootstrap", None)
INDEPENDENCE_TESTS = ("features", "max-statistic", "naive", None)
COMPARING_TESTS = ("kruskal-wallis", "bootstrap")  # which need candidates that differ in the symmetry penalty only
AUTO_TEST = "sign-flip"  # the evidence is in docs/guide/choice.md
MOST_PERMUTATIONS = 9_999  # of a level alone: with 1500 rows these take a minute
SMALLEST_LEVEL = 1 / (MOST_PERMUTATIONS + 1)
FLIPS = 999  # of the sign-flip test, at least
LABELS = 2000  # permutations of the Kruskal-Wallis test, at least
MOST_GIVEN = 1_000_000  # that rules may ask for

# While searching, features and gap are coarse; features that leave out a far point make way for all of them.
COARSE = Coarse(((160, 1e-3), "auto"), 1e-3)
SEARCH_ROWS = 1000  # of more rows a random sample is tested and searched on
PENALTIES = (0.0, 10.0, 100.0, 1000.0, np.inf)  # of normalised problems, where 1 is as good as 0
FACTORS = tuple(np.geomspace(0.1, 3.2, 6))  # of the median lengthscale
PLACES = (0.2, 0.5, 1.25)  # lengthscales of the feature test, in medians
# Bands forget the data where a new point has no learning points nearby, so that shorter lengthscales say nothing there.
MIN_SUPPORT = 0.5
SUPPORT_ROWS = 800
JITTER = 1e-8
# What a symmetry test says, without and with significance.
FINDINGS = {
    "sign-flip": ("Residuals show no skew", "Residuals are skewed"),
    "kruskal-wallis": ("No symmetry penalty stands out", "The symmetry penalties differ"),
    "bootstrap": ("Asymmetric bands gain nothing that could not be chance", "Asymmetric bands gain"),
}


def permutations_for(level: float, least: int = 199) -> int:
    """How many permutations a test at this level is made with: ten times as many as it takes, as far as affordable."""
    return max(least, min(MOST_PERMUTATIONS, int(np.ceil(10 / level)) - 1))


@dataclass(frozen=True)
class Rules:
    """How lengthscale and symmetry penalty are searched for and decided.

    The paper's rules are ``Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive")``.

    Attributes
    ----------
    criterion : {"interval-score", "hsic", "dcor"}
        HSIC is the paper's, which also rewards wide bands; the other two are ours.
    symmetry_test : {"auto", "kruskal-wallis", "sign-flip", "bootstrap", None}
        None always takes the best penalty; "auto" is "sign-flip".
    level : float
        Of both tests.
    independence : {"features", "max-statistic", "naive", None}
        Whether the sizes of the residuals depend on the features (exact), or held-out residuals on held-out widths:
        over all candidates, or at the best one as if it had not been searched for. The last two reject too often, as
        every residual has a part in the widths of the others; see docs/guide/choice.md.
    n_permutations : int, optional
        Of the independence test and of the bootstrap; at least ``1/level - 1``, at most a million. None is as many as
        the level takes, at least 199.
    n_replicates : int
        Bootstrap replicates of the criterion for each penalty, which the Kruskal-Wallis test compares.
    seed : int
        Of the tests; the folds have their own.
    """

    criterion: str = "interval-score"
    symmetry_test: str | None = "auto"
    level: float = 0.05
    independence: str | None = "features"
    n_permutations: int | None = None
    n_replicates: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("criterion", self.criterion, tuple(CRITERIA))
        check_choice("symmetry_test", self.symmetry_test, SYMMETRY_TESTS)
        check_choice("independence", self.independence, INDEPENDENCE_TESTS)
        check("level", self.level, is_fraction(self.level), "a number in (0, 1)")
        for name, least in (("n_replicates", 1), ("seed", 0)):
            value = getattr(self, name)
            check(name, value, is_count(value) and value >= least, f"an int >= {least}")
        given = self.n_permutations
        if given is None:
            reason = f"as p-values of the {MOST_PERMUTATIONS} permutations made at most are no smaller"
            check("level", self.level, self.level >= SMALLEST_LEVEL, f"at least {SMALLEST_LEVEL:g}, {reason}")
            return
        check("n_permutations", given, is_count(given) and given >= 1, "None or an int >= 1")
        check("n_permutations", given, given <= MOST_GIVEN, f"at most {MOST_GIVEN}, which take hours")
        if self.level * (given + 1) < 1:
            raise ValueError(
                f"n_permutations={given}: expected at least {np.ceil(1 / self.level) - 1:.0f} for a test "
                f"at level {self.level:g}, as p-values are no smaller than 1/(1 + n_permutations)"
            )

    @property
    def permutations(self) -> int:
        """How many permutations there are."""
        return permutations_for(self.level) if self.n_permutations is None else self.n_permutations

    @property
    def needs_grid(self) -> bool:
        """Whether the rules are of the paper's kind: they compare candidates of lengthscale and penalty alone."""
        plain = self.criterion == "interval-score" and self.independence == "features"
        return not plain or self.symmetry_rule in COMPARING_TESTS

    @property
    def symmetry_rule(self) -> str | None:
        """The symmetry test that "auto" stands for."""
        return AUTO_TEST if self.symmetry_test == "auto" else self.symmetry_test

    def refine(self, policy: RuleSearch, start: Candidate) -> None:
        """Try more candidates near the best of the grid at its penalty; here none, in rules of your own any."""


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
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
    width_penalty: float = 10.0,
    learning_coverage: float = 1.0,
    **options: Any,
) -> TuningReport:
    """Choose lengthscale and symmetry penalty from the data.

    Tests that need no search come first, and leave less to search: symmetric bands only if residuals show no skew, and
    nothing if besides their sizes do not depend on the features.

    Parameters
    ----------
    points : array-like of shape (n, d)
        What the kernel sees; the kernel matrix (n, n) if it is precomputed.
    residuals : array-like of shape (n,)
        Of the point model on the learning rows. Of more than 1000 rows a random sample is tested and searched on.
    kernel : str or kernel object
        A kernel object, a function and "precomputed" have no lengthscale to search for.
    lengthscale, symmetry_penalty
        "auto", or fixed while the other is searched for: as in `learn_bands`.
    conformal_score : {"added", "scaled"}
        What calibration will make of the bands, which the interval score makes of them too.
    rules : Rules, optional
        Criterion, tests and level.
    cv, n_jobs, random_state, verbose
        As in `choose`; the folds are the same for every candidate.
    symmetry_kind, normalize, width_penalty, learning_coverage, **options
        As in `learn_bands`, with its trace_penalty, frobenius_penalty and constant.

    Returns
    -------
    TuningReport
        Of an interrupted search as in `choose`.
    """
    check_choice("conformal_score", conformal_score, tuple(SCORES))
    places, r = np.asarray(points), np.asarray(residuals, dtype=float)  # a kernel function may compare anything
    if places.ndim == 0 or r.shape != (len(places),) or len(r) < 1:
        raise ValueError(f"points and residuals have shapes {places.shape} and {r.shape}: expected n >= 1 rows of each")
    if not np.isfinite(r).all():
        raise ValueError("residuals hold NaN or infinite entries: expected finite numbers")
    if normalize is True:
        normalize = penalty_scale(places, r, kernel) if r.any() else False
    policy = RuleSearch(
        rules or Rules(),
        kernel,
        lengthscale,
        candidate_penalties(symmetry_penalty, lengthscale),
        (width_penalty, learning_coverage),
        conformal_score,
    )
    return choose(
        RowFacts(places, np.zeros(len(r)), {}),
        r,
        policy,
        options={"kernel": kernel, "symmetry_kind": symmetry_kind, "normalize": normalize, **options},
        cv=cv,
        random_state=check_random_state(random_state),
        n_jobs=n_jobs,
        verbose=verbose,
    )


# Candidates


def candidate_lengthscales(points: AnyArray, kernel: Any, lengthscale: Any, held: AnyArray) -> list[Any]:
    """Six lengthscales from 0.1 to 3.2 medians, upwards if held-out points would have too little support, or the given.

    The median is that of all points, not of each fold's.
    """
    if not isinstance(lengthscale, str):
        return [Given(lengthscale)]
    if not isinstance(kernel, str) or kernel == "precomputed":
        return [Given("median")]  # stands for: as the kernel has it
    numbers = np.asarray(points, dtype=float)
    median = median_lengthscale(numbers)
    if lengthscale == "median":
        return [median]
    others, new = np.setdiff1d(np.arange(len(numbers)), held)[:SUPPORT_ROWS], held[:SUPPORT_ROWS]
    first = FACTORS[0]
    while first < FACTORS[-1]:
        k = resolve_kernel(kernel, first * median, numbers)
        K, cross = k(numbers[others], numbers[others]), k(numbers[others], numbers[new])
        K[np.diag_indices_from(K)] += JITTER
        support = np.einsum("ij,ij->j", cross, cho_solve(cho_factor(K, lower=True), cross))
        if support.mean() >= MIN_SUPPORT:
            break
        first *= 1.25
    return [float(ell) for ell in median * np.geomspace(first, max(FACTORS[-1], 4 * first), len(FACTORS))]


def candidate_penalties(penalty: Any, lengthscale: Any) -> tuple[Any, ...]:
    """The grid, or the one given. Sides with lengthscales of their own have no symmetric limit."""
    known = (("lengthscale", lengthscale, ("auto", "median")), ("symmetry_penalty", penalty, ("auto",)))
    for name, value, words in known:
        if isinstance(value, str) and value not in words:
            raise ValueError(f"{name}={value!r}: expected 'auto' or what learn_bands takes")
    if not isinstance(penalty, str):
        return (tuple(penalty) if isinstance(penalty, list) else penalty,)
    sides = [np.asarray(side) for side in lengthscale.values()] if isinstance(lengthscale, dict) else []
    if any(not np.array_equal(side, sides[0]) for side in sides):
        return tuple(each for each in PENALTIES if not is_symmetric(each))
    return PENALTIES


@dataclass(eq=False)
class RuleSearch:
    """What is open to rules, and how they search and decide."""

    rules: Rules
    kernel: Any  # this and the lengthscale as in `tune`
    lengthscale: Any
    penalties: tuple[Any, ...]  # candidates of the symmetry penalty
    cost: tuple[float, float]  # width penalty and learning coverage
    conformal_score: str = "added"
    search: Search = field(init=False)

    coarse, most_rows, least_rows = COARSE, SEARCH_ROWS, MIN_ROWS

    def begin(self, search: Search) -> None:
        """Whatever is asked is evaluated by this search."""
        self.search, self.criterion = search, self.rules.criterion
        self.tried: dict[Candidate, None] = {}
        self.values: dict[tuple[Candidate, int], float] = {}
        self.independence: TestResult | None = None
        self.symmetry: TestResult | None = None
        named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        self.is_open = named and isinstance(self.lengthscale, str) and self.lengthscale == "auto"
        points = search.facts.points
        self.lengthscales = candidate_lengthscales(points, self.kernel, self.lengthscale, search.folds[0])

    def run(self) -> dict[str, Any]:
        """Early tests, a grid, late tests."""
        rules, r = self.rules, self.search.r
        # 1. Tests that need no search: constant bands if they find nothing, symmetric ones alone without skew.
        has_sides = len(self.penalties) > 1 and any(is_symmetric(penalty) for penalty in self.penalties)
        try:
            places = np.asarray(self.search.facts.points, dtype=float).reshape(len(r), -1)
        except (TypeError, ValueError):  # no numbers: all places count as one, which keeps the level of the tests
            places = np.zeros((len(r), 1))
        count, seed = rules.permutations, rules.seed
        if self.is_open and rules.independence == "features":
            near = [factor * median_lengthscale(places) for factor in PLACES]
            self.independence = feature_independence_test(places, r, near, n_permutations=count, random_state=seed)
        if has_sides and rules.symmetry_rule == "sign-flip":
            flips, ell, rng = max(FLIPS, count), median_lengthscale(places), self._generator()
            self.symmetry = sign_flip_test(places, r, ell, n_flips=flips, random_state=rng)
        if self._is_constant():
            return self._constant_bands()
        ells, penalties = list(self.lengthscales), self.penalties
        if self.independence is not None and not self._significant(self.independence):
            ells.append(np.inf)  # skewed noise may still be the same everywhere
        if self.symmetry is not None and not self._significant(self.symmetry):
            penalties = tuple(penalty for penalty in penalties if is_symmetric(penalty))
        # 2. The grid. If no test compares candidates: the smallest and the largest penalty with every lengthscale,
        # those between, the costly ones, with the best two of these, as their best lengthscales lie near.
        is_lean = rules.independence in ("features", None) and rules.symmetry_rule in ("sign-flip", None)
        ends = penalties[:: max(1, len(penalties) - 1)] if is_lean else penalties
        rows = f"{len(self.search.folds)} folds of {len(self.search.r)} rows"
        say(f"{len(ells)} lengthscales x {len(penalties)} symmetry penalties on {rows}")
        self.evaluate(ells, ends)
        if between := [penalty for penalty in penalties if penalty not in ends]:
            near = [self.best(end).lengthscale for end in ends]
            self.evaluate([ell for k, ell in enumerate(near) if k == 0 or ell is not near[0]], between)
        best = self.best()
        where = f"lengthscale {best.settings()['lengthscale']}, symmetry penalty {best.symmetry_penalty}"
        say(f"best of the grid: {self.criterion} {self.value(best):.4g} at {where}")
        if self.is_open:
            rules.refine(self, best)
            limit = [penalty for penalty in penalties if is_symmetric(penalty)]
            if self.symmetry is None and limit and not self.best().is_symmetric:
                rules.refine(self, self.best(limit[0]))  # which a test may yet choose instead
        # 3. Tests that compare candidates.
        return self._decided(has_sides)

    def evaluate(self, lengthscales: Sequence[Any], penalties: Sequence[Any]) -> list[Candidate]:
        """Every pair of a lengthscale and a symmetry penalty."""
        ells = [ell if isinstance(ell, (float, Given)) else Given(ell) for ell in lengthscales]
        pairs = [Candidate(NO_SCALE, INPUTS, ell, *self.cost, penalty) for ell in ells for penalty in penalties]
        self.tried.update(dict.fromkeys(pairs))
        self.search.evaluate(pairs)
        return pairs

    def held_out(self, candidate: Candidate) -> HeldOut:
        """Its bands at every row that the folds have held out."""
        return self.search.held_out(candidate, self.conformal_score, self._folds())

    def value(self, candidate: Candidate) -> float:
        """The criterion, minus infinity if a fold failed; remembered."""
        key = candidate, self._folds()
        if key not in self.values:
            failed = self.search.failed(*key)
            self.values[key] = -np.inf if failed else CRITERIA[self.criterion](self.held_out(candidate))
        return self.values[key]

    def found(self) -> list[Candidate]:
        """Candidates that all folds have seen; of an early interruption, what some folds have."""
        return [each for each in self.tried if self.search.knows(each, self._folds())]

    def best(self, penalty: Any = None) -> Candidate:
        """The first of those with the largest criterion, at one penalty or at all."""
        return max(
            (each for each in self.found() if penalty is None or each.symmetry_penalty == penalty), key=self.value
        )

    def rows(self) -> list[dict[str, Any]]:
        """Lines of the report."""
        return [
            {
                "lengthscale": each.settings()["lengthscale"],
                "symmetry_penalty": each.symmetry_penalty,
                "criterion": self.value(each),
                "uncertified": self.search.uncertified(each, self._folds()),
            }
            for each in self.found()
        ]

    def _folds(self) -> int:
        """How many of the first folds something is known of."""
        counts = range(len(self.search.folds), 0, -1)
        return next((n for n in counts if any(self.search.knows(each, n) for each in self.tried)), len(counts))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self.rules.seed, 1])  # not the permutations of the independence test again

    def _significant(self, test: TestResult | None) -> bool:
        return test is not None and test.p_value <= self.rules.level

    def _is_constant(self) -> bool:
        """Neither do sizes depend on the features nor is there skew, whose direction might."""
        independence = self.independence
        return independence is not None and not (self._significant(independence) or self._significant(self.symmetry))

    # What is decided

    def _decided(self, has_sides: bool) -> dict[str, Any]:
        """The lengthscale and the penalty to use, after the search."""
        rules, found, best = self.rules, self.found(), self.best()
        if self.independence is None and self.is_open and rules.independence is not None:
            held = [self.held_out(each) for each in found]
            self.independence = independence_test(
                [each.widths for each in held],
                [each.distances for each in held],
                selected=found.index(best) if rules.independence == "naive" else None,
                scale_free=self.criterion == "dcor",
                n_permutations=rules.permutations,
                random_state=rules.seed,
            )
            if not self._significant(self.independence):
                return self._constant_bands()
        if self._is_constant():
            return self._constant_bands()
        strongest = {penalty: self.best(penalty) for penalty in dict.fromkeys(each.symmetry_penalty for each in found)}
        replicates = None
        if self.symmetry is None and has_sides and rules.symmetry_rule is not None:  # of the best of each penalty
            rng, criterion, count = self._generator(), CRITERIA[self.criterion], rules.permutations
            held = [self.held_out(each) for each in strongest.values()]
            n = len(held[0])
            if rules.symmetry_rule == "bootstrap":
                reference = [each.is_symmetric for each in strongest.values()].index(True)
                values = [lambda rows, each=each: criterion(each.take(rows)) for each in held]
                self.symmetry = bootstrap_test(values, n, reference, n_bootstraps=count, random_state=rng)
            else:
                size = rules.n_replicates, n
                replicates = np.array([[criterion(each.take(i)) for i in rng.integers(0, n, size)] for each in held])
                test = kruskal_wallis_test(replicates, n_permutations=max(LABELS, count), random_state=rng)
                self.symmetry = replace(test, name=f"kruskal-wallis of {rules.n_replicates} bootstrap replicates")
        if self.symmetry is not None and not self._significant(self.symmetry):
            best = next(each for each in strongest.values() if each.is_symmetric)
        text = self._reason(best.symmetry_penalty)
        if best.is_constant and self.is_open:
            text = text.removesuffix(".") + ", of constant width."
        return self._report(best, text, replicates)

    def interrupted(self) -> dict[str, Any]:
        """The best candidate that early tests allow: what is left of an interrupted run."""
        if self._is_constant():
            return self._constant_bands()
        allowed = [each for each in self.found() if each.is_symmetric]
        if self.symmetry is None or self._significant(self.symmetry) or not allowed:
            allowed = self.found()
        text = f"Interrupted: the best found so far by {self.criterion}."
        return self._report(max(allowed, key=self.value), text)

    def nothing_to_tell(self, n: int) -> dict[str, Any]:
        """Constant or symmetric bands, of n residuals that are not all zero."""
        kind = "bands of constant width" if self.is_open else "symmetric bands"
        words = f"Nothing can be told from {n} residuals: {kind}."
        return self._constant_bands(words if n else "All residuals are zero: bands of no width.")

    def _constant_bands(self, reason: str = "") -> dict[str, Any]:
        """Bands of constant width, the symmetric limit; what was given stays as it is."""
        # lengthscales of each side have no symmetric limit
        own = isinstance(self.lengthscale, dict) and not any(is_symmetric(each) for each in self.penalties)
        penalty = self.penalties[0] if own or len(self.penalties) == 1 else np.inf
        if self.independence is not None:
            finding = f"Sizes of residuals show no dependence on the features (p = {self.independence.p_value:.2g})"
            skew = "" if self.symmetry is None else f", and residuals no skew (p = {self.symmetry.p_value:.2g})"
            reason = f"{finding}{skew}: bands of constant width."
        ell = np.inf if self.is_open else self.lengthscales[0]
        return self._report(Candidate(NO_SCALE, INPUTS, ell, *self.cost, penalty), reason)

    def _report(self, chosen: Candidate, sentence: str, replicates: Array | None = None) -> dict[str, Any]:
        return {
            "lengthscale": chosen.settings()["lengthscale"],
            "symmetry_penalty": chosen.symmetry_penalty,
            "homoscedastic": chosen.is_constant and self.is_open,
            "independence": self.independence,
            "symmetry": self.symmetry,
            "replicates": replicates,
            "sentence": sentence,
        }

    def _reason(self, penalty: Any) -> str:
        """Why this penalty, or this lengthscale if the penalty was given."""
        test, significant = self.symmetry, True
        if len(self.penalties) == 1 and not self.is_open:
            return "Lengthscale and symmetry penalty as given."
        if len(self.penalties) == 1:
            found = self.independence
            reason = "" if found is None else f"Residuals depend on the features (p = {found.p_value:.2g}): "
            return reason + f"the best lengthscale by {self.criterion} at the given symmetry penalty."
        reason = f"Best by {self.criterion}: "
        if test is not None:
            significant = self._significant(test)
            finding = next(words for name, words in FINDINGS.items() if test.name.startswith(name))[significant]
            reason = f"{finding} (p = {test.p_value:.2g}): "
        if is_symmetric(penalty):
            yet = test is not None and significant
            return reason + (f"yet symmetric bands are best by {self.criterion}." if yet else "symmetric bands.")
        if not np.any(penalty):
            return reason + "independent bands below and above."
        return reason + f"asymmetric bands, pulled together by a penalty of {penalty:.3g}."
