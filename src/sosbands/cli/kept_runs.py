"""Finished runs of a comparison that was interrupted, kept in the cache folder of the user until it is finished."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sosbands.cli.output import Output
from sosbands.comparison.code_version import code_version
from sosbands.comparison.fingerprint import data_hash, fingerprint
from sosbands.comparison.line_file import StoreError, remove_file

DAYS = 7  # after which nobody is taken to come back
SUFFIX = ".jsonl"


def cache_folder() -> Path:
    """Where programs keep what can be computed again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "sosbands" / "compare"


@contextmanager
def kept_runs(X: Any, y: Any, settings: Any, says: Output, *, fresh: bool) -> Iterator[Path | None]:
    """A store for a comparison with these data and settings: removed when it is finished, otherwise left for the next.

    None where nothing can be kept. Stores that nobody has touched for a week are removed.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _forget_old(folder)
    except (OSError, RuntimeError) as error:  # also without a home
        says.note(
            f"an interrupted run will not be continued, as nothing can be kept in {folder} ({error}); use --store"
        )
        yield None
        return
    key = fingerprint({"X": data_hash(X), "y": data_hash(y), "settings": settings, "code": code_version(settings)})
    path = folder / f"{key[:32]}{SUFFIX}"
    if fresh and not remove_file(path):
        raise StoreError(f"another run of this comparison is writing to {path}: expected one at a time")
    yield path
    remove_file(path)


def _forget_old(folder: Path) -> None:
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > DAYS * 86_400:
                remove_file(path)
