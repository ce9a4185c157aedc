"""Tasks, seeds, descriptions of settings, what a row holds, and what is said meanwhile."""

import hashlib
import json
import math
import socket
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from sosbands.comparison import read_store, run_tasks, seed_of
from sosbands.comparison.describe import data_hash, describe, fingerprint, read_axes
from sosbands.comparison.runner import anonymous, counting

INF = math.inf
TASKS = [{"method": method, "repetition": i} for i in range(3) for method in ("a", "b")]


def draw(axes, seed):
    """A random number that is paired over methods, and one that is not."""
    rng = np.random.default_rng(seed)
    return {"common": rng.normal(), "vector": rng.normal(size=2), "name": axes["method"]}


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


class Counting:
    """Task that counts its executions and fails while a method is on the list."""

    def __init__(self, broken=()):
        self.calls = []
        self.broken = list(broken)

    def __call__(self, axes, seed):
        self.calls.append((axes["method"], axes["repetition"]))
        if axes["method"] in self.broken:
            raise ZeroDivisionError(f"method {axes['method']} divides by zero")
        return {"value": seed + 0.5}


# ---------------------------------------------------------------- axes and seeds


def test_the_seed_is_the_documented_hash():
    text = '{"axes":{"dataset":"concrete","repetition":3},"random_state":7}'
    wanted = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
    axes = {"repetition": 3, "method": "sos", "dataset": "concrete"}
    assert seed_of(axes, 7, ["repetition", "dataset"]) == wanted
    assert seed_of({**axes, "method": "cqr"}, 7, ["dataset", "repetition"]) == wanted  # paired, whatever the order
    assert seed_of({**axes, "repetition": np.int64(3)}, 7, ["dataset", "repetition"]) == wanted
    assert len({seed_of({"i": i}) for i in range(1000)} | {seed_of({"i": i}, 1) for i in range(1000)}) == 2000
    assert seed_of({"i": 1}) != seed_of({"i": 1.0})
    read = read_axes({"a": np.float64(-0.0), "b": INF, "c": np.str_("x")})  # plain values
    assert json.dumps(read) == '{"a": 0.0, "b": Infinity, "c": "x"}'
    assert type(read["c"]) is str


# ---------------------------------------------------------------- descriptions of settings


def equal(a, b):
    return fingerprint(a) == fingerprint(b)


def test_descriptions_of_settings_tell_differences():
    forest = RandomForestRegressor(max_depth=3)
    assert equal(make_pipeline(StandardScaler(), Ridge()), make_pipeline(StandardScaler(), Ridge(alpha=1.0)))
    assert not equal(make_pipeline(StandardScaler(), Ridge()), make_pipeline(StandardScaler(), Ridge(alpha=1.5)))
    assert equal(forest, RandomForestRegressor(max_depth=3, n_jobs=2, verbose=1))  # no effect on the result
    assert not equal(forest, RandomForestRegressor(max_depth=3, random_state=0))
    assert equal(RBF(2.0), RBF(2.0))
    assert not equal(RBF(2.0), RBF([2.0, 2.0]))
    assert not equal(np.arange(3.0), np.arange(3))
    assert equal({"a": (1, None), "b": INF}, {"b": INF, "a": [1, None]})
    assert equal({"x", "y"}, {"y", "x"})
    assert not equal(Ridge, LinearRegression)
    X = np.arange(6.0)[:, None]
    one, same, other = (FrozenEstimator(LinearRegression().fit(X, y)) for y in (X[:, 0], X[:, 0], X[:, 0] ** 2))
    assert equal(one, same)  # by what they have learnt
    assert not equal(one, other)
    cached = make_pipeline(StandardScaler(), Ridge(), memory=str(Path.home() / "cache"))
    assert str(Path.home()) not in json.dumps(describe(cached))
    assert not equal(cached, make_pipeline(StandardScaler(), Ridge(), memory=str(Path.home() / "other")))


def power(exponent):
    return lambda x: x**exponent


def test_functions_are_described_by_name_or_code():
    assert describe(power) == {"function": "power"}
    assert equal(power(2), power(2))
    assert not equal(power(2), power(3))
    assert not equal(lambda x: x + 1.0, lambda x: x + 2.0)
    assert not equal(lambda x, y=1: x * y, lambda x, y=2: x * y)

    def recursive(n):
        return recursive(n - 1)

    assert describe(recursive)["captured"] == ["..."]


