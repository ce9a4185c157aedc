"""Seconds of a fully automatic fit: point model, tuning, bands; and of hetgpy's heteroscedastic GP on the same rows.

    python -m benchmarks.automatic_fit [--quick]

Everything is measured in one run, with default settings and one process; wall-clock times on a loaded machine say
little, so processor times stand beside them.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: more threads are slower on few cores

from time import perf_counter, process_time

import numpy as np

from sosbands import SoSBandRegressor
from sosbands.datasets import synthetic_case

SETTINGS = ((1, 100, 1), (3, 100, 1), (5, 100, 1), (1, 1000, 1), (4, 1000, 1), (2, 1000, 8), (6, 1000, 8))


def automatic(X, y) -> SoSBandRegressor:
    return SoSBandRegressor(calibration_size=None, random_state=0).fit(X, y)


def heteroscedastic_gp(X, y):
    """Fit of hetgpy, called directly, with the inputs in the unit cube that it expects."""
    from hetgpy import hetGP

    low, high = X.min(axis=0), X.max(axis=0)
    model = hetGP()
    model.mle((X - low) / (high - low), (y - y.mean()) / y.std(), covtype="Matern5_2")
    return model


def timed(function, *arguments):
    wall, processor = perf_counter(), process_time()
    result = function(*arguments)
    return result, perf_counter() - wall, process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="n = 100 only")
    arguments = parser.parse_args()
    print("| case | n | d | wall s | processor s | of it tuning | hetgpy wall s | hetgpy processor s | decision |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, n, d in SETTINGS:
        if arguments.quick and n > 100:
            continue
        case = synthetic_case(number, d)
        X, y = case.sample(n, 0)
        model, wall, processor = timed(automatic, X, y)
        peer = " | "
        if d > 1:
            _, peer_wall, peer_processor = timed(heteroscedastic_gp, np.asarray(X), np.asarray(y))
            peer = f"{peer_wall:.1f} | {peer_processor:.1f}"
        tuning = f"{model.tuning_.seconds:.1f}"
        words = f"{wall:.1f} | {processor:.1f} | {tuning} | {peer} | {model.tuning_.sentence}"
        print(f"| {number} | {n} | {d} | {words} |", flush=True)


if __name__ == "__main__":
    main()
