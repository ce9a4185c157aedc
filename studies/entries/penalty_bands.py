"""Figure: bands of case 1 without, with some and with full symmetry penalty, and the oracle's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from studies.drawing.caption_words import COVERAGE_GAP, cases_words, failure_words, penalty_words, span_words
from studies.drawing.curve_panels import draw_curves
from studies.drawing.figures import COLOURS, add_caption, new_figure, succeeded
from studies.drawing.panels import empty_figure, legend_above, set_text
from studies.runs.config import Config, Rows
from studies.runs.methods import PAPER
from studies.runs.synthetic_runs import Draw

DIFFERENCE = r"$|f_\mathrm{up}-f_\mathrm{lo}|$"
PENALTIES = (0.0, 100.0, math.inf)


def compute(config: Config) -> Rows:
    """One row per penalty, on one draw of 100 points."""
    tasks = [{"case": 1, "n": 100, "symmetry_penalty": penalty} for penalty in PENALTIES]
    return config.run("penalty-bands", curves_row, tasks, seed_axes=["case", "n"])


def curves_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Calibrated bands on a grid, and how good they are."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model, _ = draw.fit(PAPER, symmetry_penalty=axes["symmetry_penalty"], lengthscale="median")
    x = np.linspace(-1, 1, 201)[:, None]
    lower, upper = model.predict_interval(x).T
    oracle_lower, oracle_upper = draw.case.oracle_interval(x).T
    curves = {"x": x[:, 0], "center": model.predict(x), "lower": lower, "upper": upper}
    oracle = {"oracle_lower": oracle_lower, "oracle_upper": oracle_upper}
    return {**curves, **oracle, "X": draw.X[:, 0], "y": draw.y, **draw.judge(model)}


def draw(rows: Rows) -> Any:
    """One panel per penalty; where the sides differ, the part of the longer one beyond the shorter is shaded."""
    good = succeeded(rows)
    if not good:
        return empty_figure(rows)
    figure, axes = new_figure(1, len(good), (7.0, 3.4), sharex=True, sharey=True)
    for ax, row in zip(axes[0], good, strict=True):
        draw_curves(ax, row, COLOURS[PAPER], "90 % interval", asymmetry=True)
        numbers = f"width {row['mean_width']:.2f}, {COVERAGE_GAP} {row['acg_combined']:.3f}"
        title = f"symmetry penalty {penalty_words(row['symmetry_penalty'])}\n{numbers}"
        set_text(ax, title=title, x="x", y="y" if ax is axes[0, 0] else "")
    legend_above(figure, axes.flat)
    add_caption(
        figure,
        f"Calibrated 90 % intervals of {cases_words(good)}, one draw of "
        f"n = {span_words(row['n'] for row in good)} learning points, median lengthscale, normalised penalties. "
        f"Shaded: the part of the "
        f"longer side beyond the shorter, {DIFFERENCE}; none if both are equal. Titles: mean width of the "
        f"interval and combined local coverage gap ({COVERAGE_GAP}), on test data.{failure_words(rows)}",
    )
    return figure
