"""Outputs of every command: places where nothing can be written are refused before anything is read or learnt."""

import os
import stat
from pathlib import Path

import pytest

from cli_runs import done, fit, number_table, refused

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes, links and modes of POSIX")
COMMANDS = {  # words before the output, its suffix, and what each does first after it has looked at its outputs
    "fit": (("fit", "data.csv", "--target", "y", "-o"), ".model", "sosbands.cli.fit.open_table"),
    "predict": (("predict", "data.model", "data.csv", "-o"), ".csv", "sosbands.cli.opened.open_table"),
    "compare": (("compare", "data.csv", "--target", "y", "-o"), ".csv", "sosbands.cli.compare.learn_columns"),
    "store": (("compare", "data.csv", "--target", "y", "--store"), ".jsonl", "sosbands.cli.compare.learn_columns"),
    "explore": (("explore", "data.csv", "--target", "y", "-o"), ".html", "sosbands.cli.pages.learn_columns"),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    number_table().to_csv(tmp_path / "data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def early(place, monkeypatch):
    """Run a command that must be refused before it reads anything; its message."""

    def run(command, output, *more):
        words, _, reads = COMMANDS[command]
        # a reader that is called is an AssertionError, which is no message
        monkeypatch.setattr(reads, lambda *_, **__: pytest.fail("read before the output was looked at"))
        before = sorted(path.name for path in place.iterdir())
        message = refused(*words, output, *more)
        assert sorted(path.name for path in place.iterdir()) == before
        return message.splitlines()[-1]

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_outputs_that_cannot_be_written(place, early, command):
    suffix, role = COMMANDS[command][1], "--store" if command == "store" else "output"
    name = f"out{suffix}"
    os.mkfifo(name)
    piped = f"error: {role} {name} is a named pipe: expected a regular file, or a new name"
    assert early(command, name) == piped
    assert stat.S_ISFIFO((place / name).lstat().st_mode)
    (place / name).unlink()
    (place / name).write_text("old")
    (place / name).chmod(0o444)
    assert f"error: {role} {name} is read-only" in early(command, name)
    assert (place / name).read_text() == "old"
    assert "the name is too long for this disk" in early(command, "x" * 256 + suffix)
    absent = f"absent/{name}"
    assert f"error: {role} {absent}: there is no folder absent" in early(command, absent)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("spelling", ["data.csv", "./data.csv", "link{}"])
def test_no_input_is_an_output(place, early, command, spelling):
    given = spelling.format(COMMANDS[command][1])
    if spelling.startswith("link"):
        (place / given).symlink_to("data.csv")
    if command == "explore" and not given.endswith(".html"):
        os.link("data.csv", "twin.html")
        given = "twin.html"
    before = (place / "data.csv").read_bytes()
    assert f"{Path(given)} is also an input: expected another file name" in early(command, given)
    assert (place / "data.csv").read_bytes() == before


@pytest.mark.parametrize(("model", "output"), [("mine.pkl", "mine.pkl"), ("mine:model", "mine.py")])
def test_models_of_the_users_own_are_inputs_too(place, early, model, output):
    (place / output).write_text("")
    assert f"output {output} is also an input" in early("fit", output, "--model", model)
    assert (place / output).read_text() == ""


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("store", ["same.csv", "./same.csv", "link.jsonl"])
def test_store_and_table_are_two_files(place, early, store, exists):
    if exists:
        (place / "same.csv").write_text("a\n1\n")
    (place / "link.jsonl").symlink_to("same.csv")
    assert early("store", store, "-o", "same.csv").endswith("output same.csv are one file: expected two")
    assert (place / "same.csv").exists() is exists


def test_the_demo_looks_at_its_places_before_it_learns(place, monkeypatch):
    monkeypatch.setattr("sosbands.cli.pages.delivery_times", lambda *_, **__: 1 / 0)
    Path("demo").mkdir()
    os.mkfifo("demo/page.html")
    assert "output demo/page.html is a named pipe" in refused("demo", "-o", "demo")
    assert "is a named pipe: expected a folder" in refused("demo", "-o", "demo/page.html")
    assert "too long for this disk" in refused("demo", "-o", "new/" + "x" * 256)
    assert sorted(path.name for path in place.iterdir()) == ["data.csv", "demo"]


def test_long_names_and_modes_of_outputs_that_can_be_written(place):
    model, table = "m" * 249 + ".model", "t" * 251 + ".csv"
    done(*fit("data.csv", model))
    (place / table).write_text("old")
    (place / table).chmod(0o640)
    (place / "link.csv").symlink_to(table)
    done("predict", model, "data.csv", "-o", "link.csv")
    assert (place / "link.csv").is_symlink()
    assert stat.S_IMODE((place / table).stat().st_mode) == 0o640
    assert len((place / table).read_text().splitlines()) == 81
    assert sorted(path.name for path in place.iterdir()) == sorted(["data.csv", "link.csv", model, table])


def test_pages_are_refused_before_they_learn(place, monkeypatch):
    from sosbands.report import write_page

    monkeypatch.setattr("sosbands.report.page.explore", lambda *_, **__: 1 / 0)
    table = number_table()
    os.mkfifo("page.html")
    with pytest.raises(FileExistsError, match="path='page.html' is a named pipe"):
        write_page(table[["a", "b"]], table["y"], "page.html")
    with pytest.raises(OSError, match="the name is too long for this disk"):
        write_page(table[["a", "b"]], table["y"], "x" * 256)
    assert sorted(path.name for path in place.iterdir()) == ["data.csv", "page.html"]


def test_places_of_predicted_folders_are_named(place):
    from sosbands.cluster import _new_folder

    os.mkfifo("pipe")
    (place / "link").symlink_to("absent")
    (place / "file").write_text("")
    with pytest.raises(FileExistsError, match="target='pipe' exists"):
        _new_folder(Path("pipe"), Path("source"))
    with pytest.raises(OSError, match="the name is too long for this disk"):
        _new_folder(Path("x" * 256), Path("source"))
    with pytest.raises(FileNotFoundError, match="target='file/new': expected a name in a folder that exists"):
        _new_folder(Path("file/new"), Path("source"))
    assert _new_folder(Path("link"), Path("source")) == place / "absent"
