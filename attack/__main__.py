"""The command ``python -m attack``: every part or some, a table, and an exit code that says whether anything broke."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# The matrices are small: threads of BLAS and OpenMP that wait for each other on shared cores are many times slower.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from attack.driver import Limits, breaches, part_names, run_part, table  # noqa: E402

RESULTS = Path(__file__).parents[1] / "results" / "attack"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if nothing broke, 1 if something did."""
    args = read_arguments(arguments, part_names())
    if args.number is not None:
        for name in args.part:
            print(f"{name} {args.number}: {importlib.import_module(f'attack.{name}').attempt(args.number)}")
        return 0
    limits = Limits(args.seconds, args.memory * 2**20)
    rows_of = {}
    for name in args.part:
        module = importlib.import_module(f"attack.{name}")
        count = module.QUICK if args.quick else module.FULL
        store = args.results / f"{name}.jsonl"
        rows_of[name] = run_part(
            module.__name__, count, store=store, jobs=args.jobs, limits=limits, again=args.again, verbose=1
        )
    print(table(rows_of))
    broken = [(name, row) for name, rows in rows_of.items() for row in breaches(rows)]
    for name, row in broken:
        print(f"BREACH {name} {row['number']}: {row['error']}")
    return 1 if broken else 0


def read_arguments(arguments: Sequence[str] | None, names: list[str]) -> argparse.Namespace:
    """The options, with all parts where none was named."""
    parser = argparse.ArgumentParser(
        prog="python -m attack",
        description="Try to break sosbands. Finished attempts are kept until the code changes: a second run goes on.",
    )
    parser.add_argument("--part", action="append", choices=names, help="this part only; may be given several times")
    parser.add_argument("--quick", action="store_true", help="the first attempts of each part only")
    parser.add_argument("--jobs", type=int, default=2, help="attempts at a time (default: 2)")
    parser.add_argument("--again", action="store_true", help="try attempts that were breaches once more")
    parser.add_argument("--number", type=int, help="this one attempt of each part, here and without limits")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="of each attempt, by the clock")
    parser.add_argument("--memory", type=int, default=Limits.memory // 2**20, help="MiB of each process of an attempt")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of what was found (results/attack)")
    args = parser.parse_args(arguments)
    args.part = sorted(set(args.part)) if args.part else names
    return args


if __name__ == "__main__":
    sys.exit(main())
