"""Stores that are cut off, packed, full, opened twice, or continued with other code: no row is lost or mistaken."""

import errno
import gzip
import importlib
import json
import os
import subprocess
import sys

import pytest
from sklearn.linear_model import LinearRegression

from sosbands.comparison import Store, StoreError, StoreMismatchError, read_store, run_tasks
from sosbands.comparison import describe as code_versions
from sosbands.comparison import store as stores
from sosbands.comparison.describe import code_version
from sosbands.comparison.store import LineFile

TASKS = [{"i": i} for i in range(6)]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files are not locked on Windows")


class Counting:
    def __init__(self):
        self.calls = []

    def __call__(self, axes, seed):
        self.calls.append(axes["i"])
        return {"value": seed + 0.5}


# ---------------------------------------------------------------- packed stores


def loose(path, tasks=TASKS):
    """The bytes of a packed store as a run leaves them that is killed: every line a member of its own."""
    run_tasks(Counting(), tasks, store=path)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    return [gzip.compress(line, mtime=0) for line in lines]


def test_a_packed_store_is_one_member_and_the_same_bytes_if_nothing_is_new(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    rows = run_tasks(Counting(), TASKS[:4], store=path)
    before = path.read_bytes()
    assert before == gzip.compress(gzip.decompress(before), mtime=0)
    assert read_store(path).rows == rows
    assert run_tasks(Counting(), TASKS[:4], store=path) == rows
    assert path.read_bytes() == before
    task = Counting()
    assert run_tasks(task, TASKS, store=path)[:4] == rows
    assert task.calls == [4, 5]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_packed_store_that_was_cut_anywhere_in_its_last_member_loses_that_row_only(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    members = loose(path)
    rows = read_store(path).rows
    whole = b"".join(members)
    for cut in range(1, len(members[-1]) + 1, 41):
        path.write_bytes(whole[: len(whole) - cut])
        assert read_store(path).rows == rows[:5]
        assert path.read_bytes() == whole[: len(whole) - cut]  # reading repairs nothing
        task = Counting()
        again = run_tasks(task, TASKS, store=path)
        assert (task.calls, again[:5]) == ([5], rows[:5])
        gzip.decompress(path.read_bytes())


def test_a_packed_store_that_lost_more_is_damaged_not_empty(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    run_tasks(Counting(), TASKS, store=path)
    data = path.read_bytes()
    for length in (5, 20, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        for use in (read_store, lambda path: run_tasks(Counting(), TASKS, store=path)):
            with pytest.raises(StoreError, match="damaged gzip"):
                use(path)
        assert path.read_bytes() == data[:length]


@pytest.mark.parametrize(("cut", "kept"), [(0, 3), (1, 3), (2, 2), (40, 2)])
def test_gzip_of_a_plain_store_can_be_continued_even_if_it_was_cut(tmp_path, cut, kept):
    rows = run_tasks(Counting(), TASKS[:3], store=tmp_path / "s.jsonl")
    data = (tmp_path / "s.jsonl").read_bytes()
    (tmp_path / "s.jsonl.gz").write_bytes(gzip.compress(data[: len(data) - cut]))
    assert read_store(tmp_path / "s.jsonl.gz").rows == rows[:kept]
    task = Counting()
    assert run_tasks(task, TASKS, store=tmp_path / "s.jsonl.gz")[:kept] == rows[:kept]
    assert task.calls == list(range(kept, 6))
    assert len(read_store(tmp_path / "s.jsonl.gz").rows) == 6


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz"])
def test_a_full_disk_costs_the_row_that_did_not_fit_and_no_other(tmp_path, monkeypatch, name):
    path, real, calls = tmp_path / name, os.write, []

    def full(fd, data):
        calls.append(data)
        if len(calls) == 4:  # half of it fits
            real(fd, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        run_tasks(Counting(), TASKS, store=path)
    monkeypatch.undo()
    assert len(read_store(path).rows) == 2
    task = Counting()
    run_tasks(task, TASKS, store=path)
    assert task.calls == [2, 3, 4, 5]
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_an_interruption_between_the_disk_and_the_books_loses_no_row(tmp_path, monkeypatch):
    path, real, calls = tmp_path / "s.jsonl.gz", os.fsync, []

    def interrupted(fd):
        real(fd)
        calls.append(fd)
        if len(calls) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(Counting(), TASKS, store=path)
    monkeypatch.undo()
    before = len(read_store(path).rows)
    assert before >= 2
    task = Counting()
    run_tasks(task, TASKS, store=path)
    assert task.calls == list(range(before, 6))


# ---------------------------------------------------------------- files of the user's, and locks


@pytest.mark.parametrize("data", [b"a,b\n1,2", b"a,b", b"\x89PNG\r\n\x1a\x0a\x00", b"{", b"[1, 2]", b'{"kind": "other'])
def test_a_file_that_is_no_store_is_refused_and_not_touched(tmp_path, data):
    path = tmp_path / "s"
    path.write_bytes(data)
    if data == b"{":
        run_tasks(Counting(), TASKS, store=path)  # may be the beginning of one
        return
    with pytest.raises(StoreError, match="line 1 is no line of a store"):
        run_tasks(Counting(), TASKS, store=path)
    assert path.read_bytes() == data


def test_a_named_pipe_is_no_store(tmp_path):
    os.mkfifo(tmp_path / "s")
    with pytest.raises(StoreError, match="store .* is a named pipe: expected a regular file"):
        run_tasks(Counting(), TASKS, store=tmp_path / "s")


@pytest.mark.parametrize("change", ["replaced", "removed"])
def test_a_store_that_was_replaced_before_it_was_locked_is_opened_again(tmp_path, monkeypatch, change):
    path = tmp_path / "s.jsonl.gz"
    run_tasks(Counting(), TASKS[:2], store=path)
    real, locked = stores.lock, []

    def lock(fd, name):
        real(fd, name)
        locked.append(fd)
        if len(locked) == 1:  # between our opening and our lock another run packed, or removed, the file
            data = path.read_bytes()
            path.unlink()
            if change == "replaced":
                path.write_bytes(data)

    monkeypatch.setattr(stores, "lock", lock)
    with Store(path, {"task": "Counting", "random_state": 0, "seed_axes": None}) as store:
        store.append({"axes": {"i": 9}, "values": {}})
    found = [record["axes"]["i"] for record in read_store(path).records.values()]
    assert found == ([0, 1, 9] if change == "replaced" else [9])


def test_a_store_is_locked_while_and_after_it_is_packed(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    with LineFile(path) as file:
        for _ in range(2):
            with pytest.raises(StoreError, match="is being written by another run"), LineFile(path):
                pass
            file.append(b"{}\n")  # the first makes a new file, which is locked, too
    with LineFile(path):
        pass  # it is free again


# ---------------------------------------------------------------- the code that made a row

METHODS = """
from sklearn.linear_model import LinearRegression
class Mine(LinearRegression):
    def predict(self, X):
        return None
def task(axes, seed):
    return {{"value": {value}}}
"""


@pytest.fixture
def written_module(tmp_path, monkeypatch):
    """A function that makes a module of the user's."""
    made = []

    def write(value=1):
        name = f"mine_{len(made)}_{os.getpid()}"
        made.append(name)
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
        (folder / f"{name}.py").write_text(METHODS.format(value=value))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write
    for name in made:
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


def test_what_only_draws_or_talks_has_no_part_in_it():
    inside = {path.name for path in code_versions.PACKAGE.iterdir()}
    assert set(code_versions.WITHOUT_EFFECT) <= inside
    count = sum(1 for _ in code_versions.PACKAGE.rglob("*.py"))
    without = sum(1 for room in code_versions.WITHOUT_EFFECT for _ in (code_versions.PACKAGE / room).rglob("*.py"))
    assert len(code_versions._package_sources()) == count - without > 60


def test_functions_without_a_file_are_known_by_what_they_do():
    def typed(text):
        names = {}
        exec(compile(text, "<stdin>", "exec"), names)
        return code_version(names["f"])

    assert typed("def f(x): return 1") == typed("\n\ndef f(x): return 1") != typed("def f(x): return 2")


def test_functions_that_know_a_name_not_yet_set_have_a_version():
    def outer():
        def task():
            return later

        version = code_version(task)
        later = 1
        return version, code_version(task), later

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
import sys
from sosbands.comparison import run_tasks
def task(axes, seed):
    return {"value": VALUE}
rows = run_tasks(task, [{"i": i} for i in range(3)], store="s", other_code=sys.argv[1])
print([row["value"] for row in rows])
"""


def test_a_change_in_a_file_of_the_users_is_noticed_by_the_next_process(tmp_path):
    def run(choice):
        command = [sys.executable, "-B", "script.py", choice]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    (tmp_path / "script.py").write_text(SCRIPT.replace("VALUE", "1"))
    assert run("refuse").stdout == "[1, 1, 1]\n"
    assert run("refuse").stdout == "[1, 1, 1]\n"
    (tmp_path / "script.py").write_text(SCRIPT.replace("VALUE", "2"))
    assert "3 of 3 finished rows were made by other code" in run("refuse").stderr
    assert run("again").stdout == "[2, 2, 2]\n"
