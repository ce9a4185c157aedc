"""Stores that are cut off, packed, full, opened twice, or continued with other code: no row is lost or mistaken."""

import errno
import gzip
import importlib
import json
import os
import runpy
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from sosbands.comparison import Store, StoreError, StoreMismatchError, environment, read_store, run_tasks
from sosbands.comparison import describe as code_versions
from sosbands.comparison import store as stores
from sosbands.comparison.describe import code_version

TASKS = [{"i": i} for i in range(6)]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files are not locked on Windows")


class Counting:
    """Task that notes its executions and, of a store, the bytes that are there meanwhile."""

    def __init__(self, path=None):
        self.calls, self.path, self.seen = [], path, set()

    def __call__(self, axes, seed):
        self.calls.append(axes["i"])
        if self.path is not None:
            self.seen.add(self.path.read_bytes())
        return {"value": seed + 0.5}


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def check_continued(path, rows):
    """What is stored is these rows; reading changes nothing, and a run computes the other tasks and no more."""
    before = {each: each.read_bytes() for each in path.parent.iterdir()}
    assert read_store(path).rows == rows
    assert before == {each: each.read_bytes() for each in path.parent.iterdir()}
    task = Counting()
    again = run_tasks(task, TASKS, store=path)
    assert task.calls == list(range(len(rows), 6))
    assert again[: len(rows)] == rows  # seconds too
    assert [row["value"] for row in again] == [row["seed"] + 0.5 for row in again]
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines(keepends=True)
    assert len(lines) == 7
    assert all(json.loads(line) and line.endswith("\n") for line in lines)
    assert names(path.parent) == [path.name]


# ---------------------------------------------------------------- cut off, packed, full


def test_a_line_that_was_cut_off_anywhere_is_repaired(tmp_path):
    path = tmp_path / "s"
    rows = run_tasks(Counting(), TASKS, store=path)
    data = path.read_bytes()
    start = data[:-1].rindex(b"\n") + 1  # of the last line
    for length in [0, 1, 200, start, start + 1, start + 20, len(data) - 2, len(data) - 1]:
        path.write_bytes(data[:length])
        check_continued(path, rows[: 0 if length < start else 6 if length == len(data) - 1 else 5])


def test_a_packed_store_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    rows = run_tasks(Counting(), TASKS[:4], store=path)
    before = path.read_bytes()
    assert before == gzip.compress(gzip.decompress(before), mtime=0)  # one member
    task = Counting(path)
    assert run_tasks(task, TASKS[:4], store=path) == rows == read_store(path).rows
    assert path.read_bytes() == before  # nothing new, the same bytes
    assert run_tasks(task, TASKS, store=path)[:4] == rows
    assert (task.calls, task.seen) == ([4, 5], {before})  # nothing is appended to it
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("packed", "cut", "kept"), [(3, 0, 6), (3, 1, 6), (3, 2, 5), (3, 150, 5), (1, 0, 6), (7, 0, 6)]
)
def test_rows_beside_a_packed_store_are_those_of_a_run_that_was_killed(tmp_path, packed, cut, kept):
    path, beside = tmp_path / "s.jsonl.gz", tmp_path / "s.jsonl.gz.added"
    rows = run_tasks(Counting(), TASKS, store=path)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:packed])))
    added = b"".join(lines[min(packed, 4) :])  # 7: it was killed between packing and removing
    beside.write_bytes(added[: len(added) - cut])
    check_continued(path, rows[:kept])


@pytest.mark.parametrize(("cut", "kept"), [(0, 3), (1, 3), (2, 2), (40, 2)])
def test_gzip_of_a_plain_store_can_be_continued_even_if_it_was_cut(tmp_path, cut, kept):
    plain, path = tmp_path / "s.jsonl", tmp_path / "s.jsonl.gz"
    rows = run_tasks(Counting(), TASKS[:3], store=plain)
    data = plain.read_bytes()
    plain.unlink()
    path.write_bytes(gzip.compress(data[: len(data) - cut]))
    check_continued(path, rows[:kept])


