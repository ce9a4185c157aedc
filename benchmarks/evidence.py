"""Statistical evidence for the tuner: levels of its tests, its decisions, and how near its bands come to the oracle's.

Rows are stored as they finish, and a second run continues where the first stopped:

    python -m benchmarks.evidence --study null --jobs 2
    python -m benchmarks.evidence --study all --jobs 2

Studies draw around the true mean, so that residuals are noise and nothing else, unless they say otherwise.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from pathlib import Path
from time import perf_counter

import numpy as np

from sosbands import SoSBandRegressor
from sosbands.bands import learn_band_grid, learn_band_path, learn_bands, penalty_scale
from sosbands.comparison import run_tasks
from sosbands.comparison.runner import OTHER_CODE
from sosbands.conformal import conformal_quantile
from sosbands.datasets import synthetic_case
from sosbands.exceptions import LowRankWarning, NotCertifiedWarning
from sosbands.kernels import median_lengthscale
from sosbands.metrics import coverage_gaps, rmse_to_oracle
from sosbands.stats import sign_flip_test
from sosbands.stats.tests import feature_independence_test
from sosbands.tuning import Rules, tune
from sosbands.tuning.rules import FACTORS, PENALTIES, PLACES

OUTPUT = Path(__file__).parents[1] / "results" / "evidence"  # tracked: the numbers in the docs come from here
RULES = {
    "default": Rules(),
    "paper": Rules(criterion="hsic", symmetry_test="kruskal-wallis", independence="naive"),
}
NOISES = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "gamma": lambda rng, n: rng.gamma(1.5, size=n) - 1.5,
    "t3": lambda rng, n: rng.standard_t(3, size=n),
}


def null_row(axes: dict, seed: int) -> dict:
    """p-values of the default tests under their null: exchangeable sizes, and symmetric noise of varying size."""
    rng = np.random.default_rng(seed)
    n = axes["n"]
    X = rng.uniform(-1, 1, (n, 1))
    noise = NOISES[axes["noise"]](rng, n)
    median = median_lengthscale(X)
    ells = [factor * median for factor in PLACES]
    row = {"p_independence": feature_independence_test(X, noise, ells, random_state=rng).p_value, "p_symmetry": None}
    if axes["noise"] != "gamma":
        varying = (0.2 + np.abs(X[:, 0])) * noise
        row["p_symmetry"] = sign_flip_test(X, varying, median, random_state=rng).p_value
    return row


def decision_row(axes: dict, seed: int) -> dict:
    """What a rule decides for noise of varying size, skewed or not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (axes["n"], 1))
    r = (0.2 + np.abs(X[:, 0])) * NOISES[axes["noise"]](rng, axes["n"])
    report = tune(X / X.std(), r, rules=RULES[axes["rule"]], random_state=seed % 2**31)
    tests = {"p_independence": report.independence, "p_symmetry": report.symmetry}
    return {
        "symmetry_penalty": float(report.symmetry_penalty),
        "homoscedastic": report.homoscedastic,
        **{name: None if test is None else test.p_value for name, test in tests.items()},
    }


