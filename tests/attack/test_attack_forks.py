"""Planted defects that a fork brings to light are caught: a lock that a thread holds, numbers that differ, an error."""

import os
import time
from threading import Lock

import pytest

from attack import forks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
LOCK, PARENT = Lock(), os.getpid()


def locked(_seed):
    with LOCK:
        time.sleep(0.05)
    return b""


def of_the_process(_seed):
    return str(os.getpid()).encode()


def failing_in_a_child(_seed):
    if os.getpid() != PARENT:
        raise ValueError("lost")
    return b""


@pytest.mark.parametrize(
    ("work", "words"), [(locked, "hangs"), (of_the_process, "other numbers"), (failing_in_a_child, "ended with 4")]
)
def test_a_planted_defect_is_caught(monkeypatch, work, words):
    monkeypatch.setattr(forks, "WORK", {"planted": work})
    monkeypatch.setattr(forks, "PATIENCE", 1)
    with pytest.raises(AssertionError, match=words):
        forks.attempt(0)


def test_work_without_a_defect_is_identical(monkeypatch):
    monkeypatch.setattr(forks, "WORK", {"planted": lambda seed: str(seed).encode()})
    assert forks.attempt(3) == "planted, identical"
