"""TuningReport: what the search saw, what the tests said, what was decided and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sosbands._types import Array, IntArray
from sosbands.stats import TestResult

if TYPE_CHECKING:
    import pandas

TOO_LITTLE = "too little to prefer it"  # to bands with more freedom, or to symmetric ones where a test found skew


@dataclass(frozen=True, eq=False)
class TuningReport:
    """The result of tuning; printed, it gives the decision and the reasons.

    Attributes
    ----------
    evaluations : tuple of dict
        One row per candidate: what was tried of it (by the rules lengthscale and symmetry_penalty, by the automatic
        choice everything), criterion (the larger the better; minus infinity where a solve said nothing about its
        optimum) and uncertified (folds whose coarse solve missed its tolerance).
    criterion : str
    independence : TestResult or None
        Do sizes of residuals depend on the features (or on held-out widths, by the rule in use)? None if the
        lengthscale was given, no test was asked for, or there are too few residuals.
    symmetry : TestResult or None
        Is there a reason for asymmetric bands? None if the penalty was given or no test was asked for.
    replicates : ndarray of shape (n_penalties, n_replicates) or None
        Replicates of the criterion for the Kruskal-Wallis rule.
    lengthscale, symmetry_penalty
        Decided, as `learn_bands` takes them.
    base_scale, noise_features, width_penalty, learning_coverage, conformal_score
        Decided too by the automatic choice; None where they were given.
    reasons : tuple of str
        One sentence for each setting that was chosen, with what the best other value would have cost.
    timed_out : bool
        The time was over before everything had been tried; the decision rests on what had been.
    homoscedastic : bool
        Bands of constant width were chosen.
    sentence : str
        The decision in words.
    interrupted : bool
        The search was interrupted; the decision rests on what it had seen.
    rows : ndarray of int
        Positions of the rows searched on, increasing; of very many a sample.
    folds : tuple of ndarray of int
        Positions among `rows` that each fold holds out, the same for every candidate.
    seconds : float
    """

    evaluations: tuple[dict[str, Any], ...]
    criterion: str
    independence: TestResult | None
    symmetry: TestResult | None
    replicates: Array | None
    lengthscale: Any
    symmetry_penalty: Any
    homoscedastic: bool
    sentence: str
    interrupted: bool
    rows: IntArray
    folds: tuple[IntArray, ...]
    seconds: float
    base_scale: str | None = None
    noise_features: str | None = None
    width_penalty: float | None = None
    learning_coverage: float | None = None
    conformal_score: str | None = None
    reasons: tuple[str, ...] = ()
    timed_out: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows searched on."""
        return len(self.rows)

    @property
    def best_value(self) -> float:
        """The largest criterion of any candidate."""
        return float(max(row["criterion"] for row in self.evaluations))

    def to_frame(self) -> pandas.DataFrame:
        """The evaluations as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(list(self.evaluations))

    def __repr__(self) -> str:
        """The decision and how it came about."""
        lines = [f"TuningReport: {self.sentence}"]
        for name, result in (("independence", self.independence), ("symmetry", self.symmetry)):
            if result is not None:
                lines.append(f"  {name:12} p = {result.p_value:.3g} ({result.name}, {result.n_permutations} resamples)")
        lines += [f"  {reason}" for reason in self.reasons]
        missed = sum(row["uncertified"] for row in self.evaluations)
        lines.append(
            f"  search       {len(self.evaluations)} candidates by {self.criterion}, {self.seconds:.2g} s"
            + (f", {missed} coarse solves uncertified" if missed else "")
            + (", interrupted" if self.interrupted else "")
            + (", out of time" if self.timed_out else "")
        )
        return "\n".join(lines)


def reasons_of(
    chosen: dict[str, Any], others: Sequence[dict[str, Any]], names: Iterable[str], beyond: Sequence[str]
) -> tuple[str, ...]:
    """For each setting its value, and by how much the best other row (by "worth", with doubts) is worse held-out.

    `beyond` names the settings whose value lies beyond the grid that the search began with.
    """

    def same(one: Any, other: Any) -> bool:
        plain = np.ndim(one) == np.ndim(other) == 0 and not isinstance(one, dict)
        return one is other or (plain and bool(one == other))

    lines = []
    for name in names:
        rivals = [row for row in others if not same(row[name], chosen[name]) and np.isfinite(row["worth"])]
        if not rivals:
            continue
        second = max(rivals, key=lambda row: row["worth"])
        loss = 100 * np.expm1(chosen["criterion"] - second["criterion"])
        words = f"{loss:.1f} % worse" if loss > 0 else f"{-loss:.1f} % better, {TOO_LITTLE}"
        words = "the same" if abs(loss) < 0.05 else words
        place = " (beyond the first grid)" if name in beyond else ""
        told, other = (f"{v:.3g}" if isinstance(v, (int, float)) else str(v) for v in (chosen[name], second[name]))
        lines.append(f"{name.replace('_', ' ')} {told}{place}: with {other}, {words}")
    return tuple(lines)
