"""What the tests of a cluster send to it: rows, models and functions that say where they ran, or end their worker."""

import os
import signal
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info

SETTINGS = {"lengthscale": 1.0, "symmetry_penalty": 1.0, "width_penalty": 0.1, "learning_coverage": 0.9}
SETTINGS |= {"base_scale": "none", "noise_features": "inputs", "conformal_score": "added", "random_state": 0}


def table(n, seed):
    """Two features, in another order than the model has them, a number that is none, and text."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"b": rng.uniform(-1, 1, n), "extra": np.arange(n), "a": rng.uniform(-1, 1, n)})
    return frame.assign(id=[f"row {seed}-{k}" for k in range(n)])


def files(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def one_by_one(source, target):
    for name in files(source):
        yield pd.read_parquet(source / name, partitioning=None), pd.read_parquet(target / name, partitioning=None)


def die(flag):
    """End this process at once, if it is the first to come here."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def until(condition):
    """Wait for something that comes soon, or complain."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def process(y, lower, upper):  # noqa: ARG001
    """A metric: where it was computed."""
    return os.getpid()


def most_threads():
    """Of the numerical libraries of this process."""
    return max(each["num_threads"] for each in threadpool_info())


def task(axes, seed):  # noqa: ARG001
    """A task that says where it ran, and what became of joblib inside of it."""
    inner = joblib.Parallel(n_jobs=2)(joblib.delayed(os.getpid)() for _ in range(4))
    return {"value": seed % 1000, "process": os.getpid(), "inner": sorted(set(inner)), "threads": most_threads()}


class Fatal:
    """A task that ends its worker, once or whenever it runs."""

    __qualname__ = "Fatal"

    def __init__(self, folder, always=()):
        self.folder, self.always = folder, always
        self.data = np.ones(10_000)

    def __call__(self, axes, seed):  # noqa: ARG002
        number = axes["number"]
        if number in self.always:
            os.kill(os.getpid(), signal.SIGKILL)
        (Path(self.folder) / f"begun-{number}").touch()
        if number < 2:  # both at the same time, so that no worker is left that holds the data
            until(lambda: all((Path(self.folder) / f"begun-{k}").exists() for k in (0, 1)))
            die(Path(self.folder) / f"died-{number}")
        return {"value": float(self.data.sum()) + number}


class NestedLine(RegressorMixin, BaseEstimator):
    """Least squares that notes the process it is fitted in, and those of the joblib tasks that it makes there."""

    def __init__(self, folder):
        self.folder = folder

    def fit(self, X, y):
        inner = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))
        with open(Path(self.folder) / str(os.getpid()), "a") as file:
            file.write(" ".join(str(each) for each in inner) + "\n")
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X)


class Waiting:
    """A task that ends when the store holds as many lines as its number."""

    __qualname__ = "Waiting"

    def __init__(self, store):
        self.store = str(store)

    def __call__(self, axes, seed):  # noqa: ARG002
        until(lambda: Path(self.store).read_bytes().count(b"\n") >= axes["number"])
        return {}


class MortalModel:
    """The model inside, but the first worker that predicts a certain row dies and leaves a part of a file behind."""

    def __init__(self, model, row, target, flag):
        self.model, self.row, self.target, self.flag = model, row, target, flag
        self.confidence_level, self.feature_names_in_ = model.confidence_level, model.feature_names_in_
        self.quantile = model.quantile

    def intervals(self, X, level):
        if self.row in X.index and not Path(self.flag).exists():
            (folder,) = self.target.parent.glob(".sosbands-*")
            (folder / ".part.parquet").write_bytes(b"PAR1")
            die(self.flag)
        return self.model.intervals(X, level)
