"""Workers that die take no result along. These tests come last, as they leave a cluster of new processes."""

import os

import joblib
import pandas as pd
import pytest
from two_workers import Fatal, MortalModel, files, one_by_one

from sosbands.cluster import interval_frame, predict_parquet
from sosbands.comparison import run_tasks

pytestmark = [
    pytest.mark.usefixtures("client"),
    pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals"),
]


def test_tasks_outlive_their_workers_and_the_data_they_held(tmp_path):
    with joblib.parallel_config(backend="dask"):
        rows = run_tasks(Fatal(str(tmp_path)), [{"number": k} for k in range(4)])
    assert [row["value"] for row in rows] == [10_000.0, 10_001.0, 10_002.0, 10_003.0]
    assert {file.name for file in tmp_path.iterdir()} >= {"died-0", "died-1"}


def test_a_task_that_kills_every_worker_is_a_failed_row(client, tmp_path):
    scheduler = client.cluster.scheduler
    allowed, scheduler.allowed_failures = scheduler.allowed_failures, 0
    try:
        with joblib.parallel_config(backend="dask"):
            rows = run_tasks(Fatal(str(tmp_path), always=(3,)), [{"number": k} for k in (2, 3, 4)])
    finally:
        scheduler.allowed_failures = allowed
    assert [row["error_type"] for row in rows] == [None, "KilledWorker", None]
    assert "tcp://" not in rows[1]["error"]
    assert [rows[0]["value"], rows[2]["value"]] == [10_002.0, 10_004.0]


def test_a_worker_that_dies_costs_time_only(model, source, tmp_path):
    target, flag = tmp_path / "intervals", tmp_path / "died"
    mortal = MortalModel(model, 4003, target, flag)  # a row of the fourth file
    assert predict_parquet(mortal, source, target) == 78
    assert flag.exists()
    assert files(target) == files(source)
    for given, found in one_by_one(source, target):
        pd.testing.assert_frame_equal(found, interval_frame(given, model), rtol=1e-12, atol=1e-12)
