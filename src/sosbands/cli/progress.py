"""Progress on stderr: a spinner or a bar on a terminal, elsewhere a line per stage, none later than after 20 s."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sosbands._progress import Patience, heard_by
from sosbands._words import many

Step = Callable[[str], None]


def on_terminal() -> bool:
    """Whether somebody may be watching stderr."""
    return sys.stderr.isatty()


@contextmanager
def stages(label: str, *, shown: bool) -> Iterator[Step]:
    """Yields a function that says what is done now; what models say while they learn is shown in the same way."""
    if not shown:
        yield lambda _: None
        return
    if not on_terminal():
        with _lines(label) as step, heard_by(step):
            yield step
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _display(SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()) as bar:
        task = bar.add_task(label, total=None)

        def tell(line: str) -> None:
            bar.update(task, description=f"{label}: {line}")

        with heard_by(tell):
            yield tell


@contextmanager
def counted(label: str, total: int | None, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar of rows; yields a function that counts more of them. `total` may be unknown."""
    if not shown:
        yield lambda _: None
        return
    if not on_terminal():
        with _counted_lines(label, total) as advance:
            yield advance
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.completed:,.0f} rows")]
    with _display(*columns, TimeElapsedColumn() if total is None else TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=total)
        yield lambda rows: bar.update(task, advance=rows)


@contextmanager
def _lines(label: str) -> Iterator[Step]:
    last = label

    def tell(line: str) -> None:
        nonlocal last
        last = line
        _print(line, patience.seconds)
        patience.heard()

    with Patience(lambda seconds: _print(f"still at work after: {last}", seconds)) as patience:
        yield tell


@contextmanager
def _counted_lines(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    done = 0

    def advance(rows: int) -> None:
        nonlocal done
        done += rows

    of_all = "" if total is None else f" of {total}"
    _print(label if total is None else f"{label}: {many(total, 'row')}", 0)
    with Patience(lambda seconds: _print(f"{label}: {done}{of_all} rows done", seconds)):
        yield advance


def _print(line: str, seconds: float) -> None:
    print(f"[{seconds:.0f} s] {line}", file=sys.stderr, flush=True)


def _display(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    # Rich need not touch stdout, which may hold results.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
