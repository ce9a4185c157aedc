"""`python -m studies reproduce`: what it computes, writes and says, also when something is missing or broken."""

import csv
import gzip
import json
import os
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

pytest.importorskip("typer")
import cli_runs
from sosbands.comparison import TextTable
from studies import ENTRIES, Entry
from studies.__main__ import app

studies = partial(cli_runs.sosbands, program=app)
done = partial(cli_runs.done, program=app)


class DatasetNotFoundError(FileNotFoundError):
    """The name is what counts."""


def fine(k):
    return 1 / 3 + k


def without_data(k):
    if k:
        raise DatasetNotFoundError(f"{k}.csv: no such file.")
    return 1.0


def without_package(k):  # noqa: ARG001
    raise ModuleNotFoundError("No module named 'hetgpy'")


def forbidden(k):
    raise AssertionError(f"computed row {k}")


def cannot_draw(rows):
    raise RuntimeError(f"cannot draw {len(rows)} rows")


def table(rows):
    kept = [row for row in rows if row["error_type"] is None]
    found = [{"k": row["k"], "value": row["value"], "paper": None} for row in kept]
    return TextTable(found, [{"k": row["k"], "value": f"{row['value']:.2f}"} for row in found], note="A note.")


def picture(rows):
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(2, 1))
    figure.subplots().plot([row["value"] for row in rows])
    return figure


@dataclass
class Task:
    """A task with any function, of which stores see the same name."""

    function: Any

    def __call__(self, axes, seed):  # noqa: ARG002
        return {"value": self.function(axes["k"])}


@dataclass(frozen=True)
class MadeUp(Entry):
    """An entry that is no file."""

    function: Any = fine
    picture: Any = table

    def compute(self, config):
        return config.run(self.name, Task(self.function), [{"k": k} for k in range(2)])

    def draw(self, rows):
        return self.picture(rows)


@pytest.fixture
def use(monkeypatch):
    """These entries and no others; `numbers` is one of a table."""
    return lambda *entries: monkeypatch.setattr("studies.reproduce.ENTRIES", entries)


def numbers(function=fine):
    return MadeUp("numbers", "table", "Some numbers", function=function)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_list_names_every_entry():
    lines = done("reproduce", "--list").splitlines()
    assert [line.split()[0] for line in lines] == ["name", *(entry.name for entry in ENTRIES)]
    for line, entry in zip(lines[1:], ENTRIES, strict=True):
        assert entry.source in line
        assert line.endswith(entry.title)


