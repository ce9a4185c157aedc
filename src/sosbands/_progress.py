"""Lines of progress: printed while a verbose model speaks, or handed to whoever listens; and none too seldom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from time import perf_counter
from typing import Any, Self

SILENT_SECONDS = 20.0  # nobody who waits should wonder for longer whether anything happens

Listener = Callable[[str], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_speaker: ContextVar[tuple[str, Any]] = ContextVar("speaker", default=("sosbands", False))  # name, and whether aloud


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Hand every line to this function, whatever `verbose` is; a setting would be copied and saved with the model."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def speaking(speaker: Any, verbose: Any = None) -> Iterator[None]:
    """Let `say` speak for a model, aloud if that is verbose, or under a name; None is as loud as around the context.

    Other threads and processes are silent: a context is that of one thread.
    """
    if not isinstance(speaker, str):
        speaker, verbose = type(speaker).__name__, speaker.verbose
    token = _speaker.set((speaker, _speaker.get()[1] if verbose is None else verbose))
    try:
        yield
    finally:
        _speaker.reset(token)


def say(message: str) -> None:
    """A line of progress of whoever is speaking."""
    listener, (speaker, verbose) = _listener.get(), _speaker.get()
    if listener is not None:
        listener(message)
    elif verbose:
        print(f"[{speaker}] {message}", flush=True)


class Patience:
    """Calls `remind` with the seconds so far, in a thread of its own, whenever nothing was said for `every` seconds."""

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
