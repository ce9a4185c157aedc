"""Figure: seconds of the SDP, of the paper's dual recipe, and of our solver, by the number of points."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from sosbands import learn_bands
from sosbands.datasets import synthetic_case
from sosbands.kernels import learn_features, resolve_kernel
from studies.drawing.caption_words import count_words, failure_words
from studies.drawing.figures import COLOURS, add_caption, column, grouped, new_figure, succeeded
from studies.drawing.panels import BLACK, empty_figure, legend_above, mean_and_sd, set_text
from studies.reference.recipe import paper_recipe
from studies.reference.sdp import training_penalty_sdp
from studies.runs.config import Config, Rows
from studies.runs.methods import OURS, PAPER

SIZES = {"sdp": (25, 50, 100, 200), "recipe": (25, 50, 100, 200, 500, 1000), "sosbands": (25, 50, 100, 200, 500, 1000)}
BEYOND = 300  # where the SDP of the paper no longer runs
FEW = 3  # repetitions there: an SDP takes minutes and 4.4 GB
LENGTHSCALE, PENALTY = 0.3, 1.0
STYLES = {"sdp": (BLACK, "s"), "recipe": (COLOURS[PAPER], "o"), "sosbands": (COLOURS[OURS], "D")}
LABELS = {
    "sdp": "SDP (SCS)",
    "recipe": "paper's dual recipe (L-BFGS, tolerance 0.01)",
    "sosbands": "sosbands (certified)",
}


def compute(config: Config) -> Rows:
    """One solve per task, one at a time: two at once would slow each other down."""
    tasks = [
        {"solver": solver, "n": n, "repetition": k}
        for k in range(config.pick(quick=1, paper=20))
        for solver, sizes in SIZES.items()
        for n in sizes
        if n <= config.pick(quick=50, paper=1000)
    ]
    few = range(config.pick(quick=0, paper=FEW))
    tasks += [{"solver": solver, "n": BEYOND, "repetition": k} for k in few for solver in SIZES]
    return config.alone().run("sdp-time", time_row, tasks, seed_axes=["n", "repetition"])


def time_row(axes: dict[str, Any], seed: int) -> dict[str, Any]:
    """Case 1, no width penalty, lengthscale 0.3, symmetry penalty 1, from the kernel matrix to the bands."""
    case = synthetic_case(1)
    X, y = case.sample(axes["n"], np.random.default_rng(seed))
    r = y - case.location(X)
    literal: dict[str, Any] = {"b": 0.0, "lam1": 1.0, "lam2": 1.0, "lam_pen": PENALTY}
    kernel = resolve_kernel("matern52", LENGTHSCALE, X)
    if axes["solver"] == "sdp":
        import cvxpy  # noqa: F401, not on the clock
    clock = perf_counter()
    if axes["solver"] == "sdp":
        V = learn_features(X, kernel, "exact").V
        found = training_penalty_sdp(V, V, r, **literal, solver="SCS", max_iters=10_000)
        return {"solve_seconds": perf_counter() - clock, "value": found.value, "status": found.status}
    if axes["solver"] == "recipe":
        K = kernel(X, X)
        dual = paper_recipe(K, K, r, **literal)
        return {"solve_seconds": perf_counter() - clock, "value": dual.value, "status": dual.message}
    bands = learn_bands(X, r, lengthscale=LENGTHSCALE, width_penalty=0.0, symmetry_penalty=PENALTY)
    seconds = perf_counter() - clock
    return {"solve_seconds": seconds, "value": bands.dual_value, "status": bands.status.value, "gap": bands.gap}


def draw(rows: Rows) -> Any:
    """Seconds by the number of points, both axes logarithmic."""
    good = succeeded(rows)
    if not good:
        return empty_figure(rows)
    figure, axes = new_figure(1, 1, (7.0, 3.9))
    ax = axes[0, 0]
    means: dict[tuple[str, int], float] = {}
    for solver, own in grouped(good, "solver").items():
        by_size = dict(sorted(grouped(own, "n").items()))
        found = [mean_and_sd(column(each, "solve_seconds")) for each in by_size.values()]
        mean, sd = (np.array([float(pair[k]) for pair in found]) for k in (0, 1))
        means |= {(solver, n): value for n, value in zip(by_size, mean, strict=True)}
        bars = np.array([np.minimum(sd, 0.9 * mean), sd])  # a logarithmic axis has no room below zero
        colour, marker = STYLES[solver]
        style = {"color": colour, "marker": marker, "ms": 4.5, "lw": 1.3, "capsize": 3}
        ax.errorbar(list(by_size), mean, yerr=bars, label=LABELS[solver], **style)
    sizes = sorted({row["n"] for row in good})
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    _second_ticks(ax)
    ax.grid(axis="y", lw=0.4, alpha=0.5)
    set_text(ax, x="learning points n", y="seconds")
    legend_above(figure, [ax], columns=3)
    add_caption(
        figure,
        f"Time from the kernel matrix to the bands, mean and standard deviation over "
        f"{count_words(rows, 'solver', 'n')} per solver and n{_few(good)}; case 1, lengthscale "
        f"{LENGTHSCALE}, no width penalty, symmetry penalty {PENALTY:g}, not normalised, residuals around the "
        f"true mean, one thread.{_ratios(means)}{_unfinished(good)}{failure_words(rows)}",
    )
    return figure


def _few(rows: Rows) -> str:
    """Where there are fewer repetitions."""
    return f" ({FEW} at n = {BEYOND})" if any(row["n"] == BEYOND for row in rows) else ""


def _second_ticks(ax: Any) -> None:
    """Powers of ten, and 2 and 5 times them if there are few."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator

    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 500 else (1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))


def _ratios(means: dict[tuple[str, int], float]) -> str:
    """How much longer the others take, at the largest size that they share with us."""
    text = ""
    for solver, name in (("sdp", "SDP"), ("recipe", "recipe")):
        shared = [n for other, n in means if other == solver and ("sosbands", n) in means]
        if shared:
            ratio = means[solver, max(shared)] / means["sosbands", max(shared)]
            times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"
            text += f" At n = {max(shared)} the {name} takes {times} times as long as sosbands."
    return text


def _unfinished(rows: Rows) -> str:
    """Solves that end without the solver's own word for success."""
    counts = {
        "the SDP": [row["status"] != "optimal" for row in rows if row["solver"] == "sdp"],
        "sosbands": [row["status"] != "converged" for row in rows if row["solver"] == "sosbands"],
    }
    return "".join(
        f" {sum(each)} of {len(each)} solves of {name} stopped before their tolerance."
        for name, each in counts.items()
        if any(each)
    )
