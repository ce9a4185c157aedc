"""Rows in Parquet files, and what reads them back."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the extra sosbands[distributed] is not installed")

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
