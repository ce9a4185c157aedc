"""From the evaluations to a decision: first whether widths matter, then whether sides differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.kernels import median_lengthscale
from sosbands.stats import TestResult, bootstrap_test, independence_test, kruskal_wallis_test, sign_flip_test
from sosbands.stats.independence import feature_independence_test
from sosbands.tuning.criterion import CRITERIA, Evaluation, TuningData

SYMMETRY_TESTS = ("auto", "kruskal-wallis", "sign-flip", "bootstrap", None)
INDEPENDENCE_TESTS = ("features", "max-statistic", "naive", None)
PLACES = (0.2, 0.5, 1.25)  # lengthscales of the feature test, in medians
AUTO_TEST = "sign-flip"  # the evidence is in docs/tuning.md
# What a symmetry test says, without and with significance.
FINDINGS = {
    "sign-flip": ("Residuals show no skew", "Residuals are skewed"),
    "kruskal-wallis": ("No symmetry penalty stands out", "The symmetry penalties differ"),
    "bootstrap": ("Asymmetric bands gain nothing that could not be chance", "Asymmetric bands gain"),
}


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


@dataclass(frozen=True)
class Rules:
    """How to decide.

    The paper's rules are ``Rules(symmetry_test="kruskal-wallis", independence="naive")``.

    Attributes
    ----------
    criterion : {"hsic", "dcor", "interval-score"}
        HSIC is the paper's, which also rewards wide bands; the other two are ours.
    symmetry_test : {"auto", "kruskal-wallis", "sign-flip", "bootstrap", None}
        None always takes the best penalty; "auto" is "sign-flip".
    level : float
        Of both tests.
    independence : {"features", "max-statistic", "naive", None}
        Whether the sizes of the residuals depend on the features (exact), or held-out residuals on held-out widths:
        over all candidates, or at the best one as if it had not been searched for. The last two reject too often, as
        every residual has a part in the widths of the others; see docs/tuning.md.
    n_permutations : int
        Of the independence test.
    n_replicates : int
        Bootstrap replicates of the criterion for each penalty in the Kruskal-Wallis test.
    seed : int
        Of the tests; the folds have their own.
    """

    criterion: str = "hsic"
    symmetry_test: str | None = "auto"
    level: float = 0.05
    independence: str | None = "features"
    n_permutations: int = 199
    n_replicates: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        choices = {"criterion": CRITERIA, "symmetry_test": SYMMETRY_TESTS, "independence": INDEPENDENCE_TESTS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected one of {list(allowed)}")
        if not 0 < self.level < 1:
            raise ValueError(f"level={self.level!r}: expected a number in (0, 1)")
        if self.n_permutations < 1 or self.n_replicates < 1:
            raise ValueError("n_permutations and n_replicates: expected at least 1")


def is_symmetric(penalty: Any) -> bool:
    """One shared function: the penalty, or a part of the pair, is infinite."""
    return bool(np.isinf(penalty).any())


def decide(data: TuningData, evaluations: Sequence[Evaluation], rules: Rules, *, test_widths: bool) -> Decision:
    """The lengthscale and the penalty to use.

    `test_widths` is False where the lengthscale was given, so that constant bands are no option.
    """
    values = np.array([each.value(rules.criterion) for each in evaluations])
    best = int(np.argmax(values))
    strongest = _best_per_penalty(evaluations, values)
    independence = _test_independence(data, evaluations, best, rules) if test_widths else None
    if independence is not None and independence.p_value > rules.level:
        penalty = evaluations[best].symmetry_penalty if len(strongest) == 1 else np.inf
        text = f"Residuals show no dependence on the features (p = {independence.p_value:.2g}): "
        return Decision(np.inf, penalty, True, independence, None, None, text + "bands of constant width.")
    symmetric = next((penalty for penalty in strongest if is_symmetric(penalty)), None)
    test, replicates = None, None
    if len(strongest) > 1 and symmetric is not None:
        test, replicates = _test_symmetry(data, evaluations, strongest, rules)
    chosen = evaluations[best]
    if test is not None and test.p_value > rules.level:
        chosen = evaluations[strongest[symmetric]]
    if len(strongest) == 1:
        text = _given_words(independence, rules, test_widths)
    else:
        text = _penalty_words(chosen.symmetry_penalty, test, rules)
    return Decision(chosen.lengthscale, chosen.symmetry_penalty, False, independence, test, replicates, text)


def _best_per_penalty(evaluations: Sequence[Evaluation], values: Array) -> dict[Any, int]:
    """Position of the best lengthscale of each penalty."""
    best: dict[Any, int] = {}
    for position, each in enumerate(evaluations):
        known = best.get(each.symmetry_penalty)
        if known is None or values[position] > values[known]:
            best[each.symmetry_penalty] = position
    return best


def _test_independence(
    data: TuningData, evaluations: Sequence[Evaluation], best: int, rules: Rules
) -> TestResult | None:
    if rules.independence is None:
        return None
    if rules.independence == "features":
        places = _places(data)
        ells = [factor * median_lengthscale(places) for factor in PLACES]
        options = {"n_permutations": rules.n_permutations, "random_state": rules.seed}
        return feature_independence_test(places, data.r, ells, **options)
    return independence_test(
        [each.widths for each in evaluations],
        [each.residuals for each in evaluations],
        selected=best if rules.independence == "naive" else None,
        scale_free=rules.criterion == "dcor",
        n_permutations=rules.n_permutations,
        random_state=rules.seed,
    )


def _test_symmetry(
    data: TuningData, evaluations: Sequence[Evaluation], strongest: dict[Any, int], rules: Rules
) -> tuple[TestResult | None, Array | None]:
    rule = AUTO_TEST if rules.symmetry_test == "auto" else rules.symmetry_test
    if rule is None:
        return None, None
    rng = np.random.default_rng([rules.seed, 1])  # not the permutations of the independence test again
    if rule == "sign-flip":
        places = _places(data)
        return sign_flip_test(places, data.r, median_lengthscale(places), random_state=rng), None
    pairs = [(evaluations[k].widths, evaluations[k].residuals) for k in strongest.values()]
    criterion = CRITERIA[rules.criterion]
    if rule == "bootstrap":
        reference = [is_symmetric(penalty) for penalty in strongest].index(True)
        return bootstrap_test(criterion, pairs, reference, random_state=rng), None
    n, count = len(data.r), rules.n_replicates
    replicates = np.array([[criterion(W[i], R[i]) for i in rng.integers(0, n, (count, n))] for W, R in pairs])
    test = kruskal_wallis_test(replicates, random_state=rng)
    return replace(test, name=f"kruskal-wallis of {count} bootstrap replicates"), replicates


def _places(data: TuningData) -> Array:
    """Rows of numbers by which the symmetry test tells places apart; all alike if the points are no numbers.

    Any choice keeps its level. The rows of a precomputed kernel matrix serve as they are.
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
