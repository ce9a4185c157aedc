"""Ctrl-C: the first one ends the choice of bands, not the command."""

import os
import signal

import pytest

import sosbands as library
from cli_runs import done, fit, flat, number_table, refused
from sosbands.cli.app import Stopped, choice_ends_early, stop_on_signals
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
    assert "the choice ended before everything had been tried" in flat(printed)
    assert library.load(tmp_path / "m.model").tuning_.interrupted


@pytest.mark.usefixtures("_handled")
def test_elsewhere_the_first_signal_ends_fit(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(library.SoSBandRegressor, "_learn", lambda *_: signal.raise_signal(signal.SIGINT))
    message = refused(*fit(folder / "numbers.csv", tmp_path / "m.model"), code=130)
    assert message.splitlines()[-1] == "interrupted"
    assert not (tmp_path / "m.model").exists()
