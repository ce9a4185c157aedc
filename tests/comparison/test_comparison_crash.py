"""Runs that end badly: killed, interrupted, or with a worker that dies. Nothing finished is lost or done twice."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sosbands.comparison import ComparisonResult, read_store, run_tasks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")

N_ROWS, N_BEFORE = 12, 4
SCRIPT = '''
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from sosbands.comparison import compare
from sosbands.conformal import Band, IntervalMixin, Told


class Slow(IntervalMixin, BaseEstimator):
    """Constant band that writes the process that fits it into a file named after method and seed."""

    def __init__(self, name="a", folder="", confidence_level=0.9, calibration="symmetric", random_state=None):
        self.name = name
        self.folder = folder
        self.confidence_level = confidence_level
        self.calibration = calibration
        self.random_state = random_state

    def fit(self, X, y):
        with open(Path(self.folder) / f"{self.name}-{self.random_state}", "a") as file:
            file.write(f"{os.getpid()}\\n")
        fits = Path(self.folder)
        while (fits.parent / "hold").exists() and len(list(fits.iterdir())) > 4:
            time.sleep(0.05)  # the fifth and later fits go on until the run is ended
        return self

    def told(self, X):
        return Told(Band(np.zeros(len(X)), np.zeros(len(X))))


def token(y, lower, upper):
    """Not reproducible: the mark of one execution."""
    return int.from_bytes(os.urandom(6), "big")


def main(folder, n_jobs):
    X = np.arange(60.0)[:, None]
    methods = {name: Slow(name, os.path.join(folder, "fits")) for name in "ab"}
    store = os.path.join(folder, "store")
    return compare(methods, X, np.sin(X[:, 0]), n_repetitions=6, metrics={"token": token}, store=store, n_jobs=n_jobs)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "fits").mkdir()
    (tmp_path / "hold").touch()
    return tmp_path


def start_and_wait_for_rows(folder, n_jobs):
    """A comparison in a process of its own, in the middle of its fifth fit."""
    command = [sys.executable, str(folder / "script.py"), str(folder), str(n_jobs)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    limit = time.monotonic() + 120
    while not (folder / "store").exists() or (folder / "store").read_bytes().count(b"\n") < 1 + N_BEFORE:
        assert time.monotonic() < limit
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)
    return process


def end_workers(process):
    """Workers outlive a parent that was killed; end those of this run's own process group."""
    command = ["ps", "-A", "-ww", "-o", "pid=,pgid=,args="]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for pid, group, args in (line.split(None, 2) for line in listing.splitlines()):
        if int(group) == process.pid and "LokyProcess" in args:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def stored_rows(folder):
    return ComparisonResult.from_store(folder / "store").rows


def times_fitted(folder, row):
    return len((folder / "fits" / f"{row['method']}-{row['seed']}").read_text().split())


def finish(folder):
    """The same comparison, continued in this process."""
    (folder / "hold").unlink()
    spec = importlib.util.spec_from_file_location("script", folder / "script.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main(str(folder), 1)


def check_nothing_lost_and_nothing_done_twice(folder, before):
    assert len(before) == N_BEFORE
    assert [times_fitted(folder, row) for row in before] == [1] * len(before)
    result = finish(folder)
    assert len(result.rows) == N_ROWS
    assert all(row["error_type"] is None for row in result.rows)
    by_axes = {(row["method"], row["repetition"]): row for row in result.rows}
    assert len(by_axes) == N_ROWS
    for row in before:
        assert by_axes[row["method"], row["repetition"]] == row  # the token says: this very execution
        assert times_fitted(folder, row) == 1
    assert len({row["token"] for row in result.rows}) == N_ROWS
    for line in (folder / "store").read_text().splitlines():
        json.loads(line)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_kill_9_loses_nothing_and_nothing_is_done_twice(folder, n_jobs):
    process = start_and_wait_for_rows(folder, n_jobs)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    end_workers(process)
    process.stderr.close()
    before = stored_rows(folder)
    if n_jobs == 2:  # and the system had not finished a write
        with open(folder / "store", "ab") as file:
            file.write(b'{"axes": {"method": "b", "repetition": 5}, "values": {"seed": 12')
        assert stored_rows(folder) == before
    check_nothing_lost_and_nothing_done_twice(folder, before)
    text = (folder / "store").read_text()
    assert not any(secret in text for secret in (str(folder), str(Path.home()), socket.gethostname()))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_leaves_a_usable_store(folder, n_jobs):
    process = start_and_wait_for_rows(folder, n_jobs)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the run
    _, message = process.communicate(timeout=120)
    end_workers(process)
    assert process.returncode != 0
    assert n_jobs > 1 or b"KeyboardInterrupt" in message
    check_nothing_lost_and_nothing_done_twice(folder, stored_rows(folder))


def die_sometimes(axes, seed):  # noqa: ARG001
    if axes["i"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return {"square": axes["i"] ** 2}


def test_the_death_of_a_worker_is_a_row(tmp_path):
    rows = run_tasks(die_sometimes, [{"i": i} for i in range(4)], n_jobs=2, store=tmp_path / "s")
    assert [row.get("square") for row in rows] == [0, None, 4, 9]
    assert [row["error_type"] for row in rows] == [None, "TerminatedWorkerError", None, None]
    assert "SIGKILL" in rows[1]["error"]
    assert read_store(tmp_path / "s").rows.count(rows[1]) == 1
