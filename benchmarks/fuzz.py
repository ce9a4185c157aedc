"""Thousands of hostile problems for learn_bands, each in a process of its own under a hard limit of time.

An outcome is one of

- converged: the certified gap is at most the tolerance;
- warned: a solution with a named warning that says what it misses;
- refused: an error of the package, or a ValueError that names an argument;
- crashed: any other error, or the death of the process;
- over time: no answer within the limit.

Every certificate that comes back is recomputed from its definition in extended precision (benchmarks/recheck.py); one
that claims more than that is a wrong certificate, whatever the outcome. Rows are stored as they come, and a second run
continues where the first stopped:

    python -m benchmarks.fuzz --count 3000
    python -m benchmarks.fuzz --count 3000 --again "over time" crashed
"""

from __future__ import annotations

import argparse
import inspect
import traceback
import warnings
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.hostile import hostile_problem
from benchmarks.limited import append_row, call_limited, read_rows
from benchmarks.recheck import costs_of, recheck
from sosbands import BandSolution, learn_bands
from sosbands.bands.initial import penalty_scale
from sosbands.exceptions import SosbandsError, SosbandsWarning

LIMIT = 40.0
ARGUMENTS = (*inspect.signature(learn_bands).parameters, "kernel matrix")
# Rounding of double precision: what is reported may differ from what is true by this much of the primal value.
ALLOWED = {"primal_off": 1e-6, "dual_off": 1e-6, "crossed": 1e-9, "short": 1e-9, "outside_box": 1e-9}


def attempt(seed: int) -> dict[str, Any]:
    """One row: the outcome of the problem of a seed, and what its certificate is worth."""
    X, r, options = hostile_problem(seed)
    row = {"seed": seed, "n": len(X), "d": X.shape[1], "options": str(options), "rms": float(_size(r))}
    clock = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            bands = learn_bands(X, r, **options)
        except Exception as error:
            return {**row, **_of_error(error), "seconds": perf_counter() - clock}
    row["seconds"] = perf_counter() - clock
    named = [str(w.category.__name__) for w in caught if issubclass(w.category, SosbandsWarning)]
    row["raw_warnings"] = sorted({f"{w.category.__name__}: {w.message}" for w in caught} - _named_texts(caught))
    row["outcome"] = (
        "converged" if bands.status.value == "converged" and "NotCertifiedWarning" not in named else "warned"
    )
    row |= {"detail": ", ".join(sorted(set(named))), "status": bands.status.value, "gap": bands.gap}
    return {**row, "iterations": bands.iterations, **rechecked(bands, X, r, options)}


def _size(r: np.ndarray) -> float:
    largest = np.abs(r).max()
    return largest * np.sqrt(np.mean(np.square(r / largest))) if largest > 0 else 0.0


def _named_texts(caught: list[warnings.WarningMessage]) -> set[str]:
    return {f"{w.category.__name__}: {w.message}" for w in caught if issubclass(w.category, SosbandsWarning)}


def _of_error(error: Exception) -> dict[str, Any]:
    """Refused where the error says what is wrong with which argument."""
    text = f"{type(error).__name__}: {error}"
    by_name = isinstance(error, ValueError) and any(name in str(error) for name in ARGUMENTS)
    if isinstance(error, SosbandsError) or by_name:
        return {"outcome": "refused", "detail": text[:200]}
    where = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"outcome": "crashed", "detail": f"{text[:200]} ({where[-1] if where else 'nowhere'})"}


def rechecked(bands: BandSolution, X: np.ndarray, r: np.ndarray, options: dict) -> dict[str, Any]:
    """Discrepancies of the certificate and the list of those that rounding does not explain."""
    scale = None
    if options["normalize"] and np.any(r):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = {"rank": options["rank"], "solver": options["solver"]}
            scale = penalty_scale(X, r, kernel=options["kernel"], **solver)
    found = recheck(bands, r, costs_of(options, scale))
    return {**found, "wrong": [name for name, most in ALLOWED.items() if not found[name] <= most]}


def attempt_limited(seed: int, limit: float) -> dict[str, Any]:
    """The row of a seed, also where the problem ends in no answer."""
    outcome, row = call_limited(attempt, (seed,), limit)
    if outcome == "returned":
        return row
    X, r, options = hostile_problem(seed)
    known = {"seed": seed, "n": len(X), "d": X.shape[1], "options": str(options), "rms": float(_size(r))}
    if outcome == "over time":
        return {**known, "outcome": outcome, "seconds": limit}
    return {**known, "outcome": "crashed", "detail": f"the process died with {row}", "seconds": np.nan}


def report(rows: list[dict]) -> None:
    print(f"{len(rows)} problems: {dict(Counter(row['outcome'] for row in rows))}")
    for outcome in ("crashed", "over time"):
        for row in rows:
            if row["outcome"] == outcome:
                print(f"{outcome}: seed {row['seed']}: {row.get('detail', '')} n={row['n']} {row['options']}")
    for row in rows:
        if row.get("wrong"):
            off = {name: row[name] for name in row["wrong"]}
            print(f"WRONG CERTIFICATE: seed {row['seed']}: {off}, gap {row['gap']:.2g}, n={row['n']} {row['options']}")
    print(f"{sum(bool(row.get('wrong')) for row in rows)} wrong certificates")
    raw = [row for row in rows if row.get("raw_warnings")]
    print(f"{len(raw)} with warnings of other packages: {Counter(text for row in raw for text in row['raw_warnings'])}")
    for row in sorted(rows, key=lambda row: -row["seconds"])[:10]:
        print(f"slow: seed {row['seed']}: {row['seconds']:.3g} s, {row['outcome']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds per problem")
    parser.add_argument("--again", nargs="*", default=[], help="outcomes whose problems are tried once more")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/output/fuzz.jsonl"))
    args = parser.parse_args()
    rows = {row["seed"]: row for row in read_rows(args.output)}  # the last row of a seed counts
    done = {seed for seed, row in rows.items() if row["outcome"] not in args.again}
    for seed in sorted(set(range(args.count)) - done):
        rows[seed] = attempt_limited(seed, args.limit)
        append_row(args.output, rows[seed])
        if seed % 100 == 99:
            print(f"{seed + 1} of {args.count}", flush=True)
    report([rows[seed] for seed in sorted(rows) if seed < args.count])


if __name__ == "__main__":
    main()
