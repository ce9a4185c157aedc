"""Threads and processes: one thread around what the library computes itself, and what joblib leaves open.

Threads that wait for each other on shared cores make small computations far slower, and sums that are cut into other
pieces end in other digits: with one thread a call gives the same bits on any number of cores. The entry points of
each room take it. A point model of the user's decides itself on its threads, and its digits.
On a Dask cluster tasks keep to their worker, and runs outlive lost workers.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, contextmanager, nullcontext
from importlib import import_module
from threading import Lock, RLock, get_ident, local
from typing import TYPE_CHECKING, Any

from joblib import parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import OpenBLASController, ThreadpoolController

MANY_ROWS = 20_000  # from which on boosting gains from threads
ROUNDS = 3  # without a single result, after which data that get lost are not sent again


class _ThreadLibraries:
    """The loaded libraries that have threads, by what they are for; searched by one thread at a time, and by no fork.

    The search holds a lock of the C library's loader, for which a child forked meanwhile would wait for ever: so forks
    wait for its end. It is repeated only after imports, which may have loaded more: it takes longer than a small solve.
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
    """One BLAS thread while any such computation runs: the first Python thread sets the limit, the last restores it.

    The libraries, found once, are BLAS only: a limit restores all that its controller knows, and would undo, or keep
    for ever, what other threads have set for OpenMP. A child that is forked meanwhile knows of its own thread only, and
    keeps the limit: threads that are gone would never restore it, nor free the lock.
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
        with self._lock:
            self._inside -= Counter([get_ident()])  # which drops those that are 0
            if not self._inside:
                self._limit.restore_original_limits()
                _leave_control()

    def forget_other_threads(self) -> None:
        """What a forked child does: no thread but the one that forked lives on in it."""
        me = get_ident()
        self._lock, self._inside = Lock(), Counter({me: self._inside[me]} if self._inside[me] else {})


def _leave_control() -> None:
    """Let any thread restore the BLAS threads; threadpoolctl 3.8 and newer lets only the first that set them."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda: None)()


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
    """One OpenMP thread (boosting, in scikit-learn) for few rows, and one of BLAS unless a user's model is at work.

    The limit of OpenMP is that of a Python thread.
    """
    with ExitStack() as limits:
        if n_rows < MANY_ROWS:
            # a controller of OpenMP alone: the end of this limit must not change the BLAS threads of others
            limits.enter_context(THREAD_LIBRARIES("openmp").limit(limits=1))
        if not blas:
            limits.enter_context(ONE_THREAD)
        yield


def cluster_client() -> Any:
    """The client of the Dask cluster that joblib sends work to, whatever `n_jobs` is, or None."""
    backend = get_active_backend()[0]
    return backend.client if type(backend).__name__ == "DaskDistributedBackend" else None


def within_task() -> AbstractContextManager[Any]:
    """Where a task runs on a cluster, what is parallel inside of it runs in it, one after the other.

    joblib would send single trees to all workers, and begin another task meanwhile, which shares warnings and limits.
    """
    return nullcontext() if cluster_client() is None else parallel_config(backend="sequential")


def run_on_cluster(
    client: Any, function: Callable[..., Any], shared: Any, calls: Mapping[Any, tuple[Any, ...]]
) -> Generator[tuple[Any, Any, Exception | None], None, None]:
    """Run ``function(shared, *call)`` for each call on the workers; key, result and error of each as they finish.

    `shared` is sent once to each worker, and again if all that held it are lost. A call whose worker dies is run again
    by another one; one that keeps killing workers has the error ``KilledWorker``.
    """
    as_completed: Any = import_module("distributed").as_completed
    left: dict[Hashable, tuple[Any, ...]] = dict(calls)
    rounds = 0
    while left:
        if rounds == ROUNDS:
            raise RuntimeError(f"the cluster lost the data of {len(left)} tasks {ROUNDS} times before any had finished")
        rounds += 1
        (data,) = client.scatter([shared], broadcast=True, hash=False)
        futures = {
            client.submit(_in_worker, function, data, *call, key=f"{function.__name__}-{uuid.uuid4().hex}"): key
            for key, call in left.items()
        }
        try:
            for future in as_completed(futures):
                result, error = None, None
                try:
                    result = future.result()
                except CancelledError:  # `shared` is lost, and the result too if it was there
                    continue
                except Exception as raised:
                    error = raised
                rounds = 0
                del left[futures[future]]
                yield futures[future], result, error
        finally:
            client.cancel(list(futures))


def _in_worker(function: Callable[..., Any], *arguments: Any) -> Any:
    with parallel_config(backend="sequential"):
        return function(*arguments)


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801
        """That of Python 3.12 and newer: before there was one lock for all objects, for which forks waited for ever."""

        def __init__(self, function):
            self.function, self.name, self.__doc__ = function, None, function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            """The value, which from now on is found in the object itself."""
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value
