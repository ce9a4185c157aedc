"""Writers with a planted defect, which a full disk brings to light, are caught."""

from dataclasses import replace

import pytest

from attack import full_disk
from attack.full_disk import OLD, Ending, Writing

DONE = Ending(0, ())


def whole(path):
    assert len(path.read_bytes()) == 20_000


def refused(path, error):
    return Ending(1, (f"error: {path}: {error.strerror}",))


def careful(_inputs, path):
    partial = path.with_name("partial")
    try:
        partial.write_bytes(bytes(20_000))
        partial.replace(path)
    except OSError as error:
        partial.unlink()
        return refused(path, error)
    return DONE


def in_place(_inputs, path, name="out.bin"):
    try:
        path.with_name(name).write_bytes(bytes(20_000))
        path.with_name(name).replace(path)
    except OSError as error:
        return refused(path, error)
    return DONE


def untidy(inputs, path):
    return in_place(inputs, path, "partial")


def silent(inputs, path):
    careful(inputs, path)
    return DONE


def vague(inputs, path):
    return replace(careful(inputs, path), errors=("error: no space",))


def wordy(inputs, path):
    return replace(careful(inputs, path), errors=2 * careful(inputs, path).errors)


@pytest.fixture
def attempt(monkeypatch):
    """An attempt with this writer; a limit on the size of files in place of a mounted disk."""
    monkeypatch.setattr(full_disk, "can_mount", lambda: False)
    monkeypatch.setattr(full_disk, "make_inputs", lambda _folder: None)

    def run(write):
        monkeypatch.setattr(full_disk, "WRITINGS", (Writing("planted", "out.bin", write, whole),))
        return full_disk.attempt(1)

    return run


def test_a_careful_writer_is_refused_and_no_more(attempt):
    assert attempt(careful) == "planted: refused"


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (in_place, "the old file is another"),
        (untidy, r"left in the folder: \['out.bin', 'partial'\]"),
        (silent, "said to be done, and nothing was written"),
        (vague, "does not name the file"),
        (wordy, "expected one error"),
    ],
)
def test_a_planted_defect_is_caught(attempt, write, words):
    with pytest.raises(AssertionError, match=words):
        attempt(write)


def test_lines_of_a_store_that_are_lost_are_caught(tmp_path):
    (tmp_path / "runs.jsonl").write_bytes(OLD[:5])
    store = Writing("planted", "runs.jsonl", careful, whole, appends=True)
    with pytest.raises(AssertionError, match="are lost"):
        full_disk.judge(store, Ending(1, ("error: runs.jsonl",)), tmp_path, OLD, 3)
