"""The quick attempts of every part of the attack, as `make attack` runs them, break nothing."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attack.driver import part_names

ROOT = Path(__file__).parents[2]


def test_the_parts_are_found():
    assert {"coverage_laws", "forks", "full_disk", "solver_fuzz"} <= set(part_names())


@pytest.mark.parametrize("part", part_names())
def test_the_quick_attempts_break_nothing(part, tmp_path):
    # a fresh process: what ran before in this one must not matter, nor its threads be lost in a fork
    command = [sys.executable, "-m", "attack", "--quick", "--part", part, "--jobs", "1", "--results", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    attempts = importlib.import_module(f"attack.{part}").QUICK
    assert f"{part}" in done.stdout
    assert len((tmp_path / f"{part}.jsonl").read_text().splitlines()) == 1 + attempts
