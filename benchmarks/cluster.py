"""What a Dask cluster of two processes costs and brings: ``python -m benchmarks.cluster``.

Each job runs in one process and on the cluster, in turns. Processor seconds are those of all processes together and
tell what the cluster costs; wall-clock seconds tell what it brings, on a machine with two idle cores.
"""

import argparse
import pickle
import tempfile
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from sosbands import SoSBandRegressor
from sosbands.baselines import SplitCP
from sosbands.cluster import interval_frame, predict_parquet
from sosbands.comparison import compare
from sosbands.datasets import delivery_times


def timed(job, client):
    """Wall-clock seconds, and processor seconds of this process and the workers."""
    start = time.perf_counter(), processor_seconds(client)
    job()
    return time.perf_counter() - start[0], processor_seconds(client) - start[1]


def processor_seconds(client):
    return time.process_time() + sum(client.run(time.process_time).values())


def report(name, here, there, client, rounds):
    """Medians over rounds of both, and their ratios."""
    there()  # workers import the package once
    pairs = [(timed(here, client), timed(there, client)) for _ in range(rounds)]
    (wall, cpu), (cluster_wall, cluster_cpu) = np.median(pairs, axis=0)
    ratios = f"{cluster_wall / wall:.2f} {cluster_cpu / cpu:.2f}"
    print(f"{name:34} {wall:8.1f} {cluster_wall:8.1f} {cpu:8.1f} {cluster_cpu:8.1f}   {ratios}", flush=True)


def on_cluster(job):
    def there():
        with joblib.parallel_config(backend="dask"):
            job()

    return there


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50)
    with cluster, Client(cluster) as client, tempfile.TemporaryDirectory() as folder:
        print("job, then seconds: one process, cluster; processor: one process, cluster; ratios of both")
        for n in (300, 2000):
            X, y = delivery_times(n, as_frame=True)
            fit = SoSBandRegressor(random_state=0).fit
            report(f"fit, {n} rows", lambda fit=fit, X=X, y=y: fit(X, y), on_cluster(lambda: fit(X, y)), client, rounds)  # noqa: B023
        X, y = delivery_times(500, as_frame=True)
        methods = {"bands": SoSBandRegressor(), "split": SplitCP()}

        def runs():
            compare(methods, X, y, n_repetitions=6)

        report("compare, 12 runs of 500 rows", runs, on_cluster(runs), client, rounds)
        predictions(Path(folder), client, rounds)


def predictions(folder, client, rounds, n_files=8, n_rows=50_000):
    X, y = delivery_times(1000, as_frame=True)
    model = SoSBandRegressor(random_state=0).fit(X, y)
    (folder / "rows").mkdir()
    for k in range(n_files):
        delivery_times(n_rows, k, as_frame=True)[0].to_parquet(folder / "rows" / f"part.{k}.parquet")

    def here():
        for file in sorted((folder / "rows").iterdir()):
            interval_frame(pd.read_parquet(file), model).to_parquet(folder / "one.parquet")

    def there():
        predict_parquet(model, folder / "rows", folder / f"intervals-{time.monotonic_ns()}", client=client)

    report(f"predict {n_files} files of {n_rows} rows", here, there, client, rounds)
    print(f"the model has {len(pickle.dumps(model)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
