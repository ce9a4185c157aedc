"""Commands that are killed: no output is damaged, finished rows are kept, and the next run leaves nothing behind.

A command runs in a process of its own and dies by SIGKILL at a random moment of its work, or around one of its flushes
and renames, or at a random byte of a file that it writes, by the signal of a limit, which nobody catches. Then the same
command runs to its end, and what it gives is compared with a run that nobody disturbed.
"""

from __future__ import annotations

import csv
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FULL = 100
QUICK = 3
ROOT = Path(__file__).parents[1]
COMMANDS = ("fit", "predict", "compare", "explore", "reproduce")
WAYS = ("byte", "step", "moment")
PATIENCE = 300  # seconds for which a command may seem to do nothing
ENTRY = "penalty-bands"
PLAIN = ("--base-scale", "none", "--noise-features", "inputs", "--width-penalty", "10", "--learning-coverage", "1")
FAST = ("--model", "linear", "--lengthscale", "median", "--symmetry-penalty", "10", "--score", "added", *PLAIN)
PLANTED = ""  # code that the killed process runs first: tests plant defects
# The command line, with a limit of bytes, or death around flush or rename number `at`, counted together.
CHILD = """
import os, resource, signal, sys
planted, way, at, program, *words = sys.argv[1:]
exec(planted)
if way == "byte":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(at), int(at)))
if way == "step":
    left = [int(at)]
    def around(real):
        def call(*given, **options):
            for act in (lambda: None, lambda: real(*given, **options)):
                made = act()
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return made
        return call
    os.fsync, os.replace = around(os.fsync), around(os.replace)
from sosbands.cli.app import stop_on_signals
if program == "sosbands":
    from sosbands.cli.app import app
else:
    from studies.__main__ import app
stop_on_signals()
app(words, prog_name=program)
"""


