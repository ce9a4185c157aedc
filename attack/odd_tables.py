"""Rows, targets, weights, groups and settings as nobody should give them, each by a name and a seeded generator."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

SIZES = (1e308, 1e200, 1e151, 1e150, 1e149, 1e100, 1e39, 1e20, 1e-30, 1e-160, 1e-300, 5e-324)
DAY = np.datetime64("2024-01-01")


def numbers(rng, n=None):
    """A plain table."""
    n = n or int(rng.choice([3, 12, 30]))
    return rng.uniform(-1, 1, (n, int(rng.integers(1, 4))))


def _with(rng, value, share=0.1):
    X = numbers(rng)
    X[rng.random(X.shape) < share] = value
    X.flat[0] = value
    return X


def _frame(rng):
    X = numbers(rng)
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


def _masked(rng):
    X = numbers(rng)
    mask = rng.random(X.shape) < 0.2
    mask.flat[0] = True
    return np.ma.MaskedArray(X, mask)


def _renamed(rng, *names):
    frame = _frame(rng)
    return pd.concat([frame] * 3, axis=1).iloc[:, : len(names)].set_axis(list(names), axis=1)


def _texts(rng, n):
    return rng.choice(["a", "b", "", "1", "nan", "ü"], n)


ROWS = {
    "plain": numbers,
    "scaled": lambda rng: numbers(rng) * rng.choice(SIZES),
    "scaled columns": lambda rng: rng.uniform(-1, 1, (30, 2)) * rng.choice(SIZES, 2),
    "one huge": lambda rng: _with(rng, rng.choice(SIZES), 0.02),
    "NaN": lambda rng: _with(rng, np.nan),
    "all NaN": lambda rng: numbers(rng) * np.nan,
    "infinite": lambda rng: _with(rng, rng.choice([np.inf, -np.inf])),
    "constant column": lambda rng: np.column_stack([numbers(rng, 30), np.full(30, rng.choice([0.0, 1.0, 1e10]))]),
    "constant": lambda rng: np.full((int(rng.choice([2, 30])), 2), rng.choice([0.0, -3.0, 1e140])),
    "repeated": lambda rng: np.repeat(numbers(rng, 3), 10, axis=0),
    "codes": lambda rng: rng.integers(0, 3, (30, 2)),
    "one row": lambda rng: numbers(rng, 1),
    "two rows": lambda rng: numbers(rng, 2),
    "no rows": lambda rng: numbers(rng)[:0],
    "no columns": lambda rng: numbers(rng)[:, :0],
    "one dimension": lambda rng: numbers(rng)[:, 0],
    "three dimensions": lambda rng: numbers(rng)[:, :, None],
    "a number": lambda rng: np.float64(rng.random()),
    "None": lambda _: None,
    "a text": lambda _: "rows",
    "a dict": lambda _: {"a": [1, 2, 3]},
    "sparse": lambda rng: sparse.csr_matrix(numbers(rng)),
    "objects": lambda rng: numbers(rng).astype(object),
    "odd objects": lambda rng: np.array([[object(), 1.0]] * int(rng.choice([3, 12])), dtype=object),
    "texts": lambda rng: _texts(rng, (30, 2)),
    "complex": lambda rng: numbers(rng) + 1j,
    "booleans": lambda rng: rng.random((30, 2)) < 0.5,
    "short floats": lambda rng: numbers(rng).astype(rng.choice([np.float16, np.float32])),
    "long floats": lambda rng: numbers(rng).astype(np.longdouble) * rng.choice([1, np.longdouble("1e4000")]),
    "large integers": lambda rng: rng.integers(2**63, 2**64 - 1, (30, 2), dtype=np.uint64),
    "huge integers": lambda _: [[10**400, 1]] * 12,
    "masked": _masked,
    "dates": lambda rng: DAY + rng.integers(0, 100, (30, 2)).astype("m8[D]"),
    "spans": lambda rng: rng.integers(0, 100, (30, 2)).astype("m8[h]"),
    "lists": lambda rng: numbers(rng).tolist(),
    "ragged": lambda _: [[1.0, 2.0], [3.0]] * 6,
    "strided": lambda rng: np.asfortranarray(np.repeat(numbers(rng), 2, axis=0))[::-2],
    "structured": lambda _: np.zeros(12, dtype=[("a", float), ("b", int)]),
    "frame": _frame,
    "frame, missing integers": lambda rng: _frame(rng).round().astype("Int64").mask(lambda frame: frame > 0),
    "frame, categories": lambda rng: pd.DataFrame({"a": pd.Categorical(_texts(rng, 30)), "b": numbers(rng, 30)[:, 0]}),
    "frame, texts and gaps": lambda rng: pd.DataFrame({"a": [*_texts(rng, 29), None], "b": rng.random(30)}),
    "frame, dates": lambda rng: pd.DataFrame({"a": pd.date_range("2024", periods=30, tz="UTC"), "b": rng.random(30)}),
    "frame, periods": lambda rng: pd.DataFrame({"a": pd.period_range("2024", periods=30), "b": rng.random(30)}),
    "frame, spans": lambda rng: pd.DataFrame({"a": pd.to_timedelta(range(30), "h"), "b": rng.random(30)}),
    "frame, sparse": lambda rng: _frame(rng).astype(pd.SparseDtype(float)),
    "frame, mixed cells": lambda _: pd.DataFrame({"a": [1, "x", None, 2.5, True, Decimal("1")] * 5}),
    "frame, lists": lambda _: pd.DataFrame({"a": [[1]] * 30}),
    "frame, same names": lambda rng: _renamed(rng, "a", "a"),
    "frame, numbered": lambda rng: _renamed(rng, 0, 1),
    "frame, mixed names": lambda rng: _renamed(rng, "a", 1, ("b", 2)),
    "frame, empty name": lambda rng: _renamed(rng, "", " "),
    "frame, two levels": lambda rng: _renamed(rng, ("a", "b"), ("a", "c")).pipe(
        lambda f: f.set_axis(pd.MultiIndex.from_tuples(f.columns), axis=1)
    ),
    "frame, odd index": lambda rng: pd.DataFrame(rng.random((30, 2)), columns=["a", "b"], index=[7] * 30),
    "polars": lambda rng: pl.DataFrame(numbers(rng)),
    "polars, kinds": lambda rng: pl.DataFrame(
        {
            "a": [Decimal("1.5"), None] * 15,
            "b": [datetime.timedelta(hours=k) for k in range(30)],
            "c": pl.Series([*_texts(rng, 30)], dtype=pl.Categorical),
            "d": [datetime.date(2024, 1, 1 + k) for k in range(30)],
        }
    ),
    "polars, lists": lambda _: pl.DataFrame({"a": [[1, 2]] * 30}),
    "polars, nothing": lambda _: pl.DataFrame({"a": [None] * 30}),
}


TARGETS = {
    "plain": lambda rng, n: rng.standard_normal(n),
    "skewed": lambda rng, n: rng.exponential(size=n) ** 3,
    "scaled": lambda rng, n: rng.standard_normal(n) * rng.choice(SIZES),
    "ends of the range": lambda rng, n: rng.choice([1e308, -1e308], n),
    "one huge": lambda rng, n: np.where(np.arange(n) == 0, rng.choice(SIZES), rng.standard_normal(n)),
    "shifted": lambda rng, n: 1e12 + rng.standard_normal(n),
    "constant": lambda rng, n: np.full(n, rng.choice([0.0, 1.0, -1e100])),
    "two values": lambda rng, n: rng.integers(0, 2, n),
    "booleans": lambda rng, n: rng.random(n) < 0.5,
    "NaN": lambda rng, n: np.where(np.arange(n) == 0, np.nan, rng.standard_normal(n)),
    "infinite": lambda rng, n: np.where(np.arange(n) == 0, np.inf, rng.standard_normal(n)),
    "complex": lambda rng, n: rng.standard_normal(n) + 1j,
    "texts": _texts,
    "texts of numbers": lambda _, n: np.array(["1.5"] * n, dtype=object),
    "objects": lambda rng, n: rng.standard_normal(n).astype(object),
    "decimals": lambda _, n: [Decimal(k) / 7 for k in range(n)],
    "fractions": lambda _, n: [Fraction(k, 7) for k in range(n)],
    "huge integers": lambda _, n: [10**400] * n,
    "dates": lambda _, n: DAY + np.arange(n).astype("m8[D]"),
    "spans": lambda _, n: np.arange(n).astype("m8[h]"),
    "date objects": lambda _, n: [datetime.date(2024, 1, 1)] * n,
    "span objects": lambda _, n: [datetime.timedelta(hours=k) for k in range(n)],
    "a series of dates": lambda _, n: pd.Series(pd.date_range("2024", periods=n)),
    "polars spans": lambda _, n: pl.Series([datetime.timedelta(hours=k) for k in range(n)]),
    "masked": lambda rng, n: np.ma.MaskedArray(rng.standard_normal(n), np.arange(n) % 2 == 0),
    "gaps of pandas": lambda _, n: pd.Series([1, None] * n, dtype="Int64")[:n],
    "series": lambda rng, n: pd.Series(rng.standard_normal(n), index=[7] * n),
    "too short": lambda rng, n: rng.standard_normal(max(0, n - 1)),
    "two columns": lambda rng, n: rng.standard_normal((n, 2)),
    "no columns": lambda _, n: np.zeros((n, 0)),
    "None": lambda *_: None,
    "a number": lambda *_: 1.0,
    "a text": lambda *_: "y",
    "sparse": lambda rng, n: sparse.csr_matrix(rng.standard_normal((n, 1))),
}

WEIGHTS = {
    "zeros": lambda _, n: np.zeros(n),
    "one": lambda _, n: (np.arange(n) == 0) * 1.0,
    "some zero": lambda rng, n: rng.integers(0, 3, n) * 1.0,
    "scaled": lambda rng, n: rng.uniform(0.5, 1, n) * rng.choice(SIZES),
    "mixed": lambda rng, n: rng.choice([1e140, 1.0, 1e-140, 0.0], n),
    "negative": lambda rng, n: rng.standard_normal(n),
    "NaN": lambda _, n: np.full(n, np.nan),
    "texts": _texts,
    "spans": lambda _, n: np.arange(n).astype("m8[h]"),
    "too long": lambda _, n: np.ones(n + 1),
    "a number": lambda *_: 2.0,
}

GROUPS = {
    "texts": lambda rng, n: rng.choice(["a", "b"], n),
    "numbers": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "each its own": lambda _, n: np.arange(n),
    "NaN": lambda _, n: np.full(n, np.nan),
    "mixed": lambda _, n: np.array([1, "a"] * n, dtype=object)[:n],
    "None": lambda _, n: [None] * n,
    "dates": lambda _, n: DAY + np.arange(n).astype("m8[D]"),
    "too short": lambda _, n: ["a"] * max(0, n - 1),
    "categories": lambda rng, n: pd.Series(pd.Categorical(rng.choice(["a", "b"], n))),
    "lists": lambda _, n: [["a"]] * n,
}

VALUES = (
    *(None, -1, 0, 1, 2.5, 0.5, 10**30, 1e308, 1e-320, np.nan, np.inf, -np.inf, True, "", "x", "auto", b"auto"),
    *([], [1, 2], {}, (), object(), np.array([1, 2]), np.array(0.5), np.float32(0.5), Fraction(1, 2), Decimal("0.5")),
    *(
        1j,
        np.random.default_rng(0),
        np.random.RandomState(0),
        datetime.timedelta(1),
        pd.NA,
        lambda x: x,
        float,
        Exception(),
    ),
)
