"""Files on a disk that is full: the old file stays as it was, nothing else is left, and one error says which file.

The disk is a limit on the size of files (an attempt process may set one for itself), or, where mounting is allowed, a
small file system in memory. What is written is between nothing and all but one byte of what would be needed.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import sosbands
from sosbands import SoSBandRegressor
from sosbands.cli.app import app
from sosbands.comparison import read_store
from sosbands.regressors import PAPER_SETTINGS

FULL = 150
QUICK = 10
OLD = b"what was there before\n"
PLAIN = ("--base-scale", "none", "--noise-features", "inputs", "--width-penalty", "10", "--learning-coverage", "1")
FAST = ("--model", "linear", "--lengthscale", "median", "--symmetry-penalty", "10", "--score", "added", *PLAIN)


@dataclass(frozen=True)
class Ending:
    """How a command or call ended: its exit code, and the lines that begin with ``error:``."""

    code: int
    errors: tuple[str, ...]


def attempt(number: int) -> str:
    """One kind of file, written twice: with room for all of it, and on a disk that is full."""
    rng = np.random.default_rng([71, number])
    writing = WRITINGS[number % len(WRITINGS)]
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs"
        inputs.mkdir()
        make_inputs(inputs)
        whole = Path(folder) / "whole"
        whole.mkdir()
        old = old_content(writing, inputs)
        needed = written_with_room(writing, inputs, whole, old)
        room = int(rng.choice([0, 1, rng.integers(0, needed), needed - 1, needed // 2]))
        mounted = bool(rng.random() < 0.5) and can_mount()
        place = small_file_system if mounted else limited_folder
        with place(Path(folder) / "full", room, writing, old) as (full, limit):
            with limit():
                ending = writing.write(inputs, full / writing.name)
            outcome = judge(writing, ending, full, old, room)
            if writing.appends:
                later = writing.write(inputs, full / writing.name)
                assert later.code == 0, f"{writing.words}: does not go on when there is room again: {later.errors}"
            return outcome


def judge(writing: Writing, ending: Ending, full: Path, old: bytes, room: int) -> str:
    """The law."""
    label = f"{writing.words} with room for {room} bytes"
    left = sorted(path.name for path in full.iterdir())
    assert left == [writing.name], f"{label}: left in the folder: {left}"
    now = (full / writing.name).read_bytes()
    if ending.code == 0:
        assert now != old, f"{label}: said to be done, and nothing was written"
        writing.check(full / writing.name)
        return f"{writing.words}: there was room"
    if writing.appends:
        assert now.startswith(old), f"{label}: lines that were there before are lost"
        writing.check(full / writing.name)
    else:
        assert now == old, f"{label}: the old file is another ({len(now)} bytes)"
    assert len(ending.errors) == 1, f"{label}: expected one error, got {ending.errors}"
    assert writing.name in ending.errors[0], f"{label}: the error does not name the file: {ending.errors[0]}"
    return f"{writing.words}: refused"


# ---------------------------------------------------------------- full disks


@contextmanager
def limited_folder(folder: Path, room: int, writing: Writing, old: bytes) -> Iterator[tuple[Path, Callable]]:
    """A folder in which no file gets larger than the room."""
    folder.mkdir()
    (folder / writing.name).write_bytes(old)

    @contextmanager
    def limit() -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error of the write, in place of death
        resource.setrlimit(resource.RLIMIT_FSIZE, (room + (len(old) if writing.appends else 0), before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)

    yield folder, limit


@contextmanager
def small_file_system(folder: Path, room: int, writing: Writing, old: bytes) -> Iterator[tuple[Path, Callable]]:
    """A file system with hardly more room than that, filled up but for it, in whole pages."""
    folder.mkdir()
    size = 4 * 2**20
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        (folder / writing.name).write_bytes(old)

        @contextmanager
        def limit() -> Iterator[None]:
            inside = folder / "filler"
            free = shutil.disk_usage(folder).free
            inside.write_bytes(bytes(max(0, free - room)))
            held = os.open(inside, os.O_RDONLY)  # the room is taken although the name is gone
            inside.unlink()
            try:
                yield
            finally:
                os.close(held)

        yield folder, limit
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a writer may still hold its file


@cache
def can_mount() -> bool:
    """Whether this process may mount a file system in memory."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
        try:
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return False
        except OSError:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


