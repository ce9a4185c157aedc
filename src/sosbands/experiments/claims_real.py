"""Claims of the paper about the real data sets, as functions of the rows."""

from __future__ import annotations

import numpy as np

from sosbands.comparison import MeanInterval, corrected_interval
from sosbands.experiments.config import Rows
from sosbands.experiments.figures import column, grouped, succeeded
from sosbands.experiments.methods import PAPER, PAPER_CQR, SHOWN
from sosbands.experiments.real_runs import LEVEL
from sosbands.experiments.real_tables import NOMINAL, overlap, worst_set_distance
from sosbands.experiments.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    OPEN,
    MissingRowsError,
    Verdict,
    above,
    all_of,
    below,
    means,
    needed,
    paired,
    share,
    shown,
)

GPS = ("gp", "het-gp")
RIVALS = (PAPER_CQR, *GPS)
MUCH = 1.1  # a ratio that counts as much wider


def closest_worst_set(rows: Rows, dataset: str, rivals: tuple[str, ...] = RIVALS) -> Verdict:
    """The worst-set coverage of the paper's bands is nearer to nominal than that of each rival."""
    some = [{**row, "distance": worst_set_distance(row)} for row in _of_set(rows, dataset)]
    gaps, lacking = _differences(some, "distance", dataset, rivals)
    distances = {name: value for name, value in means(some, "distance").items() if name in (PAPER, *gaps)}
    values = ", ".join(f"{SHOWN[name]} {distances[name]:.3f}" for name in sorted(distances, key=lambda n: distances[n]))
    nearest = min(gaps, key=lambda rival: distances[rival])
    figure = (
        f"mean distance from {NOMINAL:g}: {values}; pen. kSoS minus {SHOWN[nearest]} {shown(gaps[nearest])}{lacking}"
    )
    return Verdict(all_of(*map(below, gaps.values()), *([OPEN] if lacking else [])), figure)


def first_or_second(rows: Rows) -> Verdict:
    """By distance of the worst-set coverage and by width the paper's bands are first or second on every data set."""
    ranks: dict[str, tuple[int, int]] = {}
    for name, some in _complete_sets(rows).items():
        measured = [{**row, "distance": worst_set_distance(row)} for row in some]
        ranks[name] = (_rank(means(measured, "distance")), _rank(means(measured, "mean_width")))
    good = [name for name, rank in ranks.items() if max(rank) <= 2]
    rest = ", ".join(f"{name} ({a}, {b})" for name, (a, b) in ranks.items() if max(a, b) > 2)
    word = CONFIRMED if len(good) == len(ranks) else NOT_CONFIRMED
    return Verdict(word, f"on {len(good)} of {len(ranks)} sets; ranks by worst set and width elsewhere: {rest or '-'}")


def nearer_on_most_sets(rows: Rows, first: str, second: str) -> Verdict:
    """The mean worst-set coverage of the first method is nearer to nominal than the second's on most data sets."""
    flags = []
    for some in grouped(succeeded(rows), "dataset").values():
        distances = means([{**row, "distance": worst_set_distance(row)} for row in some], "distance")
        if first in distances and second in distances:
            flags.append(distances[first] < distances[second])
    found = share(np.array(flags))
    return Verdict(above(found, 0.5), f"on {sum(flags)} of {len(flags)} sets, {_percent(found)}")


def narrower(rows: Rows, dataset: str, rivals: tuple[str, ...]) -> Verdict:
    """The paper's bands are narrower than those of each rival."""
    some = _of_set(rows, dataset)
    unit = means(some, "mean_width").get(PAPER, np.nan)
    gaps, lacking = _differences(
        [{**row, "relative": row["mean_width"] / unit} for row in some], "relative", dataset, rivals
    )
    figure = "; ".join(f"to {SHOWN[rival]} {shown(gap)}" for rival, gap in gaps.items())
    word = all_of(*map(below, gaps.values()), *([OPEN] if lacking else []))
    return Verdict(word, f"relative difference of widths {figure}{lacking}")


def much_wider(rows: Rows, rival: str) -> Verdict:
    """A rival's median width is more than 10 % above that of the paper's bands on most data sets."""
    ratios = []
    for some in grouped(succeeded(rows), "dataset").values():
        widths = {method: np.median(column(group, "mean_width")) for method, group in grouped(some, "method").items()}
        if rival in widths and PAPER in widths:
            ratios.append(float(widths[rival] / widths[PAPER]))
    found = share(np.array(ratios) > MUCH)
    figure = f"over {MUCH:g} times on {np.sum(np.array(ratios) > MUCH)}, wider on {np.sum(np.array(ratios) > 1)}"
    return Verdict(above(found, 0.5), f"{figure} of {len(ratios)} sets; median ratio {np.median(ratios):.2f}")


