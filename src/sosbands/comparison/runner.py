"""Running many tasks in parallel, each stored as soon as it is finished, and continuing where a run stopped."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from sosbands._arguments import check, is_count
from sosbands._progress import Patience
from sosbands._threads import THREAD_LIBRARIES, cluster_client, run_on_cluster
from sosbands._words import many
from sosbands.comparison.describe import Axis, canonical, code_version, read_axes, seed_of
from sosbands.comparison.store import Record, Store, StoreMismatchError, flat

MESSAGE_LIMIT = 500
# Absolute paths of two or more parts; after a word, a dot or a slash it is a fraction, a relative path or an address.
_PATH = re.compile(r"(?<![\w./~])/(?:[^\s/'\"<>:,;()]+/)+[^\s/'\"<>:,;()]*|\b[A-Za-z]:[\\/][^\s'\"<>|,;()]*")
NO_FAILURE: dict[str, str | None] = {"error_type": None, "error": None, "error_place": None}


def failure(error: BaseException) -> dict[str, str | None]:
    """Type, message and innermost place of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
    return {"error_type": type(error).__name__, "error": anonymous(str(error)), "error_place": place}


def anonymous(text: str) -> str:
    """The text, shortened, with absolute paths reduced to file names and without host name and home directory."""
    for known in {os.path.expanduser("~"), os.getcwd()} - {"~", "/", ""}:
        text = text.replace(known, "/-")  # they may hold spaces, which would end the match of a path
    text = _PATH.sub(_file_name, text).replace("/-", "<path>")
    host = socket.gethostname()
    if host and host != "localhost":
        text = re.sub(rf"(?<!\w){re.escape(host)}(?!\w)", "<host>", text)
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + " [...]"


def _file_name(path: re.Match[str]) -> str:
    name = re.split(r"[\\/]", path.group())[-1]
    return f"<path>/{name}" if "." in name.strip(".") else "<path>"


LINES = 20  # at most this many lines for finished tasks, unless verbose is 2 or more


