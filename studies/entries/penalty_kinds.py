"""Figure: the operator and the training-set penalty, on case 1 and on Diabetes."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.drawing.box_panels import LABELS, draw_boxes
from studies.drawing.caption_words import BOXES, COVERAGE_GAP, count_words, failure_words, span_words
from studies.drawing.figures import COLOURS, add_caption, column, grouped, new_figure, succeeded
from studies.drawing.panels import BLACK, PURPLE, empty_figure, legend_above, set_text
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER
from studies.runs.real_runs import LEVEL, real_rows
from studies.runs.synthetic_runs import synthetic_rows

KINDS = {"training": "training-set penalty", "operator": "operator penalty"}
FIXED = 100.0  # a finite penalty for both: tuning often takes none or an infinite one, where the kinds are the same
KIND_COLOURS = {"training": COLOURS[PAPER], "operator": PURPLE}


def compute(config: Config) -> Rows:
    """Both penalties on the same draws and splits, tuned and at a fixed penalty."""
    axes: dict[str, dict[str, Any]] = {"training": {}, "operator": {"symmetry_kind": "operator"}}
    runs = [(kind, axes[kind] | fixed) for kind in axes for fixed in ({}, {"fixed_penalty": FIXED})]
    return [
        {**row, "kind": kind}
        for kind, own in runs
        for row in (
            *synthetic_rows(config, cases=(1,), methods=(PAPER,), **own),
            *real_rows(config, (PAPER,), ("Diabetes",), **own),
        )
    ]


def draw(rows: Rows) -> Any:
    """Above the synthetic case, below the data set, each tuned and fixed; width on the left, local coverage right."""
    good = succeeded(rows)
    data = grouped([{**row, "data": _data(row)} for row in good], "data")
    if not data:
        return empty_figure(rows)
    figure, axes = new_figure(len(data), 2, (7.0, 1.3 + 1.3 * len(data)), sharey="row")
    lost = 0
    for (left, right), (name, own) in zip(axes, data.items(), strict=True):
        kinds = {kind: [row for row in own if row["kind"] == kind] for kind in KINDS}
        lost += draw_boxes(
            left, {kind: column(each, "mean_width") for kind, each in kinds.items()}, KIND_COLOURS, KINDS
        )
        synthetic = "case" in own[0]
        local = {
            kind: np.concatenate([column(each, "acg_lower"), column(each, "acg_upper")]) if synthetic else _worst(each)
            for kind, each in kinds.items()
        }
        lost += draw_boxes(right, local, KIND_COLOURS, KINDS)
        if not synthetic:
            right.axvline((1 + LEVEL) / 2, color=BLACK, lw=1.0, ls="--", zorder=4, label="nominal, one side")
        sizes = span_words(row["n" if synthetic else "n_learning"] for row in own)
        set_text(left, title=f"{name}, n = {sizes}", x=LABELS["mean_width"], place="left")
        set_text(right, x=COVERAGE_GAP if synthetic else "worst-set coverage, lower and upper")
    legend_above(figure, axes.flat)
    add_caption(
        figure,
        f"The two symmetry penalties, 90 % intervals, over {_counts(rows)}; the same data for both. Tuned: penalty and "
        f"lengthscale by the paper's rule, apart for each kind; otherwise this penalty, in normalised units, and the "
        f"median distance as lengthscale. "
        f"Left: mean width; right: combined local coverage gap ({COVERAGE_GAP}) where the law is known, otherwise the "
        f"smallest coverage over sets of neighbours, of lower and upper ends pooled. {BOXES}"
        + (f" Values that are not finite, left out: {lost}." if lost else "")
        + failure_words(rows),
    )
    return figure


def _data(row: dict[str, Any]) -> str:
    name = f"case {row['case']}" if "case" in row else str(row["dataset"])
    return f"{name}, {'penalty ' + format(row['fixed_penalty'], 'g') if 'fixed_penalty' in row else 'tuned'}"


def _worst(rows: Rows) -> Any:
    return np.concatenate([column(rows, f"worst_set_coverage_{side}") for side in ("lower", "upper")])


def _counts(rows: Rows) -> str:
    """Repetitions of each kind, for each source of data."""
    sources = grouped([{**row, "data": _data(row)} for row in rows], "data")
    return " and ".join(f"{count_words(own, 'kind')} of {name}" for name, own in sources.items())