def test_data_hashes():
    frame = pd.DataFrame({"x": [1.0, 2.0], "word": ["a", "b"]})
    assert data_hash(frame) == data_hash(frame.set_index([[5, 6]]))
    assert data_hash(frame) != data_hash(frame.rename(columns={"x": "z"}))
    assert data_hash(frame) != data_hash(frame.assign(word=["a", "c"]))
    assert data_hash(frame) != data_hash(frame.assign(x=[1.0, 2.5]))
    twice = frame[["x", "x"]]
    assert data_hash(twice) == data_hash(twice.copy())
    assert data_hash(pl.DataFrame({"x": [1.0]})) != data_hash(pl.DataFrame({"x": [2.0]}))
    X = np.arange(6.0).reshape(3, 2)
    assert data_hash(X) == data_hash(np.asfortranarray(X)) == data_hash(X.tolist())
    assert data_hash(X) != data_hash(X.reshape(2, 3))


# ---------------------------------------------------------------- running


def test_rows_are_in_the_order_of_the_tasks_from_two_processes_too(tmp_path):
    rows = run_tasks(draw, TASKS, seed_axes=["repetition"], random_state=5)
    assert [(row["method"], row["repetition"]) for row in rows] == [(t["method"], t["repetition"]) for t in TASKS]
    for row in rows:
        seed = seed_of({"repetition": row["repetition"]}, 5)
        rng = np.random.default_rng(seed)
        assert row["seed"] == seed
        assert row["common"] == rng.normal()
        assert row["vector"] == rng.normal(size=2).tolist()
        assert row["name"] == row["method"]
        assert (row["n_warnings"], row["warnings"], row["error_type"], row["error"]) == (0, "", None, None)
        assert row["seconds"] >= 0
    stored = {"seed_axes": ["repetition"], "random_state": 5, "store": tmp_path / "s.jsonl"}
    parallel = run_tasks(draw, TASKS, n_jobs=2, **stored)
    assert without_seconds(parallel) == without_seconds(rows)
    assert run_tasks(draw, TASKS, **stored) == parallel


def test_finished_tasks_are_skipped_and_failures_retried_only_if_asked(tmp_path):
    task = Counting(broken=["b"])
    first = run_tasks(task, TASKS[:3], store=tmp_path / "s")
    rows = run_tasks(task, TASKS, store=tmp_path / "s")
    assert task.calls == [(t["method"], t["repetition"]) for t in TASKS]
    assert rows[:3] == first
    assert [row["error_type"] for row in rows] == [None, "ZeroDivisionError"] * 3
    assert rows[1]["error"] == "method b divides by zero"
    assert rows[1]["error_place"].startswith("test_comparison_runner.py:")
    assert rows[1]["error_place"].endswith("in __call__")
    assert "value" not in rows[1]
    task.broken = []
    assert run_tasks(task, TASKS[::-1], store=tmp_path / "s") == rows[::-1]
    assert len(task.calls) == 6
    rows = run_tasks(task, TASKS, store=tmp_path / "s", retry_failed=True)
    assert len(task.calls) == 9
    assert [row["error_type"] for row in rows] == [None] * 6
    assert [row["value"] for row in rows] == [row["seed"] + 0.5 for row in rows]
    assert read_store(tmp_path / "s").rows == rows


@pytest.mark.parametrize(
    ("result", "kind", "message"),
    [
        (3, "TypeError", "the task returned int: expected a mapping"),
        ({"seed": 1}, "ValueError", "the task returned 'seed': expected other names"),
        ({"method": 1}, "ValueError", "the task returned 'method': expected other names"),
        ({"a": {"b": [1, object()]}}, "TypeError", "b is a object: expected numbers"),
    ],
)
def test_results_that_cannot_be_stored_are_failures(result, kind, message):
    (row,) = run_tasks(lambda axes, seed: result, [{"method": "a"}])  # noqa: ARG005
    assert row["error_type"] == kind
    assert message in row["error"]


def test_values_survive_the_store(tmp_path):
    values = {"inf": INF, "nan": math.nan, "tiny": 5e-324, "flag": np.True_, "none": None, "text": "ä\n"}
    values["nested"] = {"grid": np.eye(2), "pair": (1, 2.0)}
    for _ in range(2):  # computed, then read
        (row,) = run_tasks(lambda axes, seed: values, [{"i": 0}], store=tmp_path / "s")  # noqa: ARG005
        assert math.isnan(row.pop("nan"))
        plain = {"inf": INF, "tiny": 5e-324, "flag": True, "none": None, "text": "ä\n"}
        plain["nested"] = {"grid": [[1.0, 0.0], [0.0, 1.0]], "pair": [1, 2.0]}
        assert {name: row[name] for name in plain} == plain


