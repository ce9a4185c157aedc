"""Claims of the paper about the optimisation and its settings, as functions of the rows."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from sosbands.comparison import MeanInterval, corrected_interval
from studies.claims.verdicts import (
    CONFIRMED,
    MARGIN,
    NO_GAIN,
    NOT_CONFIRMED,
    Claim,
    Verdict,
    above,
    all_of,
    means,
    near,
    needed,
    paired,
    shown,
)
from studies.drawing.figures import grouped, succeeded
from studies.drawing.map_panels import Largest, largest
from studies.drawing.real_tables import NOMINAL, overlap, worst_set_distance
from studies.entries.norm_penalties import CASES, PENALTIES, relative_change
from studies.runs.config import Rows

ENDS = 4  # penalties at each end of a path that count as very low or very high


def warm_start_saves(rows: Rows) -> Verdict:
    """The paper's recipe needs at least 65 % fewer iterations on a path with warm starts."""
    saved = {}
    for solver, what in (("recipe", "iterations"), ("recipe", "decompositions"), ("sosbands", "decompositions")):
        some = _of_solver(rows, solver)
        parts = [1 - sum(row[f"warm_{what}"]) / sum(row[f"cold_{what}"]) for row in some]
        saved[solver, what] = corrected_interval(parts, 0.0)
    figure = (
        f"the recipe saves {shown(saved['recipe', 'iterations'])} of its iterations, "
        f"{shown(saved['recipe', 'decompositions'])} of its eigendecompositions; our solver "
        f"{shown(saved['sosbands', 'decompositions'])} of the latter"
    )
    return Verdict(above(saved["recipe", "iterations"], 0.65), figure)


def warm_start_factor(rows: Rows, factor: float) -> Verdict:
    """Somewhere on the path the paper's recipe needs so many times fewer iterations."""
    some = _of_solver(rows, "recipe")
    ratios = [np.max(np.divide(row["cold_iterations"], np.maximum(row["warm_iterations"], 1))) for row in some]
    found = corrected_interval(ratios, 0.0)
    return Verdict(above(found, factor), f"largest factor on a path {shown(found)}")


def ends_are_harder(rows: Rows) -> Verdict:
    """From zero, the recipe needs more iterations at very low and at very high penalties than between."""
    cold = np.array([row["cold_iterations"] for row in _of_solver(rows, "recipe")], dtype=float)
    middle = cold[:, ENDS:-ENDS].mean(axis=1)
    gaps = [corrected_interval(part.mean(axis=1) - middle, 0.0) for part in (cold[:, :ENDS], cold[:, -ENDS:])]
    figure = f"iterations more than between: low {shown(gaps[0])}, high {shown(gaps[1])}"
    return Verdict(all_of(*map(above, gaps)), figure)


def sdp_is_slower(rows: Rows, n: int, factor: float) -> Verdict:
    """At n points the SDP takes more than so many times the seconds of the paper's dual recipe."""
    some = [
        {**row, "method": row["solver"], "log": math.log10(row["solve_seconds"])}
        for row in succeeded(rows)
        if row["n"] == n
    ]
    ratio = corrected_interval(paired(some, "log", "sdp", "recipe"), 0.0)
    mine = corrected_interval(paired(some, "log", "sdp", "sosbands"), 0.0)
    seconds = float(np.mean([row["solve_seconds"] for row in some if row["method"] == "sdp"]))
    figure = f"{seconds:.0f} s, {10**ratio.mean:.0f} [{10**ratio.lower:.0f}, {10**ratio.upper:.0f}] times the recipe, "
    return Verdict(above(ratio, math.log10(factor)), figure + f"{10**mine.mean:.0f} times our solver")


def sdp_stops(rows: Rows, n: int) -> Verdict:
    """The SDP is not solved at more than n points; errors other than lack of memory are no attempts."""
    tried = [row for row in rows if row["solver"] == "sdp" and row["error_type"] in (None, "MemoryError")]
    beyond = needed([row for row in tried if row["n"] > n], f"SDPs of more than {n} points")
    solved = [row for row in succeeded(beyond) if row["status"].startswith("optimal")]
    times = [f"n = {row['n']} in {row['solve_seconds']:.0f} s" for row in sorted(solved, key=lambda row: row["n"])]
    figure = f"{len(solved)} of {len(beyond)} solved{': ' + ', '.join(times) if times else ''}"
    return Verdict(NOT_CONFIRMED if solved else CONFIRMED, figure)


def dual_scales(rows: Rows, n: int) -> Verdict:
    """The paper's recipe ends at n points."""
    some = needed([row for row in rows if row["solver"] == "recipe" and row["n"] == n], f"recipes of {n} points")
    fine = needed(succeeded(some), f"recipes of {n} points that ended")
    seconds = corrected_interval([row["solve_seconds"] for row in fine], 0.0)
    word = CONFIRMED if len(fine) == len(some) else NOT_CONFIRMED
    return Verdict(word, f"{len(fine)} of {len(some)} end, {shown(seconds)} s")


