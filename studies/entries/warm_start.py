"""Figure: iterations along a path of symmetry penalties, each solve from zero or from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sosbands import learn_bands
from sosbands._types import Array
from sosbands.bands import learn_band_path
from sosbands.datasets import synthetic_case
from sosbands.kernels import resolve_kernel
from studies.drawing.caption_words import count_words, failure_words, span_words
from studies.drawing.figures import COLOURS, add_caption, grouped, new_figure, succeeded
from studies.drawing.panels import (
    GREY,
    empty_figure,
    legend_above,
    mean_and_sd,
    penalty_places,
    penalty_ticks,
    set_text,
)
from studies.reference.recipe import RecipeResult, paper_recipe
from studies.runs.config import Config, Rows
from studies.runs.methods import OURS, PAPER

LENGTHSCALE, WIDTH_PENALTY = 0.3, 10.0
STYLES = {"recipe": ("paper's dual recipe", COLOURS[PAPER]), "sosbands": ("sosbands (certified)", COLOURS[OURS])}
PENALTIES = tuple(float(p) for p in np.geomspace(1e-4, 1e4, 17))


def compute(config: Config) -> Rows:
    """The paper's recipe and our solver on the same draws of case 1, n = 100."""
    tasks = [
        {"solver": solver, "n": 100, "repetition": k}
        for k in range(config.pick(quick=2, paper=10))
        for solver in ("recipe", "sosbands")
    ]
    return config.run("warm-start", path_row, tasks, seed_axes=["n", "repetition"])


def path_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Iterations and eigendecompositions of each solve."""
    case = synthetic_case(1)
    X, y = case.sample(axes["n"], np.random.default_rng(seed))
    r = y - case.location(X)
    cold: Sequence[Any]
    warm: Sequence[Any]
    if axes["solver"] == "recipe":
        cold, warm = _recipe(X, r, warm=False), _recipe(X, r, warm=True)
    else:
        options: dict[str, Any] = {"lengthscale": LENGTHSCALE, "width_penalty": WIDTH_PENALTY}
        cold = [learn_bands(X, r, symmetry_penalty=penalty, **options) for penalty in PENALTIES]
        warm = list(learn_band_path(X, r, PENALTIES, **options))
    counts = {
        f"{start}_{what}": [getattr(solve, what) for solve in solves]
        for start, solves in (("cold", cold), ("warm", warm))
        for what in ("iterations", "decompositions")
    }
    return {"penalties": PENALTIES, **counts}


def _recipe(X: Array, r: Array, *, warm: bool) -> list[RecipeResult]:
    """The path by the paper's recipe, with its tolerance."""
    K = resolve_kernel("matern52", LENGTHSCALE, X)(X, X)
    found: list[RecipeResult] = []
    for penalty in PENALTIES:
        start = found[-1] if warm and found else None
        found.append(paper_recipe(K, K, r, b=WIDTH_PENALTY, lam1=1.0, lam2=1.0, lam_pen=penalty, start=start))
    return found


def draw(rows: Rows) -> Any:
    """A panel per solver: iterations of each solve from zero and from the solution before."""
    solvers = grouped(succeeded(rows), "solver")
    if not solvers:
        return empty_figure(rows)
    figure, axes = new_figure(1, len(solvers), (7.0, 3.6))
    for ax, (solver, own) in zip(axes[0], solvers.items(), strict=True):
        name, colour = STYLES[solver]
        places = penalty_places(own[0]["penalties"])
        x = [places[float(penalty)] for penalty in own[0]["penalties"]]
        for start, style in (("cold", {"color": GREY, "marker": "s"}), ("warm", {"color": colour, "marker": "o"})):
            mean, sd = mean_and_sd([row[f"{start}_iterations"] for row in own])
            label = "cold start" if start == "cold" else f"warm start, {name}"
            ax.errorbar(x, mean, yerr=[np.minimum(sd, mean), sd], label=label, ms=4, lw=1.2, capsize=2.5, **style)
        penalty_ticks(ax, places, most=5)
        ax.set_ylim(bottom=0)
        saved = ", ".join(f"{_saving(own, what):.0f} % fewer {what}" for what in ("iterations", "decompositions"))
        set_text(ax, title=f"{name}\n{saved}", x="symmetry penalty", y="iterations" if ax is axes[0, 0] else "")
    legend_above(figure, axes.flat, columns=3)
    add_caption(
        figure,
        "Iterations of each solve along a path of growing symmetry penalties, from zero (cold) and from the solution "
        f"before it (warm; the first is from zero in both); mean and standard deviation over "
        f"{count_words(rows, 'solver')} of case 1, n = {span_words(row['n'] for row in succeeded(rows))}, "
        f"residuals around the true mean, lengthscale {LENGTHSCALE}, width penalty {WIDTH_PENALTY:g}, penalties not "
        "normalised. "
        f"Titles: saving in total iterations and total eigendecompositions. The two solvers count different "
        f"iterations.{failure_words(rows)}",
    )
    return figure


def _saving(rows: Rows, what: str) -> float:
    """Per cent of the work that warm starts save."""
    cold, warm = (sum(sum(row[f"{start}_{what}"]) for row in rows) for start in ("cold", "warm"))
    return 100 * (1 - warm / cold) if cold else 0.0