@dataclass(frozen=True)
class Plan:
    """One attack, by its number."""

    command: str
    way: str
    old: bool  # whether outputs are there before
    stored: bool  # whether rows of a comparison go to a file of the user's, not to the cache
    chance: float

    @classmethod
    def of(cls, number: int) -> Plan:
        """Commands in turn, and ways of dying; the rest is drawn."""
        rng = np.random.default_rng([number, 2718])
        command, way = COMMANDS[number % 5], WAYS[(number % 5 + number // 5) % 3]
        return cls(command, way, bool(rng.integers(2)), bool(rng.integers(2)), float(rng.uniform()))


@dataclass(frozen=True)
class Work:
    """What a command is given, what it writes, and what of that must be the same in every run."""

    program: str
    words: tuple[str, ...]
    inputs: dict[str, bytes]
    output: str
    content: Callable[[Path], Any]
    store: str | None = None


@dataclass(frozen=True)
class Undisturbed:
    """A run to the end: content, rows without their seconds, names of files, bytes of the output, seconds."""

    content: Any
    rows: dict[str, Any]
    names: frozenset[str]
    size: int
    seconds: float


def attempt(number: int) -> str:
    """Kill a command, look at what is left, run it again, and compare."""
    plan = Plan.of(number)
    work = _work(plan.command, plan.stored)
    wanted = _undisturbed(plan.command, plan.stored)
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name) / "work"
        _prepare(work, folder)
        before = b"an old file, longer than nothing\n" if plan.old else None
        if before is not None:
            (folder / work.output).parent.mkdir(parents=True, exist_ok=True)
            (folder / work.output).write_bytes(before)
        killed = _kill(plan, work, wanted, folder)
        left = _left(work, folder, before, wanted.content)
        rows = _rows(work, folder)
        lost = {key: row for key, row in _timeless(rows).items() if wanted.rows.get(key) != row}
        assert not lost, f"{plan}: stored rows that no run would give: {lost}"
        _run_here(work, folder)
        _check_complete(plan, work, folder, wanted, rows)
    return f"{plan.command} {'killed' if killed else 'finished'}, {left}"


def _check_complete(plan: Plan, work: Work, folder: Path, wanted: Undisturbed, rows: dict[str, Any]) -> None:
    """The next run has given what an undisturbed one gives, and nothing else is there."""
    assert work.content(folder / work.output) == wanted.content, f"{plan}: another result after a kill"
    after = _rows(work, folder)
    assert _timeless(after) == wanted.rows, f"{plan}: other rows after a kill"
    again = [key for key, row in rows.items() if after[key] != row]
    assert not again, f"{plan}: rows computed twice: {again}"
    assert _names(folder) == wanted.names, f"{plan}: left behind {sorted(_names(folder) ^ wanted.names)}"
    kept = _names(folder.parent / "cache" / "sosbands")
    assert not kept, f"{plan}: left in the cache {sorted(kept)}"


def _left(work: Work, folder: Path, before: bytes | None, content: Any) -> str:
    """In which of the three allowed states the output is."""
    path = folder / work.output
    if not path.exists():
        assert before is None, f"{work.output} is gone: expected the old file or the new one"
        return "nothing there"
    if path.read_bytes() == before:
        return "old file kept"
    try:
        found = work.content(path)
    except Exception as error:
        raise AssertionError(f"{work.output} is damaged after a kill: {error!r}") from error
    assert found == content, f"{work.output} is neither the old file nor the new one"
    return "new file whole"


# ---------------------------------------------------------------- processes


def _kill(plan: Plan, work: Work, wanted: Undisturbed, folder: Path) -> bool:
    """Run the command in a process of its own that dies as planned; whether it did before its end."""
    at = {"byte": int(plan.chance * 1.1 * wanted.size), "step": int(plan.chance * (8 + 4 * len(wanted.rows)))}
    command = [sys.executable, "-c", CHILD, PLANTED, plan.way, str(at.get(plan.way, 0)), work.program, *work.words]
    paths = [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    log = folder.parent / "log"
    with open(log, "wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)
        try:
            if plan.way == "moment":
                _wait_for_moment(process, plan, work, wanted, folder)
                process.kill()
            code = process.wait(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()
    words = log.read_text(errors="replace")
    ended = code < 0 or (plan.way == "byte" and code == 1 and "File too large" in words)
    assert code == 0 or ended, f"{plan}: ended with {code}: {words[-2000:]}"
    return code != 0


def _wait_for_moment(
    process: subprocess.Popen[bytes], plan: Plan, work: Work, wanted: Undisturbed, folder: Path
) -> None:
    """Until the command has begun its work, and has used a random share of the time that it takes."""
    begun = folder / "out" if work.program == "studies" else folder.parent / "log"
    limit, start = time.monotonic() + PATIENCE, None
    while process.poll() is None and time.monotonic() < limit:
        used = _seconds_of(process.pid)
        if start is None and begun.exists() and (begun.is_dir() or begun.stat().st_size):
            start = used
        if start is not None and used - start >= plan.chance * 1.2 * wanted.seconds:
            return
        time.sleep(0.002)


def _seconds_of(pid: int) -> float:
    """Time of the processor that a process has used, so that other work on the machine does not matter."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run_here(work: Work, folder: Path) -> None:
    """The same command in this process, to its end."""
    from typer.testing import CliRunner

    if work.program == "sosbands":
        from sosbands.cli.app import app
    else:
        from studies.__main__ import app
    here = os.getcwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(app, list(work.words))
    finally:
        os.chdir(here)
    assert result.exit_code == 0, f"{work.words} cannot be run again: {result.stderr[-2000:]}"


# ---------------------------------------------------------------- commands and what they give


@functools.cache
def _undisturbed(command: str, stored: bool) -> Undisturbed:
    work = _work(command, stored)
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name) / "work"
        _prepare(work, folder)
        clock = time.process_time()
        _run_here(work, folder)
        seconds = time.process_time() - clock
        path = folder / work.output
        rows = _timeless(_rows(work, folder))
        return Undisturbed(work.content(path), rows, _names(folder), path.stat().st_size, seconds)


@functools.cache
def _model() -> bytes:
    work = _work("fit", False)
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        _prepare(work, Path(name) / "work")
        _run_here(work, Path(name) / "work")
        return (Path(name) / "work" / work.output).read_bytes()


def _work(command: str, stored: bool) -> Work:
    data = {"data.csv": _table(40, 0)}
    learning = ("data.csv", "--target", "y")
    if command == "fit":
        return Work("sosbands", ("fit", *learning, "-o", "out.model", *FAST), data, "out.model", _predictions)
    if command == "predict":
        inputs = {"data.csv": _table(3000, 1), "given.model": _model()}
        return Work("sosbands", ("predict", "given.model", "data.csv", "-o", "out.csv"), inputs, "out.csv", _bytes)
    if command == "explore":
        return Work("sosbands", ("explore", *learning, "-o", "out.html", *FAST), data, "out.html", _timeless_page)
    if command == "compare":
        words = ("compare", *learning, "--methods", "split", "--repetitions", "6", "--model", "linear", "-o", "out.csv")
        store = "rows.jsonl.gz" if stored else None
        more = ("--store", store) if store else ()
        return Work("sosbands", (*words, *more), data, "out.csv", _timeless_table, store)
    output, store = f"out/quick/{ENTRY}.png", f"out/quick/{ENTRY}.jsonl.gz"
    return Work("studies", ("reproduce", ENTRY, "-o", "out"), {}, output, _pixels, store)


def _table(n: int, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (2, n))
    y = a + (1 + b**2) * rng.normal(size=n)
    lines = [f"{row[0]!r},{row[1]!r},{row[2]!r}" for row in zip(a.tolist(), b.tolist(), y.tolist(), strict=True)]
    return "\n".join(["a,b,y", *lines, ""]).encode()


def _prepare(work: Work, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, data in work.inputs.items():
        (folder / name).write_bytes(data)


def _names(folder: Path) -> frozenset[str]:
    """Files, temporary ones included."""
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def _rows(work: Work, folder: Path) -> dict[str, Any]:
    """Stored rows by their axes; no temporary file and no cut line keeps them from being read."""
    from sosbands.comparison import read_store

    if work.store is None or not (folder / work.store).exists():
        return {}
    return {key: record["values"] for key, record in read_store(folder / work.store).records.items()}


def _timeless(rows: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {name: value for name, value in row.items() if not name.endswith("seconds")} for key, row in rows.items()
    }


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


def _predictions(path: Path) -> list[Any]:
    """What a model file says of some rows; every member of the archive is whole."""
    import pandas as pd

    from sosbands import load

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None, "a damaged member"
    rows = pd.DataFrame(np.random.default_rng(5).uniform(-1, 1, (20, 2)), columns=["a", "b"])
    found: list[Any] = np.asarray(load(path).predict_interval(rows)).tolist()
    return found


def _timeless_table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return [
            {k: v for k, v in row.items() if not k.endswith("seconds")} for row in csv.DictReader(file, strict=True)
        ]


def _timeless_page(path: Path) -> bytes:
    return re.sub(rb'"seconds":[-+.e0-9]+', b"", path.read_bytes())


def _pixels(path: Path) -> bytes:
    """A picture without its texts, in which the seconds of the rows have a part."""
    from PIL import Image

    with Image.open(path) as image:
        return image.tobytes()