def automatic_row(axes: dict, seed: int) -> dict:
    """What the automatic choice decides for the same noise around the true mean, and around its own point model."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (axes["n"], 1))
    r = (0.2 + np.abs(X[:, 0])) * NOISES[axes["noise"]](rng, axes["n"])
    estimator = zero if axes["around"] == "the true mean" else None
    model = SoSBandRegressor(estimator, calibration_size=None, random_state=seed % 2**31).fit(X, r)
    report = model.tuning_
    return {
        "symmetry_penalty": float(model.noise_.settings.symmetry_penalty),
        "homoscedastic": report.homoscedastic,
        "p_symmetry": None if report.symmetry is None else report.symmetry.p_value,
    }


def zero(X):
    return np.zeros(len(X))


def oracle_row(axes: dict, seed: int) -> dict:
    """RMSE to the oracle bands: untuned, every candidate of the grid, tuned."""
    warnings.simplefilter("ignore", LowRankWarning)  # coarse features are meant
    case = synthetic_case(axes["case"])
    X, y = case.sample(case.n_learning, seed)
    mean, sd = X.mean(axis=0), X.std(axis=0)
    Z, r = (X - mean) / sd, y - case.location(X)
    judge = Judge(case, seed, mean, sd)
    scale = penalty_scale(Z, r)
    options = {"normalize": scale, "width_penalty": case.width_penalty}
    median = median_lengthscale(Z)
    grid = np.zeros((len(FACTORS), len(PENALTIES)))
    coarse = {"rank": 1e-6, "tol": 1e-3}
    for i, j, bands in learn_band_grid(Z, r, [f * median for f in FACTORS], PENALTIES, **coarse, **options):
        grid[i, j] = judge.measure(bands)["rmse"]
    untuned = judge.measure(learn_bands(Z, r, lengthscale="median", symmetry_penalty=1.0, **options))
    row = {"grid": grid, **{f"untuned_{name}": value for name, value in untuned.items()}}
    for criterion in axes["criteria"].split(","):
        report = tune(Z, r, random_state=seed % 2**31, rules=Rules(criterion=criterion), **options)
        chosen = {"lengthscale": report.lengthscale, "symmetry_penalty": report.symmetry_penalty}
        found = judge.measure(learn_bands(Z, r, **chosen, **options))
        row |= {f"{criterion}_{name}": value for name, value in found.items()}
        row |= {f"{criterion}_penalty": float(report.symmetry_penalty), f"{criterion}_seconds": report.seconds}
    return row


class Judge:
    """Bands calibrated on 2000 points and compared with the oracle's on 1000 others."""

    def __init__(self, case, seed: int, mean, sd) -> None:
        self.mean, self.sd, self.case = mean, sd, case
        self.X_cal, self.y_cal = case.sample(2000, seed + 1)
        self.X, _ = case.sample(1000, seed + 2)
        self.oracle = case.oracle_interval(self.X, 0.9)
        self.at = self.X[:100]
        self.samples = case.sample_conditional(self.at, 1000, seed + 3)

    def ends(self, bands, X, q: float = 0.0):
        """Ends of the band, widened by q; a midpoint where they cross."""
        Z, location = (X - self.mean) / self.sd, self.case.location(X)
        lower, upper = location - bands.lower(Z) - q, location + bands.upper(Z) + q
        middle = (lower + upper) / 2
        return (lower, upper) if q == 0 else (np.minimum(lower, middle), np.maximum(upper, middle))

    def measure(self, bands) -> dict:
        """RMSE to the oracle, coverage gap and width after calibration."""
        lower, upper = self.ends(bands, self.X_cal)
        q = conformal_quantile(np.maximum(lower - self.y_cal, self.y_cal - upper), 0.9)
        lower, upper = self.ends(bands, self.X, q)
        near_lower, near_upper = self.ends(bands, self.at, q)
        gaps = coverage_gaps(near_lower, near_upper, self.samples, 0.9)
        rmse = rmse_to_oracle(lower, upper, self.oracle[:, 0], self.oracle[:, 1])
        return {"rmse": rmse, "acg_c": gaps.combined, "width": float(np.mean(upper - lower))}


def warm_row(axes: dict, seed: int) -> dict:
    """Iterations and seconds of a path of penalties, each solve cold or from the last (case 1, n = 100)."""
    warnings.simplefilter("ignore", NotCertifiedWarning)  # iterations are counted all the same
    case = synthetic_case(1)
    X, y = case.sample(100, seed)
    r = y - case.location(X)
    penalties = [float(p) for p in np.geomspace(1e-3, 1e3, 13)]
    options = {"lengthscale": axes["lengthscale"]}
    clock = perf_counter()
    warm = list(learn_band_path(X, r, penalties, **options))
    warm_seconds = perf_counter() - clock
    clock = perf_counter()
    cold = [learn_bands(X, r, symmetry_penalty=p, **options) for p in penalties]
    return {
        "penalties": penalties,
        "warm_iterations": [bands.iterations for bands in warm],
        "cold_iterations": [bands.iterations for bands in cold],
        "warm_decompositions": [bands.decompositions for bands in warm],
        "cold_decompositions": [bands.decompositions for bands in cold],
        "warm_seconds": warm_seconds,
        "cold_seconds": perf_counter() - clock,
    }


