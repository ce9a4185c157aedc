"""Table beyond the paper: tuning criteria and symmetry rules on the synthetic cases."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import OURS
from sosbands.experiments.synthetic_runs import synthetic_rows

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
    return [
        row
        for criterion, test in COMBINATIONS
        for row in synthetic_rows(config, methods=(OURS,), criterion=criterion, symmetry_test=test)
    ]
