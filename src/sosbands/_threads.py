"""One thread around what the library computes itself.

Threads that wait for each other on shared cores make small computations far slower, and sums that are cut into other
pieces end in other digits: with one thread a call gives the same bits on any number of cores. The entry points of
each room take it. A point model of the user's decides itself on its threads, and its digits.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ContextDecorator, ExitStack, contextmanager
from threading import Lock, RLock, get_ident, local
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

MANY_ROWS = 20_000  # from which on boosting gains from threads


class _ThreadLibraries:
    """The loaded libraries that have threads, by what they are for; searched by one thread at a time, and by no fork.

    The search runs Python code under a lock of the loader of the C library. A child forked meanwhile, by another
    thread, would find that lock taken and wait for ever at its own search, so forks wait for the end of one. It is
    repeated only after imports, which may have loaded more: it takes longer than a small solve.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._found: ThreadpoolController | None = None
        self._modules = 0  # imported when the search began
        self._forking = local()

    def __call__(self, user_api: str | None = None) -> ThreadpoolController:
        with self._lock:
            modules = len(sys.modules)
            if self._found is None or modules != self._modules:
                self._found, self._modules = ThreadpoolController(), modules
            return self._found if user_api is None else self._found.select(user_api=user_api)

    def before_fork(self) -> None:
        """Wait for a search of another thread; Ctrl-C ends the waiting, and the fork is made all the same."""
        self._forking.waited = False
        self._forking.waited = self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let the other threads search again."""
        if self._forking.waited:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """A lock that no thread waits for: those that did are gone."""
        self._lock = RLock()


class _OneThread(ContextDecorator):
    """One BLAS thread while any such computation runs, whichever Python thread it runs in.

    The limit belongs to the process: the first one sets it, the last restores it. The libraries, found once, are BLAS
    libraries only: a limit restores all that its controller knows, and would undo, or keep for ever, what other
    threads have set for OpenMP. A child that is forked meanwhile knows of its own thread only, and keeps the limit:
    threads that are gone would never restore it, nor free the lock.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), Counter[int]()
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._controller = self._controller or THREAD_LIBRARIES("blas")
                self._limit = self._controller.limit(limits=1)
                _leave_control()
            self._inside[get_ident()] += 1

    def __exit__(self, *_error: object) -> None:
        me = get_ident()
        with self._lock:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            if not self._inside:
                self._limit.restore_original_limits()
                _leave_control()

    def forget_other_threads(self) -> None:
        """What a forked child does: no thread but the one that forked lives on in it."""
        me = get_ident()
        self._lock, self._inside = Lock(), Counter({me: self._inside[me]} if self._inside[me] else {})


def _leave_control() -> None:
    """Let other threads set the BLAS threads too; threadpoolctl 3.8 and newer lets only the first that did.

    Otherwise the last of several computations, in another thread than the first, could not restore them.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear()


THREAD_LIBRARIES = _ThreadLibraries()
ONE_THREAD = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=THREAD_LIBRARIES.before_fork,
        after_in_parent=THREAD_LIBRARIES.after_fork_in_parent,
        after_in_child=THREAD_LIBRARIES.after_fork_in_child,
    )
    os.register_at_fork(after_in_child=ONE_THREAD.forget_other_threads)


@contextmanager
def few_threads(n_rows: int = 0, *, blas: bool = False) -> Iterator[None]:
    """One OpenMP thread (boosting, in scikit-learn) while there are few rows; the limit is that of a Python thread.

    And one of BLAS, unless a model of the user's is at work, which may have as many as `blas` says.
    """
    with ExitStack() as limits:
        if n_rows < MANY_ROWS:
            # a controller of OpenMP alone: the end of this limit must not change the BLAS threads of others
            limits.enter_context(THREAD_LIBRARIES("openmp").limit(limits=1))
        if not blas:
            limits.enter_context(ONE_THREAD)
        yield
