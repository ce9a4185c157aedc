"""Seconds and interval scores of an automatic fit beside local CP, split CP and hetgpy, on tables of many kinds.

    python -m benchmarks.automatic_fit [--quick]

Everything is measured in one run, with default settings and one process. n is the number of rows given to `fit`, half
of which are held back for calibration. hetgpy's heteroscedastic Gaussian process gets the learning half, up to 500
rows: it is not bounded above. Wall-clock times on a loaded machine say little, so processor times are given.
"""

from __future__ import annotations

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: more threads are slower on few cores

from time import process_time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from sosbands import SoSBandRegressor
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.metrics import interval_score

LEVEL = 0.9
N_TEST = 5000
HETGPY_ROWS = 500
SIZES = ((100, 3, False), (500, 10, False), (1000, 8, False), (5000, 10, False), (20_000, 10, True))  # n, d, boosting
GOALS = {100: 2, 500: 5, 1000: 8, 5000: 30, 20_000: 60}  # seconds
NOISES = {
    "normal": lambda rng, X: rng.standard_normal(len(X)),
    "gamma": lambda rng, X: rng.gamma(1.5, size=len(X)) - 1.5,
    "t, 2.2 degrees": lambda rng, X: rng.standard_t(2.2, len(X)),
    "none where x0 < 0": lambda rng, X: np.where(X[:, 0] > 0, rng.standard_normal(len(X)), 0.0),
}
COLUMNS = {
    "integer codes": lambda _, X: np.column_stack([np.rint(3 * X[:, :-1]), np.rint(3 * X[:, 0])]),
    "repeated rows": lambda rng, X: X[rng.integers(0, max(5, len(X) // 10), len(X))],
}


def table(kind: str, n: int, d: int):
    rng = np.random.default_rng([n, d, sorted([*NOISES, *COLUMNS]).index(kind)])
    X = rng.standard_normal((n, d))
    if kind in COLUMNS:
        X = COLUMNS[kind](rng, X)
    noise = NOISES.get(kind, NOISES["normal"])(rng, X)
    return X, X[:, 0] + np.sin(X[:, 1]) * X[:, 2] + (0.3 + 0.5 * np.abs(X[:, 0])) * noise


def methods(boosting: bool) -> dict:
    def model():
        return HistGradientBoostingRegressor(random_state=0) if boosting else None

    return {
        "sosbands": SoSBandRegressor(model(), random_state=0),
        "local": LocallyWeightedCP(model(), random_state=0),
        "split": SplitCP(model(), random_state=0),
    }


def heteroscedastic_gp(X, y) -> float:
    """Seconds of hetgpy, called directly, with the inputs in the unit cube that it expects."""
    from hetgpy import hetGP

    low, high = X.min(axis=0), X.max(axis=0)
    clock = process_time()
    hetGP().mle((X - low) / np.where(high > low, high - low, 1.0), (y - y.mean()) / y.std(), covtype="Matern5_2")
    return process_time() - clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="n = 100 only")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # of rows off the data
    print("| n | d | table | goal s | sosbands s | local s | split s | hetgpy s | score / split: sosbands | local |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for n, d, boosting in SIZES[:1] if quick else SIZES:
        for kind in [*NOISES, *COLUMNS]:
            X, y = table(kind, n + N_TEST, d)
            seconds, scores = {}, {}
            for name, model in methods(boosting).items():
                clock = process_time()
                model.fit(X[:n], y[:n])
                seconds[name] = process_time() - clock
                scores[name] = interval_score(y[n:], *model.predict_interval(X[n:]).T, LEVEL)
            half = n // 2
            peer = f"{heteroscedastic_gp(X[:half], y[:half]):.1f}" if half <= HETGPY_ROWS and kind == "normal" else "-"
            times = " | ".join(f"{seconds[name]:.1f}" for name in seconds)
            relative = " | ".join(f"{scores[name] / scores['split']:.3f}" for name in ("sosbands", "local"))
            print(f"| {n} | {d} | {kind} | {GOALS[n]} | {times} | {peer} | {relative} |", flush=True)


if __name__ == "__main__":
    main()