# ---------------------------------------------------------------- what is written


@dataclass(frozen=True)
class Writing:
    """A file, what writes it, and what shows that it is whole."""

    words: str
    name: str
    write: Callable[[Path, Path], Ending]
    check: Callable[[Path], object]
    appends: bool = False


def table(n: int = 60) -> pd.DataFrame:
    """Two columns and a target."""
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    return found.assign(y=found.a + (1 + found.b**2) * rng.normal(size=n))


@cache
def model() -> SoSBandRegressor:
    """A fitted model."""
    settings = {**PAPER_SETTINGS, "lengthscale": "median", "symmetry_penalty": 1.0, "conformal_score": "added"}
    data = table()
    return SoSBandRegressor(LinearRegression(), random_state=0, **settings).fit(data[["a", "b"]], data["y"])


def make_inputs(folder: Path) -> None:
    """What the commands read."""
    table().to_csv(folder / "data.csv", index=False)
    model().save(folder / "known.model")


def old_content(writing: Writing, inputs: Path) -> bytes:
    """What the file holds before: any bytes, or the first half of a store."""
    if not writing.appends:
        return OLD
    started = inputs / writing.name
    ending = compare(inputs, started, repetitions=1)
    assert ending.code == 0, f"{writing.words}: {ending.errors} with room for everything"
    return started.read_bytes()


def written_with_room(writing: Writing, inputs: Path, folder: Path, old: bytes) -> int:
    """Bytes that a file of this kind needs, beyond the old ones if it grows."""
    path = folder / writing.name
    path.write_bytes(old)
    ending = writing.write(inputs, path)
    assert ending.code == 0, f"{writing.words}: {ending.errors} with room for everything"
    writing.check(path)
    return path.stat().st_size - (len(old) if writing.appends else 0)


def command(*words: object) -> Ending:
    """A command of the command line, in this process."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    escaped = result.exception
    assert escaped is None or isinstance(escaped, SystemExit), f"not turned into a message: {escaped!r}"
    lines = tuple(line for line in result.stderr.splitlines() if line.startswith("error:"))
    return Ending(result.exit_code, lines)


def save(_inputs: Path, path: Path) -> Ending:
    """In Python, where the error is an exception."""
    try:
        model().save(path)
    except OSError as error:
        return Ending(1, (f"error: {error}",))
    return Ending(0, ())


def fit(inputs: Path, path: Path) -> Ending:
    """``sosbands fit``."""
    return command("fit", inputs / "data.csv", "--target", "y", "-o", path, *FAST)


def predict(inputs: Path, path: Path) -> Ending:
    """``sosbands predict -o``."""
    return command("predict", inputs / "known.model", inputs / "data.csv", "-o", path)


def explore(inputs: Path, path: Path) -> Ending:
    """``sosbands explore -o``."""
    return command("explore", inputs / "data.csv", "--target", "y", "-o", path, *FAST)


def compare(inputs: Path, path: Path, repetitions: int = 2) -> Ending:
    """``sosbands compare --store``."""
    asked = ("--methods", "split", "--repetitions", repetitions, "--model", "linear", "--store", path, "--jobs", 1)
    return command("compare", inputs / "data.csv", "--target", "y", *asked)


def page_is_whole(path: Path) -> None:
    """The last line of a page is its end."""
    assert path.read_text().rstrip().endswith("</html>"), "the page is cut off"


WRITINGS = (
    Writing("save", "band.model", save, sosbands.load),
    Writing("predict to CSV", "out.csv", predict, pd.read_csv),
    Writing("compare --store", "runs.jsonl", compare, read_store, appends=True),
    Writing("explore", "page.html", explore, page_is_whole),
    Writing("predict to Parquet", "out.parquet", predict, pd.read_parquet),
    Writing("fit", "new.model", fit, sosbands.load),
)
