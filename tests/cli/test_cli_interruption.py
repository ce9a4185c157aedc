"""Ctrl-C: the first one ends the choice of bands, not the command; comparisons go on where they stopped."""

import json
import os
import signal

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import sosbands as library
from cli_runs import FAST, done, number_table, sosbands
from sosbands.cli.app import Stopped, choice_ends_early, stop_on_signals
from sosbands.cli.compare import TableMethod
from sosbands.tuning import Automatic

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
    real = Automatic.run

    def interrupted(self):
        real(self)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Automatic, "run", interrupted)
    number_table(120).to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "-o", tmp_path / "m.model", "--model", "linear", "--max-seconds", "1")
    printed = done("fit", tmp_path / "t.csv", *words)
    assert "the choice ended before everything had been tried" in " ".join(printed.split())
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


def test_an_interrupted_comparison_goes_on_from_its_store_with_the_same_numbers(tmp_path, monkeypatch):
    path, store = tmp_path / "t.csv", tmp_path / "runs.jsonl"
    number_table().to_csv(path, index=False)
    whole = json.loads(done(*compare(path, "--json")))
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        result = sosbands(*compare(path, "--store", store))
    assert result.exit_code == 130
    assert f"finished runs are in {store}: the same command continues\n" in result.stderr
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        result = sosbands(*compare(path, "--store", store))
        again = json.loads(done(*compare(path, "--store", store, "--json")))
    assert (result.exit_code, counted.count) == (0, 3)
    assert "3 of 6 done before" in result.stderr
    assert again["differences"] == whole["differences"]


def test_without_a_store_nothing_is_kept_and_other_data_are_refused(tmp_path, monkeypatch):
    path, store = tmp_path / "t.csv", tmp_path / "runs.jsonl"
    number_table().to_csv(path, index=False)
    with monkeypatch.context() as patched:
        Counted(patched, last=4)
        assert "finished runs" not in sosbands(*compare(path)).stderr
        assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]
    done(*compare(path, "--store", store))
    number_table(seed=1).to_csv(path, index=False)
    refused = sosbands(*compare(path, "--store", store))
    assert refused.exit_code == 1
    assert str(store) in refused.stderr


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
