"""Being stopped from outside."""

from __future__ import annotations

import signal
from typing import Any


class Stopped(BaseException):
    """A signal asked to stop. No KeyboardInterrupt, which tuning would take as "enough, use the best so far"."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def stop_on_signals() -> None:
    """Raise `Stopped` on Ctrl-C and on a request to end, so that temporary files are removed."""

    def stop(number: int, _: Any) -> None:
        raise Stopped(number)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, stop)
