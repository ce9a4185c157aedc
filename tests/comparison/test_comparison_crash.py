"""Runs that end badly: killed, interrupted, or with a worker that dies. Nothing finished is lost or done twice.

The next process continues, as it finds settings and code the same.
"""

import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sosbands.comparison import read_store, run_tasks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")

N_BEFORE = 4
SCRIPT = '''
import os
import sys
import time
from pathlib import Path

from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from sosbands.comparison import run_tasks

FOLDER = Path(__file__).parent
SETTINGS = {  # whose description must be that of any other process
    "forest": RandomForestRegressor(max_depth=3),
    "frozen": FrozenEstimator(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])),
    "set": {"x", "y", "z"},
    "function": lambda x: x in {"one", "two", "three", "four", "five"},
}


def task(axes, seed):
    """Notes who runs it; the fifth and later ones go on until the run is ended."""
    with open(FOLDER / f"begun-{axes['i']}", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while axes["i"] >= 4 and (FOLDER / "hold").exists():
        time.sleep(0.05)
    return {"token": int.from_bytes(os.urandom(6), "big")}  # the mark of one execution


def main(n_jobs):
    return run_tasks(task, [{"i": i} for i in range(8)], store=FOLDER / "store", settings=SETTINGS, n_jobs=n_jobs)


if __name__ == "__main__":
    main(int(sys.argv[1]))
'''


def end_workers(process):
    """Workers outlive a parent that was killed; end those of this run's own process group."""
    command = ["ps", "-A", "-ww", "-o", "pid=,pgid=,args="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for pid, group, args in (line.split(None, 2) for line in listing.splitlines()):
        if int(group) == process.pid and "LokyProcess" in args:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize(("n_jobs", "way"), [(2, "kill -9"), (1, "Ctrl-C"), (2, "Ctrl-C")])
def test_a_run_that_is_ended_loses_nothing_and_nothing_is_done_twice(tmp_path, n_jobs, way):
    script, store = tmp_path / "script.py", tmp_path / "store"
    script.write_text(SCRIPT)
    (tmp_path / "hold").touch()
    command = [sys.executable, str(script), str(n_jobs)]
    options = {"start_new_session": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env=os.environ | {"PYTHONHASHSEED": "12"}, **options)
    limit = time.monotonic() + 120
    while not store.exists() or store.read_bytes().count(b"\n") < 1 + N_BEFORE:
        assert time.monotonic() < limit
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)
    if way == "kill -9":
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        before = read_store(store).rows
        with open(store, "ab") as file:  # and the system had not finished a write
            file.write(b'{"axes": {"i": 5}, "values": {"seed": 12')
        assert read_store(store).rows == before
    else:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the run
        _, message = process.communicate(timeout=120)
        assert process.returncode != 0
        assert n_jobs > 1 or b"KeyboardInterrupt" in message
        before = read_store(store).rows
    end_workers(process)
    assert sorted(row["i"] for row in before) == [0, 1, 2, 3]
    (tmp_path / "hold").unlink()
    rows = runpy.run_path(str(script))["main"](1)  # continued in this process
    assert [row["i"] for row in rows] == list(range(8))
    assert all(rows[row["i"]] == row for row in before)  # the token says: this very execution
    assert all(len((tmp_path / f"begun-{row['i']}").read_text().split()) == 1 for row in before)
    assert len({row["token"] for row in rows}) == 8
    assert read_store(store).rows == [*before, *(row for row in rows if row not in before)]
    assert not any(secret in store.read_text() for secret in (str(tmp_path), str(Path.home()), socket.gethostname()))


def die_sometimes(axes, seed):  # noqa: ARG001
    if axes["i"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return {"square": axes["i"] ** 2}


def test_the_death_of_a_worker_is_a_row(tmp_path):
    rows = run_tasks(die_sometimes, [{"i": i} for i in range(3)], n_jobs=2, store=tmp_path / "s")
    assert [row.get("square") for row in rows] == [0, None, 4]
    assert [row["error_type"] for row in rows] == [None, "TerminatedWorkerError", None]
    assert "SIGKILL" in rows[1]["error"]
    assert rows[1]["error_place"] is None
    assert read_store(tmp_path / "s").rows.count(rows[1]) == 1
