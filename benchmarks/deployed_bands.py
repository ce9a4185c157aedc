"""Rows a second and memory of deployed bands with many landmarks, by products and by triangular solves.

    python -m benchmarks.deployed_bands [--rows 1000000]

The functions are sums of squares of matern52 features of 20 000 normal points. The support of new points takes a
triangular solve with 256 landmarks by the first way, with all of them by the second.
"""

from __future__ import annotations

import argparse
import os
import tracemalloc

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy

from dataclasses import replace
from time import process_time

import numpy as np

from sosbands.bands.functions import SoSFunction, deployed_pair, evaluate_pair
from sosbands.kernels import StationaryKernel, learn_features

COLUMNS = (2, 10, 30)
LANDMARKS, SQUARES, SOLVED_ROWS = 2000, 5, 20_000


def functions(d: int) -> tuple[SoSFunction, SoSFunction]:
    """Both functions, as a fit deploys them."""
    rng = np.random.default_rng(d)
    kernel = StationaryKernel("matern52", (float(np.sqrt(d)),))
    features = learn_features(rng.standard_normal((20_000, d)), kernel, LANDMARKS, constant=True)
    lower, upper = (SoSFunction(features, rng.standard_normal((features.rank, SQUARES)), beyond=1.0) for _ in range(2))
    return deployed_pair(lower, upper)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    print("| columns | landmarks | by products, rows/s | MB beyond the output | by solves, rows/s | difference / max |")
    print("|--:|--:|--:|--:|--:|--:|")
    for d in COLUMNS:
        pair = functions(d)
        X = np.random.default_rng(99).standard_normal((rows, d))
        full = replace(pair[0].features, support_rank=0)
        solved = tuple(replace(f, features=full, beyond=0.0) for f in pair)
        tracemalloc.start()
        clock = process_time()
        found = evaluate_pair(*pair, X)
        seconds = process_time() - clock
        megabytes = (tracemalloc.get_traced_memory()[1] - sum(part.nbytes for part in found)) / 1e6
        tracemalloc.stop()
        some = X[:SOLVED_ROWS]
        clock = process_time()
        exact = evaluate_pair(*solved, some)
        rate = SOLVED_ROWS / (process_time() - clock)
        quick = evaluate_pair(*(replace(f, beyond=0.0) for f in pair), some)
        error = max(np.abs(a - b).max() / b.max() for a, b in zip(quick[:2], exact[:2], strict=True))
        print(f"| {d} | {LANDMARKS} | {rows / seconds:.0f} | {megabytes:.0f} | {rate:.0f} | {error:.1e} |", flush=True)


if __name__ == "__main__":
    main()
