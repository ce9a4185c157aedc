"""What every room may use: files that appear whole or not at all, lines of progress, errors that carry facts."""

import copy
import json
import os
import pickle
from threading import Semaphore, Thread

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from sosbands import SoSBandRegressor
from sosbands._extras import need
from sosbands._files import written
from sosbands._progress import Patience, heard_by, say, speaking
from sosbands.baselines import LocallyWeightedCP, SplitCP
from sosbands.exceptions import UntrustedTypesError


def fail_while_writing(path, error):
    with written(path) as partial:
        partial.write_text("half")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_file_appears_whole_or_not_at_all(tmp_path, error):
    path = tmp_path / "t.txt"
    with pytest.raises(error):
        fail_while_writing(path, error)
    assert list(tmp_path.iterdir()) == []
    path.write_text("old")
    with pytest.raises(error):
        fail_while_writing(path, error)
    assert path.read_text() == "old"
    with written(path) as partial:
        partial.write_text("new")
        assert partial.suffix == ".txt"
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["t.txt"]


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be flushed on Windows")
def test_the_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: (steps.append(name), real(*given)))
    with written(tmp_path / "t.txt") as partial:
        partial.write_text("new")
    assert steps == ["fsync", "replace", "fsync"]  # content, name, and the folder that holds the name


def test_silence_is_broken_again_and_again_until_the_end():
    reminded = Semaphore(0)
    with Patience(lambda seconds: reminded.release() if seconds > 0 else None, every=0.01):
        assert all(reminded.acquire(timeout=60) for _ in range(3))
    silences = []
    with Patience(silences.append, every=60) as patience:
        patience.heard()
    assert silences == []
    assert not patience._thread.is_alive()


def test_progress_is_printed_or_heard(capsys):
    lines, loud, silent = [], SplitCP(verbose=1), SplitCP(verbose=0)
    say("nobody speaks")
    with speaking(loud):
        say("one")
        with speaking("tuning"):
            say("two")
        with speaking(silent):
            say("of a silent model within")
            with speaking("tuning", 1):
                say("three")
        say("four")
    with heard_by(lines.append), speaking(silent):
        say("five")
        with speaking(loud):
            say("six")
    with pytest.raises(RuntimeError), speaking(loud):
        raise RuntimeError
    say("nobody speaks")
    assert lines == ["five", "six"]
    assert capsys.readouterr().out == "[SplitCP] one\n[tuning] two\n[tuning] three\n[SplitCP] four\n"
    with speaking("here", 1):  # other threads are silent
        thread = Thread(target=say, args=["there"])
        thread.start()
        thread.join()
        say("here")
    assert capsys.readouterr().out == "[here] here\n"


@pytest.mark.parametrize("jobs", [None, 2])
def test_copies_of_a_cross_fit_are_silent(jobs, capsys):
    X, y = np.random.default_rng(0).standard_normal((2, 30))
    models = {"estimator": LinearRegression(), "scale_estimator": LinearRegression()}
    LocallyWeightedCP(**models, calibration_size="cross", cv=2, n_jobs=jobs, verbose=1).fit(X[:, None], y)
    assert capsys.readouterr().out == "".join(f"[LocallyWeightedCP] {k} of 3 fits done\n" for k in (1, 2, 3))


def test_a_listener_hears_the_model_and_its_tuning_and_is_forgotten(capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 1))
    y = X[:, 0] + (1 + X[:, 0]) * rng.exponential(size=60)
    lines = []
    with heard_by(lines.append):
        model = SoSBandRegressor(LinearRegression(), random_state=0).fit(X, y)
    assert lines[0] == "point model LinearRegression fitted to 40 rows"
    assert model.tuning_.sentence in lines
    assert lines[-1] == "calibrated on 20 rows"
    copy.deepcopy(model).fit(X, y)
    assert len([line for line in lines if line.startswith("calibrated")]) == 1
    assert capsys.readouterr().out == ""


def test_untrusted_types_are_an_attribute_that_survives_pickling():
    error = UntrustedTypesError("holds a.B", ["a.B"])
    assert error.types == ("a.B",)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.types) == ("holds a.B", ("a.B",))


@pytest.mark.parametrize(
    ("module", "install"),
    [("quantile_forest.nowhere", "quantile-forest"), ("nowhere", "nowhere"), ("onnx.a", "onnx skl2")],
)
def test_what_is_missing_says_what_to_install(module, install):
    name = module.partition(".")[0]
    with pytest.raises(ImportError, match=rf"^this needs {name}, which cannot be .* \(.*\): pip install {install}"):
        need(module)
    assert need("json") is json
