"""Claims of the paper about the synthetic cases, as functions of the rows."""

from __future__ import annotations

import numpy as np

from sosbands._types import AnyArray
from sosbands.comparison import MeanInterval, corrected_interval
from sosbands.experiments.config import Rows
from sosbands.experiments.figures import column, grouped, succeeded
from sosbands.experiments.map_panels import largest
from sosbands.experiments.methods import PAPER, PAPER_CQR, SHOWN
from sosbands.experiments.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    OPEN,
    Verdict,
    above,
    all_of,
    below,
    means,
    near,
    needed,
    paired,
    share,
    share_difference,
    shown,
)

COMPETITORS = (PAPER_CQR, "gp", "het-gp", "squared-sos")
MARGIN = 0.05  # relative differences up to this count as none
Setting = tuple[int, int, str]  # case, n, point model


def lower(rows: Rows, case: int, name: str, rivals: tuple[str, ...] = COMPETITORS, method: str = PAPER) -> Verdict:
    """A method has a lower mean of a column than each of its rivals, on one case."""
    some = _of_case(rows, case)
    gaps = {rival: corrected_interval(paired(some, name, method, rival), 0.0) for rival in rivals}
    values = means(some, name)
    rival = min(rivals, key=lambda each: values[each])
    figure = f"{values[method]:.3g}; {SHOWN[rival]} {values[rival]:.3g}, difference {shown(gaps[rival])}"
    return Verdict(all_of(*map(below, gaps.values())), figure)


def equal(rows: Rows, case: int, name: str, rival: str) -> Verdict:
    """The paper's bands and a rival differ by at most 5 % in the mean of a column, on one case."""
    some = _of_case(rows, case)
    unit = means(needed(some, f"rows of case {case}"), name)[rival]
    gap = corrected_interval(paired(some, name, PAPER, rival) / unit, 0.0)
    return Verdict(near(gap, MARGIN), f"relative difference {shown(gap)}")


def hides_in_the_middle(rows: Rows, case: int) -> Verdict:
    """The heteroscedastic process is at most 5 % worse in width and coverage gap, but worse in those of both ends."""
    some = _of_case(rows, case)
    words, figures = [], []
    for name in ("mean_width", "acg", "acg_lower", "acg_upper"):
        gap = corrected_interval(paired(some, name, "het-gp", PAPER) / means(some, name)[PAPER], 0.0)
        words.append(above(gap) if name in ("acg_lower", "acg_upper") else below(gap, MARGIN))
        figures.append(f"{name} {shown(gap)}")
    return Verdict(all_of(*words), f"het. GP minus pen. kSoS, relative: {', '.join(figures)}")


def constant_width_is_found(rows: Rows, case: int) -> Verdict:
    """The paper's independence test chooses constant width in most draws."""
    some = [row for row in _of_case(rows, case) if row["method"] == PAPER]
    found = share(column(some, "constant_width"))
    return Verdict(
        above(found, 0.5), f"in {found.mean:.0%} [{found.lower:.0%}, {found.upper:.0%}] of {len(some)} draws"
    )


def fewer_asymmetric(rows: Rows, first: Setting, second: Setting) -> Verdict:
    """Purely asymmetric bands are selected less often in the second setting."""
    groups = grouped([row for row in succeeded(rows) if row["method"] == PAPER], "case", "n", "point_model")
    a, b = (needed(groups.get(key, []), f"draws of {key}") for key in (first, second))
    gap = _paired_shares(a, b) if first[:2] == second[:2] else share_difference(_asymmetric(b), _asymmetric(a))
    figure = f"{_asymmetric(a).mean():.0%} of {len(a)} and {_asymmetric(b).mean():.0%} of {len(b)} draws"
    return Verdict(below(gap), f"{figure}; difference {shown(gap)}")


def longer_with_width_penalty(rows: Rows) -> Verdict:
    """The best lengthscale grows with the width penalty, in each draw that has all four."""
    best = []
    for some in grouped(succeeded(rows), "draw").values():
        by_b = {row["width_penalty"]: row for row in some}
        if len(by_b) == 4:
            best.append([largest(row, "hsic").factor for _, row in sorted(by_b.items())])
    grew = [factors[-1] > factors[0] for factors in needed(best, "draws with all width penalties")]
    word = CONFIRMED if all(grew) else OPEN if any(grew) else NOT_CONFIRMED
    figure = "; ".join(" ".join(f"{factor:.2g}" for factor in factors) for factors in best)
    return Verdict(word, f"best lengthscale over the median for b = 1, 10, 100, 1000: {figure}")


def no_gain_from_operators(rows: Rows) -> Verdict:
    """The operator penalty lowers neither widths nor coverage gaps by more than 5 %."""
    fine = [{**row, "method": row["kind"]} for row in succeeded(rows)]
    case, real = [row for row in fine if row.get("case") == 1], [row for row in fine if "dataset" in row]
    words, figures = [], []
    for label, name, some in (
        ("case 1 width", "mean_width", case),
        ("case 1 ACG^c", "acg_combined", case),
        ("Diabetes width", "mean_width", real),
        ("Diabetes worst set", "worst_set_coverage_lower", real),
        ("Diabetes worst set, above", "worst_set_coverage_upper", real),
    ):
        unit = means(needed(some, label), name)["training"]
        gap = corrected_interval(paired(some, name, "operator", "training") / unit, 0.0)
        gain = gap if "worst" in label else MeanInterval(-gap.mean, -gap.upper, -gap.lower)
        words.append(below(gain, MARGIN))
        figures.append(f"{label} {shown(gap)}")
    return Verdict(all_of(*words), "relative change: " + ", ".join(figures))


def _of_case(rows: Rows, case: int) -> Rows:
    return needed([row for row in succeeded(rows) if row["case"] == case], f"rows of case {case}")


def _asymmetric(rows: Rows) -> AnyArray:
    return np.asarray(column(rows, "symmetry_penalty") == 0)


def _paired_shares(first: Rows, second: Rows) -> MeanInterval:
    """Second minus first over the draws that both have."""
    both = [
        {**row, "method": which, "asymmetric": row["symmetry_penalty"] == 0}
        for which, rows in (("first", first), ("second", second))
        for row in rows
    ]
    return corrected_interval(paired(both, "asymmetric", "second", "first"), 0.0)
