"""All methods on real data sets with the paper's sizes, beside the paper's numbers; rows are stored as they finish.

SOSBANDS_DATA=folder python benchmarks/compare_real.py --datasets Diabetes Concrete --repetitions 10 --jobs 2
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: processes, not threads

from pathlib import Path

import numpy as np

from sosbands import SoSBandRegressor
from sosbands.baselines import METHODS, make_method
from sosbands.comparison import ComparisonResult, compare
from sosbands.datasets import load_real

OUTPUT = Path(__file__).parents[1] / "results" / "compare"
# The paper's tables: median width and its standard deviation, mean coverage and its standard deviation.
PAPER = {
    ("Diabetes", "sos"): ((190.23, 13.58), (0.899, 0.022)),
    ("Diabetes", "cqr-forest"): ((189.07, 12.59), (0.880, 0.044)),
    ("Diabetes", "gp"): ((194.86, 15.80), (0.907, 0.023)),
    ("Diabetes", "het-gp"): ((193.04, 16.01), (0.888, 0.024)),
    ("Concrete", "sos"): ((21.56, 1.19), (0.916, 0.026)),
    ("Concrete", "cqr-forest"): ((22.68, 1.06), (0.906, 0.023)),
    ("Concrete", "gp"): ((21.32, 1.58), (0.903, 0.027)),
    ("Concrete", "het-gp"): ((21.42, 1.58), (0.900, 0.027)),
}


def run(name: str, repetitions: int, jobs: int) -> ComparisonResult:
    data = load_real(name)
    methods = {"sos": SoSBandRegressor(), **{short: make_method(short) for short in METHODS}}
    if data.outlier_fraction:
        methods["sos-trimmed"] = SoSBandRegressor(outlier_fraction=data.outlier_fraction)
    methods["sos-out-of-fold"] = SoSBandRegressor(residuals="out-of-fold")
    size = data.n_learning + data.n_calibration + data.n_test
    rows = np.sort(np.random.default_rng(0).permutation(len(data.y))[:size])
    return compare(
        methods,
        data.X[rows],
        data.y[rows],
        n_repetitions=repetitions,
        test_size=data.n_test,
        calibration_size=data.n_calibration,
        n_jobs=jobs,
        store=OUTPUT / f"{name.lower().replace(' ', '_')}.jsonl",
        verbose=1,
    )


def beside_the_paper(name: str, result: ComparisonResult) -> list[str]:
    lines = ["| method | median width | paper | coverage | paper | interval score | worst set | fit s | failed |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for method in result.methods:
        rows = [row for row in result.rows if row["method"] == method]
        fine = [row for row in rows if row["error_type"] is None]

        def values(key, fine=fine):
            return np.array([row[key] for row in fine], dtype=float)

        paper = PAPER.get((name, method))
        width, cover = ("", "") if paper is None else (f"{v:.4g} ± {sd:.3g}" for v, sd in paper)
        lines.append(
            f"| {method} | {np.median(values('mean_width')):.4g} ± {values('mean_width').std(ddof=1):.3g} | {width} "
            f"| {values('coverage').mean():.3f} ± {values('coverage').std(ddof=1):.3f} | {cover} "
            f"| {values('interval_score').mean():.4g} | {values('worst_set_coverage').mean():.3f} "
            f"| {values('fit_seconds').mean():.1f} | {len(rows) - len(fine)} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["Diabetes", "Concrete"])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name in arguments.datasets:
        result = run(name, arguments.repetitions, arguments.jobs)
        print(f"\n{name}\n" + "\n".join(beside_the_paper(name, result)))
        print(result.differences("interval_score", reference="sos"), flush=True)


if __name__ == "__main__":
    main()
