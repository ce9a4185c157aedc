"""Figure: heteroscedastic Gaussian process and penalised bands with their metrics, two draws of cases 4 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from sosbands.datasets import synthetic_case
from studies.drawing.caption_words import cases_words, failure_words, span_words
from studies.drawing.curve_panels import draw_curves
from studies.drawing.figures import COLOURS, add_caption, grouped, new_figure, succeeded
from studies.drawing.panels import empty_figure, legend_above, set_text
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER, SHOWN, chosen
from studies.runs.synthetic_runs import Draw


def compute(config: Config) -> Rows:
    """Both methods on the same draws; the paper's text says case 4, its caption case 5."""
    tasks = [
        {"case": case, "n": config.pick(quick=100, paper=synthetic_case(case).n_learning), "method": method, "draw": k}
        for case in (4, 5)
        for k in range(2)
        for method in ("het-gp", PAPER)
    ]
    return config.run("two-seeds", curves_row, tasks, seed_axes=["case", "n", "draw"])


def curves_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Calibrated intervals on a grid, and how good they are."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model, _ = draw.fit(axes["method"])
    x = np.linspace(draw.X_test.min(), draw.X_test.max(), 201)[:, None]
    lower, upper = model.predict_interval(x).T
    oracle_lower, oracle_upper = draw.case.oracle_interval(x).T
    curves = {"x": x[:, 0], "center": model.predict(x), "lower": lower, "upper": upper}
    oracle = {"oracle_lower": oracle_lower, "oracle_upper": oracle_upper}
    return {**curves, **oracle, "X": draw.X[:, 0], "y": draw.y, **chosen(model), **draw.judge(model)}


def draw(rows: Rows) -> Any:
    """A row of panels per draw, a column per method."""
    good = succeeded(rows)
    draws = grouped(good, "case", "n", "draw")
    if not draws:
        return empty_figure(rows)
    methods = [name for name in COLOURS if any(row["method"] == name for row in good)]
    size = (7.0, 1.2 + 1.75 * len(draws))
    figure, axes = new_figure(len(draws), len(methods), size, sharex="row", sharey="row")
    for position, ((case, n, number), own) in enumerate(draws.items()):
        line = axes[position]
        by_method = {row["method"]: row for row in own}
        for ax, method in zip(line, methods, strict=True):
            title = f"case {case}, draw {number + 1}, n = {n}: {SHOWN[method]}"
            if method in by_method:
                row = by_method[method]
                draw_curves(ax, row, COLOURS[method], f"90 % interval, {SHOWN[method]}")
                title += f"\nMW {row['mean_width']:.2f}, ACG {row['acg']:.3f}, "
                title += rf"$\mathrm{{ACG}}_\mathrm{{low}}$ {row['acg_lower']:.3f}, "
                title += rf"$\mathrm{{ACG}}_\mathrm{{up}}$ {row['acg_upper']:.3f}"
            set_text(ax, title=title, x="x" if position == len(draws) - 1 else "", y="y" if ax is line[0] else "")
            ax.title.set_fontsize(8)
    legend_above(figure, axes.flat, columns=3)
    add_caption(
        figure,
        f"Calibrated 90 % intervals, {len(draws)} draws of {cases_words(good)} with "
        f"n = {span_words(row['n'] for row in good)} learning points; both methods see the same data. MW: mean width; "
        f"ACG: absolute coverage gap of the interval, of its lower and of its upper end, from the conditional law; all "
        f"on test points.{failure_words(rows)}",
    )
    return figure