def test_a_table_is_computed_stored_written_and_printed(tmp_path, use):
    use(MadeUp("numbers", "beyond: why?", "Some numbers"))
    printed = done("reproduce", "numbers", "-o", tmp_path)
    lines = printed.splitlines()
    assert lines[0] == "numbers: Some numbers"
    assert lines[1].startswith("2 rows, 0 failed, ")
    assert lines[1].endswith(" s")
    assert "k  value\n0   0.33\n1   1.33\n\nA note.\n" in printed
    folder = tmp_path / "quick"
    assert [str(folder / "numbers.md"), str(folder / "numbers.csv")] == lines[-3:-1]
    assert names(folder) == ["numbers.csv", "numbers.jsonl.gz", "numbers.md"]
    assert (folder / "numbers.md").read_text(encoding="utf-8") == (
        "# Some numbers\n\nBeyond: why? Preset quick: 2 rows, 0 failed.\n\n"
        "| k | value |\n|---:|---:|\n| 0 | 0.33 |\n| 1 | 1.33 |\n\nA note.\n"
    )
    with open(folder / "numbers.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [1 / 3, 4 / 3]
    assert [row["paper"] for row in rows] == ["", ""]


def test_a_figure_is_written_as_an_image(tmp_path, use):
    pytest.importorskip("matplotlib")
    use(MadeUp("lines", "figure, main text", "Lines", picture=picture))
    printed = done("reproduce", "lines", "-o", tmp_path, "--preset", "paper")
    image = (tmp_path / "paper" / "lines.png").read_bytes()
    assert image.startswith(b"\x89PNG")
    assert (int.from_bytes(image[16:20]), int.from_bytes(image[20:24])) == (300, 150)  # inches times 150
    assert str(tmp_path / "paper" / "lines.png") in printed
    assert names(tmp_path / "paper") == ["lines.jsonl.gz", "lines.png"]


def test_stored_rows_are_drawn_and_nothing_is_computed(tmp_path, use):
    use(numbers())
    done("reproduce", "numbers", "-o", tmp_path)
    kept = (tmp_path / "quick" / "numbers.jsonl.gz").read_bytes()
    use(numbers(forbidden))
    for words in ((), ("--stored",)):
        (tmp_path / "quick" / "numbers.csv").unlink()
        assert "2 rows, 0 failed" in done("reproduce", "numbers", "-o", tmp_path, *words)
        assert "1,1.3333333333333333," in (tmp_path / "quick" / "numbers.csv").read_text()
    assert (tmp_path / "quick" / "numbers.jsonl.gz").read_bytes() == kept
    result = studies("reproduce", "numbers", "-o", tmp_path, "--preset", "paper", "--stored")
    assert (result.exit_code, result.stderr) == (1, f"error: nothing is stored in {tmp_path / 'paper'}\n")
    assert names(tmp_path) == ["quick"]


def test_rows_that_failed_are_counted_and_can_be_run_again(tmp_path, use):
    use(numbers(without_data))
    result = studies("reproduce", "numbers", "-o", tmp_path)
    assert result.exit_code == 0
    assert "2 rows, 1 failed" in result.stdout
    assert result.stderr == (
        "note: numbers: 1 row with DatasetNotFoundError: 1.csv: no such file; when what is missing is there, add "
        "--retry-failed\n"
    )
    use(numbers())
    assert "2 rows, 1 failed" in studies("reproduce", "numbers", "-o", tmp_path).stdout
    assert "2 rows, 0 failed" in studies("reproduce", "numbers", "-o", tmp_path, "--retry-failed").stdout


def test_all_goes_on_without_what_cannot_run(tmp_path, use):
    packages = MadeUp("packages", "table", "Without a package", function=without_package)
    use(packages, MadeUp("broken", "table", "A fault in drawing", picture=cannot_draw), numbers())
    result = studies("reproduce", "all", "-o", tmp_path)
    assert result.exit_code == 1
    assert result.stdout.startswith("numbers: Some numbers\n")
    assert result.stderr.splitlines() == [
        "note: packages is left out: every row failed, 2 rows with ModuleNotFoundError: No module named 'hetgpy'; when "
        "what is missing is there, add --retry-failed",
        "note: broken is left out: RuntimeError: cannot draw 2 rows",
        "error: 1 of 3 written, not packages, broken: see the notes above",
    ]
    assert (tmp_path / "quick" / "numbers.md").exists()
    assert not (tmp_path / "quick" / "broken.md").exists()
    use(numbers())
    assert studies("reproduce", "all", "-o", tmp_path).exit_code == 0
    use(packages)  # alone it is an error
    result = studies("reproduce", "packages", "-o", tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        "error: every row failed, 2 rows with ModuleNotFoundError: No module named 'hetgpy'"
    )


def test_after_an_interruption_the_same_command_continues(tmp_path, use):
    class Interrupted(MadeUp):
        def compute(self, config):
            config.run(self.name, Task(fine), [{"k": 0}])
            raise KeyboardInterrupt

    use(Interrupted("numbers", "table", "Some numbers"))
    result = studies("reproduce", "all", "-o", tmp_path)
    assert result.exit_code == 130
    assert f"finished rows are kept in {tmp_path / 'quick'}: the same command continues\n" in result.stderr
    use(numbers())
    assert "2 rows, 0 failed" in done("reproduce", "numbers", "-o", tmp_path)
    with gzip.open(tmp_path / "quick" / "numbers.jsonl.gz", "rt") as file:
        assert sum('"axes"' in line for line in file) == 2  # the first was not computed again


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_results_that_cannot_be_written_are_refused_before_rows_are_computed(tmp_path, use):
    use(numbers(forbidden))
    (tmp_path / "quick").mkdir()
    os.mkfifo(tmp_path / "quick" / "numbers.csv")
    result = studies("reproduce", "numbers", "-o", tmp_path)
    assert result.exit_code == 1
    assert "numbers.csv is a named pipe: expected a regular file" in result.stderr
    assert "too long for this disk" in studies("reproduce", "numbers", "-o", tmp_path / ("x" * 256)).stderr
    assert names(tmp_path / "quick") == ["numbers.csv"]


def test_wrong_command_lines(tmp_path):
    unknown = studies("reproduce", "no-such-figure")
    assert unknown.exit_code == 2
    assert "'no-such-figure' is not one of all, " in unknown.stderr
    assert all(entry.name in unknown.stderr for entry in ENTRIES)
    assert "NAME is missing: expected all, or a name that --list gives" in studies("reproduce").stderr
    assert "'huge' is not one of quick, paper" in studies("reproduce", "all", "--preset", "huge").stderr
    (tmp_path / "file").write_text("")
    result = studies("reproduce", "all", "-o", tmp_path / "file")
    assert (result.exit_code, result.stderr) == (1, f"error: output {tmp_path / 'file'} is a file: expected a folder\n")


def test_an_entry_of_the_paper_without_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("SOSBANDS_DATA", raising=False)
    result = studies("reproduce", "real-data", "-o", tmp_path, "--jobs", "1")
    assert result.exit_code == 0
    assert "3 rows, 2 failed" in result.stdout
    assert "Not found: MPG, Yacht." in result.stdout
    assert "2 rows with DatasetNotFoundError: mpg.csv" in result.stderr
    text = (tmp_path / "quick" / "real-data.md").read_text(encoding="utf-8")
    assert "| Diabetes | 10 | 442 | 101 | 170 | 171 | - | - |" in text


def test_bench_measures_both_at_the_same_gap():
    found = json.loads(done("bench", "--rows", "60", "--repeats", "1", "--json"))
    assert found["rows"] == 60
    assert [row["symmetry penalty"] for row in found["results"]] == [0.0, 1.0, 100.0]
    for row in found["results"]:
        assert 0 <= row["gap"] <= 1e-4
        assert 0 <= row["recipe gap"] <= 1e-4
        assert row["ratio"] == pytest.approx(row["recipe seconds"] / row["seconds"])
    printed = done("bench", "--rows", "30", "--repeats", "1")
    assert "ratio: seconds of the recipe over ours" in printed
    few = studies("bench", "--rows", "5")
    assert few.exit_code == 2
    assert "'5' is not a whole number from 20 to 1000" in few.stderr


@pytest.mark.parametrize("command", ["reproduce", "bench"])
def test_every_help_has_an_example_of_itself(command):
    printed = done(command, "--help")
    words = re.search(rf"Example:\n +python -m studies {command} (.*)", printed).group(1).split()
    described = printed[printed.index("Options:") :]
    assert all(word in described for word in words if word.startswith("-"))
    assert command in done("--help")
