"""The attack by kills sees damaged outputs, temporary files that stay, and rows that are lost."""

import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from attack import kills
from sosbands import _files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
IN_PLACE = """
import contextlib, pathlib, sosbands._files as files
@contextlib.contextmanager
def written(path, tidy=True):
    yield pathlib.Path(path)
files.written = written
"""


def number_of(command, way, **others):
    """The first attempt of this kind."""
    return next(
        number
        for number in range(1000)
        for plan in [kills.Plan.of(number)]
        if (plan.command, plan.way) == (command, way) and all(getattr(plan, k) == v for k, v in others.items())
        if 0.2 < plan.chance < 0.8
    )


def test_an_output_that_is_written_in_place_is_noticed(monkeypatch):
    monkeypatch.setattr(kills, "PLANTED", IN_PLACE)
    with pytest.raises(AssertionError, match="out.csv is (damaged|neither the old file nor the new one)"):
        kills.attempt(number_of("predict", "byte", old=True))


def test_a_temporary_file_that_stays_is_noticed(monkeypatch):
    monkeypatch.setattr(_files, "remove_leftovers", lambda _: None)
    with pytest.raises(AssertionError, match=r"left behind \['\.sosbands-"):
        kills.attempt(number_of("predict", "byte"))


def test_every_command_dies_in_every_way():
    plans = [kills.Plan.of(number) for number in range(kills.FULL)]
    assert {(plan.command, plan.way) for plan in plans} == {(c, w) for c in kills.COMMANDS for w in kills.WAYS}
    assert {plan.command for plan in plans[: kills.QUICK]} == {"fit", "predict", "compare"}
