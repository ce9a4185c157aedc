"""From the evaluations to a decision: first whether widths matter, then whether sides differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sosbands._types import Array
from sosbands.kernels import median_lengthscale
from sosbands.stats import TestResult, bootstrap_test, independence_test, kruskal_wallis_test, sign_flip_test
from sosbands.tuning.criterion import CRITERIA, Evaluation, TuningData

RULES = ("auto", "kruskal-wallis", "sign-flip", "bootstrap", None)
AUTO_RULE = "sign-flip"  # the evidence is in docs/tuning.md


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

    Attributes
    ----------
    criterion : {"hsic", "dcor", "interval-score"}
        HSIC is the paper's, which also rewards wide bands; the other two are ours.
    symmetry_test : {"auto", "kruskal-wallis", "sign-flip", "bootstrap", None}
    level : float
    independence : {"max-statistic", "naive", None}
        The naive test ignores that the best candidate was searched for.
    n_permutations, n_replicates : int
    seed : int
    """

    criterion: str = "hsic"
    symmetry_test: str | None = "auto"
    level: float = 0.05
    independence: str | None = "max-statistic"
    n_permutations: int = 199
    n_replicates: int = 30
    seed: int = 0


def decide(data: TuningData, evaluations: Sequence[Evaluation], rules: Rules, *, test_widths: bool) -> Decision:
    """The lengthscale and the penalty to use.

    `test_widths` is False where the lengthscale was given, so that constant bands are no option.
    """
    values = np.array([each.value(rules.criterion) for each in evaluations])
    best = int(np.argmax(values))
    independence = _test_independence(evaluations, best, rules) if test_widths else None
    if independence is not None and independence.p_value > rules.level:
        penalties = {each.symmetry_penalty for each in evaluations}
        penalty = next(iter(penalties)) if len(penalties) == 1 else np.inf
        text = f"Residuals do not depend on the features (p = {independence.p_value:.2g}): bands of constant width."
        return Decision(np.inf, penalty, True, independence, None, None, text)
    strongest = _best_per_penalty(evaluations, values)
    if len(strongest) == 1 or np.inf not in strongest:
        text = _width_words(independence) + f"the best lengthscale by {rules.criterion} at the given symmetry penalty."
        return _chosen(evaluations[best], independence, None, None, text)
    test, replicates = _test_symmetry(data, evaluations, strongest, rules)
    if test is not None and test.p_value > rules.level:
        text = f"Residuals show no skew (p = {test.p_value:.2g}): symmetric bands."
        return _chosen(evaluations[strongest[np.inf]], independence, test, replicates, text)
    return _chosen(evaluations[best], independence, test, replicates, _penalty_words(evaluations[best], test, rules))


def _chosen(
    evaluation: Evaluation, independence: TestResult | None, symmetry: TestResult | None, replicates: Any, text: str
) -> Decision:
    return Decision(
        evaluation.lengthscale, evaluation.symmetry_penalty, False, independence, symmetry, replicates, text
    )


def _best_per_penalty(evaluations: Sequence[Evaluation], values: Array) -> dict[Any, int]:
    """Position of the best lengthscale of each penalty."""
    best: dict[Any, int] = {}
    for position, each in enumerate(evaluations):
        known = best.get(each.symmetry_penalty)
        if known is None or values[position] > values[known]:
            best[each.symmetry_penalty] = position
    return best


def _test_independence(evaluations: Sequence[Evaluation], best: int, rules: Rules) -> TestResult | None:
    if rules.independence is None:
        return None
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
    rule = AUTO_RULE if rules.symmetry_test == "auto" else rules.symmetry_test
    if rule is None:
        return None, None
    if rule == "sign-flip":
        return sign_flip_test(data.points, data.r, median_lengthscale(data.points), random_state=rules.seed), None
    pairs = [(evaluations[k].widths, evaluations[k].residuals) for k in strongest.values()]
    criterion = CRITERIA[rules.criterion]
    if rule == "bootstrap":
        reference = list(strongest).index(np.inf)
        return bootstrap_test(criterion, pairs, reference, random_state=rules.seed), None
    rng = np.random.default_rng(rules.seed)
    n = len(data.r)
    replicates = np.array(
        [[criterion(W[i], R[i]) for i in rng.integers(0, n, (rules.n_replicates, n))] for W, R in pairs]
    )
    return kruskal_wallis_test(replicates, random_state=rules.seed), replicates


def _width_words(independence: TestResult | None) -> str:
    if independence is None:
        return "Lengthscale as given; "
    return f"Residuals depend on the features (p = {independence.p_value:.2g}): "


def _penalty_words(best: Evaluation, test: TestResult | None, rules: Rules) -> str:
    reason = "" if test is None else f"Residuals are skewed (p = {test.p_value:.2g}): "
    if np.isinf(best.symmetry_penalty):
        return reason + f"yet symmetric bands follow them best by {rules.criterion}."
    if best.symmetry_penalty == 0:
        return reason + "independent bands below and above."
    return reason + f"asymmetric bands, pulled together by a penalty of {best.symmetry_penalty:.3g}."
