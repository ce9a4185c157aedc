"""Hostile problems for learn_bands: extreme sizes, scales, penalties, kernels and ranks, one for each seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

NAMED = ("matern52", "matern32", "matern12", "gaussian")
RANKS = ("auto", "exact", 1, 3, 0.5, 1e-3)
SOLVERS = ("auto", "newton", "subspace", "lbfgs")
MILD = 0.5  # chance of a number of ordinary size: with all of them extreme nearly everything is refused


def hostile_problem(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Points (or a kernel matrix), residuals and options of learn_bands."""
    rng = np.random.default_rng([31, seed])
    n, d = int(rng.integers(1, 61)), int(rng.integers(1, 7))
    X, r = _points(rng, n, d), _residuals(rng, n)
    options = {
        "width_penalty": _penalty(rng, zero=0.1),
        "trace_penalty": _penalty(rng, zero=0.1),
        "frobenius_penalty": _penalty(rng, zero=0.01),
        "learning_coverage": _coverage(rng),
        "rank": RANKS[rng.integers(len(RANKS))],
        "solver": SOLVERS[rng.choice(4, p=[0.4, 0.2, 0.2, 0.2])],
        "normalize": bool(rng.random() < 0.4),
        **_symmetry(rng),
    }
    X, kernel = _kernel(rng, X, options["symmetry_kind"])
    return X, r, {**options, **kernel}


def _points(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    kinds = ["normal", "uniform", "repeated", "grid", "one place", "far apart"]
    kind = rng.choice(kinds, p=[0.3, 0.2, 0.2, 0.1, 0.05, 0.15])
    X = rng.standard_normal((n, d)) if kind != "uniform" else rng.uniform(-1, 1, (n, d))
    if kind == "repeated":
        X = X[rng.integers(max(1, n // 4), size=n)]
    if kind == "grid":
        X = np.rint(2 * X)
    if kind == "one place":
        X = np.zeros((n, d))
    if kind == "far apart":
        X = X * 10 ** rng.uniform(-8, 8, d)
    return X


def _residuals(rng: np.random.Generator, n: int) -> np.ndarray:
    r = rng.standard_normal(n)
    kinds = {
        "normal": lambda: r,
        "skewed": lambda: rng.exponential(size=n) - 1,
        "scaled": lambda: r * 10 ** rng.uniform(-12, 12),
        "outlier": lambda: np.where(np.arange(n) == n // 2, 1e8, r),
        "denormal": lambda: r * 1e-310,
        "integers": lambda: np.rint(2 * r).astype(int),
        "zeros": lambda: np.zeros(n),
        "many zeros": lambda: np.where(rng.random(n) < 0.8, 0.0, r),
        "one sign": lambda: np.abs(r) * rng.choice([-1, 1]),
        "equal": lambda: np.full(n, 1.0),
    }
    return kinds[str(rng.choice(list(kinds), p=[0.2, 0.1, 0.15, 0.1, 0.05, 0.1, 0.05, 0.1, 0.1, 0.05]))]()


def _penalty(rng: np.random.Generator, zero: float) -> float:
    if rng.random() < zero:
        return 0.0
    return float(10 ** (rng.uniform(-2, 3) if rng.random() < MILD else rng.uniform(-8, 8)))


def _coverage(rng: np.random.Generator) -> float:
    kind = rng.random()
    if kind < 0.5:
        return 1.0
    if kind < 0.6:
        return float(rng.choice([1e-9, 1e-3, 1 - 1e-3, 1 - 1e-9, np.nextafter(1.0, 0.0)]))
    return float(rng.uniform(0.01, 1.0))


def _symmetry(rng: np.random.Generator) -> dict[str, Any]:
    kind = "operator" if rng.random() < 0.45 else "training"
    penalty: Any = [0.0, np.inf, _penalty(rng, 0.0)][rng.choice(3, p=[0.15, 0.15, 0.7])]
    if kind == "operator" and rng.random() < 0.5:
        penalty = ([0.0, np.inf, _penalty(rng, 0.0)][rng.choice(3, p=[0.1, 0.05, 0.85])], penalty)
    return {"symmetry_kind": kind, "symmetry_penalty": penalty}


def _lengthscale(rng: np.random.Generator) -> float:
    return float(10 ** (rng.uniform(-1, 1) if rng.random() < MILD else rng.uniform(-6, 6)))


def _kernel(rng: np.random.Generator, X: np.ndarray, kind: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Points as the kernel wants them, and its options."""
    choice = rng.random()
    ell = _lengthscale(rng)
    if choice < 0.1:
        own = [RBF(ell), Matern(ell, nu=1.5), ConstantKernel(10 ** rng.uniform(-6, 6)) * RBF(ell), DotProduct(1.0)]
        return X, {"kernel": own[rng.integers(4)]}
    if choice < 0.25:
        with np.errstate(over="ignore"):
            K = np.exp(-0.5 * np.square(cdist(X, X) / ell))
        return 10 ** rng.uniform(-4, 4) * K, {"kernel": "precomputed"}
    named = {"kernel": NAMED[rng.integers(len(NAMED))]}
    if choice < 0.5:
        return X, {**named, "lengthscale": "median"}
    if choice < 0.6 and kind == "training":
        return X, {**named, "lengthscale": {"lower": ell, "upper": ell * 10 ** rng.uniform(-1, 1)}}
    return X, {**named, "lengthscale": ell}
