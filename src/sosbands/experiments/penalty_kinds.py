"""Figure: the operator and the training-set penalty, on case 1 and on Diabetes."""

from __future__ import annotations

from sosbands.experiments.config import Config, Rows
from sosbands.experiments.methods import PAPER
from sosbands.experiments.real_runs import real_rows
from sosbands.experiments.synthetic_runs import synthetic_rows


def compute(config: Config) -> Rows:
    """Both penalties on the same draws and splits."""
    return [
        {**row, "kind": kind}
        for kind, axes in (("training", {}), ("operator", {"symmetry_kind": "operator"}))
        for row in (
            *synthetic_rows(config, cases=(1,), methods=(PAPER,), **axes),
            *real_rows(config, (PAPER,), ("Diabetes",), **axes),
        )
    ]
