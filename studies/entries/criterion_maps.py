"""Figure: HSIC over symmetry penalty and lengthscale, for skewed noise and for two cases of symmetric noise."""

from __future__ import annotations

from typing import Any

from sosbands.datasets import synthetic_case
from studies.drawing.caption_words import case_words, failure_words, span_words
from studies.drawing.figures import add_caption, new_figure, succeeded
from studies.drawing.map_panels import add_colour_bar, common_levels, draw_map, largest
from studies.drawing.panels import empty_figure, set_text
from studies.runs.config import Config, Rows
from studies.runs.criterion_grid import COARSE, FINE, grid_row

CASES = (5, 1, 2)
SHOWN = {"hsic": "HSIC", "dcor": "distance correlation"}


def compute(config: Config) -> Rows:
    """One map per case."""
    size = config.pick(quick=COARSE, paper=FINE)
    tasks = [{"case": c, "n": 100, "width_penalty": synthetic_case(c).width_penalty, "draw": 0, **size} for c in CASES]
    return config.run("criterion-maps", grid_row, tasks, seed_axes=["case", "n", "draw"])


def draw(rows: Rows) -> Any:
    """A column per case, a row per criterion, a star at the largest value."""
    good = succeeded(rows)
    if not good:
        return empty_figure(rows)
    figure, axes = new_figure(2, len(good), (7.0, 5.0), sharey=True)
    for line, name in zip(axes, SHOWN, strict=True):
        for ax, row in zip(line, good, strict=True):
            drawn = draw_map(ax, row, name, common_levels([row], name))
            add_colour_bar(figure, drawn, ax, SHOWN[name])
            title = f"{case_words(row['case'])}\n" if name == "hsic" else ""
            set_text(
                ax,
                title=title + largest(row, name).words(),
                x="symmetry penalty" if name == "dcor" else "",
                y="lengthscale / median" if ax is line[0] else "",
            )
    uncertified = sum(row["uncertified"] for row in good)
    add_caption(
        figure,
        f"HSIC (above) and distance correlation (below) of widths and sizes of residuals on held-out folds, one draw "
        f"of n = {span_words(row['n'] for row in good)} points of each case. Penalties 0 and ∞ are strips of their "
        f"own. Star: largest value; titles: that value, at (penalty, lengthscale / median)."
        + (f" Solves without a certificate: {uncertified}." if uncertified else "")
        + failure_words(rows),
    )
    return figure
