"""Progress on stderr if that is a terminal, nothing otherwise."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any


def on_terminal() -> bool:
    """Whether somebody may be watching stderr."""
    return sys.stderr.isatty()


@contextmanager
def stages(label: str, *, shown: bool) -> Iterator[int]:
    """A spinner with the time that has passed and the last line that a model with ``verbose=1`` prints.

    Yields the `verbose` to give to the model: 0 where nothing is shown.
    """
    if not (shown and on_terminal()):
        yield 0
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _display(SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()) as bar:
        task = bar.add_task(label, total=None)

        def show(line: str) -> None:
            bar.update(task, description=f"{label}: {line.rpartition('] ')[2]}")  # without who says it

        with redirect_stdout(_Lines(show)):
            yield 1


@contextmanager
def counted(label: str, total: int | None, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar of rows; yields a function that counts more of them. `total` may be unknown."""
    if not (shown and on_terminal()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.completed:,.0f} rows")]
    with _display(*columns, TimeElapsedColumn() if total is None else TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=total)
        yield lambda rows: bar.update(task, advance=rows)


def _display(*columns: Any) -> Any:
    from rich.console import Console
    from rich.progress import Progress

    # What models print is caught by _Lines, so rich need not touch stdout, which may hold results.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


class _Lines(io.TextIOBase):
    """A text stream that hands on each line that is written to it."""

    def __init__(self, use: Callable[[str], None]) -> None:
        self._use = use
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, lines):
            self._use(line)
        return len(text)
