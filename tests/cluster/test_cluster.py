"""A cluster of two processes gives the numbers of one, and does the work."""

import os
import re

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from two_workers import SETTINGS, NestedLine, Waiting, most_threads, process, task

from sosbands import SoSBandRegressor
from sosbands.baselines import SplitCP
from sosbands.comparison import compare, read_store, run_tasks
from sosbands.point_models import ModelBlend
from sosbands.tuning import Rules, tune

TINY = {"rtol": 1e-10, "atol": 1e-12}


def sample(n=90):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, X[:, 0] + (0.2 + np.abs(X[:, 1])) * rng.normal(size=n)


def ends(model, X):
    """Intervals of the learning rows, which no model warns of."""
    return model.predict_interval(X[model.learning_rows_])


def workers_of(client):
    """Process ids by address."""
    return client.run(os.getpid)


def places(stream):
    """Workers by the name of the function that they ran."""
    found = {}
    for each in stream.data:
        name = re.sub(r"^(mixed_)?batch_of_|(_\d+_calls)?-\w+$", "", each["key"])
        found.setdefault(name, set()).add(each["worker"])
    return found


def test_a_fit_sends_folds_and_candidates_to_both_workers(client):
    from distributed import get_task_stream

    X, y = sample(60)
    blend = ModelBlend([LinearRegression(), DecisionTreeRegressor(min_samples_leaf=9)], random_state=0)
    settings = {"base_scale": "none", "noise_features": "inputs", "learning_coverage": 0.9, "width_penalty": 0.1}
    model = SoSBandRegressor(blend, symmetry_penalty=1.0, cv=3, random_state=0, **settings)
    here = ends(model.fit(X, y), X)
    report = model.tuning_
    with get_task_stream(client) as stream, joblib.parallel_config(backend="dask"):
        there = ends(model.fit(X, y), X)
    both = set(workers_of(client))
    where = places(stream)
    assert where.pop("_fitted") <= both  # the two members
    assert where == {"_held_out": both, "fold_parts": both}
    np.testing.assert_allclose(there, here, **TINY)
    assert model.tuning_.reasons == report.reasons
    assert len(model.tuning_.evaluations) == len(report.evaluations)


@pytest.mark.usefixtures("client")
def test_tuning_by_the_rules_gives_the_numbers_of_one_process():
    X, y = sample(40)
    options = {"rules": Rules(independence=None), "cv": 3, "random_state": 0}
    here = tune(X, y, **options)
    with joblib.parallel_config(backend="dask"):
        there = tune(X, y, **options)
    for key in ("lengthscale", "symmetry_penalty", "criterion"):
        np.testing.assert_allclose(
            [row[key] for row in there.evaluations], [row[key] for row in here.evaluations], **TINY
        )
    assert there.sentence == here.sentence


def test_out_of_fold_copies_are_fitted_on_workers_and_keep_to_them(client, tmp_path):
    X, y = sample()
    here, there = tmp_path / "here", tmp_path / "there"
    models = [SoSBandRegressor(NestedLine(str(folder)), cv=8, **SETTINGS) for folder in (here, there)]
    here.mkdir(), there.mkdir()
    models[0].fit(X, y)
    with joblib.parallel_config(backend="dask"):
        models[1].fit(X, y)
    np.testing.assert_allclose(ends(models[1], X), ends(models[0], X), **TINY)
    assert [int(file.name) for file in here.iterdir()] == [os.getpid()]
    fits = {int(file.name): file.read_text().splitlines() for file in there.iterdir()}
    pids = set(workers_of(client).values())
    assert set(fits) == pids | {os.getpid()}
    assert sum(len(fits[pid]) for pid in pids) == 8
    for pid in pids:
        assert {int(each) for line in fits[pid] for each in line.split()} == {pid}


# ---------------------------------------------------------------- compare


def parts(row):
    """Numbers, and everything else, of what two runs of a task have in common."""
    same = {name: value for name, value in row.items() if "seconds" not in name and name != "process"}
    text = {name: value for name, value in same.items() if value is None or isinstance(value, str)}
    return {name: value for name, value in same.items() if name not in text}, text


def test_compare_runs_on_workers_and_its_store_continues(client, tmp_path):
    X, y = sample(60)
    methods = {"split": SplitCP(LinearRegression()), "neighbours": SplitCP(KNeighborsRegressor(3, n_jobs=2))}
    options = {"metrics": {"process": process}, "store": tmp_path / "store.jsonl"}
    with joblib.parallel_config(backend="dask"):
        first = compare(methods, X, y, n_repetitions=2, **options)
        before = options["store"].read_bytes()
        again = compare(methods, X, y, n_repetitions=4, **options)
    pids = set(workers_of(client).values())
    assert {row["process"] for row in again.rows} == pids
    assert options["store"].read_bytes().startswith(before)
    assert again.rows[:4] == first.rows
    assert len(read_store(options["store"]).records) == 8
    here = compare(methods, X, y, n_repetitions=4, metrics={"process": process})
    assert {row["process"] for row in here.rows} == {os.getpid()}
    for there, row in zip(again.rows, here.rows, strict=True):
        (found, words), (expected, same_words) = parts(there), parts(row)
        assert found == pytest.approx(expected, rel=1e-10, nan_ok=True)
        assert words == same_words


@pytest.mark.usefixtures("client")
def test_results_are_stored_as_they_come(tmp_path):
    store = tmp_path / "store.jsonl"
    with joblib.parallel_config(backend="dask"):
        rows = run_tasks(Waiting(store), [{"number": k} for k in (1, 2, 3, 4)], store=store)  # one line of settings
    assert [row["error"] for row in rows] == [None] * 4
    assert [row["number"] for row in read_store(store).rows] == [1, 2, 3, 4]


def test_tasks_have_one_thread_and_one_process(client):
    assert set(client.run(most_threads).values()) == {2}
    tasks = [{"number": k} for k in range(6)]
    here = run_tasks(task, tasks)
    with joblib.parallel_config(backend="dask"):
        there = run_tasks(task, tasks)
    assert [row["value"] for row in there] == [row["value"] for row in here]
    assert {row["process"] for row in there} == set(workers_of(client).values())
    assert {row["threads"] for row in there} == {1}
    assert all(row["inner"] == [row["process"]] for row in there)
    assert [row["n_warnings"] for row in there] == [0] * 6
