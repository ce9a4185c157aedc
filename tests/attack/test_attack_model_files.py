"""The attack on model files catches readers that are less careful than ours."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from attack import model_files
from attack.model_files import closed, judged, opened, with_objects
from sosbands.exceptions import ModelFileError
from sosbands.saving import foreign, plain


def base():
    return model_files._process()


def busy(seconds):
    start = time.process_time()
    while time.process_time() < start + seconds:
        pass


def test_a_good_file_is_read():
    data, ask = base()
    assert judged(data, ask) == "file: identical"


def test_other_intervals_are_a_breach():
    data, ask = base()

    arrays, facts = opened(data)
    for name, array in arrays.items():
        if name.startswith("arrays/") and array.dtype == float:
            arrays[name] = array * 1.5
    with pytest.raises(AssertionError, match="other intervals"):
        judged(closed(arrays, facts), ask)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda *_: Path("broken").touch(), "broken"),
        (lambda *_: np.ones(2**27), "refused.* in 1.* MB"),
        (lambda *_: busy(2.2), "after 2"),
        (lambda *_: os._exit(1), "no answer"),
        (lambda *_: 1 / 0, "ZeroDivisionError"),
    ],
    ids=["writes", "memory", "time", "crash", "error"],
)
def test_a_reader_that_does_harm_is_caught(broken, message, monkeypatch):
    data, ask = base()

    def load(_):
        broken()
        raise ModelFileError

    monkeypatch.setattr(model_files, "load", load)
    with pytest.raises(AssertionError, match=message):
        judged(data, ask)


def test_a_reader_that_checks_no_fields_is_caught(monkeypatch):
    monkeypatch.setattr(plain, "check_fields", lambda *_, **__: None)
    monkeypatch.setattr(plain, "check_together", lambda _: None)
    data, ask = base()

    def change(objects):
        del objects[-1]["fields"]["estimator_"]

    with pytest.raises(AssertionError, match="predict_interval raised AttributeError"):
        judged(with_objects(data, change), ask)


def test_a_reader_that_looks_through_no_archive_is_caught(monkeypatch):
    monkeypatch.setattr(foreign, "check_archive", lambda _: None)
    data, ask = model_files._bands()
    again = model_files.node("NdArrayNode", "numpy.ndarray", type="numpy", file="large.npy")

    def change(members):
        members["large.npy"] = model_files.npy((2**17,), "<f8", bytes(2**20))
        schema = json.loads(members["schema.json"])
        model_files._led(schema, model_files.listed(*[again] * 700))
        members["schema.json"] = json.dumps(schema).encode()

    with pytest.raises(AssertionError, match="refused.* in .* MB"):
        judged(model_files.with_archive(data, change), ask)
