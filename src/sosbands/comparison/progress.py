"""Showing how far a run is: a bar on a terminal, otherwise lines, none later than after 20 s; nothing unless asked."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from sosbands._progress import Patience

LINES = 20  # at most this many lines for finished tasks, unless verbose is 2 or more


class Progress:
    """Context that counts finished tasks on stderr.

    Parameters
    ----------
    total : int
        Tasks to do.
    done : int
        Of these, finished before.
    label : str
        What the tasks are, at the start of the line.
    verbose : int
        0 is silent, 1 gives a bar or up to 20 lines, 2 a line per task; without a bar also one for every 20 s in which
        no task was finished.
    """

    def __init__(self, total: int, done: int, label: str, verbose: int) -> None:
        self.total, self.done, self.failed = total, done, 0
        self.label, self.verbose = label, verbose
        self._bar: Any = None
        self._patience = Patience(lambda seconds: self._say(f"{self._count()} after {seconds:.0f} s"))
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self.verbose and self.done:
            self._say(f"{self.done} of {self.total} done before")
        if self.verbose == 1 and self.done < self.total and sys.stderr.isatty():
            self._bar = _rich_bar(self.label, self.total, self.done)
        if self.verbose and self._bar is None and self.done < self.total:
            self._open.enter_context(self._patience)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        if self._bar is not None:
            self._bar.stop()

    def step(self, failed: bool) -> None:
        """Count one more task."""
        before = self.done * LINES // self.total
        self.done += 1
        self.failed += failed
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)
        elif self.verbose > 1 or (self.verbose and self.done * LINES // self.total > before):
            self._say(f"{self._count()}, {self.failed} failed, {self._patience.seconds:.0f} s")
            self._patience.heard()

    def _count(self) -> str:
        return f"{self.done} of {self.total} done"

    def _say(self, message: str) -> None:
        print(f"[{self.label}] {message}", file=sys.stderr, flush=True)


def _rich_bar(label: str, total: int, done: int) -> Any:
    """A started bar, or None where rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
    except ImportError:
        return None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = RichProgress(*columns, console=Console(stderr=True))
    bar.add_task(label, total=total, completed=done)
    bar.start()
    return bar