def tasks_of(study: str, draws: int | None = None) -> tuple:
    """Function, tasks, and the axes that seeds depend on."""
    if study == "null":
        axes = [{"noise": noise, "n": 100, "draw": k} for noise in NOISES for k in range(draws or 500)]
        return null_row, axes, None
    if study in ("decisions", "paper-decisions"):
        rule = "paper" if study.startswith("paper") else "default"
        sizes = {"gamma": 200, "normal": 400}
        axes = [{"rule": rule, "noise": e, "n": n, "draw": k} for k in range(draws or 100) for e, n in sizes.items()]
        return decision_row, axes, ["noise", "n", "draw"]
    if study == "automatic-decisions":
        places = ("the true mean", "its own model")
        axes = [
            {"around": place, "noise": noise, "n": 200, "draw": k}
            for k in range(draws or 100)
            for place in places
            for noise in ("gamma", "normal")
        ]
        return automatic_row, axes, ["noise", "n", "draw"]
    if study == "oracle":
        cases = range(1, 7)
        criteria = "interval-score"
        axes = [{"case": case, "criteria": criteria, "draw": k} for k in range(draws or 20) for case in cases]
        return oracle_row, axes, ["case", "draw"]
    if study == "criteria":
        axes = [{"case": c, "criteria": "hsic,dcor", "draw": k} for k in range(draws or 5) for c in range(1, 7)]
        return oracle_row, axes, ["case", "draw"]
    if study == "warm":
        return warm_row, [{"lengthscale": 0.3, "draw": k} for k in range(draws or 10)], None
    raise ValueError(f"study={study!r}: expected one of {list(REPORTS)}")


def report_null(rows: list[dict]) -> list[str]:
    lines = ["| noise | test | draws | p <= 0.01 | p <= 0.05 | p <= 0.1 | p <= 0.5 |", "|---|---|---|---|---|---|---|"]
    for noise in NOISES:
        for test in ("independence", "symmetry"):
            p = np.array([row[f"p_{test}"] for row in rows if row["noise"] == noise], dtype=float)
            if np.isfinite(p).all():
                shares = " | ".join(f"{np.mean(p <= level):.3f}" for level in (0.01, 0.05, 0.1, 0.5))
                lines.append(f"| {noise} | {test} | {len(p)} | {shares} |")
    return lines


