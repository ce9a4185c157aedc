"""Claims of the paper about the synthetic cases, as functions of the rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from sosbands.comparison import MeanInterval, corrected_interval
from studies.claims.verdicts import (
    CONFIRMED,
    MARGIN,
    NOT_CONFIRMED,
    Claim,
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
from studies.drawing.figures import column, grouped, succeeded
from studies.runs.config import Rows
from studies.runs.methods import PAPER, PAPER_CQR, SHOWN

SYMMETRIC = "squared-sos"
COMPETITORS = (PAPER_CQR, "gp", "het-gp", SYMMETRIC)
ACG, WIDTH, RMSE = "acg_combined", "mean_width", "rmse"
Setting = tuple[int, int, str]  # case, n, point model
_POINT_MODELS = {"gp": "around a GP", "oracle": "around the true mean"}


def lower(rows: Rows, case: int, name: str, rivals: tuple[str, ...] = COMPETITORS, method: str = PAPER) -> Verdict:
    """A method has a lower mean of a column than each of its rivals, on one case."""
    some = _of_case(rows, case)
    gaps = {rival: corrected_interval(paired(some, name, method, rival), 0.0) for rival in rivals}
    values = means(some, name)
    rival = min(rivals, key=lambda each: values[each])
    figure = f"{values[method]:.3g}; {SHOWN[rival]} {values[rival]:.3g}, difference {shown(gaps[rival])}"
    return Verdict(all_of(*map(below, gaps.values())), figure)


def equal(rows: Rows, case: int, name: str, rival: str, margin: float = MARGIN, method: str = PAPER) -> Verdict:
    """Two methods differ by at most a relative margin in the mean of a column, on one case."""
    some = _of_case(rows, case)
    differences = paired(some, name, method, rival)
    gap = corrected_interval(differences / means(some, name)[rival], 0.0)
    return Verdict(near(gap, margin), f"relative difference {shown(gap)}")


def hides_in_the_middle(rows: Rows, case: int) -> Verdict:
    """In some draw the heteroscedastic process is at most 5 % worse in width and ACG, but worse at both ends."""
    some = _of_case(rows, case)
    gaps = {
        name: paired(some, name, "het-gp", PAPER) / means(some, name)[PAPER]
        for name in ("mean_width", "acg", "acg_lower", "acg_upper")
    }
    hidden = (gaps["mean_width"] <= MARGIN) & (gaps["acg"] <= MARGIN)
    hidden &= (gaps["acg_lower"] > 0) & (gaps["acg_upper"] > 0)
    return Verdict(CONFIRMED if hidden.any() else NOT_CONFIRMED, f"in {hidden.sum()} of {len(hidden)} draws")


def constant_width_is_found(rows: Rows, case: int, method: str = SYMMETRIC) -> Verdict:
    """The independence test of a method chooses constant width in most draws."""
    some = [row for row in _of_case(rows, case) if row["method"] == method and "constant_width" in row]
    found = share(column(some, "constant_width"))
    return Verdict(above(found, 0.5), f"in {shown(found, '.0%')} of {len(some)} draws")


def mostly_symmetric(rows: Rows, case: int) -> Verdict:
    """The paper's rule selects an infinite penalty in most draws."""
    some = [row for row in _of_case(rows, case) if row["method"] == PAPER]
    found = share(np.isinf(column(some, "symmetry_penalty")))
    constant = int(column(some, "constant_width").sum())
    figure = f"infinite penalty in {shown(found, '.0%')} of {len(some)} draws, {constant} of them with constant width"
    return Verdict(above(found, 0.5), figure)


def selected_less_often(rows: Rows, penalty: float, first: Setting, second: Setting) -> Verdict:
    """A penalty is selected less often in the second setting."""
    groups = grouped([row for row in succeeded(rows) if row["method"] == PAPER], "case", "n", "point_model")
    one, other = (needed(groups.get(key, []), f"draws of {key}") for key in (first, second))
    a, b = (np.asarray(column(each, "symmetry_penalty") == penalty) for each in (one, other))
    paired_draws = first[:2] == second[:2]
    gap = _paired_shares(one, other, penalty) if paired_draws else share_difference(b, a)
    names = (
        (_POINT_MODELS[first[2]], _POINT_MODELS[second[2]]) if paired_draws else (f"n = {first[1]}", f"n = {second[1]}")
    )
    shares = ", ".join(f"{name} {each.mean():.1%} of {len(each)}" for name, each in zip(names, (a, b), strict=True))
    return Verdict(below(gap), f"{shares} draws; difference {shown(gap)}")


def _of_case(rows: Rows, case: int) -> Rows:
    return needed([row for row in succeeded(rows) if row["case"] == case], f"rows of case {case}")


def _paired_shares(first: Rows, second: Rows, penalty: float) -> MeanInterval:
    """Second minus first over the draws that both have."""
    both = [
        {**row, "method": which, "selected": row["symmetry_penalty"] == penalty}
        for which, rows in (("first", first), ("second", second))
        for row in rows
    ]
    return corrected_interval(paired(both, "selected", "second", "first"), 0.0)


def _lower(
    case: int, words: str, name: str, rivals: tuple[str, ...] = COMPETITORS, method: str = PAPER, entry: str = "cases"
) -> Claim:
    check = partial(lower, case=case, name=name, rivals=rivals, method=method)
    return Claim(f"Case {case}: {words}", f"synthetic-{entry}", check)


