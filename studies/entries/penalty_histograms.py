"""Figure: how often each symmetry penalty is selected, by sample size (case 2) and by point model (case 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands.tuning.rules import PENALTIES
from studies.drawing.caption_words import count_words, failure_words, penalty_words
from studies.drawing.figures import COLOURS, add_caption, grouped, new_figure, succeeded
from studies.drawing.panels import empty_figure, hide_rest, legend_above, set_text
from studies.runs.config import Config, Rows
from studies.runs.methods import HARD, PAPER, chosen, interval_method
from studies.runs.synthetic_runs import Draw

SETTINGS = ((2, 100, "gp"), (2, 200, "gp"), (1, 100, "gp"), (1, 100, "oracle"))  # case, n, point model
CONSTANT = "constant"
RULES = {PAPER: "paper's rule (HSIC, Kruskal-Wallis)", HARD: "hard bands (interval score, sign flips)"}
POINT_MODELS = {"gp": "Gaussian process", "oracle": "true mean"}


def compute(config: Config) -> Rows:
    """The paper's rule and ours on many draws."""
    tasks = [
        {"case": case, "n": n, "point_model": model, "method": method, "repetition": k}
        for method in (PAPER, HARD)
        for k in range(config.pick(quick=3, paper=500))
        for case, n, model in SETTINGS
    ]
    return config.run("penalty-histograms", choice_row, tasks, seed_axes=["case", "n", "repetition"])


def choice_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """What is selected on one draw, around a Gaussian process or around the true mean."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model = draw.case.location if axes["point_model"] == "oracle" else draw.point_model()
    bands = interval_method(axes["method"], draw.seed, estimator=model, width_penalty=draw.case.width_penalty)
    return chosen(bands.fit(draw.X, draw.y))


def draw(rows: Rows) -> Any:
    """A panel per setting: shares of the draws in which a penalty is selected, side by side for both rules."""
    good = succeeded(rows)
    settings = grouped(good, "case", "n", "point_model")
    if not settings:
        return empty_figure(rows)
    finite = sorted({*PENALTIES, *(row["symmetry_penalty"] for row in good if not row["constant_width"])} - {np.inf})
    bars = [*(penalty_words(penalty) for penalty in finite), "∞", CONSTANT]
    figure, axes = new_figure((len(settings) + 1) // 2, 2, (7.0, 1.4 + 1.8 * ((len(settings) + 1) // 2)), sharey=True)
    for place, (ax, ((case, n, model), own)) in enumerate(zip(axes.flat, settings.items(), strict=False)):
        for shift, (method, label) in zip((-0.2, 0.2), RULES.items(), strict=True):
            picked = [_bar(row) for row in own if row["method"] == method]
            if picked:
                heights = [picked.count(bar) / len(picked) for bar in bars]
                ax.bar(np.arange(len(bars)) + shift, heights, width=0.38, color=COLOURS[method], label=label)
        ax.set_xticks(range(len(bars)), bars)
        words = POINT_MODELS.get(model, model)
        label = "share of draws" if place % 2 == 0 else ""
        set_text(
            ax,
            title=f"case {case}, n = {n}, around the {words}",
            x="selected symmetry penalty" if place + 2 >= len(settings) else "",
            y=label,
        )
    hide_rest(list(axes.flat), len(settings))
    legend_above(figure, axes.flat)
    add_caption(
        figure,
        f"How often each symmetry penalty is selected, over {count_words(rows, 'case', 'n', 'point_model', 'method')} "
        "of each setting and rule, with the same draws for both rules; n learning points. Noise is symmetric in both "
        f"cases. Draws for which bands of constant width are chosen are counted apart.{failure_words(rows)}",
    )
    return figure


def _bar(row: dict[str, Any]) -> str:
    return CONSTANT if row["constant_width"] else penalty_words(row["symmetry_penalty"])
