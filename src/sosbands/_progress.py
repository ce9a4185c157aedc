"""Lines of progress: printed where a model is verbose, or handed to whoever listens; and none too seldom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from time import perf_counter
from typing import Self

SILENT_SECONDS = 20.0  # nobody who waits should wonder for longer whether anything happens

Listener = Callable[[str], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Hand every line to this function instead of printing it, whatever `verbose` is.

    It is no setting of an estimator, which would be copied and saved with it.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def say(speaker: str, message: str, verbose: object) -> None:
    """A line of progress of the speaker."""
    listener = _listener.get()
    if listener is not None:
        listener(message)
    elif verbose:
        print(f"[{speaker}] {message}", flush=True)


class Patience:
    """Context that says that work goes on whenever nothing was said for a while.

    Parameters
    ----------
    remind : callable
        Called in a thread of its own, with the seconds since the context was entered.
    every : float
        Seconds of silence after which it is called.
    """

    def __init__(self, remind: Callable[[float], None], every: float = SILENT_SECONDS) -> None:
        self._remind, self._every = remind, every
        self._wake, self._over = Event(), False

    def __enter__(self) -> Self:
        self._start = perf_counter()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._wake.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Since the context was entered."""
        return perf_counter() - self._start

    def heard(self) -> None:
        """Something was said: wait anew."""
        self._wake.set()

    def _watch(self) -> None:
        while not self._over:
            if self._wake.wait(self._every):
                self._wake.clear()
            elif not self._over:
                self._remind(self.seconds)
