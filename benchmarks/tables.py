"""Seconds, memory and scores of a fit to tables with texts, codes, gaps and heavy tails, from 500 to a million rows.

    python -m benchmarks.tables [--sizes 500 2000] [--tables delays] [--methods sos split] [--store FILE]

Three simulated tables (`sosbands.datasets.tables`), each with a fresh test set of 20 000 rows, the same for all
sizes. Half of the rows are held back for calibration. All methods are put around the default point model; CQR has
none. Each measurement runs in a process of its own, whose largest memory is told, and is a line of the store: what is
there is not measured again. Times are processor times of one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: more threads are slower on few cores

import resource
from functools import partial
from time import perf_counter, process_time

from sosbands import SoSBandRegressor
from sosbands.baselines import GradientBoostingCQR, LocallyWeightedCP, SplitCP
from sosbands.datasets import MIXED_TABLES
from sosbands.metrics import coverage, interval_score, mean_width

LEVEL, N_TEST = 0.9, 20_000
SIZES = (500, 2000, 10_000, 50_000, 200_000, 1_000_000)
METHODS = {
    "sos": partial(SoSBandRegressor, max_seconds=None),  # of the wall clock, which says little on a loaded machine
    "split": SplitCP,
    "local": LocallyWeightedCP,
    "cqr": GradientBoostingCQR,
}
SECONDS = 1200  # after which a measurement is given up
COLUMNS = ("seconds", "predict_seconds", "megabytes", "coverage", "width", "score")


def measure(table: str, n: int, name: str) -> dict:
    """One measurement, in this process."""
    draw = MIXED_TABLES[table]
    X, y = draw(n, random_state=n)
    new, truth = draw(N_TEST, random_state=99)
    cpu, wall = process_time(), perf_counter()
    model = METHODS[name](random_state=0).fit(X, y)
    seconds, wall = process_time() - cpu, perf_counter() - wall
    cpu = process_time()
    lower, upper = model.predict_interval(new, confidence_level=LEVEL).T
    found = {"seconds": seconds, "wall_seconds": wall, "predict_seconds": process_time() - cpu}
    found["coverage"] = float(coverage(truth, lower, upper))
    found["width"] = float(mean_width(lower, upper))
    found["score"] = float(interval_score(truth, lower, upper, LEVEL))
    found["summary"] = model.summary() if hasattr(model, "summary") else ""
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def read(store: Path) -> dict[tuple[str, int, str], dict]:
    """What is measured already; the last line may be cut."""
    rows = {}
    for line in store.read_text().splitlines() if store.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        rows[row["table"], row["n"], row["method"]] = row
    return rows


def run(store: Path, table: str, n: int, name: str) -> None:
    """One measurement, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.tables", "--one", table, str(n), name]
    row = {"table": table, "n": n, "method": name}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        row |= json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip().splitlines()[-1]}
    except subprocess.TimeoutExpired:
        row["error"] = f"over {SECONDS} s"
    with open(store, "a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, file=sys.stderr, flush=True)


def show(rows: dict[tuple[str, int, str], dict], tables, sizes, methods) -> None:
    """A Markdown table of what was measured; scores over that of split conformal prediction."""
    print("| table | n | method | fit s | 20 000 rows s | MB | coverage | width | score | score / split |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for table in tables:
        for n in sizes:
            base = rows.get((table, n, "split"), {}).get("score", float("nan"))
            for name in methods:
                row = rows.get((table, n, name))
                if row is None or "error" in row:
                    print(f"| {table} | {n} | {name} | {'' if row is None else row['error']} | | | | | | |")
                    continue
                s, p, mb, c, w, score = (row[column] for column in COLUMNS)
                cells = f"{s:.1f} | {p:.2f} | {mb:.0f} | {c:.3f} | {w:.4g} | {score:.4g} | {score / base:.3f}"
                print(f"| {table} | {n} | {name} | {cells} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(MIXED_TABLES), choices=list(MIXED_TABLES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--store", type=Path, default=Path("build/tables.jsonl"))
    parser.add_argument("--one", nargs=3, metavar=("TABLE", "N", "METHOD"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        warnings.simplefilter("ignore")  # of rows off the data
        table, n, name = given.one
        print(json.dumps(measure(table, int(n), name)))
        return
    given.store.parent.mkdir(parents=True, exist_ok=True)
    for n in given.sizes:
        for table in given.tables:
            for name in given.methods:
                if (table, n, name) not in read(given.store):
                    run(given.store, table, n, name)
    show(read(given.store), given.tables, given.sizes, given.methods)


if __name__ == "__main__":
    main()
