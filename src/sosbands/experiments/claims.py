"""Table: what the paper claims in words, and what the stored rows say."""

from __future__ import annotations

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
from sosbands.experiments.figures import column, grouped, succeeded
from sosbands.experiments.methods import PAPER_CQR
from sosbands.experiments.verdicts import CONFIRMED, NOT_CONFIRMED, Verdict, shown


def warm_start_saves(rows: Rows) -> Verdict:
    """The paper's recipe needs 65 % fewer iterations on a path with warm starts."""
    some = [row for row in succeeded(rows) if row["solver"] == "recipe"]
    saved = corrected_interval([1 - sum(r["warm_iterations"]) / sum(r["cold_iterations"]) for r in some], 0.0)
    ours = [row for row in succeeded(rows) if row["solver"] == "sosbands"]
    mine = corrected_interval([1 - sum(r["warm_decompositions"]) / sum(r["cold_decompositions"]) for r in ours], 0.0)
    word = CONFIRMED if saved.lower <= 0.65 <= saved.upper or saved.lower > 0.65 else NOT_CONFIRMED
    figure = f"iterations saved by the recipe {shown(saved)}; eigendecompositions saved by our solver {shown(mine)}"
    return Verdict(word, figure)


def sdp_stops(rows: Rows) -> Verdict:
    """The SDP cannot go beyond 200 points where the dual problem does 1000."""
    groups = grouped(succeeded(rows), "solver", "n")
    seconds = {key: float(np.mean(column(some, "solve_seconds"))) for key, some in groups.items()}
    figure = ", ".join(
        f"{solver} {n}: {seconds[solver, n]:.3g} s"
        for solver, n in (("sdp", 200), ("recipe", 200), ("sosbands", 200), ("recipe", 1000), ("sosbands", 1000))
        if (solver, n) in seconds
    )
    slower = seconds["sdp", 200] / seconds["recipe", 200]
    return Verdict(CONFIRMED if slower > 10 else NOT_CONFIRMED, f"{figure}; SDP over recipe at 200 points {slower:.0f}")


def best_everywhere(rows: Rows) -> Verdict:
    """The paper's bands are first or a close second in worst-set coverage and width on every data set."""
    ranks = {}
    for name, some in grouped(succeeded(rows), "dataset").items():
        verdict = real.closest_worst_set(some, name)
        order = [part.split(" 0.")[0] for part in verdict.figure.split("; ")[0].split(", ")]
        ranks[name] = 1 + order.index("pen. kSoS")
    first = sum(rank == 1 for rank in ranks.values())
    second = sum(rank == 2 for rank in ranks.values())
    word = CONFIRMED if first + second == len(ranks) else NOT_CONFIRMED
    rest = ", ".join(name for name, rank in ranks.items() if rank > 2)
    figure = f"by worst-set coverage first on {first}, second on {second} of {len(ranks)} sets"
    return Verdict(word, figure + (f", behind on {rest}" if rest else ""))