def test_a_packed_store_that_is_cut_off_itself_is_damaged_not_empty(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    run_tasks(Counting(), TASKS, store=path)
    data = path.read_bytes()
    for length in (5, 20, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        for use in (read_store, lambda path: run_tasks(Counting(), TASKS, store=path)):
            with pytest.raises(StoreError, match="damaged gzip"):
                use(path)
        assert path.read_bytes() == data[:length]
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz"])
def test_a_full_disk_costs_the_row_that_did_not_fit_and_no_other(tmp_path, monkeypatch, name):
    path, real = tmp_path / name, os.write

    def full(fd, data):
        if b'"i": 2' in data:  # half of it fits
            real(fd, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        run_tasks(Counting(), TASKS, store=path)
    monkeypatch.undo()
    check_continued(path, [row for row in read_store(path).rows if row["i"] < 2])


@pytest.mark.parametrize("change", ["after a row", "packing"])
def test_an_interruption_loses_no_row(tmp_path, monkeypatch, change):
    path, real, calls = tmp_path / "s.jsonl.gz", os.fsync, []

    def interrupted(fd):
        real(fd)
        calls.append(fd)
        if len(calls) == {"after a row": 5, "packing": 9}[change]:  # two for the first line, one for each row
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Counting(), TASKS, store=path)
    monkeypatch.undo()
    rows = read_store(path).rows
    assert len(rows) == {"after a row": 3, "packing": 6}[change]
    check_continued(path, rows)


# ---------------------------------------------------------------- files of the user's, locks, settings


@pytest.mark.parametrize("data", [b"a,b\n1,2", b"a,b", b"\x89PNG\r\n\x1a\x0a\x00", b"{", b"[1, 2]", b'{"kind": "other'])
@pytest.mark.parametrize("name", ["s", "s.gz"])
def test_a_file_that_is_no_store_is_refused_and_not_touched(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data)
    if data == b"{":
        check_continued(path, [])  # may be the beginning of one
        return
    with pytest.raises(StoreError, match="line 1 is no line of a store"):
        run_tasks(Counting(), TASKS, store=path)
    assert path.read_bytes() == data
    assert names(tmp_path) == [name]


def test_bad_places_and_damaged_lines_are_named(tmp_path):
    path = tmp_path / "s"
    run_tasks(Counting(), TASKS, store=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"axes": {"met\n', *lines[3:]]))
    os.mkfifo(tmp_path / "pipe")
    for place, message in [
        (path, "line 3 is no line of a store"),
        (tmp_path / "pipe", "store .* is a named pipe: expected a regular file"),
        (tmp_path, "expected a file name in a directory that exists"),
        (tmp_path / "no" / "s", "expected a file name in a directory that exists"),
    ]:
        with pytest.raises(StoreError, match=message):
            run_tasks(Counting(), TASKS, store=place)


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_store_that_was_replaced_before_it_was_locked_is_opened_again(tmp_path, monkeypatch, change):
    path = tmp_path / "s"
    run_tasks(Counting(), TASKS[:2], store=path)
    real, locked = stores.lock, []

    def lock(fd, name):
        real(fd, name)
        locked.append(fd)
        if len(locked) == 1:  # between our opening and our lock another process replaced, or removed, the file
            data = path.read_bytes()
            path.unlink()
            if change == "replaced":
                path.write_bytes(data)

    monkeypatch.setattr(stores, "lock", lock)
    with Store(path, {"task": "Counting", "random_state": 0, "seed_axes": None}) as store:
        store.append({"axes": {"i": 9}, "values": {}})
    assert [row["i"] for row in read_store(path).rows] == ([0, 1, 9] if change == "replaced" else [9])


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz"])
def test_one_writer_at_a_time(tmp_path, name):
    with Store(tmp_path / name, {}) as store:
        for _ in range(2):
            with pytest.raises(StoreError, match="is being written by another run"), Store(tmp_path / name, {}):
                pass
            store.append({"axes": {"i": 1}, "values": {}})
    with Store(tmp_path / name, {}) as store:  # it is free again
        assert len(store.contents.rows) == 1


def test_other_settings_are_refused(tmp_path):
    path, task = tmp_path / "s", Counting()
    common = {"settings": {"level": 0.9, "model": Ridge(alpha=2.0)}, "parts": {"a": Ridge()}, "random_state": 1}
    run_tasks(task, TASKS, store=path, **common)
    before = path.read_bytes()
    for change, message in [
        ({"settings": {"level": 0.8, "model": Ridge(alpha=2.0)}}, "level: 0.9 there, 0.8 here"),
        ({"settings": {"level": 0.9, "model": Ridge(alpha=3)}}, "model: parameters alpha 2.0 there, 3 here"),
        ({"settings": {"level": 0.9}}, 'model: .* there, "nothing" here'),
        ({"parts": {"a": Ridge(fit_intercept=False)}}, "a: parameters fit_intercept true there, false here"),
        ({"random_state": 2}, "random_state: 1 there, 2 here"),
        ({"seed_axes": ["i"]}, r'seed_axes: null there, \["i"\] here'),
    ]:
        with pytest.raises(StoreMismatchError, match=message):
            run_tasks(task, TASKS, store=path, **{**common, **change})
    with pytest.raises(StoreMismatchError, match='task: "Counting" there, "names" here'):
        run_tasks(names, TASKS, store=path, **common)
    assert path.read_bytes() == before
    assert len(task.calls) == 6
    run_tasks(task, TASKS, store=path, **{**common, "parts": {"b": Ridge(alpha=9)}})  # a part may be added
    assert list(read_store(path).parts) == ["a", "b"]
    with pytest.raises(StoreMismatchError, match="b: parameters alpha 9 there, 8 here"):
        run_tasks(task, TASKS, store=path, **{**common, "parts": {"b": Ridge(alpha=8)}})


def test_the_environment_is_recorded_once_and_names_no_machine(tmp_path, monkeypatch):
    path = tmp_path / "s"
    run_tasks(Counting(), TASKS[:2], store=path)
    run_tasks(Counting(), TASKS[:3], store=path)
    (here,) = read_store(path).environments
    assert here == environment()
    assert here["numpy"] == np.__version__
    assert here["threads"] == os.cpu_count()
    assert {"sosbands", "python", "scipy", "scikit-learn", "joblib", "cpu", "system"} <= set(here)
    monkeypatch.setattr("sosbands.comparison.store.environment", lambda: {**here, "numpy": "0"})
    run_tasks(Counting(), TASKS, store=path)
    assert read_store(path).environments == [here, {**here, "numpy": "0"}]
    assert not any(secret in path.read_text() for secret in (socket.gethostname(), str(tmp_path), str(Path.home())))


# ---------------------------------------------------------------- the code that made a row

METHODS = """
import {helper}
from sklearn.linear_model import LinearRegression
class Mine(LinearRegression):
    def predict(self, X):
        return None
def task(axes, seed):
    return {{"value": {value}}}
"""


@pytest.fixture
def written_module(tmp_path, monkeypatch):
    """A function that makes a module of the user's, which imports another one."""
    made = []

    def write(value=1, helper="imported"):
        name = f"mine_{len(made)}_{os.getpid()}"
        made.append(name)
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
        (folder / f"{name}.py").write_text(METHODS.format(value=value, helper=helper))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    (tmp_path / "imported.py").write_text("number = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    for name in ("imported", *made):
        sys.modules.pop(name, None)


def test_the_version_is_that_of_the_sources_whatever_their_names(written_module):
    first = written_module()
    version = code_version(first.task)
    assert version == code_version(first.task) == code_version({"a": [first.task]})
    assert len(version) == 16
    assert code_version(first.Mine()) == code_version(first.Mine) == version
    assert code_version(written_module().task) == version
    assert code_version(written_module(value=2).task) != version
    assert code_version(LinearRegression()) == code_version() != version


def test_the_version_follows_the_file_of_a_method_and_looks_at_no_other(written_module, tmp_path, monkeypatch):
    mine = written_module()
    version, read = code_version(mine.Mine()), []
    (tmp_path / "imported.py").write_text("number = 2\n")
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or real(path))
    assert code_version(mine.Mine()) == version
    assert read == [Path(mine.__file__)]  # neither what it imports nor scikit-learn
    Path(mine.__file__).write_text(METHODS.format(value=1, helper="imported") + "# another line\n")
    assert code_version(mine.Mine()) != version
    assert read == [Path(mine.__file__)] * 2


def test_what_only_draws_or_talks_has_no_part_in_it():
    inside = {path.name for path in code_versions.PACKAGE.iterdir()}
    assert set(code_versions.WITHOUT_EFFECT) <= inside
    count = sum(1 for _ in code_versions.PACKAGE.rglob("*.py"))
    without = sum(1 for room in code_versions.WITHOUT_EFFECT for _ in (code_versions.PACKAGE / room).rglob("*.py"))
    assert len(code_versions._package_sources()) == count - without > 60


def test_functions_are_known_without_a_file_and_before_all_their_names_are_set():
    def typed(text):
        names = {}
        exec(compile(text, "<stdin>", "exec"), names)
        return code_version(names["f"])

    def outer():
        def task():
            return later

        version = code_version(task)
        later = 1
        return version, code_version(task), later

    assert typed("def f(x): return 1") == typed("\n\ndef f(x): return 1") != typed("def f(x): return 2")
    before, after, _ = outer()
    assert before == after == code_version(outer)


def test_rows_of_other_code_are_refused_run_again_or_kept(tmp_path, monkeypatch):
    path, name = tmp_path / "s", "sosbands.comparison.runner.code_version"
    monkeypatch.setattr(name, lambda *_: "old")
    old = run_tasks(Counting(), TASKS[:4], store=path)
    assert {record["code"] for record in read_store(path).records.values()} == {"old"}
    monkeypatch.setattr(name, lambda *_: "new")
    before, task = path.read_bytes(), Counting()
    words = r"4 of 4 finished rows were made by other code \(old there, new here\): other_code='again'"
    with pytest.raises(StoreMismatchError, match=words):
        run_tasks(task, TASKS, store=path)
    assert (path.read_bytes(), task.calls) == (before, [])
    assert run_tasks(task, TASKS[3:5], store=path, other_code="keep")[0] == old[3]
    assert task.calls == [4]
    with pytest.raises(StoreMismatchError, match="4 of 5 finished rows"):
        run_tasks(task, TASKS, store=path)
    task = Counting()
    again = run_tasks(task, TASKS, store=path, other_code="again")
    assert task.calls == [0, 1, 2, 3, 5]
    assert [row["value"] for row in again[:4]] == [row["value"] for row in old]
    assert {record["code"] for record in read_store(path).records.values()} == {"new"}
    assert run_tasks(Counting(), TASKS, store=path) == again
    with pytest.raises(ValueError, match=r"other_code='maybe': expected one of \['refuse', 'again', 'keep'\]"):
        run_tasks(task, TASKS, other_code="maybe")


def test_rows_that_do_not_say_which_code_made_them_are_taken_as_they_are(tmp_path):
    path = tmp_path / "s"
    rows = run_tasks(Counting(), TASKS, store=path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all("code" in line for line in lines[1:])
    path.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "code"}) + "\n" for line in lines))
    assert run_tasks(Counting(), TASKS, store=path) == rows


SCRIPT = """
from sosbands.comparison import run_tasks
def task(axes, seed):
    return {"value": VALUE}
values = [row["value"] for row in run_tasks(task, [{"i": i} for i in range(3)], store="s", other_code=CHOICE)]
"""


def test_a_change_in_a_script_is_noticed(tmp_path, monkeypatch):
    def run(value, choice):
        Path("script.py").write_text(SCRIPT.replace("VALUE", value))
        return runpy.run_path("script.py", {"CHOICE": choice})["values"]

    monkeypatch.chdir(tmp_path)
    assert run("1", "refuse") == run("1", "refuse") == [1, 1, 1]
    with pytest.raises(StoreMismatchError, match="3 of 3 finished rows were made by other code"):
        run("2", "refuse")
    assert run("2", "again") == [2, 2, 2]
