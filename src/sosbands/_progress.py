"""Lines of progress: printed where a model is verbose, or handed to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
