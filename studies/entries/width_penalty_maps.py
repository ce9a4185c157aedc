"""Figure: HSIC over symmetry penalty and lengthscale for four width penalties and three draws of case 2."""

from __future__ import annotations

from typing import Any

from studies.drawing.caption_words import cases_words, failure_words, span_words
from studies.drawing.figures import add_caption, grouped, new_figure, succeeded
from studies.drawing.map_panels import add_colour_bar, common_levels, draw_map, largest
from studies.drawing.panels import empty_figure, set_text
from studies.runs.config import Config, Rows
from studies.runs.criterion_grid import COARSE, FINE, grid_row

WIDTH_PENALTIES = (1.0, 10.0, 100.0, 1000.0)


def compute(config: Config) -> Rows:
    """One map per width penalty and draw."""
    size = config.pick(quick=COARSE, paper=FINE)
    tasks = [
        {"case": 2, "n": 100, "width_penalty": b, "draw": k, **size}
        for k in range(config.pick(quick=1, paper=3))
        for b in WIDTH_PENALTIES
    ]
    return config.run("width-penalty-maps", grid_row, tasks, seed_axes=["case", "n", "draw"])


def draw(rows: Rows) -> Any:
    """A row of maps per draw with common colours, a column per width penalty."""
    draws = grouped(succeeded(rows), "draw")
    if not draws:
        return empty_figure(rows)
    widths = sorted({row["width_penalty"] for own in draws.values() for row in own})
    size = (7.0, 1.2 + 1.9 * len(draws))
    figure, axes = new_figure(len(draws), len(widths), size, sharey=True)
    for number, (line, own) in enumerate(zip(axes, draws.values(), strict=True), start=1):
        levels, drawn = common_levels(own, "hsic"), None
        by_width = {row["width_penalty"]: row for row in own}
        for ax, b in zip(line, widths, strict=True):
            title, row = f"b = {b:g}", by_width.get(b)
            if row is not None:
                drawn = draw_map(ax, row, "hsic", levels)
                title += f", {largest(row, 'hsic').words()}".replace(" at ", "\nat ")
            x = "symmetry penalty" if number == len(draws) else ""
            set_text(ax, title=title, x=x, y=f"draw {number}\nlengthscale / median" if ax is line[0] else "")
            ax.title.set_fontsize(7.5)
        add_colour_bar(figure, drawn, list(line), "HSIC")
    good = succeeded(rows)
    add_caption(
        figure,
        f"HSIC of widths and sizes of residuals on held-out folds, {len(draws)} draw{'s' * (len(draws) > 1)} of "
        f"n = {span_words(row['n'] for row in good)} points of {cases_words(good)}, for "
        "each width penalty b (normalised). Penalties 0 and ∞ are strips of their own; colours are common to a row. "
        f"Star: largest value; titles: that value, at (penalty, lengthscale / median).{failure_words(rows)}",
    )
    return figure
