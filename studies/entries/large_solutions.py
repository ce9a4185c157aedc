"""Figures: bands of cases 1 to 6 learnt from 1000 points, symmetry penalty 1, with their certificates."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from sosbands import learn_bands
from studies.drawing.caption_words import case_words, failure_words, span_words
from studies.drawing.curve_panels import draw_curves
from studies.drawing.figures import COLOURS, add_caption, new_figure, succeeded
from studies.drawing.panels import empty_figure, hide_rest, legend_above, set_text
from studies.runs.config import Config, Rows
from studies.runs.methods import OURS
from studies.runs.synthetic_runs import CASES, Draw


def compute(config: Config) -> Rows:
    """One solution per case."""
    tasks = [{"case": case, "n": config.pick(quick=200, paper=1000)} for case in CASES]
    return config.run("large-solutions", solution_row, tasks)


def solution_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Bands before calibration on a grid, and the certificate; normalised penalties, median lengthscale."""
    draw = Draw.of(axes["case"], axes["n"], seed)
    model = draw.point_model().fit(draw.X, draw.y)
    r = draw.y - model.predict(draw.X)
    mean, sd = draw.X.mean(axis=0), draw.X.std(axis=0)
    clock = perf_counter()
    bands = learn_bands(
        (draw.X - mean) / sd, r, symmetry_penalty=1.0, width_penalty=draw.case.width_penalty, normalize=True
    )
    seconds = perf_counter() - clock
    x = np.linspace(draw.X.min(), draw.X.max(), 201)[:, None]
    center, z = model.predict(x), (x - mean) / sd
    oracle_lower, oracle_upper = draw.case.oracle_interval(x).T
    curves = {"x": x[:, 0], "center": center, "lower": center - bands.lower(z), "upper": center + bands.upper(z)}
    oracle = {"oracle_lower": oracle_lower, "oracle_upper": oracle_upper}
    certificate = {"gap": bands.gap, "violation": bands.violation, "solve_seconds": seconds, "rank": bands.rank}
    return {**curves, **oracle, "X": draw.X[:, 0], "y": draw.y, **certificate}


def draw(rows: Rows) -> Any:
    """A panel per case, with the certified gap and the time in its title."""
    good = succeeded(rows)
    if not good:
        return empty_figure(rows)
    columns = min(3, len(good))
    lines = -(-len(good) // columns)
    figure, axes = new_figure(lines, columns, (7.0, 1.3 + 2.1 * lines))
    for place, (ax, row) in enumerate(zip(axes.flat, good, strict=False)):
        draw_curves(ax, row, COLOURS[OURS], "bands before calibration")
        title = f"{case_words(row['case'])}\ngap {row['gap']:.1e}, {row['solve_seconds']:.2f} s"
        bottom = place + columns >= len(good)
        set_text(ax, title=title, x="x" if bottom else "", y="y" if place % columns == 0 else "")
    hide_rest(list(axes.flat), len(good))
    legend_above(figure, axes.flat)
    add_caption(
        figure,
        f"Bands before calibration, which cover every learning point, from one draw of "
        f"n = {span_words(row['n'] for row in good)} points of each case; symmetry penalty 1, normalised penalties, "
        f"median lengthscale. The oracle is that of 90 % intervals, for the shape. Titles: certified relative gap, "
        f"and seconds of the solve.{failure_words(rows)}",
    )
    return figure
