"""Calls in a process of their own with hard limits of time and memory, and rows that are stored as they come."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

RETURNED = "returned"
OVER_TIME = "over time"
DIED = "died"


def call_limited(
    function: Callable[..., Any], args: tuple, seconds: float, memory: int | None = None
) -> tuple[str, Any]:
    """``("returned", result)``, ``("over time", None)`` or ``("died", exit code)`` of ``function(*args)``.

    The child is a fork, so that nothing is imported twice, and it is killed with all that it started when its time is
    up: no loop inside a library can hold it. No process of it gets more than `memory` bytes of data: beyond, allocation
    fails. `function` must catch its own errors; one that it lets through counts as death.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, function, args, memory))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)  # of the caller
        child.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            return OVER_TIME, None
        return RETURNED, receiver.recv()
    except EOFError:  # the child ended without a word
        child.join()
        return DIED, child.exitcode
    finally:
        receiver.close()
        _end(child)


def _end(child: Any) -> None:
    """Kill the child and every process of its group, whether or not it had the time to become a group."""
    with suppress(ProcessLookupError, PermissionError):  # no such group, or nothing but zombies in it
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.join()


def _send(sender: Connection, function: Callable[..., Any], args: tuple, memory: int | None) -> None:
    os.setsid()  # a group of its own, to be killed as a whole
    if memory is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (memory if hard < 0 else min(memory, hard), hard))
    sender.send(function(*args))
    sender.close()


def read_rows(path: Path) -> list[dict]:
    """Rows of a file of JSON lines; none if there is no file. A line that was cut off is left out."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def append_row(path: Path, row: dict) -> None:
    """Store one row at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
