"""Claims of the paper about the real data sets, as functions of the rows."""

from __future__ import annotations

import numpy as np

from sosbands._types import Array
from sosbands.comparison import MeanInterval, corrected_interval
from sosbands.datasets.catalogue import PAPER_SETS
from sosbands.experiments.config import Rows
from sosbands.experiments.figures import column, grouped, succeeded
from sosbands.experiments.methods import PAPER, SHOWN
from sosbands.experiments.verdicts import CONFIRMED, NOT_CONFIRMED, OPEN, Verdict, all_of, below, paired, share, shown

TARGET = 0.95  # of each end, at level 0.9
CONFORMAL = 0.9


def _distance(rows: Rows, prefix: str = "") -> Array:
    """Distance of the worst-set coverage of the ends from nominal, mean of both."""
    ends = [column(rows, f"{prefix}worst_set_coverage_{end}") for end in ("lower", "upper")]
    return np.asarray(np.mean([np.abs(end - TARGET) for end in ends], axis=0))


def closest_worst_set(rows: Rows, dataset: str) -> Verdict:
    """The paper's bands have the combined worst-set coverage nearest to nominal among the paper's methods."""
    some = [row for row in succeeded(rows) if row["dataset"] == dataset]
    pooled = {method: _pooled(group) for method, group in grouped(some, "method").items()}
    away = {method: abs(value.mean - TARGET) for method, value in pooled.items()}
    order = sorted(away, key=lambda method: away[method])
    figure = ", ".join(f"{SHOWN[method]} {pooled[method].mean:.3f}" for method in order)
    if order[0] != PAPER:
        return Verdict(NOT_CONFIRMED, figure)
    separate = away[order[1]] - away[PAPER] > pooled[PAPER].upper - pooled[PAPER].mean
    return Verdict(CONFIRMED if separate else OPEN, f"{figure}; ± {pooled[PAPER].upper - pooled[PAPER].mean:.3f}")


def _pooled(rows: Rows) -> MeanInterval:
    ends = (column(rows, "worst_set_coverage_lower") + column(rows, "worst_set_coverage_upper")) / 2
    return corrected_interval(ends, 0.0)


def narrower(rows: Rows, dataset: str, rivals: tuple[str, ...]) -> Verdict:
    """The paper's bands are narrower than those of some methods on a data set."""
    some = [row for row in succeeded(rows) if row["dataset"] == dataset]
    unit = float(column([row for row in some if row["method"] == PAPER], "mean_width").mean())
    gaps = {}
    for rival in rivals:
        gaps[rival] = corrected_interval(paired(some, "mean_width", PAPER, rival) / unit, _test_ratio(dataset))
    figure = "; ".join(f"to {SHOWN[rival]} {shown(gap)}" for rival, gap in gaps.items())
    return Verdict(all_of(*map(below, gaps.values())), f"relative difference of widths {figure}")


def _test_ratio(dataset: str) -> float:
    """Test rows over the other rows of a split."""
    paper = next(paper for paper in PAPER_SETS if paper.name == dataset)
    return paper.n_test / (paper.n_learning + paper.n_calibration)


def asymmetric_is_wider(rows: Rows) -> Verdict:
    """Asymmetric calibration gives wider intervals in most runs; the paper counts 69.17 %."""
    some = succeeded(rows)
    wider = share(column(some, "asymmetric_mean_width") > column(some, "mean_width"))
    word = below(MeanInterval(-wider.mean, -wider.upper, -wider.lower), -0.5)
    return Verdict(word, f"{wider.mean:.1%} [{wider.lower:.1%}, {wider.upper:.1%}] of {len(some)} runs; paper 69.2 %")


def no_better_locally(rows: Rows) -> Verdict:
    """Asymmetric calibration brings worst-set coverage no nearer to nominal."""
    some = succeeded(rows)
    gain = corrected_interval(_distance(some) - _distance(some, "asymmetric_"), 0.0)
    figure = f"{_distance(some, 'asymmetric_').mean():.4f} and {_distance(some).mean():.4f} (paper 0.0322 and 0.0315)"
    word = CONFIRMED if gain.upper < 0.005 else NOT_CONFIRMED if gain.lower > 0 else OPEN
    return Verdict(word, f"mean distance from 0.95 {figure}; gain {shown(gain)}")


def covers(rows: Rows) -> Verdict:
    """All methods reach the nominal coverage on average."""
    figures, words = [], []
    for method, some in grouped(succeeded(rows), "method").items():
        by_set = [float(column(group, "coverage").mean()) for group in grouped(some, "dataset").values()]
        interval = corrected_interval(by_set, 0.0)
        words.append(NOT_CONFIRMED if interval.upper < CONFORMAL else CONFIRMED)
        figures.append(f"{SHOWN[method]} {interval.mean:.3f} [{interval.lower:.3f}, {interval.upper:.3f}]")
    return Verdict(all_of(*words), "mean over data sets: " + ", ".join(figures))


def wider_than(rows: Rows, rival: str) -> Verdict:
    """A rival's intervals are wider than the paper's bands on most data sets."""
    ratios = {}
    for name, some in grouped(succeeded(rows), "dataset").items():
        widths = {method: np.median(column(group, "mean_width")) for method, group in grouped(some, "method").items()}
        if rival in widths and PAPER in widths:
            ratios[name] = float(widths[rival] / widths[PAPER])
    wider = share(np.array([ratio > 1 for ratio in ratios.values()]))
    figure = f"on {sum(ratio > 1 for ratio in ratios.values())} of {len(ratios)} sets, median ratio "
    word = below(MeanInterval(-wider.mean, -wider.upper, -wider.lower), -0.5)
    return Verdict(word, f"{figure}{np.median(list(ratios.values())):.2f}")


def asymmetric_share(rows: Rows, dataset: str, most: float) -> Verdict:
    """Purely asymmetric bands are selected on a data set in at most this share of the splits."""
    some = [row for row in succeeded(rows) if row["dataset"] == dataset and row["method"] == PAPER]
    found = share(column(some, "symmetry_penalty") == 0)
    word = CONFIRMED if found.mean <= most else NOT_CONFIRMED
    return Verdict(word, f"in {found.mean:.0%} of {len(some)} splits")


def symmetric_share(rows: Rows, dataset: str, least: float) -> Verdict:
    """Symmetric bands (also of constant width) are selected in at least this share of the splits."""
    some = [row for row in succeeded(rows) if row["dataset"] == dataset and row["method"] == PAPER]
    found = share(np.isinf(column(some, "symmetry_penalty")))
    word = CONFIRMED if found.mean >= least else NOT_CONFIRMED
    return Verdict(word, f"in {found.mean:.0%} of {len(some)} splits")
