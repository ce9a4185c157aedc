"""One BLAS thread while a solve runs: the matrices are small, and threads on shared cores are many times slower."""

from __future__ import annotations

from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """One BLAS thread while any solve runs, whichever Python thread it runs in; the first sets it, the last restores.

    The limit belongs to the process. Finding the loaded libraries takes longer than a small solve, so it is done once.
    """

    def __init__(self) -> None:
        self._lock, self._running = Lock(), 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._limit.__exit__(*error)


ONE_THREAD = _OneThread()
