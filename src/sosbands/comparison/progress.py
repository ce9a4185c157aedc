"""Showing how far a run is: a bar on a terminal, otherwise a few lines, and nothing unless asked."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

LINES = 20  # at most this many lines per run, unless verbose is 2 or more


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
        0 is silent, 1 gives a bar or up to 20 lines, 2 a line per task.
    """

    def __init__(self, total: int, done: int, label: str, verbose: int) -> None:
        self.total, self.done, self.failed = total, done, 0
        self.label, self.verbose = label, verbose
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        if self.verbose and self.done:
            self._say(f"{self.done} of {self.total} done before")
        if self.verbose == 1 and self.done < self.total and sys.stderr.isatty():
            self._bar = _rich_bar(self.label, self.total, self.done)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            self._say(f"{self.done} of {self.total} done, {self.failed} failed, {self._seconds():.0f} s")

    def _seconds(self) -> float:
        return time.perf_counter() - self._start

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
