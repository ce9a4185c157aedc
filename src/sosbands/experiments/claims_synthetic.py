"""Claims of the paper about the synthetic cases, as functions of the rows."""

from __future__ import annotations

from sosbands.comparison import MeanInterval, corrected_interval
from sosbands.experiments.config import Rows
from sosbands.experiments.figures import column, grouped, succeeded
from sosbands.experiments.methods import PAPER, PAPER_CQR, SHOWN
from sosbands.experiments.verdicts import Verdict, all_of, below, means, near, paired, share_difference, shown

COMPETITORS = (PAPER_CQR, "gp", "het-gp", "squared-sos")


def lowest(rows: Rows, case: int, name: str, what: str) -> Verdict:
    """The paper's bands have the lowest mean of a column among its methods, on one case."""
    some = [row for row in succeeded(rows) if row["case"] == case and row["method"] in (PAPER, *COMPETITORS)]
    values = means(some, name)
    others = {method: values[method] for method in COMPETITORS if method in values}
    rival = min(others, key=lambda method: others[method])
    gap = corrected_interval(paired(some, name, PAPER, rival), 0.0)
    figure = f"{what} {values[PAPER]:.3g}, next {SHOWN[rival]} {values[rival]:.3g}; difference {shown(gap)}"
    return Verdict(below(gap), figure)


def narrower(rows: Rows, case: int, rivals: tuple[str, ...]) -> Verdict:
    """The paper's bands are narrower than those of some methods, in units of the oracle's width."""
    some = [row for row in succeeded(rows) if row["case"] == case]
    unit = float(column(some, "oracle_width").mean())
    gaps = {rival: corrected_interval(paired(some, "mean_width", PAPER, rival) / unit, 0.0) for rival in rivals}
    figure = "; ".join(f"to {SHOWN[rival]} {shown(gap)}" for rival, gap in gaps.items())
    return Verdict(all_of(*map(below, gaps.values())), f"difference of widths over the oracle's: {figure}")


def as_wide_as_symmetric(rows: Rows) -> Verdict:
    """On case 1 the symmetric and the penalised bands are equally wide (within 5 % of the oracle's width)."""
    some = [row for row in succeeded(rows) if row["case"] == 1]
    unit = float(column(some, "oracle_width").mean())
    gap = corrected_interval(paired(some, "mean_width", PAPER, "squared-sos") / unit, 0.0)
    return Verdict(near(gap, 0.05), f"difference of widths over the oracle's {shown(gap)}")


def fewer_asymmetric(rows: Rows, first: tuple[int, int, str], second: tuple[int, int, str]) -> Verdict:
    """Purely asymmetric bands are selected less often in the second setting (case, n, point model)."""
    groups = grouped([row for row in succeeded(rows) if row["method"] == PAPER], "case", "n", "point_model")
    flags = [column(groups[key], "symmetry_penalty") == 0 for key in (first, second)]
    gap = share_difference(flags[1], flags[0])
    figure = f"{flags[0].mean():.0%} and {flags[1].mean():.0%} of {len(flags[0])} and {len(flags[1])} draws"
    return Verdict(below(gap), f"{figure}; difference {shown(gap)}")


def hides_behind_the_middle(rows: Rows, case: int) -> Verdict:
    """The heteroscedastic process is no worse in width and coverage gap, but worse in the gaps of both ends."""
    some = [row for row in succeeded(rows) if row["case"] == case]
    gaps: dict[str, MeanInterval] = {}
    for name in ("mean_width", "acg", "acg_lower", "acg_upper"):
        gaps[name] = corrected_interval(paired(some, name, "het-gp", PAPER), 0.0)
    middle = [below(gaps[name]) for name in ("mean_width", "acg")]
    ends = [below(MeanInterval(-gap.mean, -gap.upper, -gap.lower)) for gap in (gaps["acg_lower"], gaps["acg_upper"])]
    figure = ", ".join(f"{name} {shown(gap)}" for name, gap in gaps.items())
    return Verdict(all_of(*middle, *ends), f"het. GP minus pen. kSoS: {figure}")


def no_gain_from_operators(rows: Rows) -> Verdict:
    """The operator penalty improves neither width nor local coverage (differences within 5 % of the mean)."""
    words, figures = [], []
    for label, name, some in (
        ("case 1 width", "mean_width", [row for row in succeeded(rows) if row.get("case") == 1]),
        ("case 1 ACG^c", "acg_combined", [row for row in succeeded(rows) if row.get("case") == 1]),
        ("Diabetes width", "mean_width", [row for row in succeeded(rows) if "dataset" in row]),
    ):
        kinds = [{**row, "method": row["kind"]} for row in some]
        unit = means(kinds, name)["training"]
        gap = corrected_interval(paired(kinds, name, "operator", "training") / unit, 0.0)
        words.append(below(MeanInterval(-gap.mean, -gap.upper, -gap.lower), 0.05))  # no gain above 5 %
        figures.append(f"{label} {shown(gap)}")
    return Verdict(all_of(*words), "relative change: " + ", ".join(figures))


def longer_with_width_penalty(rows: Rows) -> Verdict:
    """The best lengthscale grows with the width penalty."""
    ends = []
    for some in grouped(succeeded(rows), "draw").values():
        by_b = {row["width_penalty"]: row for row in some}
        ends.append([_best_factor(by_b[b]) for b in sorted(by_b)])
    grew = [factors[-1] > factors[0] for factors in ends]
    figure = "; ".join(" ".join(f"{factor:.2g}" for factor in factors) for factors in ends)
    word = "confirmed" if all(grew) else "not confirmed"
    return Verdict(word, f"best lengthscale over the median for b = 1, 10, 100, 1000: {figure}")


def _best_factor(row: dict[str, list[list[float]]]) -> float:
    best = max(range(len(row["factors"])), key=lambda i: max(row["hsic"][i]))
    return float(row["factors"][best])  # type: ignore[arg-type]