@contextmanager
def counting(total: int, done: int, label: str, verbose: int) -> Iterator[Callable[[bool], None]]:
    """Yields a function that counts one more task, failed or not; what `verbose` of `run_tasks` says goes to stderr."""
    failed = 0
    bar: Any = None

    def say(message: str) -> None:
        print(f"[{label}] {message}", file=sys.stderr, flush=True)

    def step(fails: bool) -> None:
        nonlocal done, failed
        before = done * LINES // total
        done, failed = done + 1, failed + fails
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)
        elif verbose > 1 or (verbose and done * LINES // total > before):
            say(f"{done} of {total} done, {failed} failed, {patience.seconds:.0f} s")
            patience.heard()

    patience = Patience(lambda seconds: say(f"{done} of {total} done after {seconds:.0f} s"))
    if verbose and done:
        say(f"{done} of {total} done before")
    if not verbose or done == total:
        yield step
        return
    if verbose == 1 and sys.stderr.isatty():
        with suppress(ImportError):  # rich is optional
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            bar = Progress(*columns, console=Console(stderr=True))
            bar.add_task(label, total=total, completed=done)
    with bar or patience:
        yield step


TaskFunction = Callable[[dict[str, Axis], int], Mapping[str, Any]]
Job = tuple[dict[str, Axis], int]  # axes and seed
OTHER_CODE = ("refuse", "again", "keep")
RESERVED = ("seed", "seconds", "n_warnings", "warnings", *NO_FAILURE)


def run_tasks(
    function: TaskFunction,
    tasks: Iterable[Mapping[str, Any]],
    *,
    seed_axes: Sequence[str] | None = None,
    random_state: int = 0,
    store: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    other_code: str = "refuse",
    verbose: int = 0,
    label: str = "tasks",
) -> list[dict[str, Any]]:
    """Compute a row for each task, those that a store already holds excepted.

    Parameters
    ----------
    function : callable
        ``function(axes, seed)`` returns a mapping of names to numbers, strings, None, arrays, or lists and mappings of
        these. It runs with one BLAS thread.
    tasks : iterable of mappings
        The axes of each task: names to strings, integers or floats, all different.
    seed_axes : sequence of str, optional
        The axes that the seed is derived from (`seed_of`), all by default. Tasks that are to be paired, such as
        methods on the same data, differ only in the others.
    random_state : int
        Changes all seeds.
    store : path, optional
        File that gets a line per finished task; a later call skips them.
    settings, parts : mappings, optional
        What else the rows depend on. A store refuses other settings; of `parts` names may be added later.
    n_jobs : int, optional
        Processes, as in joblib, whose ``parallel_config`` is obeyed; a Dask cluster has as many as it has.
    retry_failed : bool
        Run the tasks that failed before again.
    other_code : {"refuse", "again", "keep"}
        What becomes of stored rows that other code made (`code_version`: sources of this package, and the files in
        which the tasks are written): an error, computing them again, or taking them as they are. Rows of stores that do
        not say which code made them, as older versions wrote them, are taken as they are.
    verbose : int
        0: silent; 1: a bar on a terminal, otherwise up to 20 lines, on stderr; 2: a line per task. Without a bar also a
        line for every 20 s in which no task was finished.
    label : str
        What the tasks are, for these lines.

    Returns
    -------
    rows : list of dict
        One per task, in order: its axes, ``seed``, what the function returned, ``seconds``, ``n_warnings``,
        ``warnings`` (their categories), ``error_type``, ``error`` and ``error_place`` (None if the task succeeded).

    Notes
    -----
    An exception is a row with its error. So is the death of a worker process, for the task that dies also when run
    alone (on a Dask cluster: on every worker that tries); with ``n_jobs=1`` tasks run in this process and nothing can
    be done. Results with `store` are those of the call without it, to the last bit. Use processes: threads share the
    record of warnings and the number of BLAS threads, so that warnings may be counted in another task's row.
    """
    check("random_state", random_state, is_count(random_state), "an integer, from which all seeds are derived")
    jobs: dict[str, Job] = {}
    for task in tasks:
        axes = read_axes(task)
        key = canonical(axes)
        if key in jobs:
            raise ValueError(f"tasks has {axes} twice: expected different axes")
        taken = [name for name in axes if name in RESERVED]
        if taken:
            raise ValueError(f"axis {taken[0]!r}: expected another name, as every row has an entry of this one")
        jobs[key] = (axes, seed_of(axes, int(random_state), seed_axes))
    check("other_code", other_code, other_code in OTHER_CODE, f"one of {list(OTHER_CODE)}")
    name = getattr(function, "__qualname__", type(function).__qualname__)
    common = {"task": name, "random_state": random_state, "seed_axes": None if seed_axes is None else list(seed_axes)}
    clash = sorted(common.keys() & (settings or {}).keys())
    if clash:
        raise ValueError(f"settings has {clash[0]!r}: expected other names, as run_tasks adds this one")
    with nullcontext() if store is None else Store(store, {**common, **(settings or {})}, parts) as opened:
        records: dict[str, Record] = {}
        if opened is not None:
            found, version = opened.contents.records, code_version(function, settings, parts)
            records = {key: found[key] for key in jobs if key in found and not (retry_failed and _failed(found[key]))}
            other = {key: record["code"] for key, record in records.items() if record.get("code", version) != version}
            if other and other_code == "refuse":
                known = ", ".join(sorted(set(other.values())))
                raise StoreMismatchError(
                    f"store={opened.path!r}: {len(other)} of {many(len(records), 'finished row')} were made by other "
                    f"code ({known} there, {version} here): other_code='again' (--other-code again) computes them "
                    "again, 'keep' takes them as they are, and another file begins anew"
                )
            if other_code == "again":
                records = {key: record for key, record in records.items() if key not in other}
        left = {key: job for key, job in jobs.items() if key not in records}
        with (
            counting(len(jobs), len(records), label, verbose) as step,
            closing(_run(function, left, n_jobs)) as new,
        ):
            for record in new:
                if opened is not None:
                    opened.append({**record, "code": version})
                records[canonical(record["axes"])] = record
                step(_failed(record))
    return [flat(records[key]) for key in jobs]


def _failed(record: Record) -> bool:
    return record["values"]["error_type"] is not None


def _run(function: TaskFunction, jobs: dict[str, Job], n_jobs: int | None) -> Generator[Record, None, None]:
    """Records in the order in which tasks finish."""
    client = cluster_client()
    if client is not None:
        yield from _on_cluster(client, function, jobs)
        return
    left = dict(jobs)

    def calls(started: dict[str, Job]) -> Iterator[Any]:
        for key, job in list(left.items()):
            started[key] = job
            yield delayed(run_one)(function, *job)

    while left:
        started: dict[str, Job] = {}
        # Batches of one task, results as they come: what is finished is stored at once.
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered")
        records = parallel(calls(started))
        try:
            for record in records:
                key = canonical(record["axes"])
                del left[key], started[key]
                yield record
        except BrokenExecutor:
            if not started:
                raise
            # A worker died (memory, segmentation fault) and took its neighbours along: find out which task does it.
            for key, job in list(started.items()):
                del left[key]
                yield _run_alone(function, job)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's hint that tasks were cancelled, after Ctrl-C
                records.close()


def _on_cluster(client: Any, function: TaskFunction, jobs: dict[str, Job]) -> Generator[Record, None, None]:
    """The same on a Dask cluster; joblib would wait for ever for a task that kills every worker it is given to."""
    from distributed import KilledWorker

    start = time.perf_counter()
    with closing(run_on_cluster(client, run_one, function, jobs)) as finished:
        for key, record, error in finished:
            if isinstance(error, KilledWorker):
                words = "every worker of the cluster that was given this task died of it"  # without their addresses
                record = _record(jobs[key], start, error={**failure(error), "error": words, "error_place": None})
            elif error is not None:
                raise error
            yield record


def _run_alone(function: TaskFunction, job: Job) -> Record:
    """A task in a process where nothing else runs, so that its death is its own."""
    start = time.perf_counter()
    try:
        record: Record = Parallel(n_jobs=2, batch_size=1)([delayed(run_one)(function, *job)])[0]
    except BrokenExecutor as error:
        return _record(job, start, error={**failure(error), "error_place": None})  # in joblib, which says nothing
    return record


def run_one(function: TaskFunction, axes: dict[str, Axis], seed: int) -> Record:
    """The record of one task: values or error, seconds, and the warnings that it raised."""
    start = time.perf_counter()
    values, error = {}, NO_FAILURE
    with THREAD_LIBRARIES().limit(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = function(dict(axes), seed)
            if not isinstance(found, Mapping):
                raise TypeError(f"the task returned {type(found).__name__}: expected a mapping of names to values")
            clash = [name for name in found if name in axes or name in RESERVED]
            if clash:
                raise ValueError(
                    f"the task returned {clash[0]!r}: expected other names than axes and entries of every row"
                )
            values = _plain(found, "the result")
        except Exception as raised:
            error = failure(raised)
    return _record((axes, seed), start, values, [warning.category.__name__ for warning in caught], error)


def _record(
    job: Job,
    start: float,
    values: Mapping[str, Any] | None = None,
    categories: Sequence[str] = (),
    error: Mapping[str, str | None] = NO_FAILURE,
) -> Record:
    axes, seed = job
    raised = {"n_warnings": len(categories), "warnings": ", ".join(sorted(set(categories)))}
    seconds = time.perf_counter() - start
    return {"axes": axes, "values": {"seed": seed, **(values or {}), "seconds": seconds, **raised, **error}}


def _plain(value: Any, name: str) -> Any:
    """A value that a task returned, as JSON will give it back."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry, str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, name) for entry in value]
    raise TypeError(f"{name} is a {type(value).__name__}: expected numbers, strings, None, arrays, lists or mappings")
