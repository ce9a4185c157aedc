"""Writing files that appear whole or not at all: where they may be, their temporary names, and what kills leave."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

AnyPath = str | os.PathLike[str]
STRANGE_HOURS = 24  # without a change, after which a temporary file of another machine is taken to be abandoned
LONGEST_SUFFIX = 16
# Temporary names say who writes: machine, process, and when that process started, because numbers come again.
TEMPORARY = re.compile(r"\.sosbands-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]{8}(\.[^/]*)?")
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link that leads nowhere"),
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of a disk, which do not say in which file


@contextmanager
def written(path: AnyPath, *, tidy: bool = True) -> Iterator[Path]:
    """A temporary name beside `path`; the file takes its place at the end, or is removed if anything goes wrong.

    After a power failure there is the old file or the new one. A link stays a link, to the new content; what is
    replaced keeps its permissions, and its owner if it may. `tidy` removes what killed processes have left beside it.
    """
    check_place(path)
    target = Path(os.path.realpath(path))
    if tidy:
        remove_leftovers(target.parent)
    partial = temporary_name(target)
    try:
        yield partial
        with suppress(FileNotFoundError):  # a new file has the owner and the mode that the system gives
            old = os.stat(target)
            if sys.platform != "win32":
                new = os.stat(partial)
                for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
                    if (owner, group) not in ((new.st_uid, -1), (-1, new.st_gid)):
                        with suppress(PermissionError):
                            os.chown(partial, owner, group)
            os.chmod(partial, stat.S_IMODE(old.st_mode))
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
        sync_folder(target.parent)
    except OSError as error:
        if error.errno in FULL or error.filename in (str(partial), partial):
            error.filename = os.fspath(path)  # the name that the user knows
        raise
    finally:
        partial.unlink(missing_ok=True)


def check_place(path: AnyPath, name: str | None = None, *, apart_from: Iterable[AnyPath] = ()) -> None:
    """Complain about a path where no file can be written or replaced, or that is one of the files `apart_from` it.

    Messages call it `name`, by default ``path=``, the argument.
    """
    shown = f"path={os.fspath(path)!r}" if name is None else f"{name} {os.fspath(path)}"
    target = _real(path, shown)
    if os.path.exists(path) and not os.path.lexists(target):  # open, but without a name: /dev/stdout in a pipeline
        raise FileExistsError(f"{shown} is a stream without a name: expected a regular file, or a new name")
    _check_folder(target.parent, shown, Path(path).parent)
    mode = _mode(target, shown)
    _mode(temporary_name(target), shown)  # its path may be longer
    if mode is not None:
        if stat.S_ISDIR(mode):
            raise FileNotFoundError(f"{shown} is a folder: expected a file name in a directory that exists")
        if not stat.S_ISREG(mode):
            raise FileExistsError(f"{shown} is {_kind(mode)}: expected a regular file, or a new name")
        # the administrator may write to all, but not against a mode
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise PermissionError(f"{shown} is read-only: expected a file that may be replaced, or a new name")
    for other in apart_from:
        if same_file(target, other):
            raise FileExistsError(f"{shown} is also an input: expected another file name")


def check_folder(path: AnyPath, name: str = "output") -> None:
    """Complain about a path that is no folder and cannot be made one."""
    shown = f"{name} {os.fspath(path)}"
    folder = _real(path, shown)
    mode = _mode(folder, shown)
    if mode is not None and not stat.S_ISDIR(mode):
        kind = "a file" if stat.S_ISREG(mode) else _kind(mode)
        raise FileExistsError(f"{shown} is {kind}: expected a folder")
    there = next(each for each in (folder, *folder.parents) if each.exists())
    _check_folder(there, shown, there)
    if sys.platform != "win32":
        limit = os.pathconf(there, "PC_NAME_MAX")
        if any(len(os.fsencode(part)) > limit for part in folder.relative_to(there).parts):
            raise OSError(f"{shown}: a name is too long for this disk, expected shorter ones")


def same_file(one: AnyPath, other: AnyPath) -> bool:
    """Whether two paths lead to one file, by links or another spelling; the file need not be there yet."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def temporary_name(target: Path) -> Path:
    """A name beside the target, short whatever its own length is, and with its suffix, as some writers go by it."""
    suffix = target.suffix if len(os.fsencode(target.suffix)) <= LONGEST_SUFFIX else ""
    pid = os.getpid()
    return target.with_name(f".sosbands-{_host()}-{pid}-{_start_of(pid) or 0}-{uuid.uuid4().hex[:8]}{suffix}")


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders of processes that are no more; those of other machines if they are old."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = TEMPORARY.fullmatch(entry.name)
            if found is None or not _abandoned(Path(entry.path), found):
                continue
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)


def sync_folder(folder: Path) -> None:
    """Bring names to the disk, where the system can."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # some network file systems cannot, and have kept the name by themselves
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _real(path: AnyPath, shown: str) -> Path:
    """Where links lead."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:  # a zero byte
        raise ValueError(f"{shown}: {error}") from error


def _check_folder(folder: Path, shown: str, typed: Path) -> None:
    mode = _mode(folder, shown)
    named = folder if typed.is_dir() else typed
    if mode is None or not stat.S_ISDIR(mode):
        raise FileNotFoundError(f"{shown}: there is no folder {named}, expected a file name in a directory that exists")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{shown}: nothing can be written to the folder {named}")


def _mode(path: Path, shown: str) -> int | None:
    """Mode of what is at a path; None if nothing is."""
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise OSError(f"{shown}: the name is too long for this disk, expected a shorter one") from error


def _kind(mode: int) -> str:
    return next((words for matches, words in KINDS if matches(mode)), "no file")


@functools.cache
def _host() -> str:
    """Short hash of the machine as long as it runs, and of the table in which it numbers processes."""
    known = [platform.node()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        known.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:8]


def _start_of(pid: int) -> int | None:
    """When a process started, in ticks of the machine; -1 if it has ended, None if nothing is known of it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return -1 if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _abandoned(path: Path, name: re.Match[str]) -> bool:
    """Whether the process that a temporary name speaks of is no more, or nothing of another machine's has changed."""
    if name["host"] != _host() or sys.platform == "win32":
        times = [time.time()]  # what vanishes meanwhile is not abandoned
        with suppress(OSError):
            times = [each.lstat().st_mtime for each in (path, *(path.rglob("*") if path.is_dir() else ()))]
        return max(times) < time.time() - STRANGE_HOURS * 3600
    pid, start = int(name["pid"]), _start_of(int(name["pid"]))
    if start is not None:
        return start != int(name["start"])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # of another user
        return False
    return False