Check = Callable[[Rows], Verdict]
ACG = "mean ACG^c"
# The claim, the entry with its rows, and the check.
CLAIMS: tuple[tuple[str, str, Check], ...] = (
    (
        "Case 1: penalised kSoS has the lowest ACG^c",
        "synthetic-cases",
        partial(synthetic.lowest, case=1, name="acg_combined", what=ACG),
    ),
    ("Case 1: symmetric kSoS equals it in width", "synthetic-cases", synthetic.as_wide_as_symmetric),
    (
        "Case 1: narrower than the heteroscedastic GP",
        "synthetic-cases",
        partial(synthetic.narrower, case=1, rivals=("het-gp",)),
    ),
    (
        "Case 3: penalised kSoS has the lowest ACG^c",
        "synthetic-cases",
        partial(synthetic.lowest, case=3, name="acg_combined", what=ACG),
    ),
    (
        "Case 3: tight, unlike CQR, het. GP and symmetric kSoS",
        "synthetic-cases",
        partial(synthetic.narrower, case=3, rivals=(PAPER_CQR, "het-gp", "squared-sos")),
    ),
    (
        "Case 4: penalised kSoS has the lowest ACG^c",
        "synthetic-cases",
        partial(synthetic.lowest, case=4, name="acg_combined", what=ACG),
    ),
    (
        "Case 4: penalised kSoS has the lowest width",
        "synthetic-cases",
        partial(synthetic.lowest, case=4, name="mean_width", what="mean width"),
    ),
    (
        "Case 5: penalised kSoS has the lowest ACG^c",
        "synthetic-cases",
        partial(synthetic.lowest, case=5, name="acg_combined", what=ACG),
    ),
    (
        "Case 4: width and ACG favour the het. GP, ACG of both ends penalised kSoS",
        "synthetic-cases",
        partial(synthetic.hides_behind_the_middle, case=4),
    ),
    (
        "Case 5: width and ACG favour the het. GP, ACG of both ends penalised kSoS",
        "synthetic-cases",
        partial(synthetic.hides_behind_the_middle, case=5),
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
    ("The best lengthscale grows with the width penalty", "width-penalty-maps", synthetic.longer_with_width_penalty),
    ("The operator penalty brings no improvement", "penalty-kinds", synthetic.no_gain_from_operators),
    ("Warm start is 65 % cheaper than cold start", "warm-start", warm_start_saves),
    ("The SDP stops at n = 200", "sdp-time", sdp_stops),
    ("All methods reach the nominal coverage", "real-coverage", real.covers),
    ("WSC^c closest to 1 - alpha/2 on Concrete", "real-worst-set", partial(real.closest_worst_set, dataset="Concrete")),
    ("WSC^c closest to 1 - alpha/2 on Housing", "real-worst-set", partial(real.closest_worst_set, dataset="Housing")),
    ("First or close second in WSC^c on all data sets", "real-worst-set", best_everywhere),
    (
        "Diabetes: narrower than the homoscedastic GP",
        "real-width",
        partial(real.narrower, dataset="Diabetes", rivals=("gp",)),
    ),
    ("Energy: narrower than both GPs", "real-width", partial(real.narrower, dataset="Energy", rivals=("gp", "het-gp"))),
    ("Miami: narrower than both GPs", "real-width", partial(real.narrower, dataset="Miami", rivals=("gp", "het-gp"))),
    ("CQR yields much wider intervals", "real-width", partial(real.wider_than, rival=PAPER_CQR)),
    (
        "Bike: pure asymmetry is never selected",
        "real-penalties",
        partial(real.asymmetric_share, dataset="Bike", most=0.0),
    ),
    (
        "Diabetes: a symmetric model is selected half of the time",
        "real-penalties",
        partial(real.symmetric_share, dataset="Diabetes", least=0.4),
    ),
    ("Asymmetric calibration is wider 69 % of the time", "calibration", real.asymmetric_is_wider),
    ("Asymmetric calibration does not improve local coverage", "calibration", real.no_better_locally),
)


def compute(config: Config) -> Rows:
    """A row per claim, from rows that are stored; nothing is computed anew."""
    stored = replace(config, compute_missing=False)
    rows: dict[str, Rows] = {}
    for entry in dict.fromkeys(entry for _, entry, _ in CLAIMS):
        rows[entry] = import_module(f"sosbands.experiments.{entry.replace('-', '_')}").compute(stored)
    return [{"claim": claim, "entry": entry, **_checked(check, rows[entry])} for claim, entry, check in CLAIMS]


def draw(rows: Rows) -> TextTable:
    """The claims with their verdicts."""
    keep = ("claim", "verdict", "figure", "entry")
    return TextTable([{name: row[name] for name in keep} for row in rows])


def _checked(check: Check, rows: Rows) -> dict[str, Any]:
    """The verdict; a group of rows that is missing leaves it without one."""
    try:
        verdict = check(rows) if rows else Verdict("no rows", "")
    except (IndexError, KeyError, ValueError, ZeroDivisionError) as error:  # a group is missing
        verdict = Verdict("no rows", f"rows are missing ({error})")
    return {"verdict": verdict.word, "figure": verdict.figure, "error_type": None}
