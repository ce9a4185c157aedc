"""Calls in a process of their own with a hard limit on their time, and rows that are stored as they come."""

from __future__ import annotations

import json
import multiprocessing
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

OVER_TIME = "over time"
DIED = "died"


def call_limited(function: Callable[..., Any], args: tuple, seconds: float) -> tuple[str, Any]:
    """``("returned", result)``, ``("over time", None)`` or ``("died", exit code)`` of ``function(*args)``.

    The child is a fork, so that nothing is imported twice, and it is killed when its time is up: no loop inside a
    library can hold it. `function` must catch its own errors; one that it lets through counts as death.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, function, args), daemon=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)  # of the caller
        child.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            return OVER_TIME, None
        return "returned", receiver.recv()
    except EOFError:  # the child ended without a word
        child.join()
        return DIED, child.exitcode
    finally:
        receiver.close()
        child.kill()
        child.join()


def _send(sender: Connection, function: Callable[..., Any], args: tuple) -> None:
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