def noisy(axes, seed):  # noqa: ARG001
    for _ in range(axes["i"]):
        warnings.warn("slow", ConvergenceWarning, stacklevel=1)
    warnings.warn("old", FutureWarning, stacklevel=1)
    return {}


def test_warnings_are_counted_not_printed(recwarn):
    rows = run_tasks(noisy, [{"i": i} for i in range(3)])
    assert [row["n_warnings"] for row in rows] == [1, 2, 3]
    assert [row["warnings"] for row in rows] == ["FutureWarning", *["ConvergenceWarning, FutureWarning"] * 2]
    assert not list(recwarn)


def blas_threads(axes, seed):  # noqa: ARG001
    np.eye(4) @ np.eye(4)
    return {"threads": max([pool["num_threads"] for pool in threadpool_info()], default=1)}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_blas_thread_per_task(n_jobs):
    assert [row["threads"] for row in run_tasks(blas_threads, [{"i": 0}, {"i": 1}], n_jobs=n_jobs)] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": [{}]}, r"axes=\{\}: expected a non-empty mapping"),
        ({"tasks": [{"": 1}]}, "axis name '': expected a non-empty string"),
        ({"tasks": [{"a": True}]}, "axis a=True: expected a string, an integer or a float"),
        ({"tasks": [{"a": None}]}, "axis a=None: expected a string"),
        ({"tasks": [{"a": [1]}]}, r"axis a=\[1\]: expected a string"),
        ({"tasks": [{"a": math.nan}]}, "axis a=nan: expected a number that is not NaN"),
        ({"tasks": [{"i": 1}, {"i": 1}]}, r"tasks has \{'i': 1\} twice"),
        ({"tasks": [{"seconds": 1}]}, "axis 'seconds': expected another name"),
        ({"seed_axes": ["dataset"]}, "seed_axes has 'dataset', which the task"),
        ({"random_state": None}, "random_state=None: expected an integer"),
        ({"settings": {"task": 1}}, "settings has 'task': expected other names"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        run_tasks(draw, **{"tasks": TASKS, **arguments})


# ---------------------------------------------------------------- messages


def fail_with_secrets(axes, seed):  # noqa: ARG001
    raise FileNotFoundError(f"no {__file__!r} on {socket.gethostname()}, see {Path.home()}/notes.txt in {Path.home()}")


def test_rows_never_name_the_machine(tmp_path):
    (row,) = run_tasks(fail_with_secrets, [{"i": 0}], store=tmp_path / "s")
    assert row["error"] == "no '<path>/test_comparison_runner.py' on <host>, see <path>/notes.txt in <path>"
    text = (tmp_path / "s").read_text()
    assert not any(secret in text for secret in (socket.gethostname(), str(Path.home()), str(Path(__file__).parent)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cannot open /opt/secret place/x", "cannot open <path> place/x"),
        ("'/var/lib/a/data.csv': gone", "'<path>/data.csv': gone"),
        ("C:\\Users\\me\\data.csv and D:/x/y", "<path>/data.csv and <path>"),
        ("ratio 1/2/3, and/or, https://example.org/a/b, ./a/b", "ratio 1/2/3, and/or, https://example.org/a/b, ./a/b"),
        ("x" * 600, "x" * 500 + " [...]"),
    ],
)
def test_paths_in_messages(text, wanted):
    assert anonymous(text) == wanted


# ---------------------------------------------------------------- progress


def test_progress_is_silent_unless_asked(capsys, tmp_path):
    run_tasks(Counting(), TASKS, store=tmp_path / "s")
    assert capsys.readouterr() == ("", "")
    run_tasks(Counting(["a"]), TASKS, verbose=1, label="cases")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("[cases] 6 of 6 done, 3 failed, ")
    run_tasks(Counting(), TASKS, store=tmp_path / "s", verbose=1)
    assert capsys.readouterr().err == "[tasks] 6 of 6 done before\n"


def test_progress_has_few_lines(capsys):
    for verbose, lines in [(1, 20), (2, 100)]:
        with counting(100, 0, "x", verbose) as step:
            for _ in range(100):
                step(False)
        assert len(capsys.readouterr().err.splitlines()) == lines


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with counting(2, 1, "cases", 1) as step:
        step(False)
    err = capsys.readouterr().err
    assert "2/2" in err
    assert "done," not in err
