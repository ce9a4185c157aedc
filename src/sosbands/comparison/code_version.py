"""Which code made a row: a hash of the sources that can change it.

These are the sources of this package, but for those that only draw or talk, and, of tasks, methods and metrics that are
not part of an installed package, the files they are written in, with all that these import. Versions of installed
packages stand in the environment that a store records.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from sosbands.comparison.fingerprint import code_hash

PACKAGE = Path(__file__).resolve().parents[1]
WITHOUT_EFFECT = ("cli", "plotting", "report")  # rooms that compute no number of a row
LENGTH = 16  # hexadecimal digits: enough to tell versions apart


def code_version(*values: Any) -> str:
    """Hash of the sources behind tasks, settings and methods; equal for equal sources, wherever they lie."""
    parts, files = set(_package_sources()), set[Path]()
    for value in values:
        for code in _codes(value, set()):
            path = Path(code.co_filename)
            if path.is_file():
                files.add(path.resolve())
            else:  # typed at a prompt or in a notebook
                parts.add(code_hash(code))
    parts |= {_source_hash(path) for path in _with_imports({path for path in files if _is_own(path)})}
    return hashlib.sha256("\n".join(sorted(parts)).encode("ascii")).hexdigest()[:LENGTH]


@functools.cache
def _package_sources() -> tuple[str, ...]:
    """Hashes, made once: a process goes on with the code that it has loaded."""
    paths = (path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in WITHOUT_EFFECT)
    return tuple(_source_hash(path) for path in paths)


def _source_hash(path: Path) -> str:
    """Of the text, whatever ends its lines."""
    return hashlib.sha256(b"\n".join(path.read_bytes().splitlines())).hexdigest()


def _codes(value: Any, seen: set[int]) -> Iterator[CodeType]:
    """Code of functions, and of the classes of objects, in a value and what it consists of."""
    if id(value) in seen or value is None or isinstance(value, str | bytes | int | float):
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    elif isinstance(value, FunctionType):
        yield value.__code__
        inside = _captured(value)
    elif isinstance(value, type):
        yield from _class_codes(value)
        return
    else:
        yield from _class_codes(type(value))
        inside = [value.func, value.args, value.keywords] if isinstance(value, functools.partial) else []
        inside += list(value.get_params(deep=False).values()) if hasattr(value, "get_params") else []
    for each in inside:
        yield from _codes(each, seen)


def _captured(function: FunctionType) -> list[Any]:
    """What a function holds of the one around it, as far as that has been set."""
    found = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            found.append(cell.cell_contents)
    return found


def _class_codes(kind: type) -> Iterator[CodeType]:
    for each in kind.__mro__:
        for member in vars(each).values():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType):
                yield function.__code__


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    known = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(path).resolve() for path in (*known, *site.getsitepackages(), site.getusersitepackages()))


def _is_own(path: Path) -> bool:
    """Whether a file is neither part of an installed package nor, with an effect, of this one."""
    inside = path.is_relative_to(PACKAGE)
    if inside:
        return path.relative_to(PACKAGE).parts[0] in WITHOUT_EFFECT
    return not any(path.is_relative_to(folder) for folder in _installed())


def _with_imports(files: set[Path]) -> set[Path]:
    """These files and those that they import, directly or not; of this package only these."""
    found, left = set(files), [path for path in files if not path.is_relative_to(PACKAGE)]
    while left:
        new = {path for path in _imports(left.pop()) if _is_own(path) and not path.is_relative_to(PACKAGE)} - found
        found |= new
        left += new
    return found


def _imports(path: Path) -> Iterator[Path]:
    """Files of the modules that a file names in its imports, anywhere in it."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(alias.name, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = f"{node.module}." if node.module else ""
            names = [(base + alias.name, node.level) for alias in node.names]
        else:
            continue
        for name, level in names:
            yield from _files_of(name.split("."), path, level)


def _files_of(parts: list[str], importer: Path, level: int) -> Iterator[Path]:
    """Files of a module and the packages around it, as far as there are any; found without importing them."""
    # Beside the importer, too: it may be a script that was loaded in another way.
    folders = [str(importer.parents[level - 1])] if level else [*sys.path, str(importer.parent)]
    for part in parts:
        spec = PathFinder.find_spec(part, folders)
        if spec is None:
            return
        if spec.origin is not None and spec.origin.endswith(".py"):
            yield Path(spec.origin).resolve()
        folders = list(spec.submodule_search_locations or [])
