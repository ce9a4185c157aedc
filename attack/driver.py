"""Runs the attempts of a part under limits, stores each as it ends, and counts what happened."""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import attack
import sosbands
from benchmarks.limited import OVER_TIME, RETURNED, call_limited
from sosbands.comparison import StoreError, TextTable, read_store, run_tasks

SURFACE = ("FULL", "QUICK", "attempt")
NAMED = 10  # numbers of breaches in the table; all of them are printed below it


@dataclass(frozen=True)
class Limits:
    """What one attempt may take: seconds by the clock, and bytes of memory in each of its processes."""

    seconds: float = 120.0
    memory: int = 3 * 2**30


LIMITS = Limits()


class BreachError(AssertionError):
    """An attempt that broke something, or that went over its limits."""


def part_names() -> list[str]:
    """Names of the modules of this package that are parts, in order."""
    modules = sorted(found.name for found in pkgutil.iter_modules(attack.__path__) if found.name != "__main__")
    return [name for name in modules if is_part(importlib.import_module(f"attack.{name}"))]


def is_part(module: ModuleType) -> bool:
    """Whether a module has the three names of a part; some of them only is a mistake."""
    missing = [name for name in SURFACE if not hasattr(module, name)]
    if 0 < len(missing) < len(SURFACE) and hasattr(module, "attempt"):
        raise AttributeError(f"{module.__name__} has attempt() but no {missing[0]}: expected {', '.join(SURFACE)}")
    return not missing


def code_version() -> str:
    """A fingerprint of the library and of the attack: results of other code say nothing of this one."""
    digest = hashlib.sha256()
    for package in (sosbands, attack):
        root = Path(package.__path__[0])
        for path in sorted(path for path in root.rglob("*") if path.suffix in {".py", ".html", ".js", ".css"}):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{sosbands.__version__} {digest.hexdigest()[:16]}"


def run_part(
    module: str,
    count: int,
    *,
    store: Path | None = None,
    jobs: int = 1,
    limits: Limits = LIMITS,
    again: bool = False,
    verbose: int = 0,
) -> list[dict[str, Any]]:
    """Rows of the first `count` attempts of a part, those that a store of the same code has excepted.

    Parameters
    ----------
    module : str
        Name of the module, as one imports it.
    count : int
        Attempts 0, 1, ..., count - 1.
    store : path, optional
        File of JSON lines; one that other code wrote is begun anew.
    jobs : int
        Attempts at a time.
    limits : Limits
        Of each attempt.
    again : bool
        Try attempts that were breaches once more.
    verbose : int
        As in `run_tasks`.

    Returns
    -------
    rows : list of dict
        In the order of the numbers: ``number``, ``outcome`` and ``cpu_seconds``, or ``error``, what broke.
    """
    version = code_version()
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
        if store.exists() and not _same_code(store, version):
            store.unlink()
    return run_tasks(
        partial(one_attempt, module, limits),
        ({"number": number} for number in range(count)),
        store=store,
        settings={"part": module, "code": version},
        other_code="keep",  # the version above counts
        n_jobs=jobs,
        retry_failed=again,
        verbose=verbose,
        label=module,
    )


def _same_code(store: Path, version: str) -> bool:
    try:
        return bool(read_store(store).settings.get("code") == version)
    except StoreError:
        return False


def one_attempt(module: str, limits: Limits, axes: dict[str, Any], seed: int) -> dict[str, Any]:  # noqa: ARG001
    """What happened in an attempt, in a process of its own; raises BreachError."""
    prepare = getattr(importlib.import_module(module), "prepare", None)
    if prepare is not None:
        prepare(axes["number"])  # here, once for all attempts of this process
    ending, told = call_limited(_tell, (module, axes["number"]), limits.seconds, limits.memory)
    if ending == OVER_TIME:
        raise BreachError(f"over time: no end after {limits.seconds:g} s")
    if ending != RETURNED:
        raise BreachError(f"the process died with {told}")
    if "breach" in told:
        raise BreachError(told["breach"])
    return told


def _tell(module: str, number: int) -> dict[str, Any]:
    """Runs in the process of the attempt."""
    try:
        outcome = importlib.import_module(module).attempt(number)
    except MemoryError as error:
        return {"breach": f"over memory: {error}"}
    except AssertionError as error:
        return {"breach": str(error)}
    except Exception as error:  # no part expects it
        return {"breach": f"{type(error).__name__}: {error}"}
    return {"outcome": outcome, "cpu_seconds": sum(os.times()[:4])}


def breaches(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of attempts that broke something, also one that took its worker along."""
    return [row for row in rows if row["error_type"] is not None]


def table(rows_of: dict[str, Sequence[dict[str, Any]]]) -> TextTable:
    """One line for each part: how many attempts, what happened, which were breaches, minutes of processor time."""
    return TextTable([_line(name, rows) for name, rows in rows_of.items()])


def _line(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = Counter(row["outcome"] for row in rows if "outcome" in row)
    broken = [row["number"] for row in breaches(rows)]
    numbers = ", ".join(map(str, broken[:NAMED])) + (", ..." if len(broken) > NAMED else "")
    return {
        "part": name,
        "attempts": len(rows),
        "breaches": f"{len(broken)}" + (f" ({numbers})" if broken else ""),
        "CPU min": f"{sum(row.get('cpu_seconds', row['seconds']) for row in rows) / 60:.1f}",
        "outcomes": ", ".join(f"{number} {outcome}" for outcome, number in found.most_common()) or "-",
    }