def _equal(case: int, words: str, name: str, rival: str, margin: float = MARGIN, method: str = PAPER) -> Claim:
    check = partial(equal, case=case, name=name, rival=rival, margin=margin, method=method)
    return Claim(f"Case {case}: {words} ({100 * margin:g} %)", "synthetic-cases", check)


def _less_often(words: str, penalty: float, first: Setting, second: Setting) -> Claim:
    check = partial(selected_less_often, penalty=penalty, first=first, second=second)
    return Claim(words, "penalty-histograms", check)


WORST = (PAPER_CQR, "gp")  # where the noise is symmetric
CLAIMS = (
    _lower(1, "CQR and hom. GP have a higher ACG^c", ACG, WORST, entry="main"),
    _lower(1, "het. GP has a lower ACG^c than CQR and hom. GP", ACG, WORST, "het-gp"),
    _lower(1, "sym. kSoS has a lower ACG^c than CQR and hom. GP", ACG, WORST, SYMMETRIC),
    _lower(1, "lower ACG^c than het. GP and sym. kSoS", ACG, ("het-gp", SYMMETRIC), entry="main"),
    _lower(1, "narrower than CQR and hom. GP", WIDTH, WORST),
    _lower(1, "narrower than the het. GP", WIDTH, ("het-gp",), entry="main"),
    _lower(1, "sym. kSoS narrower than CQR and both GPs", WIDTH, (*WORST, "het-gp"), SYMMETRIC),
    _equal(1, "sym. kSoS has the same width", WIDTH, SYMMETRIC),
    _lower(1, "smaller RMSE than CQR and both GPs", RMSE, (*WORST, "het-gp")),
    _lower(1, "sym. kSoS too has a smaller RMSE than CQR and both GPs", RMSE, (*WORST, "het-gp"), SYMMETRIC),
    _lower(2, "lower ACG^c than CQR and hom. GP", ACG, WORST),
    _lower(2, "het. GP has a lower ACG^c than CQR and hom. GP", ACG, WORST, "het-gp"),
    _equal(2, "sym. kSoS has the same ACG^c", ACG, SYMMETRIC),
    _lower(2, "narrower than the het. GP", WIDTH, ("het-gp",)),
    _lower(2, "smaller RMSE than the het. GP", RMSE, ("het-gp",)),
    _lower(2, "sym. kSoS is narrower still", WIDTH, (PAPER,), SYMMETRIC),
    _lower(2, "sym. kSoS has a smaller RMSE still", RMSE, (PAPER,), SYMMETRIC),
    _lower(3, "lowest ACG^c", ACG, entry="main"),
    _lower(3, "lower ACG^c than the hom. GP", ACG, ("gp",), entry="main"),
    _lower(3, "narrower than CQR, het. GP and sym. kSoS", WIDTH, (PAPER_CQR, "het-gp", SYMMETRIC), entry="main"),
    _lower(
        3,
        "hom. GP narrower than CQR, het. GP and sym. kSoS",
        WIDTH,
        (PAPER_CQR, "het-gp", SYMMETRIC),
        "gp",
        entry="main",
    ),
    _lower(3, "smallest RMSE", RMSE),
    _lower(4, "lowest ACG^c", ACG, entry="main"),
    _lower(4, "smallest width", WIDTH, entry="main"),
    _lower(5, "lowest ACG^c", ACG),
    _lower(5, "smallest width", WIDTH),
    _lower(5, "smallest RMSE", RMSE),
    _lower(6, "hom. GP has the lowest ACG^c", ACG, (PAPER, PAPER_CQR, "het-gp", SYMMETRIC), "gp"),
    _lower(6, "hom. GP has the smallest width", WIDTH, (PAPER, PAPER_CQR, "het-gp", SYMMETRIC), "gp"),
    _lower(6, "hom. GP has the smallest RMSE", RMSE, (PAPER, PAPER_CQR, "het-gp", SYMMETRIC), "gp"),
    Claim(
        "Case 6: the independence test of sym. kSoS acts in most draws",
        "synthetic-cases",
        partial(constant_width_is_found, case=6),
    ),
    _equal(6, "sym. kSoS has the width of the hom. GP", WIDTH, "gp", method=SYMMETRIC),
    _equal(6, "sym. kSoS has the ACG^c of the hom. GP", ACG, "gp", 0.1, SYMMETRIC),
    Claim("Case 6: a symmetric model in most draws", "synthetic-cases", partial(mostly_symmetric, case=6)),
    _equal(6, "width close to that of the hom. GP", WIDTH, "gp"),
    _equal(6, "ACG^c close to that of the hom. GP", ACG, "gp", 0.1),
    *(
        Claim(
            f"Case {case}: het. GP can be no worse (5 %) in width and ACG, yet worse at both ends",
            "synthetic-cases",
            partial(hides_in_the_middle, case=case),
        )
        for case in (4, 5)  # the text says 4, the caption 5
    ),
    _less_often("Case 2: pure asymmetry less often with n = 200 than with 100", 0.0, (2, 100, "gp"), (2, 200, "gp")),
    _less_often(
        "Case 2: symmetric bands more often with n = 200 than with 100", np.inf, (2, 200, "gp"), (2, 100, "gp")
    ),
    _less_often("Case 1: pure asymmetry less often around the true mean", 0.0, (1, 100, "gp"), (1, 100, "oracle")),
    _less_often("Case 1: symmetric bands more often around the true mean", np.inf, (1, 100, "oracle"), (1, 100, "gp")),
)
