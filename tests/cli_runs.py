"""What the tests of the command line share: running it in this process, and small tables."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")
import pandas as pd
from typer.testing import CliRunner

from sosbands.cli.app import app

PLAIN = ("--base-scale", "none", "--noise-features", "inputs", "--width-penalty", "10", "--learning-coverage", "1")
FIXED = ("--lengthscale", "median", "--symmetry-penalty", "10", "--score", "added", *PLAIN)  # nothing to tune
FAST = ("--model", "linear", *FIXED)


def sosbands(*words, program=app):
    """Run a command; the result has exit_code, stdout and stderr."""
    result = CliRunner().invoke(program, [str(word) for word in words])
    escaped = result.exception
    assert escaped is None or isinstance(escaped, SystemExit), f"not turned into a message: {escaped!r}"
    return result


def done(*words, program=app):
    """Run a command that must succeed; what it printed to stdout."""
    result = sosbands(*words, program=program)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def said(*words):
    """Run a command that must succeed; what it said as JSON."""
    return json.loads(done(*words, "--json"))


def flat(text):
    """Words without the ends of lines."""
    return " ".join(text.split())


def noted(*words):
    """Run a command that must succeed; what it printed to stderr."""
    result = sosbands(*words)
    assert result.exit_code == 0, result.stderr
    return result.stderr


def refused(*words, code=1):
    """Run a command that must fail; its message."""
    result = sosbands(*words)
    assert result.exit_code == code, result.stdout
    return result.stderr


def fit(table, model, *words):
    """Words of a fit of the column y with nothing to tune, but for further words."""
    return ("fit", table, "--target", "y", "-o", model, *FAST, *words)


def mixed_table(n=120, seed=0):
    """Numbers (with gaps), texts, booleans and dates, with a skewed target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": rng.uniform(-2, 2, n),
            "z": rng.uniform(-1, 1, n).round(2),
            "ward": rng.choice(["north", "south", "east, upper"], n),
            "flag": rng.choice([True, False], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )
    y = table.x + 2.0 * (table.ward == "north") + table.flag + rng.exponential(size=n)
    table.loc[[3, 9], "z"] = np.nan
    table.loc[5, "ward"] = None
    return table.assign(y=y)


def as_learnt(table):
    """The features of a mixed table as a model that the command line has fitted sees them."""
    return table.assign(
        ward=table.ward.fillna("").astype(object),
        flag=table.flag.map({True: "true", False: "false"}).astype(object),
        day=(table.day - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
    ).drop(columns="y")


def number_table(n=80, seed=0):
    """Two columns of numbers and a target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    return table.assign(y=table.a + (1 + table.b**2) * rng.normal(size=n))


def grouped_table(n=200, seed=0):
    """Noise ten times as large in one group as in the other."""
    table = number_table(n, seed).assign(ward=np.where(np.arange(n) % 2, "calm", "wild"), row=np.arange(n))
    return table.assign(y=table.a + np.where(table.ward == "wild", 10.0, 1.0) * (table.y - table.a))