def longer_with_width_penalty(rows: Rows) -> Verdict:
    """The best lengthscale grows with the width penalty and never falls, in each draw that has all four."""
    best = [[each.factor for each in maxima] for maxima in _maxima(rows)]
    grew = [factors[-1] > factors[0] and factors == sorted(factors) for factors in best]
    figure = "; ".join(" ".join(f"{factor:.2g}" for factor in factors) for factors in best)
    return Verdict(
        CONFIRMED if all(grew) else NOT_CONFIRMED,
        f"best lengthscale over the median for b = 1, 10, 100, 1000: {figure}",
    )


def width_penalty_suffices(rows: Rows) -> Verdict:
    """At the width penalties 10 or 100 the criterion reaches its largest value, to 5 %, on average over draws."""
    values = [[each.value for each in maxima] for maxima in _maxima(rows)]
    parts = [max(each[1:3]) / max(each) for each in values]
    figure = ", ".join(f"{part:.3f}" for part in parts)
    word = CONFIRMED if np.mean(parts) >= 1 - MARGIN else NOT_CONFIRMED
    return Verdict(word, f"best of both over best of all: {figure}")


def no_gain_from_operators(rows: Rows) -> Verdict:
    """At a fixed penalty the operator penalty lowers neither widths (5 %) nor coverage gaps (5 %, 0.005)."""
    fixed = [{**row, "method": row["kind"]} for row in succeeded(rows) if "fixed_penalty" in row]
    case, real = [row for row in fixed if row.get("case") == 1], [row for row in fixed if "dataset" in row]
    real = [{**row, "distance": worst_set_distance(row)} for row in real]
    words, figures = [], []
    for label, name, some, shared in (
        ("case 1 width", "mean_width", case, 0.0),
        ("case 1 ACG^c", "acg_combined", case, 0.0),
        ("Diabetes width", "mean_width", real, overlap("Diabetes")),
    ):
        differences = paired(needed(some, label), name, "operator", "training")
        gap = corrected_interval(differences / means(some, name)["training"], shared)
        words.append(above(gap, -MARGIN))
        figures.append(f"{label} {shown(gap)}")
    gap = corrected_interval(paired(real, "distance", "operator", "training"), overlap("Diabetes"))
    words.append(above(gap, -NO_GAIN))
    figures.append(f"Diabetes distance of WSC^c from {NOMINAL:g} {shown(gap)}")
    return Verdict(all_of(*words), f"operator minus training set, widths and ACG^c relative: {', '.join(figures)}")


def norms_matter_little(rows: Rows) -> Verdict:
    """A tenth and ten times the penalties on the norms change widths by at most 5 %."""
    gaps: dict[tuple[int, float], MeanInterval] = {
        (case, penalty): relative_change(rows, case, penalty, "mean_width") for case in CASES for penalty in PENALTIES
    }
    worst = max(gaps, key=lambda key: -math.inf if math.isnan(gaps[key].mean) else abs(gaps[key].mean))
    figure = f"largest mean change of width: case {worst[0]}, lam1 = lam2 = {worst[1]:g}, {shown(gaps[worst])}"
    return Verdict(all_of(*(near(gap, MARGIN) for gap in gaps.values())), figure)


def _of_solver(rows: Rows, solver: str) -> Rows:
    return needed([row for row in succeeded(rows) if row["solver"] == solver], f"rows of {solver}")


def _maxima(rows: Rows) -> list[list[Largest]]:
    """Largest values of the maps, by growing width penalty, of each draw that has all four."""
    found = []
    for some in grouped(succeeded(rows), "draw").values():
        by_b = {row["width_penalty"]: row for row in some}
        if len(by_b) == 4:
            found.append([largest(row, "hsic") for _, row in sorted(by_b.items())])
    return needed(found, "draws with all width penalties")


CLAIMS = (
    Claim("lam1 and lam2 matter little (0.1 and 10 for 1: 5 % of the width)", "norm-penalties", norms_matter_little),
    Claim(
        "The best lengthscale grows with the width penalty (case 2, three draws)",
        "width-penalty-maps",
        longer_with_width_penalty,
    ),
    Claim(
        "HSIC reaches its largest value (to 5 %) by b = 10 or 100 on average (case 2, three draws)",
        "width-penalty-maps",
        width_penalty_suffices,
    ),
    Claim("The operator penalty improves nothing (penalty 100)", "penalty-kinds", no_gain_from_operators),
    Claim("Warm start is 65 % cheaper than cold start", "warm-start", warm_start_saves),
    Claim(
        "The factor reaches 3 somewhere on the path (paper: 3 or 4)",
        "warm-start",
        partial(warm_start_factor, factor=3.0),
    ),
    Claim("Very low and very high penalties take more iterations from zero", "warm-start", ends_are_harder),
    Claim(
        "At n = 200 the SDP is far slower (10 times) than the dual",
        "sdp-time",
        partial(sdp_is_slower, n=200, factor=10),
    ),
    Claim("The dual recipe scales to n = 1000", "sdp-time", partial(dual_scales, n=1000)),
    Claim("The SDP can only handle up to n = 200", "sdp-time", partial(sdp_stops, n=200)),
)
