"""What joblib leaves open on a Dask cluster: tasks that keep to their worker, and runs that outlive lost workers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Hashable, Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

from joblib import parallel_config
from joblib.parallel import get_active_backend

ROUNDS = 3  # without a single result, after which data that get lost are not sent again


def cluster_client() -> Any:
    """The client of the Dask cluster that joblib sends work to, whatever `n_jobs` is, or None."""
    backend = get_active_backend()[0]
    return backend.client if type(backend).__name__ == "DaskDistributedBackend" else None


def within_task() -> AbstractContextManager[Any]:
    """Where a task runs on a cluster, what is parallel inside of it runs in it, one after the other.

    joblib would send the trees of a forest that is fitted on a worker back to all workers, each for some milliseconds
    of work, and begin another task meanwhile, which shares the record of warnings and the limit of threads.
    """
    return nullcontext() if cluster_client() is None else parallel_config(backend="sequential")


def run_on_cluster(
    client: Any, function: Callable[..., Any], shared: Any, calls: Mapping[Any, tuple[Any, ...]]
) -> Generator[tuple[Any, Any, Exception | None], None, None]:
    """Run ``function(shared, *call)`` for each call on the workers; key, result and error of each as they finish.

    What is parallel inside of a call runs in it. `shared` is sent once to each worker. A call whose worker dies is run
    again by another one; if that was the last that held `shared`, it is sent again. A call that keeps killing workers
    has the error ``KilledWorker``.
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
