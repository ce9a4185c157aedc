"""Outputs: what is never replaced, what a replaced file keeps, long names, and what kills and full disks leave."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from sosbands import _files
from sosbands._files import check_folder, check_place, remove_leftovers, same_file, temporary_name, written

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and modes of POSIX")
resource = None if sys.platform == "win32" else pytest.importorskip("resource")
WAITING = """
import sys, time
from sosbands._files import written
with written(sys.argv[1]) as partial:
    partial.write_text("half")
    print(partial.name, flush=True)
    time.sleep(600)
"""


def put(path, text="new"):
    with written(path) as partial:
        partial.write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------- what is never replaced


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(("make", "kind"), [(make_pipe, "a named pipe"), (make_socket, "a socket")])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path, monkeypatch, make, kind, linked):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = tmp_path / "special"
    make("special")
    mode = path.stat().st_mode
    given = tmp_path / "link" if linked else path
    if linked:
        given.symlink_to(path)
    words = f"{given.name}' is {kind}: expected a regular file, or a new name"
    with pytest.raises(FileExistsError, match=words):
        check_place(given)
    with pytest.raises(FileExistsError, match=words):
        put(given)
    assert path.lstat().st_mode == mode
    assert given.is_symlink() is linked


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_devices_and_open_streams_without_a_name_are_refused():
    """As /dev/stdout is in a pipeline: in time, not when the file is to take its place, after all the work."""
    for device in ("/dev/null", "/dev/full"):
        with pytest.raises(FileExistsError, match="is a device: expected a regular file"):
            put(device)
        assert stat.S_ISCHR(os.lstat(device).st_mode)
    reading, writing = os.pipe()
    try:
        with pytest.raises(FileExistsError, match=f"fd/{writing}' is a stream without a name: expected a regular file"):
            check_place(f"/proc/self/fd/{writing}")
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("there", [True, False])
def test_links_stay_links_and_those_in_a_circle_are_refused(tmp_path, there):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "file")
    if there:
        (tmp_path / "folder" / "file").write_text("old")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "new"
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(FileExistsError, match="is a link that leads nowhere"):
        put(tmp_path / "a")


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o000])
def test_a_read_only_file_is_respected_also_by_the_administrator(tmp_path, mode):
    path = tmp_path / "t.txt"
    path.write_text("old")
    path.chmod(mode)
    with pytest.raises(PermissionError, match="t.txt' is read-only: expected a file that may be replaced"):
        put(path)
    path.chmod(0o600)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["t.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "t.txt"
    path.write_text("old")
    path.chmod(mode)
    put(path)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator may give files away")
def test_a_replaced_file_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("old")
    os.chown(path, 12345, 23456)
    path.chmod(0o664)
    put(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o664)


def test_a_new_file_has_the_mode_that_the_system_gives(tmp_path):
    before = os.umask(0o027)
    try:
        put(tmp_path / "t.txt")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.txt").stat().st_mode) == 0o640


# ---------------------------------------------------------------- places and names


def test_inputs_are_known_by_links_and_other_spellings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to("data.csv")
    os.link("data.csv", "twin.csv")
    (tmp_path / "folder").mkdir()
    for spelling in ("data.csv", "./folder/../data.csv", tmp_path / "link.csv", "twin.csv"):
        with pytest.raises(FileExistsError, match="is also an input: expected another file name"):
            check_place(spelling, "output", apart_from=["data.csv"])
    check_place("other.csv", apart_from=["data.csv", "absent.csv"])
    assert same_file("absent.csv", "folder/../absent.csv")
    assert not same_file("absent.csv", "data.csv")


def test_names_up_to_the_limit_of_the_disk_can_be_written_and_those_beyond_are_refused_at_once(tmp_path):
    long = {letter * ((n - 4) // len(letter.encode())) + ".txt" for n in (100, 230, 254, 255) for letter in "xä"}
    for name in long:
        put(tmp_path / name)
    assert names(tmp_path) == sorted(long)
    for path in (tmp_path / ("x" * 256), tmp_path / "/".join(["y" * 200] * 25)):
        with pytest.raises(OSError, match="the name is too long for this disk|there is no folder"):
            check_place(path)
    with pytest.raises(OSError, match="output .*: the name is too long for this disk"):
        check_folder(tmp_path / ("x" * 256))
    with pytest.raises(OSError, match="output .*: a name is too long for this disk"):
        check_folder(tmp_path / "new" / ("x" * 256) / "deep")


def test_places_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match="path='.*'.*: .*expected a file name in a directory that exists"):
        check_place(tmp_path)
    for path in ("file/t.txt", "absent/t.txt", "absent/deep/t.txt"):
        folder = path.removesuffix("/t.txt")
        with pytest.raises(FileNotFoundError, match=rf"output {path}: there is no folder {folder}, expected"):
            check_place(path, "output")
    with pytest.raises(FileNotFoundError, match="output file/a: there is no folder|is no folder"):
        check_folder("file/a")
    with pytest.raises(ValueError, match=r"path='a\\x00b'"):
        check_place("a\0b")
    check_folder("new/deep/folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write to every folder")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="nothing can be written to the folder"):
        check_place(tmp_path / "t.txt")
    tmp_path.chmod(0o700)


# ---------------------------------------------------------------- kills and full disks


def test_what_a_killed_process_left_goes_with_the_next_file_and_not_before_it_died(tmp_path):
    command = [sys.executable, "-c", WAITING, str(tmp_path / "a.txt")]  # it waits in the middle of writing
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    left = tmp_path / process.stdout.readline().strip()
    assert left.name.startswith(".sosbands-"), process.poll()
    put(tmp_path / "b.txt")
    assert left.read_text() == "half"  # its process lives
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but not yet buried
    put(tmp_path / "b.txt", "again")
    assert names(tmp_path) == ["b.txt"]
    process.wait()
    process.stdout.close()


def test_a_number_of_a_process_that_came_again_protects_nothing(tmp_path):
    mine = temporary_name(tmp_path / "a.txt")
    mine.write_text("")
    fields = mine.name.split("-")
    other = tmp_path / "-".join([*fields[:3], str(int(fields[3]) - 1), *fields[4:]])
    other.write_text("")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [mine.name]


def test_files_of_other_machines_go_when_they_are_old(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_host", lambda: "0123abcd")
    there = [temporary_name(tmp_path / name) for name in ("new.txt", "old.txt", "new", "old")]
    for path in there[:2]:
        path.write_text("")
    for path in there[2:]:
        (path / "part").mkdir(parents=True)
        (path / "part" / "file").write_text("")
    monkeypatch.undo()
    then = time.time() - (_files.STRANGE_HOURS + 1) * 3600
    for path in (there[1], there[2], there[3] / "part" / "file", there[3] / "part", there[3]):
        os.utime(path, (then, then))
    remove_leftovers(tmp_path)
    assert names(tmp_path) == sorted(path.name for path in (there[0], there[2]))


def test_other_hidden_files_are_left_alone(tmp_path):
    kept = [".sosbands-notes", ".sosbands-0123abcd-1-1-zzzzzzzz", ".t.txt.swp", "sosbands-0123abcd-1-1-01234567"]
    for name in kept:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (0, 0))
    put(tmp_path / "t.txt")
    assert names(tmp_path) == sorted([*kept, "t.txt"])


@pytest.mark.parametrize("old", [None, "old"])
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, old):
    path = tmp_path / "t.txt"
    if old:
        path.write_text(old)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # as a disk with room for 1000 bytes
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            put(path, "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(path))  # not the temporary name

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)  # as a disk that is full when it is flushed
    with pytest.raises(OSError, match=r"No space left on device: '.*t.txt'"):
        put(path)
    assert names(tmp_path) == ([path.name] if old else [])
    assert not old or path.read_text() == old
