"""Progress on stderr if that is a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sosbands._progress import heard_by


def on_terminal() -> bool:
    """Whether somebody may be watching stderr."""
    return sys.stderr.isatty()


@contextmanager
def stages(label: str, *, shown: bool) -> Iterator[None]:
    """A spinner with the time that has passed and the last line of progress of the model that learns meanwhile."""
    if not (shown and on_terminal()):
        yield
        return
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    with _display(SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()) as bar:
        task = bar.add_task(label, total=None)
        with heard_by(lambda line: bar.update(task, description=f"{label}: {line}")):
            yield


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

    # Rich need not touch stdout, which may hold results.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
