"""Streams that drift: long-run coverage of adaptive intervals, false alarms of the test for drift, and its delays.

    python -m benchmarks.drift --study coverage --jobs 2
    python -m benchmarks.drift --study alarms --jobs 2

Rows are stored as they finish, and a second run continues where the first stopped. Every draw fits bands around a line
to 1000 rows with noise that grows with one feature, half of them held back, and follows a stream.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections import defaultdict
from time import process_time

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks.evidence import main
from sosbands import SoSBandRegressor
from sosbands.online import AdaptiveIntervals, DriftTest

LEVEL, ALARM_LEVEL, N_FIT = 0.9, 0.05, 1000
STEPS, ALARM_STEPS, CHANGE = 20_000, 2000, 1000  # rows of a stream; of the second study, and where it changes
FIXED = {"base_scale": "none", "noise_features": "inputs", "lengthscale": 2.0, "width_penalty": 1.0}
FIXED |= {"learning_coverage": 0.9, "symmetry_penalty": 1.0, "conformal_score": "added"}
STREAMS = ("mean shift", "variance growth", "seasonal", "trend")
RATES = ("auto", 0.005)
CHANGES = ("none", "mean shift", "noise doubled", "noise halved", "slow growth")


def draw(rng, n: int):
    """``y = x_1 + x_2 + (0.5 + |x_1|) noise``: rows, the mean, and the noise."""
    X = rng.normal(size=(n, 2))
    return X, X.sum(axis=1), (0.5 + np.abs(X[:, 0])) * rng.standard_normal(n)


def fitted(rng, seed: int) -> SoSBandRegressor:
    X, mean, noise = draw(rng, N_FIT)
    model = SoSBandRegressor(LinearRegression(), confidence_level=LEVEL, random_state=seed % 2**31, **FIXED)
    return model.fit(X, mean + noise)


def drifting(rng, stream: str, n: int):
    """Rows of a stream over its whole length: a jump in the middle, noise that triples, ten seasons, or a trend."""
    X, mean, noise = draw(rng, n)
    t = np.arange(n) / n
    if stream == "mean shift":
        return X, mean + 2 * (t >= 0.5) + noise
    if stream == "variance growth":
        return X, mean + (1 + 2 * t) * noise
    if stream == "trend":
        return X, mean + 0.05 * np.arange(n) + noise
    return X, mean + 2.5 * np.sin(20 * np.pi * t) + noise


def changing(rng, change: str, n: int, at: int):
    """Rows that are like those of fit up to a row, and then not."""
    X, mean, noise = draw(rng, n)
    late = np.arange(n) >= at
    size = {"noise doubled": 2.0, "noise halved": 0.5}.get(change, 1.0)
    growth = np.where(late, 1 + (np.arange(n) - at) / 500, 1.0) if change == "slow growth" else 1.0
    return X, mean + (1.5 * late if change == "mean shift" else 0.0) + np.where(late, size, 1.0) * growth * noise


def coverage_row(axes: dict, seed: int, steps: int = STEPS) -> dict:
    """Coverage and widths of one stream, by the model as it is or by adaptive intervals."""
    rng = np.random.default_rng(seed)
    model = fitted(rng, seed)
    X, y = drifting(rng, axes["stream"], steps)
    clock = process_time()
    if axes["rate"] == "static":
        ends = model.predict_interval(X)
        inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    else:
        found = AdaptiveIntervals(model, rate=axes["rate"]).follow(X, y)
        ends, inside = found.ends, found.inside
    width = ends[:, 1] - ends[:, 0]
    worst = np.abs(np.convolve(inside, np.ones(500) / 500, "valid") - LEVEL).max()  # of all stretches of 500 rows
    return {
        "coverage": float(inside.mean()),
        "worst_stretch": float(worst),
        "median_width": float(np.median(width)),
        "infinite": float(np.isinf(width).mean()),
        "empty": float((width == 0).mean()),
        "follow_seconds": process_time() - clock,
    }


def alarms_row(axes: dict, seed: int, steps: int = ALARM_STEPS, at: int = CHANGE) -> dict:
    """Where the test raised its alarm in one stream, if it did."""
    rng = np.random.default_rng(seed)
    model = fitted(rng, seed)
    test = DriftTest(model, level=ALARM_LEVEL, random_state=seed % 2**31)
    test.update(*changing(rng, axes["change"], steps, at))
    return {"alarm": test.alarm_, "began": test.began_, "log_most": float(test.log_martingale_.max())}


def tasks_of(study: str, draws: int | None = None) -> tuple:
    """Function, tasks, and the axes that seeds depend on."""
    if study == "coverage":
        axes = [
            {"stream": stream, "rate": rate, "draw": k}
            for k in range(draws or 10)
            for stream in STREAMS
            for rate in ("static", *RATES)
        ]
        return coverage_row, axes, ["stream", "draw"]
    counts = {change: draws or (500 if change == "none" else 100) for change in CHANGES}
    axes = [{"change": change, "draw": k} for change, count in counts.items() for k in range(count)]
    return alarms_row, axes, ["change", "draw"]


def grouped(rows: list[dict], *axes: str) -> dict:
    """Rows by their values of some axes."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[axis] for axis in axes)].append(row)
    return groups


def report_coverage(rows: list[dict]) -> list[str]:
    lines = [
        "| stream | rate | draws | coverage: mean, least, most | worst 500 rows | median width | infinite | seconds |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for (stream, rate), some in grouped(rows, "stream", "rate").items():
        found = np.array([row["coverage"] for row in some])
        means = [np.mean([row[name] for row in some]) for name in ("worst_stretch", "median_width", "infinite")]
        seconds = np.mean([row["follow_seconds"] for row in some])
        lines.append(
            f"| {stream} | {rate} | {len(some)} | {found.mean():.4f}, {found.min():.4f}, {found.max():.4f} "
            f"| off by {means[0]:.3f} | {means[1]:.2f} | {100 * means[2]:.2f} % | {seconds:.1f} |"
        )
    return lines


def report_alarms(rows: list[dict], at: int = CHANGE) -> list[str]:
    lines = ["| change | streams | alarms before it | alarms after it | delay: median, 90 % | began: median error |"]
    lines.append("|---|---|---|---|---|---|")
    for (change,), some in grouped(rows, "change").items():
        raised = [row for row in some if row["alarm"] is not None]
        if change == "none":
            lines.append(f"| none | {len(some)} | {len(raised)} ({len(raised) / len(some):.3f}) | | | |")
            continue
        after = [row for row in raised if row["alarm"] >= at]
        delays = np.array([row["alarm"] - at + 1 for row in after])
        began = np.median([abs(row["began"] - at) for row in after]) if after else np.nan
        shown = f"{np.median(delays):.0f}, {np.quantile(delays, 0.9):.0f}" if after else ""
        lines.append(f"| {change} | {len(some)} | {len(raised) - len(after)} | {len(after)} | {shown} | {began:.0f} |")
    return lines


REPORTS = {"coverage": report_coverage, "alarms": report_alarms}


if __name__ == "__main__":
    main(REPORTS, tasks_of, "drift-", __doc__)
