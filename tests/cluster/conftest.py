"""A Dask cluster of two processes with one thread each, for all tests of this folder."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from two_workers import SETTINGS, table

from sosbands import SoSBandRegressor


@pytest.fixture(scope="session")
def local_cluster():
    distributed = pytest.importorskip("distributed", reason="the extra sosbands[distributed] is not installed")
    pytest.importorskip("dask.dataframe", reason="the extra sosbands[distributed] is not installed")
    psutil = pytest.importorskip("psutil", reason="it comes with distributed")
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}  # what the package must limit by itself
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50, env=threads
    )
    with cluster, distributed.Client(cluster) as client:
        yield client
        pids = [nanny.pid for nanny in cluster.workers.values()]
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []


@pytest.fixture
def client(local_cluster):
    """The cluster with both workers up, also after a test that ended some."""
    local_cluster.wait_for_workers(2, timeout=120)
    return local_cluster


@pytest.fixture(scope="session")
def model():
    X = table(120, 0)[["a", "b"]]
    y = X["a"] + (0.2 + X["b"].abs()) * np.random.default_rng(1).normal(size=len(X))
    return SoSBandRegressor(LinearRegression(), preprocessor=None, **SETTINGS).fit(X, y)


@pytest.fixture
def source(tmp_path):
    """Five files in two folders: one without rows, each with an index of its own."""
    folder = tmp_path / "rows"
    for seed, n in enumerate((30, 7, 0, 30, 11), start=1):
        place = folder / f"year={2020 + seed % 2}"
        place.mkdir(parents=True, exist_ok=True)
        frame = table(max(n, 1), seed)[:n]
        frame.index = range(1000 * seed, 1000 * seed + n)
        frame.to_parquet(place / f"part.{seed}.parquet")
    return folder