def covers(rows: Rows) -> Verdict:
    """The mean coverage of each method, over data sets, is not below nominal."""
    words, figures = [], []
    for method, some in grouped(succeeded(rows), "method").items():
        by_set = [float(column(group, "coverage").mean()) for group in grouped(some, "dataset").values()]
        found = corrected_interval(by_set, 0.0)
        words.append(NOT_CONFIRMED if found.upper < LEVEL else above(found, LEVEL - 0.01))
        figures.append(f"{SHOWN[method]} {found.mean:.3f} [{found.lower:.3f}, {found.upper:.3f}], {len(by_set)} sets")
    return Verdict(all_of(*words), "; ".join(figures))


def asymmetric_is_wider(rows: Rows) -> Verdict:
    """Asymmetric calibration gives wider intervals in most runs; methods on one split count once."""
    flags: dict[tuple[str, int], list[float]] = {}
    for row in succeeded(rows):
        wider = float(row["asymmetric_mean_width"] > row["mean_width"])
        flags.setdefault((row["dataset"], row["repetition"]), []).append(wider)
    found = corrected_interval([float(np.mean(pair)) for pair in flags.values()], 0.0)
    return Verdict(above(found, 0.5), f"in {_percent(found)} of {len(succeeded(rows))} runs; paper 69.2 %")


def no_better_locally(rows: Rows) -> Verdict:
    """Asymmetric calibration brings worst-set coverage nearer to nominal by less than 0.005."""
    some = needed(succeeded(rows), "rows")
    sym, asym = (np.array([worst_set_distance(row, prefix) for row in some]) for prefix in ("", "asymmetric_"))
    gain = corrected_interval(sym - asym, 0.0)
    figure = f"mean distance {asym.mean():.4f} and {sym.mean():.4f} (paper 0.0322 and 0.0315); gain {shown(gain)}"
    return Verdict(below(gain, 0.005), figure)


def selected(rows: Rows, dataset: str, penalty: float, low: float, high: float) -> Verdict:
    """The share of splits where the paper's rule selects this penalty lies in [low, high]."""
    some = needed([row for row in _of_set(rows, dataset) if row["method"] == PAPER], f"pen. kSoS on {dataset}")
    found = share(column(some, "symmetry_penalty") == penalty)
    outside = found.upper < low or found.lower > high
    word = NOT_CONFIRMED if outside else CONFIRMED if low <= found.mean <= high and len(some) >= 10 else OPEN
    return Verdict(word, f"in {_percent(found)} of {len(some)} splits")


def _differences(rows: Rows, name: str, dataset: str, rivals: tuple[str, ...]) -> tuple[dict[str, MeanInterval], str]:
    """The paper's bands minus each rival, and in words the rivals with fewer than two common splits."""
    gaps, lacking = {}, []
    for rival in rivals:
        try:
            gaps[rival] = corrected_interval(paired(rows, name, PAPER, rival), overlap(dataset))
        except MissingRowsError:
            lacking.append(SHOWN[rival])
    needed(list(gaps), f"rivals on {dataset}")
    return gaps, f"; too few splits of {', '.join(lacking)}" if lacking else ""


def _of_set(rows: Rows, dataset: str) -> Rows:
    return needed([row for row in succeeded(rows) if row["dataset"] == dataset], f"rows of {dataset}")


def _complete_sets(rows: Rows) -> dict[str, Rows]:
    """Data sets with rows of all four methods, and of these the repetitions that all methods have."""
    found = {}
    for name, some in grouped(succeeded(rows), "dataset").items():
        by_method = grouped(some, "method")
        if all(method in by_method for method in (PAPER, *RIVALS)):
            common = set.intersection(*({row["repetition"] for row in group} for group in by_method.values()))
            if common:
                found[name] = [row for row in some if row["repetition"] in common]
    needed(list(found), "data sets with all methods")
    return found


def _rank(values: dict[str, float]) -> int:
    return 1 + sum(value < values[PAPER] for value in values.values())


def _percent(found: MeanInterval) -> str:
    return f"{found.mean:.1%} [{found.lower:.1%}, {found.upper:.1%}]"
