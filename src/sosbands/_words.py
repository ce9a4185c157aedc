"""Words that several rooms put together, and warnings at the line of whoever called the package."""

import sys
import warnings
from collections.abc import Iterable
from types import FrameType

# Frames of these stand between a user's line and the package, or between two of its own: contextlib around a
# decorated method, scikit-learn and joblib around a fit of theirs, SciPy around a function that it minimises.
BETWEEN = {"sklearn", "joblib", "numpy", "scipy", "threadpoolctl", "dask", "distributed", *sys.stdlib_module_names}


def warn(message: str, category: type[Warning]) -> None:
    """A warning at the user's line: the nearest outside of the package and, but in a process of joblib's, `BETWEEN`."""
    frame: FrameType | None = sys._getframe(1)
    outside: list[FrameType] = []
    while frame is not None:
        # `python -m sosbands` runs a module named __main__, whose package says where it is from
        name = (frame.f_globals.get("__package__") or frame.f_globals.get("__name__") or "").partition(".")[0]
        if name != "sosbands":
            outside.append(frame)
            if name not in BETWEEN:
                break
        frame = frame.f_back
    line = outside[-1 if frame else 0]
    module, registry = line.f_globals.get("__name__"), line.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, line.f_code.co_filename, line.f_lineno, module, registry)


def many(count: int, noun: str) -> str:
    """Such as "1 row" and "2 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names in quotes, the first few of many."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def share_of(part: int, count: int, noun: str) -> str:
    """Such as "1 of 3 rows is" and "2 of 3 rows are"."""
    return f"{part} of {many(count, noun)} {'is' if part == 1 else 'are'}"
