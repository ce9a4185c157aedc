"""Stores of long runs: what earlier versions left beside them is taken in, and two runs at once lose nothing."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sosbands.comparison import StoreError, StoreMismatchError, read_store
from sosbands.comparison.store import LineFile
from studies import Config

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files are not locked on Windows")


class Counting:
    """Task with a fixed name that counts its executions."""

    __qualname__ = "numbered"

    def __init__(self):
        self.calls = []

    def __call__(self, axes, seed):
        self.calls.append(axes["i"])
        return {"value": seed}


def run(folder, count, task=None):
    return Config(folder, "quick").run("numbers", task or Counting(), [{"i": i} for i in range(count)])


def lines_of(path):
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


@pytest.mark.parametrize("cut", [1, 2, 30, 100])
def test_a_cut_last_line_beside_a_packed_file_loses_that_row_only(tmp_path, cut):
    rows = run(tmp_path, 6)
    packed, left = tmp_path / "quick" / "numbers.jsonl.gz", tmp_path / "quick" / "numbers.jsonl"
    lines = lines_of(packed)
    packed.write_bytes(gzip.compress(b"".join(lines[:3])))  # two rows
    left.write_bytes(b"".join([lines[0], *lines[2:]])[:-cut])  # rows 1 to 5, the last cut off
    stored = Config(tmp_path, "quick", compute_missing=False).run("numbers", None, [{"i": i} for i in range(6)])
    kept = 6 if cut == 1 else 5  # only the end of the line is missing
    assert stored == rows[:kept]
    task = Counting()
    again = run(tmp_path, 6, task)
    assert again[:kept] == rows[:kept]  # seconds too
    assert task.calls == list(range(kept, 6))
    assert [path.name for path in packed.parent.iterdir()] == [packed.name]
    assert len(read_store(packed).records) == 6
    left.write_bytes(b"".join(lines_of(packed)))  # and without a packed file
    packed.unlink()
    assert run(tmp_path, 6, task) == again
    assert len(task.calls) == 6 - kept
    assert [path.name for path in packed.parent.iterdir()] == [packed.name]


def test_rows_of_other_settings_and_of_a_run_that_lives_are_not_taken_in(tmp_path):
    run(tmp_path, 3)
    packed = tmp_path / "quick" / "numbers.jsonl.gz"
    left = packed.with_suffix("")
    head, *lines = lines_of(packed)
    other = json.loads(head)
    other["settings"]["random_state"] = 7
    left.write_bytes(b"".join([json.dumps(other).encode() + b"\n", *lines]))
    with pytest.raises(StoreMismatchError, match="hold runs with other settings"):
        run(tmp_path, 3)
    with LineFile(left), pytest.raises(StoreError, match="is being written by another run"):
        run(tmp_path, 3)
    assert left.exists()


SCRIPT = """
import json, os, sys, time
from pathlib import Path
from studies import Config

folder, held, count = Path(sys.argv[1]), sys.argv[2] == "held", int(sys.argv[3])
done, real = [], os.replace

def numbered(axes, seed):
    done.append(axes["i"])
    return {"value": seed}

def replace(source, target):
    if held and len(done) == count:  # the packed file is about to take its place
        (folder / "packing").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
    real(source, target)

os.replace = replace
rows = Config(folder, "quick").run("numbers", numbered, [{"i": i} for i in range(count)])
print(json.dumps(rows))
"""


def start(folder, mode, count):
    command = [sys.executable, str(folder / "script.py"), str(folder), mode, str(count)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}  # studies/ is not installed
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_a_run_that_starts_while_another_packs_loses_no_row(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    first = start(tmp_path, "held", 3)
    limit = time.monotonic() + 120
    while not (tmp_path / "packing").exists():
        assert first.poll() is None, first.stderr.read()
        assert time.monotonic() < limit
        time.sleep(0.01)
    second = start(tmp_path, "free", 5)
    printed, message = second.communicate(timeout=120)
    (tmp_path / "go").touch()
    rows, _ = first.communicate(timeout=120)
    wanted = json.loads(rows) + (json.loads(printed) if second.returncode == 0 else [])
    assert second.returncode == 0 or "is being written by another run" in message
    stored = read_store(tmp_path / "quick" / "numbers.jsonl.gz").rows
    assert [row for row in wanted if row not in stored] == []
    assert [path.name for path in (tmp_path / "quick").iterdir()] == ["numbers.jsonl.gz"]
