"""Solve many random problems of every kind and report the worst: each must end certified at 1e-4.

Half of them let rows lie outside at a price. Rows are stored as they finish, and a second run continues where the first
stopped:

    python -m benchmarks.random_problems --count 2000 --jobs 2
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed

from benchmarks.limited import call_limited
from sosbands import learn_bands
from sosbands.exceptions import LowRankWarning, NotCertifiedWarning
from sosbands.kernels import median_lengthscale

FIELDS = ["seed", "n", "d", "rms", "options", "status", "gap", "violation", "iterations", "decompositions", "seconds"]
COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
LIMIT = 120.0  # seconds after which a solve is given up, and counts as failed


def random_problem(seed: int, largest: int = 300) -> tuple[np.ndarray, np.ndarray, dict]:
    """Points, residuals and options of learn_bands; sizes 5..largest, dimensions 1..10, scales 1e-6..1e6."""
    rng = np.random.default_rng([7, seed])
    n, d = int(np.exp(rng.uniform(np.log(5), np.log(largest)))), int(rng.integers(1, 11))
    X = rng.standard_normal((n, d)) if rng.random() < 0.5 else rng.uniform(-1, 1, (n, d))
    noise = [
        rng.standard_normal(n),
        rng.exponential(size=n) - 1,
        rng.gamma(0.5, size=n) - 0.5,
        rng.standard_t(3, size=n),
    ]
    r = (0.2 + np.abs(X[:, 0])) * noise[rng.integers(4)] * 10 ** rng.uniform(-6, 6)
    kind = "operator" if rng.random() < 0.35 else "training"
    penalty = [0.0, np.inf, 10 ** rng.uniform(-4, 4)][rng.choice(3, p=[0.15, 0.15, 0.7])]
    lengthscale = median_lengthscale(X) * 10 ** rng.uniform(-0.7, 0.5)
    if kind == "operator" and 0 < penalty < np.inf and rng.random() < 0.5:
        penalty = (10 ** rng.uniform(-3, 2), penalty)
    elif kind == "training" and penalty < np.inf and rng.random() < 0.3:
        lengthscale = {"lower": lengthscale, "upper": lengthscale * 10 ** rng.uniform(-0.3, 0.3)}
    options = {
        "lengthscale": lengthscale,
        "width_penalty": [0.0, 1.0, 10.0, 100.0, 1000.0][rng.integers(5)],
        "trace_penalty": [0.0, 1.0, 10.0][rng.choice(3, p=[0.15, 0.7, 0.15])],
        "symmetry_penalty": penalty,
        "symmetry_kind": kind,
        "learning_coverage": 1.0 if rng.random() < 0.5 else float(rng.choice(COVERAGES)),
    }
    return X, r, options


def solve_one(seed: int, largest: int, solver: str = "auto", tol: float = 1e-4) -> dict:
    """One row; a failed solve is a row too."""
    X, r, options = random_problem(seed, largest)
    clock = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)  # the row says so
        warnings.simplefilter("ignore", LowRankWarning)
        solution = learn_bands(X, r, solver=solver, tol=tol, **options)
    return {
        **described(seed, X, r, options),
        "status": solution.status.value,
        "gap": solution.gap,
        "violation": solution.violation,
        "iterations": solution.iterations,
        "decompositions": solution.decompositions,
        "seconds": perf_counter() - clock,
    }


def solve_limited(seed: int, largest: int, solver: str, limit: float) -> dict:
    """The same in a process of its own; a solve over the limit, or an error, is a row too."""
    outcome, row = call_limited(solve_one, (seed, largest, solver), limit)
    if outcome == "returned":
        return row
    X, r, options = random_problem(seed, largest)
    lost = {"gap": np.inf, "violation": np.nan, "iterations": -1, "decompositions": -1, "seconds": limit}
    return {**described(seed, X, r, options), "status": outcome, **lost}


def described(seed: int, X: np.ndarray, r: np.ndarray, options: dict) -> dict:
    """Columns that say which problem it was."""
    return {
        "seed": seed,
        "n": len(X),
        "d": X.shape[1],
        "rms": f"{np.sqrt(np.mean(r**2)):.3g}",
        "options": str({k: v for k, v in options.items() if k != "lengthscale"}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--largest", type=int, default=300, help="largest n")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds per problem")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/output/random_problems.csv"))
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    rows = list(csv.DictReader(args.output.open())) if args.output.exists() else []
    missing = sorted(set(range(args.count)) - {int(row["seed"]) for row in rows})
    with args.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        jobs = Parallel(args.jobs, return_as="generator_unordered")
        for row in jobs(delayed(solve_limited)(seed, args.largest, args.solver, args.limit) for seed in missing):
            writer.writerow(row)
            file.flush()
            rows.append(row)
            if len(rows) % 50 == 0:
                print(f"{len(rows)} of {args.count}", flush=True)
    report([row for row in rows if int(row["seed"]) < args.count])


def report(rows: list[dict]) -> None:
    gaps = np.array([float(row["gap"]) for row in rows])
    seconds = np.array([float(row["seconds"]) for row in rows])
    print(f"{len(rows)} problems, {np.count_nonzero(gaps <= 1e-4)} certified at 1e-4")
    print(f"gap      median {np.median(gaps):.2g}, worst {gaps.max():.2g}")
    print(f"seconds  median {np.median(seconds):.2g}, worst {seconds.max():.2g}, sum {seconds.sum():.3g}")
    for k in np.argsort(-seconds)[:10]:
        print("slow:   ", rows[k])
    print("worst:  ", rows[int(gaps.argmax())])
    for row in rows:
        if not float(row["gap"]) <= 1e-4:
            print("FAILED: ", row)


if __name__ == "__main__":
    main()
