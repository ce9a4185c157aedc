"""What the driver makes of attempts that break, run on, eat memory or die, and how it goes on where it stopped."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import planted
import pytest

from attack import __main__ as command
from attack import driver
from benchmarks import limited

LIMITS = driver.Limits(seconds=5.0, memory=2**30)
MODULE = "planted"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("attack") / "planted.jsonl"


@pytest.fixture(scope="module")
def rows(store):
    return driver.run_part(MODULE, 6, store=store, limits=LIMITS)


def test_attempts_that_are_well_are_told_and_the_others_reported_as_what_they_are(rows):
    assert [row["number"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row.get("outcome") for row in rows[:2]] == ["even", "odd"]
    assert [row["number"] for row in driver.breaches(rows)] == [2, 3, 4, 5]
    planted, runs_on, eats, dies = (row["error"] for row in rows[2:])
    assert planted == "the third is planted"
    assert runs_on == "over time: no end after 5 s"
    assert eats.startswith("over memory")
    assert dies == "the process died with -9"
    (line,) = driver.table({"planted": rows})
    assert (line["attempts"], line["breaches"], line["outcomes"]) == (6, "4 (2, 3, 4, 5)", "1 even, 1 odd")


def test_a_second_run_goes_on_and_tries_breaches_again_if_asked(rows, store, monkeypatch):
    calls = []

    def told(_module, _limits, axes, _seed):
        calls.append(axes["number"])
        return {"outcome": "fine", "cpu_seconds": 0.0}

    monkeypatch.setattr(driver, "one_attempt", told)
    assert driver.run_part(MODULE, 6, store=store, limits=LIMITS) == rows
    assert calls == []
    assert [row["outcome"] for row in driver.run_part(MODULE, 8, store=store)[6:]] == ["fine", "fine"]
    assert calls == [6, 7]
    driver.run_part(MODULE, 4, store=store, again=True)
    assert calls == [6, 7, 2, 3]


def test_results_of_other_code_are_begun_anew(tmp_path, monkeypatch):
    store = tmp_path / "planted.jsonl"
    driver.run_part(MODULE, 1, store=store, limits=LIMITS)
    assert json.loads(store.read_text().splitlines()[0])["settings"]["code"] == driver.code_version()
    monkeypatch.setattr(driver, "code_version", lambda: "another")
    driver.run_part(MODULE, 2, store=store, limits=LIMITS)
    lines = [json.loads(line) for line in store.read_text().splitlines()]
    assert lines[0]["settings"]["code"] == "another"
    assert [line["axes"]["number"] for line in lines[1:]] == [0, 1]
    store.write_text("no store\n")
    driver.run_part(MODULE, 1, store=store, limits=LIMITS)
    assert len(store.read_text().splitlines()) == 2


def test_two_at_a_time_are_the_same_rows_in_the_same_order(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    two = driver.run_part(MODULE, 3, jobs=2, limits=LIMITS)
    assert [(row["number"], row.get("outcome"), row["error"]) for row in two] == [
        (0, "even", None),
        (1, "odd", None),
        (2, None, "the third is planted"),
    ]


@pytest.mark.parametrize(("count", "code"), [(2, 0), (3, 1)])
def test_the_command_says_by_its_exit_code_whether_anything_broke(tmp_path, monkeypatch, capsys, count, code):
    monkeypatch.setitem(sys.modules, "attack.planted", planted)
    monkeypatch.setattr(planted, "FULL", count)
    monkeypatch.setattr(planted, "QUICK", 1)
    monkeypatch.setattr(command, "part_names", lambda: ["other", "planted"])
    arguments = ["--part", "planted", "--jobs", "1", "--results", str(tmp_path)]
    assert command.main([*arguments, "--quick"]) == 0
    assert command.main(arguments) == code
    shown = capsys.readouterr().out
    assert ("BREACH planted 2: the third is planted" in shown) == bool(code)
    assert len((tmp_path / "planted.jsonl").read_text().splitlines()) == 1 + count
    with pytest.raises(SystemExit) as refused:
        command.main(["--part", "nothing"])
    assert refused.value.code == 2


def test_a_module_with_a_part_of_the_surface_is_a_mistake():
    assert driver.is_part(planted)
    assert not driver.is_part(limited)
    half = type(sys)("half")
    half.attempt = lambda _number: "well"
    with pytest.raises(AttributeError, match="half has attempt.* but no FULL"):
        driver.is_part(half)


def start_a_sleeper():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


def wait_for_the_end(pid):
    for _ in range(500):
        os.kill(pid, 0)
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            raise ProcessLookupError  # dead, and not yet collected by its new parent
        time.sleep(0.01)


def test_nothing_that_an_attempt_started_lives_on():
    ending, pid = limited.call_limited(start_a_sleeper, (), 20.0)
    assert ending == limited.RETURNED
    with pytest.raises(ProcessLookupError):
        wait_for_the_end(pid)
