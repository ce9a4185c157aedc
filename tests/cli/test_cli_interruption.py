"""Ctrl-C: the first one ends the choice of bands, not the command; comparisons go on where they stopped."""

import json
import os
import signal
import time

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
import sosbands as library
from cli_runs import FAST, done, number_table, sosbands
from sosbands.cli.interruption import Stopped, choice_ends_early, stop_on_signals
from sosbands.cli.kept_runs import cache_folder
from sosbands.cli.table_method import TableMethod
from sosbands.comparison.line_file import LineFile
from sosbands.tuning.automatic import AutomaticSearch

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def _handled():
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    stop_on_signals()
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.usefixtures("_handled")
def test_the_first_signal_ends_the_choice_and_the_second_the_command():
    with choice_ends_early():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped) as second:
            signal.raise_signal(signal.SIGINT)
        assert second.value.exit_code == 130
    with pytest.raises(Stopped):
        signal.raise_signal(signal.SIGINT)
    with choice_ends_early(), pytest.raises(Stopped) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.exit_code == 143


@pytest.mark.usefixtures("_handled")
def test_fit_takes_the_best_so_far(tmp_path, monkeypatch):
    real = AutomaticSearch.run

    def interrupted(self):
        real(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(AutomaticSearch, "run", interrupted)
    number_table(120).to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "-o", tmp_path / "m.model", "--model", "linear", "--max-seconds", "1")
    printed = done("fit", tmp_path / "t.csv", *words)
    assert "Interrupted: the best found so far." in " ".join(printed.split())
    assert library.load(tmp_path / "m.model").tuning_.interrupted


@pytest.mark.usefixtures("_handled")
def test_elsewhere_the_first_signal_ends_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(library.SoSBandRegressor, "_learn", lambda *_: signal.raise_signal(signal.SIGINT))
    number_table().to_csv(tmp_path / "t.csv", index=False)
    result = sosbands("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.model", *FAST)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "interrupted"
    assert not (tmp_path / "m.model").exists()


class Counted:
    """Fits of methods, the last of which is interrupted."""

    def __init__(self, monkeypatch, last=None):
        self.count, self.last, self.real = 0, last, TableMethod.fit
        monkeypatch.setattr(TableMethod, "fit", lambda method, X, y: self(method, X, y))

    def __call__(self, method, X, y):
        self.count += 1
        if self.count == self.last:
            raise Stopped(signal.SIGINT)
        return self.real(method, X, y)


def compare(path, *words):
    return ("compare", path, "--target", "y", "--methods", "split,local", "--repetitions", "3", *FAST, *words)


@pytest.mark.parametrize(("changed", "left"), [((), 3), (("--fresh",), 6), (("--seed", "1"), 6)])
def test_an_interrupted_comparison_goes_on(tmp_path, monkeypatch, changed, left):
    path = tmp_path / "t.csv"
    number_table().to_csv(path, index=False)
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        result = sosbands(*compare(path))
    assert result.exit_code == 130
    (kept,) = cache_folder().iterdir()
    assert f"finished runs are in {kept}: the same command continues within 7 days" in result.stderr
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        result = sosbands(*compare(path, *changed))
    assert result.exit_code == 0
    assert counted.count == left
    assert ("3 of 6 done before" in result.stderr) is (left == 3)
    assert kept.exists() is (changed == ("--seed", "1"))


def test_what_goes_on_gives_the_same_numbers_and_other_data_begin_anew(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    number_table().to_csv(path, index=False)
    whole = json.loads(done(*compare(path, "--json")))
    assert list(cache_folder().iterdir()) == []
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        sosbands(*compare(path))
    joined = json.loads(done(*compare(path, "--json")))
    assert joined["differences"] == whole["differences"]
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        sosbands(*compare(path))
    number_table(seed=1).to_csv(path, index=False)
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        done(*compare(path))
    assert counted.count == 6


def test_runs_of_last_week_are_forgotten(tmp_path):
    folder = cache_folder()
    folder.mkdir(parents=True)
    for name, days in (("old", 8), ("new", 6)):
        (folder / f"{name}.jsonl").write_text("")
        then = time.time() - days * 86_400
        os.utime(folder / f"{name}.jsonl", (then, then))
    number_table().to_csv(tmp_path / "t.csv", index=False)
    done("compare", tmp_path / "t.csv", "--target", "y", "--methods", "split", "--repetitions", "1", *FAST)
    assert [path.name for path in folder.iterdir()] == ["new.jsonl"]


def test_without_a_cache_the_comparison_runs_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    number_table().to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "--methods", "split", "--repetitions", "1", "--json", *FAST)
    found = json.loads(done("compare", tmp_path / "t.csv", *words))
    assert any("nothing can be kept in" in note for note in found["notes"])
    assert np.isfinite(found["table"][0]["interval_score_mean"])


def test_stored_runs_of_other_code_are_refused_run_again_or_kept(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    number_table().to_csv(path, index=False)
    words = compare(path, "--store", tmp_path / "runs.jsonl", "--json")
    whole = json.loads(done(*words))
    monkeypatch.setattr("sosbands.comparison.runner.code_version", lambda *_: "new")
    result = sosbands(*words)
    assert result.exit_code == 1
    assert "6 of 6 finished rows were made by other code" in result.stderr
    assert "--other-code again" in result.stderr
    for choice, fits in (("keep", 0), ("again", 6), ("refuse", 0)):
        with monkeypatch.context() as patched:
            counted = Counted(patched)
            found = json.loads(done(*words, "--other-code", choice))
        assert (choice, counted.count) == (choice, fits)
        assert found["differences"] == whole["differences"]


def test_an_interrupted_comparison_begins_anew_with_other_code(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    number_table().to_csv(path, index=False)
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        sosbands(*compare(path))
    monkeypatch.setattr("sosbands.cli.kept_runs.code_version", lambda *_: "new")
    counted = Counted(monkeypatch)
    done(*compare(path))
    assert counted.count == 6


def test_fresh_does_not_take_the_runs_of_a_comparison_that_is_going_on(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    number_table().to_csv(path, index=False)
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        sosbands(*compare(path))
    Counted(monkeypatch)  # the code of the methods is that of the first run
    (kept,) = cache_folder().iterdir()
    before = kept.read_bytes()
    with LineFile(kept):
        for more in ((), ("--fresh",)):
            result = sosbands(*compare(path, *more))
            assert result.exit_code == 1
            assert "expected one" in result.stderr
    assert kept.read_bytes() == before
    done(*compare(path, "--fresh"))
    assert not kept.exists()
