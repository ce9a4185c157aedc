"""Claims of the paper about symmetric and asymmetric calibration, as functions of the rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from sosbands.comparison import corrected_interval
from studies.claims.verdicts import CONFIRMED, NO_GAIN, Claim, Verdict, above, all_of, below, needed, shown
from studies.drawing.figures import column, grouped, succeeded
from studies.drawing.real_tables import ALL, overlap, worst_set_distance
from studies.runs.config import Rows
from studies.runs.methods import SHOWN
from studies.runs.paper_numbers import printed


def asymmetric_is_wider(rows: Rows) -> Verdict:
    """Asymmetric calibration gives wider intervals in most runs, each data set counted as one."""
    by_set = [float(np.mean(list(splits.values()))) for splits in _wider(rows).values()]
    found = corrected_interval(needed(by_set, "rows"), 0.0)
    return Verdict(
        above(found, 0.5),
        f"in {shown(found, '.1%')} of {len(succeeded(rows))} runs; paper {_printed('asym_wider_percent'):.1f} %",
    )


def wider_on_each_set(rows: Rows, but: str) -> Verdict:
    """It does so on each data set but one; the methods on one split count once."""
    words, less = [], []
    for name, splits in _wider(rows).items():
        if name != but:
            found = corrected_interval(list(splits.values()), overlap(name))
            words.append(above(found, 0.5))
            less += [f"{name} {found.mean:.0%}"] if found.mean <= 0.5 else []
    count = sum(word == CONFIRMED for word in words)
    return Verdict(
        all_of(*words), f"beyond doubt on {count} of {len(words)}; in half or less: {', '.join(less) or '-'}"
    )


def increase_is_limited(rows: Rows) -> Verdict:
    """The mean relative increase of the width is below 5 %, that of the largest data set and method above."""
    some = needed(succeeded(rows), "rows")
    grown = [{**row, "grown": row["asymmetric_mean_width"] / row["mean_width"] - 1} for row in some]
    by_set = [float(column(group, "grown").mean()) for group in grouped(grown, "dataset").values()]
    found = corrected_interval(by_set, 0.0)
    groups = grouped(grown, "dataset", "method")
    name, method = max(groups, key=lambda key: column(groups[key], "grown").mean())
    largest = corrected_interval(column(groups[name, method], "grown"), overlap(name))
    paper = (_printed("asym_width_increase_percent", each) for each in (ALL, "MPG CQR"))
    mean, most = (f"paper {each:.1f} %" for each in paper)
    figure = f"mean {shown(found, '.1%')}, {mean}; {name}, {SHOWN[method]} {shown(largest, '.1%')}, {most} (MPG)"
    return Verdict(all_of(below(found, 0.05), above(largest, 0.05)), figure)


def no_better_locally(rows: Rows) -> Verdict:
    """Asymmetric calibration brings worst-set coverage nearer to nominal by less than 0.005; each set is one."""
    gains, ends = [], []
    for some in grouped(needed(succeeded(rows), "rows"), "dataset").values():
        sym, asym = (np.mean([worst_set_distance(row, prefix) for row in some]) for prefix in ("", "asymmetric_"))
        gains.append(float(sym - asym))
        ends.append((asym, sym))
    gain = corrected_interval(gains, 0.0)
    asym, sym = np.mean(ends, axis=0)
    paper = " and ".join(f"{_printed(f'wsc_c_distance_{kind}'):.4f}" for kind in ("asym", "sym"))
    figure = f"mean distance {asym:.4f} and {sym:.4f} (paper {paper}); gain {shown(gain)}"
    return Verdict(below(gain, NO_GAIN), figure)


def _printed(metric: str, line: str = ALL) -> float:
    """A number of the paper's tables of calibration."""
    number = printed(metric, line)
    if number is None:
        raise KeyError(f"the paper prints no {metric} of {line}")
    return number.value


def _wider(rows: Rows) -> dict[str, dict[int, float]]:
    """By data set and repetition, the share of methods whose intervals asymmetric calibration widens."""
    found: dict[str, dict[int, float]] = {}
    for (name, k), some in grouped(needed(succeeded(rows), "rows"), "dataset", "repetition").items():
        flags = column(some, "asymmetric_mean_width") > column(some, "mean_width")
        found.setdefault(name, {})[k] = float(np.mean(flags))
    return found


CLAIMS = (
    Claim("Asymmetric calibration is wider most of the time (69 %)", "calibration", asymmetric_is_wider),
    Claim(
        "Asymmetric calibration is mostly wider on each set but Miami",
        "calibration",
        partial(wider_on_each_set, but="Miami"),
    ),
    Claim(
        "The increase is limited on average (5 %), above in specific instances",
        "calibration-increase",
        increase_is_limited,
    ),
    Claim("Asymmetric calibration does not improve local coverage (by 0.005)", "calibration", no_better_locally),
)
