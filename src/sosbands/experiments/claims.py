"""Table: what the paper claims in words, and what the stored rows say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from sosbands.comparison import TextTable, corrected_interval
from sosbands.experiments import claims_real as real
from sosbands.experiments import claims_synthetic as synthetic
from sosbands.experiments.config import Config, Rows
from sosbands.experiments.figures import succeeded
from sosbands.experiments.methods import PAPER, PAPER_CQR
from sosbands.experiments.verdicts import NO_ROWS, MissingRowsError, Verdict, above, needed, paired, shown

Check = Callable[[Rows], Verdict]


def warm_start_saves(rows: Rows) -> Verdict:
    """The paper's recipe needs at least 65 % fewer iterations on a path with warm starts."""
    saved = {}
    for solver, what in (("recipe", "iterations"), ("sosbands", "decompositions")):
        some = needed([row for row in succeeded(rows) if row["solver"] == solver], f"rows of {solver}")
        saved[solver] = corrected_interval([1 - sum(r[f"warm_{what}"]) / sum(r[f"cold_{what}"]) for r in some], 0.0)
    figure = f"iterations saved by the recipe {shown(saved['recipe'])}; our solver, decompositions "
    return Verdict(above(saved["recipe"], 0.65), figure + shown(saved["sosbands"]))


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


def _case(claim: str, check: Check) -> tuple[str, str, Check]:
    return claim, "synthetic-cases", check


