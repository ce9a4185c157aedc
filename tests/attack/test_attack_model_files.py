"""The attack on model files catches readers that are less careful than ours."""

import io
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from attack import model_files
from attack.model_files import closed, judged, listed, node, npy, objects_of, opened, with_planted, with_schema
from sosbands.exceptions import ModelFileError
from sosbands.saving import files


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
    members = opened(data)
    for name, content in members.items():
        if name.endswith(".npy") and (array := np.load(io.BytesIO(content))).dtype == float:
            members[name] = npy(array.shape, "<f8", (1.5 * array).tobytes())
    with pytest.raises(AssertionError, match="other intervals"):
        judged(closed(members), ask)
    assert judged(closed(members), ask, may_differ=True) == "file: other intervals"


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda *_: Path("broken").touch(), "broken"),
        (lambda *_: np.ones(2**27), "1... MB and .* s until it was refused"),
        (lambda *_: busy(2.2), "and 2.* s until"),
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


def test_a_model_that_cannot_predict_is_a_breach_unless_it_was_changed():
    data, ask = base()

    def change(schema):
        del schema["content"]["content"]["estimator_"]

    with pytest.raises(AssertionError, match=r"no intervals \(AttributeError"):
        judged(with_schema(data, change), ask)
    assert judged(with_schema(data, change), ask, may_differ=True) == "file: no intervals"


def test_a_reader_that_looks_through_no_archive_is_caught(monkeypatch):
    data, ask = base()
    again = [node("NdArrayNode", "numpy.ndarray", type="numpy", file="large.npy", __id__=k) for k in range(1, 700)]
    members = {"large.npy": npy((2**17,), "<f8", bytes(2**20))}
    forged = with_planted(data, listed(*again), members)
    assert judged(forged, ask) == "file: refused"
    monkeypatch.setattr(files, "check_archive", lambda _: names)
    names = {
        f"{each['__module__']}.{each['__class__']}" for each in objects_of(json.loads(opened(data)["schema.json"]))
    }
    with pytest.raises(AssertionError, match="MB and .* s until it was identical"):
        judged(forged, ask)
