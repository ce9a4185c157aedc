"""Being stopped from outside."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any


class Stopped(BaseException):
    """A signal asked to stop. No KeyboardInterrupt, which tuning takes as "enough, use the best so far"."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def stop_on_signals() -> None:
    """Raise `Stopped` on Ctrl-C and on a request to end, so that temporary files are removed."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _stop)


@contextmanager
def choice_ends_early() -> Iterator[None]:
    """Let the first Ctrl-C be a KeyboardInterrupt, which ends the choice of bands with the best so far.

    Anywhere else in the block it ends the command, as a second one does everywhere. `compare` has no such block: a
    choice that was cut short would count as a result of the method.
    """
    if current_thread() is not main_thread():  # which alone may handle signals
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def first(_: int, __: Any) -> None:
        signal.signal(signal.SIGINT, _stop)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(number: int, _: Any) -> None:
    raise Stopped(number)
