"""Table beyond the paper: tuning criteria and symmetry rules on the synthetic cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sosbands.comparison import TextTable
from studies.drawing.caption_words import number_words
from studies.drawing.figures import column, grouped, succeeded
from studies.runs.config import Config, Rows
from studies.runs.methods import HARD
from studies.runs.synthetic_runs import CASES, synthetic_rows

SYMMETRIC, SKEWED = (1, 2, 6), (3, 4, 5)  # noise of the cases
# criterion and symmetry rule; "none" always takes the best penalty
COMBINATIONS = (
    ("hsic", "kruskal-wallis"),
    ("hsic", "sign-flip"),
    ("hsic", "none"),
    ("dcor", "sign-flip"),
    ("dcor", "none"),
    ("interval-score", "kruskal-wallis"),
    ("interval-score", "sign-flip"),
    ("interval-score", "bootstrap"),
    ("interval-score", "none"),
)


def compute(config: Config) -> Rows:
    """All combinations on the same draws."""
    repetitions = config.pick(quick=1, paper=5)  # 54 fits for each
    return [
        row
        for criterion, test in COMBINATIONS
        for row in synthetic_rows(config, CASES, (HARD,), repetitions, criterion=criterion, symmetry_test=test)
    ]


def draw(rows: Rows) -> TextTable:
    """A row per criterion and symmetry rule.

    Widths are relative to the oracle's and distances to the oracle relative to those of the best combination of the
    case; all numbers are means over cases of means over repetitions.
    """
    best = _best_distances(rows)
    table, shown = [], []
    for (criterion, rule), own in grouped(rows, "criterion", "symmetry_test").items():
        runs = succeeded(own)
        cases = grouped(runs, "case")
        summary: dict[str, Any] = {
            "criterion": criterion,
            "symmetry_test": rule,
            "cases": len(cases),
            "runs": len(runs),
            "failed": len(own) - len(runs),
            "width": _mean(
                [np.mean(column(each, "mean_width") / column(each, "oracle_width")) for each in cases.values()]
            ),
            "acg_combined": _mean([np.mean(column(each, "acg_combined")) for each in cases.values()]),
            "rmse": _mean([np.mean(column(each, "rmse")) / best[case] for case, each in cases.items()]),
            "asymmetric_if_symmetric": _asymmetric(cases, SYMMETRIC),
            "asymmetric_if_skewed": _asymmetric(cases, SKEWED),
        }
        table.append(summary)
        shown.append(_shown(summary))
    note = (
        "Means over cases of means over draws, without intervals: small differences say nothing. All lines use the "
        "default residuals and test of dependence of this library; pen. kSoS of the other tables is not among them."
    )
    return TextTable(table, shown, note if table else "")


def _best_distances(rows: Rows) -> dict[int, float]:
    """Smallest mean distance to the oracle of each case, over the combinations."""
    best: dict[int, float] = {}
    for (case, _, _), own in grouped(succeeded(rows), "case", "criterion", "symmetry_test").items():
        best[case] = min(best.get(case, math.inf), float(column(own, "rmse").mean()))
    return best


def _asymmetric(cases: dict[int, Rows], some: tuple[int, ...]) -> float | None:
    """Per cent of the runs with a finite penalty, mean over some of the cases."""
    return _mean(
        [100 * np.mean(np.isfinite(column(own, "symmetry_penalty"))) for case, own in cases.items() if case in some]
    )


def _mean(numbers: list[Any]) -> float | None:
    return float(np.mean(numbers)) if numbers else None


def _shown(summary: dict[str, Any]) -> dict[str, Any]:
    return {
        "criterion": summary["criterion"],
        "symmetry rule": summary["symmetry_test"],
        "cases": summary["cases"],
        "runs": summary["runs"],
        "failed": summary["failed"],
        "width / oracle": number_words(summary["width"], ".3f"),
        "ACG^c": number_words(summary["acg_combined"], ".4f"),
        "RMSE / best": number_words(summary["rmse"], ".3f"),
        "% asymmetric, symmetric noise": number_words(summary["asymmetric_if_symmetric"], ".0f"),
        "% asymmetric, skewed noise": number_words(summary["asymmetric_if_skewed"], ".0f"),
    }
