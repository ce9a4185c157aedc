"""From tests and evaluations to a decision: first whether widths matter, then whether sides differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.kernels import median_lengthscale
from sosbands.stats import TestResult, independence_test, kruskal_wallis_test, sign_flip_test
from sosbands.stats.independence import feature_independence_test
from sosbands.stats.symmetry import resampled_gain_test
from sosbands.tuning.candidates import is_symmetric
from sosbands.tuning.criterion import Evaluation, TuningData
from sosbands.tuning.held_out import CRITERIA
from sosbands.tuning.rules import FLIPS, Rules

LABELS = 2000  # permutations of the Kruskal-Wallis test, at least
PLACES = (0.2, 0.5, 1.25)  # lengthscales of the feature test, in medians
# What a symmetry test says, without and with significance.
FINDINGS = {
    "sign-flip": ("Residuals show no skew", "Residuals are skewed"),
    "kruskal-wallis": ("No symmetry penalty stands out", "The symmetry penalties differ"),
    "bootstrap": ("Asymmetric bands gain nothing that could not be chance", "Asymmetric bands gain"),
}
Replicate = Callable[[Sequence[Evaluation], int], Sequence[Evaluation]]


@dataclass(frozen=True, eq=False)
class Decision:
    """What was chosen, with the tests that led to it."""

    lengthscale: Any
    symmetry_penalty: Any
    homoscedastic: bool
    independence: TestResult | None
    symmetry: TestResult | None
    replicates: Array | None
    sentence: str


@dataclass(frozen=True, eq=False)
class Question:
    """What is open: the lengthscale (else constant bands are no option), the penalty, or both."""

    data: TuningData
    rules: Rules
    lengthscale: bool
    penalties: tuple[Any, ...]
    given: Any = None  # the lengthscale, if it is not open

    @property
    def has_sides(self) -> bool:
        """Both symmetric and asymmetric bands are candidates."""
        return len(self.penalties) > 1 and any(is_symmetric(penalty) for penalty in self.penalties)

    @property
    def is_lean(self) -> bool:
        """No test compares candidates, and no picture of all of them is asked for."""
        early = self.rules.independence in ("features", None) and self.rules.symmetry_rule in ("sign-flip", None)
        return early and not self.rules.complete

    def is_constant(self, independence: TestResult | None, symmetry: TestResult | None) -> bool:
        """Neither do sizes depend on the features nor is there skew, whose direction might."""
        return independence is not None and not self.significant(independence) and not self.significant(symmetry)

    def significant(self, test: TestResult | None) -> bool:
        """Whether a test was made and rejects."""
        return test is not None and test.p_value <= self.rules.level


def early_independence(question: Question) -> TestResult | None:
    """The test of dependence on the features, which needs no search; None if the rule is another."""
    if not question.lengthscale or question.rules.independence != "features":
        return None
    places, rules = _places(question.data), question.rules
    ells = [factor * median_lengthscale(places) for factor in PLACES]
    options = {"n_permutations": rules.n_permutations, "random_state": rules.seed}
    return feature_independence_test(places, question.data.r, ells, **options)


def early_symmetry(question: Question) -> TestResult | None:
    """The sign-flip test, which needs no search; None if the rule is another or there is nothing to choose."""
    if not question.has_sides or question.rules.symmetry_rule != "sign-flip":
        return None
    places = _places(question.data)
    rules = question.rules
    return sign_flip_test(
        places,
        question.data.r,
        median_lengthscale(places),
        n_flips=max(FLIPS, rules.n_permutations),
        random_state=_generator(rules),
    )


def constant_bands(question: Question, independence: TestResult | None, symmetry: TestResult | None) -> Decision:
    """Bands of constant width, the symmetric limit; what was given stays as it is."""
    penalty = question.penalties[0] if len(question.penalties) == 1 else np.inf
    if isinstance(question.given, dict) and not any(is_symmetric(each) for each in question.penalties):
        penalty = question.penalties[0]  # lengthscales of each side have no symmetric limit
    lengthscale = np.inf if question.lengthscale else question.given
    if not question.data.r.any():
        reason = "All residuals are zero: bands of no width."
    elif independence is None:
        kind = "bands of constant width" if question.lengthscale else "symmetric bands"
        reason = f"Nothing can be told from {len(question.data.r)} residuals: {kind}."
    else:
        finding = f"Sizes of residuals show no dependence on the features (p = {independence.p_value:.2g})"
        skew = "" if symmetry is None else f", and residuals no skew (p = {symmetry.p_value:.2g})"
        reason = f"{finding}{skew}: bands of constant width."
    return Decision(lengthscale, penalty, question.lengthscale, independence, symmetry, None, reason)


def best_without_tests(
    question: Question, evaluations: Sequence[Evaluation], independence: TestResult | None, symmetry: TestResult | None
) -> Decision:
    """The best candidate that early tests allow: what is left of an interrupted run."""
    if question.is_constant(independence, symmetry):
        return constant_bands(question, independence, symmetry)
    allowed = [each for each in evaluations if is_symmetric(each.symmetry_penalty)]
    if symmetry is None or question.significant(symmetry) or not allowed:
        allowed = list(evaluations)
    chosen = allowed[int(np.argmax([each.value(question.rules.criterion) for each in allowed]))]
    text = f"Interrupted: the best found so far by {question.rules.criterion}."
    return Decision(chosen.lengthscale, chosen.symmetry_penalty, False, independence, symmetry, None, text)


def decide(
    question: Question,
    evaluations: Sequence[Evaluation],
    independence: TestResult | None,
    symmetry: TestResult | None,
    replicate: Replicate,
) -> Decision:
    """The lengthscale and the penalty to use, after the search.

    `independence` and `symmetry` are the early tests; those that need the evaluations are made here. `replicate`
    evaluates candidates again on another split.
    """
    rules = question.rules
    values = np.array([each.value(rules.criterion) for each in evaluations])
    best = int(np.argmax(values))
    strongest = _best_per_penalty(evaluations, values)
    if independence is None and question.lengthscale and rules.independence is not None:
        independence = _width_test(evaluations, best, rules)
        if not question.significant(independence):
            return constant_bands(question, independence, symmetry)
    if question.is_constant(independence, symmetry):
        return constant_bands(question, independence, symmetry)
    replicates = None
    if symmetry is None and question.has_sides and rules.symmetry_rule is not None:
        symmetry, replicates = _criterion_test([evaluations[k] for k in strongest.values()], rules, replicate)
    chosen = evaluations[best]
    if symmetry is not None and not question.significant(symmetry):
        chosen = evaluations[next(k for penalty, k in strongest.items() if is_symmetric(penalty))]
    if len(question.penalties) == 1:
        text = _given_words(independence, rules, question.lengthscale)
    else:
        text = _penalty_words(chosen.symmetry_penalty, symmetry, rules)
    constant = isinstance(chosen.lengthscale, float) and np.isinf(chosen.lengthscale) and question.lengthscale
    if constant:
        text = text.removesuffix(".") + ", of constant width."
    return Decision(chosen.lengthscale, chosen.symmetry_penalty, constant, independence, symmetry, replicates, text)


def _best_per_penalty(evaluations: Sequence[Evaluation], values: Array) -> dict[Any, int]:
    """Position of the best lengthscale of each penalty."""
    best: dict[Any, int] = {}
    for position, each in enumerate(evaluations):
        known = best.get(each.symmetry_penalty)
        if known is None or values[position] > values[known]:
            best[each.symmetry_penalty] = position
    return best


def _width_test(evaluations: Sequence[Evaluation], best: int, rules: Rules) -> TestResult:
    return independence_test(
        [each.held.widths for each in evaluations],
        [each.held.distances for each in evaluations],
        selected=best if rules.independence == "naive" else None,
        scale_free=rules.criterion == "dcor",
        n_permutations=rules.n_permutations,
        random_state=rules.seed,
    )


def _criterion_test(
    candidates: Sequence[Evaluation], rules: Rules, replicate: Replicate
) -> tuple[TestResult, Array | None]:
    """Kruskal-Wallis or bootstrap test of the best candidate of each penalty."""
    rng = _generator(rules)
    criterion, held = CRITERIA[rules.criterion], [each.held for each in candidates]
    n = len(held[0])
    if rules.symmetry_rule == "bootstrap":
        reference = [is_symmetric(each.symmetry_penalty) for each in candidates].index(True)
        values = [lambda rows, each=each: criterion(each.take(rows)) for each in held]
        return resampled_gain_test(values, n, reference, n_bootstraps=rules.n_permutations, random_state=rng), None
    count = rules.n_replicates
    if rules.replicates == "splits":
        again = [[each.value(rules.criterion) for each in replicate(candidates, seed)] for seed in range(count)]
        replicates = np.array(again).T
    else:
        replicates = np.array([[criterion(each.take(i)) for i in rng.integers(0, n, (count, n))] for each in held])
    test = kruskal_wallis_test(replicates, n_permutations=max(LABELS, rules.n_permutations), random_state=rng)
    kind = "other splits" if rules.replicates == "splits" else "bootstrap replicates"
    return replace(test, name=f"kruskal-wallis of {count} {kind}"), replicates


def _generator(rules: Rules) -> np.random.Generator:
    return np.random.default_rng([rules.seed, 1])  # not the permutations of the independence test again


def _places(data: TuningData) -> Array:
    """Rows of numbers by which the early tests tell places apart; all alike if the points are no numbers.

    Any choice keeps their level. The rows of a precomputed kernel matrix serve as they are.
    """
    try:
        return np.asarray(data.points, dtype=float).reshape(len(data.r), -1)
    except (TypeError, ValueError):
        return np.zeros((len(data.r), 1))


def _given_words(independence: TestResult | None, rules: Rules, searched: bool) -> str:
    if not searched:
        return "Lengthscale and symmetry penalty as given."
    reason = "" if independence is None else f"Residuals depend on the features (p = {independence.p_value:.2g}): "
    return reason + f"the best lengthscale by {rules.criterion} at the given symmetry penalty."


def _penalty_words(penalty: Any, test: TestResult | None, rules: Rules) -> str:
    if test is None:
        reason, significant = f"Best by {rules.criterion}: ", True
    else:
        significant = test.p_value <= rules.level
        finding = next(words for name, words in FINDINGS.items() if test.name.startswith(name))[significant]
        reason = f"{finding} (p = {test.p_value:.2g}): "
    if is_symmetric(penalty):
        yet = test is not None and significant
        return reason + (f"yet symmetric bands are best by {rules.criterion}." if yet else "symmetric bands.")
    if not np.any(penalty):
        return reason + "independent bands below and above."
    return reason + f"asymmetric bands, pulled together by a penalty of {penalty:.3g}."
