"""One thread around small computations: threads that wait for each other on shared cores make them far slower."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits

MANY_ROWS = 20_000  # from which on boosting gains from threads


class _OneThread(ContextDecorator):
    """One BLAS thread while any such computation runs, whichever Python thread it runs in.

    The limit belongs to the process: the first one sets it, the last restores it. Finding the loaded libraries takes
    longer than a small solve, so it is done once. A child that is forked meanwhile knows of its own thread only, and
    keeps the limit: threads that are gone would never restore it, nor free the lock.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), Counter[int]()
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside[get_ident()] += 1

    def __exit__(self, *error: object) -> None:
        me = get_ident()
        with self._lock:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            if not self._inside:
                self._limit.__exit__(*error)

    def forget_other_threads(self) -> None:
        """What a forked child does: no thread but the one that forked lives on in it."""
        me = get_ident()
        self._lock, self._inside = Lock(), Counter({me: self._inside[me]} if self._inside[me] else {})


ONE_THREAD = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_THREAD.forget_other_threads)


def few_threads(n_rows: int = 0) -> AbstractContextManager[Any]:
    """One OpenMP thread (boosting, in scikit-learn) while there are few rows; the limit is that of a Python thread."""
    return threadpool_limits(1, user_api="openmp") if n_rows < MANY_ROWS else nullcontext()
