"""``python -m release.check dist``: the archives in a folder, checked as their users meet them."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from release.contents import ROOT, sdist_faults, sdist_names, wheel_faults, wheel_names

PLACES = ROOT / "build" / "release"
IMPORTS = ("sosbands", "sosbands.regressors")  # the name alone, and with it all that a fit needs
TIMED = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
COMMANDS = (
    ("--version",),
    ("fit", "train.csv", "--target", "y", "-o", "y.model", "--max-seconds", "5"),
    ("predict", "y.model", "new.csv", "-o", "intervals.csv"),
)


def main(folder: Path) -> None:
    """Check contents; then, each in a clean environment, run the wheel without extras, its types and its commands."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    faults = wheel_faults(wheel_names(wheel), version) + sdist_faults(sdist_names(sdist))
    if faults:
        sys.exit("\n".join(faults))
    for file in (wheel, sdist):
        print(f"{file.name}: {file.stat().st_size / 1024:.0f} KiB")
    core = environment("core", str(wheel))
    print(run(core / "python", ROOT / "release" / "user_program.py"), end="")
    for module in IMPORTS:
        print(f"import {module}: {import_seconds(core / 'python', module):.3f} s of processor time")
    types = environment("types", str(wheel), "mypy")
    run(types / "python", "-m", "mypy", "--strict", ROOT / "release" / "user_program.py")
    print("the types of the program of a user are right")
    run_commands(environment("cli", f"{wheel}[cli]"), version)


def environment(name: str, *wanted: str) -> Path:
    """A new virtual environment with these things installed; the folder of its programs."""
    place = PLACES / name
    shutil.rmtree(place, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, place)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    run(uv, "pip", "install", "--quiet", "--python", programs / "python", *wanted)
    return programs


def import_seconds(python: Path, module: str) -> float:
    """Processor time of a first import: the median of five processes, whatever else the machine does."""
    return statistics.median(float(run(python, "-c", TIMED.format(module))) for _ in range(5))


def small_table(seed: int) -> str:
    """Eighty rows of CSV, with skewed noise."""
    draw = random.Random(seed)
    points = [(draw.random(), draw.random()) for _ in range(80)]
    return "\n".join(["a,b,y", *(f"{a},{b},{a + b * draw.expovariate(1)}" for a, b in points), ""])


def run_commands(programs: Path, version: str) -> None:
    """The command line on a small table."""
    with TemporaryDirectory() as folder:
        for name, seed in (("train", 0), ("new", 1)):
            Path(folder, f"{name}.csv").write_text(small_table(seed))
        printed = [run(programs / "sosbands", *words, cwd=folder) for words in COMMANDS]
        written = Path(folder, "intervals.csv").read_text().splitlines()
    if printed[0] != f"{version}\n" or written[0] != "prediction,lower,upper,support" or len(written) != 81:
        sys.exit(f"the command line said {printed[0]!r} and wrote {len(written)} lines after {written[0]!r}")
    print(f"sosbands {version}: the command line fitted and predicted")


def run(program: Path, *words: object, cwd: str | Path = PLACES) -> str:
    """Run a program outside of the checkout's reach; what it printed."""
    Path(cwd).mkdir(parents=True, exist_ok=True)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([program, *map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program.name} {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
