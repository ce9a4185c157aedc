"""The command line as a program of its own: exit codes, signals, streams, memory, and what it imports."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from cli_runs import FAST, done, number_table
from sosbands import __version__

PROGRAM = (sys.executable, "-m", "sosbands")


def run(*words, cwd, **options):
    return subprocess.run([*PROGRAM, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("process")
    number_table().to_csv(path / "train.csv", index=False)
    done("fit", path / "train.csv", "--target", "y", "-o", path / "y.model", *FAST)
    rows = number_table(1000, seed=1)[["a", "b"]].to_csv(index=False, header=False)
    (path / "short.csv").write_text("a,b\n" + rows)
    rows = rows.replace("\n", f",{'x' * 400}\n")
    (path / "medium.csv").write_text("a,b,text\n" + rows * 60)
    (path / "long.csv").write_text("a,b,text\n" + rows * 200)
    return path


def test_results_go_to_stdout_and_messages_to_stderr(folder, tmp_path):
    good = run("predict", folder / "y.model", folder / "short.csv", "-o", tmp_path / "out.csv", "--json", cwd=tmp_path)
    assert good.returncode == 0
    assert json.loads(good.stdout)["rows"] == 1000
    assert good.stderr == ""
    bad = run("predict", folder / "y.model", "absent.csv", "-o", "out.csv", cwd=tmp_path)
    assert (bad.returncode, bad.stdout, bad.stderr) == (1, "", "error: absent.csv: no such file\n")
    wrong = run("predict", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Missing argument 'MODEL'" in wrong.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_prediction_leaves_nothing_behind(folder, tmp_path, number, code):
    words = ("predict", folder / "y.model", folder / "long.csv", "-o", "out.csv", "--keep-columns")
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
    words = ("fit", folder / "train.csv", "--target", "y", "-o", "m.model", *FAST)
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
    assert "calibrated on 40 rows" in shown  # what the model says while it learns
    assert printed.startswith("Learnt 'y' from 2 columns: 2 numbers")
    assert "\x1b" not in printed
    assert "calibrated on 40 rows" not in printed


def test_progress_elsewhere_is_a_line_per_stage(folder, tmp_path):
    found = run("fit", folder / "train.csv", "--target", "y", "-o", "m.model", *FAST, cwd=tmp_path)
    lines = found.stderr.splitlines()
    assert all(re.match(r"\[\d+ s\] \S", line) for line in lines)
    told = [line.partition("] ")[2] for line in lines]
    assert told[:3] == [
        f"reading {folder / 'train.csv'}",
        "80 rows, 2 columns; point model first",
        "point model RidgeCV fitted to 40 rows",
    ]
    assert told[-1] == "calibrated on 40 rows"
    assert found.stdout.startswith("Learnt 'y'")
    words = ("--target", "y", "--methods", "split", "--repetitions", "2", *FAST)
    compared = run("compare", folder / "train.csv", *words, cwd=tmp_path).stderr.splitlines()
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
def test_memory_does_not_grow_with_the_file(folder, tmp_path, suffix):
    files = [folder / "medium.csv", folder / "long.csv"]
    if suffix == ".parquet":
        from pyarrow import csv, parquet

        for i, file in enumerate(files):
            files[i] = tmp_path / f"{file.stem}.parquet"
            parquet.write_table(csv.read_csv(file), files[i], use_dictionary=False, compression="none")
    medium, long = (file.stat().st_size / 2**20 for file in files)
    assert long - medium > 50  # MB, between 60 000 and 200 000 rows
    script = [sys.executable, "-c", PEAK, *map(str, (folder / "y.model", *files, tmp_path / f"out{suffix}"))]
    found = subprocess.run(script, capture_output=True, text=True, timeout=300, check=True)
    before, after = map(float, found.stdout.split())
    assert after - before < 40  # the allocator keeps some; the whole file would take more than its size


def test_the_room_itself_loads_nothing_heavy():
    script = (
        "import sys, sosbands; before = set(sys.modules); import sosbands.cli; "
        "print([name for name in ('typer', 'rich', 'pyarrow') if name in set(sys.modules) - before])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


LOADED = """
import sys
sys.argv = ["sosbands", *sys.argv[1:]]
from sosbands.cli import main
try:
    main()
finally:
    print([name for name in ("numpy", "sklearn", "scipy", "pandas", "pyarrow", "studies") if name in sys.modules])
"""


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_what_needs_no_data_loads_nothing_heavy(word):
    found = subprocess.run([sys.executable, "-c", LOADED, word], capture_output=True, text=True, check=True)
    *printed, loaded = found.stdout.splitlines()
    assert loaded == "[]"
    assert any(line.startswith((__version__, "Usage: sosbands")) for line in printed)


def test_a_command_loads_what_it_needs():
    found = subprocess.run([sys.executable, "-c", LOADED, "fit", "--help"], capture_output=True, text=True, check=True)
    assert "'sklearn'" in found.stdout.splitlines()[-1]


def test_without_typer_the_program_says_what_to_install():
    script = "import sys; sys.modules['typer'] = None; from sosbands.cli import main; main()"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.returncode == 1
    said = "error: the command line needs typer, which is not installed: pip install typer rich pandas pyarrow\n"
    assert found.stderr == said
