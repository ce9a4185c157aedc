"""The command line as a program of its own: exit codes, signals, streams, memory, and what it imports."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from cli_runs import FAST, fit, noted, number_table, sosbands
from sosbands import __version__

PROGRAM = (sys.executable, "-m", "sosbands")


def run(*words, program=PROGRAM, **options):
    return subprocess.run([*program, *map(str, words)], capture_output=True, text=True, timeout=300, **options)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """Files of 60 and 200 thousand rows."""
    path = tmp_path_factory.mktemp("process")
    rows = number_table(1000, seed=1)[["a", "b"]].to_csv(index=False, header=False).replace("\n", f",{'x' * 400}\n")
    (path / "medium.csv").write_text("a,b,text\n" + rows * 60)
    (path / "long.csv").write_text("a,b,text\n" + rows * 200)
    return path


def test_results_go_to_stdout_and_messages_to_stderr(folder, tmp_path):
    words = ("predict", folder / "numbers.model", folder / "numbers-new.csv", "-o", "out.csv")
    good = run(*words, "--json", cwd=tmp_path)
    assert good.returncode == 0
    assert json.loads(good.stdout)["rows"] == 50
    assert good.stderr == ""
    bad = run("predict", folder / "numbers.model", "absent.csv", "-o", "out.csv", cwd=tmp_path)
    assert (bad.returncode, bad.stdout, bad.stderr) == (1, "", "error: absent.csv: no such file\n")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_prediction_leaves_nothing_behind(folder, long, tmp_path, number, code):
    words = ("predict", folder / "numbers.model", long / "long.csv", "-o", "out.csv", "--keep-columns")
    with subprocess.Popen(
        [*PROGRAM, *map(str, words)], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)  # until the temporary file is there: the work has begun
        begun = [path.name for path in tmp_path.iterdir()]
        process.send_signal(number)
        printed, said = process.communicate(timeout=60)
    assert len(begun) == 1
    assert begun[0].startswith(".sosbands-")
    assert process.returncode == code, said
    assert printed == ""
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals of POSIX")
def test_progress_on_a_terminal_is_a_display_and_never_on_stdout(folder, tmp_path):
    import pty

    keyboard, terminal = pty.openpty()
    words = fit(folder / "numbers.csv", "m.model")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        [*PROGRAM, *map(str, words)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment
    ) as process:
        os.close(terminal)
        printed = process.stdout.read()
    shown = os.read(keyboard, 1 << 16).decode()
    os.close(keyboard)
    assert process.returncode == 0
    assert "learning" in shown
    assert "calibrated on 27 rows" in shown  # what the model says while it learns
    assert printed.startswith("Learnt 'y' from 2 columns: 2 numbers")
    assert "\x1b" not in printed
    assert "calibrated on 27 rows" not in printed


def test_progress_elsewhere_is_a_line_per_stage(folder, tmp_path):
    found = sosbands(*fit(folder / "numbers.csv", tmp_path / "m.model"))
    lines = found.stderr.splitlines()
    assert all(re.match(r"\[\d+ s\] \S", line) for line in lines)
    told = [line.partition("] ")[2] for line in lines]
    assert told[:3] == [
        f"reading {folder / 'numbers.csv'}",
        "80 rows, 2 columns; point model first",
        "point model RidgeCV fitted to 53 rows",
    ]
    assert told[-1] == "calibrated on 27 rows"
    assert found.stdout.startswith("Learnt 'y'")
    words = ("--target", "y", "--methods", "split", "--repetitions", "2", *FAST)
    compared = noted("compare", folder / "numbers.csv", *words).splitlines()
    assert compared[1].endswith("80 rows; 2 runs of 1 method")
    assert compared[-1].startswith("[compare] 2 of 2 done, 0 failed, ")


PEAK = """
import re, sys
from typer.testing import CliRunner
from sosbands.cli.app import app
def predict(data, output):
    result = CliRunner().invoke(app, ["predict", sys.argv[1], data, "-o", output, "--keep-columns", "--json"])
    assert result.exit_code == 0, result.stderr
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1)) / 1024
before = predict(sys.argv[2], sys.argv[4])
print(before, predict(sys.argv[3], sys.argv[4]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_does_not_grow_with_the_file(folder, long, tmp_path, suffix):
    files = [long / "medium.csv", long / "long.csv"]
    if suffix == ".parquet":
        from pyarrow import csv, parquet

        for i, file in enumerate(files):
            files[i] = tmp_path / f"{file.stem}.parquet"
            parquet.write_table(csv.read_csv(file), files[i], use_dictionary=False, compression="none")
    medium, large = (file.stat().st_size / 2**20 for file in files)
    assert large - medium > 50  # MB
    words = (folder / "numbers.model", *files, tmp_path / f"out{suffix}")
    found = run(*words, program=(sys.executable, "-c", PEAK), check=True)
    before, after = map(float, found.stdout.split())
    assert after - before < 40  # the allocator keeps some; the whole file would take more than its size


LOADED = """
import sys
sys.argv = ["sosbands", *sys.argv[1:]]
import sosbands
before = set(sys.modules)
import sosbands.cli
assert not {"typer", "rich", "pyarrow"} & (set(sys.modules) - before)
try:
    sosbands.cli.main()
finally:
    print([name for name in ("numpy", "sklearn", "scipy", "pandas", "pyarrow", "studies") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("words", "heavy", "said"),
    [
        (["--version"], False, __version__),
        (["--help"], False, "Usage: sosbands"),
        (["fit", "--help"], True, "Usage: sosbands fit"),
    ],
)
def test_what_needs_no_data_loads_nothing_heavy(words, heavy, said):
    *printed, loaded = run(*words, program=(sys.executable, "-c", LOADED), check=True).stdout.splitlines()
    assert ("'sklearn'" in loaded) is heavy
    assert (loaded == "[]") is not heavy
    assert any(line.startswith(said) for line in printed)


def test_without_typer_the_program_says_what_to_install():
    script = "import sys; sys.modules['typer'] = None; from sosbands.cli import main; main()"
    found = run(program=(sys.executable, "-c", script))
    assert found.returncode == 1
    said = "error: the command line needs typer, which is not installed: pip install typer rich pandas pyarrow\n"
    assert found.stderr == said
