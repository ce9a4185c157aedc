"""Outputs of every command: places where nothing can be written are refused before anything is read or learnt."""

import os
import stat
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from cli_runs import FAST, done, number_table, sosbands

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes, links and modes of POSIX")
READS = {  # what each command does first after it has looked at its outputs
    "fit": "sosbands.cli.fit.open_table",
    "predict": "sosbands.cli.opened.open_table",
    "compare": "sosbands.cli.compare.learn_columns",
    "store": "sosbands.cli.compare.learn_columns",
    "explore": "sosbands.cli.pages.learn_columns",
}
SUFFIX = {"fit": ".model", "predict": ".csv", "compare": ".csv", "store": ".jsonl", "explore": ".html"}


def words_of(command, output):
    learning = ("data.csv", "--target", "y")
    return {
        "fit": ("fit", *learning, "-o", output),
        "predict": ("predict", "data.model", "data.csv", "-o", output),
        "compare": ("compare", *learning, "-o", output),
        "store": ("compare", *learning, "--store", output),
        "explore": ("explore", *learning, "-o", output),
    }[command]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    number_table().to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(folder, monkeypatch):
    """Run a command that must be refused before it reads anything; its message."""

    def run(command, *words):
        def reached(*_, **__):
            raise AssertionError("read before the output was looked at")

        monkeypatch.setattr(READS[command], reached)
        before = sorted(path.name for path in folder.iterdir())
        result = sosbands(*words)
        assert result.exit_code == 1, result.stdout
        assert sorted(path.name for path in folder.iterdir()) == before
        return result.stderr.splitlines()[-1]

    return run


@pytest.mark.parametrize("command", READS)
def test_outputs_that_cannot_be_written(folder, refused, command):
    name, role = f"out{SUFFIX[command]}", "--store" if command == "store" else "output"
    os.mkfifo(folder / name)
    assert refused(command, *words_of(command, name)) == (
        f"error: {role} {name} is a named pipe: expected a regular file, or a new name"
    )
    assert stat.S_ISFIFO((folder / name).lstat().st_mode)
    (folder / name).unlink()
    (folder / name).write_text("old")
    (folder / name).chmod(0o444)
    assert f"error: {role} {name} is read-only" in refused(command, *words_of(command, name))
    assert (folder / name).read_text() == "old"
    long = "x" * 256 + SUFFIX[command]
    assert "the name is too long for this disk" in refused(command, *words_of(command, long))
    absent = f"absent/{name}"
    assert f"error: {role} {absent}: there is no folder absent" in refused(command, *words_of(command, absent))


@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("spelling", ["data.csv", "./data.csv", "link{}"])
def test_no_input_is_an_output(folder, refused, command, spelling):
    given = spelling.format(SUFFIX[command])
    if spelling.startswith("link"):
        (folder / given).symlink_to("data.csv")
    if command == "explore" and not given.endswith(".html"):
        os.link("data.csv", "twin.html")
        given = "twin.html"
    before = (folder / "data.csv").read_bytes()
    assert f"{Path(given)} is also an input: expected another file name" in refused(command, *words_of(command, given))
    assert (folder / "data.csv").read_bytes() == before


def test_models_of_the_users_own_are_inputs_too(folder, refused):
    (folder / "mine.pkl").write_text("")
    (folder / "mine.py").write_text("")
    for model, output in (("mine.pkl", "mine.pkl"), ("mine:model", "mine.py")):
        words = ("fit", "data.csv", "--target", "y", "--model", model, "-o", output)
        assert f"output {output} is also an input" in refused("fit", *words)
        assert (folder / output).read_text() == ""


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("store", ["same.csv", "./same.csv", "link.jsonl"])
def test_store_and_table_are_two_files(folder, refused, store, exists):
    if exists:
        (folder / "same.csv").write_text("a\n1\n")
    (folder / "link.jsonl").symlink_to("same.csv")
    words = ("compare", "data.csv", "--target", "y", "--store", store, "-o", "same.csv")
    assert refused("compare", *words).endswith("output same.csv are one file: expected two")
    assert (folder / "same.csv").exists() is exists


def test_the_demo_looks_at_its_places_before_it_learns(folder, monkeypatch):
    monkeypatch.setattr("sosbands.cli.pages.delivery_times", lambda *_, **__: 1 / 0)
    Path("demo").mkdir()
    os.mkfifo("demo/page.html")
    assert "output demo/page.html is a named pipe" in sosbands("demo", "-o", "demo").stderr
    assert "is a named pipe: expected a folder" in sosbands("demo", "-o", "demo/page.html").stderr
    assert "too long for this disk" in sosbands("demo", "-o", "new/" + "x" * 256).stderr
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "demo"]


def test_long_names_and_modes_of_outputs_that_can_be_written(folder):
    model, table = "m" * 249 + ".model", "t" * 251 + ".csv"
    done("fit", "data.csv", "--target", "y", "-o", model, *FAST)
    (folder / table).write_text("old")
    (folder / table).chmod(0o640)
    (folder / "link.csv").symlink_to(table)
    done("predict", model, "data.csv", "-o", "link.csv")
    assert (folder / "link.csv").is_symlink()
    assert stat.S_IMODE((folder / table).stat().st_mode) == 0o640
    assert len((folder / table).read_text().splitlines()) == 81
    assert sorted(path.name for path in folder.iterdir()) == sorted(["data.csv", "link.csv", model, table])


def test_pages_are_refused_before_they_learn(folder, monkeypatch):
    from sosbands.report import write_page

    monkeypatch.setattr("sosbands.report.page.explore", lambda *_, **__: 1 / 0)
    table = number_table()
    os.mkfifo("page.html")
    with pytest.raises(FileExistsError, match="path='page.html' is a named pipe"):
        write_page(table[["a", "b"]], table["y"], "page.html")
    with pytest.raises(OSError, match="the name is too long for this disk"):
        write_page(table[["a", "b"]], table["y"], "x" * 256)
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "page.html"]


def test_places_of_predicted_folders_are_named(folder):
    from sosbands.cluster import _new_folder

    os.mkfifo("pipe")
    (folder / "link").symlink_to("absent")
    (folder / "file").write_text("")
    with pytest.raises(FileExistsError, match="target='pipe' exists"):
        _new_folder(Path("pipe"), Path("source"))
    with pytest.raises(OSError, match="the name is too long for this disk"):
        _new_folder(Path("x" * 256), Path("source"))
    with pytest.raises(FileNotFoundError, match="target='file/new': expected a name in a folder that exists"):
        _new_folder(Path("file/new"), Path("source"))
    assert _new_folder(Path("link"), Path("source")) == folder / "absent"