ACG, WIDTH, RMSE = "acg_combined", "mean_width", "rmse"
# The claim, the entry with its rows, and the check.
CLAIMS: tuple[tuple[str, str, Check], ...] = (
    _case("Case 1: lowest ACG^c", partial(synthetic.lower, case=1, name=ACG)),
    _case(
        "Case 1: symmetric kSoS has the same width (5 %)",
        partial(synthetic.equal, case=1, name=WIDTH, rival="squared-sos"),
    ),
    _case("Case 1: narrower than the het. GP", partial(synthetic.lower, case=1, name=WIDTH, rivals=("het-gp",))),
    _case(
        "Case 1: smaller RMSE than CQR and both GPs", partial(synthetic.lower, case=1, name=RMSE, rivals=real.RIVALS)
    ),
    _case(
        "Case 2: lower ACG^c than CQR and hom. GP", partial(synthetic.lower, case=2, name=ACG, rivals=(PAPER_CQR, "gp"))
    ),
    _case("Case 2: narrower than the het. GP", partial(synthetic.lower, case=2, name=WIDTH, rivals=("het-gp",))),
    _case(
        "Case 2: symmetric kSoS is narrower still",
        partial(synthetic.lower, case=2, name=WIDTH, rivals=(PAPER,), method="squared-sos"),
    ),
    _case("Case 3: lowest ACG^c", partial(synthetic.lower, case=3, name=ACG)),
    _case(
        "Case 3: narrower than CQR, het. GP and symmetric kSoS",
        partial(synthetic.lower, case=3, name=WIDTH, rivals=(PAPER_CQR, "het-gp", "squared-sos")),
    ),
    _case("Case 3: smallest RMSE", partial(synthetic.lower, case=3, name=RMSE)),
    _case("Case 4: lowest ACG^c", partial(synthetic.lower, case=4, name=ACG)),
    _case("Case 4: smallest width", partial(synthetic.lower, case=4, name=WIDTH)),
    _case("Case 5: lowest ACG^c", partial(synthetic.lower, case=5, name=ACG)),
    _case("Case 5: smallest width", partial(synthetic.lower, case=5, name=WIDTH)),
    _case("Case 5: smallest RMSE", partial(synthetic.lower, case=5, name=RMSE)),
    _case(
        "Case 6: the independence test finds constant width in most draws",
        partial(synthetic.constant_width_is_found, case=6),
    ),
    _case(
        "Case 4: het. GP no worse (5 %) in width and ACG, worse in ACG of both ends",
        partial(synthetic.hides_in_the_middle, case=4),
    ),
    _case(
        "Case 5: het. GP no worse (5 %) in width and ACG, worse in ACG of both ends",
        partial(synthetic.hides_in_the_middle, case=5),
    ),
    (
        "Case 2: pure asymmetry is selected less often with n = 200 than with 100",
        "penalty-histograms",
        partial(synthetic.fewer_asymmetric, first=(2, 100, "gp"), second=(2, 200, "gp")),
    ),
    (
        "Case 1: pure asymmetry is selected less often around the true mean",
        "penalty-histograms",
        partial(synthetic.fewer_asymmetric, first=(1, 100, "gp"), second=(1, 100, "oracle")),
    ),
    (
        "The best lengthscale grows with the width penalty (case 2)",
        "width-penalty-maps",
        synthetic.longer_with_width_penalty,
    ),
    ("The operator penalty improves nothing (by more than 5 %)", "penalty-kinds", synthetic.no_gain_from_operators),
    ("Warm start is 65 % cheaper than cold start", "warm-start", warm_start_saves),
    (
        "The SDP stops at n = 200 (there: over 10 times slower than the dual)",
        "sdp-time",
        partial(sdp_is_slower, n=200, factor=10),
    ),
    ("All methods reach the nominal coverage (to 0.01)", "real-coverage", real.covers),
    ("Concrete: WSC^c closest to 1 - alpha/2", "real-worst-set", partial(real.closest_worst_set, dataset="Concrete")),
    ("Housing: WSC^c closest to 1 - alpha/2", "real-worst-set", partial(real.closest_worst_set, dataset="Housing")),
    ("First or second by WSC^c and by width on every set", "real-worst-set", real.first_or_second),
    (
        "WSC^c better than CQR's on most sets",
        "real-worst-set",
        partial(real.nearer_on_most_sets, first=PAPER, second=PAPER_CQR),
    ),
    (
        "WSC^c better than the hom. GP's on most sets",
        "real-worst-set",
        partial(real.nearer_on_most_sets, first=PAPER, second="gp"),
    ),
    ("CQR's intervals are much wider (10 %) on most sets", "real-width", partial(real.much_wider, rival=PAPER_CQR)),
    ("Diabetes: narrower than the hom. GP", "real-width", partial(real.narrower, dataset="Diabetes", rivals=("gp",))),
    ("Energy: narrower than both GPs", "real-width", partial(real.narrower, dataset="Energy", rivals=real.GPS)),
    ("Miami: narrower than both GPs", "real-width", partial(real.narrower, dataset="Miami", rivals=real.GPS)),
    (
        "Bike: pure asymmetry is never selected",
        "real-penalties",
        partial(real.selected, dataset="Bike", penalty=0.0, low=0.0, high=0.0),
    ),
    (
        "Diabetes: a symmetric model half of the time (0.3 to 0.7)",
        "real-penalties",
        partial(real.selected, dataset="Diabetes", penalty=math.inf, low=0.3, high=0.7),
    ),
    ("Asymmetric calibration is wider most of the time (69 %)", "calibration", real.asymmetric_is_wider),
    ("Asymmetric calibration does not improve local coverage (by 0.005)", "calibration", real.no_better_locally),
)


def compute(config: Config) -> Rows:
    """A row per claim, from rows that are stored; nothing is computed anew."""
    stored = replace(config, compute_missing=False)
    rows = {
        entry: import_module(f"sosbands.experiments.{entry.replace('-', '_')}").compute(stored)
        for entry in dict.fromkeys(entry for _, entry, _ in CLAIMS)
    }
    found = [{"claim": claim, "entry": entry, **_checked(check, rows[entry])} for claim, entry, check in CLAIMS]
    return found if any(row["verdict"] != NO_ROWS for row in found) else []


def draw(rows: Rows) -> TextTable:
    """The claims with their verdicts."""
    keep = ("claim", "verdict", "figure", "entry")
    return TextTable([{name: row[name] for name in keep} for row in rows])


def _checked(check: Check, rows: Rows) -> dict[str, Any]:
    try:
        verdict = check(rows)
    except MissingRowsError as error:
        verdict = Verdict(NO_ROWS, str(error))
    return {"verdict": verdict.word, "figure": verdict.figure, "error_type": None}
