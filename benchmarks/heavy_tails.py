"""Intervals around boosting under t noise with 2.2 degrees of freedom, beside split and local CP, for two sizes.

    python -m benchmarks.heavy_tails [--draws 10]

Five features; the scale of the noise is 0.5 or 1 by the sign of the fourth. Scores are means over draws of the interval
score at level 0.9 on 10 000 new rows.
"""

from __future__ import annotations

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

from time import process_time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from sosbands import SoSBandRegressor
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.metrics import coverage, interval_score

SIZES = (400, 4000)
N_TEST, LEVEL = 10_000, 0.9


def table(n: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + N_TEST, 5))
    scale = np.where(X[:, 3] > 0, 1.0, 0.5)
    return X, X[:, 0] + np.sin(X[:, 1]) * X[:, 2] + scale * rng.standard_t(2.2, len(X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    print(
        "| n | method | score | score / split | coverage | empty intervals | seconds |\n|--:|---|--:|--:|--:|--:|--:|"
    )
    for n in SIZES:
        rows: dict = {}
        for seed in range(draws):
            X, y = table(n, seed)
            boosting = HistGradientBoostingRegressor(random_state=0)
            for name, model in {
                "split": SplitCP(boosting, random_state=seed),
                "local": LocallyWeightedCP(boosting, random_state=seed),
                "sosbands": SoSBandRegressor(boosting, random_state=seed),
                "sosbands, own model": SoSBandRegressor(random_state=seed),
            }.items():
                clock = process_time()
                model.fit(X[:n], y[:n])
                seconds = process_time() - clock
                lower, upper = model.predict_interval(X[n:]).T
                found = (interval_score(y[n:], lower, upper, LEVEL), coverage(y[n:], lower, upper))
                rows.setdefault(name, []).append((*found, np.sum(lower >= upper), seconds))
        for name, values in rows.items():
            score, covered, empty, seconds = np.mean(values, axis=0)
            relative = score / np.mean([row[0] for row in rows["split"]])
            print(
                f"| {n} | {name} | {score:.3f} | {relative:.3f} | {covered:.3f} | {empty:.0f} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