def report_decisions(rows: list[dict]) -> list[str]:
    groups = defaultdict(list)
    for row in rows:
        groups[row.get("rule") or f"automatic, around {row['around']}", row["noise"], row["n"]].append(row)
    lines = ["| rule | noise | n | draws | asymmetric | symmetric | constant width | s per draw |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for (rule, noise, n), some in sorted(groups.items()):
        asymmetric = np.mean([np.isfinite(float(row["symmetry_penalty"])) for row in some])
        constant = np.mean([row["homoscedastic"] for row in some])
        seconds = np.mean([row["seconds"] for row in some])
        lines.append(
            f"| {rule} | {noise} | {n} | {len(some)} | {asymmetric:.2f} | {1 - asymmetric:.2f} | {constant:.2f} "
            f"| {seconds:.1f} |"
        )
    return lines


def report_oracle(rows: list[dict]) -> list[str]:
    """Means over draws; b is the best candidate for each case, and for each draw."""
    lines = []
    by_case = {case: [row for row in rows if row["case"] == case] for case in sorted({row["case"] for row in rows})}
    grids = {case: np.array([row["grid"] for row in some], dtype=float) for case, some in by_case.items()}
    a = {case: np.mean([row["untuned_rmse"] for row in some]) for case, some in by_case.items()}
    best = {
        "case": {case: grid.mean(axis=0).min() for case, grid in grids.items()},
        "draw": {case: grid.min(axis=(1, 2)).mean() for case, grid in grids.items()},
    }
    names = ("untuned", *rows[0]["criteria"].split(","))
    lines += ["| case | draws | bands | RMSE | ACG^c | width |", "|---|---|---|---|---|---|"]
    for case, some in by_case.items():
        for name in names:
            rmse, gap, width = (np.mean([row[f"{name}_{key}"] for row in some]) for key in ("rmse", "acg_c", "width"))
            lines.append(f"| {case} | {len(some)} | {name} | {rmse:.3f} | {gap:.3f} | {width:.3f} |")
        for how, values in best.items():
            lines.append(f"| {case} | {len(some)} | best of the grid for the {how} | {values[case]:.3f} | | |")
    for name in names[1:]:
        tuned = {case: np.mean([row[f"{name}_rmse"] for row in some]) for case, some in by_case.items()}
        for how, b in best.items():
            use = [case for case in by_case if b[case] <= 0.9 * a[case]]
            if not use:
                continue
            score = sum(a[c] - tuned[c] for c in use) / sum(a[c] - b[c] for c in use)
            rest = {c: round(float(tuned[c] / a[c]), 3) for c in by_case if c not in use}
            lines.append(
                f"{name}: recovers {score:.2f} of the gain of the best for the {how} in cases {use}; "
                f"tuned/untuned elsewhere: {rest}"
            )
    return lines


def report_warm(rows: list[dict]) -> list[str]:
    lines = ["| start | iterations | decompositions | seconds |", "|---|---|---|---|"]
    for start in ("cold", "warm"):
        counts = [
            np.mean([np.sum(row[f"{start}_{what}"]) for row in rows]) for what in ("iterations", "decompositions")
        ]
        seconds = np.mean([row[f"{start}_seconds"] for row in rows])
        lines.append(f"| {start} | {counts[0]:.0f} | {counts[1]:.0f} | {seconds:.2f} |")
    return lines


REPORTS = {
    "null": report_null,
    "decisions": report_decisions,
    "paper-decisions": report_decisions,
    "automatic-decisions": report_decisions,
    "oracle": report_oracle,
    "criteria": report_oracle,
    "warm": report_warm,
}


def run_study(
    study: str,
    draws: int | None = None,
    jobs: int = 1,
    store: Path | None = None,
    verbose: int = 0,
    tasks=tasks_of,
    **options,
) -> list:
    """Rows of a study; a failed draw is an error here, as every one must succeed."""
    function, wanted, seed_axes = tasks(study, draws)
    rows = run_tasks(
        function,
        wanted,
        seed_axes=seed_axes,
        store=store,
        n_jobs=jobs,
        retry_failed=True,
        verbose=verbose,
        label=study,
        **options,
    )
    failed = [row for row in rows if row["error_type"] is not None]
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(rows)} draws of {study} failed, first: {failed[0]}")
    return rows


def main(reports=REPORTS, tasks=tasks_of, prefix: str = "", words: str | None = __doc__) -> None:
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", choices=[*reports, "all"], default="all")
    parser.add_argument("--draws", type=int, default=None, help="fewer draws than the full study")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--other-code", choices=OTHER_CODE, default="refuse", help="for rows that other code made")
    arguments = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for study in reports if arguments.study == "all" else [arguments.study]:
        store = OUTPUT / f"{prefix}{study}.jsonl"
        rows = run_study(study, arguments.draws, arguments.jobs, store, 1, tasks, other_code=arguments.other_code)
        print(f"\n{study}\n" + "\n".join(reports[study](rows)), flush=True)


if __name__ == "__main__":
    main()
