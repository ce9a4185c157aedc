"""What a row of a store was made by: its task and seed, the data and settings, the sources and the machine."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import platform
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from sosbands._extras import __version__
from sosbands._types import AnyArray

Axis = str | int | float


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values: sorted keys, no spaces, ASCII, numbers as Python writes them."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def read_axes(axes: Mapping[str, Any]) -> dict[str, Axis]:
    """Axes with plain Python values; 1 and 1.0 stay different.

    Parameters
    ----------
    axes : mapping of str to str, int or float
        Infinite numbers are allowed (a penalty may be one), NaN is not, because it is not equal to itself.
    """
    if not isinstance(axes, Mapping) or not axes:
        raise ValueError(f"axes={axes!r}: expected a non-empty mapping of names to strings or numbers")
    read: dict[str, Axis] = {}
    for name, value in axes.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"axis name {name!r}: expected a non-empty string")
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, bool) or not isinstance(plain, str | int | float):
            raise ValueError(f"axis {name}={value!r}: expected a string, an integer or a float")
        if isinstance(plain, float) and math.isnan(plain):
            raise ValueError(f"axis {name}={value!r}: expected a number that is not NaN")
        read[name] = plain + 0.0 if isinstance(plain, float) else plain  # no negative zero
    return read


def seed_of(axes: Mapping[str, Any], random_state: int = 0, names: Sequence[str] | None = None) -> int:
    """Seed in [0, 2^32) of a task.

    The first four bytes, most significant first, of the SHA-256 of ``{"axes":{...},"random_state":...}`` as
    `canonical` JSON. Equal on every machine, and independent of the order of the axes and of the other tasks.

    Parameters
    ----------
    axes : mapping
        Axes of the task.
    random_state : int
        Another one gives other seeds to all tasks.
    names : sequence of str, optional
        The axes that count, all by default. Tasks that differ only in the others share their seed: leave out the
        method, and methods are paired.
    """
    values = read_axes(axes)
    names = list(values) if names is None else list(names)
    missing = [name for name in names if name not in values]
    if missing:
        raise ValueError(f"seed_axes has {missing[0]!r}, which the task {values} lacks: expected names of its axes")
    text = canonical({"axes": {name: values[name] for name in names}, "random_state": random_state})
    return int(_sha256(text)[:8], 16)


NO_EFFECT = ("n_jobs", "verbose")  # parameters that change how a result is computed and shown, not the result


def fingerprint(settings: Any) -> str:
    """SHA-256 of the description of the settings."""
    return _sha256(canonical(describe(settings)))


def describe(value: Any, _above: frozenset[int] = frozenset()) -> Any:
    """JSON that is equal for equal settings, in any process, and holds no machine path.

    Estimators and kernels are their class and parameters (but `n_jobs` and `verbose`), arrays their shape and a hash,
    functions their name (those without a module-level name also a hash of their code and what they capture), texts
    with a slash a hash; other objects, frozen estimators among them, a hash of their state. The code of a named
    function is not looked at.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return {"text": _sha256(value)} if "/" in value or "\\" in value else value
    if id(value) in _above:
        return "..."  # a cycle
    above = _above | {id(value)}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"array": list(value.shape), "dtype": str(value.dtype), "sha256": _array_hash(value)}
    if isinstance(value, Mapping):
        return {str(key): describe(entry, above) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [describe(entry, above) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted((describe(entry, above) for entry in value), key=canonical)
    if isinstance(value, FunctionType):
        named = {"function": value.__qualname__}
        if "<" not in value.__qualname__:
            return named
        # one made in another function, or a lambda, has nothing better than its code
        captured = [describe(cell.cell_contents, above) for cell in value.__closure__ or ()]
        code = {"code": code_hash(value.__code__), "captured": captured}
        return {**named, **code, "defaults": describe(value.__defaults__, above)}
    if isinstance(value, type):
        return {"class": value.__qualname__}
    name = type(value).__qualname__
    if hasattr(value, "get_params") and not isinstance(value, FrozenEstimator):
        parameters = {key: entry for key, entry in value.get_params(deep=False).items() if key not in NO_EFFECT}
        return {"class": name, "parameters": {key: describe(entry, above) for key, entry in parameters.items()}}
    return {"class": name, "state": joblib.hash(value)}


def data_hash(data: Any) -> str:
    """Hash of the values, names and types of an array, data frame, list or sparse matrix."""
    if hasattr(data, "tocoo"):
        entries = data.tocsr()
        return _sha256("".join(_array_hash(part) for part in (entries.data, entries.indices, entries.indptr)))
    if not hasattr(data, "columns"):
        return _array_hash(np.asarray(data))
    columns = table_columns(data)
    names = [str(name) for name in data.columns]
    types = [str(column.dtype) for column in columns]
    return _sha256(canonical([names, types, [_array_hash(np.asarray(column)) for column in columns]]))


def table_columns(frame: Any) -> list[Any]:
    """Columns of a data frame by position, because names may repeat."""
    return [_safe_indexing(frame, i, axis=1) for i in range(len(frame.columns))]


def _array_hash(values: AnyArray) -> str:
    if values.dtype.kind in "OTU":  # texts, categories and mixtures: by what they print
        return _sha256(f"text {values.shape}" + canonical([str(entry) for entry in values.ravel().tolist()]))
    return _sha256(f"{values.dtype.str} {values.shape}".encode() + np.ascontiguousarray(values).tobytes())


def code_hash(code: CodeType) -> str:
    """Hash of what code does, without the lines it stands on."""
    constants = [_constant(entry) for entry in code.co_consts]
    return _sha256(code.co_code + canonical([constants, code.co_names]).encode("ascii"))


def _constant(value: Any) -> str:
    """A constant in words that every process finds alike: sets of texts have another order in each."""
    if isinstance(value, CodeType):
        return code_hash(value)
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)


def _sha256(content: bytes | str) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


PACKAGE = Path(__file__).resolve().parents[1]
WITHOUT_EFFECT = ("cli", "plotting", "report")  # rooms that compute no number of a row
LENGTH = 16  # hexadecimal digits: enough to tell versions apart


def code_version(*values: Any) -> str:
    """Hash of the sources of this package and of the files in which tasks, settings and methods are written.

    Equal for equal sources, wherever they lie. What those files import is not looked at.
    """
    parts, files = set(_package_sources()), set[Path]()
    for code in _codes(values, set()):
        path = Path(code.co_filename)
        if path.is_file():
            files.add(path.resolve())
        else:  # typed at a prompt or in a notebook
            parts.add(code_hash(code))
    parts |= {_source_hash(path) for path in files if _is_own(path)}
    return _sha256("\n".join(sorted(parts)))[:LENGTH]


@functools.cache
def _package_sources() -> tuple[str, ...]:
    """Hashes, made once: a process goes on with the code that it has loaded."""
    paths = (path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in WITHOUT_EFFECT)
    return tuple(_source_hash(path) for path in paths)


def _source_hash(path: Path) -> str:
    """Of the text, whatever ends its lines."""
    return _sha256(b"\n".join(path.read_bytes().splitlines()))


def _codes(value: Any, seen: set[int]) -> Iterator[CodeType]:
    """Code of functions, and of the classes of objects, in a value and what it consists of."""
    if id(value) in seen or value is None or isinstance(value, str | bytes | int | float):
        return
    seen.add(id(value))
    inside: list[Any] = []
    if isinstance(value, Mapping):
        inside = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    elif isinstance(value, FunctionType):
        yield value.__code__
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # not set so far
                inside.append(cell.cell_contents)
    else:
        kind = value if isinstance(value, type) else type(value)
        for member in [member for each in kind.__mro__ for member in vars(each).values()]:
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(function, FunctionType):
                yield function.__code__
        if isinstance(value, functools.partial):
            inside = [value.func, value.args, value.keywords]
        elif hasattr(value, "get_params") and not isinstance(value, type):
            inside = list(value.get_params(deep=False).values())
    for each in inside:
        yield from _codes(each, seen)


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Folders of the standard library and of installed packages."""
    known = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple(Path(path).resolve() for path in (*known, *site.getsitepackages(), site.getusersitepackages()))


def _is_own(path: Path) -> bool:
    """Whether a file is neither part of an installed package nor, with an effect, of this one."""
    if path.is_relative_to(PACKAGE):
        return path.relative_to(PACKAGE).parts[0] in WITHOUT_EFFECT
    return not any(path.is_relative_to(folder) for folder in _installed())


PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "quantile-forest")


def environment() -> dict[str, str | int]:
    """Versions of Python and of the packages that results depend on, the processor and its number of threads."""
    found: dict[str, str | int] = {"sosbands": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an optional one
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cpu"] = cpu_model()
    found["threads"] = os.cpu_count() or 1
    return found


def cpu_model() -> str:
    """Name of the processor, "unknown" if the system does not say."""
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, subprocess.SubprocessError):
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
