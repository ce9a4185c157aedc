"""What the tests of the command line share: running it in this process, and small tables."""

import numpy as np
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


def number_table(n=80, seed=0):
    """Two columns of numbers and a target."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    return table.assign(y=table.a + (1 + table.b**2) * rng.normal(size=n))
