"""The command line on files with odd cells: numbers that are right, or a message and an exit code."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from sosbands.cli.app import app

PLAIN = ("--base-scale", "none", "--noise-features", "inputs", "--width-penalty", "10", "--learning-coverage", "1")
FAST = ("--model", "linear", "--lengthscale", "median", "--symmetry-penalty", "10", "--score", "added", *PLAIN)
CELLS = (
    "1e308",
    "-1e308",
    "1e150",
    "1e149",
    "5e-324",
    "nan",
    "inf",
    "",
    "x",
    "1,5",
    "2024-01-01",
    "0x1F",
    "1_000",
    "ü",
)
OPTIONS = (
    *(("--confidence-level", value) for value in ("0", "1", "nan", "1e-9", "0.999999999", "x")),
    *(("--calibration-size", value) for value in ("0", "1.0", "-3", "10000", "0.01", "x")),
    *(("--random-state", value) for value in ("-1", "1e9", "x")),
    *(("--drop", value) for value in ("a", "y", "none")),
    *(("--target", value) for value in ("a", "none", "")),
    *(("--lengthscale", value) for value in ("0", "-1", "inf", "1e-300", "1e300", "x")),
    *(("--groups", value) for value in ("a", "b", "none")),
)


def command_line(rng: Any, private: Any) -> str:
    """Fit to an odd file, predict and evaluate it, or fit to a plain one and evaluate an odd one."""
    n = int(rng.choice([0, 1, 3, 40]))
    plain, odd = table(rng, 40), table(rng, n)
    where = str(rng.choice([*odd.columns, *("y" * 3)]))
    odd[where] = odd[where].astype(object)
    for row in np.flatnonzero(rng.random(n) < rng.choice([0.05, 1.0])):
        odd.loc[row, where] = CELLS[int(rng.integers(len(CELLS)))]
    learnt = odd if rng.random() < 0.5 else plain
    options = OPTIONS[int(rng.integers(len(OPTIONS)))] if rng.random() < 0.3 else ()
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("train.csv", "test.csv", "m.model", "out.csv")]
        learnt.to_csv(paths[0], index=False)
        odd.to_csv(paths[1], index=False)
        if not run(private, "fit", paths[0], "--target", "y", "-o", paths[2], *FAST, *options):
            return "refused by fit"
        judged = run(private, "evaluate", paths[2], paths[1], "--json")
        if not run(private, "predict", paths[2], paths[1], "-o", paths[3]):
            assert not judged, "evaluate reads what predict does not"
            return "refused by predict"
        ends = pd.read_csv(paths[3])
        lower, upper = (ends[[name for name in ends if name.startswith(side)][0]] for side in ("lower", "upper"))
        assert not (lower.isna() | upper.isna()).any(), "NaN in intervals"
        assert (lower <= upper).all(), "lower ends above upper ones"
        if judged:
            target, rounding = odd["y"].astype(float), 1e-4 * (upper - lower).where(upper - lower < np.inf, 0.0)
            inside = [((lower - far <= target) & (target <= upper + far)).mean() for far in (-rounding, rounding)]
            found = json.loads(judged)["coverage"]
            assert inside[0] - 1e-9 <= found <= inside[1] + 1e-9, f"coverage {found}, from {inside}"
        return "right" if judged else "refused by evaluate"


def table(rng: Any, n: int) -> pd.DataFrame:
    """Two columns of numbers, one of texts, and the target."""
    frame = pd.DataFrame(rng.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    return frame.assign(c=rng.choice(["u", "v"], n), y=frame.a + rng.standard_normal(n))


def run(private: Any, *words: str) -> str:
    """What a command prints; empty if it refuses, with a message that keeps the law."""
    result = CliRunner().invoke(app, list(words))
    if result.exit_code == 0:
        return str(result.stdout) or "done"
    message = str(result.stderr)
    assert result.exit_code in (1, 2), f"exit code {result.exit_code}: {message}"
    assert "Traceback" not in message, message
    assert "--debug" not in message, f"an error of no named kind: {message}"
    assert message.strip(), "no message"
    found = private.search(message.split("error:", 1)[-1])
    assert not found, f"the message has the private name {found and found[0]!r}: {message}"
    return ""
